//! The template: one data folder, initialised once, that every server starts from a copy of.
//!
//! In: a distribution. Out: a complete data folder in the cache, and copies of it. Must not: carry an identity
//! (`auto.cnf`), a GTID or a binary log, or be used by a server itself.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use snafu::{ResultExt as _, Snafu};

use super::distribution::Distribution;
use super::greeting;
use crate::process::{self, Process};
use crate::progress::Progress;
use crate::{cache, ports, wait};

/// The kind of the cache entries with initialised data folders.
pub(super) const KIND: &str = "mysql-template";

/// Goes up whenever something in this file changes what the template holds.
const FORMAT: u32 = 2;

/// How long `--initialize-insecure` may take: 3 s here, on a slow disk a minute.
const INITIALISE_LIMIT: Duration = Duration::from_mins(5);

/// How long the one start with the account statements may take, and the stop after it.
const START_LIMIT: Duration = Duration::from_mins(2);

/// The first account is `root@localhost`, which over TCP nobody is when names are not resolved; tests come from
/// loopback addresses.
const ACCOUNTS: &str = "CREATE USER 'root'@'127.%' IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.%' WITH GRANT OPTION;
GRANT PROXY ON ''@'' TO 'root'@'127.%' WITH GRANT OPTION;
";

/// What went wrong with the template.
#[derive(Debug, Snafu)]
pub enum Error {
    /// It cannot be stored.
    #[snafu(transparent)]
    Cache {
        /// Why not.
        source: cache::Error,
    },

    /// The server cannot initialise a data folder.
    #[snafu(display("cannot initialise a data folder with {}: {source}", mysqld.display()))]
    Initialise {
        /// The server program.
        mysqld: PathBuf,
        /// What it said.
        source: process::Error,
    },

    /// The account statements did not run.
    #[snafu(display("cannot start {} on a fresh data folder: {why}", mysqld.display()))]
    Start {
        /// The server program.
        mysqld: PathBuf,
        /// What it said.
        why: String,
    },

    /// There is no port for that start.
    #[snafu(transparent)]
    Ports {
        /// Why not.
        source: ports::Error,
    },

    /// A file cannot be written, copied or removed.
    #[snafu(display("cannot write {}: {source}", path.display()))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Settings that make a server small, the same for the template and for the servers, so that the first start of a copy
/// has nothing to resize. Memory that is not touched is also time not spent: a start takes 0.65 s of CPU and 350 MB
/// instead of 0.8 s and 450 MB.
pub(super) const SMALL: [&str; 15] = [
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=32M",
    "--innodb-log-buffer-size=1M",
    // Not every build knows this one.
    "--loose-innodb-numa-interleave=OFF",
    "--max-connections=60",
    "--table-open-cache=200",
    "--table-definition-cache=400",
    // The tables of the performance schema stay; only their long histories are short.
    "--performance-schema-digests-size=200",
    "--performance-schema-events-stages-history-long-size=100",
    "--performance-schema-events-statements-history-long-size=100",
    "--performance-schema-events-transactions-history-long-size=100",
    "--performance-schema-events-waits-history-long-size=100",
];

/// The data folder of the template, made when there is none for this version.
pub(super) fn provision(distribution: &Distribution) -> Result<PathBuf, Error> {
    let key = format!("{}-{FORMAT}", distribution.version());
    let entry = cache::entry(KIND, &key, |folder| initialise(distribution, folder))?;
    Ok(entry.join("data"))
}

/// Copies the data folder. The copy shares its blocks with the template where the file system can.
pub(super) fn copy(template: &Path, to: &Path) -> Result<(), Error> {
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let (source, target) = (template.join(&below), to.join(&below));
        std::fs::create_dir_all(&target).context(FileSnafu { path: &target })?;
        for found in source.read_dir().context(FileSnafu { path: &source })? {
            let found = found.context(FileSnafu { path: &source })?;
            let path = target.join(found.file_name());
            if found.file_type().is_ok_and(|sort| sort.is_dir()) {
                folders.push(below.join(found.file_name()));
            } else {
                std::fs::copy(found.path(), &path).context(FileSnafu { path })?;
            }
        }
    }
    Ok(())
}

