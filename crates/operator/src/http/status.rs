//! `/status`, `/why` and `/what-if`: for people and for tools that ask on their behalf.
//!
//! In: queries. Out: JSON. Must not: tell a story of its own; each is the leader's state, or what is stored.

use super::{App, Refusal, answer, refuse};
use crate::group::{self, Shared, ToLeader};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bloodraven_brain::name::Site;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The leader's loop takes a step in well under a millisecond.
const LEADER_BOUND: Duration = Duration::from_millis(1500);

/// A rehearsal of three minutes takes a few hundred milliseconds.
const REHEARSAL_BOUND: Duration = Duration::from_secs(8);

type Parameters = Result<Query<BTreeMap<String, String>>, axum::extract::rejection::QueryRejection>;

pub(super) async fn status(State(app): State<Arc<App>>) -> Response {
    let groups = app.groups.borrow().clone();
    if groups.is_empty() {
        return answer(&json!({"status": "no active failover groups"}));
    }
    let entries: Map<String, Value> = groups.iter().map(|(id, shared)| (id.to_string(), entry(shared))).collect();
    answer(&Value::Object(entries))
}

/// The leader's own picture; who does not lead shows what is stored.
fn entry(shared: &Shared) -> Value {
    match shared.outlook() {
        Some(own) => group::entry(Some(&own), None),
        None => group::entry(shared.object().status(), None),
    }
}

pub(super) async fn why(State(app): State<Arc<App>>, parameters: Parameters) -> Response {
    let shared = match find(&app, parameters) {
        Ok((shared, _)) => shared,
        Err(refusal) => return refusal.into_response(),
    };
    let (reply, answered) = oneshot::channel();
    if shared.ask(ToLeader::Why(reply)).is_err() {
        return not_leading(&app).await;
    }
    match timeout(LEADER_BOUND, answered).await {
        Ok(Ok(why)) => answer(&why),
        Ok(Err(_)) => not_leading(&app).await,
        Err(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the group's loop does not answer"),
    }
}

pub(super) async fn what_if(State(app): State<Arc<App>>, parameters: Parameters) -> Response {
    let (shared, parameters) = match find(&app, parameters) {
        Ok(found) => found,
        Err(refusal) => return refusal.into_response(),
    };
    let named = parameters.get("kill").map(String::as_str).unwrap_or_default();
    let dead: Vec<Site> = named.split(',').filter(|name| !name.is_empty()).map(Site::new).collect();
    let Ok(_place) = Arc::clone(&app.rehearsals).try_acquire_owned() else {
        return refuse(StatusCode::TOO_MANY_REQUESTS, "others are asking; ask again");
    };
    let (reply, answered) = oneshot::channel();
    if shared.ask(ToLeader::Copy(reply)).is_err() {
        return not_leading(&app).await;
    }
    let Ok(Ok((leader, now))) = timeout(LEADER_BOUND, answered).await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the group's loop does not answer");
    };
    if let Some(unknown) = dead.iter().find(|site| leader.spec.site(site).is_none()) {
        let declared: Vec<String> = leader.spec.names().iter().map(Site::to_string).collect();
        let because = format!("kill: {unknown:?} is not a site; the sites are {}", declared.join(", "));
        return refuse(StatusCode::BAD_REQUEST, because);
    }
    let rehearsal = tokio::task::spawn_blocking(move || group::forecast(&leader, now, &dead));
    match timeout(REHEARSAL_BOUND, rehearsal).await {
        Ok(Ok(forecast)) => answer(&forecast),
        Ok(Err(_)) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the rehearsal broke off"),
        Err(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the rehearsal takes too long"),
    }
}

type Found = (Arc<Shared>, BTreeMap<String, String>);

fn find(app: &App, parameters: Parameters) -> Result<Found, Refusal> {
    let Ok(Query(parameters)) = parameters else {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "the query cannot be read"));
    };
    let get = |name: &str| parameters.get(name).map(String::as_str);
    match app.group(get("namespace"), get("group")) {
        Some(shared) => Ok((shared, parameters)),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no such group; name it: ?namespace=&group=")),
    }
}

async fn not_leading(app: &App) -> Response {
    let body = match app.leader_address().await {
        Some(address) => format!("this operator does not lead; ask {address}"),
        None => "this operator does not lead, and nobody who does is known".to_owned(),
    };
    refuse(StatusCode::SERVICE_UNAVAILABLE, body)
}
