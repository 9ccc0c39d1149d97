//! The picture of a group at one moment: what the screen shows and what a JSON line says.
//!
//! In: nothing. Out: plain data. Must not: be acted on by anything but scripts and people.

use crate::ledger::Verdict;
use crate::script::{Seen, SeenSite};
use bloodraven_brain::time::Wall;
use serde::Serialize;
use std::time::Duration;

/// Where the playground is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nobody has written yet.
    #[default]
    Starting,
    /// A site has become primary.
    Ready,
    /// It is being taken down.
    Stopping,
}

/// See above.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    /// RFC 3339, UTC.
    pub at: String,
    /// Where the playground is in its life.
    pub state: State,
    /// Who may write.
    pub authority: Authority,
    /// Every site.
    pub sites: Vec<SitePicture>,
    /// Every operator.
    pub operators: Vec<OperatorPicture>,
    /// The load.
    pub load: LoadPicture,
    /// The newest judgement.
    pub ledger: Option<Verdict>,
    /// What people should see.
    pub alert: Option<String>,
    /// The same in one word; empty: nothing is wrong.
    pub degraded: String,
    /// The newest planned failover.
    pub planned: Option<Planned>,
    /// How often authority went to another site since the load began.
    pub moves: usize,
}

/// The record, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Authority {
    /// Its version.
    pub epoch: u64,
    /// The epoch of the present holder's grant.
    pub tenure: u64,
    /// `Revoking`, `Granting`, `Stable`; empty: there is no record.
    pub phase: String,
    /// Who may write; empty: nobody.
    pub site: String,
    /// Why it is so.
    pub cause: String,
    /// What showed that the holder before had let go.
    pub proof: String,
}

/// One site.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SitePicture {
    /// Its name.
    pub name: String,
    /// `primary-candidate` or `dr-only`.
    pub role: String,
    /// What the operator says: `writable`, `read-only`, `unreachable`, `unknown`.
    pub state: String,
    /// Both threads run and its source is the primary.
    pub following: bool,
    /// Seconds behind the primary.
    pub lag: Option<u64>,
    /// How many transactions it has executed.
    pub transactions: u64,
    /// `gtid_executed`.
    pub gtid: String,
    /// The epoch of the view that its sidecar has stored.
    pub epoch: Option<u64>,
    /// How long its lease still runs; none: it has none.
    pub lease_ms: Option<i64>,
    /// What its sidecar says of the server: `up`, ...; empty: the sidecar does not answer.
    pub mysqld: String,
    /// Transactions that the primary lacks.
    pub divergent: u64,
    /// Acknowledged writes in the last second, straight or through the door.
    pub writes_per_second: u64,
    /// What was done to it by hand: `paused`, `isolated`.
    pub hurt: Vec<String>,
    /// Process numbers.
    pub mysqld_pid: Option<u32>,
    /// See above.
    pub sidecar_pid: Option<u32>,
    /// What is being copied into it.
    pub clone: Option<String>,
}

/// One operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorPicture {
    /// Its process number; none: it does not run.
    pub pid: Option<u32>,
    /// Where it answers.
    pub http: String,
    /// Whether it answers.
    pub answers: bool,
    /// What was done to it by hand.
    pub hurt: Vec<String>,
}

/// The load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadPicture {
    /// Whether it is on.
    pub on: bool,
    /// Acknowledged writes through the front door in the last second.
    pub door_per_second: u64,
    /// Reads through the front door in the last second.
    pub reads_per_second: u64,
    /// How long nothing has been acknowledged at the front door.
    pub silence_ms: u64,
    /// The longest silence since the last deed.
    pub gap_ms: u64,
    /// Acknowledged so far.
    pub acknowledged: u64,
}

/// A planned failover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// Which: the request's id, and when it was taken up.
    pub id: String,
    /// How far it is.
    pub phase: String,
    /// Where to.
    pub target: String,
    /// Why it failed.
    pub reason: String,
    /// In words.
    pub message: String,
}

impl Picture {
    /// Who writes: opened and read back.
    pub fn primary(&self) -> Option<&str> {
        (self.authority.phase == "Stable" && !self.authority.site.is_empty()).then_some(self.authority.site.as_str())
    }

    /// What a script sees of it.
    pub fn seen(&self) -> Seen {
        let site = |site: &SitePicture| SeenSite {
            name: site.name.clone(),
            state: site.state.clone(),
            // A copy that is not said to be done makes nobody a candidate, whatever its threads do.
            following: site.following && site.clone.is_none(),
            divergent: site.divergent,
        };
        Seen {
            primary: self.primary().map(str::to_owned),
            serving: !self.load.on || self.load.silence_ms < 500,
            moves: self.moves,
            sites: self.sites.iter().map(site).collect(),
            planned: self.planned.as_ref().map(|planned| (planned.phase.clone(), planned.reason.clone())),
            gap: Duration::from_millis(self.load.gap_ms),
            degraded: self.degraded.clone(),
            proof: self.authority.proof.clone(),
        }
    }
}

/// A moment for people and for JSON: RFC 3339 in UTC, with milliseconds.
pub(super) fn stamp(wall: Wall) -> String {
    let time = jiff::Timestamp::from_millisecond(wall.0).unwrap_or_default();
    format!("{time:.3}")
}

/// Something that happened, for the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// RFC 3339, UTC.
    pub at: String,
    /// Who says it.
    pub by: By,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The operator, as an Event that needs nobody.
    Operator,
    /// The operator, as an Event that somebody should look at.
    Warning,
    /// A person, a key or a script.
    Hand,
    /// A script, about itself.
    Script,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_its_milliseconds() {
        assert_eq!(stamp(Wall(1_767_323_045_600)), "2026-01-02T03:04:05.600Z");
        assert_eq!(stamp(Wall(0)), "1970-01-01T00:00:00.000Z");
    }
}
