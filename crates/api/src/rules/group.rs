//! Rules on the group as a whole and on settings that stand alone.
//!
//! In: the group or its spec. Out: the rules. Must not: look inside one site or one subject; the files beside this do.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Rule;
use super::sites::{CANDIDATE, SiteView, has_candidate};
use super::text::{GROUP_NAME, HOST_PORT, HOSTNAME, OBJECT_NAME, PINNED_IMAGE};
use crate::go_duration::GoDuration;
use crate::group::{SplitBrainPolicy, WriteProbeSpec};
use crate::keys;

#[derive(Deserialize)]
struct Root {
    metadata: Name,
    spec: Sites,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Sites {
    sites: Vec<SiteView>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    active_site: String,
    authority: Option<AuthorityView>,
}

#[derive(Deserialize)]
struct AuthorityView {
    holder: Option<HolderView>,
}

#[derive(Deserialize)]
struct HolderView {
    site: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    sites: Vec<SiteView>,
    #[serde(default)]
    secret_name: String,
    credentials: Option<IgnoredAny>,
    #[serde(default)]
    split_brain_policy: SplitBrainPolicy,
    sidecar: Option<MinPeers>,
    init_from_backup: Option<IgnoredAny>,
    restore_in_place: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MinPeers {
    min_peers: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    lease_timeout: GoDuration,
    peer_check_interval: GoDuration,
}

/// The site that may write or may have written last, in CEL.
const HOLDER: &str = "(!has(self.status) ? '' : has(self.status.activeSite) && self.status.activeSite != '' ? \
    self.status.activeSite : has(self.status.authority) && has(self.status.authority.holder) ? \
    self.status.authority.holder.site : '')";

pub(super) fn rules() -> Vec<Rule> {
    [whole_object(), accounts_and_images(), split_brain(), timing()].into_iter().flatten().collect()
}

fn whole_object() -> Vec<Rule> {
    vec![
        Rule::state::<Root>(
            "group-name",
            "",
            GROUP_NAME.cel("self.metadata.name"),
            "metadata.name must begin with a lower case letter and hold only lower case letters, digits and '-'; write e.g. \
             orders",
            |group| GROUP_NAME.holds(&group.metadata.name),
        )
        .pointing_at("metadata.name"),
        Rule::state::<Root>(
            "name-length",
            "",
            "self.spec.sites.all(s, size(self.metadata.name) + size(s.name) <= 40)",
            "metadata.name and each spec.sites[].name together must have at most 40 characters, so that every object name and \
             taint key fits; write a shorter name",
            |group| group.spec.sites.iter().all(|s| group.metadata.name.chars().count() + s.name.chars().count() <= 40),
        ).pointing_at("metadata.name"),
        Rule::change::<Root>(
            "holder-stays",
            "",
            format!(
                "[{HOLDER}].all(h, h == '' || !oldSelf.spec.sites.exists(s, s.name == h && {CANDIDATE}) || \
                 self.spec.sites.exists(s, s.name == h && {CANDIDATE}))"
            ),
            format!(
                "spec.sites must keep the site that may write (status.activeSite, else status.authority.holder.site) as a \
                 primary-candidate; move the primary away first (annotation {}), then remove the site or make it dr-only",
                keys::PLANNED_FAILOVER
            ),
            holder_stays,
        )
        .pointing_at("spec.sites"),
    ]
}

fn holder_stays(group: &Root, old: &Root) -> bool {
    let Some(status) = &group.status else { return true };
    let holder = if status.active_site.is_empty() {
        status.authority.as_ref().and_then(|a| a.holder.as_ref()).map_or("", |h| h.site.as_str())
    } else {
        &status.active_site
    };
    holder.is_empty() || !has_candidate(&old.spec.sites, holder) || has_candidate(&group.spec.sites, holder)
}

fn accounts_and_images() -> Vec<Rule> {
    let mut rules: Vec<_> =
        ["spec.image", "spec.sidecarImage", "spec.dragonfly.image", "spec.backup.image"].map(pinned_image).into();
    rules.extend([
        Rule::state::<Spec>(
            "secret-form",
            "spec",
            "(self.secretName != '') != has(self.credentials)",
            "spec must have exactly one of secretName and credentials; set secretName for one Secret, or credentials for a \
             Secret per role",
            |spec| spec.secret_name.is_empty() == spec.credentials.is_some(),
        ),
        Rule::state::<Spec>(
            "restore-form",
            "spec",
            "!(has(self.initFromBackup) && has(self.restoreInPlace))",
            "spec may have only one of initFromBackup and restoreInPlace; remove the other",
            |spec| spec.init_from_backup.is_none() || spec.restore_in_place.is_none(),
        ),
        Rule::matches(
            "hostname",
            "spec.dns.hostname",
            &HOSTNAME,
            "spec.dns.hostname must be a DNS name in lower case; write e.g. orders-db.example.com",
        ),
        Rule::matches(
            "host-port",
            "spec.sidecar.bloodravenAddress",
            &HOST_PORT,
            "spec.sidecar.bloodravenAddress must be host:port; write e.g. bloodraven.ops.svc.cluster.local:8082",
        ),
    ]);
    rules.extend(SECRETS.map(secret_name));
    rules
}

/// Secrets that the operator reads, by the name that stands there.
const SECRETS: [&str; 9] = [
    "spec.secretName",
    "spec.credentials.operatorSecret",
    "spec.credentials.appSecret",
    "spec.credentials.readOnlySecret",
    "spec.credentials.monitorSecret",
    "spec.credentials.backupSecret",
    "spec.tls.secretName",
    "spec.dragonfly.auth.secretName",
    "spec.dragonfly.snapshot.credentialsSecretName",
];

/// One without a name is another rule's business, or the schema's.
fn secret_name(at: &'static str) -> Rule {
    Rule::state::<String>(
        "secret-name",
        at,
        format!("self == '' || {}", OBJECT_NAME.cel("self")),
        format!(
            "{at} must be the name of a Secret in the group's namespace, of lower case letters, digits, - and .; write e.g. \
             orders-mysql"
        ),
        |name| name.is_empty() || OBJECT_NAME.holds(name),
    )
}

fn pinned_image(at: &'static str) -> Rule {
    Rule::state::<String>(
        "image",
        at,
        format!("{} && !self.endsWith(':latest')", PINNED_IMAGE.cel("self")),
        format!(
            "{at} must be an image with a tag or digest, and not :latest; write e.g. mysql:9.7.4 or name@sha256:<digest>"
        ),
        |image| PINNED_IMAGE.holds(image) && !image.ends_with(":latest"),
    )
}

fn split_brain() -> Vec<Rule> {
    vec![
        Rule::state::<Spec>(
            "prefer-site",
            "spec",
            format!(
                "self.splitBrainPolicy.preferSite == '' || self.sites.exists(s, s.name == self.splitBrainPolicy.preferSite && \
                 {CANDIDATE})"
            ),
            "spec.splitBrainPolicy.preferSite must be the name of a primary-candidate; write one of spec.sites[].name whose role \
             is not dr-only",
            |spec| {
                let site = &spec.split_brain_policy.prefer_site;
                site.is_empty() || has_candidate(&spec.sites, site)
            },
        )
        .pointing_at("splitBrainPolicy.preferSite"),
        Rule::state::<Spec>(
            "site-priorities",
            "spec",
            format!("self.splitBrainPolicy.sitePriorities.all(p, self.sites.exists(s, s.name == p && {CANDIDATE}))"),
            "spec.splitBrainPolicy.sitePriorities must name primary-candidates only; list names of spec.sites[] whose role is \
             not dr-only",
            |spec| spec.split_brain_policy.site_priorities.iter().all(|site| has_candidate(&spec.sites, site)),
        )
        .pointing_at("splitBrainPolicy.sitePriorities"),
        Rule::state::<SplitBrainPolicy>(
            "priorities-unique",
            "spec.splitBrainPolicy",
            "self.sitePriorities.all(p, self.sitePriorities.exists_one(q, q == p))",
            "spec.splitBrainPolicy.sitePriorities must name each site once; remove the repeated entry",
            |policy| {
                let list = &policy.site_priorities;
                list.iter().all(|site| list.iter().filter(|other| *other == site).count() == 1)
            },
        )
        .pointing_at("sitePriorities"),
        Rule::state::<SplitBrainPolicy>(
            "prefer-first",
            "spec.splitBrainPolicy",
            "self.preferSite == '' || !(self.preferSite in self.sitePriorities) || self.sitePriorities[0] == self.preferSite",
            "spec.splitBrainPolicy.sitePriorities has preferSite at another place than the first; move it to the front, or \
             remove it from the list",
            |policy| {
                let list = &policy.site_priorities;
                policy.prefer_site.is_empty()
                    || !list.contains(&policy.prefer_site)
                    || list.first() == Some(&policy.prefer_site)
            },
        )
        .pointing_at("sitePriorities"),
    ]
}

fn timing() -> Vec<Rule> {
    vec![
        Rule::state::<Spec>(
            "min-peers",
            "spec",
            "self.sidecar.minPeers < size(self.sites)",
            "spec.sidecar.minPeers must be less than the number of sites; write 1 to (sites - 1)",
            |spec| {
                let sites = i64::try_from(spec.sites.len()).unwrap_or(i64::MAX);
                spec.sidecar.as_ref().is_none_or(|sidecar| sidecar.min_peers < sites)
            },
        )
        .pointing_at("sidecar.minPeers"),
        Rule::state::<Lease>(
            "lease-ticks",
            "spec.sidecar",
            "duration(self.leaseTimeout) >= duration(self.peerCheckInterval) + duration(self.peerCheckInterval) + \
             duration(self.peerCheckInterval)",
            "spec.sidecar.leaseTimeout must be at least 3 times peerCheckInterval; write a longer leaseTimeout or a shorter \
             peerCheckInterval",
            |sidecar| sidecar.lease_timeout >= sidecar.peer_check_interval.saturating_mul(3),
        )
        .pointing_at("leaseTimeout"),
        Rule::state::<WriteProbeSpec>(
            "probe-timeout",
            "spec.writeProbe",
            "duration(self.interval) == duration('0s') || duration(self.timeout) <= duration(self.interval)",
            "spec.writeProbe.timeout must be at most writeProbe.interval; write a shorter timeout or a longer interval",
            |probe| probe.interval.is_zero() || probe.timeout <= probe.interval,
        )
        .pointing_at("timeout"),
    ]
}
