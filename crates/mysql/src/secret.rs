//! A word that must not be seen, and the account it belongs to.
//!
//! In: text. Out: the text, to whoever asks for it by name. Must not: print it.

use std::fmt;
use std::sync::Arc;

/// A password. It has no `Display`, and its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps that text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Account {
    /// An account.
    pub fn new(user: impl Into<String>, password: impl Into<Arc<str>>) -> Self {
        Self { user: user.into(), password: Secret::new(password) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let account = Account::new("operator", "hunter2");
        assert_eq!(format!("{account:?}"), r#"Account { user: "operator", password: Secret(..) }"#);
        assert_eq!(account.password.reveal(), "hunter2");
    }
}
