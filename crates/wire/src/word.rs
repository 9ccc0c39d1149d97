//! The brain's words as JSON values, one at a time, both ways.
//!
//! In: JSON with the way that led to it. Out: sites, instances, epochs, ages, sets; errors that name the field. Must not:
//! guess: a value that is not exactly of its form is malformed.

use crate::duration;
use crate::error::{Error, beginning};
use crate::json::Json;
use bloodraven_brain::message::{FencedBy, StartId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::Phase;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;
use std::fmt;

/// A value that has a form in JSON.
pub(crate) trait Word: Sized {
    fn to_json(&self) -> Json;
    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error>;
}

/// The way from the body to a value in it.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Body,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

/// The fields of an object. What nobody asks for is ignored.
pub(crate) struct Fields<'a> {
    entries: &'a [(String, Json)],
    at: Place<'a>,
}

/// An object in the making.
pub(crate) struct Writer(Vec<(String, Json)>);

/// A length of time in Go's form.
#[derive(Clone, Copy)]
pub(crate) struct GoText(pub(crate) Millis);

impl Place<'_> {
    pub(crate) fn malformed(&self, problem: impl Into<String>) -> Error {
        Error::malformed(self.to_string(), problem)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("body"),
            Self::Field(Place::Body, name) => f.write_str(&beginning(name)),
            Self::Field(parent, name) => write!(f, "{parent}.{}", beginning(name)),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn of(json: &'a Json, at: Place<'a>) -> Result<Self, Error> {
        match json {
            Json::Object(entries) => Ok(Self { entries, at }),
            _ => Err(at.malformed("not an object")),
        }
    }

    /// Where a field of this object is.
    pub(crate) fn at<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place::Field(&self.at, name)
    }

    /// A field that has to be there.
    pub(crate) fn required<T: Word>(&self, name: &str) -> Result<T, Error> {
        self.optional(name)?.ok_or_else(|| Error::missing(self.at(name).to_string()))
    }

    /// A field that may be missing or `null`.
    pub(crate) fn optional<T: Word>(&self, name: &str) -> Result<Option<T>, Error> {
        self.value(name).map(|json| T::from_json(json, &self.at(name))).transpose()
    }

    /// The value of a field, unless it is missing or `null`.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Json> {
        self.entries.iter().find(|(key, json)| key == name && *json != Json::Null).map(|(_, json)| json)
    }
}

impl Writer {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn put<T: Word>(self, name: &str, value: &T) -> Self {
        self.put_json(name, value.to_json())
    }

    pub(crate) fn put_json(mut self, name: &str, value: Json) -> Self {
        self.0.push((name.into(), value));
        self
    }

