//! A node: its programs, their configuration, and the file system that they see.
//!
//! In: a machine, the tools, the programs, the certificates, folders, the profile. Out: a plan. Must not: start anything.
//!
//! Programs keep their usual paths, because each node has a file system of its own. The cluster's folder and the programs
//! are seen under the same path as outside.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::certificates::Certificates;
use super::cgroups;
use super::images::PAUSE;
use super::init::{Bind, Child, Plan, Root};
use super::layout::{DNS_SERVICE, DOMAIN, Member, PODS};
use super::profile::Profile;
use super::tools::Tools;

/// The children of a node.
pub const CONTAINERD: &str = "containerd";
/// The agent of the API server.
pub const KUBELET: &str = "kubelet";
/// The service proxy.
pub const PROXY: &str = "kube-proxy";

/// Where containerd listens, inside.
const SOCKET: &str = "/run/containerd/containerd.sock";

/// Settings that belong to the whole machine. The kubelet insists on these values; it finds them in files of the node's own.
const SHADOWED: [(&str, &str); 5] = [
    ("/proc/sys/kernel/panic", "10\n"),
    ("/proc/sys/kernel/panic_on_oops", "1\n"),
    ("/proc/sys/kernel/keys/root_maxkeys", "1000000\n"),
    ("/proc/sys/kernel/keys/root_maxbytes", "25000000\n"),
    ("/proc/sys/vm/overcommit_memory", "1\n"),
];

/// The Kubernetes programs of a node.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) kubelet: PathBuf,
    pub(super) proxy: PathBuf,
}

/// What all nodes of a cluster have in common.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) tools: Tools,
    /// The folder of the cluster: everything of a node is below it.
    pub(super) folder: PathBuf,
    pub(super) logs: PathBuf,
    pub(super) profile: Profile,
}

impl Common {
    /// The folder of one machine.
    pub(super) fn home(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A machine that runs containerd and nothing else: images are imported with it.
    pub(super) fn importer(&self, cgroups: Vec<PathBuf>) -> Plan {
        self.plan("importer", cgroups, &[], vec![containerd()], BTreeMap::new())
    }

    /// A whole node.
    pub(super) fn node(
        &self,
        node: Member,
        cgroups: Vec<PathBuf>,
        programs: &Programs,
        certificates: &Certificates,
    ) -> Plan {
        let name = node.name();
        let children = vec![containerd(), kubelet(node, &programs.kubelet, certificates), proxy(name, &programs.proxy)];
        let files = BTreeMap::from([
            ("/etc/cni/net.d/10-cluster.conflist".to_owned(), cni(&node.pods().unwrap_or_default())),
            ("/etc/kubernetes/kubelet.json".to_owned(), kubelet_config(name, certificates, self.profile).to_string()),
            ("/etc/kubernetes/kube-proxy.json".to_owned(), proxy_config(name, certificates).to_string()),
        ]);
        self.plan(name, cgroups, &[&programs.kubelet, &programs.proxy], children, files)
    }

    fn plan(
        &self,
        name: &str,
        cgroups: Vec<PathBuf>,
        programs: &[&Path],
        children: Vec<Child>,
        files: BTreeMap<String, String>,
    ) -> Plan {
        let home = self.home(name);
        let seen = |path: &Path, writable| Bind { from: path.to_owned(), to: path.to_owned(), writable };
        let mut binds = vec![
            Bind { from: self.tools.usr(), to: "/usr".into(), writable: false },
            seen(&self.folder, true),
            seen(&self.logs, true),
            Bind { from: home.join("lib"), to: "/var/lib".into(), writable: true },
            Bind { from: home.join("log"), to: "/var/log".into(), writable: true },
        ];
        binds.extend(programs.iter().map(|program| seen(program, false)));
        let shadowed = SHADOWED.map(|(path, value)| (path.to_owned(), value.to_owned())).into();
        let mut all_files = common_files(name);
        all_files.extend(files);
        Plan {
            name: name.to_owned(),
            cgroups,
            root: Some(Root {
                at: home.join("root"),
                binds,
                controllers: cgroups::CONTROLLERS.map(str::to_owned).to_vec(),
                files: all_files,
                shadowed,
            }),
            control: home.join("control"),
            logs: self.logs.join(name),
            children,
        }
    }
}

fn common_files(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("/etc/passwd".to_owned(), "root:x:0:0:root:/root:/bin/sh\n".to_owned()),
        ("/etc/group".to_owned(), "root:x:0:\n".to_owned()),
        ("/etc/hosts".to_owned(), format!("127.0.0.1 localhost\n127.0.1.1 {name}\n")),
        ("/etc/resolv.conf".to_owned(), String::new()),
        ("/etc/nsswitch.conf".to_owned(), "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
        ("/etc/os-release".to_owned(), "ID=debian\nPRETTY_NAME=\"Bloodraven testbed node\"\n".to_owned()),
        ("/etc/containerd/config.toml".to_owned(), containerd_config()),
    ])
}

fn containerd() -> Child {
    let words = ["/usr/bin/containerd", "--config", "/etc/containerd/config.toml"].map(str::to_owned).to_vec();
    Child { name: CONTAINERD.into(), words, after: None }
}

