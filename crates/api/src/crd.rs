//! The CRDs as text.
//!
//! In: nothing. Out: YAML that `kubectl apply` takes, the same bytes every time. Must not: be edited by hand where it is
//! stored.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Number, Value};

use crate::admission::{Admitted, Definition};
use crate::{MysqlBackup, MysqlBackupVerification, MysqlFailoverGroup};

/// First line of every generated file.
pub const HEADER: &str = "# Generated from crates/api; do not edit. `cargo xtask codegen` writes it anew.\n";

/// Every CRD with the name of the file that it is stored in.
pub fn each() -> Vec<(String, String)> {
    let file = |crd: Value| (file_name(&crd), format!("{HEADER}{}", yaml(&crd)));
    definitions().map(|definition| file(definition.crd())).into()
}

/// Every CRD, as one stream of documents.
pub fn all_yaml() -> String {
    definitions().map(|definition| yaml(&definition.crd())).join("---\n")
}

fn definitions() -> [&'static Definition; 3] {
    [MysqlFailoverGroup::definition(), MysqlBackup::definition(), MysqlBackupVerification::definition()]
}

fn file_name(crd: &Value) -> String {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    format!("{name}.yaml")
}

/// One document, with sorted keys.
pub fn yaml(object: &Value) -> String {
    // Strings, numbers, lists and maps cannot fail to be printed.
    serde_saphyr::to_string(&Node::from(object)).unwrap_or_default()
}

/// JSON with sorted keys, whatever features other crates switch on in `serde_json`.
#[derive(Serialize)]
#[serde(untagged)]
enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(yes) => Self::Bool(*yes),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(entries) => Self::List(entries.iter().map(Self::from).collect()),
            Value::Object(fields) => Self::Map(fields.iter().map(|(k, v)| (k.clone(), Self::from(v))).collect()),
        }
    }
}
