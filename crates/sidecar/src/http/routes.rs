//! The paths, and what each answers.
//!
//! In: requests. Out: answers from the actor and the local server. Must not: look into a body before its size and its
//! signature were found right, tell a stranger more than that, or wait longer than a client would.

use super::seen::Seen;
use super::status;
use crate::event::{Look, Outside, PushAnswer, VouchAnswer};
use crate::keeper::Keeper;
use crate::keys::KeyRing;
use crate::local::Local;
use crate::outward::FROM_PEER;
use crate::tell::Teller;
use crate::volume::Gauge;
use crate::{clock, lock};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use bloodraven_brain::fence::Source;
use bloodraven_brain::message::QuestionId;
use bloodraven_brain::time::Millis;
use bloodraven_mysql::Deadline;
use bloodraven_telemetry::log::Level;
use bloodraven_wire::message::Relayed;
use bloodraven_wire::query::{self, Purpose, VerifiedQuery};
use bloodraven_wire::{
    AckMessage, EmptyMessage, Envelope, Error, GrantMessage, GroupUid, Kind, MAX_ENVELOPE_BYTES, Nonce, Outstanding,
    QuestionMessage, Verified, ViewMessage, VouchMessage,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

/// How long a body may take to come.
const BODY_WITHIN: Duration = Duration::from_secs(2);

/// How long the brain may take for an answer: it answers within 1.5 s, whatever mysqld does.
const ANSWER_WITHIN: Duration = Duration::from_millis(2500);

/// How long the server may take to say what it holds, and the keeper to answer: the leader waits no longer for all of it.
const READ_WITHIN: Duration = Duration::from_millis(700);

/// The longest lease that a nonce can be outstanding for, while no view tells one.
const NO_LEASE: Millis = Millis(20_000);

/// What the paths need.
pub(crate) struct Service {
    pub(crate) group: GroupUid,
    pub(crate) keys: KeyRing,
    pub(crate) outside: mpsc::Sender<Outside>,
    pub(crate) outstanding: Arc<Mutex<Outstanding>>,
    pub(crate) local: Arc<Local>,
    pub(crate) keeper: Keeper,
    pub(crate) teller: Teller,
    pub(super) volume: Gauge,
    seen: Mutex<Seen>,
}

/// An answer other than the wanted one.
#[derive(Debug)]
struct Refusal(StatusCode, String);

impl Service {
    pub(crate) fn new(
        group: GroupUid,
        keys: KeyRing,
        outside: mpsc::Sender<Outside>,
        outstanding: Arc<Mutex<Outstanding>>,
        (local, keeper): (Arc<Local>, Keeper),
        teller: Teller,
        volume: Gauge,
    ) -> Self {
        Self { group, keys, outside, outstanding, local, keeper, teller, volume, seen: Mutex::default() }
    }

    /// Puts something to the actor and waits for its answer.
    async fn ask<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Outside) -> Result<T, Refusal> {
        let (tell, told) = oneshot::channel();
        let asked = async {
            self.outside.send(make(tell)).await.ok()?;
            told.await.ok()
        };
        let answer = timeout(ANSWER_WITHIN, asked).await.ok().flatten();
        answer.ok_or_else(|| Refusal(StatusCode::SERVICE_UNAVAILABLE, "no answer in time".to_owned()))
    }

    pub(super) async fn look(&self) -> Result<Look, StatusCode> {
        self.ask(Outside::Look).await.map_err(|Refusal(status, _)| status)
    }

    /// A signed GET about this group whose nonce was not used before.
    fn verify(&self, purpose: Purpose, uri: &Uri) -> Result<VerifiedQuery, Refusal> {
        let target = uri.path_and_query().map_or("", |target| target.as_str());
        let query = query::verify(&self.keys.now(), purpose, query::METHOD, target)?;
        if query.required("groupUid")? != self.group.as_str() {
            return Err(Refusal(StatusCode::BAD_REQUEST, "groupUid is that of another group".to_owned()));
        }
        if !lock(&self.seen).first(query.nonce()) {
            return Err(Refusal(StatusCode::UNAUTHORIZED, "the nonce was used before".to_owned()));
        }
        Ok(query)
    }

    /// Signs an acknowledgement; one that is too long goes without what is handed on, then without its set.
    fn seal_ack(&self, answer: PushAnswer, nonce: Nonce) -> Result<Response, Refusal> {
        let (ack, details, question, relayed) = match answer {
            PushAnswer::Ack { ack, details, question, relayed } => (ack, details, question, relayed),
            PushAnswer::NotStored => return Err(Refusal(StatusCode::INSUFFICIENT_STORAGE, "not stored".to_owned())),
            PushAnswer::Conflict => {
                let why = "another view of this epoch is known here".to_owned();
                return Err(Refusal(StatusCode::CONFLICT, why));
            }
        };
        let handed_on = |(ack, age)| Relayed { ack, details: bloodraven_wire::message::Details::default(), age };
        let relayed = relayed.into_iter().map(handed_on).collect();
        let question = question.map(|question| *question);
        let mut message = AckMessage { group: self.group.clone(), ack: *ack, details, question, relayed };
        let keys = self.keys.now();
        let mut sealed = message.seal(&keys, nonce);
        if matches!(sealed, Err(Error::TooLarge { .. })) {
            message.relayed.clear();
            sealed = message.seal(&keys, nonce);
        }
        if matches!(sealed, Err(Error::TooLarge { .. })) {
            message.ack.gtid = None;
            sealed = message.seal(&keys, nonce);
        }
        Ok(json(StatusCode::OK, sealed?.to_string()))
    }
}

