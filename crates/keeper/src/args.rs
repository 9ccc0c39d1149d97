//! The command line. In: words. Out: settings that fit together. Must not: read anything else.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::error::Error;

pub(crate) const USAGE: &str = "keeper --socket PATH --state-dir DIR --run-dir DIR --datadir DIR \
     [--credentials-dir DIR] [--opener-host ADDRESS] [--init-sql FILE] -- mysqld [argument ...]";

/// The longest path of a socket, without the zero at its end.
const SOCKET_PATH: usize = 107;

/// What the keeper was asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Args {
    /// Its own socket.
    pub(crate) socket: PathBuf,
    /// The markers; beside the data folder, never inside it.
    pub(crate) state: PathBuf,
    /// A memory volume for the init file.
    pub(crate) run: PathBuf,
    /// mysqld's data folder.
    pub(crate) datadir: PathBuf,
    /// A folder a role, with `username` and `password`.
    pub(crate) credentials: Option<PathBuf>,
    /// From where the opener comes.
    pub(crate) opener_host: String,
    /// Further statements for the end of the init file.
    pub(crate) init_sql: Option<PathBuf>,
    /// The command line of mysqld; at least one word.
    pub(crate) mysqld: Vec<OsString>,
}

impl Args {
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let mut words = words.into_iter();
        let mut given: Vec<(&'static str, OsString)> = Vec::new();
        loop {
            let word = words.next().ok_or_else(|| usage("no \"--\" before the command line of mysqld"))?;
            if word == "--" {
                break;
            }
            let name = OPTIONS.iter().find(|name| word == **name);
            let name = name.ok_or_else(|| usage(format!("unknown option {}", word.display())))?;
            if given.iter().any(|(known, _)| known == name) {
                return Err(usage(format!("{name} is given twice")));
            }
            let value = words.next().filter(|value| !value.is_empty());
            given.push((name, value.ok_or_else(|| usage(format!("{name} wants a value")))?));
        }
        let mut take =
            |name: &str| given.iter().position(|(known, _)| *known == name).map(|at| given.swap_remove(at).1);
        let mut path = |name: &str| take(name).map(PathBuf::from).ok_or_else(|| usage(format!("{name} is missing")));
        let args = Self {
            socket: path("--socket")?,
            state: path("--state-dir")?,
            run: path("--run-dir")?,
            datadir: path("--datadir")?,
            credentials: take("--credentials-dir").map(PathBuf::from),
            opener_host: take("--opener-host").map_or_else(|| Ok("localhost".to_owned()), host)?,
            init_sql: take("--init-sql").map(PathBuf::from),
            mysqld: words.collect(),
        };
        args.check()?;
        Ok(args)
    }

