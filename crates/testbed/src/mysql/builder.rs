//! What a server shall be like, and its start.
//!
//! In: settings, each with a default that suits most tests. Out: a running server that answers. Must not: listen
//! anywhere but on loopback, or start on the data of another server.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use snafu::{ResultExt as _, ensure};

use super::distribution::Distribution;
use super::server::{AddressSnafu, Error, FileSnafu, Launch, MysqlServer, NameSnafu, SocketPathSnafu};
use super::template;
use crate::ports;
use crate::scratch::Scratch;

/// How often a start is tried on other ports when a foreign program was faster: twice in a row never happened.
const PORT_ATTEMPTS: usize = 3;

/// The longest path that fits into a socket's address, without the zero at its end.
const SOCKET_PATH: usize = 107;

/// A server to be.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    name: String,
    server_id: u32,
    distribution: Option<Distribution>,
    address: Ipv4Addr,
    port: Option<u16>,
    admin: bool,
    gtid: bool,
    fenced: bool,
    init_statements: Vec<String>,
    arguments: Vec<String>,
}

impl Builder {
    pub(super) fn new() -> Self {
        // The numbers of this process: two servers of a test never have the same.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let server_id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            name: format!("mysql{server_id}"),
            server_id,
            distribution: None,
            address: Ipv4Addr::LOCALHOST,
            port: None,
            admin: false,
            gtid: true,
            fenced: false,
            init_statements: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// The name in messages and in the folder's path.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The `server_id`; without it, one that no other server of this process has.
    pub fn server_id(mut self, id: u32) -> Self {
        self.server_id = id;
        self
    }

    /// The programs to run; without it, [`Distribution::shared`].
    pub fn distribution(mut self, distribution: Distribution) -> Self {
        self.distribution = Some(distribution);
        self
    }

    /// The loopback address to listen on; without it, 127.0.0.1.
    pub fn bind_address(mut self, address: Ipv4Addr) -> Self {
        self.address = address;
        self
    }

    /// The port to listen on; without it, a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// A second port for administrators, which works when the connections for clients are used up.
    pub fn admin_port(mut self) -> Self {
        self.admin = true;
        self
    }

    /// No GTIDs.
    pub fn without_gtids(mut self) -> Self {
        self.gtid = false;
        self
    }

    /// Read-only for everyone from its first moment, whatever was persisted before.
    pub fn fenced(mut self) -> Self {
        self.fenced = true;
        self
    }

    /// A statement that runs at every start before the first connection. It is written to the binary log unless
    /// `SET SESSION sql_log_bin=0` comes before it.
    pub fn init_statement(mut self, statement: impl Into<String>) -> Self {
        self.init_statements.push(statement.into());
        self
    }

    /// A further argument for `mysqld`; the last one of a name wins.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Further arguments for `mysqld`.
    pub fn args<I: IntoIterator<Item: Into<String>>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Result<MysqlServer, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let fine = (1..=40).contains(&self.name.len()) && self.name.chars().all(plain);
        ensure!(fine, NameSnafu { name: &self.name });
        ensure!(self.address.is_loopback(), AddressSnafu { name: &self.name, address: self.address });
        let distribution = match self.distribution.clone() {
            Some(distribution) => distribution,
            None => Distribution::shared()?,
        };
        let template = template::provision(&distribution)?;
        let scratch = Scratch::new(&self.name)?;
        self.fill(&template, scratch.path())?;
        let mut launch = self.launch(&distribution, scratch.path())?;
        let mut booted = launch.boot();
        for _ in 1..PORT_ATTEMPTS {
            if self.port.is_some() || !matches!(booted, Err(Error::PortInUse { .. })) {
                break;
            }
            launch = self.launch(&distribution, scratch.path())?;
            booted = launch.boot();
        }
        match booted {
            Ok(process) => Ok(MysqlServer::new(process, launch, scratch)),
            Err(error) => Err(error.with_log_kept(scratch)),
        }
    }

    /// Puts the data and the statements into the server's folder.
    fn fill(&self, template: &Path, folder: &Path) -> Result<(), Error> {
        template::copy(template, &folder.join("data"))?;
        let temporary = folder.join("tmp");
        std::fs::create_dir_all(&temporary).context(FileSnafu { name: &self.name, path: temporary })?;
        let statements: Vec<&str> = self
            .init_statements
            .iter()
            .map(|text| text.trim().trim_end_matches(';'))
            .filter(|text| !text.is_empty())
            .collect();
        let path = folder.join("init.sql");
        std::fs::write(&path, statements.join(";\n") + ";\n").context(FileSnafu { name: &self.name, path })
    }