/// `restrict_oom_score_adj`: root here may lack the right to make a process less likely to be killed, and no sandbox would
/// start.
fn containerd_config() -> String {
    let cri = r#"plugins."io.containerd.grpc.v1.cri""#;
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{SOCKET}"

[{cri}]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true

[{cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false

[{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/etc/cni/net.d"
"#
    )
}

/// Point-to-point interfaces, no bridge: pure routing, so services and pods that call themselves need nothing else.
fn cni(pods: &str) -> String {
    let ipam = json!({"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]});
    let plugins = json!([
        {"type": "ptp", "ipMasq": false, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]);
    json!({"cniVersion": "0.4.0", "name": "cluster", "plugins": plugins}).to_string()
}

fn kubelet(node: Member, program: &Path, certificates: &Certificates) -> Child {
    let name = node.name();
    let words = vec![
        program.display().to_string(),
        "--config=/etc/kubernetes/kubelet.json".to_owned(),
        format!("--kubeconfig={}", certificates.file(&format!("{name}.kubeconfig"))),
        format!("--hostname-override={name}"),
        format!("--node-ip={}", node.address()),
        format!("--node-labels=topology.kubernetes.io/zone={name},topology.kubernetes.io/region={name}"),
    ];
    Child { name: KUBELET.into(), words, after: Some(SOCKET.into()) }
}

fn kubelet_config(name: &str, certificates: &Certificates, profile: Profile) -> Value {
    let seconds = |number: u32| format!("{number}s");
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "cgroupsPerQOS": true,
        "failSwapOn": false,
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": certificates.file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": certificates.file(&format!("{name}.crt")),
        "tlsPrivateKeyFile": certificates.file(&format!("{name}.key")),
        "nodeStatusUpdateFrequency": seconds(profile.status_seconds()),
        "nodeStatusReportFrequency": seconds(profile.status_seconds()),
        "nodeLeaseDurationSeconds": profile.lease_seconds(),
        // Images cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.inodesFree": "1%",
        },
    });
    if profile == Profile::Fast
        && let Some(fields) = config.as_object_mut()
    {
        fields.insert("featureGates".into(), json!({"KubeletCrashLoopBackOffMax": true}));
        fields.insert("crashLoopBackOff".into(), json!({"maxContainerRestartPeriod": "2s"}));
    }
    config
}

fn proxy(name: &str, program: &Path) -> Child {
    let words = vec![
        program.display().to_string(),
        "--config=/etc/kubernetes/kube-proxy.json".to_owned(),
        format!("--hostname-override={name}"),
    ];
    Child { name: PROXY.into(), words, after: None }
}

/// The limits of connection tracking belong to the whole machine: zero leaves them alone.
fn proxy_config(name: &str, certificates: &Certificates) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "hostnameOverride": name,
        "clientConnection": {"kubeconfig": certificates.file("kube-proxy.kubeconfig")},
        "mode": "iptables",
        "clusterCIDR": PODS,
        "healthzBindAddress": "",
        "metricsBindAddress": "",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn plan(profile: Profile) -> (Folder, Plan) {
        let folder = Folder::new();
        let certificates = Certificates::make(&folder.path().join("certificates")).unwrap();
        let common = Common {
            tools: Tools::at("/cache/tools"),
            folder: folder.path().to_owned(),
            logs: "/scratch/logs".into(),
            profile,
        };
        let programs = Programs { kubelet: "/cache/kubelet".into(), proxy: "/cache/kube-proxy".into() };
        let plan = common.node(Member::node("pdx").unwrap(), vec!["/sys/x".into()], &programs, &certificates);
        (folder, plan)
    }

    #[test]
    fn a_node_sees_its_own_folders_its_tools_read_only_and_nothing_else_of_the_host() {
        let (folder, plan) = plan(Profile::Fast);
        let root = plan.root.unwrap();
        let writable: Vec<_> = root.binds.iter().filter(|bind| bind.writable).map(|bind| bind.from.clone()).collect();
        let home = folder.path().join("pdx");
        assert_eq!(writable, [folder.path().to_owned(), "/scratch/logs".into(), home.join("lib"), home.join("log")]);
        assert!(root.binds.iter().any(|bind| bind.to == Path::new("/usr") && !bind.writable));
        assert!(root.shadowed.contains_key("/proc/sys/kernel/panic"));
    }

    #[test]
    fn the_kubelet_waits_for_its_runtime_and_names_its_zone() {
        let (_folder, plan) = plan(Profile::Fast);
        let kubelet = plan.children.iter().find(|child| child.name == KUBELET).unwrap();
        assert_eq!(kubelet.after, Some(SOCKET.into()));
        let zone = "--node-labels=topology.kubernetes.io/zone=pdx,topology.kubernetes.io/region=pdx";
        assert!(kubelet.words.contains(&zone.to_owned()));
        assert!(kubelet.words.contains(&"--node-ip=10.10.0.12".to_owned()));
    }

    #[test]
    fn only_the_fast_profile_restarts_containers_at_once() {
        let config = |profile| {
            let (_folder, plan) = plan(profile);
            let root = plan.root.unwrap();
            serde_json::from_str::<Value>(&root.files["/etc/kubernetes/kubelet.json"]).unwrap()
        };
        assert_eq!(config(Profile::Fast)["crashLoopBackOff"]["maxContainerRestartPeriod"], "2s");
        assert_eq!(config(Profile::Fast)["nodeLeaseDurationSeconds"], 6);
        assert!(config(Profile::Default).get("crashLoopBackOff").is_none());
        assert_eq!(config(Profile::Default)["nodeLeaseDurationSeconds"], 40);
    }

    #[test]
    fn pods_get_addresses_of_their_node() {
        let (_folder, plan) = plan(Profile::Fast);
        let network = &plan.root.unwrap().files["/etc/cni/net.d/10-cluster.conflist"];
        assert!(network.contains("\"subnet\":\"10.244.2.0/24\"") && network.contains("\"type\":\"ptp\""), "{network}");
    }
}
