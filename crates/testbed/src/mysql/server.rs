//! A running MySQL server.
//!
//! In: a launch that the builder prepared. Out: its addresses, its faults on demand, its last words. Must not: outlive
//! its value or the test process.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use snafu::{ResultExt as _, Snafu, ensure};

use super::builder::Builder;
use super::distribution::{self, Distribution};
use super::{greeting, template};
use crate::process::{self, Process};
use crate::progress::say;
use crate::scratch::{self, Scratch};
use crate::{ports, wait};

/// How long a start may take before it counts as failed: 1 to 2 s here, more when many run at once on a slow disk.
pub(super) const START_LIMIT: Duration = Duration::from_mins(1);

/// How long a server that was asked to stop has before it is killed: under 2 s here.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How long one attempt to be greeted may take: a server that is there greets in a millisecond.
const GREETING_LIMIT: Duration = Duration::from_secs(1);

/// The name of the error log in a server's folder.
const LOG: &str = "error.log";

/// How much of the error log a failing test shows.
const LAST_WORDS: usize = 25;

/// What went wrong with a server.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
pub enum Error {
    /// There are no programs.
    #[snafu(transparent)]
    Distribution {
        /// Why not.
        source: distribution::Error,
    },

    /// There is no data folder to start from.
    #[snafu(transparent)]
    Template {
        /// Why not.
        source: template::Error,
    },

    /// There is no place for its files.
    #[snafu(transparent)]
    Scratch {
        /// Why not.
        source: scratch::Error,
    },

    /// There is no port for it.
    #[snafu(transparent)]
    Ports {
        /// Why not.
        source: ports::Error,
    },

    /// The address is not one of this machine's own.
    #[snafu(display("{name}: bind address {address} is not a loopback address: use 127.0.0.1 to 127.255.255.254"))]
    Address {
        /// The server's name.
        name: String,
        /// The address.
        address: Ipv4Addr,
    },

    /// The name cannot be part of a path.
    #[snafu(display("server name {name:?} is no folder name: use letters, digits, '-' and '_', at most 40"))]
    Name {
        /// The name.
        name: String,
    },

    /// The socket's path is longer than the system allows.
    #[snafu(display(
        "{name}: the socket path {} is longer than 107 bytes: point {} at a folder with a shorter path",
        path.display(),
        crate::environment::CACHE_DIR
    ))]
    SocketPath {
        /// The server's name.
        name: String,
        /// The path.
        path: PathBuf,
    },

    /// The port belongs to someone else.
    #[snafu(display(
        "{name}: port {port} on {address} is in use by another program: give another port, or none to get a free one"
    ))]
    PortInUse {
        /// The server's name.
        name: String,
        /// The address.
        address: Ipv4Addr,
        /// The port.
        port: u16,
    },

    /// A file of the server cannot be written or removed.
    #[snafu(display("{name}: cannot write {}: {source}", path.display()))]
    File {
        /// The server's name.
        name: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The process cannot be started or signalled.
    #[snafu(transparent)]
    Process {
        /// Why not.
        source: process::Error,
    },

    /// The server ended instead of answering.
    #[snafu(display("{name}: mysqld ended ({status}): {why}; see {}", log.display()))]
    Ended {
        /// The server's name.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// The errors in its log.
        why: String,
        /// Its log.
        log: PathBuf,
    },

    /// The server runs and does not answer.
    #[snafu(display("{name}: no answer on {address} within {} s ({why}); see {}", limit.as_secs_f64(), log.display()))]
    Silent {
        /// The server's name.
        name: String,
        /// Where it was asked.
        address: SocketAddr,
        /// How long it was given.
        limit: Duration,
        /// What the last attempt met.
        why: String,
        /// Its log.
        log: PathBuf,
    },
}

