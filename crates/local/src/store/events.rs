//! What people are told: one JSON object a line, the newest last.
//!
//! In: events. Out: `events.jsonl`, and `events.1.jsonl` with what came before it. Must not: grow without a bound, or be
//! needed by anything that decides.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use bloodraven_operator::world::Event;
use serde::{Deserialize, Serialize};
use snafu::ResultExt as _;

use super::{DirectorySnafu, Error, Store};
use crate::files;

/// The newest events.
pub const FILE: &str = "events.jsonl";
/// Those before them.
pub const OLDER: &str = "events.1.jsonl";

/// When a new file is begun: some ten thousand events.
const LONGEST: u64 = 2 << 20;

/// One event, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When, RFC 3339.
    pub time: String,
    /// When, in milliseconds since 1970.
    #[serde(rename = "atMs")]
    pub at_ms: i64,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Store {
    /// Adds an event.
    pub fn record_event(&self, event: &Event) -> Result<(), Error> {
        let line = Line {
            time: event.at.to_string(),
            at_ms: event.at.0,
            kind: event.kind.as_str().to_owned(),
            reason: event.reason.clone(),
            message: event.message.clone(),
        };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        let path = self.path(FILE);
        let append = || -> io::Result<()> {
            let mut file = File::options().create(true).append(true).mode(0o600).open(&path)?;
            if file.metadata()?.len() >= LONGEST {
                std::fs::rename(&path, self.path(OLDER))?;
                file = File::options().create(true).append(true).mode(0o600).open(&path)?;
            }
            // One call, so that lines of two processes do not mix.
            file.write_all(&bytes)
        };
        append().context(DirectorySnafu { path: &path })
    }

    /// The last events, the oldest of them first.
    pub fn events(&self, most: usize) -> Result<Vec<Line>, Error> {
        let mut all = Vec::new();
        for file in [OLDER, FILE] {
            let bytes = files::read(&self.path(file))?.unwrap_or_default();
            // A line that was cut short is lost, as an event may be.
            all.extend(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
        }
        let surplus = all.len().saturating_sub(most);
        all.drain(..surplus);
        Ok(all)
    }
}
