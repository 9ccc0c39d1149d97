//! Requests and records that travel as annotations.
//!
//! In: the text of an annotation. Out: a typed request, or an error that names the segment and the fix. Must not: look at
//! anything but the text; whether a site exists or a request is allowed is decided elsewhere.
//!
//! Tokens are trimmed, empty segments ignored, site names taken exactly as written.

mod planned_failover;
mod reclone;
mod record;
mod snapshot_upgrade;

pub use planned_failover::{PlannedFailoverError, PlannedFailoverRequest};
pub use reclone::{RECLONE_PREFIX_MIN, RecloneConsent, RecloneError, RecloneRequest};
pub use record::{
    RecordError, authority_from_annotation, authority_to_annotation, last_failover_from_annotation,
    last_failover_to_annotation,
};
pub use snapshot_upgrade::{SnapshotUpgradeError, SnapshotUpgradeRequest};
