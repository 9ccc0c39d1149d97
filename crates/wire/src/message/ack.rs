//! The acknowledgement: what a sidecar has stored, and how its server stands.
//!
//! In: the brain's acknowledgement, what people want to know beside it, a question that rides along, acknowledgements of
//! peers. Out: the same. Must not: pass a question on that somebody else handed on, or read "not stored" as "never stored".

use super::{Body, Context, GroupUid, QuestionMessage, open, read_group, seal};
use crate::envelope::{Envelope, Kind, Verified};
use crate::error::Error;
use crate::json::Json;
use crate::key::Keys;
use crate::nonce::Nonce;
use crate::word::{Fields, Place, Writer};
use bloodraven_brain::message::{Ack, QuestionId};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::Millis;
use bloodraven_brain::volume::Space;

/// An acknowledgement in one group, under the nonce of the push that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckMessage {
    /// Whose.
    pub group: GroupUid,
    /// What is acknowledged.
    pub ack: Ack,
    /// What it says beside that.
    pub details: Details,
    /// Rides along: "then may I write?".
    pub question: Option<QuestionMessage>,
    /// Acknowledgements of peers.
    pub relayed: Vec<Relayed>,
}

/// What an acknowledgement says for people. No decision rests on it, but "fenced" with a pair that says otherwise is
/// refused. All of it may be missing: who hands an acknowledgement on need not have kept it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Both variables, as one statement read them; none: mysqld does not run, or was not read yet.
    pub variables: Option<Variables>,
    /// What is left of the lease.
    pub lease_remaining: Option<Millis>,
    /// The speaker's release.
    pub version: Option<String>,
    /// How full its data volume is; none: nobody knows, or nobody said.
    pub volume: Option<Space>,
}

/// The pair that makes a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variables {
    /// `@@global.read_only`.
    pub read_only: bool,
    /// `@@global.super_read_only`.
    pub super_read_only: bool,
}

/// An acknowledgement that a peer gave and somebody else hands on. It carries no question and no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// What the peer said.
    pub ack: Ack,
    /// What it said beside that, as far as it was kept.
    pub details: Details,
    /// How long ago it said so.
    pub age: Millis,
}

impl AckMessage {
    /// Signs it, under the nonce of the push. If it is too large, it has to go without what is relayed.
    pub fn seal(&self, keys: &Keys, nonce: Nonce) -> Result<Envelope, Error> {
        seal(self, keys, nonce)
    }

    /// Reads it. `id` is the reader's name for a question that may ride on it.
    pub fn open(verified: &Verified, group: &GroupUid, id: QuestionId) -> Result<Self, Error> {
        open(verified, Context { group, id })
    }
}

impl Body for AckMessage {
    const KIND: Kind = Kind::Ack;

    fn context(&self) -> Context<'_> {
        let id = self.question.as_ref().map_or(QuestionId(0), |riding| riding.question.id);
        Context { group: &self.group, id }
    }

    fn write(&self) -> Json {
        let Self { group, ack, details, question, relayed } = self;
        let handed_on = |Relayed { ack, details, age }: &Relayed| {
            Writer::new().put_json("ack", write(group, ack, details).finish()).put("ageMs", age).finish()
        };
        let mut writer = write(group, ack, details);
        if let Some(question) = question {
            writer = writer.put_json("question", question.write());
        }
        writer.put_json("relayed", Json::List(relayed.iter().map(handed_on).collect())).finish()
    }

    fn read(fields: &Fields<'_>, context: Context<'_>) -> Result<Self, Error> {
        let group = read_group(fields, context)?;
        let (ack, details) = read(fields)?;
        let question = read_question(fields, context, &ack.from)?;
        Ok(Self { group, ack, details, question, relayed: read_relayed(fields, context)? })
    }
}

/// The fields that every acknowledgement has, given directly or handed on.
pub(super) fn write(group: &GroupUid, ack: &Ack, details: &Details) -> Writer {
    let Ack {
        from: Member { site, instance },
        epoch,
        fenced,
        gtid,
        fenced_by,
        opened_by_hand,
        conflict,
        mysqld,
        last_vouch,
        last_answer,
        uptime,
    } = ack;
    let Details { variables, lease_remaining, version, volume } = details;
    // Some file systems say that they have no end, and one number that cannot be read spoils the whole acknowledgement.
    let bytes = |bytes: u64| bytes.min(i64::MAX.unsigned_abs());
    Writer::new()
        .put("groupUid", &group.to_string())
        .put("site", site)
        .put("instance", instance)
        .put("epoch", &epoch.unwrap_or(0))
        .put("stored", &epoch.is_some())
        .put_if("readOnly", variables.as_ref().map(|pair| &pair.read_only))
        .put_if("superReadOnly", variables.as_ref().map(|pair| &pair.super_read_only))
        .put("fenced", fenced)
        .put_if("fencedBy", fenced_by.as_ref())
        .put("openedByHand", opened_by_hand)
        .put("conflict", conflict)
        .put_if("mysqld", mysqld.as_ref())
        .put_if("gtidExecuted", gtid.as_ref())
        .put_if("leaseRemainingMs", lease_remaining.as_ref())
        .put("lastVouchAgeMs", last_vouch)
        .put("lastAnswerAgeMs", last_answer)
        .put("uptimeMs", uptime)
        .put_if("version", version.as_ref())
        .put_if("volumeFreeBytes", volume.map(|space| bytes(space.free)).as_ref())
        .put_if("volumeTotalBytes", volume.map(|space| bytes(space.total)).as_ref())
}

