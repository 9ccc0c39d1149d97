//! Every type as text for serde.
//!
//! In: strings. Out: strings; sets in the compact form. Must not: have a second grammar.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{Gtid, GtidSet, Tag, Uuid};

impl Serialize for GtidSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.compact())
    }
}

macro_rules! serialize_as_display {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

serialize_as_display!(Gtid, Tag, Uuid);

macro_rules! deserialize_from_str {
    ($($name:ident: $what:literal),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text { what: $what, value: PhantomData })
            }
        }
    )*};
}

deserialize_from_str!(GtidSet: "GTID set", Gtid: "GTID", Tag: "GTID tag", Uuid: "UUID");

/// Reads a string, borrowed or not, and parses it.
struct Text<T> {
    what: &'static str,
    value: PhantomData<T>,
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text of a {}", self.what)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error| E::custom(format_args!("malformed {}: {error}", self.what)))
    }
}
