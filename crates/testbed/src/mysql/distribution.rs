//! The MySQL programs: found on the machine, or fetched into the cache.
//!
//! In: the environment. Out: commands that run `mysqld` and its clients. Must not: install anything, read the
//! machine's MySQL configuration, or fall back to another server when the user named one.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use snafu::{OptionExt as _, ResultExt as _, Snafu, ensure};

use super::version::Version;
use crate::cache::{self, Cache};
use crate::environment::{self, MYSQLD};
use crate::scratch::{self, Scratch};
use crate::{debian, process};

/// The kind of the cache entries with fetched programs.
pub(super) const KIND: &str = "mysql";

/// The suite of Debian that has a MySQL server of 8.4 or newer.
const SUITE: &str = "sid";

/// The server and the clients (`mysql`, `mysqldump`, `mysqlbinlog`).
const PACKAGES: [&str; 2] = ["mysql-server-core", "mysql-client-core"];

/// Folders of the packages that no program needs; they are most of the files.
const UNUSED: [&str; 6] =
    ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/perl", "usr/share/zoneinfo", "usr/lib/systemd"];

/// How long `mysqld --version` may take: 0.1 s here, some seconds from a cold disk.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// What went wrong with finding or fetching MySQL.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The variable names something that cannot be run.
    #[snafu(display(
        "{MYSQLD}={}: no such program; set it to the path of a mysqld of {} or newer, or unset it",
        path.display(),
        Version::OLDEST
    ))]
    NotAProgram {
        /// The value of the variable.
        path: PathBuf,
    },

    /// The variable names a program that is no MySQL server.
    #[snafu(display(
        "{MYSQLD}={}: not a MySQL server ({why}); set it to the path of a mysqld of {} or newer, or unset it",
        path.display(),
        Version::OLDEST
    ))]
    NotMysql {
        /// The value of the variable.
        path: PathBuf,
        /// What it answered instead.
        why: String,
    },

    /// The variable names a server that is too old.
    #[snafu(display(
        "{MYSQLD}={}: MySQL {version} is too old; set it to the path of a mysqld of {} or newer, or unset it",
        path.display(),
        Version::OLDEST
    ))]
    TooOld {
        /// The value of the variable.
        path: PathBuf,
        /// Its version.
        version: Version,
    },

    /// This machine's loader is not known.
    #[snafu(display(
        "no MySQL for {architecture} can be fetched; set {MYSQLD} to the path of a mysqld of {} or newer",
        Version::OLDEST
    ))]
    Architecture {
        /// The architecture of this machine.
        architecture: &'static str,
    },

    /// The packages cannot be fetched or stored.
    #[snafu(display(
        "no MySQL {} or newer on this machine, and none can be fetched: {source}; or set {MYSQLD} to the path of one",
        Version::OLDEST
    ))]
    Fetch {
        /// Why not.
        source: cache::Error,
    },

    /// The fetched server is incomplete.
    #[snafu(display("the fetched MySQL does not run: {why}"))]
    Broken {
        /// What it said.
        why: String,
    },

    /// A file of the cache cannot be written or read.
    #[snafu(display("cannot use {}: {source}", path.display()))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The packages cannot be unpacked.
    #[snafu(transparent)]
    Debian {
        /// Why not.
        source: debian::Error,
    },

    /// There is no place for a log.
    #[snafu(transparent)]
    Scratch {
        /// Why not.
        source: scratch::Error,
    },

    /// A client program does not come with the server.
    #[snafu(display("no {program} beside {} or on PATH; install the MySQL clients of that server", mysqld.display()))]
    NoClient {
        /// The program.
        program: &'static str,
        /// The server.
        mysqld: PathBuf,
    },
}

/// The programs of one MySQL version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    mysqld: PathBuf,
    version: Version,
    origin: Origin,
    /// The folder that packages were unpacked into, whose own loader and libraries run the programs.
    unpacked: Option<PathBuf>,
}

