//! One API server with its etcd: started, stopped, killed, restarted, paused.
//!
//! In: options. Out: a server that answers on loopback, with everything needed to call it. Must not: listen anywhere
//! else, outlive its value or its process, or share a port or a folder with another one.
//!
//! There is an API server and nothing else: no controller manager, no scheduler, no node. Objects are stored, checked,
//! watched and guarded by role-based access control; nobody acts on them. So deployments make no pods, deleted
//! namespaces stay `Terminating`, and owned objects are not collected.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use snafu::{ResultExt as _, Snafu};

use super::certificates::Certificates;
use super::kinds::established;
use super::launch::Launch;
use super::{Parts, VERSION, etcd};
use crate::process::{self, Process};
use crate::scratch::{self, Scratch};
use crate::{ports, wait};

/// A first start takes about four seconds on two cores; a busy machine needs more.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// How often a server that listens is asked whether it is ready: each question is a run of `kubectl`.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// One call of `kubectl` against a server that is up takes a tenth of a second.
const CALL_LIMIT: Duration = Duration::from_secs(20);

/// How long a server may finish what it is doing when it is asked to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How often a start is tried when a port was taken between its choice and its use.
const ATTEMPTS: usize = 3;

/// How much of a log is shown when a test fails.
const TAIL_LINES: usize = 25;

/// What went wrong with an API server.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A program it needs cannot be had.
    #[snafu(transparent)]
    Provision {
        /// Why.
        source: super::Error,
    },

    /// There is no folder for it.
    #[snafu(transparent)]
    Folder {
        /// Why.
        source: scratch::Error,
    },

    /// There are no ports for it.
    #[snafu(transparent)]
    Ports {
        /// Why.
        source: ports::Error,
    },

    /// Its certificates cannot be made.
    #[snafu(display("cannot make the certificates of the API server: {source}"))]
    Certificates {
        /// Why.
        source: rcgen::Error,
    },

    /// A file it reads cannot be written.
    #[snafu(display("cannot write the files of the API server to {}: {source}", path.display()))]
    Write {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A process cannot be started, signalled or ended.
    #[snafu(transparent)]
    Process {
        /// Why.
        source: process::Error,
    },

    /// One of the two processes ended while it was to become ready.
    #[snafu(display("{name} ended while the API server was starting ({status}); its last lines:\n{tail}"))]
    Ended {
        /// Which one.
        name: String,
        /// How.
        status: ExitStatus,
        /// The end of its log.
        tail: String,
    },

    /// It did not become ready in time.
    #[snafu(display("the API server was not ready after {} s; its last lines:\n{tail}", READY_LIMIT.as_secs()))]
    NotReady {
        /// The end of its log.
        tail: String,
    },

    /// The custom resource of external-dns was not taken.
    #[snafu(display("cannot install the DNSEndpoint resource: {source}"))]
    Install {
        /// What `kubectl` said.
        source: process::Error,
    },
}

impl Error {
    /// Whether another try with other ports may succeed: someone else came first.
    fn is_port_taken(&self) -> bool {
        matches!(self, Self::Ended { tail, .. } if tail.contains("address already in use"))
    }
}

/// How an API server is to be started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(super) flags: Vec<String>,
    pub(super) admission_off: Vec<String>,
}

impl Options {
    /// Adds a flag of `kube-apiserver`, such as `--default-watch-cache-size=0`. It comes after the testbed's own, and
    /// the last one wins.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Switches an admission plugin off, such as `ResourceQuota`. `ServiceAccount` is always off: it refuses every pod
    /// whose account has not been made, and there is no controller here that makes accounts.
    #[must_use]
    pub fn admission_off(mut self, plugin: impl Into<String>) -> Self {
        self.admission_off.push(plugin.into());
        self
    }

    /// Starts an API server. The first time on a machine this fetches and builds its programs, which takes minutes and
    /// says so on standard error; afterwards it takes seconds.
    pub fn start(self) -> Result<ApiServer, Error> {
        let parts = super::provision()?;
        // Bounded by ATTEMPTS: each try takes other ports, so a second collision is already unlikely.
        let mut attempt = 1;
        loop {
            match ApiServer::try_start(&parts, &self) {
                Err(error) if error.is_port_taken() && attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }
}

/// A running API server. Dropping it kills it and its etcd and removes their folder; when that happens in a panic, the
/// ends of both logs are shown and the folder is kept.
#[derive(Debug)]
pub struct ApiServer {
    // The fields are dropped in this order: the server before its store, the folder last.
    server: Process,
    etcd: Process,
    launch: Launch,
    certificates: Certificates,
    scratch: Scratch,
}

impl ApiServer {
    /// Starts one without special options: [`Options::start`].
    pub fn start() -> Result<Self, Error> {
        Options::default().start()
    }

    /// The beginning of a start with options.
    pub fn options() -> Options {
        Options::default()
    }

    /// Its address, such as `https://127.0.0.1:15001`.
    pub fn url(&self) -> String {
        self.launch.url()
    }

    /// The version of Kubernetes that it reports.
    pub fn version(&self) -> &'static str {
        VERSION
    }

    /// The path of a kubeconfig for its administrator. The file is gone when the server is.
    pub fn kubeconfig(&self) -> PathBuf {
        self.launch.files.kubeconfig()
    }

    /// The certificate of its authority.
    pub fn ca_pem(&self) -> &str {
        &self.certificates.authority
    }

    /// The certificate of its administrator (`O=system:masters`).
    pub fn client_cert_pem(&self) -> &str {
        &self.certificates.admin.certificate
    }

    /// The private key of its administrator.
    pub fn client_key_pem(&self) -> &str {
        &self.certificates.admin.key
    }

    /// `kubectl` as the administrator of this server; add arguments and run it. It reads and writes nothing in the
    /// user's home.
    pub fn kubectl(&self) -> Command {
        self.launch.kubectl()
    }

    /// The folder with its logs, data and certificates.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The number of the process of `kube-apiserver`; a new one after each [`ApiServer::restart`].
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The number of the process of etcd.
    pub fn etcd_pid(&self) -> u32 {
        self.etcd.pid()
    }

    /// Asks `kube-apiserver` to end, as a rolling update does, and kills it when it has not after ten seconds. Etcd
    /// goes on.
    pub fn stop(&self) -> Result<(), Error> {
        Ok(self.server.terminate(STOP_LIMIT).map(drop)?)
    }

    /// Kills `kube-apiserver` where it is, as a power cut does. Etcd goes on.
    pub fn kill(&self) -> Result<(), Error> {
        Ok(self.server.kill().map(drop)?)
    }

    /// Starts `kube-apiserver` again on the same address and the same data, and waits until it is ready. One that still
    /// runs is killed first.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill()?;
        self.server = self.launch.start_server()?;
        self.wait_until_ready()
    }