/// The paths of one connection; `serving` counts the requests that are being answered.
pub(super) fn router(service: Arc<Service>, serving: Arc<AtomicU32>) -> Router {
    let measured = Arc::clone(&service);
    Router::new()
        .route("/health", get(health))
        .route("/status", get(status::status))
        .route("/peer/ping", get(ping))
        .route("/peer/active-site", get(active_site))
        .route("/authority", get(probe).post(push))
        .route("/empty", post(empty))
        .route("/metrics", get(metrics))
        .fallback(async || Refusal(StatusCode::NOT_FOUND, "there is no such path".to_owned()).response())
        .method_not_allowed_fallback(async || {
            Refusal(StatusCode::METHOD_NOT_ALLOWED, "this path has another method".to_owned()).response()
        })
        .with_state(service)
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            measure(Arc::clone(&measured), Arc::clone(&serving), request, next)
        }))
}

/// Counts a request, and marks its connection as being served meanwhile.
async fn measure(service: Arc<Service>, serving: Arc<AtomicU32>, request: Request, next: Next) -> Response {
    struct Serving(Arc<AtomicU32>);
    impl Drop for Serving {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let began = Instant::now();
    let (handler, method) = (handler(request.uri().path()), request.method().clone());
    serving.fetch_add(1, Ordering::Relaxed);
    let serving = Serving(serving);
    let response = next.run(request).await;
    drop(serving);
    service.teller.answered(handler, method.as_str(), response.status().as_u16(), began.elapsed());
    response
}

/// The name of a path in metrics: a closed list.
fn handler(path: &str) -> &'static str {
    const PATHS: [&str; 7] =
        ["/health", "/status", "/peer/ping", "/peer/active-site", "/authority", "/empty", "/metrics"];
    PATHS.into_iter().find(|known| *known == path).unwrap_or("other")
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    match service.local.look().await {
        Ok(_) => "ok".into_response(),
        Err(error) => Refusal(StatusCode::SERVICE_UNAVAILABLE, error).response(),
    }
}

async fn metrics(State(service): State<Arc<Service>>) -> Response {
    let look = service.look().await.ok();
    let (content_type, text) = service.teller.metrics(look.as_ref());
    ([(header::CONTENT_TYPE, content_type)], text).into_response()
}

/// Plain: "I am here". Signed: a question, answered with a vouch or a refusal of one.
async fn ping(State(service): State<Arc<Service>>, uri: Uri) -> Response {
    if !is_signed(&uri) {
        return "pong".into_response();
    }
    answer_question(&service, &uri).await.unwrap_or_else(Refusal::response)
}

async fn answer_question(service: &Service, uri: &Uri) -> Result<Response, Refusal> {
    let query = service.verify(Purpose::Authority, uri)?;
    let message = QuestionMessage::from_query(&query, &service.group, QuestionId(0))?;
    let answer = service.ask(|answer| Outside::Question { question: message.question, answer }).await?;
    let VouchAnswer { vouch, highest_epoch, details } = answer;
    let mut message = VouchMessage { group: service.group.clone(), vouch, highest_epoch, details };
    let keys = service.keys.now();
    let mut sealed = message.seal(&keys, query.nonce());
    if matches!(sealed, Err(Error::TooLarge { .. })) {
        // The set stands in it twice when this server is fenced.
        message.vouch.ack.gtid = None;
        sealed = message.seal(&keys, query.nonce());
    }
    Ok(json(StatusCode::OK, sealed?.to_string()))
}

/// The view on disk, signed for who asks so.
async fn active_site(State(service): State<Arc<Service>>, uri: Uri) -> Response {
    tell_view(&service, &uri).await.unwrap_or_else(Refusal::response)
}

async fn tell_view(service: &Service, uri: &Uri) -> Result<Response, Refusal> {
    let query = if is_signed(uri) { Some(service.verify(Purpose::Other, uri)?) } else { None };
    let look = service.ask(Outside::Look).await?;
    let Some((view, observed_at)) = look.view else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let active = view.seat.as_ref().map(|seat| seat.site.to_string()).unwrap_or_default();
    let mut told = serde_json::json!({ "activeSite": active, "observedAt": observed_at, "epoch": view.epoch });
    if let Some(query) = query {
        let message = ViewMessage { group: service.group.clone(), view, observed_at };
        let sealed = message.seal(&service.keys.now(), query.nonce())?;
        told["signed"] = serde_json::to_value(&sealed).unwrap_or_default();
    }
    Ok(json(StatusCode::OK, told.to_string()))
}

