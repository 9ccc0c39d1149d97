//! The lease that operators elect one of them by.
//!
//! In: the lease as an operator would write it. Out: the lease as it is, or that somebody else was first. Must not: compare
//! times; they are handed on.

use std::sync::Arc;

use bloodraven_brain::lease::{Acquired, Lease, NewLease};
use bloodraven_brain::time::Millis;
use serde::{Deserialize, Serialize};

use super::{ConflictSnafu, CorruptSnafu, Error, Store};
use crate::files;

/// The lease's file.
pub const FILE: &str = "lease.json";

/// As it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stored {
    version: u64,
    holder: Option<String>,
    duration_ms: u64,
    acquired: Option<String>,
    renewed: Option<String>,
    transitions: u32,
}

impl Store {
    /// The lease as it is now; none: there is none.
    pub fn read_lease(&self) -> Result<Option<Lease>, Error> {
        Ok(self.stored_lease()?.map(Stored::into_lease))
    }

    /// Writes the lease if it has that version; none: if there is none.
    pub fn write_lease(&self, expected: Option<&str>, new: &NewLease) -> Result<Lease, Error> {
        let path = self.path(FILE);
        let conflict = || ConflictSnafu { path: path.clone() }.build();
        // Versions are ours: anything that is none of them is another's.
        let expected: Option<u64> = expected.map(|text| text.parse().map_err(|_| conflict())).transpose()?;
        let stored = Stored::from_new(expected.unwrap_or(0) + 1, new);
        let staged = files::stage(&path, &serde_json::to_vec_pretty(&stored).unwrap_or_default())?;
        let lock = self.lock()?;
        if self.stored_lease()?.map(|lease| lease.version) != expected {
            return Err(conflict());
        }
        staged.rename()?;
        drop(lock);
        staged.settle()?;
        Ok(stored.into_lease())
    }

    fn stored_lease(&self) -> Result<Option<Stored>, Error> {
        let Some(value) = self.json(FILE)? else { return Ok(None) };
        let path = self.path(FILE);
        serde_json::from_value(value).map(Some).map_err(|error| CorruptSnafu { path, why: error.to_string() }.build())
    }
}

impl Stored {
    fn from_new(version: u64, new: &NewLease) -> Self {
        let acquired = match &new.acquired {
            Acquired::At(at) => Some(at.to_string()),
            Acquired::AsRead(text) => text.as_ref().map(ToString::to_string),
        };
        Self {
            version,
            holder: new.holder.as_ref().map(ToString::to_string),
            duration_ms: new.duration.0,
            acquired,
            renewed: Some(new.renewed.to_string()),
            transitions: new.transitions,
        }
    }

    fn into_lease(self) -> Lease {
        let shared = |text: Option<String>| text.map(Arc::from);
        Lease {
            version: self.version.to_string().into(),
            holder: shared(self.holder),
            duration: Some(Millis(self.duration_ms)),
            acquired: shared(self.acquired),
            renewed: shared(self.renewed),
            transitions: self.transitions,
        }
    }
}