    /// Stops `kube-apiserver` in its tracks: connections stay open and nothing answers.
    pub fn pause(&self) -> Result<(), Error> {
        Ok(self.server.pause()?)
    }

    /// Lets a paused server go on.
    pub fn resume(&self) -> Result<(), Error> {
        Ok(self.server.resume()?)
    }

    /// The last lines of both logs, for messages.
    pub fn log_tails(&self) -> String {
        let tail = |process: &Process| format!("--- {}\n{}\n", process.name(), process.log_tail(TAIL_LINES));
        format!("{}{}", tail(&self.etcd), tail(&self.server))
    }

    fn try_start(parts: &Parts, options: &Options) -> Result<Self, Error> {
        let scratch = Scratch::new("api-server")?;
        let certificates = Certificates::generate().context(CertificatesSnafu)?;
        let [port, client, peer] = three_ports()?;
        let launch = Launch::prepare(parts, options, scratch.path(), &certificates, port, etcd::Ports { client, peer })
            .with_context(|_| WriteSnafu { path: scratch.path() })?;
        let store = parts.etcd.command(&launch.files.etcd_data(), launch.etcd).map_err(super::Error::from)?;
        let etcd = Process::spawn(store, "etcd", launch.files.etcd_log())?;
        // The server waits for its store by itself, so both start at the same time.
        let server = launch.start_server()?;
        let started = Self { server, etcd, launch, certificates, scratch };
        started.wait_until_ready()?;
        started.install_dns_endpoint()?;
        Ok(started)
    }

    /// Waits until `/readyz` says so, which it does when every part of the server has started. Gives up early when one
    /// of the processes has ended.
    fn wait_until_ready(&self) -> Result<(), Error> {
        let outcome = wait::until_every(READY_LIMIT, ASK_EVERY, || match self.ended() {
            Some(error) => Some(Err(error)),
            None => self.launch.is_ready().then_some(Ok(())),
        });
        outcome.unwrap_or_else(|| NotReadySnafu { tail: self.server.log_tail(TAIL_LINES) }.fail())
    }

    fn ended(&self) -> Option<Error> {
        [&self.etcd, &self.server].into_iter().find_map(|process| {
            let status = process.status()?;
            Some(EndedSnafu { name: process.name(), status, tail: process.log_tail(TAIL_LINES) }.build())
        })
    }

    /// Makes the custom resource of external-dns known, and waits until its objects can be made.
    fn install_dns_endpoint(&self) -> Result<(), Error> {
        let call = |arguments: &[&str]| {
            let mut kubectl = self.kubectl();
            kubectl.args(arguments).arg(format!("--filename={}", self.launch.files.dns_endpoint().display()));
            process::run(kubectl, "kubectl", &self.launch.files.kubectl_log(), CALL_LIMIT).context(InstallSnafu)
        };
        call(&["create", "--validate=false"])?;
        established(CALL_LIMIT, &[], call)
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tails());
        }
    }
}

/// The server's own port, and the two of its store.
fn three_ports() -> Result<[u16; 3], ports::Error> {
    let free = ports::free(3)?;
    // `free` gives as many as were asked for; the type does not say so.
    <[u16; 3]>::try_from(free).map_err(|free| ports::Error::Exhausted { wanted: 3, found: free.len(), range: 0..0 })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_start_is_tried_again_only_when_a_port_was_taken() {
        let check = |tail: &str, expect: bool| {
            let error = EndedSnafu { name: "etcd", status: ExitStatus::from_raw(256), tail }.build();
            assert_eq!(error.is_port_taken(), expect, "{tail:?}");
        };
        check("listen tcp 127.0.0.1:15001: bind: address already in use", true);
        check("something\n\"bind: address already in use\"\nexit", true);
        check("unknown flag: --no-such-flag", false);
        check("", false);
        assert!(!NotReadySnafu { tail: "address already in use" }.build().is_port_taken());
    }
}
