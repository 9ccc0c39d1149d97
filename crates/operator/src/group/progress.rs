//! What in a status only tells that time goes by.

use serde_json::Value;

/// Fields that move with every poll of a group in which nothing happens.
const FIELDS: [&str; 4] = ["lastSeen", "gtidExecuted", "secondsBehindSource", "leaseRemainingMs"];

/// Whether that is all in which two of them differ.
pub(super) fn is_all(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let steady = |key: &&String| !FIELDS.contains(&key.as_str());
            let same = |key: &String| match (one.get(key), other.get(key)) {
                (Some(one), Some(other)) => is_all(one, other),
                _ => false,
            };
            one.keys().filter(steady).all(same) && other.keys().filter(steady).all(|key| one.contains_key(key))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_all(one, other))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_but_the_passing_of_time_is_news() {
        let site = |change: &str, value: Value| {
            let mut site = json!({"name": "iad", "state": "writable", "lastSeen": "10:00", "gtidExecuted": "a:1-5",
                "sidecar": {"reachable": true, "epoch": 3, "leaseRemainingMs": 19_000}});
            if let Some(field) = site.pointer_mut(change).filter(|_| !change.is_empty()) {
                *field = value;
            }
            json!({"activeSite": "iad", "promotionGtidExecuted": "a:1-2", "sites": [site]})
        };
        let before = site("", Value::Null);
        let rows = [
            ("/lastSeen", json!("10:02"), true),
            ("/gtidExecuted", json!("a:1-9"), true),
            ("/sidecar/leaseRemainingMs", json!(18_000), true),
            ("/state", json!("read-only"), false),
            ("/sidecar/epoch", json!(4), false),
            ("/sidecar/reachable", json!(false), false),
            ("/sidecar", json!({}), false),
        ];
        for (field, value, progress) in rows {
            let after = site(field, value);
            assert_eq!(is_all(&after, &before), progress, "{field}");
            assert_eq!(is_all(&before, &after), progress, "{field}");
        }
        let gone = json!({"activeSite": "iad", "promotionGtidExecuted": "a:1-2", "sites": []});
        assert!(!is_all(&gone, &before) && !is_all(&before, &gone));
        let mut promoted = before.clone();
        promoted["promotionGtidExecuted"] = json!("a:1-9");
        assert!(!is_all(&promoted, &before), "what is kept is news");
        let mut appeared = before.clone();
        appeared["sites"][0]["secondsBehindSource"] = json!(3);
        assert!(is_all(&appeared, &before) && is_all(&before, &appeared));
        appeared["sites"][0]["recoveryState"] = json!("blocked");
        assert!(!is_all(&appeared, &before) && !is_all(&before, &appeared));
    }
}
