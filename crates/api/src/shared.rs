//! Small shapes that several kinds share: references by name, and what a field falls back to.
//!
//! In: nothing. Out: types. Must not: know which kind uses them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object of the same namespace, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameRef {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// One key of a Secret of the same namespace that holds a passphrase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassphraseSecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key inside the Secret.
    #[serde(default = "passphrase_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Class and size of a volume that is made on demand; what is left out is chosen at run time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRequest {
    /// Storage class; left out: the class of the source site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
    /// Size, at least 1Gi; left out: computed from the size of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub size: Option<String>,
}

fn passphrase_key() -> String {
    "passphrase".to_owned()
}

pub(crate) const fn yes() -> bool {
    true
}

pub(crate) fn utc() -> String {
    "Etc/UTC".to_owned()
}