/// The leader asks how this sidecar is.
async fn probe(State(service): State<Arc<Service>>, uri: Uri) -> Response {
    let answer = async {
        let query = service.verify(Purpose::Other, &uri)?;
        service.seal_ack(service.ask(Outside::Probe).await?, query.nonce())
    };
    answer.await.unwrap_or_else(Refusal::response)
}

/// A view, or the answer to a question that rode on an acknowledgement.
async fn push(State(service): State<Arc<Service>>, headers: HeaderMap, body: Body) -> Response {
    take_push(&service, &headers, body).await.unwrap_or_else(Refusal::response)
}

async fn take_push(service: &Service, headers: &HeaderMap, body: Body) -> Result<Response, Refusal> {
    let bytes = read_body(headers, body).await?;
    let verified = Envelope::read(&bytes)?.open(&service.keys.now())?;
    drop(bytes);
    let nonce = verified.nonce();
    let answer = match verified.kind() {
        Kind::View => {
            let ViewMessage { view, observed_at, .. } = ViewMessage::open(&verified, &service.group)?;
            let source = if headers.contains_key(FROM_PEER) { Source::Peer } else { Source::Operator };
            service.ask(|answer| Outside::Push { view, observed_at, source, answer }).await?
        }
        Kind::Grant => {
            let GrantMessage { grant, observed_at, .. } = read_grant(service, &verified)?;
            service.ask(|answer| Outside::PushedGrant { grant, observed_at, answer }).await?
        }
        other => return Err(Refusal(StatusCode::BAD_REQUEST, format!("a {other} is not taken here"))),
    };
    service.seal_ack(answer, nonce)
}

/// The leader's order to empty the data folder.
async fn empty(State(service): State<Arc<Service>>, headers: HeaderMap, body: Body) -> Response {
    take_order(&service, &headers, body).await.unwrap_or_else(Refusal::response)
}

/// Refusals are named: what has not been done is done again only if the leader still wants it.
async fn take_order(service: &Service, headers: &HeaderMap, body: Body) -> Result<Response, Refusal> {
    let bytes = read_body(headers, body).await?;
    let verified = Envelope::read(&bytes)?.open(&service.keys.now())?;
    let nonce = verified.nonce();
    let order = EmptyMessage::open(&verified, &service.group)?;
    if !lock(&service.seen).first(nonce) {
        return Err(Refusal(StatusCode::UNAUTHORIZED, "the nonce was used before".to_owned()));
    }
    let refused = |why: String| Refusal(StatusCode::CONFLICT, why);
    let may = || service.ask(|answer| Outside::Empty { order: Box::new(order.for_the_brain()), answer });
    may().await?.map_err(refused)?;
    let within = Deadline::within(READ_WITHIN);
    service.local.holds_no_more_than(order.server, &order.over, within).await.map_err(refused)?;
    // The reading took its time: the keeper looks at start and permit once more, the rest is looked at here.
    may().await?.map_err(refused)?;
    service.keeper.empty(order.start, READ_WITHIN).await.map_err(refused)?;
    service.teller.prose(Level::Warn, "the data folder is emptied, as the leader ordered", None);
    service.seal_ack(service.ask(Outside::Probe).await?, nonce)
}

/// A grant counts for an outstanding question, once. One without is nothing.
fn read_grant(service: &Service, verified: &Verified) -> Result<GrantMessage, Refusal> {
    let look = |lease| lock(&service.outstanding).take(verified.nonce(), clock::boot(), lease);
    // The grant tells its lease; what it says is believed only if the question is known.
    let lease = GrantMessage::open(verified, &service.group, QuestionId(0))
        .map_or(NO_LEASE, |message| message.grant.view.settings.lease_timeout);
    let asked = look(lease)
        .ok_or_else(|| Refusal(StatusCode::BAD_REQUEST, "the grant answers no question of this sidecar".to_owned()))?;
    Ok(GrantMessage::open(verified, &service.group, asked.id)?)
}

/// The whole body, within its bounds.
async fn read_body(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let too_large = || Refusal(StatusCode::PAYLOAD_TOO_LARGE, format!("more than {MAX_ENVELOPE_BYTES} bytes"));
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_ENVELOPE_BYTES as u64) {
        return Err(too_large());
    }
    match timeout(BODY_WITHIN, to_bytes(body, MAX_ENVELOPE_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if std::error::Error::source(&error).is_some_and(|why| why.to_string().contains("limit")) => {
            Err(too_large())
        }
        Ok(Err(_)) => Err(Refusal(StatusCode::BAD_REQUEST, "the body broke off".to_owned())),
        Err(_) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, "the body did not come in time".to_owned())),
    }
}

fn is_signed(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("mac=") || pair.starts_with("nonce=")))
}

impl Refusal {
    fn response(self) -> Response {
        let Self(status, error) = self;
        tracing::debug!(status = status.as_u16(), error, "refused");
        json(status, serde_json::json!({ "error": error }).to_string())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Error::BadSignature => StatusCode::UNAUTHORIZED,
            Error::MissingField { field } if field == "mac" => StatusCode::UNAUTHORIZED,
            _ => StatusCode::BAD_REQUEST,
        };
        Self(status, error.to_string())
    }
}

pub(super) fn json(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
