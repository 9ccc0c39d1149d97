//! A kubelet in small: runs the containers of a drawn pod as processes, each in a root of its own.
//!
//! In: a pod's spec, the Secrets and `ConfigMap`s that it names. Out: processes with exactly the words and variables that
//! were drawn. Must not: add a variable, or make a path that the pod does not mount: what is missing in the drawing is
//! missing here.
//!
//! Three things differ from a node. A container's root is a folder whose mount points are links, so every absolute path in
//! words, variables and the option file gets that folder before it. The pod's network is one loopback address, so "every
//! address" becomes that one. And the server's image is the testbed's, so `mysqld` becomes the words that run it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_local::supervisor::MysqlPrograms;
use bloodraven_testbed::mysql::Distribution;
use bloodraven_testbed::ports;
use bloodraven_testbed::process::{self, Process};
use bloodraven_testbed::scratch::Scratch;
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};

/// The files of a Secret or `ConfigMap`, by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What a pod's volumes are filled with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) secrets: BTreeMap<String, Files>,
    pub(crate) config_maps: BTreeMap<String, Files>,
}

/// A pod on its node.
pub(crate) struct Pod {
    pub(crate) address: Ipv4Addr,
    pub(crate) uid: String,
    spec: PodSpec,
    folder: PathBuf,
    namespace: String,
}

impl Pod {
    /// Fills the volumes. The claim's folder is that of the node, so that pods follow each other on one volume.
    pub(crate) fn place(node: &Scratch, uid: &str, spec: PodSpec, namespace: &str, cluster: &Cluster) -> Self {
        let folder = node.path().join(uid);
        for volume in spec.volumes.iter().flatten() {
            let at = folder.join("v").join(&volume.name);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            match fill(volume, cluster) {
                Content::Claim(name) => {
                    let claim = node.path().join(name);
                    std::fs::create_dir_all(&claim).unwrap();
                    symlink(claim, at).unwrap();
                }
                Content::Files(files) => write(&at, &files),
            }
        }
        let pod = Self { address: free_address(), uid: uid.to_owned(), spec, folder, namespace: namespace.to_owned() };
        for container in pod.containers() {
            pod.mount(container);
        }
        pod.move_options();
        pod
    }

    fn containers(&self) -> impl Iterator<Item = &Container> {
        self.spec.init_containers.iter().flatten().chain(&self.spec.containers)
    }

    pub(crate) fn container(&self, name: &str) -> &Container {
        self.containers().find(|it| it.name == name).unwrap()
    }

    fn root(&self, container: &str) -> PathBuf {
        self.folder.join(container)
    }

    /// Where a path of a container is here.
    pub(crate) fn path(&self, container: &str, path: &str) -> PathBuf {
        self.root(container).join(path.trim_start_matches('/'))
    }

    /// A volume's folder.
    pub(crate) fn volume(&self, name: &str) -> PathBuf {
        self.folder.join("v").join(name)
    }

    /// Mount points are links. What lies below a volume's folder of its own is made by the container that ran before.
    fn mount(&self, container: &Container) {
        for mount in container.volume_mounts.iter().flatten() {
            let (point, volume) = (self.path(&container.name, &mount.mount_path), self.volume(&mount.name));
            assert!(volume.exists(), "{}: no volume {}", container.name, mount.name);
            std::fs::create_dir_all(point.parent().unwrap()).unwrap();
            symlink(mount.sub_path.as_ref().map_or(volume.clone(), |below| volume.join(below)), point).unwrap();
        }
    }

