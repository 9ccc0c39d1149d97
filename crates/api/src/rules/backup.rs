//! Rules on backups: profiles, stores, schedules, archive.
//!
//! In: `spec.backup`, and the store blocks wherever they stand. Out: the rules. Must not: need the cluster; whether a Secret
//! or a class exists is found out at run time.

use serde::Deserialize;

use super::Rule;
use super::sites::positive_quantity;
use super::text::{BUCKET, CRON, DNS_LABEL, GTID, HTTP_URL, MYSQL_SIZE, ONE_SELECT, RELATIVE_PATH, TIME_ZONE};
use crate::group::{BackupRetry, BackupStorage, PvcStorage, StorageType};
use crate::quantity::Quantity;
use crate::verification::{ReplayMode, VerificationPointInTime};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct View {
    profiles: Vec<Named>,
    schedules: Vec<Scheduled>,
    pitr: Option<Pitr>,
    divergence_rescue: Option<Rescue>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scheduled {
    profile_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pitr {
    #[serde(default)]
    enabled: bool,
    profile_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rescue {
    profile_name: Option<String>,
}

#[derive(Deserialize)]
struct Verification {
    #[serde(default)]
    enabled: bool,
    schedule: Option<String>,
}

impl View {
    fn has_profile(&self, name: &str) -> bool {
        self.profiles.iter().any(|profile| profile.name == name)
    }
}

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = references();
    rules.extend(profile_parts());
    rules.extend(storage("spec.backup.profiles[].storage"));
    rules.extend(storage("spec.restoreInPlace.pointInTime.archive.storage"));
    rules.extend(storage("spec.initFromBackup.pointInTime.archive.storage"));
    rules.extend(sizes());
    rules.extend(cron());
    rules.extend(verification_parts("spec.backup.profiles[].verification"));
    rules
}

fn references() -> Vec<Rule> {
    let at = "spec.backup";
    vec![
        Rule::state::<View>(
            "schedule-profile",
            at,
            "self.schedules.all(s, self.profiles.exists(p, p.name == s.profileName))",
            "spec.backup.schedules[].profileName must be the name of a profile; write one of spec.backup.profiles[].name",
            |backup| backup.schedules.iter().all(|s| backup.has_profile(&s.profile_name)),
        )
        .pointing_at("schedules"),
        Rule::state::<View>(
            "pitr-profile",
            at,
            "!has(self.pitr) || !self.pitr.enabled || (has(self.pitr.profileName) && self.profiles.exists(p, p.name == \
             self.pitr.profileName))",
            "spec.backup.pitr.profileName must be the name of a profile when pitr is enabled; write one of \
             spec.backup.profiles[].name",
            |backup| match &backup.pitr {
                Some(Pitr { enabled: true, profile_name }) => {
                    profile_name.as_deref().is_some_and(|name| backup.has_profile(name))
                }
                _ => true,
            },
        )
        .pointing_at("pitr"),
        Rule::state::<View>(
            "rescue-profile",
            at,
            "!has(self.divergenceRescue.profileName) || self.profiles.exists(p, p.name == self.divergenceRescue.profileName)",
            "spec.backup.divergenceRescue.profileName must be the name of a profile; write one of spec.backup.profiles[].name, \
             or remove it",
            |backup| {
                let name = backup.divergence_rescue.as_ref().and_then(|r| r.profile_name.as_deref());
                name.is_none_or(|name| backup.has_profile(name))
            },
        )
        .pointing_at("divergenceRescue"),
        Rule::state::<BackupRetry>(
            "retry-backoff",
            "spec.backup.retry",
            "self.maxBackoffSeconds >= self.initialBackoffSeconds",
            "spec.backup.retry.maxBackoffSeconds must be at least initialBackoffSeconds; write a larger number",
            |retry| retry.max_backoff_seconds >= retry.initial_backoff_seconds,
        )
        .pointing_at("maxBackoffSeconds"),
    ]
}

fn profile_parts() -> Vec<Rule> {
    let name = |at: &'static str| {
        Rule::matches(
            "backup-name",
            at,
            &DNS_LABEL,
            format!(
                "{at} must hold only lower case letters, digits and '-', and neither begin nor end with '-'; write e.g. nightly"
            ),
        )
    };
    vec![
        name("spec.backup.profiles[].name"),
        name("spec.backup.schedules[].name"),
        Rule::state::<Verification>(
            "verification-schedule",
            "spec.backup.profiles[].verification",
            "!self.enabled || has(self.schedule)",
            "spec.backup.profiles[].verification.schedule is required when verification is enabled; write five cron fields, e.g. \
             0 5 * * 0",
            |verification| !verification.enabled || verification.schedule.is_some(),
        )
        .pointing_at("schedule"),
    ]
}

/// Rules on a store: exactly the matching block, and nothing that leaves its folder.
fn storage(at: &str) -> Vec<Rule> {
    let mut rules = vec![Rule::state::<BackupStorage>(
        "storage-form",
        at,
        "self.type == 'S3' ? has(self.s3) && !has(self.pvc) : has(self.pvc) && !has(self.s3)",
        format!(
            "{at} must hold exactly the block of its type; write s3 with type S3, or pvc with type PVC, and remove the other"
        ),
        |storage| match storage.kind {
            StorageType::S3 => storage.s3.is_some() && storage.pvc.is_none(),
            StorageType::Pvc => storage.pvc.is_some() && storage.s3.is_none(),
        },
    )];
    rules.extend(s3(&format!("{at}.s3")));
    let pvc = format!("{at}.pvc");
    rules.push(Rule::state::<PvcStorage>(
        "pvc-form",
        pvc.clone(),
        "!(has(self.claimName) && has(self.storageClassName))",
        format!("{pvc} may have only one of claimName and storageClassName; use claimName for a claim that exists, and remove the other"),
        |pvc| pvc.claim_name.is_none() || pvc.storage_class_name.is_none(),
    ));
    rules.push(positive_quantity(format!("{pvc}.size")));
    rules.push(confined(format!("{pvc}.subPath")));
    rules
}

/// Rules on an object store.
pub(super) fn s3(at: &str) -> Vec<Rule> {
    vec![
        Rule::matches(
            "bucket",
            format!("{at}.bucket"),
            &BUCKET,
            format!(
                "{at}.bucket must hold only letters, digits, '-', '_' and '.'; write the bucket alone and use prefix for a folder"
            ),
        ),
        confined(format!("{at}.prefix")),
        Rule::matches(
            "endpoint",
            format!("{at}.endpointURL"),
            &HTTP_URL,
            format!("{at}.endpointURL must begin with http:// or https://; write e.g. https://s3.example.com"),
        ),
    ]
}

/// A folder that stays inside its root.
pub(super) fn confined(at: String) -> Rule {
    let message = format!(
        "{at} must be a relative folder without '..' and control characters; write e.g. backups/orders, without a leading slash"
    );
    let cel = format!("{} && !self.contains('..')", RELATIVE_PATH.cel("self"));
    Rule::state::<String>("confined", at, cel, message, |path| RELATIVE_PATH.holds(path) && !path.contains(".."))
}

fn sizes() -> Vec<Rule> {
    vec![
        at_least_1gi("spec.backup.scratch.size"),
        Rule::state::<String>(
            "segment-size",
            "spec.backup.profiles[].physical.segmentSize",
            "isQuantity(self) && quantity(self).compareTo(quantity('64Mi')) >= 0 && quantity(self).compareTo(quantity('64Gi')) <= 0",
            "spec.backup.profiles[].physical.segmentSize must be a quantity, 64Mi to 64Gi; write e.g. 4Gi",
            |text| at_least(text, "64Mi") && at_most(text, "64Gi"),
        ),
        Rule::state::<String>(
            "binlog-size",
            "spec.backup.pitr.maxBinlogSize",
            format!(
                "{} && (self.endsWith('G') ? self == '1G' : self.endsWith('M') ? int(self.replace('M', '')) <= 1024 : \
                 self.endsWith('K') ? int(self.replace('K', '')) >= 4 && int(self.replace('K', '')) <= 1048576 : int(self) >= 4096 \
                 && int(self) <= 1073741824)",
                MYSQL_SIZE.cel("self")
            ),
            "spec.backup.pitr.maxBinlogSize must be 4K to 1G; write e.g. 100M",
            |text| mysql_size(text).is_some_and(|bytes| (4096..=1_073_741_824).contains(&bytes)),
        ),
    ]
}

/// A volume size of at least 1Gi.
fn at_least_1gi(at: impl Into<String>) -> Rule {
    let at = at.into();
    let message = format!("{at} must be a quantity of at least 1Gi; write e.g. 50Gi");
    let cel = "isQuantity(self) && quantity(self).compareTo(quantity('1Gi')) >= 0";
    Rule::state::<String>("volume-size", at, cel, message, |text| at_least(text, "1Gi"))
}

fn at_least(text: &str, least: &str) -> bool {
    matches!((Quantity::parse(text), Quantity::parse(least)), (Ok(size), Ok(least)) if size >= least)
}

fn at_most(text: &str, most: &str) -> bool {
    matches!((Quantity::parse(text), Quantity::parse(most)), (Ok(size), Ok(most)) if size <= most)
}

/// Bytes of a size as MySQL writes it.
fn mysql_size(text: &str) -> Option<u64> {
    if !MYSQL_SIZE.holds(text) {
        return None;
    }
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (text.strip_suffix('K')?, 10),
        b'M' => (text.strip_suffix('M')?, 20),
        b'G' => (text.strip_suffix('G')?, 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn cron() -> Vec<Rule> {
    let schedule = |at: &'static str| {
        Rule::matches(
            "cron",
            at,
            &CRON,
            format!(
                "{at} must be five cron fields (minute, hour, day of month, month, day of week); write e.g. 0 3 * * *"
            ),
        )
    };
    let time_zone = |at: &'static str| {
        Rule::matches(
            "time-zone",
            at,
            &TIME_ZONE,
            format!("{at} must be the name of a time zone; write e.g. Etc/UTC or Europe/Berlin"),
        )
    };
    vec![
        schedule("spec.backup.schedules[].schedule"),
        time_zone("spec.backup.schedules[].timeZone"),
        schedule("spec.backup.profiles[].verification.schedule"),
        time_zone("spec.backup.profiles[].verification.timeZone"),
    ]
}

/// Rules on what a verification does, in a profile or in a record of its own.
pub(super) fn verification_parts(at: &str) -> Vec<Rule> {
    let point = format!("{at}.pointInTime");
    let query = format!("{at}.sanityCheck.query");
    vec![
        Rule::state::<VerificationPointInTime>(
            "replay-point",
            point.clone(),
            "has(self.timestamp) == (self.mode == 'timestamp') && has(self.gtid) == (self.mode == 'gtid')",
            format!(
                "{point} must hold timestamp with mode timestamp and gtid with mode gtid, and neither with another mode; set the one, remove the other"
            ),
            |point| {
                point.timestamp.is_some() == (point.mode == ReplayMode::Timestamp)
                    && point.gtid.is_some() == (point.mode == ReplayMode::Gtid)
            },
        ),
        Rule::matches(
            "gtid",
            format!("{point}.gtid"),
            &GTID,
            format!("{point}.gtid must be one GTID; write <uuid>:<number> or <uuid>:<tag>:<number>"),
        ),
        Rule::matches(
            "one-select",
            query.clone(),
            &ONE_SELECT,
            format!("{query} must be one SELECT on one line; write e.g. SELECT COUNT(*) FROM shop.orders"),
        ),
        at_least_1gi(format!("{at}.storage.size")),
    ]
}
