//! Events on a group: made once, counted when they repeat.
//!
//! In: what people are told. Out: an Event of `events.k8s.io`, or one more in the series of the same one. Must not: fill the
//! store: the same words within [`SAME_FOR`] are one object.

use crate::group::KIND;
use crate::lease::micro;
use crate::rest::{Fault, Rest};
use bloodraven_api::keys::{API_GROUP, API_VERSION, FIELD_MANAGER};
use bloodraven_api::names::hash8;
use bloodraven_operator::world::{Event, GroupId, Refused};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The same words after so long are news again; the API server keeps Events for an hour.
const SAME_FOR: i64 = 30 * 60 * 1000;

/// So many are remembered; the oldest goes first.
const REMEMBERED: usize = 4096;

/// What the API server takes for the words of an Event.
const WORDS: usize = 1024;

/// Which Events were written last.
#[derive(Debug, Default)]
pub(crate) struct Written {
    last: Mutex<BTreeMap<(GroupId, String, String), Series>>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    count: u32,
    since: i64,
}

pub(crate) async fn record(
    rest: &Rest,
    written: &Written,
    reporter: &str,
    group: &GroupId,
    uid: &str,
    event: &Event,
) -> Result<(), Refused> {
    let folder = format!("/apis/events.k8s.io/v1/namespaces/{}/events", group.namespace);
    let series = written.note(group, event);
    if series.count > 1 {
        let change = json!({ "series": { "count": series.count, "lastObservedTime": micro(event.at) } });
        match rest.merge(&format!("{folder}/{}", series.name), &change).await {
            // It is gone already: told anew.
            Err(Fault::Answer { code: 404, .. }) => {}
            other => return other.map(drop).map_err(Fault::refused),
        }
    }
    let object = object(&series.name, reporter, group, uid, event);
    rest.create(&folder, &object).await.map(drop).map_err(Fault::refused)
}

fn object(name: &str, reporter: &str, group: &GroupId, uid: &str, event: &Event) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": &*group.namespace },
        "eventTime": micro(event.at),
        "reportingController": format!("{API_GROUP}/{FIELD_MANAGER}"),
        "reportingInstance": reporter.chars().take(128).collect::<String>(),
        "action": event.reason,
        "reason": event.reason,
        "note": event.message.chars().take(WORDS).collect::<String>(),
        "type": event.kind.as_str(),
        "regarding": {
            "apiVersion": format!("{API_GROUP}/{API_VERSION}"),
            "kind": KIND,
            "name": &*group.name,
            "namespace": &*group.namespace,
            "uid": uid,
        },
    })
}

impl Written {
    /// The series that this Event belongs to, itself counted.
    fn note(&self, group: &GroupId, event: &Event) -> Series {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (group.clone(), event.reason.clone(), event.message.clone());
        if let Some(series) = last.get_mut(&key).filter(|series| event.at.0 - series.since < SAME_FOR) {
            series.count += 1;
            return series.clone();
        }
        if last.len() >= REMEMBERED
            && let Some(oldest) = last.iter().min_by_key(|(_, series)| series.since).map(|(key, _)| key.clone())
        {
            last.remove(&oldest);
        }
        let words = hash8(&format!("{} {}", event.reason, event.message));
        let name = format!("{}.{:x}.{words}", group.name, event.at.0);
        let series = Series { name, count: 1, since: event.at.0 };
        last.insert(key, series.clone());
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_brain::time::Wall;
    use bloodraven_operator::world::EventKind;

    fn event(message: &str, at: i64) -> Event {
        Event { kind: EventKind::Warning, reason: "Alert".to_owned(), message: message.to_owned(), at: Wall(at) }
    }

    #[test]
    fn the_same_words_are_one_series_until_they_are_news_again() {
        let (written, group) = (Written::default(), GroupId::new("shop", "orders"));
        let note = |message: &str, at| written.note(&group, &event(message, at));
        let first = note("a", 0);
        assert_eq!((first.count, note("a", 1000).count, note("b", 1000).count), (1, 2, 1));
        assert_eq!(note("a", 2000).name, first.name);
        let again = note("a", SAME_FOR);
        assert!(again.count == 1 && again.name != first.name);
    }

    /// K-23: and of those that were written.
    #[test]
    fn no_more_are_remembered_than_said() {
        let (written, group) = (Written::default(), GroupId::new("shop", "orders"));
        for at in 0..5000 {
            written.note(&group, &event(&at.to_string(), at));
        }
        assert_eq!(written.last.lock().expect("whole").len(), REMEMBERED);
    }

    #[test]
    fn an_event_is_about_its_group() {
        let object = object("n", "pod-a", &GroupId::new("shop", "orders"), "u", &event(&"x".repeat(3000), 7));
        assert_eq!(object["regarding"]["uid"], "u");
        assert_eq!(object["note"].as_str().map(str::len), Some(WORDS));
        assert_eq!(object["eventTime"], "1970-01-01T00:00:00.007000Z");
    }
}