impl Error {
    /// The error of a first start. What the server wrote is kept when it may tell more; its data is that of the template
    /// and tells nothing.
    pub(super) fn with_log_kept(mut self, scratch: Scratch) -> Self {
        if let Self::Ended { log, .. } | Self::Silent { log, .. } = &mut self {
            let _ = std::fs::remove_dir_all(scratch.path().join("data"));
            *log = scratch.keep().join(LOG);
        }
        self
    }
}

/// A server of ours. Dropping it ends it and removes its files; when the test is failing, the files are kept and the end
/// of its error log is shown.
#[derive(Debug)]
pub struct MysqlServer {
    // Dropped in this order: first the process, then its files.
    process: Process,
    launch: Launch,
    scratch: Scratch,
}

/// Everything a start needs, so that the same server can be started again.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) distribution: Distribution,
    pub(super) arguments: Vec<String>,
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) admin_port: Option<u16>,
    pub(super) folder: PathBuf,
}

impl MysqlServer {
    /// Says what the server shall be like.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(super) fn new(process: Process, launch: Launch, scratch: Scratch) -> Self {
        Self { process, launch, scratch }
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.launch.name
    }

    /// The address it listens on.
    pub fn host(&self) -> Ipv4Addr {
        self.launch.address
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.launch.port
    }

    /// The port for administrators, when it was asked for.
    pub fn admin_port(&self) -> Option<u16> {
        self.launch.admin_port
    }

    /// The socket file.
    pub fn socket(&self) -> PathBuf {
        self.launch.socket()
    }

    /// The data folder.
    pub fn datadir(&self) -> PathBuf {
        self.launch.data()
    }

    /// The folder of this server's files: data, socket, error log.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The programs it runs.
    pub fn distribution(&self) -> &Distribution {
        &self.launch.distribution
    }

    /// The number of its process, or of its last one.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether the process has not ended.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// The address of the client port as a URL. The account `root` without a password may do everything.
    pub fn url(&self, user: &str, password: &str) -> String {
        let user = percent_encoded(user);
        let secret = if password.is_empty() { String::new() } else { format!(":{}", percent_encoded(password)) };
        format!("mysql://{user}{secret}@{}:{}", self.host(), self.port())
    }

    /// Waits until the server greets a connection, at most for `limit`. Fails at once when it has ended.
    pub fn wait_ready(&self, limit: Duration) -> Result<(), Error> {
        self.launch.wait_ready(&self.process, limit)
    }

    /// Ends it as a power cut does (`SIGKILL`), and waits until it is gone.
    pub fn kill(&self) -> Result<(), Error> {
        self.process.kill()?;
        Ok(())
    }

    /// Ends it in good order (`SIGTERM`), and waits; one that does not end within half a minute is killed.
    pub fn stop(&self) -> Result<(), Error> {
        self.process.terminate(STOP_LIMIT)?;
        Ok(())
    }

    /// Stops it where it is (`SIGSTOP`): connections stay open, nothing answers.
    pub fn pause(&self) -> Result<(), Error> {
        Ok(self.process.pause()?)
    }

    /// Lets a paused one go on.
    pub fn resume(&self) -> Result<(), Error> {
        Ok(self.process.resume()?)
    }

    /// Starts it again on the same data, port and arguments, and waits until it answers. One that still runs is stopped
    /// in good order first.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop()?;
        self.process = self.launch.boot()?;
        Ok(())
    }

    /// The last lines of its error log.
    pub fn error_log_tail(&self, lines: usize) -> String {
        self.process.log_tail(lines)
    }
}

impl Drop for MysqlServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut words = format!("the last lines of {}'s error log:", self.name());
            for line in self.error_log_tail(LAST_WORDS).lines() {
                let _ = write!(words, "\n  {line}");
            }
            say(&words);
        }
    }
}

impl Launch {
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("mysqld.sock")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// Starts the process and waits until it answers; one that does not is ended.
    pub(super) fn boot(&self) -> Result<Process, Error> {
        self.remove_stale_socket()?;
        self.ports_are_free()?;
        let process = Process::spawn(self.command(), &self.name, self.log())?;
        self.wait_ready(&process, START_LIMIT)?;
        Ok(process)
    }

