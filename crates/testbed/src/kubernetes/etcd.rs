//! Etcd: the store behind an API server, from Debian's package, kept in the cache.
//!
//! In: the machine's own Debian source. Out: a command that runs one etcd on loopback. Must not: install anything, or
//! let it be reached from outside this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use snafu::{OptionExt as _, Snafu, ensure};

use crate::{cache, debian};

/// The kind of the cache entry.
pub(super) const KIND: &str = "etcd";

/// Where etcd comes from: the suite has 3.5, which Kubernetes 1.34 supports.
const PACKAGE: &str = "etcd-server";
const SUITE: &str = "sid";

/// The name of the only member.
const MEMBER: &str = "testbed";

/// What went wrong with getting etcd.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The cache failed, or the unpacking that was to fill it.
    #[snafu(transparent)]
    Cache {
        /// Why.
        source: cache::Error,
    },

    /// The packages cannot be had.
    #[snafu(transparent)]
    Packages {
        /// Why.
        source: debian::Error,
    },

    /// What came out of the packages is not what is expected.
    #[snafu(display("the etcd package has no {}: remove that folder of the cache and try again", path.display()))]
    Incomplete {
        /// What is missing.
        path: PathBuf,
    },
}

/// An unpacked etcd.
#[derive(Debug, Clone)]
pub struct Etcd {
    root: PathBuf,
}

/// The two addresses of an etcd, both on loopback.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    /// Where the API server calls.
    pub(crate) client: u16,
    /// Where other members would call.
    pub(crate) peer: u16,
}

impl Ports {
    pub(crate) fn client_url(self) -> String {
        format!("http://127.0.0.1:{}", self.client)
    }

    fn peer_url(self) -> String {
        format!("http://127.0.0.1:{}", self.peer)
    }
}

impl Etcd {
    /// An etcd that has been unpacked into a folder.
    pub(super) fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The etcd in the cache, fetched when it is not there.
    pub fn provision() -> Result<Self, Error> {
        // The suite moves on; what was fetched from it stays until the entry is removed.
        let key = format!("debian-{SUITE}-{}", std::env::consts::ARCH);
        let root = cache::entry(KIND, &key, |folder| {
            debian::unpack(&[PACKAGE], SUITE, folder)?;
            // A package without the program is no entry.
            Self::at(folder).program().map(drop)
        })?;
        Ok(Self::at(root))
    }

    /// One etcd on loopback with its data in a folder of its own.
    pub(crate) fn command(&self, data: &Path, ports: Ports) -> Result<Command, Error> {
        let (loader, libraries) = self.loader()?;
        // The suite's C library is newer than the machine's, so the program runs with the loader it came with.
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(libraries).arg(self.program()?).args(flags(data, ports));
        Ok(command)
    }

    fn program(&self) -> Result<PathBuf, Error> {
        let program = self.root.join("usr/bin/etcd");
        ensure!(program.is_file(), IncompleteSnafu { path: program });
        Ok(program)
    }

    /// The loader that was unpacked with the program, and the folder of its libraries, which carries the name of the
    /// machine's architecture. Bounded by the names in `usr/lib`.
    fn loader(&self) -> Result<(PathBuf, PathBuf), Error> {
        let path = self.root.join("usr/lib");
        let is_loader =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"));
        let libraries = path.read_dir().into_iter().flatten().flatten().map(|found| found.path());
        libraries
            .filter(|folder| folder.to_string_lossy().contains("-linux-gnu"))
            .find_map(|folder| {
                let mut names = folder.read_dir().ok()?.flatten().map(|found| found.path());
                Some((names.find(is_loader)?, folder))
            })
            .context(IncompleteSnafu { path })
    }
}

fn flags(data: &Path, ports: Ports) -> Vec<String> {
    vec![
        format!("--name={MEMBER}"),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={}", ports.client_url()),
        format!("--advertise-client-urls={}", ports.client_url()),
        format!("--listen-peer-urls={}", ports.peer_url()),
        format!("--initial-advertise-peer-urls={}", ports.peer_url()),
        format!("--initial-cluster={MEMBER}={}", ports.peer_url()),
        // A test's data need not survive the machine; this is most of the time a write takes.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    const PORTS: Ports = Ports { client: 1, peer: 2 };

    fn unpacked(files: &[&str]) -> (Folder, Etcd) {
        let folder = Folder::new();
        for file in files.iter().map(|file| folder.path().join(file)) {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, b"").unwrap();
        }
        let etcd = Etcd::at(folder.path());
        (folder, etcd)
    }

    #[test]
    fn the_program_runs_with_the_loader_and_libraries_it_came_with() {
        let check = |triplet: &str, loader: &str| {
            let loader = format!("usr/lib/{triplet}/{loader}");
            let (folder, etcd) = unpacked(&["usr/bin/etcd", "usr/lib/tmpfiles.d/etcd.conf", &loader]);
            let command = etcd.command(Path::new("/data"), PORTS).unwrap();
            assert_eq!(command.get_program(), folder.path().join(&loader));
            let arguments: Vec<_> = command.get_args().take(3).map(PathBuf::from).collect();
            let libraries = folder.path().join("usr/lib").join(triplet);
            assert_eq!(arguments, ["--library-path".into(), libraries, folder.path().join("usr/bin/etcd")]);
        };
        check("x86_64-linux-gnu", "ld-linux-x86-64.so.2");
        check("aarch64-linux-gnu", "ld-linux-aarch64.so.1");
    }

    #[test]
    fn an_unpacked_folder_without_the_program_or_its_loader_is_told() {
        let check = |files: &[&str], missing: &str| {
            let (_folder, etcd) = unpacked(files);
            let error = etcd.command(Path::new("/data"), PORTS).unwrap_err().to_string();
            assert!(error.contains(missing), "{files:?}: {error}");
        };
        check(&["usr/bin/etcd"], "usr/lib");
        check(&["usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"], "usr/bin/etcd");
        check(&[], "usr/lib");
    }

    #[test]
    fn it_listens_on_loopback_alone() {
        let flags = flags(Path::new("/data"), PORTS);
        assert!(flags.contains(&"--listen-client-urls=http://127.0.0.1:1".into()), "{flags:?}");
        assert!(flags.contains(&"--listen-peer-urls=http://127.0.0.1:2".into()), "{flags:?}");
        assert!(flags.iter().all(|flag| !flag.contains("://") || flag.contains("://127.0.0.1:")), "{flags:?}");
    }
}
