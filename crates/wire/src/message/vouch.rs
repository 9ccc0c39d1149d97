//! The vouch: a voter's answer to a question, with its own acknowledgement to be handed on.
//!
//! In: the brain's vouch and the highest epoch the voter knows. Out: the same. Must not: carry an acknowledgement of
//! anybody but the answerer, or one with a question on it.

use super::ack::{self, Details};
use super::{Body, Context, GroupUid, open, read_group, seal};
use crate::envelope::{Envelope, Kind, Verified};
use crate::error::Error;
use crate::json::Json;
use crate::key::Keys;
use crate::nonce::Nonce;
use crate::word::{Fields, Writer};
use bloodraven_brain::message::{QuestionId, Vouch};
use bloodraven_brain::record::Epoch;

/// A vouch of one group, under the nonce of the question that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VouchMessage {
    /// Whose.
    pub group: GroupUid,
    /// The answer.
    pub vouch: Vouch,
    /// The highest epoch that the answerer has heard of, stored or not; 0: of none.
    pub highest_epoch: Epoch,
    /// What its acknowledgement says beside the brain's words.
    pub details: Details,
}

impl VouchMessage {
    /// Signs it, under the nonce of the question.
    pub fn seal(&self, keys: &Keys, nonce: Nonce) -> Result<Envelope, Error> {
        seal(self, keys, nonce)
    }

    /// Reads it. `id` is the question that was asked under its nonce; see [`crate::Outstanding::take`].
    pub fn open(verified: &Verified, group: &GroupUid, id: QuestionId) -> Result<Self, Error> {
        open(verified, Context { group, id })
    }
}

impl Body for VouchMessage {
    const KIND: Kind = Kind::Vouch;

    fn context(&self) -> Context<'_> {
        Context { group: &self.group, id: self.vouch.id }
    }

    fn write(&self) -> Json {
        let Self { group, vouch: Vouch { id: _, epoch, from, about, ok, gtid, ack }, highest_epoch, details } = self;
        Writer::new()
            .put("groupUid", &group.to_string())
            .put("epoch", epoch)
            .put("from", from)
            .put("about", about)
            .put("ok", ok)
            .put("highestEpoch", highest_epoch)
            .put_if("gtidExecuted", gtid.as_ref())
            .put_json("ack", ack::write(group, ack, details).finish())
            .finish()
    }

    fn read(fields: &Fields<'_>, context: Context<'_>) -> Result<Self, Error> {
        let group = read_group(fields, context)?;
        let (ack, details) = ack::read_handed_on(fields, context)?;
        let vouch = Vouch {
            id: context.id,
            epoch: fields.required("epoch")?,
            from: fields.required("from")?,
            about: fields.required("about")?,
            ok: fields.required("ok")?,
            gtid: fields.optional("gtidExecuted")?,
            ack: Box::new(ack),
        };
        if vouch.ack.from != vouch.from {
            return Err(fields.at("ack").malformed("of another instance than the vouch"));
        }
        Ok(Self { group, vouch, highest_epoch: fields.required("highestEpoch")?, details })
    }
}
