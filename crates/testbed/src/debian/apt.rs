//! The private apt: own lists, own cache, own state, one process at a time.
//!
//! In: a folder, a suite and an archive. Out: package files. Must not: read the system's package state or write to it,
//! run the hooks of the system's apt, or wait for a silent server for ever.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use snafu::ResultExt as _;

use super::sources::Archive;
use super::{DownloadSnafu, Error, PrepareSnafu, ReadSnafu, UpdateSnafu};
use crate::{lock, process};

/// How long the lists may take: 5 s here, on a slow line a minute.
const UPDATE_LIMIT: Duration = Duration::from_mins(10);

/// How long the packages may take: 75 MB are 20 s here, on a slow line some minutes.
const DOWNLOAD_LIMIT: Duration = Duration::from_mins(30);

/// A folder in which apt works for us, locked for this process.
pub(super) struct PrivateApt {
    folder: PathBuf,
    suite: String,
    _lock: File,
}

impl PrivateApt {
    /// Makes the folders and writes the configuration, which may have changed since the last time.
    pub(super) fn prepare(parent: &Path, suite: &str, archive: &Archive) -> Result<Self, Error> {
        let folder = parent.join(suite);
        for path in ["state/lists/partial", "cache", "log", "etc"].map(|name| folder.join(name)) {
            std::fs::create_dir_all(&path).context(PrepareSnafu { path })?;
        }
        let lock = lock::exclusive(&folder.join("lock"), "fetching Debian packages")?;
        let apt = Self { folder, suite: suite.to_owned(), _lock: lock };
        let key = apt.folder.join("etc/archive-key.asc");
        apt.write("etc/archive-key.asc", archive.embedded_key().unwrap_or_default())?;
        apt.write("etc/sources.list", &archive.source_line(suite, &key))?;
        apt.write("etc/apt.conf", &configuration(&apt.folder))?;
        // Nothing is installed here: apt has to fetch everything the packages depend on.
        apt.write("state/status", "")?;
        Ok(apt)
    }

    /// Fetches the lists.
    pub(super) fn update(&self) -> Result<(), Error> {
        let log = self.fresh_log("update");
        let outcome = process::run(self.command(&["update"]), "apt-get update", &log, UPDATE_LIMIT);
        outcome.or_else(|error| UpdateSnafu { suite: &self.suite, complaint: complaint(&log, &error) }.fail())
    }

    /// Fetches the packages and what they depend on; gives the files, in the order of their names.
    pub(super) fn download(&self, packages: &[&str]) -> Result<Vec<PathBuf>, Error> {
        let archives = self.archives(packages);
        let partial = archives.join("partial");
        std::fs::create_dir_all(&partial).context(PrepareSnafu { path: partial })?;
        let log = self.fresh_log("download");
        let setting = format!("Dir::Cache::archives={}", archives.display());
        // An earlier attempt may have left files of versions that are gone by now.
        let tidy = self.command(&["autoclean", "--yes", "--option", &setting]);
        let mut fetch = self.command(&["install", "--yes", "--download-only", "--option", &setting]);
        fetch.args(packages);
        process::run(tidy, "apt-get autoclean", &log, UPDATE_LIMIT)
            .and_then(|()| process::run(fetch, "apt-get install", &log, DOWNLOAD_LIMIT))
            .or_else(|error| {
                let complaint = complaint(&log, &error);
                DownloadSnafu { packages: packages.join(", "), suite: &self.suite, complaint }.fail()
            })?;
        package_files(&archives)
    }

    /// Removes the package files of a request.
    pub(super) fn forget(&self, packages: &[&str]) {
        // What stays behind costs space, nothing else.
        let _ = std::fs::remove_dir_all(self.archives(packages));
    }

    /// The log of a step.
    pub(super) fn log(&self, step: &str) -> PathBuf {
        self.folder.join("log").join(format!("{step}.log"))
    }