/// Fills the cache entry: initialises, starts once for the accounts, and takes away the identity and what is not worth a
/// copy.
fn initialise(distribution: &Distribution, folder: &Path) -> Result<(), Error> {
    let step = Progress::start(format!("initialising a data folder for MySQL {}", distribution.version()));
    let data = folder.join("data");
    let server = |log: &str| {
        let mut command = distribution.mysqld();
        command.args(SMALL).arg("--skip-log-bin").arg(format!("--datadir={}", data.display()));
        (command, folder.join(log))
    };
    let (mut command, log) = server("initialise.log");
    command.arg("--initialize-insecure");
    process::run(command, "mysqld --initialize-insecure", &log, INITIALISE_LIMIT)
        .context(InitialiseSnafu { mysqld: distribution.path() })?;
    let accounts = folder.join("accounts.sql");
    std::fs::write(&accounts, ACCOUNTS).context(FileSnafu { path: &accounts })?;
    let (mut command, log) = server("accounts.log");
    command.arg(format!("--init-file={}", accounts.display()));
    run_once(distribution, command, &log)?;
    let identity = data.join("auto.cnf");
    std::fs::remove_file(&identity).context(FileSnafu { path: identity })?;
    remove_spare_redo(&data.join("#innodb_redo"))?;
    step.done();
    Ok(())
}

/// A server removes the spare redo files of the one before it at its start, one by one, each followed by a flush: a
/// quarter of the time of a start. Without them it has nothing to remove, and a copy has 30 MB less to write.
fn remove_spare_redo(folder: &Path) -> Result<(), Error> {
    for found in folder.read_dir().context(FileSnafu { path: folder })?.flatten() {
        if found.file_name().to_string_lossy().ends_with("_tmp") {
            std::fs::remove_file(found.path()).context(FileSnafu { path: found.path() })?;
        }
    }
    Ok(())
}

/// Starts the server, waits for its greeting (the statements have run by then) and stops it in good order.
fn run_once(distribution: &Distribution, mut command: Command, log: &Path) -> Result<(), Error> {
    let failed = |why: String| StartSnafu { mysqld: distribution.path(), why }.build();
    let port = ports::free(1)?.first().copied().unwrap_or_default();
    let address = (std::net::Ipv4Addr::LOCALHOST, port).into();
    let data_relative = ["--socket=mysqld.sock", "--pid-file=mysqld.pid", "--bind-address=127.0.0.1"];
    command.args(data_relative).arg(format!("--port={port}"));
    let process = Process::spawn(command, "mysqld", log).map_err(|error| failed(error.to_string()))?;
    let answers = wait::until(START_LIMIT, || {
        let greeted = greeting::expect(address, Duration::from_secs(1)).is_ok();
        (greeted || !process.is_running()).then_some(greeted)
    });
    if answers != Some(true) {
        return Err(failed(super::server::errors_in(&process.log_tail(200))));
    }
    let status = process.terminate(START_LIMIT).map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(format!("{status} at its stop"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn a_copy_has_every_file_with_its_rights() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir_all(from.join("a/b")).unwrap();
        std::fs::write(from.join("a/b/key.pem"), b"secret").unwrap();
        std::fs::set_permissions(from.join("a/b/key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(from.join("ibdata1"), vec![7; 100_000]).unwrap();
        copy(&from, &to).unwrap();
        let key = to.join("a/b/key.pem");
        assert_eq!(std::fs::read(&key).unwrap(), b"secret");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read(to.join("ibdata1")).unwrap(), vec![7; 100_000]);
        let lost = copy(&folder.path().join("absent"), &to).unwrap_err();
        assert!(lost.to_string().contains("absent"), "{lost}");
    }
}
