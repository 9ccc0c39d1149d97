//! Names of Kubernetes objects.
//!
//! In: names of groups, sites, profiles, backups. Out: object names, each made in one place. Must not: exceed what
//! Kubernetes allows; a group and a site fit by rule, everything longer is cut and told apart by a digest.

use sha2::{Digest, Sha256};

/// Longest name that fits a label value and most object names.
pub const MAX_NAME: usize = 63;
/// Longest name of a CronJob, which appends 11 characters to name its Jobs.
pub const MAX_CRON_JOB_NAME: usize = 52;

/// Deployment and user-facing Service of a site.
pub fn site(group: &str, site: &str) -> String {
    format!("mysql-{group}-{site}")
}

/// Claim of a site.
pub fn site_data(group: &str, site: &str) -> String {
    format!("mysql-{group}-{site}-data")
}

/// Service of a site for the operator, replication and sidecars.
pub fn site_internal(group: &str, site: &str) -> String {
    format!("mysql-{group}-{site}-internal")
}

/// `ConfigMap` of a site.
pub fn site_config(group: &str, site: &str) -> String {
    format!("mysql-{group}-{site}-config")
}

/// Service of the primary.
pub fn primary(group: &str) -> String {
    format!("mysql-{group}-primary")
}

/// Service of the replicas.
pub fn replicas(group: &str) -> String {
    format!("mysql-{group}-replicas")
}

/// `ConfigMap` with the last spec that was taken.
pub fn taken_spec(group: &str) -> String {
    format!("mysql-{group}-spec")
}

/// Secret with the signing key.
pub fn authority(group: &str) -> String {
    format!("mysql-{group}-authority")
}

/// `PodDisruptionBudget`.
pub fn disruption_budget(group: &str) -> String {
    format!("mysql-{group}")
}

/// `DNSEndpoint`.
pub fn dns_endpoint(group: &str) -> String {
    format!("bloodraven-{group}")
}

/// Service of the active cache.
pub fn dragonfly(group: &str) -> String {
    format!("{group}-dragonfly")
}

/// `StatefulSet`, Service and `PodDisruptionBudget` of a site's cache.
pub fn dragonfly_site(group: &str, site: &str) -> String {
    format!("{group}-dragonfly-{site}")
}

/// `CronJob` of a backup schedule.
pub fn schedule_cron_job(group: &str, schedule: &str) -> String {
    fit(&format!("mysql-{group}-backup-{schedule}"), MAX_CRON_JOB_NAME)
}

/// `CronJob` of a profile's verification.
pub fn verification_cron_job(group: &str, profile: &str) -> String {
    fit(&format!("mysql-{group}-verify-{profile}"), MAX_CRON_JOB_NAME)
}

/// `MysqlBackup` of a schedule's slot.
pub fn scheduled_backup(group: &str, profile: &str, slot: &str) -> String {
    fit(&format!("{group}-{profile}-{slot}"), MAX_NAME)
}

/// `MysqlBackup` that retries a schedule's slot.
pub fn retried_backup(group: &str, profile: &str, slot: &str, attempt: u32) -> String {
    fit(&format!("{group}-{profile}-{slot}-r{attempt}"), MAX_NAME)
}

/// Job of a backup.
pub fn backup_job(backup: &str) -> String {
    fit(&format!("mysqlbackup-{backup}"), MAX_NAME)
}

/// Job that deletes a backup's artifact.
pub fn cleanup_job(backup: &str) -> String {
    fit(&format!("mysqlbackup-{backup}-cleanup"), MAX_NAME)
}

/// Job of a restore into a new group.
pub fn restore_job(group: &str, site: &str, attempt: u32) -> String {
    fit(&format!("mysql-{group}-{site}-restore-{attempt}"), MAX_NAME)
}

/// Job that builds the copy of an in-place restore.
pub fn in_place_job(group: &str, site: &str, confirm: &str) -> String {
    fit(&format!("mysql-{group}-{site}-inplace-{}", hash8(confirm)), MAX_NAME)
}

/// Job that swaps the copy of an in-place restore in.
pub fn swap_job(group: &str, site: &str, confirm: &str) -> String {
    fit(&format!("mysql-{group}-{site}-swap-{}", hash8(confirm)), MAX_NAME)
}

/// Job of a verification.
pub fn verification_job(verification: &str) -> String {
    fit(&format!("mysqlverify-{verification}"), MAX_NAME)
}

/// Job that exports divergent transactions.
pub fn rescue_job(group: &str, site: &str, divergent_gtid: &str) -> String {
    fit(&format!("mysql-{group}-{site}-rescue-{}", hash8(divergent_gtid)), MAX_NAME)
}

/// Job that prunes the archive.
pub fn prune_job(group: &str, hour: &str) -> String {
    fit(&format!("mysql-{group}-prune-{hour}"), MAX_NAME)
}

/// Secret with the MySQL account of one Job.
pub fn job_credentials(job: &str) -> String {
    fit(&format!("{job}-creds"), MAX_NAME)
}

/// `ServiceAccount` of backup pods.
pub fn backup_service_account(group: &str) -> String {
    fit(&format!("mysql-{group}-backup"), MAX_NAME)
}

