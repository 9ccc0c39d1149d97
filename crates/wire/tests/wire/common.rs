//! Keys, a nonce, a group and one message of each kind for the tests.
//!
//! In: nothing. Out: the same values for everyone. Must not: use the crate's own printing to say what is expected.

use bloodraven_brain::message::{Ack, FencedBy, Grant, OpeningWord, Question, QuestionId, StartId, Vouch};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Phase, Settings, View};
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use bloodraven_wire::message::{Details, Relayed, Variables};
use bloodraven_wire::{
    AckMessage, EmptyMessage, Envelope, Error, GrantMessage, GroupUid, Key, Keys, Kind, Nonce, QuestionMessage,
    Verified, ViewMessage, VouchMessage,
};
use std::collections::BTreeMap;

pub(crate) const NONCE: &str = "000102030405060708090a0b0c0d0e0f";
pub(crate) const GROUP: &str = "9b1d6c1e-7c9e-4d0e-8a55-0c1f4f7a3b10";
/// The brain's name for every question here.
pub(crate) const ID: QuestionId = QuestionId(42);

/// Bytes `first`, `first + 1`, … of a key.
pub(crate) fn key(first: u8) -> Key {
    Key::new(std::array::from_fn(|index| first + u8::try_from(index).expect("32 bytes")))
}

/// Bytes 0 to 31.
pub(crate) fn keys() -> Keys {
    Keys::only(key(0))
}

pub(crate) fn nonce() -> Nonce {
    NONCE.parse().expect("a nonce")
}

pub(crate) fn group() -> GroupUid {
    GroupUid::new(GROUP)
}

pub(crate) fn member(site: &str, number: u8) -> Member {
    Member::new(&Site::new(site), &Instance::new(&format!("pod-{number}"), &format!("store-{number}")))
}

pub(crate) fn set(numbers: &str) -> GtidSet {
    format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{numbers}").parse().expect("a set")
}

pub(crate) fn view() -> ViewMessage {
    let view = View {
        epoch: 7,
        tenure: 5,
        phase: Phase::Stable,
        seat: Some(member("iad", 1)),
        voters: vec![member("iad", 1), member("pdx", 2)],
        settings: Settings { lease_timeout: Millis(20_000), min_peers: 1 },
    };
    ViewMessage { group: group(), view, observed_at: "2026-01-02T03:04:05Z".into() }
}

pub(crate) fn revoking() -> ViewMessage {
    let view = View {
        epoch: 8,
        tenure: 5,
        phase: Phase::Revoking,
        seat: None,
        voters: vec![],
        settings: Settings { lease_timeout: Millis(90_000), min_peers: 2 },
    };
    ViewMessage { group: group(), view, observed_at: "2026-01-02T03:04:05Z".into() }
}

pub(crate) fn empty() -> EmptyMessage {
    EmptyMessage {
        group: group(),
        to: member("pdx", 2),
        epoch: 7,
        start: StartId(u64::MAX),
        server: "3e11fa47-71ca-11e1-9e33-c80aa9429562".parse().expect("a uuid"),
        over: set("1-5"),
        until_uptime: Millis(65_000),
    }
}

/// A grant that says "open".
pub(crate) fn grant() -> GrantMessage {
    let excused = BTreeMap::from([(Site::new("pdx"), set("6"))]);
    let open = Some(OpeningWord { promotion_gtid: set("1-5"), excused });
    let ViewMessage { group, view, observed_at } = view();
    let grant = Grant { id: ID, to: member("iad", 1), view, open };
    GrantMessage { group, grant, observed_at, reason: "stable".into() }
}

/// A grant that only renews.
pub(crate) fn renewal() -> GrantMessage {
    let opening = grant();
    GrantMessage { grant: Grant { open: None, ..opening.grant }, reason: String::new(), ..opening }
}

fn ack_of_pdx() -> (Ack, Details) {
    let ack = Ack {
        from: member("pdx", 2),
        epoch: Some(7),
        fenced: true,
        gtid: Some(set("1-5")),
        fenced_by: Some(FencedBy::Mismatch),
        opened_by_hand: false,
        conflict: false,
        mysqld: Some(StartId(u64::MAX)),
        last_vouch: BTreeMap::from([(Site::new("iad"), Millis(1200))]),
        last_answer: BTreeMap::from([(Site::new("iad"), Millis(900))]),
        uptime: Millis(60_000),
    };
    let variables = Some(Variables { read_only: true, super_read_only: true });
    (ack, Details { variables, lease_remaining: Some(Millis(0)), version: Some("0.1.0".into()), volume: None })
}

fn ack_of_a_blank_sidecar() -> Ack {
    Ack {
        from: member("lax", 3),
        epoch: None,
        fenced: true,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: None,
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis(1),
    }
}

pub(crate) fn question(nonce: Nonce) -> QuestionMessage {
    let question = Question { id: ID, from: member("pdx", 2), epoch: 7, open: true };
    QuestionMessage { group: group(), nonce, question, t_send: Boot(123_456) }
}

/// With a question, and a blank sidecar's acknowledgement handed on.
pub(crate) fn ack() -> AckMessage {
    let (ack, details) = ack_of_pdx();
    let question = question("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff".parse().expect("a nonce"));
    let relayed = Relayed { ack: ack_of_a_blank_sidecar(), details: Details::default(), age: Millis(250) };
    AckMessage { group: group(), ack, details, question: Some(question), relayed: vec![relayed] }
}

pub(crate) fn vouch() -> VouchMessage {
    let (ack, details) = ack_of_pdx();
    let vouch = Vouch {
        id: ID,
        epoch: 7,
        from: member("pdx", 2),
        about: member("iad", 1),
        ok: true,
        gtid: Some(set("1-5")),
        ack: Box::new(ack),
    };
    VouchMessage { group: group(), vouch, highest_epoch: 7, details }
}

/// Sends an envelope and opens it at the other end.
pub(crate) fn sent(envelope: &Envelope) -> Verified {
    Envelope::read(envelope.to_string().as_bytes()).expect("an envelope").open(&keys()).expect("signed")
}

/// A body of any text, signed and sent.
pub(crate) fn signed(kind: Kind, body: &str) -> Verified {
    sent(&Envelope::seal(&keys(), kind, nonce(), body.into()).expect("small enough"))
}

pub(crate) fn malformed(field: &str, problem: &str) -> Error {
    Error::Malformed { field: field.into(), problem: problem.into() }
}

pub(crate) fn missing(field: &str) -> Error {
    Error::MissingField { field: field.into() }
}
