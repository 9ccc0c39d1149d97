//! The plan of a site: its folders, its programs, their words and their environment.
//!
//! In: the group's object, the network, the programs. Out: commands for keeper and sidecar as a pod would have them, each
//! reaching others through its own links. Must not: put a secret into a word or a variable, or change data that is there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use bloodraven_api::GoDuration;
use bloodraven_api::group::{Durability, ReplicationSpec};
use bloodraven_blueprint::objects::server_ids;
use serde_json::Value;
use snafu::{OptionExt as _, ResultExt as _};

use super::container::{Backoff, Container};
use super::mysqld::{ServerFiles, configuration};
use super::site::POD_VARIABLE;
use super::{DataSnafu, Error, FileSnafu, NoAddressSnafu, Programs, StoreSnafu, Wipe};
use crate::files;
use crate::network::{End, Network, Service};
use crate::store::object::Object;
use crate::store::{Store, secrets};

/// See above.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) site: String,
    pub(super) folder: PathBuf,
    /// Sockets live here: their paths must be short.
    pub(super) run: PathBuf,
    pub(super) network: Network,
    pub(super) programs: Programs,
    pub(super) template: Option<PathBuf>,
    pub(super) backoff: Backoff,
    pub(super) secrets: PathBuf,
    pub(super) log_level: String,
}

/// What a new pod is made of.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) uid: String,
    /// A digest of what its server is configured with.
    pub(super) conf: String,
    group: String,
    namespace: String,
    group_uid: String,
    peer_check: String,
}

impl Plan {
    /// Makes the folders, fills an empty data folder from the template, writes the server's configuration, and draws the
    /// pod's name.
    pub(super) fn prepare(&self, store: &Store) -> Result<Prepared, Error> {
        let site = &self.site;
        let object = store.read_group().context(StoreSnafu { site })?;
        for folder in [self.data(), self.state(), self.logs(), self.run.clone()] {
            files::private_folder(&folder).context(FileSnafu { site })?;
        }
        self.claim(&object)?;
        self.fill().context(DataSnafu { site })?;
        let ip = self.network.ip(site).context(NoAddressSnafu { site })?;
        let files = ServerFiles { data: self.data(), run: self.run.clone() };
        let names: Vec<String> = object.sites().into_iter().map(|(name, _)| name).collect();
        let server_id = server_id(object.name(), site, &names);
        let text = configuration(&files, ip, server_id, semi_sync(&object), &own_settings(&object));
        files::replace(&self.my_cnf(), text.as_bytes()).context(FileSnafu { site })?;
        let peer_check = object.text("/spec/sidecar/peerCheckInterval");
        Ok(Prepared {
            uid: secrets::uuid().context(StoreSnafu { site })?,
            conf: conf_digest(&object),
            group: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
            group_uid: object.uid().to_owned(),
            peer_check: if peer_check.is_empty() { "5s".to_owned() } else { peer_check.to_owned() },
        })
    }

    /// The container that keeps the server.
    pub(super) fn keeper(&self, pod: &Prepared) -> Container {
        let (plan, pod) = (self.clone(), pod.clone());
        let log = self.logs().join("mysql.log");
        Container::new(format!("keeper of {}", self.site), log, self.backoff, move || plan.keeper_command(&pod))
    }

    /// The sidecar's container.
    pub(super) fn sidecar(&self, pod: &Prepared) -> Container {
        let (plan, pod) = (self.clone(), pod.clone());
        let log = self.logs().join("sidecar.log");
        Container::new(format!("sidecar of {}", self.site), log, self.backoff, move || plan.sidecar_command(&pod))
    }

    fn keeper_command(&self, pod: &Prepared) -> Command {
        let mut command = Command::new(&self.programs.keeper);
        let option = |name: &str, path: &Path| [OsString::from(name), path.as_os_str().to_owned()];
        command
            .args(option("--socket", &self.socket()))
            .args(option("--state-dir", &self.state()))
            .args(option("--run-dir", &self.run))
            .args(option("--datadir", &self.data()))
            .args(option("--credentials-dir", &self.secrets))
            // Everyone on this machine comes from there, whatever address is called.
            .args(["--opener-host", "127.0.0.1", "--"])
            .args(self.programs.mysql.with_file(&self.my_cnf()))
            .current_dir(&self.folder)
            .env(POD_VARIABLE, &pod.uid);
        command
    }

    fn sidecar_command(&self, pod: &Prepared) -> Command {
        let mut command = Command::new(&self.programs.bloodraven);
        command.arg("sidecar").current_dir(&self.folder).envs(self.sidecar_environment(pod));
        command
    }

