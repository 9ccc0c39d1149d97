//! How `kube-apiserver` is started and called: its flags, its address, the `kubectl` that belongs to it.
//!
//! In: the parts, the files, the ports, the options. Out: a process, commands. Must not: own the process, or wait for it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::api_server::Options;
use super::certificates::Certificates;
use super::files::Files;
use super::{Parts, etcd};
use crate::process::{self, Process};

/// The addresses of services; the first one is the `kubernetes` service, which the serving certificate names.
const SERVICE_RANGE: &str = "10.96.0.0/16";

/// Off because it refuses every pod whose service account has not been made, and no controller here makes accounts.
const ALWAYS_OFF: &str = "ServiceAccount";

/// A question to a server that is up takes a tenth of a second; one that is paused never answers.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// What it takes to start `kube-apiserver`, the first time and again.
#[derive(Debug)]
pub(super) struct Launch {
    program: PathBuf,
    kubectl: PathBuf,
    pub(super) files: Files,
    port: u16,
    pub(super) etcd: etcd::Ports,
    options: Options,
}

impl Launch {
    /// Writes the files that the server reads.
    pub(super) fn prepare(
        parts: &Parts,
        options: &Options,
        folder: &Path,
        certificates: &Certificates,
        port: u16,
        etcd: etcd::Ports,
    ) -> io::Result<Self> {
        Ok(Self {
            program: parts.api_server.clone(),
            kubectl: parts.kubectl.clone(),
            files: Files::write(folder, &url(port), certificates)?,
            port,
            etcd,
            options: options.clone(),
        })
    }

    pub(super) fn url(&self) -> String {
        url(self.port)
    }

    pub(super) fn start_server(&self) -> Result<Process, process::Error> {
        let mut command = Command::new(&self.program);
        command.args(self.flags());
        Process::spawn(command, "kube-apiserver", self.files.server_log())
    }

    fn flags(&self) -> Vec<String> {
        let path = |flag: &str, path: PathBuf| format!("--{flag}={}", path.display());
        let admission_off: Vec<&str> =
            [ALWAYS_OFF].into_iter().chain(self.options.admission_off.iter().map(String::as_str)).collect();
        let mut flags = vec![
            format!("--etcd-servers={}", self.etcd.client_url()),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.port),
            // Loopback is no address that the cluster's endpoints may name, and there is no cluster.
            "--advertise-address=127.0.0.1".into(),
            "--endpoint-reconciler-type=none".into(),
            path("tls-cert-file", self.files.server_certificate()),
            path("tls-private-key-file", self.files.server_key()),
            path("client-ca-file", self.files.authority()),
            path("service-account-key-file", self.files.service_account_public_key()),
            path("service-account-signing-key-file", self.files.service_account_key()),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            "--authorization-mode=Node,RBAC".into(),
            "--allow-privileged=true".into(),
            // Webhooks are called at the addresses of their endpoints: nothing here routes service addresses.
            "--enable-aggregator-routing=true".into(),
            format!("--disable-admission-plugins={}", admission_off.join(",")),
        ];
        flags.extend(self.options.flags.iter().cloned());
        flags
    }

    pub(super) fn kubectl(&self) -> Command {
        let mut kubectl = Command::new(&self.kubectl);
        kubectl
            .env("KUBECONFIG", self.files.kubeconfig())
            .env("KUBECACHEDIR", self.files.kubectl_cache())
            .env("KUBERC", "off");
        kubectl
    }

    /// Whether the server says that it is ready. The plain connection comes first because it costs nothing while
    /// nobody listens.
    pub(super) fn is_ready(&self) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        if TcpStream::connect_timeout(&address, ASK_LIMIT).is_err() {
            return false;
        }
        let mut kubectl = self.kubectl();
        kubectl.args(["get", "--raw=/readyz"]);
        process::run(kubectl, "kubectl", &self.files.kubectl_log(), ASK_LIMIT).is_ok()
    }
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn launch(folder: &Folder, options: &Options) -> Launch {
        let parts = Parts { etcd: etcd::Etcd::at("/etcd"), api_server: "/server".into(), kubectl: "/kubectl".into() };
        let certificates = Certificates::generate().unwrap();
        let store = etcd::Ports { client: 2, peer: 3 };
        Launch::prepare(&parts, options, folder.path(), &certificates, 1, store).unwrap()
    }

    fn check(options: &Options, flag: &str) {
        let flags = launch(&Folder::new(), options).flags();
        assert!(flags.iter().any(|given| given == flag), "{flag} is missing: {flags:?}");
    }

    #[test]
    fn the_server_listens_on_loopback_with_access_control_on_its_own_store() {
        let plain = Options::default();
        check(&plain, "--bind-address=127.0.0.1");
        check(&plain, "--secure-port=1");
        check(&plain, "--etcd-servers=http://127.0.0.1:2");
        check(&plain, "--authorization-mode=Node,RBAC");
        check(&plain, "--disable-admission-plugins=ServiceAccount");
    }

    #[test]
    fn options_add_to_what_is_always_there_and_flags_come_last() {
        let options = Options::default().admission_off("ResourceQuota").flag("--event-ttl=1m").flag("--v=4");
        check(&options, "--disable-admission-plugins=ServiceAccount,ResourceQuota");
        let flags = launch(&Folder::new(), &options).flags();
        assert_eq!(flags[flags.len() - 2..], ["--event-ttl=1m", "--v=4"]);
    }

    #[test]
    fn kubectl_keeps_out_of_the_home_of_the_user() {
        let folder = Folder::new();
        let kubectl = launch(&folder, &Options::default()).kubectl();
        for variable in ["KUBECONFIG", "KUBECACHEDIR"] {
            let value = kubectl.get_envs().find(|(name, _)| *name == variable).and_then(|(_, value)| value);
            assert!(value.is_some_and(|path| Path::new(path).starts_with(folder.path())), "{variable}: {value:?}");
        }
        let preferences = kubectl.get_envs().find(|(name, _)| *name == "KUBERC").and_then(|(_, value)| value);
        assert_eq!(preferences, Some("off".as_ref()));
    }

    #[test]
    fn a_server_that_nobody_started_is_not_ready() {
        let folder = Folder::new();
        let mut launch = launch(&folder, &Options::default());
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        launch.port = listener.local_addr().unwrap().port();
        drop(listener);
        assert!(!launch.is_ready());
    }
}
