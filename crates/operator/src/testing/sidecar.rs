//! A sidecar without a keeper: stores views, fences and opens its server as they say, signs everything.

use super::{FakeServers, keys};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bloodraven_brain::message::{Ack, FencedBy, Question, QuestionId, StartId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::View;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_brain::volume::Space;
use bloodraven_gtid::GtidSet;
use bloodraven_wire::message::Details;
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{
    AckMessage, EmptyMessage, Envelope, GrantMessage, GroupUid, Kind, Nonce, QuestionMessage, ViewMessage,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// See above. It ends when it is dropped.
pub(crate) struct FakeSidecar {
    pub(crate) address: SocketAddr,
    pub(crate) state: Arc<Sidecar>,
    task: JoinHandle<()>,
}

pub(crate) struct Sidecar {
    pub(crate) member: Member,
    group: GroupUid,
    servers: Arc<FakeServers>,
    began: Instant,
    view: Mutex<Option<View>>,
    /// Takes the request and says nothing.
    pub(crate) hangs: AtomicBool,
    /// Requests so far.
    pub(crate) heard: AtomicUsize,
    /// Opening grants so far.
    pub(crate) grants: AtomicUsize,
    nonces: AtomicUsize,
    /// Orders to empty that were obeyed.
    pub(crate) emptied: AtomicUsize,
    /// Its release.
    pub(crate) version: Mutex<String>,
    /// How full its data volume is.
    pub(crate) volume: Mutex<Option<Space>>,
}

impl FakeSidecar {
    pub(crate) async fn start(site: &str, group: &str, servers: &Arc<FakeServers>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let member = Member::new(&Site::new(site), &Instance::new(&format!("pod-{site}"), &format!("store-{site}")));
        let state = Arc::new(Sidecar {
            member,
            group: GroupUid::new(group),
            servers: Arc::clone(servers),
            began: Instant::now(),
            view: Mutex::default(),
            hangs: AtomicBool::default(),
            heard: AtomicUsize::default(),
            grants: AtomicUsize::default(),
            nonces: AtomicUsize::default(),
            emptied: AtomicUsize::default(),
            version: Mutex::new(env!("CARGO_PKG_VERSION").to_owned()),
            volume: Mutex::default(),
        });
        let router = Router::new()
            .route("/authority", get(authority).post(authority))
            .route("/empty", post(authority))
            .with_state(Arc::clone(&state));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { address, state, task }
    }
}

impl Drop for FakeSidecar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn authority(State(sidecar): State<Arc<Sidecar>>, request: Request) -> Response {
    sidecar.heard.fetch_add(1, Ordering::SeqCst);
    if sidecar.hangs.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    let nonce = if request.method() == "GET" {
        let target = request.uri().to_string();
        match query::verify(&keys(), Purpose::Other, "GET", &target) {
            Ok(query) if query.get("groupUid") == Some(sidecar.group.as_str()) => query.nonce(),
            _ => return StatusCode::UNAUTHORIZED.into_response(),
        }
    } else {
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.expect("a body");
        match sidecar.take(&body) {
            Ok(nonce) => nonce,
            Err(status) => return status.into_response(),
        }
    };
    let ack = sidecar.acknowledge();
    ack.seal(&keys(), nonce).expect("it has a form").to_string().into_response()
}

impl Sidecar {
    fn take(&self, body: &[u8]) -> Result<Nonce, StatusCode> {
        let verified = Envelope::read(body).map_err(|_| StatusCode::BAD_REQUEST)?;
        let verified = verified.open(&keys()).map_err(|_| StatusCode::UNAUTHORIZED)?;
        let view = match verified.kind() {
            Kind::View => ViewMessage::open(&verified, &self.group).map_err(|_| StatusCode::BAD_REQUEST)?.view,
            Kind::Grant => {
                let message = GrantMessage::open(&verified, &self.group, QuestionId(0));
                let grant = message.map_err(|_| StatusCode::BAD_REQUEST)?.grant;
                if grant.to == self.member && grant.open.is_some() {
                    self.grants.fetch_add(1, Ordering::SeqCst);
                    self.servers.change(self.member.site.as_str(), |server| server.pair = Pair::OPEN);
                }
                grant.view
            }
            Kind::Empty => {
                let order = EmptyMessage::open(&verified, &self.group).map_err(|_| StatusCode::BAD_REQUEST)?;
                self.empty(&order)?;
                return Ok(verified.nonce());
            }
            _ => return Err(StatusCode::BAD_REQUEST),
        };
        if !view.names(&self.member) {
            self.servers.change(self.member.site.as_str(), |server| server.pair = Pair::CLOSED);
        }
        let mut known = self.view.lock().expect("nobody panicked here");
        if known.as_ref().is_none_or(|known| known.epoch <= view.epoch) {
            *known = Some(view);
        }
        Ok(verified.nonce())
    }

    /// A server made anew, if the order is about what is there.
    fn empty(&self, order: &EmptyMessage) -> Result<(), StatusCode> {
        let epoch = self.view.lock().expect("nobody panicked here").as_ref().map(|view| view.epoch);
        self.servers.change(self.member.site.as_str(), |server| {
            let meant = order.to == self.member && Some(order.epoch) == epoch && order.server == server.uuid;
            if !meant || server.pair != Pair::CLOSED || !order.over.contains(&server.executed) {
                return Err(StatusCode::CONFLICT);
            }
            let number = 1000 + self.emptied.fetch_add(1, Ordering::SeqCst);
            server.uuid = format!("{number:08}-0000-4000-8000-000000000000").parse().expect("a uuid");
            (server.executed, server.source, server.runs) = (GtidSet::new(), None, false);
            Ok(())
        })
    }

    fn acknowledge(&self) -> AckMessage {
        let view = self.view.lock().expect("nobody panicked here").clone();
        let (fenced, gtid, up) = self.servers.change(self.member.site.as_str(), |server| {
            (server.pair == Pair::CLOSED, server.executed.clone(), server.alive)
        });
        let epoch = view.as_ref().map(|view| view.epoch);
        let may_ask = fenced && up && view.as_ref().is_some_and(|view| view.names(&self.member));
        let question = may_ask.then(|| self.question(epoch.unwrap_or(0)));
        let uptime = u64::try_from(self.began.elapsed().as_millis()).expect("a short test");
        let ack = Ack {
            from: self.member.clone(),
            epoch,
            fenced: fenced || !up,
            gtid: up.then_some(gtid),
            fenced_by: fenced.then_some(FencedBy::Boot),
            opened_by_hand: false,
            conflict: false,
            mysqld: up.then_some(StartId(1)),
            last_vouch: BTreeMap::new(),
            last_answer: BTreeMap::new(),
            uptime: Millis(uptime),
        };
        let version = self.version.lock().expect("nobody panicked here").clone();
        let volume = *self.volume.lock().expect("nobody panicked here");
        let details = Details { version: Some(version), volume, ..Details::default() };
        AckMessage { group: self.group.clone(), ack, details, question, relayed: Vec::new() }
    }

    /// A question of its own; also for tests that ask over HTTP.
    pub(crate) fn question(&self, epoch: u64) -> QuestionMessage {
        let mut bytes = [0; 16];
        let number = self.nonces.fetch_add(1, Ordering::SeqCst) as u64;
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..11].copy_from_slice(&self.member.site.as_str().as_bytes()[..3]);
        let question = Question { id: QuestionId(0), from: self.member.clone(), epoch, open: true };
        QuestionMessage { group: self.group.clone(), nonce: Nonce::new(bytes), question, t_send: Boot(1) }
    }
}