    /// The log of a step, emptied: the complaint of an earlier run is not this one's.
    fn fresh_log(&self, step: &str) -> PathBuf {
        let log = self.log(step);
        let _ = std::fs::remove_file(&log);
        log
    }

    /// Each request has its own folder, so that what an interrupted one left is not unpacked with another.
    fn archives(&self, packages: &[&str]) -> PathBuf {
        self.folder.join("cache").join(packages.join("+"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("apt-get");
        command.arg("--config-file").arg(self.folder.join("etc/apt.conf")).args(arguments);
        // Complaints are searched for in the log, so they have to be in English.
        command.env("LC_ALL", "C.UTF-8").env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).context(PrepareSnafu { path })
    }
}

/// The settings that make apt private. Read after the system's own, so that proxies and certificates stay as they are.
fn configuration(folder: &Path) -> String {
    let own = |name: &str| folder.join(name).display().to_string();
    let settings = [
        ("Dir::Etc::sourcelist", own("etc/sources.list")),
        ("Dir::Etc::sourceparts", "/dev/null".to_owned()),
        ("Dir::Etc::preferences", "/dev/null".to_owned()),
        ("Dir::Etc::preferencesparts", "/dev/null".to_owned()),
        ("Dir::State", own("state")),
        ("Dir::State::lists", own("state/lists")),
        ("Dir::State::status", own("state/status")),
        ("Dir::Cache", own("cache")),
        ("Dir::Log", own("log")),
        // Root would hand downloads to the user `_apt`, who may not enter our folders; other users cannot anyway.
        ("APT::Sandbox::User", "root".to_owned()),
        ("APT::Install-Recommends", "false".to_owned()),
        ("APT::Keep-Downloaded-Packages", "true".to_owned()),
        // Without this, lists that did not arrive are only a warning.
        ("APT::Update::Error-Mode", "any".to_owned()),
        ("Acquire::Languages", "none".to_owned()),
        ("Acquire::Retries", "2".to_owned()),
        ("Acquire::http::Timeout", "30".to_owned()),
        ("Acquire::https::Timeout", "30".to_owned()),
    ];
    // The system's hooks act on the system, for example by emptying its cache.
    let hooks = ["Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"];
    let cleared = hooks.map(|hook| format!("#clear APT::Update::{hook};\n")).concat();
    cleared + &settings.map(|(name, value)| format!("{name} \"{value}\";\n")).concat()
}

/// What apt complained about: its lines of errors, at most three, else how it ended.
fn complaint(log: &Path, error: &process::Error) -> String {
    let text = process::tail(log, 200);
    let errors: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("E: ")).take(3).collect();
    if errors.is_empty() { error.to_string() } else { errors.join(" | ") }
}

fn package_files(archives: &Path) -> Result<Vec<PathBuf>, Error> {
    let found = archives.read_dir().context(ReadSnafu { path: archives })?;
    let paths = found.flatten().map(|found| found.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension() == Some("deb".as_ref())).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn nothing_of_the_private_apt_points_into_the_system() {
        let text = configuration(Path::new("/cache/apt/sid"));
        for line in text.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(line.contains("\"/cache/apt/sid/") || line.contains("\"/dev/null\""), "{line}");
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("#clear ")).count(), 3);
    }

    #[test]
    fn the_complaint_is_what_apt_calls_an_error() {
        let folder = Folder::new();
        let log = folder.path().join("log");
        let failed = || process::run(Command::new("false"), "apt-get update", &folder.path().join("x"), UPDATE_LIMIT);
        let check = |text: &str, expect: &str| {
            std::fs::write(&log, text).unwrap();
            assert_eq!(complaint(&log, &failed().unwrap_err()), expect);
        };
        check("Get:1 x\nE: Failed to fetch x\nW: y\nE: Unable to lock\n", "Failed to fetch x | Unable to lock");
        check("E: 1\nE: 2\nE: 3\nE: 4\n", "1 | 2 | 3");
        check("", "apt-get update: exit status: 1; last words: none");
    }
}
