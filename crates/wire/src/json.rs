//! JSON as bodies use it: objects in a fixed order, no field given twice.
//!
//! In: text. Out: a tree, and text again, always the same for the same tree. Must not: keep one of two values of a field,
//! quote at length, or depend on how a parser of someone else orders fields.

use crate::error::{Error, beginning};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads the text of a body. The parser bounds the depth; the caller has bounded the length.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| Error::malformed("body", error.to_string()))
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write_text(f, text),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    write_text(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "{}", serde_json::Value::from(text))
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let (mut fields, mut seen) = (Vec::new(), BTreeSet::new());
        while let Some((name, value)) = access.next_entry::<String, Json>()? {
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format_args!("{:?} is given twice", beginning(&name))));
            }
            fields.push((name, value));
        }
        Ok(Json::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_the_tree_in_its_order() {
        for text in
            ["null", "true", "[]", "{}", "[1,-2,1.5,\"a\"]", r#"{"b":1,"a":{"z":[],"y":null}}"#, r#""\"\\\n\u0001é""#]
        {
            assert_eq!(Json::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn a_field_given_twice_is_refused_at_any_depth() {
        check_refused(r#"{"a":1,"a":1}"#, "\"a\" is given twice");
        check_refused(r#"{"a":1,"\u0061":2}"#, "\"a\" is given twice");
        check_refused(r#"[{"b":{"a":1,"c":2,"a":1}}]"#, "\"a\" is given twice");
        let long = "x".repeat(100);
        check_refused(&format!(r#"{{"{long}":1,"{long}":1}}"#), &format!("\"{}\" is given twice", "x".repeat(32)));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", " ", "{", "{}{}", "[1,]", "nul", "01", "\"\t\"", "1e999", "\u{feff}{}"] {
            check_refused(text, "line 1");
        }
        check_refused(&"[".repeat(100_000), "recursion limit");
    }

    fn check_refused(text: &str, expect: &str) {
        match Json::parse(text) {
            Err(Error::Malformed { field, problem }) => {
                assert_eq!(field, "body");
                assert!(problem.contains(expect), "{problem}");
            }
            other => panic!("{text:.100}: {other:?}"),
        }
    }
}
