//! Objects as JSON, without the record of who wrote which field.
//!
//! In: an answer of the API server. Out: the object, but for `managedFields`. Must not: build them first; they are half of an
//! object's text and most of its tree, and nobody here asks for them.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// See above.
pub(crate) struct Lean(pub(crate) Value);

const NOBODY_ASKS: &str = "managedFields";

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if key == NOBODY_ASKS {
                fields.next_value::<IgnoredAny>()?;
            } else {
                object.insert(key, fields.next_value::<Lean>()?.0);
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Lean(element)) = elements.next_element()? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bool<E: Error>(self, is_so: bool) -> Result<Value, E> {
        Ok(is_so.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_but_the_writers_is_read_word_for_word() {
        let mut object = json!({"kind": "Service", "metadata": {"name": "a", "resourceVersion": "7", "labels": {}},
            "spec": {"ports": [{"port": 1}, {"port": -2}], "share": 0.5, "most": u64::MAX, "off": false, "none": null,
                "text": "a \"word\" \u{e9}\n"}, "list": [[], [1]]});
        let wanted = object.clone();
        object["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": {"f:spec": {}}}]);
        let Lean(read) = serde_json::from_str(&object.to_string()).expect("JSON");
        assert_eq!(read, wanted);
        assert!(serde_json::from_str::<Lean>("{\"a\": ").is_err());
    }
}
