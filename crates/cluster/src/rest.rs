//! Requests to the API server, as plain JSON.
//!
//! In: a path, a body. Out: the object as it is stored now, or why not, told apart as finely as safety needs. Must not:
//! retry, wait for an answer for ever (how long something may wait for its turn is its caller's business), or put what it
//! sent or got into an error or a log: some of it is secret.

use crate::lean::Lean;
use crate::turns::{Rank, Turns};
use bloodraven_api::keys::FIELD_MANAGER;
use bloodraven_operator::world::{Refused, Unavailable};
use http::{Method, Request, header};
use kube::Client;
use serde_json::Value;
use snafu::Snafu;
use std::time::Duration;
use tokio::time::timeout;

/// How long an answer may take: who got a turn and hears nothing gives it to another.
const ANSWER: Duration = Duration::from_secs(5);

/// See above.
#[derive(Clone)]
pub(crate) struct Rest {
    client: Client,
    /// None: nobody waits. Each request that is under way has a connection of its own, and those are not small.
    turns: Option<(Turns, Rank)>,
}

/// Why a request did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub(crate) enum Fault {
    /// The API server said no.
    #[snafu(display("{message} (HTTP {code})"))]
    Answer { code: u16, message: String },
    /// Nobody knows what became of it.
    #[snafu(display("no answer from the API server: {because}"))]
    Lost { because: String },
}

/// How a patch is to be read.
#[derive(Clone, Copy, Debug)]
enum Patch {
    Merge,
    Json,
    Apply,
}

impl Rest {
    /// Requests that wait for nobody.
    pub(crate) fn at_once(client: Client) -> Self {
        Self { client, turns: None }
    }

    /// Requests that wait for their turn.
    pub(crate) fn in_turn(client: Client, turns: &Turns, rank: Rank) -> Self {
        Self { client, turns: Some((turns.clone(), rank)) }
    }

    /// From the store itself: no resourceVersion is given, so no cache answers. None: there is none.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, Fault> {
        match self.send(Method::GET, path.to_owned(), None, None).await {
            Ok(object) => Ok(Some(object)),
            Err(Fault::Answer { code: 404, .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Makes an object; it is an error if it is there already (409).
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value, Fault> {
        self.send(Method::POST, ours(path), Some("application/json"), Some(object)).await
    }

    /// Puts this in the place of the object, if it has the resourceVersion that this names.
    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<Value, Fault> {
        self.send(Method::PUT, ours(path), Some("application/json"), Some(object)).await
    }

    /// Takes an object away, if it is as `how` says.
    pub(crate) async fn delete(&self, path: &str, how: &Value) -> Result<Value, Fault> {
        self.send(Method::DELETE, path.to_owned(), Some("application/json"), Some(how)).await
    }

    /// Changes the fields that are named. One that names `metadata.resourceVersion` or `metadata.uid` is done only while
    /// the object has them.
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> Result<Value, Fault> {
        self.patch(path, Patch::Merge, change).await
    }

    /// Does these operations, all or none.
    pub(crate) async fn operations(&self, path: &str, operations: &Value) -> Result<Value, Fault> {
        self.patch(path, Patch::Json, operations).await
    }

    /// Server-side apply, forced: what this names is ours.
    pub(crate) async fn apply(&self, path: &str, object: &Value) -> Result<Value, Fault> {
        self.patch(path, Patch::Apply, object).await
    }

    async fn patch(&self, path: &str, how: Patch, body: &Value) -> Result<Value, Fault> {
        let (kind, path) = match how {
            Patch::Merge => ("application/merge-patch+json", ours(path)),
            Patch::Json => ("application/json-patch+json", ours(path)),
            Patch::Apply => ("application/apply-patch+yaml", format!("{}&force=true", ours(path))),
        };
        self.send(Method::PATCH, path, Some(kind), Some(body)).await
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        kind: Option<&'static str>,
        body: Option<&Value>,
    ) -> Result<Value, Fault> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let mut request = Request::builder().method(method).uri(path).header(header::ACCEPT, "application/json");
        if let Some(kind) = kind {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        let request = request.body(body).map_err(|error| Fault::Lost { because: error.to_string() })?;
        let _turn = match &self.turns {
            Some((turns, rank)) => Some(turns.next(*rank).await),
            None => None,
        };
        let silence = || Fault::Lost { because: format!("nothing was said within {} s", ANSWER.as_secs()) };
        let answer = timeout(ANSWER, self.client.request_text(request)).await.map_err(|_| silence())?;
        let text = answer.map_err(Fault::of)?;
        let read = serde_json::from_str(&text).map(|Lean(object)| object);
        read.map_err(|_| Fault::Lost { because: "what it said is no JSON".to_owned() })
    }
}

/// With our name as the one who writes.
fn ours(path: &str) -> String {
    let join = if path.contains('?') { '&' } else { '?' };
    format!("{path}{join}fieldManager={FIELD_MANAGER}")
}

impl Fault {
    fn of(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Answer { code: status.code, message: status.message },
            other => Self::Lost { because: plain(&other) },
        }
    }

    /// For a write: what is known of it.
    pub(crate) fn refused(self) -> Refused {
        match &self {
            // Gone counts as another version: there is nothing any more that this could have changed.
            Self::Answer { code: 404 | 409 | 410, .. } => Refused::Conflict,
            Self::Answer { code: 400..=499, .. } if !self.is_undecided() => {
                Refused::Denied { because: self.to_string() }
            }
            _ => Refused::Unknown { because: self.to_string() },
        }
    }

    /// For a reading.
    pub(crate) fn unavailable(&self, what: &str) -> Unavailable {
        Unavailable { what: what.to_owned(), because: self.to_string() }
    }

    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Answer { code, .. } => Some(*code),
            Self::Lost { .. } => None,
        }
    }

    /// Too slow (408), too many (429): it may have been begun.
    fn is_undecided(&self) -> bool {
        matches!(self, Self::Answer { code: 408 | 429, .. })
    }
}

/// The whole chain of causes: a bare "client error (Connect)" helps nobody.
fn plain(error: &kube::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let said = next.to_string();
        if !words.contains(&said) {
            words = format!("{words}: {said}");
        }
        cause = next.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_write_depends_on_the_answer() {
        let answer = |code| Fault::Answer { code, message: "no".to_owned() }.refused();
        for code in [404, 409, 410] {
            assert_eq!(answer(code), Refused::Conflict, "{code}");
        }
        for code in [400, 401, 403, 405, 413, 415, 422] {
            assert!(matches!(answer(code), Refused::Denied { .. }), "{code}");
        }
        for code in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(answer(code), Refused::Unknown { .. }), "{code}");
        }
        let lost = Fault::Lost { because: "cut".to_owned() };
        assert!(matches!(lost.refused(), Refused::Unknown { .. }));
    }

    #[test]
    fn every_write_names_its_writer() {
        assert_eq!(ours("/api/v1/nodes/a"), "/api/v1/nodes/a?fieldManager=bloodraven");
        assert_eq!(ours("/api/v1/nodes/a?dryRun=All"), "/api/v1/nodes/a?dryRun=All&fieldManager=bloodraven");
    }
}
