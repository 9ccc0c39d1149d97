//! What the pod's containers see: the site's volume, memory, configuration, Secrets.
//!
//! In: a plan, a site. Out: volumes. Must not: put a password anywhere but into a file, or give an account a folder that
//! would be empty: the keeper takes a folder for an account.

use bloodraven_api::names as object_names;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, KeyToPath, PersistentVolumeClaimVolumeSource, SecretVolumeSource,
    Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::super::plan::OperatorAccount;
use super::super::secret::operator_account_name;
use super::super::{Plan, SitePlan};
use super::{CREDENTIALS_DIR, security};

/// Volumes that containers of the user cannot have: the signing key, and the keeper's socket.
pub const PRIVATE_VOLUMES: &[&str] = &["authority", "run"];

/// The keeper's binary, its socket and an init file take little; a runaway file must not take the node's memory.
const RUN_SIZE: &str = "64Mi";

/// An account that the pod gets as files.
pub(super) struct Account {
    role: &'static str,
    secret: String,
    /// Key in the Secret, name of the file.
    items: &'static [(&'static str, &'static str)],
    optional: bool,
}

impl Account {
    /// The name of its volume.
    fn volume(&self) -> String {
        format!("creds-{}", self.role)
    }

    /// Where it is seen.
    pub(super) fn mount(&self) -> VolumeMount {
        read_only(&self.volume(), &format!("{CREDENTIALS_DIR}/{}", self.role))
    }

    /// Whether the sidecar has to know it: it logs in as the operator, and leaves sessions of the others alone.
    pub(super) fn is_for_sidecar(&self) -> bool {
        ["operator", "replication", "monitor", "backup"].contains(&self.role)
    }
}

const BOTH: &[(&str, &str)] = &[("password", "password"), ("username", "username")];
const REPLICATION: &[(&str, &str)] =
    &[("MYSQL_REPLICATION_PASSWORD", "password"), ("MYSQL_REPLICATION_USER", "username")];
const ROOT: &[(&str, &str)] = &[("MYSQL_ROOT_PASSWORD", "password")];

/// The accounts of a group, in the order of the keeper.
pub(super) fn accounts(plan: &Plan<'_>) -> Vec<Account> {
    let spec = plan.spec();
    let credentials = spec.credentials.as_ref();
    let main = credentials.map_or(spec.secret_name.as_str(), |credentials| &credentials.operator_secret);
    let account = |role, secret: &str, items| Account { role, secret: secret.to_owned(), items, optional: false };
    let operator = match plan.surroundings().operator_account {
        OperatorAccount::Keys => main.to_owned(),
        OperatorAccount::Dsn => operator_account_name(plan.name()),
    };
    let mut all = vec![account("operator", &operator, BOTH)];
    if let Some(credentials) = credentials {
        let roles = [
            ("app", &credentials.app_secret),
            ("readonly", &credentials.read_only_secret),
            ("monitor", &credentials.monitor_secret),
            ("backup", &credentials.backup_secret),
        ];
        all.extend(roles.iter().filter_map(|(role, secret)| Some(account(role, secret.as_deref()?, BOTH))));
    }
    if plan.surroundings().replication_account {
        all.push(account("replication", main, REPLICATION));
    }
    // An initialised volume needs none.
    all.push(Account { optional: true, ..account("root", main, ROOT) });
    all
}

pub(super) fn volumes(plan: &Plan<'_>, site: &SitePlan<'_>) -> Vec<Volume> {
    let claim = PersistentVolumeClaimVolumeSource {
        claim_name: object_names::site_data(plan.name(), site.name()),
        read_only: None,
    };
    let config = ConfigMapVolumeSource {
        name: object_names::site_config(plan.name(), site.name()),
        ..ConfigMapVolumeSource::default()
    };
    let memory =
        EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit: Some(Quantity(RUN_SIZE.to_owned())) };
    let mut all = vec![
        Volume { persistent_volume_claim: Some(claim), ..named("data") },
        Volume { empty_dir: Some(EmptyDirVolumeSource::default()), ..named("conf") },
        Volume { config_map: Some(config), ..named("config") },
        Volume { empty_dir: Some(memory), ..named("run") },
    ];
    let secret = |name: &str, secret: &str| Volume { secret: Some(whole_secret(plan, secret)), ..named(name) };
    all.extend(plan.spec().tls.as_ref().map(|tls| secret("tls", &tls.secret_name)));
    all.extend(accounts(plan).iter().map(|account| account_volume(plan, account)));
    all.push(secret("authority", &object_names::authority(plan.name())));
    all
}

/// Names of all volumes of a pod of the group.
pub(crate) fn names(plan: &Plan<'_>) -> Vec<String> {
    let site = plan.sites().first();
    site.map(|site| volumes(plan, site).into_iter().map(|volume| volume.name).collect()).unwrap_or_default()
}

fn account_volume(plan: &Plan<'_>, account: &Account) -> Volume {
    let item = |(key, path): &(&str, &str)| KeyToPath { key: (*key).into(), path: (*path).into(), mode: None };
    let source = SecretVolumeSource {
        items: Some(account.items.iter().map(item).collect()),
        optional: account.optional.then_some(true),
        ..whole_secret(plan, &account.secret)
    };
    Volume { secret: Some(source), ..named(&account.volume()) }
}

fn whole_secret(plan: &Plan<'_>, name: &str) -> SecretVolumeSource {
    SecretVolumeSource {
        secret_name: Some(name.to_owned()),
        default_mode: Some(security::secret_mode(plan)),
        ..SecretVolumeSource::default()
    }
}

fn named(name: &str) -> Volume {
    Volume { name: name.to_owned(), ..Volume::default() }
}

pub(super) fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

pub(super) fn read_only(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { read_only: Some(true), ..mount(volume, path) }
}

/// A folder of the site's volume. Data and memory are side by side, so that a copy of the data is never another sidecar.
pub(super) fn folder(name: &str, path: &str) -> VolumeMount {
    VolumeMount { sub_path: Some(name.to_owned()), ..mount("data", path) }
}
