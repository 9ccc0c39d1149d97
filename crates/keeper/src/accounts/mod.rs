//! The accounts: who there is, and what each may do.
//!
//! In: the credentials folder. Out: accounts whose names and passwords can be used. Must not: show a password, or
//! accept a name that belongs to the server or to the keeper.

mod sql;

use std::path::{Path, PathBuf};

pub(crate) use self::sql::{BOOT, OPENER, Root, init_file};

use crate::error::Error;

/// What an account is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Operator,
    App,
    ReadOnly,
    Monitor,
    Backup,
    Replication,
}

impl Role {
    const ALL: [Self; 6] = [Self::Operator, Self::App, Self::ReadOnly, Self::Monitor, Self::Backup, Self::Replication];

    /// The name of its folder.
    fn folder(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::App => "app",
            Self::ReadOnly => "readonly",
            Self::Monitor => "monitor",
            Self::Backup => "backup",
            Self::Replication => "replication",
        }
    }
}

/// An account to be.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) role: Role,
    pub(crate) user: String,
    pub(crate) password: String,
}

/// What the credentials folder holds.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) accounts: Vec<Account>,
    pub(crate) root: Option<String>,
}

/// The longest user name of the server.
const LONGEST_USER: usize = 32;

/// The server's limit for the line of an init file, with room for the words around a password.
const LONGEST_PASSWORD: usize = 1024;

impl Credentials {
    /// Reads `<role>/username` and `<role>/password` of every role that has a folder, and `root/password`.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let mut found = Self::default();
        for role in Role::ALL {
            let place = folder.join(role.folder());
            if !exists(&place)? {
                continue;
            }
            let account =
                Account { role, user: value(&place.join("username"))?, password: value(&place.join("password"))? };
            account.check(&place.join("username"), &found.accounts)?;
            found.accounts.push(account);
        }
        let root = folder.join("root/password");
        if exists(&root)? {
            found.root = Some(value(&root)?);
        }
        Ok(found)
    }
}

impl Account {
    fn check(&self, place: &Path, others: &[Self]) -> Result<(), Error> {
        let refuse = |why: String| Err(credentials(place, why));
        let user = self.user.as_str();
        if user == "root" || user == OPENER || user.starts_with("mysql.") {
            return refuse(format!("{user:?} belongs to the server; choose another user name"));
        }
        if user.chars().count() > LONGEST_USER {
            return refuse(format!("a user name has at most {LONGEST_USER} signs"));
        }
        match others.iter().find(|other| other.user == self.user) {
            Some(other) => refuse(format!("{user:?} is also the {} account; each has its own", other.role.folder())),
            None => Ok(()),
        }
    }
}

fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(Error::file("read", path))
}

/// The content of a file without the line end that editors leave.
fn value(path: &Path) -> Result<String, Error> {
    let text = std::fs::read(path).map_err(Error::file("read", path))?;
    let text = String::from_utf8(text).map_err(|_| credentials(path, "not UTF-8 text".into()))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err(credentials(path, "it is empty; write a value".into()));
    }
    if text.len() > LONGEST_PASSWORD {
        return Err(credentials(path, format!("it is longer than {LONGEST_PASSWORD} bytes")));
    }
    Ok(text.to_owned())
}

fn credentials(path: &Path, why: String) -> Error {
    Error::Credentials { path: PathBuf::from(path), why }
}

#[cfg(test)]
mod tests;
