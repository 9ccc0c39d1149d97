//! What the sidecar asks others: the operator for its word, peers for theirs, and to take a newer view.
//!
//! In: questions and views. Out: what was answered, checked, to the actor's inbox. Must not: take longer than it is given,
//! believe anything that is not signed under the very nonce that was sent, or ask twice what is answered once.

use crate::config::{Config, is_address};
use crate::event::Outside;
use crate::keys::KeyRing;
use bloodraven_brain::fence::Source;
use bloodraven_brain::message::{Question, QuestionId};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::{Epoch, View};
use bloodraven_brain::time::Boot;
use bloodraven_names::Names;
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{
    AckMessage, Envelope, GrantMessage, GroupUid, Kind, MAX_ENVELOPE_BYTES, Nonce, QuestionMessage, ViewMessage,
    VouchMessage,
};
use serde::Deserialize;
use snafu::{OptionExt as _, ResultExt as _, Snafu};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// By this header a sidecar says that its push is a peer's word. It is not signed: it decides no more than whether the
/// operator is asked once more before a view that takes authority away is acted upon.
pub(crate) const FROM_PEER: &str = "bloodraven-from";

/// Names a question that no answer counts for: the view is all that is wanted.
const NO_QUESTION: QuestionId = QuestionId(u64::MAX);

/// How long an answer of the resolver is good: operators move, and a tick comes every few seconds.
const NAMES_ARE_GOOD_FOR: Duration = Duration::from_secs(5);

/// More names than the sites of a group and its operators have.
const MOST_NAMES: usize = 64;

/// Who asks others, and for whom.
#[derive(Clone)]
pub(crate) struct Outward {
    http: reqwest::Client,
    config: Arc<Config>,
    group: GroupUid,
    me: Member,
    keys: KeyRing,
    inbox: mpsc::Sender<Outside>,
}

/// Why there is no answer.
#[derive(Debug, Snafu)]
pub(crate) enum Silence {
    /// It did not come in time.
    #[snafu(display("no answer in time"))]
    Late,
    /// The connection failed.
    #[snafu(display("{source}"))]
    Http {
        /// How.
        source: reqwest::Error,
    },
    /// It was another status than was hoped for.
    #[snafu(display("answered {status}"))]
    Status {
        /// Which.
        status: u16,
    },
    /// It was too long.
    #[snafu(display("answered more than {MAX_ENVELOPE_BYTES} bytes"))]
    TooLong,
    /// It was not signed, or not for this question.
    #[snafu(transparent)]
    Wire {
        /// What is wrong with it.
        source: bloodraven_wire::Error,
    },
    /// No signed answer was in it.
    #[snafu(display("answered without a signature"))]
    Unsigned,
    /// The system gives no randomness.
    #[snafu(display("no randomness for a nonce"))]
    NoRandomness,
}

/// The operator's answer, as far as it is not signed.
#[derive(Deserialize)]
struct Plain {
    leader: Option<bool>,
    #[serde(rename = "leaderAddress")]
    leader_address: Option<String>,
}

