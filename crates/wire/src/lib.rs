//! What operator and sidecars say to each other, as bytes.
//!
//! In: words of the brain, keys, nonces, and bytes from the network. Out: signed bytes, and words of the brain that a
//! holder of the group's key said. Must not: do IO, read a clock, roll dice, decide, or panic on any input.
//!
//! # The theory on one page
//!
//! **Everything is signed, byte for byte.** A message travels in an *envelope*, `{"kind", "nonce", "body", "mac"}`. The
//! body is the JSON text of the message, and what is signed is that very text: nobody has to agree on how JSON is
//! written, and a field that only a newer release knows is covered like any other.
//!
//! ```text
//! mac = lower-case hex of HMAC-SHA256(key, "bloodraven-v1\n" + kind + "\n" + nonce + "\n" + body)
//! ```
//!
//! A GET has no body. It signs `GET /path?query`, the query sorted by key and without its `mac`, in the place of the
//! body, as kind `question` or, outside authority, `request` ([`query`]).
//!
//! **A bad signature is silence.** [`Envelope::open`] is the only maker of a [`Verified`], and every message is read from
//! one: a body that nobody signed does not reach the reader. Size is checked before anything is parsed, the signature
//! before the body is. The last two keys are accepted, the newer one signs ([`Keys`]).
//!
//! **An answer counts for one question.** It repeats the question's nonce. The asker keeps its nonces in memory, with the
//! moment each was sent, for one lease at most ([`Outstanding`]); each is good for one answer, and after a restart none
//! is known. So an answer that was recorded and played again, or came late, or was meant for an earlier life, is nothing.
//!
//! **Releases differ.** Unknown fields are ignored everywhere. A field that is missing or `null` has its meaning if it is
//! optional; else the message is malformed. A field given twice is malformed, for two readers could take two values.
//!
//! **What would be refused is not sent.** Sealing reads the body back, as the other side will, and hands out an error that
//! names the field instead of an envelope that nobody accepts.
//!
//! # A round
//!
//! A sidecar asks, the leader answers, the sidecar knows what for:
//!
//! ```
//! use bloodraven_brain::message::{Grant, Question, QuestionId};
//! use bloodraven_brain::name::{Instance, Member, Site};
//! use bloodraven_brain::record::{Phase, Settings, View};
//! use bloodraven_brain::time::{Boot, Millis};
//! use bloodraven_wire::outstanding::Asked;
//! use bloodraven_wire::query::{self, Purpose};
//! use bloodraven_wire::{Envelope, GrantMessage, GroupUid, Key, Keys, Nonce, Outstanding, QuestionMessage};
//!
//! let (keys, group) = (Keys::only(Key::new([7; 32])), GroupUid::new("9b1d6c1e"));
//! let iad = Member::new(&Site::new("iad"), &Instance::new("pod-1", "store-1"));
//! let settings = Settings { lease_timeout: Millis::from_secs(20), min_peers: 1 };
//!
//! // The sidecar remembers its question before it sends it.
//! let mut outstanding = Outstanding::default();
//! let (nonce, asked) = (Nonce::new([42; 16]), Asked { id: QuestionId(3), t_send: Boot(1000) });
//! assert!(outstanding.ask(nonce, asked, settings.lease_timeout));
//! let question = Question { id: asked.id, from: iad.clone(), epoch: 7, open: false };
//! let message = QuestionMessage { group: group.clone(), nonce, question, t_send: asked.t_send };
//! let target = message.to_target(&keys, "/active-site", &[("namespace", "shop"), ("group", "orders")])?;
//!
//! // The leader has a name of its own for the question; its answer repeats the nonce.
//! let request = query::verify(&keys, Purpose::Authority, "GET", &target)?;
//! let message = QuestionMessage::from_query(&request, &group, QuestionId(800))?;
//! let seat = Some(iad.clone());
//! let view = View { epoch: 7, tenure: 7, phase: Phase::Stable, seat, voters: vec![iad], settings };
//! let grant = Grant { id: message.question.id, to: message.question.from, view, open: None };
//! let observed_at = "2026-01-02T03:04:05Z".into();
//! let answer = GrantMessage { group: group.clone(), grant, observed_at, reason: "stable".into() };
//! let bytes = answer.seal(&keys, request.nonce())?.to_string();
//!
//! // Back at the sidecar, once and never again.
//! let verified = Envelope::read(bytes.as_bytes())?.open(&keys)?;
//! let asked = outstanding.take(verified.nonce(), Boot(1100), settings.lease_timeout).ok_or("not asked")?;
//! let grant = GrantMessage::open(&verified, &group, asked.id)?.grant;
//! assert_eq!((grant.id, grant.view.epoch), (QuestionId(3), 7));
//! assert_eq!(outstanding.take(verified.nonce(), Boot(1101), settings.lease_timeout), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is here
//!
//! | module | holds |
//! |---|---|
//! | [`envelope`] | sealing, reading and opening envelopes |
//! | [`query`] | signed GETs |
//! | [`message`] | the bodies: view, question, grant, vouch, acknowledgement, order to empty; to and from the brain's words |
//! | [`outstanding`] | which questions wait for an answer |
//! | [`key`], [`nonce`], [`error`] | the words they share |
//!
//! # What is not here
//!
//! The brain's [`QuestionId`](bloodraven_brain::message::QuestionId) is a number of one life; on the wire a question is
//! named by its nonce. Which id belongs to which nonce is the caller's: the asker has it from [`Outstanding`], the
//! answerer chooses one when it reads the question. Where nonces and the time come from is the caller's, too.

#![forbid(unsafe_code)]

pub mod envelope;
pub mod error;
pub mod key;
pub mod message;
pub mod nonce;
pub mod outstanding;
pub mod query;

mod duration;
mod json;
mod word;

pub use envelope::{Envelope, Kind, MAX_ENVELOPE_BYTES, Verified};
pub use error::Error;
pub use key::{Key, Keys};
pub use message::{AckMessage, EmptyMessage, GrantMessage, GroupUid, QuestionMessage, ViewMessage, VouchMessage};
pub use nonce::Nonce;
pub use outstanding::Outstanding;