    /// Leaves the field out where there is no value.
    pub(crate) fn put_if<T: Word>(self, name: &str, value: Option<&T>) -> Self {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    pub(crate) fn finish(self) -> Json {
        Json::Object(self.0)
    }
}

impl Word for bool {
    fn to_json(&self) -> Json {
        Json::Bool(*self)
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        match json {
            Json::Bool(value) => Ok(*value),
            _ => Err(at.malformed("neither true nor false")),
        }
    }
}

/// Numbers stay below 2^63: what status stores, and what other languages read, has a sign.
impl Word for u64 {
    fn to_json(&self) -> Json {
        Json::Number((*self).into())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        let number = if let Json::Number(number) = json { number.as_u64() } else { None };
        let whole = number.filter(|number| i64::try_from(*number).is_ok());
        whole.ok_or_else(|| at.malformed("not a whole number from 0 to 9223372036854775807"))
    }
}

impl Word for u32 {
    fn to_json(&self) -> Json {
        u64::from(*self).to_json()
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        Self::try_from(u64::from_json(json, at)?).map_err(|_| at.malformed("above 4294967295"))
    }
}

impl Word for Millis {
    fn to_json(&self) -> Json {
        self.0.to_json()
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        u64::from_json(json, at).map(Self)
    }
}

impl Word for Boot {
    fn to_json(&self) -> Json {
        self.0.to_json()
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        u64::from_json(json, at).map(Self)
    }
}

impl Word for String {
    fn to_json(&self) -> Json {
        Json::Text(self.clone())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        text(json, at).map(Into::into)
    }
}

impl Word for GoText {
    fn to_json(&self) -> Json {
        Json::Text(duration::print(self.0))
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        let length = duration::parse(text(json, at)?);
        length.map(Self).ok_or_else(|| at.malformed("not a duration in whole milliseconds, e.g. 20s"))
    }
}

/// A name, so text, although it is a number: it counts nothing and may use all 64 bits.
impl Word for StartId {
    fn to_json(&self) -> Json {
        Json::Text(self.0.to_string())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        decimal(text(json, at)?).map(Self).ok_or_else(|| at.malformed("not the decimal text of a start of mysqld"))
    }
}

impl Word for Site {
    fn to_json(&self) -> Json {
        Json::Text(self.as_str().into())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        match text(json, at)? {
            "" => Err(at.malformed("an empty name")),
            name => Ok(Self::new(name)),
        }
    }
}

impl Word for Instance {
    fn to_json(&self) -> Json {
        Json::Text(self.to_string())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        Self::parse(text(json, at)?).ok_or_else(|| at.malformed("not <pod UID>/<store id>"))
    }
}

impl Word for Member {
    fn to_json(&self) -> Json {
        Writer::new().put("site", &self.site).put("instance", &self.instance).finish()
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        let fields = Fields::of(json, *at)?;
        Ok(Self { site: fields.required("site")?, instance: fields.required("instance")? })
    }
}

impl Word for GtidSet {
    fn to_json(&self) -> Json {
        Json::Text(self.compact().to_string())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        text(json, at)?.parse().map_err(|error: bloodraven_gtid::ParseError| at.malformed(error.to_string()))
    }
}

impl<T: Word> Word for Vec<T> {
    fn to_json(&self) -> Json {
        Json::List(self.iter().map(Word::to_json).collect())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        let Json::List(items) = json else { return Err(at.malformed("not a list")) };
        items.iter().enumerate().map(|(index, item)| T::from_json(item, &Place::Item(at, index))).collect()
    }
}

impl<T: Word> Word for BTreeMap<Site, T> {
    fn to_json(&self) -> Json {
        Json::Object(self.iter().map(|(site, value)| (site.to_string(), value.to_json())).collect())
    }

    fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
        let Json::Object(entries) = json else { return Err(at.malformed("not an object of sites")) };
        let entry = |(name, value): &(String, Json)| {
            let place = Place::Field(at, name);
            Ok((Site::from_json(&Json::Text(name.clone()), &place)?, T::from_json(value, &place)?))
        };
        entries.iter().map(entry).collect()
    }
}

/// Enums as words, from one table each.
macro_rules! words {
    ($name:ident: $($variant:ident)+) => {
        impl Word for $name {
            fn to_json(&self) -> Json {
                let word = match self {
                    $(Self::$variant => stringify!($variant),)+
                };
                Json::Text(word.into())
            }

            fn from_json(json: &Json, at: &Place<'_>) -> Result<Self, Error> {
                match text(json, at)? {
                    $(stringify!($variant) => Ok(Self::$variant),)+
                    _ => Err(at.malformed(concat!("none of", $(" ", stringify!($variant)),+))),
                }
            }
        }
    };
}

words!(Phase: Revoking Granting Stable);
words!(FencedBy: Boot Mismatch Lease Conflict Others);

fn text<'a>(json: &'a Json, at: &Place<'_>) -> Result<&'a str, Error> {
    match json {
        Json::Text(text) => Ok(text),
        _ => Err(at.malformed("not a text")),
    }
}

/// A number in the one way in which it is printed.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}
