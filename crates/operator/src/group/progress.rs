//! What in a status only tells that time goes by: fields that move with every poll of a group in which nothing happens.

use bloodraven_api::MysqlFailoverGroupStatus;

/// Whether that is all in which this status differs from the one before.
pub(super) fn is_all(status: &MysqlFailoverGroupStatus, before: &MysqlFailoverGroupStatus) -> bool {
    let mut steady = status.clone();
    for (site, before) in steady.sites.iter_mut().zip(&before.sites) {
        site.last_seen.clone_from(&before.last_seen);
        site.gtid_executed.clone_from(&before.gtid_executed);
        site.seconds_behind_source = before.seconds_behind_source;
        if let (Some(sidecar), Some(before)) = (&mut site.sidecar, &before.sidecar) {
            sidecar.lease_remaining_ms = before.lease_remaining_ms;
        }
    }
    steady == *before
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn status(change: impl FnOnce(&mut Value)) -> MysqlFailoverGroupStatus {
        let mut status = json!({"activeSite": "iad", "promotionGtidExecuted": "a:1-2", "sites": [
            {"name": "iad", "state": "writable", "lastSeen": "2026-01-01T10:00:00Z", "gtidExecuted": "a:1-5",
                "sidecar": {"reachable": true, "epoch": 3, "leaseRemainingMs": 19_000}}]});
        change(&mut status);
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn everything_but_the_passing_of_time_is_news() {
        type Change = fn(&mut Value);
        let rows: [(&str, Change, bool); 12] = [
            ("nothing", |_| {}, true),
            ("seen later", |it| it["sites"][0]["lastSeen"] = json!("2026-01-01T10:00:02Z"), true),
            ("more executed", |it| it["sites"][0]["gtidExecuted"] = json!("a:1-9"), true),
            ("less of the lease", |it| it["sites"][0]["sidecar"]["leaseRemainingMs"] = json!(18_000), true),
            ("lag", |it| it["sites"][0]["secondsBehindSource"] = json!(3), true),
            ("state", |it| it["sites"][0]["state"] = json!("read-only"), false),
            ("epoch", |it| it["sites"][0]["sidecar"]["epoch"] = json!(4), false),
            ("unreachable", |it| it["sites"][0]["sidecar"]["reachable"] = json!(false), false),
            ("no sidecar", |it| it["sites"][0]["sidecar"] = Value::Null, false),
            ("recovery", |it| it["sites"][0]["recoveryState"] = json!("RecoveryBlocked"), false),
            ("promotion", |it| it["promotionGtidExecuted"] = json!("a:1-9"), false),
            ("no site", |it| it["sites"] = json!([]), false),
        ];
        let before = status(|_| {});
        for (what, change, progress) in rows {
            let after = status(change);
            assert_eq!((is_all(&after, &before), is_all(&before, &after)), (progress, progress), "{what}");
        }
    }
}
