//! Operator and peers, played: they sign as the real ones do, and say what the test wants.
//!
//! In: a view, and whether to grant or to vouch. Out: answers over loopback. Must not: decide.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bloodraven_brain::message::{Ack, Grant, OpeningWord, QuestionId, Vouch};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::View;
use bloodraven_brain::time::Millis;
use bloodraven_gtid::GtidSet;
use bloodraven_wire::message::Details;
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{Envelope, GrantMessage, GroupUid, Key, Keys, Nonce, QuestionMessage, ViewMessage, VouchMessage};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// When everything here was observed; it orders nothing.
pub(crate) const OBSERVED: &str = "2026-01-02T03:04:05Z";

/// The group's key in all tests.
pub(crate) fn keys() -> Keys {
    Keys::only(Key::new([7; 32]))
}

/// The group in all tests.
pub(crate) fn group() -> GroupUid {
    GroupUid::new("uid-of-orders")
}

/// What a played one says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Says {
    /// The view it knows.
    pub(crate) view: Option<View>,
    /// Grants to whom the view names, or vouches for it.
    pub(crate) agrees: bool,
    /// A grant says "open" with this.
    pub(crate) open: Option<OpeningWord>,
    /// What its server has executed, told with a vouch.
    pub(crate) executed: GtidSet,
    /// Is a follower, and knows this leader.
    pub(crate) leader: Option<SocketAddr>,
    /// Takes connections and says nothing.
    pub(crate) silent: bool,
}

/// Somebody who is played.
pub(crate) struct Played {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

struct State {
    me: Option<Member>,
    says: Says,
    /// Signed questions that came.
    asked: u64,
    /// Views that were pushed.
    pushed: u64,
    /// When the last grant or vouch left, or was about to.
    agreed: Option<Instant>,
}

impl Played {
    /// The operator.
    pub(crate) async fn operator() -> Self {
        Self::start(None).await
    }

    /// A peer.
    pub(crate) async fn peer(me: Member) -> Self {
        Self::start(Some(me)).await
    }

    async fn start(me: Option<Member>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { me, says: Says::default(), asked: 0, pushed: 0, agreed: None }));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&shared)));
            }
        });
        Self { address, state, task }
    }

    /// From now on it says that.
    pub(crate) fn says(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.lock().says);
    }

    /// How many signed questions have come.
    pub(crate) fn asked(&self) -> u64 {
        self.lock().asked
    }

    /// How many views were pushed to it.
    pub(crate) fn pushed(&self) -> u64 {
        self.lock().pushed
    }

    /// When it last granted or vouched.
    pub(crate) fn agreed(&self) -> Option<Instant> {
        self.lock().agreed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Pushes a view, as the operator does. The answer: status and body.
pub(crate) async fn push(to: SocketAddr, view: &View, number: u8) -> (u16, Vec<u8>) {
    let message = ViewMessage { group: group(), view: view.clone(), observed_at: OBSERVED.into() };
    let body = message.seal(&keys(), Nonce::new([number; 16])).unwrap().to_string();
    let answer = reqwest::Client::new().post(format!("http://{to}/authority")).body(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.bytes().await.unwrap().to_vec())
}

async fn talk(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let Some((method, target)) = read_request(&mut stream).await else { return };
    let answer = answer(&state, &method, &target);
    let Some((status, body)) = answer else {
        // Silence: the connection stands, and nothing comes.
        let mut rest = [0; 1];
        let _ = stream.read(&mut rest).await;
        return;
    };
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Method and target; the body is read and dropped.
async fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let mut words = head.split(' ');
            return Some((words.next()?.to_owned(), words.next()?.to_owned()));
        }
    }
}

fn answer(state: &Mutex<State>, method: &str, target: &str) -> Option<(u16, String)> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let path = target.split('?').next().unwrap_or_default();
    if method == "GET" && matches!(path, "/active-site" | "/peer/ping") {
        state.asked += 1;
    }
    state.pushed += u64::from((method, path) == ("POST", "/authority"));
    if state.says.silent {
        return None;
    }
    let found = match (method, path) {
        ("GET", "/active-site") => state.active_site(target),
        ("GET", "/peer/ping") => state.vouch(target),
        ("GET", "/peer/active-site") => state.view(target),
        _ => None,
    };
    Some(found.unwrap_or((404, String::new())))
}

impl State {
    fn question(target: &str) -> Option<QuestionMessage> {
        let query = query::verify(&keys(), Purpose::Authority, "GET", target).ok()?;
        QuestionMessage::from_query(&query, &group(), QuestionId(1)).ok()
    }

    fn signed_view(&self, nonce: Nonce) -> Option<Envelope> {
        let view = self.says.view.clone()?;
        ViewMessage { group: group(), view, observed_at: OBSERVED.into() }.seal(&keys(), nonce).ok()
    }

    fn active_site(&mut self, target: &str) -> Option<(u16, String)> {
        let message = Self::question(target)?;
        let view = self.says.view.clone()?;
        let to = message.question.from;
        let signed = if self.says.agrees && view.names(&to) {
            self.agreed = Some(Instant::now());
            let grant = Grant { id: QuestionId(1), to, view, open: self.says.open.clone() };
            let message = GrantMessage { group: group(), grant, observed_at: OBSERVED.into(), reason: "test".into() };
            message.seal(&keys(), message_nonce(target)?).ok()?
        } else {
            self.signed_view(message.nonce)?
        };
        let mut told = json!({ "signed": signed });
        if let Some(leader) = self.says.leader {
            told["leader"] = false.into();
            told["leaderAddress"] = leader.to_string().into();
        }
        Some((200, told.to_string()))
    }

    fn view(&self, target: &str) -> Option<(u16, String)> {
        let query = query::verify(&keys(), Purpose::Other, "GET", target).ok()?;
        match self.signed_view(query.nonce()) {
            Some(signed) => Some((200, json!({ "signed": signed }).to_string())),
            None => Some((204, String::new())),
        }
    }

    fn vouch(&mut self, target: &str) -> Option<(u16, String)> {
        let message = Self::question(target)?;
        let me = self.me.clone()?;
        let (epoch, about) = (message.question.epoch, message.question.from);
        let ok =
            self.says.agrees && self.says.view.as_ref().is_some_and(|view| view.epoch == epoch && view.names(&about));
        if ok {
            self.agreed = Some(Instant::now());
        }
        let gtid = message.question.open.then(|| self.says.executed.clone());
        let ack = Box::new(ack(me.clone(), self.says.view.as_ref().map(|view| view.epoch)));
        let vouch = Vouch { id: QuestionId(1), epoch, from: me, about, ok, gtid, ack };
        let message = VouchMessage { group: group(), vouch, highest_epoch: epoch, details: Details::default() };
        Some((200, message.seal(&keys(), message_nonce(target)?).ok()?.to_string()))
    }
}

fn message_nonce(target: &str) -> Option<Nonce> {
    Some(State::question(target)?.nonce)
}

fn ack(from: Member, epoch: Option<u64>) -> Ack {
    Ack {
        from,
        epoch,
        fenced: true,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: None,
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis(1000),
    }
}
