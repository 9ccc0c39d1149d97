//! The custom resources of Bloodraven and everything that users, the API server and the operator have to agree on.
//!
//! In: manifests, stored objects, annotations. Out: types that are complete and checked, the CRDs that make the API
//! server check the same, and the names, labels and words that the rest of the workspace uses. Must not: talk to an API
//! server, read a clock, decide anything.
//!
//! Reading order: [`group`], [`backup`] and [`verification`] are the three kinds. [`admission`] says whether an object is
//! acceptable; its rules are one table ([`rules`]) from which both the CEL in the CRDs and the code check are made.
//! [`crd`] prints the CRDs. [`annotations`] reads requests. [`names`], [`keys`], [`events`], [`conditions`] and
//! [`reasons`] are the vocabulary.

pub mod admission;
pub mod annotations;
pub mod backup;
pub mod conditions;
pub mod crd;
pub mod events;
pub mod go_duration;
pub mod group;
pub mod keys;
pub mod names;
pub mod quantity;
pub mod reasons;
pub mod rules;
mod schema;
pub mod shared;
pub mod string_enum;
pub mod verification;

pub use backup::{MysqlBackup, MysqlBackupSpec, MysqlBackupStatus};
pub use go_duration::GoDuration;
pub use group::status::MysqlFailoverGroupStatus;
pub use group::{MysqlFailoverGroup, MysqlFailoverGroupSpec};
pub use verification::{MysqlBackupVerification, MysqlBackupVerificationSpec, MysqlBackupVerificationStatus};