/// `ServiceAccount` of trigger pods.
pub fn trigger_service_account(group: &str) -> String {
    fit(&format!("mysql-{group}-trigger"), MAX_NAME)
}

/// Claim of a profile that brings none.
pub fn backup_claim(group: &str, profile: &str) -> String {
    fit(&format!("mysql-{group}-backup-{profile}"), MAX_NAME)
}

/// A value that fits a label.
pub fn label_value(value: &str) -> String {
    fit(value, MAX_NAME)
}

/// A name that is too long keeps its beginning, without trailing punctuation, and gets 8 hex digits of the SHA-256 of the
/// whole.
pub fn fit(name: &str, most: usize) -> String {
    if name.len() <= most {
        return name.to_owned();
    }
    // A dash and 8 digits make 9.
    let room = most.saturating_sub(9);
    let cut = (0..=room).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    let kept = name.get(..cut).unwrap_or_default().trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    format!("{kept}-{}", hash8(name))
}

/// First 8 hex digits of a SHA-256.
pub fn hash8(text: &str) -> String {
    let digest = Sha256::digest(text);
    let head = digest.iter().take(4).fold(0_u32, |head, byte| head << 8 | u32::from(*byte));
    format!("{head:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_names_are_as_documented() {
        let cases = [
            (site("orders", "iad"), "mysql-orders-iad"),
            (site_data("orders", "iad"), "mysql-orders-iad-data"),
            (site_internal("orders", "iad"), "mysql-orders-iad-internal"),
            (site_config("orders", "iad"), "mysql-orders-iad-config"),
            (primary("orders"), "mysql-orders-primary"),
            (replicas("orders"), "mysql-orders-replicas"),
            (authority("orders"), "mysql-orders-authority"),
            (taken_spec("orders"), "mysql-orders-spec"),
            (disruption_budget("orders"), "mysql-orders"),
            (dns_endpoint("orders"), "bloodraven-orders"),
            (dragonfly("orders"), "orders-dragonfly"),
            (dragonfly_site("orders", "iad"), "orders-dragonfly-iad"),
            (schedule_cron_job("orders", "nightly"), "mysql-orders-backup-nightly"),
            (verification_cron_job("orders", "s3"), "mysql-orders-verify-s3"),
            (scheduled_backup("orders", "s3", "29"), "orders-s3-29"),
            (retried_backup("orders", "s3", "29", 2), "orders-s3-29-r2"),
            (backup_job("b"), "mysqlbackup-b"),
            (cleanup_job("b"), "mysqlbackup-b-cleanup"),
            (restore_job("orders", "iad", 1), "mysql-orders-iad-restore-1"),
            (verification_job("v"), "mysqlverify-v"),
            (job_credentials("j"), "j-creds"),
            (backup_service_account("orders"), "mysql-orders-backup"),
            (trigger_service_account("orders"), "mysql-orders-trigger"),
            (backup_claim("orders", "s3"), "mysql-orders-backup-s3"),
        ];
        for (name, expect) in cases {
            assert_eq!(name, expect);
        }
        assert_eq!(hash8("abc"), "ba7816bf");
        assert_eq!(in_place_job("orders", "iad", "abc"), "mysql-orders-iad-inplace-ba7816bf");
        assert_eq!(swap_job("orders", "iad", "abc"), "mysql-orders-iad-swap-ba7816bf");
        assert_eq!(rescue_job("orders", "iad", "abc"), "mysql-orders-iad-rescue-ba7816bf");
    }

    /// K-13: names fit labels, objects and taint keys.
    #[test]
    fn a_group_and_site_that_pass_admission_fit_every_name() {
        // The rule admits 40 characters for both together.
        let (group, name) = ("g".repeat(20), "s".repeat(20));
        for text in [
            site_internal(&group, &name),
            site_config(&group, &name),
            site_data(&group, &name),
            dragonfly_site(&group, &name),
            dragonfly(&"g".repeat(39)),
            replicas(&"g".repeat(39)),
            authority(&"g".repeat(39)),
        ] {
            assert!(text.len() <= MAX_NAME, "{text}");
        }
        assert!(crate::keys::taint_key(&"g".repeat(39)).len() - "shipstream.io/".len() <= MAX_NAME);
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        check(&"a".repeat(63), 63, &"a".repeat(63));
        check(&"a".repeat(64), 63, &format!("{}-{}", "a".repeat(54), hash8(&"a".repeat(64))));
        let dashed = format!("{}---{}", "a".repeat(52), "b".repeat(30));
        check(&dashed, 63, &format!("{}-{}", "a".repeat(52), hash8(&dashed)));
        let cron = "c".repeat(53);
        check(&cron, 52, &format!("{}-{}", "c".repeat(43), hash8(&cron)));
        assert_ne!(fit(&format!("{}x", "a".repeat(64)), 63), fit(&format!("{}y", "a".repeat(64)), 63));
    }

    fn check(name: &str, most: usize, expect: &str) {
        let fitted = fit(name, most);
        assert_eq!(fitted, expect);
        assert!(fitted.len() <= most);
    }
}
