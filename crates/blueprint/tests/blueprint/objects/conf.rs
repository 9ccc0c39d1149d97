//! The server's option file: what is owned stays, what is a default gives way.

use bloodraven_blueprint::objects::{self, conf};
use serde_json::{Value, json};

use super::{built, container, edited, pod};

fn lines(edits: &Value) -> Vec<String> {
    let objects = built(&edited(edits));
    let text = &objects.config_maps[0].data.as_ref().expect("data")[objects::CONFIG_KEY];
    text.lines().map(str::to_owned).collect()
}

#[test]
fn options_are_sorted_and_each_is_there_once() {
    let lines = lines(&json!({"/spec/mysqlConf": {"zz_top": "1", "aa": "2", "max_connections": "7"}}));
    assert_eq!(lines[1], "[mysqld]");
    let keys: Vec<&str> = lines[2..].iter().map(|line| line.split_once('=').expect("key=value").0).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let twice = keys.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
}

#[test]
fn what_the_group_writes_takes_the_place_of_a_default_in_any_spelling() {
    let rows = [
        (json!({"max_connections": "7"}), "max-connections=7", "max-connections=500"),
        (json!({"loose-max-connections": "7"}), "loose-max-connections=7", "max-connections=500"),
        (json!({"skip_name_resolve": "OFF"}), "skip-name-resolve=OFF", "skip-name-resolve=ON"),
        (json!({"disable-partial-revokes": "ON"}), "disable-partial-revokes=ON", "partial-revokes=ON"),
        (json!({"sync_binlog": "0"}), "sync-binlog=0", "sync-binlog=1"),
        // Another character set has another collation, which the server finds by itself.
        (
            json!({"character_set_server": "latin1"}),
            "character-set-server=latin1",
            "collation-server=utf8mb4_unicode_ci",
        ),
        (json!({"init_connect": "SET @a = '#'"}), "init-connect=\"SET @a = '#'\"", "init-connect=SET @a = '#'"),
        (json!({"sql-mode": ""}), "sql-mode=", "sql-mode"),
    ];
    for (conf, there, gone) in rows {
        let lines = lines(&json!({"/spec/mysqlConf": conf}));
        assert!(lines.iter().any(|line| line == there), "{there}: {lines:?}");
        assert!(!lines.iter().any(|line| line == gone), "{gone}: {lines:?}");
    }
}

#[test]
fn settings_of_the_group_become_options() {
    let pitr = json!({"profiles": [{"name": "s3", "storage": {"type": "S3", "s3": {"bucket": "b", "region": "r",
        "credentialsSecret": "s"}}}], "pitr": {"enabled": true, "profileName": "s3", "maxBinlogSize": "64M"}});
    let semi_sync =
        |timeout: &str| json!({"/spec/replication": {"durability": "SemiSync", "semiSyncTimeout": timeout}});
    let rows = [
        (json!({}), vec!["gtid-mode=ON", "plugin-load-add=mysql_clone.so", "sync-binlog=1", "admin-port=33062"]),
        (
            json!({"/spec/tls": {"secretName": "t"}}),
            vec!["require-secure-transport=ON", "ssl-ca=/etc/mysql/tls/ca.crt"],
        ),
        (semi_sync("1.5s"), vec!["loose-rpl-semi-sync-source-timeout=1500", "plugin-load-add=semisync_source.so"]),
        (semi_sync("0s"), vec!["loose-rpl-semi-sync-source-timeout=4294967295", "plugin-load-add=semisync_replica.so"]),
        (json!({"/spec/backup": pitr}), vec!["max-binlog-size=64M"]),
        (json!({"/spec/backup": pitr, "/spec/mysqlConf": {"max_binlog_size": "8M"}}), vec!["max-binlog-size=8M"]),
    ];
    for (edits, expect) in rows {
        let lines = lines(&edits);
        for line in expect {
            assert!(lines.iter().any(|found| found == line), "{line}: {lines:?}");
        }
    }
    let plain = lines(&json!({}));
    for word in ["read-only", "super-read-only", "persisted", "init-file", "ssl-", "rpl-semi", "max-binlog-size"] {
        assert!(!plain.iter().any(|line| line.starts_with(word)), "{word}");
    }
}

#[test]
fn a_pod_adds_what_only_it_knows() {
    let text = conf::of_pod("[mysqld]\na=1\n", 7, "10.0.0.1");
    assert!(text.starts_with("[mysqld]\na=1\n") && text.ends_with("admin-address=10.0.0.1\nserver-id=7\n"), "{text}");
}

#[test]
fn relaxed_durability_is_told() {
    let relaxed = |conf: Value| {
        let group = edited(&json!({"/spec/mysqlConf": conf}));
        conf::relaxed(&group.spec).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(relaxed(json!({"sync_binlog": "1", "max-connections": "9"})), Vec::<String>::new());
    assert_eq!(relaxed(json!({"sync_binlog": "100"})), ["sync_binlog"]);
    assert_eq!(relaxed(json!({"loose-innodb_flush_log_at_trx_commit": "2"})), ["loose-innodb_flush_log_at_trx_commit"]);
}

#[test]
fn the_servers_socket_is_where_the_keeper_looks() {
    let socket = |edits: &Value| {
        let objects = built(&edited(edits));
        let command = container(pod(&objects, 0), "mysql").command.clone().expect("a command");
        command.into_iter().find(|word| word.starts_with("--socket=")).expect("a socket")
    };
    assert_eq!(socket(&json!({})), "--socket=/run/bloodraven/mysqld.sock");
    assert_eq!(socket(&json!({"/spec/mysqlConf": {"loose_socket": "/tmp/s"}})), "--socket=/tmp/s");
}