/// The acknowledgement in the field `ack`, which somebody hands on, or is meant to: it carries no question, for only who
/// asks directly may be answered, and no others, for their ages would be wrong.
pub(super) fn read_handed_on(parent: &Fields<'_>, context: Context<'_>) -> Result<(Ack, Details), Error> {
    let place = parent.at("ack");
    let json = parent.value("ack").ok_or_else(|| Error::missing(place.to_string()))?;
    let fields = Fields::of(json, place)?;
    if fields.value("question").is_some() {
        return Err(fields.at("question").malformed("an acknowledgement handed on carries none"));
    }
    if fields.value("relayed").is_some_and(|list| *list != Json::List(Vec::new())) {
        return Err(fields.at("relayed").malformed("an acknowledgement handed on carries none"));
    }
    read_group(&fields, context)?;
    read(&fields)
}

fn read(fields: &Fields<'_>) -> Result<(Ack, Details), Error> {
    let ack = Ack {
        from: Member { site: fields.required("site")?, instance: fields.required("instance")? },
        epoch: read_epoch(fields)?,
        fenced: fields.required("fenced")?,
        gtid: fields.optional("gtidExecuted")?,
        fenced_by: fields.optional("fencedBy")?,
        opened_by_hand: fields.required("openedByHand")?,
        conflict: fields.required("conflict")?,
        mysqld: fields.optional("mysqld")?,
        // Without it the age of a vouch would be taken to be the uptime: never optional.
        last_vouch: fields.required("lastVouchAgeMs")?,
        last_answer: fields.required("lastAnswerAgeMs")?,
        uptime: fields.required("uptimeMs")?,
    };
    let details = Details {
        variables: read_variables(fields)?,
        lease_remaining: fields.optional("leaseRemainingMs")?,
        version: fields.optional("version")?,
        volume: read_volume(fields)?,
    };
    let open = details.variables.is_some_and(|pair| !(pair.read_only && pair.super_read_only));
    if ack.fenced && ack.mysqld.is_some() && open {
        return Err(fields.at("fenced").malformed("true, although mysqld runs and the variables are not both 1"));
    }
    Ok((ack, details))
}

/// None is "has never stored an epoch", on which a first grant may rest. An epoch that was heard and is not stored has no
/// place in an acknowledgement.
fn read_epoch(fields: &Fields<'_>) -> Result<Option<Epoch>, Error> {
    match (fields.required("epoch")?, fields.required("stored")?) {
        (epoch, true) => Ok(Some(epoch)),
        (0, false) => Ok(None),
        (_, false) => Err(fields.at("stored").malformed("false, although there is an epoch")),
    }
}

fn read_variables(fields: &Fields<'_>) -> Result<Option<Variables>, Error> {
    if fields.value("readOnly").is_none() && fields.value("superReadOnly").is_none() {
        return Ok(None);
    }
    let (read_only, super_read_only) = (fields.required("readOnly")?, fields.required("superReadOnly")?);
    Ok(Some(Variables { read_only, super_read_only }))
}

/// Both numbers, or nothing is known.
fn read_volume(fields: &Fields<'_>) -> Result<Option<Space>, Error> {
    let (free, total) = (fields.optional("volumeFreeBytes")?, fields.optional("volumeTotalBytes")?);
    Ok(free.zip(total).map(|(free, total)| Space { free, total }))
}

/// Nobody asks for another.
fn read_question(fields: &Fields<'_>, context: Context<'_>, from: &Member) -> Result<Option<QuestionMessage>, Error> {
    let place = fields.at("question");
    let Some(json) = fields.value("question") else { return Ok(None) };
    let riding = QuestionMessage::read(&Fields::of(json, place)?, context)?;
    if riding.question.from != *from {
        return Err(place.malformed("of another instance than the acknowledgement"));
    }
    Ok(Some(riding))
}

fn read_relayed(fields: &Fields<'_>, context: Context<'_>) -> Result<Vec<Relayed>, Error> {
    let place = fields.at("relayed");
    let items = match fields.value("relayed") {
        None => return Ok(Vec::new()),
        Some(Json::List(items)) => items,
        Some(_) => return Err(place.malformed("not a list")),
    };
    let read_one = |(index, item): (usize, &Json)| {
        let entry = Fields::of(item, Place::Item(&place, index))?;
        let (ack, details) = read_handed_on(&entry, context)?;
        Ok(Relayed { ack, details, age: entry.required("ageMs")? })
    };
    items.iter().enumerate().map(read_one).collect()
}
