//! What an operator answers over HTTP.
//!
//! In: requests of anybody. Out: health, status, signed answers to questions, reasons, metrics. Must not: wait for anything
//! without a bound, hold more than a bounded memory for anyone, or change anything for who does not know the key.
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | whether every loop beats; else their names |
//! | `/readyz` | whether everything is seen and loops live |
//! | `/status` | every group, in short |
//! | `/active-site` | who may write, and the answer to a signed question |
//! | `/ws/status` | every poll, as it comes |
//! | `/why`, `/what-if` | the last decisions with their reasons; what would happen |
//! | `/metrics` | Prometheus text |

mod active_site;
mod follow;
pub(crate) mod replay;
mod server;
mod status;

pub(crate) use follow::{CLIENTS, QUEUE};
pub(crate) use server::serve;

use crate::beats::Beats;
use crate::ears::Ears;
use crate::group::Shared;
use crate::guard::{Clock, Leadership};
use crate::world::GroupId;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bloodraven_brain::time::{Boot, Millis};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::{Instant, timeout};

/// No request here has a body worth reading.
const BODY_BYTES: u64 = 64 << 10;

/// A whole answer, a followed stream apart.
const ANSWER_BOUND: Duration = Duration::from_secs(10);

/// Where the leader answers is asked for once in so long.
const ADDRESS_KEPT: Millis = Millis::from_secs(5);

/// Every group, by its name.
pub(crate) type Groups = BTreeMap<GroupId, Arc<Shared>>;

/// Asks the world where the operator of that identity answers.
pub(crate) type AddressOf = Box<dyn Fn(Arc<str>) -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// What requests are answered from.
pub(crate) struct App {
    pub(crate) groups: watch::Receiver<Groups>,
    pub(crate) synced: watch::Receiver<bool>,
    /// See [`crate::world::World::unseen`].
    pub(crate) unseen: Box<dyn Fn() -> Option<String> + Send + Sync>,
    pub(crate) holder: watch::Receiver<Option<Arc<str>>>,
    pub(crate) leadership: Leadership,
    pub(crate) beats: Beats,
    pub(crate) ears: Arc<dyn Ears>,
    pub(crate) clock: Clock,
    pub(crate) address: Option<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) address_of: AddressOf,
    /// Of whom, asked when, and where that is.
    pub(crate) leader_address: Mutex<Option<LeaderAddress>>,
    pub(crate) hub: broadcast::Sender<Arc<str>>,
    pub(crate) followers: Arc<Semaphore>,
    /// `what-if` thinks for a while: a few at a time.
    pub(crate) rehearsals: Arc<Semaphore>,
}

/// Whose address was asked for, when, and what it is.
pub(crate) type LeaderAddress = (Arc<str>, Boot, Option<String>);

/// Everything.
pub(crate) fn aux(app: &Arc<App>) -> Router {
    let routes = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/status", get(status::status))
        .route("/active-site", get(active_site::active_site))
        .route("/ws/status", get(follow::follow))
        .route("/why", get(status::why))
        .route("/what-if", get(status::what_if));
    finish(routes, app)
}

/// For probes alone.
pub(crate) fn probes(app: &Arc<App>) -> Router {
    finish(Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)), app)
}

/// For Prometheus alone.
pub(crate) fn scrapes(app: &Arc<App>) -> Router {
    finish(Router::new().route("/metrics", get(metrics)), app)
}

fn finish(routes: Router<Arc<App>>, app: &Arc<App>) -> Router {
    routes
        .fallback(async || refuse(StatusCode::NOT_FOUND, "there is no such path"))
        .method_not_allowed_fallback(async || refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here"))
        .layer(middleware::from_fn_with_state(Arc::clone(app), around))
        .with_state(Arc::clone(app))
}

/// Bounds and counts every request.
async fn around(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let handler = handler(request.uri().path());
    let method = request.method().clone();
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let response = if length.is_some_and(|length: u64| length > BODY_BYTES) {
        refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large; send none")
    } else if request.headers().contains_key(header::TRANSFER_ENCODING) {
        refuse(StatusCode::LENGTH_REQUIRED, "the length of the body is not said; send none")
    } else {
        let late = || refuse(StatusCode::SERVICE_UNAVAILABLE, "no answer in time; ask again");
        timeout(ANSWER_BOUND, next.run(request)).await.unwrap_or_else(|_| late())
    };
    app.ears.answered(handler, method_word(&method), response.status().as_u16(), began.elapsed());
    response
}

/// Paths of strangers are not counted by their names.
fn handler(path: &str) -> &'static str {
    const KNOWN: [&str; 8] =
        ["/healthz", "/readyz", "/metrics", "/status", "/active-site", "/ws/status", "/why", "/what-if"];
    KNOWN.into_iter().find(|known| *known == path).map_or("other", |known| &known[1..])
}

fn method_word(method: &Method) -> &str {
    if *method == Method::GET || *method == Method::HEAD || *method == Method::POST { method.as_str() } else { "OTHER" }
}

/// Why a request is not answered.
struct Refusal(StatusCode, String);

impl Refusal {
    fn new(status: StatusCode, because: impl Into<String>) -> Self {
        Self(status, because.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refuse(self.0, self.1)
    }
}

/// `{"error": "..."}`.
fn refuse(status: StatusCode, because: impl AsRef<str>) -> Response {
    let body = json!({"error": because.as_ref()}).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn answer(body: &serde_json::Value) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn healthz(State(app): State<Arc<App>>) -> Response {
    match app.beats.stuck() {
        stuck if stuck.is_empty() => "ok".into_response(),
        stuck => (StatusCode::SERVICE_UNAVAILABLE, format!("stuck: {}\n", stuck.join(", "))).into_response(),
    }
}

async fn readyz(State(app): State<Arc<App>>) -> Response {
    let stuck = app.beats.stuck();
    if !*app.synced.borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the groups were not read yet\n").into_response();
    }
    if let Some(unseen) = (app.unseen)() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{unseen}\n")).into_response();
    }
    if !stuck.is_empty() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("stuck: {}\n", stuck.join(", "))).into_response();
    }
    "ok".into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    const PROMETHEUS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, PROMETHEUS)], app.ears.metrics()).into_response()
}

impl App {
    /// The group that is asked for; with a single one, its name need not be said.
    fn group(&self, namespace: Option<&str>, name: Option<&str>) -> Option<Arc<Shared>> {
        let groups = self.groups.borrow();
        if namespace.is_none() && name.is_none() && groups.len() == 1 {
            return groups.values().next().cloned();
        }
        let mut fitting = groups.values().filter(|shared| {
            namespace.is_none_or(|namespace| namespace == &*shared.id.namespace)
                && name.is_some_and(|name| name == &*shared.id.name)
        });
        let found = fitting.next().cloned();
        found.filter(|_| fitting.next().is_none())
    }

    /// Where the leader answers.
    async fn leader_address(&self) -> Option<String> {
        if self.leadership.holds() {
            return self.address.clone();
        }
        let holder = self.holder.borrow().clone()?;
        let now = (self.clock)().boot;
        let known = crate::group::lock(&self.leader_address).clone();
        if let Some((who, at, address)) = known
            && who == holder
            && now < at + ADDRESS_KEPT
        {
            return address;
        }
        let asked = timeout(Duration::from_millis(500), (self.address_of)(Arc::clone(&holder)));
        let address = asked.await.ok().flatten();
        *crate::group::lock(&self.leader_address) = Some((holder, now, address.clone()));
        address
    }
}