    fn launch(&self, distribution: &Distribution, folder: &Path) -> Result<Launch, Error> {
        let mut free = ports::free(2)?.into_iter();
        let picked = free.next().unwrap_or_default();
        let launch = Launch {
            name: self.name.clone(),
            distribution: distribution.clone(),
            arguments: self.all_arguments(folder),
            address: self.address,
            port: self.port.unwrap_or(picked),
            admin_port: free.next().filter(|_| self.admin),
            folder: folder.to_owned(),
        };
        let path = launch.socket();
        ensure!(path.as_os_str().len() <= SOCKET_PATH, SocketPathSnafu { name: &self.name, path });
        Ok(launch)
    }

    /// The caller's arguments come last, so that they win.
    fn all_arguments(&self, folder: &Path) -> Vec<String> {
        let mut all =
            vec![format!("--server-id={}", self.server_id), "--log-bin=bin".into(), "--relay-log=relay".into()];
        if self.gtid {
            all.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(String::from));
        }
        if self.fenced {
            all.extend(["--read-only=ON", "--super-read-only=ON", "--persisted-globals-load=OFF"].map(String::from));
        }
        if !self.init_statements.is_empty() {
            all.push(format!("--init-file={}", folder.join("init.sql").display()));
        }
        all.extend(self.arguments.iter().cloned());
        all
    }
}

/// Starts several servers at the same time, and gives them in the order of their builders. When one fails, the others
/// are ended and its error is given.
pub fn start_many(builders: impl IntoIterator<Item = Builder>) -> Result<Vec<MysqlServer>, Error> {
    let builders: Vec<Builder> = builders.into_iter().collect();
    std::thread::scope(|scope| {
        let starts: Vec<_> = builders.into_iter().map(|builder| scope.spawn(|| builder.start())).collect();
        let join = |start: std::thread::ScopedJoinHandle<'_, _>| {
            start.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All are waited for before any is given up, so that none is left half started.
        starts.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_server_is_refused_before_anything_is_fetched() {
        let name = |name: &str| Builder::new().name(name).start();
        for bad in ["", "a/b", "..", "a b", &"x".repeat(41)] {
            assert!(matches!(name(bad), Err(Error::Name { .. })), "{bad:?}");
        }
        let outside = Builder::new().bind_address(Ipv4Addr::UNSPECIFIED).start();
        assert!(matches!(outside, Err(Error::Address { .. })), "{outside:?}");
    }

    #[test]
    fn a_fence_and_gtids_are_arguments_and_the_callers_come_last() {
        let check = |builder: Builder, expect: &[&str]| {
            let all = builder.server_id(7).all_arguments(Path::new("/s"));
            assert_eq!(all[3..], expect.iter().map(ToString::to_string).collect::<Vec<_>>());
        };
        let gtids = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
        let fence = ["--read-only=ON", "--super-read-only=ON", "--persisted-globals-load=OFF"];
        check(Builder::new(), &gtids);
        check(Builder::new().without_gtids().fenced(), &fence);
        check(
            Builder::new().arg("--b=2").fenced().args(["--c"]).init_statement("SELECT 1"),
            &[&gtids[..], &fence[..], &["--init-file=/s/init.sql", "--b=2", "--c"]].concat(),
        );
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_told_with_the_way_out() {
        let distribution = Distribution::assumed("/usr/sbin/mysqld");
        let check = |length: usize| {
            let folder = format!("/{}", "x".repeat(length - "/".len() - "/mysqld.sock".len()));
            Builder::new().launch(&distribution, Path::new(&folder)).map(|launch| launch.socket().as_os_str().len())
        };
        assert_eq!(check(107).unwrap(), 107);
        let error = check(108).unwrap_err().to_string();
        assert!(error.contains("/mysqld.sock") && error.contains("BLOODRAVEN_CACHE_DIR"), "{error}");
    }

    #[test]
    fn servers_of_one_process_have_different_ids_and_names() {
        let (one, two) = (Builder::new(), Builder::new());
        assert!(one.server_id != two.server_id && one.name != two.name);
    }
}
