//! The server's option file, section `[mysqld]`: what is owned, what is a default, and what the group adds.
//!
//! In: a group's spec, and for one pod its server id and address. Out: the text. Must not: let anything of the user's take
//! the place of an owned option, whatever its spelling, or become a second line. `read-only`, `super-read-only`,
//! `persisted-globals-load` and `init-file` are not here: the keeper gives them on every command line, where a file or a
//! persisted value cannot win.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bloodraven_api::group::Durability;
use bloodraven_api::rules::is_owned_key;
use bloodraven_api::rules::text::{ONE_LINE, OPTION_NAME};
use bloodraven_api::{GoDuration, MysqlFailoverGroupSpec};
use snafu::ensure;

use super::error::{Error, NotOneLineSnafu, OwnedOptionSnafu, SameOptionSnafu};
use super::pod::{ADMIN_PORT, DATA_DIR, MYSQL_PORT, TLS_DIR};

/// Options that no group may change, ports, paths, TLS and semi-sync apart.
pub const OWNED: &[(&str, &str)] = &[
    ("bind-address", "*"),
    ("create-admin-listener-thread", "ON"),
    ("enforce-gtid-consistency", "ON"),
    ("gtid-mode", "ON"),
    ("log-replica-updates", "ON"),
    ("relay-log-recovery", "ON"),
    ("skip-replica-start", "ON"),
];

/// Defaults that make a commit survive a crash; others are accepted, and reported.
pub const DURABLE: &[(&str, &str)] = &[("innodb-flush-log-at-trx-commit", "1"), ("sync-binlog", "1")];

/// What a group may change without a word.
pub const DEFAULTS: &[(&str, &str)] = &[
    ("binlog-expire-logs-seconds", "1209600"),
    ("character-set-server", "utf8mb4"),
    ("collation-server", "utf8mb4_unicode_ci"),
    ("default-storage-engine", "InnoDB"),
    ("innodb-file-per-table", "1"),
    ("innodb-flush-method", "O_DIRECT"),
    ("log-bin-trust-function-creators", "1"),
    ("max-allowed-packet", "64M"),
    ("max-connect-errors", "1000000"),
    ("max-connections", "500"),
    // Database names in grants are literal.
    ("partial-revokes", "ON"),
    ("replica-net-timeout", "10"),
    // The folder that a server was built for need not be in its image, and without it the server does not start.
    ("secure-file-priv", "NULL"),
    ("skip-name-resolve", "ON"),
    ("thread-cache-size", "50"),
];

/// What semi-synchronous replication needs, on both of its sides: a server changes them with authority.
pub const SEMI_SYNC_PLUGINS: [&str; 2] = ["semisync_source.so", "semisync_replica.so"];

/// The largest wait that the server takes, in milliseconds: 49 days.
const WAIT_FOR_EVER: i64 = 4_294_967_295;

type Options = BTreeMap<String, Vec<String>>;

/// What every server of a group reads: keys sorted, one line an option.
pub(super) fn of_group(spec: &MysqlFailoverGroupSpec) -> Result<String, Error> {
    let mut options = defaults(spec);
    for (key, value) in chosen(spec)? {
        options.insert(key, vec![quoted(value)]);
    }
    // What is owned comes last, so that nothing else can be in its place.
    options.extend(owned(spec));
    let mut text = String::from("# Made by bloodraven; changes belong into spec.mysqlConf.\n[mysqld]\n");
    for (key, values) in options {
        for value in values {
            let _ = writeln!(text, "{key}={value}");
        }
    }
    Ok(text)
}

/// What one pod's server reads: the group's text, and what only its own pod has. The init container writes it once, so that
/// a server that starts again in the same pod reads what it read before, whatever became of the `ConfigMap`.
pub fn of_pod(of_group: &str, server_id: u32, address: &str) -> String {
    format!("{of_group}\n# Of this pod.\nadmin-address={address}\nserver-id={server_id}\n")
}

/// Options of the group with which a crash can lose a commit that was acknowledged, as the group wrote them.
pub fn relaxed(spec: &MysqlFailoverGroupSpec) -> Vec<&str> {
    let durable = |key: &str, value: &str| {
        DURABLE.iter().all(|(name, safe)| base(name) != base(&normal(key)) || value.trim() == *safe)
    };
    spec.mysql_conf.iter().filter(|(key, value)| !durable(key, value)).map(|(key, _)| key.as_str()).collect()
}

/// What the group chose for an option, in whatever spelling.
pub(super) fn choice<'a>(spec: &'a MysqlFailoverGroupSpec, name: &str) -> Option<&'a str> {
    spec.mysql_conf.iter().find(|(key, _)| base(&normal(key)) == name).map(|(_, value)| value.as_str())
}

/// The group's own options by their normal name, each once.
fn chosen(spec: &MysqlFailoverGroupSpec) -> Result<BTreeMap<String, &str>, Error> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (key, value) in &spec.mysql_conf {
        ensure!(OPTION_NAME.holds(key) && ONE_LINE.holds(value), NotOneLineSnafu { key });
        ensure!(!is_owned_key(key), OwnedOptionSnafu { key });
        let name = normal(key);
        if let Some(other) = seen.insert(base(&name).to_owned(), key) {
            return SameOptionSnafu { key, other }.fail();
        }
        found.insert(name, value.as_str());
    }
    Ok(found)
}