    /// What a sidecar is told: contract section 7.
    fn sidecar_environment(&self, pod: &Prepared) -> BTreeMap<&'static str, OsString> {
        let me = End::Site(self.site.clone());
        let text = |address: Option<std::net::SocketAddr>| address.map(|it| it.to_string()).unwrap_or_default();
        let peer = |name: &str| {
            let address = self.network.link_address(&me, &End::Site(name.to_owned()), Service::Sidecar)?;
            (name != self.site).then(|| format!("{name}={address}"))
        };
        let peers: Vec<String> = self.network.sites().filter_map(peer).collect();
        let ip = self.network.ip(&self.site).map(|ip| ip.to_string()).unwrap_or_default();
        BTreeMap::from([
            ("MY_SITE", self.site.clone().into()),
            ("FAILOVER_GROUP", pod.group.clone().into()),
            ("POD_NAMESPACE", pod.namespace.clone().into()),
            ("GROUP_UID", pod.group_uid.clone().into()),
            ("MY_POD_NAME", format!("mysql-{}-{}", pod.group, self.site).into()),
            (POD_VARIABLE, pod.uid.clone().into()),
            ("POD_IP", ip.clone().into()),
            // Both ways in: at 127.0.0.1 there may be another server of this machine.
            ("MYSQL_HOST", ip.into()),
            ("PEER_ADDRESSES", peers.join(",").into()),
            ("BLOODRAVEN_ADDRESS", text(self.network.operators_address(&self.site)).into()),
            ("PEER_CHECK_INTERVAL", pod.peer_check.clone().into()),
            ("MYSQL_CREDENTIALS_DIR", self.secrets.join("operator").into_os_string()),
            ("AUTHORITY_KEY_FILE", self.secrets.join("hmac.key").into_os_string()),
            ("STATE_DIR", self.state().into_os_string()),
            ("KEEPER_SOCKET", self.socket().into_os_string()),
            ("LISTEN_ADDR", text(self.network.address(&me, Service::Sidecar)).into()),
            ("LOG_LEVEL", self.log_level.clone().into()),
        ])
    }

    /// Takes the data away; only while no pod is there.
    pub(super) fn wipe(&self, wipe: Wipe) -> io::Result<()> {
        super::site::empty(&self.data())?;
        if wipe == Wipe::Volume {
            super::site::empty(&self.state())?;
            match std::fs::remove_file(self.claim_path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes who made this volume, once.
    fn claim(&self, object: &Object) -> Result<(), Error> {
        let (site, path) = (&self.site, self.claim_path());
        if files::read(&path).context(FileSnafu { site })?.is_none() {
            files::replace(&path, object.uid().as_bytes()).context(FileSnafu { site })?;
        }
        Ok(())
    }

    /// An empty data folder becomes a copy of the template, without its identity, and with the marks of a first boot that
    /// was finished.
    fn fill(&self) -> io::Result<()> {
        let data = self.data();
        let begun = self.state().join("init-started").exists();
        let Some(template) = self.template.as_ref().filter(|_| !begun) else { return Ok(()) };
        if std::fs::read_dir(&data)?.next().is_some() {
            return Ok(());
        }
        std::fs::write(self.state().join("init-started"), b"")?;
        copy(template, &data)?;
        match std::fs::remove_file(data.join("auto.cnf")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::write(self.state().join("init-done"), b"")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn my_cnf(&self) -> PathBuf {
        self.folder.join("my.cnf")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.run.join("keeper.sock")
    }

    fn claim_path(&self) -> PathBuf {
        self.folder.join(CLAIM)
    }
}

/// The file of a site's folder that names the group that made it.
pub(crate) const CLAIM: &str = "made-by";

/// `spec.mysqlConf`.
fn own_settings(object: &Object) -> BTreeMap<String, String> {
    let fields = object.value.pointer("/spec/mysqlConf").and_then(Value::as_object);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    fields.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// How long a commit waits for a receipt, where it does.
fn semi_sync(object: &Object) -> Option<GoDuration> {
    let said = object.value.pointer("/spec/replication").cloned();
    let replication: ReplicationSpec = said.and_then(|said| serde_json::from_value(said).ok()).unwrap_or_default();
    (replication.durability == Durability::SemiSync).then_some(replication.semi_sync_timeout)
}

/// A digest of what makes a pod's server what it is; a pod with another one is not what the spec wants.
pub(crate) fn conf_digest(object: &Object) -> String {
    let durability = object.text("/spec/replication/durability");
    let all: Vec<String> = own_settings(object).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{:08x}", fnv(&format!("{durability}\n{}", all.join("\n"))))
}

/// The server id of a site, chosen as in a cluster.
pub(super) fn server_id(group: &str, site: &str, sites: &[String]) -> u32 {
    let names: Vec<&str> = sites.iter().map(String::as_str).chain([site]).collect();
    server_ids(group, &names, &BTreeMap::new()).get(site).copied().unwrap_or(1)
}

/// 32-bit FNV-1a.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Copies a folder with everything in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        std::fs::create_dir_all(to.join(&below))?;
        for found in std::fs::read_dir(from.join(&below))? {
            let found = found?;
            let path = below.join(found.file_name());
            if found.file_type()?.is_dir() {
                folders.push(path);
            } else {
                std::fs::copy(found.path(), to.join(path))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_ids_are_the_contracts_and_never_clash() {
        assert_eq!(fnv(""), 0x811c_9dc5);
        assert_eq!(fnv("a"), 0xe40c_292c);
        let sites = ["iad", "pdx", "fra"].map(ToOwned::to_owned);
        let ids: Vec<u32> = sites.iter().map(|site| server_id("orders", site, &sites)).collect();
        assert_eq!(ids[0], fnv("orders/iad"));
        let again = ["fra", "iad", "pdx"].map(ToOwned::to_owned);
        assert_eq!(ids[1], server_id("orders", "pdx", &again), "list order never matters");
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }
}
