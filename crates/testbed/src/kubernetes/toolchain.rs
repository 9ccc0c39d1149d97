//! The machine's Go: found, checked, and never changed.
//!
//! In: `go` on the path. Out: its version and platform, and commands set up so that only what is pinned is built.
//! Must not: fetch another toolchain, write into the user's Go settings, or choose a module proxy (the user's own
//! settings say which one).

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use snafu::{OptionExt as _, ResultExt as _, Snafu, ensure};

/// What is wrong with the machine's Go.
#[derive(Debug, Snafu)]
pub enum Error {
    /// There is none.
    #[snafu(display("go was not found on PATH ({source}): install Go {needed} or newer to build Kubernetes"))]
    Missing {
        /// The oldest version that would do.
        needed: Release,
        /// What the system said.
        source: io::Error,
    },

    /// It does not answer `go env` as every Go does.
    #[snafu(display("`go env` gave {answer:?}: repair the Go installation, or install Go {needed} or newer"))]
    Unusable {
        /// What it said, both streams, one line.
        answer: String,
        /// The oldest version that would do.
        needed: Release,
    },

    /// It is older than the pinned Kubernetes needs.
    #[snafu(display("go is {found}, too old to build Kubernetes: install Go {needed} or newer"))]
    Old {
        /// The version found, as Go says it.
        found: String,
        /// The oldest version that would do.
        needed: Release,
    },
}

/// A release of the language: `1.24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u32,
    minor: u32,
}

impl std::fmt::Display for Release {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

impl Release {
    /// Reads `1.24`, `1.24.0` or `1.25rc1`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?;
        let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        Some(Self { major, minor: minor.get(..digits)?.parse().ok()? })
    }

    /// The release that a `go.mod` asks for in its `go` line.
    pub(super) fn wanted_by(go_mod: &str) -> Option<Self> {
        go_mod.lines().find_map(|line| line.strip_prefix("go ")).and_then(|version| Self::parse(version.trim()))
    }
}

/// A Go that is new enough.
#[derive(Debug, Clone)]
pub(super) struct Toolchain {
    /// As Go says it: `go1.26.8`.
    pub(super) version: String,
    /// What it builds for by itself: `linux-amd64`.
    pub(super) platform: String,
}

impl Toolchain {
    /// Asks the machine's Go what it is.
    pub(super) fn find(needed: Release) -> Result<Self, Error> {
        let answer = command(Path::new("/"))
            .args(["env", "GOVERSION", "GOOS", "GOARCH"])
            .output()
            .context(MissingSnafu { needed })?;
        let said = String::from_utf8_lossy(&answer.stdout);
        let complained = String::from_utf8_lossy(&answer.stderr);
        let one_line = format!("{said}{complained}").trim().replace('\n', " ");
        let unusable = || UnusableSnafu { answer: one_line.clone(), needed };
        ensure!(answer.status.success(), unusable());
        Self::check(&said, needed).with_context(unusable)?
    }

    /// Reads the answer of `go env`; nothing when it is no such answer.
    fn check(said: &str, needed: Release) -> Option<Result<Self, Error>> {
        let mut lines = said.lines();
        let (version, system, machine) = (lines.next()?, lines.next()?, lines.next()?);
        let release = Release::parse(version.strip_prefix("go")?)?;
        if release < needed {
            return Some(OldSnafu { found: version, needed }.fail());
        }
        // A vendor's suffix such as "go1.26.8 X:boringcrypto" is no part of a folder's name.
        let version = version.split_whitespace().next()?.to_owned();
        Some(Ok(Self { version, platform: format!("{system}-{machine}") }))
    }
}

/// `go`, in a folder, with the user's own settings but for what would build something other than what is pinned.
pub(super) fn command(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: Release = Release { major: 1, minor: 24 };

    #[test]
    fn releases_are_read_as_go_writes_them() {
        fn check(text: &str, expect: Option<(u32, u32)>) {
            let expect = expect.map(|(major, minor)| Release { major, minor });
            assert_eq!(Release::parse(text), expect, "{text:?}");
        }
        check("1.24", Some((1, 24)));
        check("1.24.0", Some((1, 24)));
        check("1.26.8", Some((1, 26)));
        check("1.25rc1", Some((1, 25)));
        check("1.9", Some((1, 9)));
        check("", None);
        check("1", None);
        check("1.x", None);
        check("devel +abc", None);
    }

    #[test]
    fn a_go_that_is_too_old_or_no_go_is_refused_and_a_newer_one_taken() {
        fn check(said: &str, expect: Result<&str, &str>) {
            let found = match Toolchain::check(said, NEEDED) {
                Some(Ok(go)) => Ok(format!("{} {}", go.version, go.platform)),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("unusable".to_owned()),
            };
            assert_eq!(found.as_deref().map_err(String::as_str), expect, "{said:?}");
        }
        check("go1.24.0\nlinux\namd64\n", Ok("go1.24.0 linux-amd64"));
        check("go1.100.1\nlinux\narm64\n", Ok("go1.100.1 linux-arm64"));
        check("go1.26.8 X:boringcrypto\nlinux\namd64\n", Ok("go1.26.8 linux-amd64"));
        check(
            "go1.19.8\nlinux\namd64\n\n",
            Err("go is go1.19.8, too old to build Kubernetes: install Go 1.24 or newer"),
        );
        check("go1.9.1\nlinux\namd64\n", Err("go is go1.9.1, too old to build Kubernetes: install Go 1.24 or newer"));
        check("\nlinux\namd64\n", Err("unusable"));
        check("", Err("unusable"));
    }

    #[test]
    fn the_wanted_release_is_the_go_line_of_the_module() {
        assert_eq!(Release::wanted_by("// go 9.9\nmodule x\n\ngo 1.24.0\n"), Some(NEEDED));
        assert_eq!(Release::wanted_by("module x\n"), None);
    }
}