/// Where the programs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Named by `BLOODRAVEN_MYSQLD`.
    Variable,
    /// Found on `PATH`.
    Path,
    /// Fetched from Debian into the cache.
    Debian,
}

/// The client programs that tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The command line.
    Mysql,
    /// Logical dumps.
    Mysqldump,
    /// Reads binary logs, from files or from a server.
    Mysqlbinlog,
}

impl Distribution {
    /// Finds the programs without fetching: the one that `BLOODRAVEN_MYSQLD` names, else one on `PATH` of 8.4 or newer,
    /// else one fetched earlier. A wrong value of the variable is an error, not a reason to take another.
    pub fn locate() -> Result<Option<Self>, Error> {
        if let Some(path) = environment::variable(MYSQLD) {
            return Self::at(Path::new(&path)).map(Some);
        }
        if let Some(found) = environment::find_program("mysqld").and_then(|path| Self::usable(&path)) {
            return Ok(Some(found));
        }
        Ok(Cache::open().get(KIND, &cache_key()).and_then(|root| Self::fetched(&root).ok()))
    }

    /// [`Distribution::locate`], else fetches the programs from Debian into the cache: about 20 s, once.
    pub fn provision() -> Result<Self, Error> {
        if let Some(found) = Self::locate()? {
            return Ok(found);
        }
        Loader::of_this_machine()?;
        let root = cache::entry(KIND, &cache_key(), fetch).context(FetchSnafu)?;
        Self::fetched(&root)
    }

    /// [`Distribution::provision`], done once in this process.
    pub fn shared() -> Result<Self, Error> {
        static SHARED: Mutex<Option<Distribution>> = Mutex::new(None);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*shared {
            return Ok(found.clone());
        }
        Ok(shared.insert(Self::provision()?).clone())
    }

    /// The distribution of a server program that the user names; the errors speak of `BLOODRAVEN_MYSQLD`.
    pub fn at(path: &Path) -> Result<Self, Error> {
        ensure!(environment::is_program(path), NotAProgramSnafu { path });
        let answer = ask_version(Command::new(path)).map_err(|why| NotMysqlSnafu { path, why }.build())?;
        let version =
            Version::from_answer(&answer).with_context(|| NotMysqlSnafu { path, why: first_line(&answer) })?;
        ensure!(version >= Version::OLDEST, TooOldSnafu { path, version });
        Ok(Self { mysqld: path.to_owned(), version, origin: Origin::Variable, unpacked: None })
    }

    /// The server program.
    pub fn path(&self) -> &Path {
        &self.mysqld
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where it comes from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// A command that runs the server without any configuration but its arguments.
    pub fn mysqld(&self) -> Command {
        let mut command = self.run(&self.mysqld);
        command.arg("--no-defaults");
        if let Some(root) = &self.unpacked {
            let below = |option: &str, path: &str| format!("--{option}={}", root.join(path).display());
            command
                .arg(below("basedir", "usr"))
                .arg(below("plugin-dir", "usr/lib/mysql/plugin"))
                .arg(below("lc-messages-dir", "usr/share/mysql"));
        }
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
        command
    }

    /// A command that runs a client without any configuration but its arguments.
    pub fn client(&self, client: Client) -> Result<Command, Error> {
        let program = client.program();
        let beside = self
            .mysqld
            .parent()
            .into_iter()
            .flat_map(|folder| [folder.join(program), folder.join("../bin").join(program)]);
        let found = beside.into_iter().find(|path| environment::is_program(path));
        let path = found
            .or_else(|| environment::find_program(program))
            .context(NoClientSnafu { program, mysqld: &self.mysqld })?;
        let mut command = self.run(&path);
        command.arg("--no-defaults");
        Ok(command)
    }

    fn run(&self, program: &Path) -> Command {
        match &self.unpacked {
            Some(root) => Loader::of_this_machine().map_or_else(|_| Command::new(program), |it| it.run(root, program)),
            None => Command::new(program),
        }
    }

    /// A distribution that nobody asked, for tests that run no program.
    #[cfg(test)]
    pub(super) fn assumed(mysqld: &str) -> Self {
        Self { mysqld: mysqld.into(), version: Version::OLDEST, origin: Origin::Path, unpacked: None }
    }

    fn usable(path: &Path) -> Option<Self> {
        let version = Version::from_answer(&ask_version(Command::new(path)).ok()?)?;
        let found = Self { mysqld: path.to_owned(), version, origin: Origin::Path, unpacked: None };
        (version >= Version::OLDEST).then_some(found)
    }

    fn fetched(root: &Path) -> Result<Self, Error> {
        let path = root.join("version");
        let text = std::fs::read_to_string(&path).context(FileSnafu { path })?;
        let version = Version::parse(&text).with_context(|| BrokenSnafu { why: format!("version {text:?}") })?;
        let mysqld = root.join("usr/sbin/mysqld");
        Ok(Self { mysqld, version, origin: Origin::Debian, unpacked: Some(root.to_owned()) })
    }
}

impl Client {
    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Mysqldump => "mysqldump",
            Self::Mysqlbinlog => "mysqlbinlog",
        }
    }
}

