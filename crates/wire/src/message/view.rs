//! The view: the record, as sidecars store it and hand it on.
//!
//! In: a view and when it was observed. Out: the same. Must not: order views; that is the epoch's business.

use super::{Body, Context, GroupUid, open, read_group, seal};
use crate::envelope::{Envelope, Kind, Verified};
use crate::error::Error;
use crate::json::Json;
use crate::key::Keys;
use crate::nonce::Nonce;
use crate::word::{Fields, GoText, Writer};
use bloodraven_brain::message::QuestionId;
use bloodraven_brain::name::Member;
use bloodraven_brain::record::{Settings, View};

/// A view of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewMessage {
    /// Whose.
    pub group: GroupUid,
    /// What the record says.
    pub view: View,
    /// When it was read, in RFC 3339. It orders nothing; within one epoch it tells freshness.
    pub observed_at: String,
}

impl ViewMessage {
    /// Signs it.
    pub fn seal(&self, keys: &Keys, nonce: Nonce) -> Result<Envelope, Error> {
        seal(self, keys, nonce)
    }

    /// Reads it.
    pub fn open(verified: &Verified, group: &GroupUid) -> Result<Self, Error> {
        open(verified, Context { group, id: NO_QUESTION })
    }
}

/// A view says nothing about a question.
const NO_QUESTION: QuestionId = QuestionId(0);

impl Body for ViewMessage {
    const KIND: Kind = Kind::View;

    fn context(&self) -> Context<'_> {
        Context { group: &self.group, id: NO_QUESTION }
    }

    fn write(&self) -> Json {
        self.fields().finish()
    }

    fn read(fields: &Fields<'_>, context: Context<'_>) -> Result<Self, Error> {
        let group = read_group(fields, context)?;
        let view = View {
            epoch: fields.required("epoch")?,
            tenure: fields.required("tenure")?,
            phase: fields.required("phase")?,
            seat: read_seat(fields)?,
            voters: fields.required("voters")?,
            settings: Settings {
                lease_timeout: fields.required::<GoText>("leaseTimeout")?.0,
                min_peers: fields.required("minPeers")?,
            },
        };
        Ok(Self { group, view, observed_at: fields.required("observedAt")? })
    }
}

impl ViewMessage {
    /// The fields of a view; a grant has more.
    pub(super) fn fields(&self) -> Writer {
        let Self { group, view: View { epoch, tenure, phase, seat, voters, settings }, observed_at } = self;
        let (site, instance) = match seat {
            Some(Member { site, instance }) => (site.to_string(), instance.to_string()),
            None => (String::new(), String::new()),
        };
        Writer::new()
            .put("groupUid", &group.to_string())
            .put("epoch", epoch)
            .put("tenure", tenure)
            .put("phase", phase)
            .put("site", &site)
            .put("instance", &instance)
            .put("voters", voters)
            .put("leaseTimeout", &GoText(settings.lease_timeout))
            .put("minPeers", &settings.min_peers)
            .put("observedAt", observed_at)
    }
}

/// Nobody is two empty texts.
fn read_seat(fields: &Fields<'_>) -> Result<Option<Member>, Error> {
    let (site, instance): (String, String) = (fields.required("site")?, fields.required("instance")?);
    if site.is_empty() && instance.is_empty() {
        return Ok(None);
    }
    Ok(Some(Member { site: fields.required("site")?, instance: fields.required("instance")? }))
}
