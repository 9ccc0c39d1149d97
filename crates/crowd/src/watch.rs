//! Groups, as the API server shows them: when each came to which state.
//!
//! In: changes of group objects. Out: the last state of each, and when it was first seen. Must not: poll.

use crate::clock;
use crate::crowd::{Crowd, NAMESPACE};
use bloodraven_api::keys::{API_GROUP, API_VERSION, AUTHORITY};
use futures_util::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// After a watch that broke off: one that fails at once, as with a server that is gone, would take a core and never yield.
pub(crate) const AFTER_A_FAILURE: Duration = Duration::from_millis(200);

/// What is stored of one group.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Of the record.
    pub epoch: u64,
    /// Of the record: `Stable`, `Revoking`, `Granting`.
    pub phase: String,
    /// The site that has authority and was confirmed.
    pub active: String,
    /// The condition.
    pub ready: bool,
    /// What the condition says, where it is not so.
    pub because: String,
    /// When the record last became something other than stable.
    pub left_stable: Option<Instant>,
    /// When it last became stable.
    pub stable_since: Option<Instant>,
}

/// See above.
pub struct Seen {
    groups: Mutex<Vec<State>>,
    bell: watch::Sender<u64>,
}

impl Seen {
    /// Watches from now on. Needs a running tokio.
    pub fn begin(crowd: &Arc<Crowd>, client: Client, most: usize) -> Arc<Self> {
        let seen = Arc::new(Self { groups: Mutex::new(vec![State::default(); most]), bell: watch::Sender::new(0) });
        let (watched, crowd) = (Arc::clone(&seen), Arc::clone(crowd));
        tokio::spawn(async move {
            let kind = ApiResource {
                group: API_GROUP.to_owned(),
                version: API_VERSION.to_owned(),
                api_version: format!("{API_GROUP}/{API_VERSION}"),
                kind: "MysqlFailoverGroup".to_owned(),
                plural: "mysqlfailovergroups".to_owned(),
            };
            let groups: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &kind);
            let mut events = std::pin::pin!(watcher(groups, watcher::Config::default()));
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                        if let Some(group) = crowd.group_named(&object.name_any()) {
                            // The annotation is the record, and is stored first; the status shows it, too.
                            let record = object.annotations().get(AUTHORITY).and_then(|text| text.parse().ok());
                            watched.note(group, &record.unwrap_or_default(), &object.data["status"]);
                        }
                    }
                    Ok(_) => {}
                    Err(_) => clock::pass(AFTER_A_FAILURE).await,
                }
            }
        });
        seen
    }

    fn note(&self, group: usize, record: &Value, status: &Value) {
        let now = Instant::now();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = groups.get_mut(group) else { return };
        let phase = text(&record["phase"]);
        if phase != known.phase && phase == "Stable" {
            known.stable_since = Some(now);
        } else if phase != known.phase && known.phase == "Stable" {
            known.left_stable = Some(now);
        }
        known.phase = phase;
        known.epoch = record["epoch"].as_u64().unwrap_or(0);
        known.active = text(&status["activeSite"]);
        known.ready = ready.is_some_and(|ready| ready["status"] == "True");
        known.because = ready.map(|ready| text(&ready["message"])).unwrap_or_default();
        drop(groups);
        self.bell.send_modify(|count| *count += 1);
    }

    /// What is stored of a group.
    pub fn of(&self, group: usize) -> State {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).get(group).cloned().unwrap_or_default()
    }

    /// Waits until that is so, looking whenever something changed and twice a second; false: it is not, in time.
    pub async fn until(&self, limit: Duration, mut so: impl FnMut() -> bool) -> bool {
        let mut bell = self.bell.subscribe();
        let wait = async {
            loop {
                bell.borrow_and_update();
                if so() {
                    return;
                }
                // What is true of the crowd alone rings no bell.
                let _ = timeout(Duration::from_millis(100), bell.changed()).await;
            }
        };
        timeout(limit, wait).await.is_ok()
    }
}
