//! What comes from outside to the one who decides, and what goes back.
//!
//! In: nothing; these are words. Out: the same words for the client, the server and the actor. Must not: carry anything
//! whose signature was not checked.

use bloodraven_brain::fence::{Emptying, Mysqld, Source};
use bloodraven_brain::message::{Ack, FencedBy, Grant, Question, QuestionId, StartId, Vouch};
use bloodraven_brain::name::{Member, Site};
use bloodraven_brain::record::{Epoch, View};
use bloodraven_brain::time::Millis;
use bloodraven_wire::QuestionMessage;
use bloodraven_wire::message::Details;
use tokio::sync::oneshot;

/// Something from outside.
#[derive(Debug)]
pub(crate) enum Outside {
    /// A view that came with an answer.
    Heard { view: View, observed_at: String, source: Source },
    /// The leader's answer to a question.
    Granted { grant: Grant, observed_at: String },
    /// A voter's answer to a question.
    Vouched(Vouch),
    /// A question ended without an answer.
    NoAnswer(QuestionId),
    /// A peer acknowledged a push.
    PeerAck(Box<Ack>),
    /// Somebody pushes a view.
    Push { view: View, observed_at: String, source: Source, answer: oneshot::Sender<PushAnswer> },
    /// The leader answers a question that rode on an acknowledgement.
    PushedGrant { grant: Grant, observed_at: String, answer: oneshot::Sender<PushAnswer> },
    /// Somebody asks for a vouch.
    Question { question: Question, answer: oneshot::Sender<VouchAnswer> },
    /// The leader asks how this sidecar is, while it has no view to push.
    Probe(oneshot::Sender<PushAnswer>),
    /// The leader orders the data folder to be emptied: whether that may be, as far as authority goes.
    Empty { order: Box<Emptying>, answer: oneshot::Sender<Result<(), String>> },
    /// Somebody wants to see how things stand.
    Look(oneshot::Sender<Look>),
    /// The operator answered.
    OperatorAnswered,
    /// The server was read as closed because mysqld is about to be stopped.
    ClosedForTheEnd,
}

/// What a pusher is told.
#[derive(Debug)]
pub(crate) enum PushAnswer {
    /// The acknowledgement.
    Ack { ack: Box<Ack>, details: Details, question: Option<Box<QuestionMessage>>, relayed: Vec<(Ack, Millis)> },
    /// It could not be stored.
    NotStored,
    /// It contradicts the view of the same epoch that is known here.
    Conflict,
}

/// What an asker is told.
#[derive(Debug)]
pub(crate) struct VouchAnswer {
    pub(crate) vouch: Vouch,
    pub(crate) highest_epoch: Epoch,
    pub(crate) details: Details,
}

/// How things stand, for people and for peers.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) me: Member,
    /// The view on disk, and when it was observed.
    pub(crate) view: Option<(View, String)>,
    pub(crate) fenced: bool,
    pub(crate) fenced_by: Option<FencedBy>,
    pub(crate) mysqld: Mysqld,
    pub(crate) opened: Option<(Epoch, Option<StartId>)>,
    pub(crate) lease_remaining: Millis,
    /// Both variables as they were last read.
    pub(crate) variables: Option<bloodraven_wire::message::Variables>,
    /// How long ago each peer, and the operator, last answered.
    pub(crate) contact: Vec<(String, Millis)>,
}

/// The operator's name among those who answer.
pub(crate) const OPERATOR: &str = "operator";

/// A site's name among those who answer.
pub(crate) fn contact_name(site: &Site) -> String {
    site.to_string()
}
