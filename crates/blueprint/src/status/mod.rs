//! What outlives a leader, as the cluster stores it: status fields and annotations.
//!
//! In: the brain's [`Kept`], or what the API server holds. Out: the one from the other, exactly: what was written is what
//! is read. Must not: take a copy that cannot be read for one that is not there, change a field that the brain does not
//! keep, or store what it could not read back.
//!
//! The record has two copies, the annotation and `status.authority`, and so have the last failover and what belongs to the
//! promotion; both are read and joined by the brain's own rule ([`Kept::join`]). Every time is stored with microseconds, so that no millisecond of the
//! brain's is lost. Fields that are not known are ignored: another version may have written them.
//!
//! The reader takes status as plain JSON and looks only at what the brain keeps, so that a fault elsewhere in status (a
//! backup's word that this version does not know) never stands in the way of a failover.
//!
//! Two spellings are one: a site of which nothing is known has no entry in [`Kept::sites`] after reading.

mod anchor;
mod cache;
mod fault;
mod fields;
mod last_failover;
mod parse;
mod planned;
mod record;
mod sites;

use std::collections::BTreeMap;

use bloodraven_api::{MysqlFailoverGroupStatus, keys};
use bloodraven_brain::group::Kept;
use bloodraven_brain::group::copies::Found;
use bloodraven_brain::group::kept::Anchor;
use bloodraven_brain::record::Epoch;
use serde_json::Value;

pub use fault::{Copy, Corrupt, Unwritable};

use fault::Fault;
use fields::KeptStatus;

/// What is to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The status: what the brain keeps, and everything else as it was.
    pub status: MysqlFailoverGroupStatus,
    /// The annotations.
    pub annotations: Annotations,
}

/// The second copies. None: the annotation is not to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The record.
    pub authority: Option<String>,
    /// When the last failover was.
    pub last_failover: Option<String>,
    /// Where it went.
    pub last_failover_target: Option<String>,
}

/// How `kept` is stored in a status that was `before` until now.
pub fn write(kept: &Kept, before: &MysqlFailoverGroupStatus) -> Result<Written, Unwritable> {
    let Kept { record, last_failover, promotion, unapplied, planned, update, sites, cache } = kept;
    let mut status = before.clone();
    let authority = record.as_ref().map(record::write).transpose().map_err(|fault| fault.within("authority"))?;
    status.active_site = authority.as_ref().map(|authority| authority.site.clone()).unwrap_or_default();
    let text =
        authority.as_ref().map(|authority| anchor::write(authority, promotion.as_ref(), unapplied)).transpose()?;
    let mut annotations = Annotations { authority: text, ..Annotations::default() };
    status.authority = authority;
    last_failover::write(last_failover.as_ref(), &mut status, &mut annotations);
    fields::write_promotion(promotion.as_ref(), unapplied, &mut status);
    fields::write_update(update.as_ref(), &mut status);
    status.planned_failover = planned.as_ref().map(planned::write);
    sites::write(sites, &mut status.sites);
    cache::write(cache.as_ref(), &mut status.dragonfly);
    Ok(Written { status, annotations })
}

/// The two copies, each as far as it can be read.
#[derive(Clone, Debug)]
pub struct Copies {
    anchor: Result<Anchor, Corrupt>,
    status: Result<Kept, Corrupt>,
    /// The highest epoch that either names, also where the rest of it cannot be read.
    epoch: Epoch,
}

/// What is stored in this status and these annotations. Neither holds a record: there is no history.
pub fn read(status: Option<&Value>, annotations: &BTreeMap<String, String>) -> Result<Kept, Corrupt> {
    Copies::read(status, annotations).join()
}

impl Copies {
    /// Reads both.
    pub fn read(status: Option<&Value>, annotations: &BTreeMap<String, String>) -> Self {
        let read = match status.filter(|status| !status.is_null()) {
            Some(status) => parse::value::<KeptStatus>(status),
            None => Ok(KeptStatus::default()),
        };
        let in_status = status.map_or(0, |status| named_epoch(&status["authority"]));
        let epoch = in_status.max(anchor::named_epoch(annotations));
        Self { anchor: anchor::read(annotations), status: read.and_then(kept).map_err(Fault::in_status), epoch }
    }

    /// What the two come to.
    pub fn join(self) -> Result<Kept, Corrupt> {
        let (annotated, kept) = (self.anchor?, self.status?);
        if kept.contradicts(&annotated) {
            let because =
                format!("it and status.authority are both of epoch {} and contradict each other", kept.epoch());
            return Err(Fault::new("", because).in_annotation(keys::AUTHORITY));
        }
        Ok(Kept::join(annotated, kept))
    }

    /// What the status keeps; none: it cannot be read.
    pub fn in_status(self) -> Option<Kept> {
        self.status.ok()
    }

    /// Whether a leader that knows this to be stored, and left that in status, may write its memory over them.
    pub fn tell(&self, known: &Kept, left: Option<&Kept>) -> bool {
        let (anchor, status) = (self.anchor.as_ref().ok(), self.status.as_ref().ok());
        known.is_told_by(Found { anchor, status, epoch: self.epoch, left })
    }
}

/// The epoch of a record of which nothing else need be readable; 0: it names none.
fn named_epoch(authority: &Value) -> Epoch {
    authority["epoch"].as_u64().unwrap_or(0)
}

impl Annotations {
    /// What they hold. That is less than what was to be kept where an annotation has no room for all of it.
    pub fn held(&self) -> Result<Anchor, Corrupt> {
        let mut annotations = BTreeMap::new();
        self.put(&mut annotations);
        anchor::read(&annotations)
    }

    /// Each key with its value; none: not to be there.
    pub fn entries(&self) -> [(&'static str, Option<&str>); 3] {
        let Self { authority, last_failover, last_failover_target } = self;
        [
            (keys::AUTHORITY, authority.as_deref()),
            (keys::LAST_FAILOVER, last_failover.as_deref()),
            (keys::LAST_FAILOVER_TARGET, last_failover_target.as_deref()),
        ]
    }

    /// Puts them among an object's annotations, and takes away those that are not to be there.
    pub fn put(&self, annotations: &mut BTreeMap<String, String>) {
        for (key, value) in self.entries() {
            match value {
                Some(value) => annotations.insert(key.to_owned(), value.to_owned()),
                None => annotations.remove(key),
            };
        }
    }
}

/// Everything in status. Its record and its last failover are one copy of two.
fn kept(status: KeptStatus) -> Result<Kept, Fault> {
    let record = status.authority.as_ref().map(record::read).transpose().map_err(|fault| fault.within("authority"))?;
    let (promotion, unapplied) = fields::read_promotion(&status)?;
    Ok(Kept {
        record,
        last_failover: last_failover::in_status(&status)?,
        promotion,
        unapplied,
        update: fields::read_update(&status)?,
        planned: planned::read(status.planned_failover).map_err(|fault| fault.within("plannedFailover"))?,
        sites: sites::read(status.sites)?,
        cache: cache::read(status.dragonfly).map_err(|fault| fault.within("dragonfly"))?,
    })
}