    /// A killed server leaves its socket's lock file, and the number in it may belong to another process by now: the
    /// next start would refuse.
    fn remove_stale_socket(&self) -> Result<(), Error> {
        for path in ["mysqld.sock", "mysqld.sock.lock"].map(|name| self.folder.join(name)) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).context(FileSnafu { name: &self.name, path });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = self.distribution.mysqld();
        let own = |option: &str, name: &str| format!("--{option}={}", self.folder.join(name).display());
        command
            .args(template::SMALL)
            .args([own("datadir", "data"), own("socket", "mysqld.sock"), own("pid-file", "mysqld.pid")])
            .arg(own("tmpdir", "tmp"))
            .arg(format!("--bind-address={}", self.address))
            .arg(format!("--port={}", self.port));
        if let Some(port) = self.admin_port {
            command.arg(format!("--admin-address={}", self.address)).arg(format!("--admin-port={port}"));
        }
        command.args(&self.arguments);
        command
    }

    fn wait_ready(&self, process: &Process, limit: Duration) -> Result<(), Error> {
        let address = SocketAddr::from((self.address, self.port));
        let mut why = String::new();
        let outcome = wait::until(limit, || {
            if let Some(status) = process.status() {
                return Some(Err(status));
            }
            let greeted = greeting::expect(address, GREETING_LIMIT.min(limit).max(Duration::from_millis(1)));
            greeted.map(Ok).inspect_err(|error| why = error.to_string()).ok()
        });
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => self.ended(status, &process.log_tail(200)),
            None => SilentSnafu { name: &self.name, address, limit, why, log: self.log() }.fail(),
        }
    }

    /// Why it ended: someone else on its port, else what its log says.
    fn ended<T>(&self, status: ExitStatus, log: &str) -> Result<T, Error> {
        self.ports_are_free()?;
        EndedSnafu { name: &self.name, status, why: errors_in(log), log: self.log() }.fail()
    }

    fn ports_are_free(&self) -> Result<(), Error> {
        for port in [Some(self.port), self.admin_port].into_iter().flatten() {
            let free = ports::is_free(self.address, port).is_ok();
            ensure!(free, PortInUseSnafu { name: &self.name, address: self.address, port });
        }
        Ok(())
    }
}

/// The errors of the last start in a server's log, at most three, in one line; the last line when there are none.
pub(super) fn errors_in(log: &str) -> String {
    let log = log.rsplit_once("starting as process").map_or(log, |(_, last_start)| last_start);
    let message = |line: &str| line.split_once("[ERROR]").map(|(_, message)| message.trim().to_owned());
    let errors: Vec<String> = log.lines().filter_map(message).take(3).collect();
    if errors.is_empty() { log.lines().last().unwrap_or("no word in its log").to_owned() } else { errors.join(" | ") }
}

/// A word as it may stand in a URL's account part.
fn percent_encoded(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    word.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect::<Vec<_>>()
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_a_url_cannot_be_taken_for_its_signs() {
        let check = |word: &str, expect: &str| assert_eq!(percent_encoded(word), expect);
        check("root", "root");
        check("p@ss:w/rd%#?", "p%40ss%3Aw%2Frd%25%23%3F");
        check("é ", "%C3%A9%20");
    }

    #[test]
    fn the_reason_of_an_end_is_the_errors_of_the_log() {
        let check = |log: &str, expect: &str| assert_eq!(errors_in(log), expect);
        check("t 0 [Note] a\nt 0 [ERROR] [MY-010119] [Server] Aborting\n", "[MY-010119] [Server] Aborting");
        check("[ERROR] old\nstarting as process 2\n[ERROR] new\n", "new");
        check("[ERROR] 1\n[ERROR] 2\n[ERROR] 3\n[ERROR] 4\n", "1 | 2 | 3");
        check("mysqld: error while loading libaio.so.1\n", "mysqld: error while loading libaio.so.1");
        check("", "no word in its log");
    }
}
