//! The control plane: which programs run on it, with which words.
//!
//! In: programs, certificates, folders, the profile. Out: the children of a plan. Must not: start anything, or know where the
//! programs come from.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::certificates::Certificates;
use super::init::Child;
use super::layout::{API_PORT, Member, SERVICES};
use super::profile::Profile;

/// The children of the control plane, by the names under which they are held and paused.
pub const ETCD: &str = "etcd";
/// The API server.
pub const API_SERVER: &str = "kube-apiserver";
/// The controller manager.
pub const CONTROLLERS: &str = "kube-controller-manager";
/// The scheduler.
pub const SCHEDULER: &str = "kube-scheduler";

/// Where the programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) api_server: PathBuf,
    pub(super) controllers: PathBuf,
    pub(super) scheduler: PathBuf,
}

/// Everything that runs on the control plane; `authorization` is the file that says who decides what is allowed.
pub(super) fn children(
    etcd: &Command,
    programs: &Programs,
    certificates: &Certificates,
    authorization: &Path,
    profile: Profile,
) -> Vec<Child> {
    let words = |program: &Path, flags: Vec<String>| {
        std::iter::once(program.display().to_string()).chain(flags).collect::<Vec<_>>()
    };
    let child = |name: &str, words| Child { name: name.to_owned(), words, after: None };
    let text = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
    let etcd = std::iter::once(etcd.get_program()).chain(etcd.get_args()).map(text).collect();
    vec![
        child(ETCD, etcd),
        child(API_SERVER, words(&programs.api_server, api_server(certificates, authorization, profile))),
        child(CONTROLLERS, words(&programs.controllers, controllers(certificates, profile))),
        child(SCHEDULER, words(&programs.scheduler, own_kubeconfig("scheduler", certificates))),
    ]
}

fn api_server(certificates: &Certificates, authorization: &Path, profile: Profile) -> Vec<String> {
    let file = |name: &str| certificates.file(name);
    let tolerated = profile.toleration_seconds();
    vec![
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        format!("--advertise-address={}", Member::PLANE.address()),
        format!("--secure-port={API_PORT}"),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--kubelet-client-certificate={}", file("apiserver-kubelet.crt")),
        format!("--kubelet-client-key={}", file("apiserver-kubelet.key")),
        format!("--kubelet-certificate-authority={}", file("ca.crt")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--service-cluster-ip-range={SERVICES}"),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", file("service-accounts.key")),
        format!("--authorization-config={}", authorization.display()),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        // Webhooks are called on the addresses of their pods: there is no service proxy beside the API server.
        "--enable-aggregator-routing=true".to_owned(),
        format!("--requestheader-client-ca-file={}", file("ca.crt")),
        "--requestheader-allowed-names=front-proxy".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        format!("--proxy-client-cert-file={}", file("front-proxy.crt")),
        format!("--proxy-client-key-file={}", file("front-proxy.key")),
        format!("--default-not-ready-toleration-seconds={tolerated}"),
        format!("--default-unreachable-toleration-seconds={tolerated}"),
    ]
}

fn controllers(certificates: &Certificates, profile: Profile) -> Vec<String> {
    let file = |name: &str| certificates.file(name);
    let mut flags = own_kubeconfig("controller-manager", certificates);
    flags.extend([
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={}", file("service-accounts.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--cluster-signing-cert-file={}", file("ca.crt")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
        "--allocate-node-cidrs=false".to_owned(),
        format!("--node-monitor-grace-period={}s", profile.grace_seconds()),
        format!("--node-monitor-period={}s", profile.monitor_seconds()),
    ]);
    flags
}

/// What the controller manager and the scheduler have in common: they call the API server under their own names, and nobody
/// calls them. There is one of each, so they need no election.
fn own_kubeconfig(name: &str, certificates: &Certificates) -> Vec<String> {
    let config = certificates.file(&format!("{name}.kubeconfig"));
    let mut flags = vec!["--leader-elect=false".to_owned(), "--bind-address=127.0.0.1".to_owned()];
    let names = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
    flags.extend(names.map(|flag| format!("--{flag}={config}")));
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn every_file_that_a_flag_names_is_there() {
        let folder = Folder::new();
        let certificates = Certificates::make(folder.path()).unwrap();
        for name in ["controller-manager", "scheduler"] {
            certificates.kubeconfig(name, "https://10.10.0.10:6443").unwrap();
        }
        let flags = [
            api_server(&certificates, Path::new("/authorization"), Profile::Fast),
            controllers(&certificates, Profile::Fast),
            own_kubeconfig("scheduler", &certificates),
        ];
        let below = folder.path().display().to_string();
        let named: Vec<String> = flags
            .concat()
            .iter()
            .filter_map(|flag| Some(flag.split_once('=')?.1.to_owned()))
            .filter(|it| it.starts_with(&below))
            .collect();
        assert!(named.len() > 15, "{named:?}");
        for path in named {
            assert!(Path::new(&path).is_file(), "{path}");
        }
    }

    #[test]
    fn the_profile_decides_how_long_a_lost_node_is_waited_for() {
        let folder = Folder::new();
        let certificates = Certificates::make(folder.path()).unwrap();
        let check = |profile, grace: &str, tolerated: &str| {
            assert!(controllers(&certificates, profile).contains(&format!("--node-monitor-grace-period={grace}")));
            let flag = format!("--default-unreachable-toleration-seconds={tolerated}");
            assert!(api_server(&certificates, Path::new("/authorization"), profile).contains(&flag));
        };
        check(Profile::Fast, "10s", "10");
        check(Profile::Default, "50s", "300");
    }
}
