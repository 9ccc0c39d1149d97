//! What a sidecar said, taken apart: words for the brain, the question that rode along, and what people like to know.
//!
//! In: an acknowledgement off the wire. Out: the brain's words, each with how it came. Must not: take a word that was handed
//! on for one that came directly.

use bloodraven_blueprint::report::Beside;
use bloodraven_brain::group::input::Word;
use bloodraven_brain::message::QuestionId;
use bloodraven_brain::name::Site;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::Millis;
use bloodraven_wire::message::{Details, Relayed, Variables};
use bloodraven_wire::{AckMessage, Nonce};

/// What a sidecar said, and handed on.
pub(crate) struct HeardFrom {
    pub(crate) words: Vec<Word>,
    /// The nonce of the question that rode along.
    pub(crate) riding: Option<(QuestionId, Nonce)>,
    /// What was said for people.
    pub(crate) beside: Vec<(Site, Beside)>,
}

impl HeardFrom {
    pub(super) fn new(site: &Site, message: AckMessage) -> Self {
        let AckMessage { group: _, ack, details, question, relayed } = message;
        let riding = question.as_ref().map(|riding| (riding.question.id, riding.nonce));
        let mut beside = vec![(site.clone(), in_status(details))];
        let question = question.map(|riding| riding.question);
        let mut words = vec![Word { ack, lay: Millis(0), via: None, question }];
        for Relayed { ack, details, age } in relayed {
            if ack.from.site != *site {
                beside.push((ack.from.site.clone(), in_status(details)));
            }
            words.push(Word { ack, lay: age, via: Some(site.clone()), question: None });
        }
        Self { words, riding, beside }
    }
}

fn in_status(details: Details) -> Beside {
    let pair = |pair: Variables| Pair { read_only: pair.read_only, super_read_only: pair.super_read_only };
    Beside {
        server_id: None,
        version: details.version,
        pair: details.variables.map(pair),
        lease_remaining: details.lease_remaining,
        volume: details.volume,
    }
}