    /// The option file speaks of the server's paths and of every address.
    fn move_options(&self) {
        let file = self.volume("config").join("bloodraven.cnf");
        let line = |line: &str| match line.split_once('=') {
            Some((key, value)) if value.starts_with('/') => {
                format!("{key}={}\n", self.path("mysql", value).display())
            }
            Some(("bind-address", "*")) => format!("bind-address={}\n", self.address),
            _ => format!("{line}\n"),
        };
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.lines().map(line).collect::<String>()).unwrap();
    }

    /// Its variables, as a kubelet finds them.
    pub(crate) fn environment(&self, container: &str) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for variable in self.container(container).env.iter().flatten() {
            let of_pod = variable.value_from.as_ref().map(|it| it.field_ref.as_ref().unwrap().field_path.as_str());
            let value = match of_pod {
                None => variable.value.clone().unwrap_or_default(),
                Some("status.podIP") => self.address.to_string(),
                Some("metadata.uid") => self.uid.clone(),
                Some("metadata.name") => "mysql-orders-iad-0".to_owned(),
                Some("metadata.namespace") => self.namespace.clone(),
                Some(other) => panic!("{}: no field {other}", variable.name),
            };
            all.insert(variable.name.clone(), value);
        }
        all
    }

    /// A container's command, ready to be run.
    fn command(&self, container: &str) -> Command {
        let environment = self.environment(container);
        let mut words: Vec<OsString> = Vec::new();
        for word in self.container(container).command.iter().flatten() {
            let word =
                environment.iter().fold(word.clone(), |it, (name, value)| it.replace(&format!("$({name})"), value));
            assert!(!word.contains("$("), "{container}: {word}");
            match word.as_str() {
                "bloodraven" => words.push(programs::bloodraven().into()),
                "mysqld" => words.extend(Self::server().command),
                _ => words.push(self.mapped(container, &word).into()),
            }
        }
        if container == "mysql" {
            words.extend(Self::server().arguments);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().current_dir(self.root(container));
        command.envs(environment.iter().map(|(name, value)| (name, self.mapped(container, value))));
        command
    }

    fn server() -> MysqlPrograms {
        MysqlPrograms::from_command(&Distribution::shared().unwrap().mysqld())
    }

    /// `/path`, `--option=/path`, `:port`.
    fn mapped(&self, container: &str, word: &str) -> String {
        let place = |path: &str| self.path(container, path).display().to_string();
        match word.split_once('=') {
            _ if word.starts_with('/') => place(word),
            _ if word.starts_with(':') => format!("{}{word}", self.address),
            Some((option, path)) if path.starts_with('/') => format!("{option}={}", place(path)),
            _ => word.to_owned(),
        }
    }

    fn log(&self, container: &str) -> PathBuf {
        self.folder.join(format!("{container}.log"))
    }

    /// What a container has said.
    pub(crate) fn words_of(&self, container: &str) -> String {
        process::tail(&self.log(container), 40)
    }

    /// Runs a container to its end.
    pub(crate) fn run(&self, container: &str) -> Result<(), process::Error> {
        process::run(self.command(container), container, &self.log(container), Duration::from_mins(1))
    }

    /// Starts a container.
    pub(crate) fn start(&self, container: &str) -> Process {
        Process::spawn(self.command(container), container, self.log(container)).unwrap()
    }
}

enum Content {
    Claim(String),
    Files(Files),
}

fn fill(volume: &Volume, cluster: &Cluster) -> Content {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Content::Claim(claim.claim_name.clone());
    }
    if let Some(map) = &volume.config_map {
        return Content::Files(cluster.config_maps.get(&map.name).unwrap().clone());
    }
    let Some(secret) = &volume.secret else {
        assert!(volume.empty_dir.is_some(), "{}: of what?", volume.name);
        return Content::Files(Files::new());
    };
    let name = secret.secret_name.as_deref().unwrap();
    let found = cluster.secrets.get(name).unwrap_or_else(|| panic!("{}: no Secret {name}", volume.name));
    let Some(items) = &secret.items else { return Content::Files(found.clone()) };
    let optional = secret.optional == Some(true);
    let file = |key: &str| {
        let value = found.get(key);
        assert!(value.is_some() || optional, "{}: Secret {name} has no {key}", volume.name);
        value.cloned()
    };
    Content::Files(items.iter().filter_map(|item| Some((item.path.clone(), file(&item.key)?))).collect())
}

pub(crate) fn write(folder: &Path, files: &Files) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

/// A loopback address on which nobody has the ports of a pod.
fn free_address() -> Ipv4Addr {
    let seed = std::process::id();
    let address = |turn: u32| {
        let number = seed.wrapping_mul(7).wrapping_add(turn);
        let byte = |shift: u32| u8::try_from((number >> shift) % 250 + 1).unwrap();
        Ipv4Addr::new(127, 200, byte(8), byte(0))
    };
    let free = |address: &Ipv4Addr| [3306, 33062, 8080].iter().all(|port| ports::is_free(*address, *port).is_ok());
    (0..250).map(address).find(free).expect("an address without servers")
}
