//! Secrets that the operator makes: the group's signing key, and the account that a `dsn` hides.
//!
//! In: a plan, and the bytes, handed in. Out: the objects. Must not: make a key; whoever has randomness does.

use std::collections::BTreeMap;
use std::fmt;

use bloodraven_api::keys::Application;
use bloodraven_api::names;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::{Plan, metadata};

/// The length of a signing key.
pub const KEY_BYTES: usize = 32;

/// The keys of a group: everyone signs with the first and accepts both.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorityKeys {
    /// The key that signs.
    pub current: [u8; KEY_BYTES],
    /// The one before, where there was a change.
    pub previous: Option<[u8; KEY_BYTES]>,
}

impl fmt::Debug for AuthorityKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorityKeys").finish_non_exhaustive()
    }
}

/// The Secret with the group's keys.
pub fn authority(plan: &Plan<'_>, keys: &AuthorityKeys) -> Secret {
    let mut data = BTreeMap::from([("hmac.key".to_owned(), ByteString(keys.current.to_vec()))]);
    data.extend(keys.previous.map(|key| ("hmac.previous".to_owned(), ByteString(key.to_vec()))));
    secret(plan, names::authority(plan.name()), data)
}

/// The Secret with the operator's account as pods read it, for a group whose own Secret has it as a `dsn`.
pub fn operator_account(plan: &Plan<'_>, user: &str, password: &str) -> Secret {
    let rows = [("username", user), ("password", password)];
    let data = rows.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
    secret(plan, operator_account_name(plan.name()), data.into())
}

/// The name of that Secret.
pub(super) fn operator_account_name(group: &str) -> String {
    format!("mysql-{group}-operator")
}

fn secret(plan: &Plan<'_>, name: String, data: BTreeMap<String, ByteString>) -> Secret {
    Secret {
        metadata: metadata::owned(plan, Application::Mysql, name, None),
        type_: Some("Opaque".to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}
