//! Debian packages, without touching the system: a private apt that shares only the machine's archive and keyring.
//!
//! In: package names, a suite and an empty folder. Out: the packages and everything they need, unpacked there, not
//! installed. Must not: change the system's package state, run a package's scripts, or know a host name: where packages
//! come from is read from the machine's own configuration.

mod apt;
mod sources;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use snafu::{OptionExt as _, ResultExt as _, Snafu};

use self::apt::PrivateApt;
use self::sources::Archive;
use crate::progress::Progress;
use crate::{cache, environment, lock, process};

/// Where the private apt works, below the root of the cache.
const FOLDER: &str = "apt";

/// How long one package may take to unpack: the largest (the MySQL server) took 2 s.
const UNPACK_LIMIT: Duration = Duration::from_mins(2);

/// What went wrong with fetching packages.
#[derive(Debug, Snafu)]
pub enum Error {
    /// This is no machine that can fetch Debian packages.
    #[snafu(display("cannot fetch Debian packages on this machine: no {program} on PATH"))]
    NoApt {
        /// The program that is missing.
        program: &'static str,
    },

    /// The machine's own configuration cannot be read.
    #[snafu(display("cannot read {}: {source}", path.display()))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The machine's own configuration names no Debian archive.
    #[snafu(display(
        "no Debian archive for {wanted} in /etc/apt/sources.list or /etc/apt/sources.list.d: \
         add the entry that Debian's installer writes"
    ))]
    NoArchive {
        /// The suite that was looked for.
        wanted: String,
    },

    /// The private apt's own folder cannot be prepared.
    #[snafu(display("cannot prepare or remove {} for apt: {source}", path.display()))]
    Prepare {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Another process uses the private apt.
    #[snafu(transparent)]
    Lock {
        /// Why the lock cannot be had.
        source: lock::Error,
    },

    /// The package lists cannot be fetched.
    #[snafu(display(
        "cannot fetch the package lists of Debian {suite}: {complaint}; \
         the archive is the one that the machine's own apt uses: see that `apt-get update` works, then try again"
    ))]
    Update {
        /// The suite.
        suite: String,
        /// What apt said.
        complaint: String,
    },

    /// The packages cannot be fetched.
    #[snafu(display("cannot fetch {packages} from Debian {suite}: {complaint}; what has arrived is kept: try again"))]
    Download {
        /// The packages.
        packages: String,
        /// The suite.
        suite: String,
        /// What apt said.
        complaint: String,
    },

    /// A fetched package cannot be unpacked.
    #[snafu(display(
        "cannot unpack {package}: {source}; the fetched packages were removed: try again to fetch them anew"
    ))]
    Unpack {
        /// The package file.
        package: String,
        /// What `dpkg-deb` said.
        source: process::Error,
    },
}

/// Unpacks the packages and all they depend on into a folder, and tells the names of the package files
/// (`<name>_<version>_<architecture>.deb`).
///
/// The suite may be newer than the machine: run what comes out with the loader and libraries that come with it.
pub fn unpack(packages: &[&str], suite: &str, into: &Path) -> Result<Vec<String>, Error> {
    for program in ["apt-get", "dpkg-deb"] {
        environment::find_program(program).context(NoAptSnafu { program })?;
    }
    let archive = Archive::of_this_machine()?;
    let apt = PrivateApt::prepare(&cache::root().join(FOLDER), suite, &archive)?;
    let names = packages.join(", ");

    let step = Progress::start(format!("fetching the package lists of Debian {suite}"));
    apt.update()?;
    step.done();

    let step = Progress::start(format!("fetching {names} and what they need"));
    let files = apt.download(packages)?;
    step.done();

    let step = Progress::start(format!("unpacking {} packages", files.len()));
    let unpacked: Result<Vec<String>, Error> =
        files.iter().map(|file| extract(file, into, &apt.log("unpack"))).collect();
    // Either they are unpacked now or one of them is broken: in both cases nobody needs them any more.
    apt.forget(packages);
    let unpacked = unpacked?;
    step.done();
    Ok(unpacked)
}

/// Removes what the private apt keeps between two fetches, such as package lists, unless another process is fetching.
pub fn forget(cache_root: &Path) -> Result<(), Error> {
    let parent = cache_root.join(FOLDER);
    for folder in parent.read_dir().into_iter().flatten().flatten().map(|found| found.path()) {
        let lock = folder.join("lock");
        let held = lock.is_file().then(|| lock::exclusive(&lock, "fetching Debian packages")).transpose()?;
        std::fs::remove_dir_all(&folder).context(PrepareSnafu { path: folder })?;
        drop(held);
    }
    Ok(())
}

/// Unpacks one package and gives its file's name.
fn extract(file: &Path, into: &Path, log: &Path) -> Result<String, Error> {
    let package = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut command = Command::new("dpkg-deb");
    command.arg("-x").arg(file).arg(into);
    process::run(command, "dpkg-deb", log, UNPACK_LIMIT).context(UnpackSnafu { package: &package })?;
    Ok(package)
}
