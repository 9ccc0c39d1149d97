//! `SHOW REPLICA STATUS`, read by column names.
//!
//! In: its rows, each as a list of names and values. Out: a [`ReplicaReading`] of the channel without a name. Must not:
//! depend on the order of columns, or take a missing one for a value.

use crate::{Fault, Receiver, ReplicaReading};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;
use std::time::Duration;

/// One row: lower-case column names, and values that are not NULL.
pub(crate) type Status = BTreeMap<String, String>;

/// The channel without a name; none: there is none. An error is the name of the column that is not what it should be.
pub(crate) fn read(rows: &[Status], worker: Option<&Fault>) -> Result<Option<ReplicaReading>, String> {
    let ours = |row: &&Status| row.get("channel_name").is_none_or(String::is_empty);
    let Some(row) = rows.iter().find(ours) else { return Ok(None) };
    let text = |name: &str| row.get(name).map(String::as_str).ok_or_else(|| name.to_owned());
    let number = |name: &str| text(name)?.parse::<u64>().map_err(|_| name.to_owned());
    let fault = |code: &str, message: &str| -> Result<Option<Fault>, String> {
        let code = u32::try_from(number(code)?).map_err(|_| code.to_owned())?;
        Ok((code != 0).then(|| Fault { code, message: row.get(message).cloned().unwrap_or_default() }))
    };
    let receiver = match text("replica_io_running")? {
        "Yes" => Receiver::Running,
        "Connecting" => Receiver::Connecting,
        "No" => Receiver::Stopped,
        _ => return Err("replica_io_running".to_owned()),
    };
    let applier_running = match text("replica_sql_running")? {
        "Yes" => true,
        "No" => false,
        _ => return Err("replica_sql_running".to_owned()),
    };
    let applier_error = fault("last_sql_errno", "last_sql_error")?;
    Ok(Some(ReplicaReading {
        source_host: text("source_host")?.to_owned(),
        source_port: u16::try_from(number("source_port")?).map_err(|_| "source_port".to_owned())?,
        source_uuid: row.get("source_uuid").and_then(|uuid| uuid.parse().ok()),
        receiver,
        receiver_error: fault("last_io_errno", "last_io_error")?,
        applier_running,
        // The coordinator only says that a worker failed; the worker says why.
        applier_error: applier_error.map(|coordinator| worker.cloned().unwrap_or(coordinator)),
        received: row.get("retrieved_gtid_set").and_then(|set| set.parse::<GtidSet>().ok()),
        delay: Duration::from_secs(number("sql_delay")?),
        behind: row.get("seconds_behind_source").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs),
        auto_position: text("auto_position")? == "1",
        other_channels: rows.len() - 1,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(changes: &[(&str, Option<&str>)]) -> Status {
        let base = [
            ("channel_name", ""),
            ("source_host", "mysql-g-iad-internal"),
            ("source_port", "3306"),
            ("source_uuid", "3e11fa47-71ca-11e1-9e33-c80aa9429562"),
            ("replica_io_running", "Yes"),
            ("replica_sql_running", "Yes"),
            ("last_io_errno", "0"),
            ("last_io_error", ""),
            ("last_sql_errno", "0"),
            ("last_sql_error", ""),
            ("retrieved_gtid_set", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:tag:7"),
            ("sql_delay", "0"),
            ("seconds_behind_source", "0"),
            ("auto_position", "1"),
        ];
        let mut row: Status = base.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (name, value) in changes {
            match value {
                Some(value) => drop(row.insert((*name).to_owned(), (*value).to_owned())),
                None => drop(row.remove(*name)),
            }
        }
        row
    }

    fn one(changes: &[(&str, Option<&str>)]) -> ReplicaReading {
        read(&[row(changes)], None).unwrap().unwrap()
    }

    #[test]
    fn a_healthy_replica_is_read_whole() {
        let reading = one(&[]);
        assert_eq!((reading.source_host.as_str(), reading.source_port), ("mysql-g-iad-internal", 3306));
        assert_eq!(reading.received.unwrap().count(), 6);
        assert_eq!((reading.receiver, reading.applier_running), (Receiver::Running, true));
        assert_eq!((reading.receiver_error, reading.applier_error), (None, None));
        assert_eq!((reading.delay, reading.behind), (Duration::ZERO, Some(Duration::ZERO)));
        assert!(reading.auto_position && reading.source_uuid.is_some());
    }

    #[test]
    fn what_is_absent_is_absent_and_not_zero() {
        let reading = one(&[("seconds_behind_source", None), ("source_uuid", Some("")), ("sql_delay", Some("3600"))]);
        assert_eq!((reading.behind, reading.source_uuid, reading.delay), (None, None, Duration::from_hours(1)));
        assert_eq!(one(&[("retrieved_gtid_set", Some(""))]).received, Some(GtidSet::new()));
        assert_eq!(one(&[("retrieved_gtid_set", Some("garbage"))]).received, None);
        assert_eq!(read(&[], None), Ok(None));
    }

    #[test]
    fn threads_and_their_errors_are_read() {
        let reading = one(&[
            ("replica_io_running", Some("Connecting")),
            ("last_io_errno", Some("2003")),
            ("last_io_error", Some("error connecting to source")),
            ("replica_sql_running", Some("No")),
            ("last_sql_errno", Some("1062")),
            ("last_sql_error", Some("Coordinator stopped because there were error(s) in the worker(s)")),
        ]);
        assert_eq!((reading.receiver, reading.applier_running), (Receiver::Connecting, false));
        assert!(reading.receiver_error.unwrap().is_link());
        assert_eq!(reading.applier_error.unwrap().code, 1062);
    }

    #[test]
    fn a_workers_words_replace_the_coordinators_but_make_no_error_of_their_own() {
        let worker = Fault { code: 1062, message: "Duplicate entry '1'".to_owned() };
        let failed = row(&[("last_sql_errno", Some("1062")), ("replica_sql_running", Some("No"))]);
        let reading = read(&[failed], Some(&worker)).unwrap().unwrap();
        assert_eq!(reading.applier_error, Some(worker.clone()));
        assert_eq!(read(&[row(&[])], Some(&worker)).unwrap().unwrap().applier_error, None);
    }

    #[test]
    fn a_column_that_is_missing_or_odd_is_named() {
        for (name, value) in [
            ("source_host", None),
            ("source_port", Some("70000")),
            ("replica_io_running", Some("Maybe")),
            ("replica_sql_running", None),
            ("last_io_errno", Some("x")),
            ("last_sql_errno", None),
            ("sql_delay", Some("-1")),
            ("auto_position", None),
        ] {
            assert_eq!(read(&[row(&[(name, value)])], None), Err(name.to_owned()));
        }
    }

    #[test]
    fn ours_is_the_channel_without_a_name() {
        let other = row(&[("channel_name", Some("analytics")), ("source_host", Some("elsewhere"))]);
        assert_eq!(read(std::slice::from_ref(&other), None), Ok(None));
        let reading = read(&[other, row(&[])], None).unwrap().unwrap();
        assert_eq!((reading.source_host.as_str(), reading.other_channels), ("mysql-g-iad-internal", 1));
    }
}
