//! The grant: the leader's answer "this epoch is yours", a view with a few words more.
//!
//! In: the brain's grant and the reason shown to people. Out: the same. Must not: let an opening pass without the set that
//! has to be there before it.

use super::{Body, Context, GroupUid, ViewMessage, open, seal};
use crate::envelope::{Envelope, Kind, Verified};
use crate::error::Error;
use crate::json::Json;
use crate::key::Keys;
use crate::nonce::Nonce;
use crate::word::Fields;
use bloodraven_brain::message::{Grant, OpeningWord, QuestionId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

/// A grant of one group, under the nonce of the question that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantMessage {
    /// Whose.
    pub group: GroupUid,
    /// The answer.
    pub grant: Grant,
    /// See [`ViewMessage::observed_at`].
    pub observed_at: String,
    /// Why it says "open", or does not; for people.
    pub reason: String,
}

impl GrantMessage {
    /// Signs it, under the nonce of the question.
    pub fn seal(&self, keys: &Keys, nonce: Nonce) -> Result<Envelope, Error> {
        seal(self, keys, nonce)
    }

    /// Reads it. `id` is the question that was asked under its nonce; see [`crate::Outstanding::take`].
    pub fn open(verified: &Verified, group: &GroupUid, id: QuestionId) -> Result<Self, Error> {
        open(verified, Context { group, id })
    }
}

impl Body for GrantMessage {
    const KIND: Kind = Kind::Grant;

    fn context(&self) -> Context<'_> {
        Context { group: &self.group, id: self.grant.id }
    }

    fn write(&self) -> Json {
        let Self { group, grant: Grant { id: _, to, view, open }, observed_at, reason } = self;
        let view = ViewMessage { group: group.clone(), view: view.clone(), observed_at: observed_at.clone() };
        let nothing_excused = BTreeMap::new();
        view.fields()
            .put("toInstance", &to.instance)
            .put("open", &open.is_some())
            .put_if("promotionGtidExecuted", open.as_ref().map(|word| &word.promotion_gtid))
            .put("excused", open.as_ref().map_or(&nothing_excused, |word| &word.excused))
            .put("reason", reason)
            .finish()
    }

    fn read(fields: &Fields<'_>, context: Context<'_>) -> Result<Self, Error> {
        let ViewMessage { group, view, observed_at } = ViewMessage::read(fields, context)?;
        let instance: Instance = fields.required("toInstance")?;
        // The site is the view's: a grant goes to nobody but the one that the view names.
        let Some(seat) = &view.seat else {
            return Err(fields.at("site").malformed("a grant under which nobody writes"));
        };
        let to = Member::new(&seat.site, &instance);
        let grant = Grant { id: context.id, to, view, open: read_word(fields)? };
        Ok(Self { group, grant, observed_at, reason: fields.required("reason")? })
    }
}

/// Fail closed: "open" without the set that has to be there first would pass as "any data will do".
fn read_word(fields: &Fields<'_>) -> Result<Option<OpeningWord>, Error> {
    if !fields.required::<bool>("open")? {
        return Ok(None);
    }
    let promotion_gtid: GtidSet = fields.required("promotionGtidExecuted")?;
    let excused: Option<BTreeMap<Site, GtidSet>> = fields.optional("excused")?;
    Ok(Some(OpeningWord { promotion_gtid, excused: excused.unwrap_or_default() }))
}
