//! `/active-site`: who may write; and, to a signed question, the leader's grant or the view that is stored.
//!
//! In: a query, plain or signed. Out: JSON, with a signed envelope for who signed. Must not: call a grant what does not come
//! from the leader at this moment, answer the same question twice, or say more to a stranger than to a reader of status.

use super::{App, Refusal, answer, refuse};
use crate::group::{Asked, Shared, ToLeader, lock, reason};
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bloodraven_brain::authority::Answer;
use bloodraven_brain::message::QuestionId;
use bloodraven_brain::record::View;
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{Envelope, Error, GrantMessage, Keys, Nonce, QuestionMessage, ViewMessage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The leader's loop takes a step in well under a millisecond.
const LEADER_BOUND: Duration = Duration::from_millis(1500);

type Parameters = Query<BTreeMap<String, String>>;

pub(super) async fn active_site(
    State(app): State<Arc<App>>,
    uri: Uri,
    parameters: Result<Parameters, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Ok(Query(parameters)) = parameters else {
        return refuse(StatusCode::BAD_REQUEST, "the query cannot be read");
    };
    let get = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let (Some(namespace), Some(name)) = (get("namespace"), get("group")) else {
        return refuse(StatusCode::BAD_REQUEST, "namespace and group are needed: /active-site?namespace=&group=");
    };
    let Some(shared) = app.group(Some(namespace), Some(name)) else {
        return refuse(StatusCode::NOT_FOUND, "there is no such group");
    };
    let signed = parameters.contains_key("mac") || parameters.contains_key("nonce");
    let target = uri.path_and_query().map_or(uri.path(), |target| target.as_str());
    let said = if signed { to_question(&app, &shared, target).await } else { to_reader(&app, &shared) };
    match said {
        Ok((view, envelope)) => answer(&body(&app, &shared, view.as_ref(), envelope.as_ref()).await),
        Err(refusal) => refusal.into_response(),
    }
}

type Said = (Option<View>, Option<Envelope>);

fn to_reader(app: &App, shared: &Shared) -> Result<Said, Refusal> {
    if !app.synced.borrow().to_owned() {
        return Err(not_loaded());
    }
    stored(shared).map(|view| (view, None))
}

async fn to_question(app: &App, shared: &Shared, target: &str) -> Result<Said, Refusal> {
    let Some(known) = shared.secrets.borrow().clone() else {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the group's key was not read yet"));
    };
    let asked = query::verify(&known.now.keys, Purpose::Authority, query::METHOD, target).map_err(|e| wrong(&e))?;
    let message = QuestionMessage::from_query(&asked, &shared.uid, QuestionId(0)).map_err(|e| wrong(&e))?;
    if !lock(&shared.answered).is_new(message.nonce, (app.clock)().boot) {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "the nonce was used before"));
    }
    let nonce = message.nonce;
    let (reply, answered) = oneshot::channel();
    let to_leader = ToLeader::Asked(Asked { question: message.question, reply });
    if shared.ask(to_leader).is_err() {
        // Somebody else leads, or nobody: what is stored, which renews nothing.
        let Some(view) = stored(shared)? else { return Err(not_loaded()) };
        return sealed_view(app, shared, &known.now.keys, nonce, view);
    }
    match timeout(LEADER_BOUND, answered).await {
        Ok(Ok(Some(answer))) => match *answer {
            Answer::View(view) => sealed_view(app, shared, &known.now.keys, nonce, *view),
            // At the last moment: who does not lead any more has nothing to give.
            Answer::Grant(grant) if app.leadership.holds() => {
                let (view, reason) = (grant.view.clone(), reason(&grant).to_owned());
                let (group, observed_at) = (shared.uid.clone(), now(app));
                let envelope = GrantMessage { group, grant: *grant, observed_at, reason }.seal(&known.now.keys, nonce);
                Ok((Some(view), Some(envelope.map_err(|e| unsaid(&e))?)))
            }
            Answer::Grant(grant) => sealed_view(app, shared, &known.now.keys, nonce, grant.view),
        },
        Ok(Ok(None) | Err(_)) => Err(not_loaded()),
        Err(_) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the group's loop does not answer")),
    }
}

fn sealed_view(app: &App, shared: &Shared, keys: &Keys, nonce: Nonce, view: View) -> Result<Said, Refusal> {
    let message = ViewMessage { group: shared.uid.clone(), view: view.clone(), observed_at: now(app) };
    let envelope = message.seal(keys, nonce).map_err(|e| unsaid(&e))?;
    Ok((Some(view), Some(envelope)))
}

/// The view in the stored record; none: there is no record.
fn stored(shared: &Shared) -> Result<Option<View>, Refusal> {
    match shared.object().kept() {
        Ok(kept) => Ok(kept.record.as_ref().map(bloodraven_brain::record::Record::view)),
        Err(corrupt) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, corrupt.to_string())),
    }
}

async fn body(app: &App, shared: &Shared, view: Option<&View>, signed: Option<&Envelope>) -> Value {
    let seat = view.and_then(|view| view.seat.as_ref());
    let mut body = json!({
        "namespace": &*shared.id.namespace,
        "group": &*shared.id.name,
        "activeSite": seat.map_or("", |seat| seat.site.as_str()),
        "instance": seat.map(|seat| seat.instance.to_string()).unwrap_or_default(),
        "observedAt": now(app),
        "epoch": view.map_or(0, |view| view.epoch),
        "phase": view.map(|view| format!("{:?}", view.phase)).unwrap_or_default(),
        "leader": app.leadership.holds(),
        "leaderAddress": app.leader_address().await,
    });
    if let (Some(signed), Some(fields)) = (signed, body.as_object_mut()) {
        fields.insert("signed".to_owned(), serde_json::to_value(signed).unwrap_or_default());
    }
    body
}

fn now(app: &App) -> String {
    (app.clock)().wall.to_string()
}

fn not_loaded() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the record was not read yet, or there is none")
}

fn wrong(error: &Error) -> Refusal {
    let status = match error {
        Error::BadSignature => StatusCode::UNAUTHORIZED,
        Error::WrongGroup { .. } => StatusCode::NOT_FOUND,
        Error::TooLarge { .. } => StatusCode::URI_TOO_LONG,
        Error::NotJson { .. }
        | Error::MissingField { .. }
        | Error::UnknownKind { .. }
        | Error::BadNonce
        | Error::WrongKind { .. }
        | Error::WrongNonce
        | Error::Malformed { .. } => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, error.to_string())
}

fn unsaid(error: &Error) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer has no form on the wire: {error}"))
}