    /// What would harm if it were found out later.
    fn check(&self) -> Result<(), Error> {
        if self.mysqld.is_empty() {
            return Err(usage("no command line of mysqld after \"--\""));
        }
        if self.socket.as_os_str().len() > SOCKET_PATH {
            return Err(usage(format!("--socket {}: longer than {SOCKET_PATH} bytes", self.socket.display())));
        }
        for (name, path) in [("--state-dir", &self.state), ("--run-dir", &self.run), ("--socket", &self.socket)] {
            if path.starts_with(&self.datadir) {
                return Err(usage(format!("{name} {} lies inside the data folder", path.display())));
            }
        }
        match self.option("datadir") {
            Some(other) if Path::new(&other) != self.datadir => Err(usage(format!(
                "--datadir {} is not the data folder {} of mysqld's command line",
                self.datadir.display(),
                other.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The last value of an option in mysqld's command line, in either form.
    pub(crate) fn option(&self, name: &str) -> Option<OsString> {
        let long = format!("--{name}");
        let mut found = None;
        let mut words = self.mysqld.iter().peekable();
        while let Some(word) = words.next() {
            let value = word.as_bytes().strip_prefix(long.as_bytes());
            match value {
                Some([]) => found = words.peek().map(|value| (*value).clone()),
                Some([b'=', value @ ..]) => found = Some(OsString::from_vec(value.to_vec())),
                _ => {}
            }
        }
        found
    }

    /// The socket files that a killed mysqld may have left, each with its lock.
    pub(crate) fn stale_sockets(&self) -> Vec<PathBuf> {
        let told = ["socket", "mysqlx-socket"].map(|name| self.option(name)).into_iter().flatten();
        let usual = ["mysqld.sock", "mysql.sock", "mysqlx.sock"].map(OsString::from);
        let with_lock = |name: OsString| {
            let path = self.datadir.join(name);
            let mut lock = path.clone().into_os_string();
            lock.push(".lock");
            [path, lock.into()]
        };
        told.chain(usual).flat_map(with_lock).collect()
    }

    /// Where the init file is.
    pub(crate) fn init_file(&self) -> PathBuf {
        self.run.join("init.sql")
    }
}

const OPTIONS: [&str; 7] =
    ["--socket", "--state-dir", "--run-dir", "--datadir", "--credentials-dir", "--opener-host", "--init-sql"];

fn usage(why: impl Into<String>) -> Error {
    Error::Usage(why.into())
}

fn host(value: OsString) -> Result<String, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '%' | '_');
    let text = value.into_string().ok().filter(|text| text.chars().all(plain));
    text.ok_or_else(|| usage("--opener-host is no address"))
}

/// An argument made of a name and a path.
pub(crate) fn argument(name: &str, path: &OsStr) -> OsString {
    let mut argument = OsString::from(name);
    argument.push(path);
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, Error> {
        Args::parse(line.split_whitespace().map(OsString::from))
    }

    const FOLDERS: &str = "--socket /r/k --state-dir /s --run-dir /r --datadir /d";

    #[test]
    fn a_command_line_is_read() {
        let args = parse(&format!("{FOLDERS} --opener-host 10.0.0.7 -- ld.so mysqld --port=1")).unwrap();
        assert_eq!(args.opener_host, "10.0.0.7");
        assert_eq!(args.mysqld, ["ld.so", "mysqld", "--port=1"]);
        assert_eq!(args.init_file(), Path::new("/r/init.sql"));
        let plain = parse(&format!("{FOLDERS} -- mysqld")).unwrap();
        assert_eq!((plain.opener_host.as_str(), plain.credentials, plain.init_sql), ("localhost", None, None));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let check = |line: &str, expect: &str| {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.starts_with(expect), "{line}: {error}");
        };
        check("", "no \"--\"");
        check("--socket", "--socket wants a value");
        check("--port 1 -- mysqld", "unknown option --port");
        check("--socket a --socket b -- mysqld", "--socket is given twice");
        check("--socket /r/k -- mysqld", "--state-dir is missing");
        check(&format!("{FOLDERS} --"), "no command line of mysqld");
        check(&format!("{FOLDERS} --opener-host a'b -- mysqld"), "--opener-host is no address");
        check(&format!("{FOLDERS} -- mysqld --datadir=/e"), "--datadir /d is not the data folder /e");
        check(&format!("{} -- mysqld", FOLDERS.replace("/s ", "/d/s ")), "--state-dir /d/s lies inside");
        check(&format!("{} -- mysqld", FOLDERS.replace("/r/k", &"x".repeat(108))), "--socket xxx");
    }

    #[test]
    fn stale_sockets_are_those_of_the_command_line_and_the_usual_ones() {
        let sockets = |more: &str| parse(&format!("{FOLDERS} -- mysqld {more}")).unwrap().stale_sockets();
        let has = |more: &str, path: &str| sockets(more).contains(&PathBuf::from(path));
        assert!(has("--socket=/tmp/s", "/tmp/s") && has("--socket /tmp/s", "/tmp/s.lock"));
        assert!(has("--socket=mine.sock", "/d/mine.sock.lock"));
        assert!(has("--socket=a --socket=/b", "/b") && !has("--socket=a --socket=/b", "/d/a"));
        assert!(has("", "/d/mysqld.sock.lock") && has("--mysqlx-socket=/x", "/x"));
    }
}