/// Defaults without those that the group chose in whatever spelling.
fn defaults(spec: &MysqlFailoverGroupSpec) -> Options {
    let chosen: Vec<String> = spec.mysql_conf.keys().map(|key| base(&normal(key)).to_owned()).collect();
    let is_chosen = |name: &str| chosen.iter().any(|key| key == base(name));
    let kept = |name: &str| {
        // A server whose collation is of another character set does not start.
        let of_another_set = name == "collation-server" && is_chosen("character-set-server");
        !is_chosen(name) && !of_another_set
    };
    let all = DURABLE.iter().chain(DEFAULTS).filter(|(name, _)| kept(name));
    let mut options: Options = all.map(|(name, value)| one(name, *value)).collect();
    let pitr = spec.backup.as_ref().and_then(|backup| backup.pitr.as_ref()).filter(|pitr| pitr.enabled);
    if let Some(pitr) = pitr.filter(|_| kept("max-binlog-size")) {
        options.extend([one("max-binlog-size", pitr.max_binlog_size.as_str())]);
    }
    options
}

fn owned(spec: &MysqlFailoverGroupSpec) -> Options {
    let mut options: Options = OWNED.iter().map(|(name, value)| one(name, *value)).collect();
    options.extend([
        one("admin-port", ADMIN_PORT.to_string()),
        one("datadir", DATA_DIR),
        one("log-bin", format!("{DATA_DIR}/mysql-bin")),
        one("port", MYSQL_PORT.to_string()),
        one("relay-log", format!("{DATA_DIR}/mysql-relay-bin")),
    ]);
    let mut plugins = vec!["mysql_clone.so".to_owned()];
    if spec.replication.durability == Durability::SemiSync {
        plugins.extend(SEMI_SYNC_PLUGINS.map(str::to_owned));
        options.extend(semi_sync(spec.replication.semi_sync_timeout).map(|(name, value)| one(name, value)));
    }
    options.insert("plugin-load-add".to_owned(), plugins);
    if spec.tls.is_some() {
        options.extend([
            // Who copies verifies whom.
            one("loose-clone-ssl-ca", format!("{TLS_DIR}/ca.crt")),
            one("require-secure-transport", "ON"),
            one("ssl-ca", format!("{TLS_DIR}/ca.crt")),
            one("ssl-cert", format!("{TLS_DIR}/tls.crt")),
            one("ssl-key", format!("{TLS_DIR}/tls.key")),
        ]);
    }
    options
}

/// The options of semi-synchronous replication. "loose", because a data folder is initialised without plugins, and a server
/// that does not know an option ends.
///
/// Which side is on follows the holder and the roles, and is set while the server runs. The source's is on from the start: a
/// holder that restarts is opened by its own sidecar, and no operator need be there. On any other server no thread runs
/// before the leader has switched it off.
pub fn semi_sync(timeout: GoDuration) -> [(&'static str, String); 4] {
    let millis = timeout.as_nanos() / 1_000_000;
    let wait = if millis == 0 { WAIT_FOR_EVER } else { millis.min(WAIT_FOR_EVER) };
    [
        ("loose-rpl-semi-sync-source-enabled", "ON".to_owned()),
        ("loose-rpl-semi-sync-source-timeout", wait.to_string()),
        ("loose-rpl-semi-sync-source-wait-for-replica-count", "1".to_owned()),
        ("loose-rpl-semi-sync-source-wait-point", "AFTER_SYNC".to_owned()),
    ]
}

fn one(name: &str, value: impl Into<String>) -> (String, Vec<String>) {
    (name.to_owned(), vec![value.into()])
}

/// The spelling with `-`.
fn normal(key: &str) -> String {
    key.replace('_', "-")
}

/// The option behind the prefixes that MySQL understands; `loose-skip-x` is about `x`.
fn base(name: &str) -> &str {
    let mut rest = name;
    // Bounded by the length of the name.
    while let Some(shorter) = ["loose-", "skip-", "disable-", "enable-"].iter().find_map(|it| rest.strip_prefix(it)) {
        rest = shorter;
    }
    rest
}

/// A value as it is, for a reader that takes `#` for a comment, trims blanks, drops quotes and reads escapes.
fn quoted(value: &str) -> String {
    let plain = !value.contains(['#', '\'', '"', '\\']) && value.trim() == value;
    if plain { value.to_owned() } else { format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reaches_the_server_as_it_was_written() {
        let rows = [
            ("500", "500"),
            ("", ""),
            ("SET NAMES utf8mb4", "SET NAMES utf8mb4"),
            ("a#b", "\"a#b\""),
            (" a", "\" a\""),
            ("'a'", "\"'a'\""),
            ("a\"b", "\"a\\\"b\""),
            ("a\\n", "\"a\\\\n\""),
        ];
        for (value, expect) in rows {
            assert_eq!(quoted(value), expect, "{value:?}");
        }
    }

    #[test]
    fn an_option_is_known_behind_its_prefixes() {
        let rows = [("max-connections", "max-connections"), ("loose-skip-name-resolve", "name-resolve")];
        for (name, expect) in rows.into_iter().chain([("disable-partial-revokes", "partial-revokes")]) {
            assert_eq!(base(name), expect);
        }
    }

    #[test]
    fn nothing_that_is_a_default_is_owned() {
        for (name, _) in DURABLE.iter().chain(DEFAULTS) {
            assert!(!is_owned_key(name), "{name}");
        }
        for (name, _) in OWNED {
            assert!(is_owned_key(name), "{name}");
        }
    }
}
