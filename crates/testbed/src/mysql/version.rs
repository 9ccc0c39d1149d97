//! Versions of MySQL servers.
//!
//! In: what `mysqld --version` prints. Out: its version, or that it is something else. Must not: take a server that
//! only shares the name and has higher numbers for a newer MySQL.

use std::fmt;

/// A server's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 9 in 9.7.4.
    pub major: u16,
    /// 7 in 9.7.4.
    pub minor: u16,
    /// 4 in 9.7.4.
    pub patch: u16,
}

impl Version {
    /// The oldest version that the tests are written for.
    pub const OLDEST: Self = Self { major: 8, minor: 4, patch: 0 };

    /// Reads the answer to `mysqld --version`, such as `mysqld  Ver 9.7.4-1 for Linux on x86_64`.
    pub fn from_answer(answer: &str) -> Option<Self> {
        if answer.contains("MariaDB") || !answer.contains("mysqld") {
            return None;
        }
        answer.split_once("Ver ").and_then(|(_, rest)| rest.split_whitespace().next()).and_then(Self::parse)
    }

    /// Reads three numbers with dots, whatever follows them.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut parts = numbers.split('.').map(str::parse);
        let mut next = || parts.next()?.ok();
        Some(Self { major: next()?, minor: next()?, patch: next()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_server_gives_its_version_and_anything_else_none() {
        let check = |answer: &str, expect: Option<&str>| {
            assert_eq!(Version::from_answer(answer).map(|it| it.to_string()).as_deref(), expect, "{answer}");
        };
        check("/usr/sbin/mysqld  Ver 9.7.4-1 for debian-linux-gnu on x86_64 ((Debian))\n", Some("9.7.4"));
        check("mysqld  Ver 8.4.0 for Linux on aarch64 (MySQL Community Server - GPL)", Some("8.4.0"));
        check("mysqld  Ver 8.0.36-28.1 for Linux on x86_64 (Percona Server (GPL))", Some("8.0.36"));
        check("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", None);
        check("mysql  Ver 9.7.4 for Linux on x86_64", None);
        check("mysqld  Ver nine", None);
        check("mysqld  Ver 9.7", None);
        check("mysqld  Ver 99999.0.0", None);
        check("hello", None);
        check("", None);
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("8.4.0") >= Version::OLDEST && version("9.0.1") > Version::OLDEST);
        assert!(version("8.0.44") < Version::OLDEST && version("10.0.0") > version("9.7.4"));
    }
}
