//! The tools of a node: container runtime, network plugins and what they call, from Debian's packages.
//!
//! In: the machine's own Debian source. Out: a folder in the cache that becomes the `/usr` of every node, and commands
//! that run its programs outside of one. Must not: install anything: a node sees that folder in a mount namespace of its
//! own, and everybody else runs its programs with the loader that came with them.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use snafu::{ResultExt as _, ensure};

use super::error::{Error, FileSnafu, ProgramSnafu, part};
use crate::{cache, debian};

/// The kind of the cache entry.
pub(super) const KIND: &str = "cluster-tools";

/// The release whose versions the configuration of the nodes is written for (containerd 1.6, runc 1.1).
const SUITE: &str = "bookworm";

const PACKAGES: [&str; 10] = [
    "containerd",
    "runc",
    "containernetworking-plugins",
    "iptables",
    "conntrack",
    "iproute2",
    "kmod",
    "mount",
    "busybox-static",
    "bash",
];

/// Folders of the packages that no program needs.
const UNUSED: [&str; 5] = ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/bash-completion", "var"];

/// What the release keeps outside `usr` and looks for in both places.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// Names that Debian gives to programs after unpacking. The nftables variant is the one that current kernels have.
const ALTERNATIVES: [(&str, &str); 6] = [
    ("iptables", "xtables-nft-multi"),
    ("iptables-save", "xtables-nft-multi"),
    ("iptables-restore", "xtables-nft-multi"),
    ("ip6tables", "xtables-nft-multi"),
    ("ip6tables-save", "xtables-nft-multi"),
    ("ip6tables-restore", "xtables-nft-multi"),
];

/// Without one of these a node does not come up.
const NEEDED: [&str; 8] = [
    "usr/bin/containerd",
    "usr/bin/containerd-shim-runc-v2",
    "usr/bin/ctr",
    "usr/sbin/runc",
    "usr/sbin/ip",
    "usr/sbin/iptables",
    "usr/lib/cni/ptp",
    "usr/bin/busybox",
];

/// The unpacked tools.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    root: PathBuf,
}

impl Tools {
    /// The tools in the cache, fetched when they are not there.
    pub(super) fn provision() -> Result<Self, Error> {
        let key = format!("debian-{SUITE}-{}-1", std::env::consts::ARCH);
        let root = cache::entry(KIND, &key, fill).map_err(part("the tools of a node"))?;
        Ok(Self { root })
    }

    /// Tools that nobody unpacked, for tests that run none.
    #[cfg(test)]
    pub(super) fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// What becomes `/usr` in a node.
    pub(super) fn usr(&self) -> PathBuf {
        self.root.join("usr")
    }

    /// A static shell with the common commands.
    pub(super) fn busybox(&self) -> PathBuf {
        self.root.join("usr/bin/busybox")
    }

    /// `ip`, outside a node.
    pub(super) fn ip(&self) -> Command {
        self.command("usr/sbin/ip")
    }

    /// `iptables`, outside a node.
    pub(super) fn iptables(&self) -> Command {
        let mut command = self.command("usr/sbin/xtables-nft-multi");
        command.arg("iptables").env("XTABLES_LIBDIR", self.libraries().join("xtables"));
        command
    }

    /// The program may be older or newer than the machine: it runs with its own loader and libraries.
    fn command(&self, program: &str) -> Command {
        let libraries = self.libraries();
        let loader = libraries.read_dir().into_iter().flatten().flatten().map(|found| found.path());
        let is_loader =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"));
        // Without a loader the start fails, and names this path.
        let loader = loader.into_iter().find(is_loader).unwrap_or_else(|| libraries.join("ld-linux"));
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(libraries).arg(self.root.join(program));
        command
    }

    fn libraries(&self) -> PathBuf {
        self.root.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH))
    }
}

/// Fills the cache entry.
fn fill(folder: &Path) -> Result<(), Error> {
    let packages = debian::unpack(&PACKAGES, SUITE, folder).map_err(part("Debian packages"))?;
    let outcome = || -> io::Result<()> {
        for path in UNUSED.map(|name| folder.join(name)) {
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        for name in MERGED {
            merge(&folder.join(name), &folder.join("usr").join(name))?;
        }
        for (name, target) in ALTERNATIVES {
            let path = folder.join("usr/sbin").join(name);
            if path.symlink_metadata().is_err() {
                symlink(target, path)?;
            }
        }
        std::fs::write(folder.join("packages"), packages.join("\n") + "\n")
    };
    outcome().context(FileSnafu { what: "arrange the packages in", path: folder })?;
    let missing = NEEDED.iter().find(|name| !folder.join(name).exists());
    ensure!(
        missing.is_none(),
        ProgramSnafu {
            what: "unpacking the tools of a node",
            said: format!("no {} came out of the packages", missing.unwrap_or(&""))
        }
    );
    Ok(())
}

/// Moves what is below one folder into another, as Debian's own merge of `/bin` and `/usr/bin` does. Bounded by the tree.
fn merge(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(names) = from.read_dir() else { return Ok(()) };
    std::fs::create_dir_all(to)?;
    for found in names {
        let found = found?;
        let (source, target) = (found.path(), to.join(found.file_name()));
        if found.file_type()?.is_dir() {
            merge(&source, &target)?;
        } else if target.symlink_metadata().is_err() {
            std::fs::rename(&source, &target)?;
        }
    }
    std::fs::remove_dir_all(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn what_lies_outside_usr_is_moved_into_it_and_what_is_there_stays() {
        let folder = Folder::new();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [("lib/a/one", "1"), ("lib/a/two", "2"), ("usr/lib/a/two", "two"), ("lib/three", "3")] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        }
        symlink("a/one", at("lib/link")).unwrap();
        merge(&at("lib"), &at("usr/lib")).unwrap();
        assert!(!at("lib").exists());
        let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        assert_eq!(
            (read("usr/lib/a/one"), read("usr/lib/a/two"), read("usr/lib/three")),
            ("1".into(), "two".into(), "3".into())
        );
        assert_eq!(read("usr/lib/link"), "1");
        merge(&at("absent"), &at("usr/absent")).unwrap();
        assert!(!at("usr/absent").exists());
    }
}