/// The loader of an unpacked distribution, whose C library is newer than the machine's.
struct Loader {
    triplet: &'static str,
    file: &'static str,
}

impl Loader {
    fn of_this_machine() -> Result<Self, Error> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self { triplet: "x86_64-linux-gnu", file: "ld-linux-x86-64.so.2" }),
            "aarch64" => Ok(Self { triplet: "aarch64-linux-gnu", file: "ld-linux-aarch64.so.1" }),
            architecture => ArchitectureSnafu { architecture }.fail(),
        }
    }

    fn run(&self, root: &Path, program: &Path) -> Command {
        let libraries = root.join("usr/lib").join(self.triplet);
        let private = libraries.join("mysql/private");
        let path = [&libraries, &root.join("lib").join(self.triplet), &private].map(|it| it.display().to_string());
        let mut command = Command::new(libraries.join(self.file));
        command.arg("--library-path").arg(path.join(":")).arg(program);
        command
    }
}

/// The folder with Debian's unpacked packages, fetched when it is not there, whatever other MySQL the machine has: images
/// are made of it.
pub(crate) fn unpacked() -> Result<PathBuf, Error> {
    Loader::of_this_machine()?;
    cache::entry(KIND, &cache_key(), fetch).context(FetchSnafu)
}

fn cache_key() -> String {
    format!("debian-{SUITE}-{}", std::env::consts::ARCH)
}

/// Fills a cache entry: the packages without what nobody needs, the server's version, the list of the packages. What
/// does not run is not kept.
fn fetch(folder: &Path) -> Result<(), Error> {
    let packages = debian::unpack(&PACKAGES, SUITE, folder)?;
    for path in UNUSED.map(|name| folder.join(name)) {
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).context(FileSnafu { path }),
            _ => {}
        }
    }
    let command = Loader::of_this_machine()?.run(folder, &folder.join("usr/sbin/mysqld"));
    let answer = ask_version(command).map_err(|why| BrokenSnafu { why }.build())?;
    let version = Version::from_answer(&answer).with_context(|| BrokenSnafu { why: first_line(&answer) })?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).context(FileSnafu { path })
    };
    write("version", format!("{version}\n"))?;
    write("packages", packages.join("\n") + "\n")
}

/// What the program answers to `--version`, or why it does not answer.
fn ask_version(mut command: Command) -> Result<String, String> {
    let scratch = Scratch::passing("version").map_err(|error| error.to_string())?;
    let log = scratch.path().join("answer");
    command.args(["--no-defaults", "--version"]);
    process::run(command, "mysqld --version", &log, VERSION_LIMIT).map_err(|error| error.to_string())?;
    Ok(process::tail(&log, 10))
}

fn first_line(answer: &str) -> String {
    answer.lines().next().unwrap_or("no answer").to_owned()
}

#[cfg(test)]
mod tests;
