//! What survives a restart: the store's id, the highest view, the opened marker, the note of a fence, a conflict.
//!
//! In: a folder outside the data directory. Out: what is kept there, and a writer that changes it in order. Must not: be
//! half there. All of it is one file, written beside, fsynced, renamed, with its folder fsynced: a store either knows
//! everything that it ever promised, or is recognised as broken and made anew under a new id, which makes its sidecar a new
//! instance that nobody believes until it was taken in.

mod file;
mod writer;

pub(crate) use file::{Error, Kept};
pub(crate) use writer::{Done, Write, Writer, Wrote};

use bloodraven_brain::fence::Disk;
use std::path::Path;

/// A store as it was found, or made.
#[derive(Debug)]
pub(crate) struct Found {
    /// What it holds.
    pub(crate) kept: Kept,
    /// Why it was made anew, if it was.
    pub(crate) made: Option<Made>,
}

/// Why a store was made.
#[derive(Debug)]
pub(crate) enum Made {
    /// There was none.
    First,
    /// What was there cannot be read.
    Discarded(Error),
}

/// Reads the store in that folder, or makes one under `new_id`. Blocks for as long as the disk takes.
///
/// A new store that cannot be written is used all the same: nothing that was not stored is ever promised, and the next
/// life makes another one.
pub(crate) fn open(folder: &Path, new_id: impl FnOnce() -> String) -> Found {
    let made = match file::load(folder) {
        Ok(Some(kept)) => return Found { kept, made: None },
        Ok(None) => Made::First,
        Err(error) => Made::Discarded(error),
    };
    let kept = Kept { id: new_id(), disk: Disk::default(), observed_at: String::new() };
    if let Err(error) = file::save(folder, &kept) {
        tracing::error!(error = %error, "the store cannot be written; nothing is acknowledged until it can");
    }
    Found { kept, made: Some(made) }
}
