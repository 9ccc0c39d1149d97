//! What `spec.mysqlConf` may not say: options that the operator owns, and texts that would become other lines.
//!
//! In: a key or a value. Out: whether it is allowed. Must not: depend on the spelling; `_` and `-` are the same to MySQL,
//! and the prefixes that MySQL understands (`loose-`, `skip-`, `disable-`, `enable-`, `maximum-`) do not hide an option.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::Rule;
use super::text::{ONE_LINE, OPTION_NAME};
use crate::group::MysqlFailoverGroupSpec;

/// Options that the operator owns, with `-`; a trailing `*` stands for anything. `plugin-load` would drop what
/// `plugin-load-add` loads, and the two old spellings are still read by servers. Without the performance schema, its threads
/// or their attributes nobody could see that a session is gone.
pub const OWNED_KEYS: &[&str] = &[
    "admin-address",
    "admin-port",
    "bind-address",
    "create-admin-listener-thread",
    "datadir",
    "disable-log-bin",
    "enforce-gtid-consistency",
    "gtid-mode",
    "init-file",
    "log-bin",
    "log-replica-updates",
    "log-slave-updates",
    "performance-schema",
    "performance-schema-instrument",
    "performance-schema-max-thread-classes",
    "performance-schema-max-thread-instances",
    "performance-schema-session-connect-attrs-size",
    "persisted-globals-load",
    "plugin-load",
    "plugin-load-add",
    "port",
    "read-only",
    "relay-log",
    "relay-log-recovery",
    "require-secure-transport",
    "rpl-semi-sync-*",
    "server-id",
    "skip-log-bin",
    "skip-replica-start",
    "skip-slave-start",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "super-read-only",
];

/// Whether the operator owns a MySQL option, however it is spelled.
pub fn is_owned_key(key: &str) -> bool {
    OWNED.as_ref().is_some_and(|owned| owned.is_match(key))
}

static OWNED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&owned_pattern()).ok());

fn owned_pattern() -> String {
    let names: Vec<_> = OWNED_KEYS.iter().map(|key| key.replace('-', "[-_]").replace('*', ".*")).collect();
    format!("^((loose|skip|disable|enable|maximum)[-_])*({})$", names.join("|"))
}

type Conf = BTreeMap<String, String>;

pub(super) fn rules() -> Vec<Rule> {
    let at = "spec.mysqlConf";
    vec![
        Rule::state::<Conf>(
            "conf-owned",
            at,
            format!("self.all(k, !k.matches(r'{}'))", owned_pattern()),
            format!(
                "{at} may not set options that the operator owns; remove them (TLS is set in spec.tls, semi-sync in \
                 spec.replication): {}",
                OWNED_KEYS.join(", ")
            ),
            |conf| !conf.keys().any(|key| is_owned_key(key)),
        ),
        Rule::state::<Conf>(
            "conf-key",
            at,
            format!("self.all(k, {})", OPTION_NAME.cel("k")),
            format!("{at} keys must be names of MySQL options; use letters, digits, '-' and '_', e.g. max-connections"),
            |conf| conf.keys().all(|key| OPTION_NAME.holds(key)),
        ),
        Rule::matches(
            "conf-value",
            "spec.mysqlConf{}",
            &ONE_LINE,
            "spec.mysqlConf{} must be one line without control characters; write one key for each option",
        ),
        Rule::state::<MysqlFailoverGroupSpec>(
            "conf-binlog-expiry",
            "spec",
            "!has(self.backup) || !has(self.backup.pitr) || !self.backup.pitr.enabled || self.mysqlConf.all(k, \
             !k.matches(r'^(loose[-_])?binlog[-_]expire[-_]logs[-_]seconds$') || (self.mysqlConf[k].matches(r'^[0-9]{1,10}$') \
             && (int(self.mysqlConf[k]) == 0 || int(self.mysqlConf[k]) >= \
             duration(self.backup.pitr.archivePollInterval).getSeconds() * 10)))",
            "spec.mysqlConf binlog-expire-logs-seconds must be at least 10 times spec.backup.pitr.archivePollInterval; write \
             more seconds, or 0 for no expiry",
            binlogs_live_long_enough,
        )
        .pointing_at("mysqlConf"),
    ]
}

fn binlogs_live_long_enough(spec: &MysqlFailoverGroupSpec) -> bool {
    let Some(pitr) = spec.backup.as_ref().and_then(|b| b.pitr.as_ref()).filter(|p| p.enabled) else {
        return true;
    };
    let least = pitr.archive_poll_interval.as_nanos() / 1_000_000_000 * 10;
    spec.mysql_conf.iter().all(|(key, value)| {
        let name = key.replace('_', "-");
        if name.strip_prefix("loose-").unwrap_or(&name) != "binlog-expire-logs-seconds" {
            return true;
        }
        let digits = (1..=10).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
        digits && value.parse::<i64>().is_ok_and(|seconds| seconds == 0 || seconds >= least)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_owned_option_is_owned_in_every_spelling() {
        assert!(OWNED.is_some(), "the pattern compiles");
        for key in OWNED_KEYS {
            let key = key.replace('*', "source-enabled");
            for spelling in [key.clone(), key.replace('-', "_"), key.replacen('-', "_", 1)] {
                for prefix in ["", "loose-", "loose_", "skip-", "loose-skip_", "disable_", "maximum-"] {
                    assert!(is_owned_key(&format!("{prefix}{spelling}")), "{prefix}{spelling}");
                }
            }
        }
    }

    #[test]
    fn other_options_are_free() {
        for key in [
            "max-connections",
            "sync_binlog",
            "report-port",
            "relay-log-purge",
            "innodb-read-only",
            "log-bin-trust-function-creators",
            "skip-name-resolve",
            "read-only-x",
            "performance-schema-digests-size",
            "ssl-cipher",
        ] {
            assert!(!is_owned_key(key), "{key}");
        }
    }
}
