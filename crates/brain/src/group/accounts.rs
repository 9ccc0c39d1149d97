//! Accounts and their passwords, as far as the brain may know of them.
//!
//! In: what hands found out by logging in. Out: which account, and whether it is let in. Must not: hold a password, or
//! anything that is made of one.

use crate::time::Millis;
use std::collections::{BTreeMap, BTreeSet};

/// Which passwords the Secrets hold. Only equality means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialsVersion(pub u64);

/// What is known of the Secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// Which they are.
    pub version: CredentialsVersion,
    /// So long after a change somebody who uses them may still have the ones before: files beside a server come late.
    pub spread: Millis,
}

/// What an account is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccountRole {
    /// Operator and sidecars.
    Operator,
    /// Replicas at their source, recipients at their donor.
    Replication,
    /// Applications.
    App,
    /// Readers.
    ReadOnly,
    /// Whoever watches.
    Monitor,
    /// Whoever backs up.
    Backup,
}

/// How a server answers logins with the passwords of one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Logins {
    /// Accounts that it does not let in, with the server's error number; all others it does.
    pub refused: BTreeMap<AccountRole, u16>,
    /// Accounts that it lets in with an older password, too.
    pub second: BTreeSet<AccountRole>,
    /// What it logs in with itself.
    pub channel: Channel,
}

/// The account that a replica's channel logs in with at its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Channel {
    /// There is no channel, or no account for one.
    #[default]
    None,
    /// That of this version.
    Current,
    /// Another one, or with another password.
    Outdated,
}

/// `ER_CANNOT_USER`: there is no such account.
pub const NO_SUCH_ACCOUNT: u16 = 1396;

/// `ER_NOT_VALID_PASSWORD`: the server's rules for passwords refuse it.
pub const AGAINST_THE_RULES: u16 = 1819;

impl AccountRole {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Operator, Self::Replication, Self::App, Self::ReadOnly, Self::Monitor, Self::Backup];

    /// Its name, as credentials folders have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Replication => "replication",
            Self::App => "app",
            Self::ReadOnly => "readonly",
            Self::Monitor => "monitor",
            Self::Backup => "backup",
        }
    }
}

impl Logins {
    /// Every account is let in, and the channel is up to date.
    pub fn are_fine(&self) -> bool {
        self.refused.is_empty() && self.channel != Channel::Outdated
    }
}

impl std::fmt::Display for AccountRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
