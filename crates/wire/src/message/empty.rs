//! The order to empty a data folder: the leader's, to one sidecar, about one start of one server and what it holds.
//!
//! In: whom, under which epoch, and exactly what is to go. Out: the same. Must not: be about anything that the sidecar
//! cannot compare with what it has.

use super::{Body, Context, GroupUid, open, read_group, seal};
use crate::envelope::{Envelope, Kind, Verified};
use crate::error::Error;
use crate::json::Json;
use crate::key::Keys;
use crate::nonce::Nonce;
use crate::word::{Fields, Writer};
use bloodraven_brain::fence::Emptying;
use bloodraven_brain::message::{QuestionId, StartId};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::Millis;
use bloodraven_gtid::{GtidSet, Uuid};

/// An order of one group's leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyMessage {
    /// Whose.
    pub group: GroupUid,
    /// Who shall do it: this very instance.
    pub to: Member,
    /// The leader's epoch, which has to be the sidecar's own.
    pub epoch: Epoch,
    /// The start of mysqld that was told.
    pub start: StartId,
    /// The server that was read.
    pub server: Uuid,
    /// What it had executed: not more than this may go.
    pub over: GtidSet,
    /// The order is void when that life of the sidecar has lasted longer: it is measured with the sidecar's own clock, and a
    /// request that lay in a buffer of a process that stood still is late.
    pub until_uptime: Millis,
}

impl EmptyMessage {
    /// What the sidecar's brain looks at; server and set are compared with the server itself.
    pub fn for_the_brain(&self) -> Emptying {
        let Self { group: _, to, epoch, start, server: _, over: _, until_uptime } = self;
        Emptying { to: to.clone(), epoch: *epoch, start: *start, until_uptime: *until_uptime }
    }

    /// Signs it.
    pub fn seal(&self, keys: &Keys, nonce: Nonce) -> Result<Envelope, Error> {
        seal(self, keys, nonce)
    }

    /// Reads it.
    pub fn open(verified: &Verified, group: &GroupUid) -> Result<Self, Error> {
        open(verified, Context { group, id: NO_QUESTION })
    }
}

/// An order answers no question.
const NO_QUESTION: QuestionId = QuestionId(0);

impl Body for EmptyMessage {
    const KIND: Kind = Kind::Empty;

    fn context(&self) -> Context<'_> {
        Context { group: &self.group, id: NO_QUESTION }
    }

    fn write(&self) -> Json {
        let Self { group, to, epoch, start, server, over, until_uptime } = self;
        Writer::new()
            .put("groupUid", &group.to_string())
            .put("to", to)
            .put("epoch", epoch)
            .put("mysqld", start)
            .put("serverUuid", &server.to_string())
            .put("gtidExecuted", over)
            .put("untilUptimeMs", until_uptime)
            .finish()
    }

    fn read(fields: &Fields<'_>, context: Context<'_>) -> Result<Self, Error> {
        let server: String = fields.required("serverUuid")?;
        Ok(Self {
            group: read_group(fields, context)?,
            to: fields.required("to")?,
            epoch: fields.required("epoch")?,
            start: fields.required("mysqld")?,
            server: server.parse().map_err(|_| fields.at("serverUuid").malformed("not a UUID"))?,
            over: fields.required("gtidExecuted")?,
            until_uptime: fields.required("untilUptimeMs")?,
        })
    }
}