impl Outward {
    pub(crate) fn new(
        config: Arc<Config>,
        me: Member,
        keys: KeyRing,
        inbox: mpsc::Sender<Outside>,
    ) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // A connection of its own for each: one that stands since before a cut would have to be found dead first.
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(Names::new(NAMES_ARE_GOOD_FOR, MOST_NAMES)))
            .build()?;
        let group = GroupUid::new(&config.group_uid);
        Ok(Self { http, config, group, me, keys, inbox })
    }

    /// Where what was answered goes.
    pub(crate) fn inbox(&self) -> mpsc::Sender<Outside> {
        self.inbox.clone()
    }

    /// Asks the operator for its word and, if a follower answers, the leader that it names.
    pub(crate) async fn ask_operator(self, question: Option<Question>, epoch: Epoch, sent: Boot, until: Instant) {
        let mut address = self.config.operator.clone();
        // The operator, and the leader it knows.
        for _ in 0..2 {
            match self.ask_one_operator(&address, question.as_ref(), epoch, sent, until).await {
                Ok(Some(leader)) if question.is_some() && leader != address => address = leader,
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!(error = %error, address, "the operator gives no answer");
                    return;
                }
            }
        }
    }

    /// The leader's address, if the answer was not the leader's own.
    async fn ask_one_operator(
        &self,
        address: &str,
        question: Option<&Question>,
        epoch: Epoch,
        sent: Boot,
        until: Instant,
    ) -> Result<Option<String>, Silence> {
        let nonce = fresh_nonce()?;
        let asked = question.map_or(NO_QUESTION, |question| question.id);
        let question = question.cloned().unwrap_or_else(|| Question {
            id: NO_QUESTION,
            from: self.me.clone(),
            epoch,
            open: false,
        });
        let message = QuestionMessage { group: self.group.clone(), nonce, question, t_send: sent };
        let more = [("namespace", self.config.namespace.as_str()), ("group", self.config.group.as_str())];
        let keys = self.keys.now();
        let target = message.to_target(&keys, "/active-site", &more)?;
        let (_, bytes) = self.get(address, &target, until).await?;
        let verified = Envelope::read_signed(&bytes)?.context(UnsignedSnafu)?.open_answer(&keys, nonce)?;
        self.tell(Outside::OperatorAnswered).await;
        if verified.kind() == Kind::Grant {
            let GrantMessage { grant, observed_at, .. } = GrantMessage::open(&verified, &self.group, asked)?;
            let heard =
                Outside::Heard { view: grant.view.clone(), observed_at: observed_at.clone(), source: Source::Operator };
            let told = if asked == NO_QUESTION { heard } else { Outside::Granted { grant, observed_at } };
            self.tell(told).await;
            return Ok(None);
        }
        let ViewMessage { view, observed_at, .. } = ViewMessage::open(&verified, &self.group)?;
        self.tell(Outside::Heard { view, observed_at, source: Source::Operator }).await;
        let plain: Option<Plain> = serde_json::from_slice(&bytes).ok();
        let follower = plain.filter(|plain| plain.leader != Some(true));
        Ok(follower.and_then(|plain| plain.leader_address).filter(|leader| is_address(leader)))
    }

    /// Asks a peer which view it has stored.
    pub(crate) async fn ask_view(self, address: String, until: Instant) {
        if let Err(error) = self.try_ask_view(&address, until).await {
            tracing::debug!(error = %error, address, "a peer tells no view");
        }
    }

    async fn try_ask_view(&self, address: &str, until: Instant) -> Result<(), Silence> {
        let (nonce, keys) = (fresh_nonce()?, self.keys.now());
        let parameters = [("groupUid", self.group.as_str())];
        let target = query::sign(&keys, Purpose::Other, "/peer/active-site", &parameters, nonce)?;
        let (status, bytes) = self.get(address, &target, until).await?;
        if status == 204 {
            return Ok(());
        }
        let verified = Envelope::read_signed(&bytes)?.context(UnsignedSnafu)?.open_answer(&keys, nonce)?;
        let ViewMessage { view, observed_at, .. } = ViewMessage::open(&verified, &self.group)?;
        self.tell(Outside::Heard { view, observed_at, source: Source::Peer }).await;
        Ok(())
    }

    /// Asks a voter to vouch.
    pub(crate) async fn ask_peer(self, address: String, question: Question, sent: Boot, until: Instant) {
        let id = question.id;
        let told = match self.try_ask_peer(&address, question, sent, until).await {
            Ok(told) => told,
            Err(error) => {
                tracing::debug!(error = %error, address, "a voter gives no answer");
                Outside::NoAnswer(id)
            }
        };
        self.tell(told).await;
    }

    async fn try_ask_peer(
        &self,
        address: &str,
        question: Question,
        sent: Boot,
        until: Instant,
    ) -> Result<Outside, Silence> {
        let (nonce, keys, id) = (fresh_nonce()?, self.keys.now(), question.id);
        let message = QuestionMessage { group: self.group.clone(), nonce, question, t_send: sent };
        let target = message.to_target(&keys, "/peer/ping", &[])?;
        let (_, bytes) = self.get(address, &target, until).await?;
        let verified = Envelope::read(&bytes)?.open_answer(&keys, nonce)?;
        Ok(Outside::Vouched(VouchMessage::open(&verified, &self.group, id)?.vouch))
    }

    /// Pushes a view to a peer, once.
    pub(crate) async fn push(self, address: String, view: View, observed_at: String, until: Instant) {
        match self.try_push(&address, view, observed_at, until).await {
            Ok(ack) => self.tell(ack).await,
            Err(error) => tracing::debug!(error = %error, address, "a peer did not take the view"),
        }
    }

    async fn try_push(
        &self,
        address: &str,
        view: View,
        observed_at: String,
        until: Instant,
    ) -> Result<Outside, Silence> {
        let (nonce, keys) = (fresh_nonce()?, self.keys.now());
        let message = ViewMessage { group: self.group.clone(), view, observed_at };
        let body = message.seal(&keys, nonce)?.to_string();
        let request = self
            .http
            .post(format!("http://{address}/authority"))
            .header("content-type", "application/json")
            .header(FROM_PEER, self.me.site.as_str())
            .body(body);
        let (_, bytes) = self.send(request, until).await?;
        let verified = Envelope::read(&bytes)?.open_answer(&keys, nonce)?;
        let message = AckMessage::open(&verified, &self.group, NO_QUESTION)?;
        Ok(Outside::PeerAck(Box::new(message.ack)))
    }

    async fn get(&self, address: &str, target: &str, until: Instant) -> Result<(u16, Vec<u8>), Silence> {
        self.send(self.http.get(format!("http://{address}{target}")), until).await
    }

    /// Status and body of a good answer.
    async fn send(&self, request: reqwest::RequestBuilder, until: Instant) -> Result<(u16, Vec<u8>), Silence> {
        let exchange = async {
            let mut response = request.send().await.context(HttpSnafu)?;
            let status = response.status();
            if !status.is_success() {
                return StatusSnafu { status: status.as_u16() }.fail();
            }
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.context(HttpSnafu)? {
                if bytes.len() + chunk.len() > MAX_ENVELOPE_BYTES {
                    return TooLongSnafu.fail();
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok((status.as_u16(), bytes))
        };
        timeout_at(until, exchange).await.ok().context(LateSnafu)?
    }

    async fn tell(&self, what: Outside) {
        // The inbox is gone only when the sidecar ends.
        let _ = self.inbox.send(what).await;
    }
}

/// A number that nobody can guess.
pub(crate) fn fresh_nonce() -> Result<Nonce, Silence> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok().context(NoRandomnessSnafu)?;
    Ok(Nonce::new(bytes))
}

/// So long for one call, whatever the tick: half of it, and never more than this.
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(2);
