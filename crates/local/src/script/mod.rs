//! Scenarios as text: one thing a line, in words, with `#` for remarks.
//!
//! In: a file. Out: a [`Script`], or the line that is wrong and why; run against a [`Stage`], a verdict. Must not: let
//! through what cannot happen here, or go on after something that was expected did not come true.
//!
//! The words are those of the simulator (`at 20s isolate iad`, `heal at 60s`, `expect primary pdx`); what only a simulator
//! can do is refused. Beside timed lines there are steps, done one after the other:
//!
//! ```text
//! story the primary's server is killed and another site takes over
//! profile fast
//! wait ready
//! load on
//! rest 2s
//! kill mysqld at iad
//! expect primary pdx within 8s
//! expect gap under 2s
//! wait settled within 60s
//! expect ledger clean
//! ```
//!
//! Several stories can be told on one running group: each `scene` begins from a group that is healed, whole and, if it says
//! so, written to at a named site; it is judged by itself, and one that fails does not keep the next from being played.
//!
//! ```text
//! scene killed from iad the primary is killed
//! hold mysqld at iad
//! expect primary pdx
//! play hold-then-heal
//! ```

mod act;
mod expect;
mod faults;
mod parse;
mod run;
mod scenes;
mod words;

#[cfg(test)]
mod tests;

pub use act::{Act, Deed, Edit, End, Process};
pub use parse::{parse, sites};
pub use run::{Failed, Outcome, Played, Seen, SeenSite, Stage, run};

use std::fmt;
use std::time::Duration;

/// Names of sites, when only their number is given.
pub const SITES: [&str; 5] = ["iad", "pdx", "fra", "sin", "gru"];

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Counted from 1.
    pub line: usize,
    /// Why.
    pub because: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.because)
    }
}

impl std::error::Error for Wrong {}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What it shows, in one line.
    pub story: String,
    /// What the group is like.
    pub setup: Setup,
    /// What is done and expected, in order, before the first scene.
    pub steps: Vec<Step>,
    /// Told one after the other on the same group; none: the steps are the story.
    pub scenes: Vec<Scene>,
}

/// One story of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Counted from 1.
    pub line: usize,
    /// In one word.
    pub name: String,
    /// What it shows, in one line.
    pub story: String,
    /// Who writes when it begins; none: whoever does.
    pub from: Option<String>,
    /// What is done and expected, in order.
    pub steps: Vec<Step>,
}

/// What a script wants the group to be like; what it leaves open is the caller's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// `iad,pdx,fra:dr-only`.
    pub sites: Option<Vec<SiteWish>>,
    /// `default` or `fast`.
    pub profile: Option<Profile>,
    /// One or two.
    pub operators: Option<usize>,
    /// `spec.sidecar.leaseTimeout`.
    pub lease: Option<Duration>,
    /// `spec.pollInterval`.
    pub poll: Option<Duration>,
    /// `spec.failureThreshold`.
    pub threshold: Option<usize>,
    /// `spec.failoverCooldown`.
    pub cooldown: Option<Duration>,
    /// `spec.replication.durability: SemiSync`, with this `semiSyncTimeout`.
    pub semi_sync: Option<Duration>,
}

/// A site that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteWish {
    /// Its name.
    pub name: String,
    /// Never promoted.
    pub dr_only: bool,
}

/// How fast things are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// As in production: polls every 2 s, three of them.
    #[default]
    Default,
    /// Polls every 250 ms, three of them, and a short lease.
    Fast,
}

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "default" => Ok(Self::Default),
            "fast" => Ok(Self::Fast),
            other => Err(format!("`{other}` is not a profile; write default or fast")),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Fast => "fast",
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Counted from 1; 0: it goes without saying.
    pub line: usize,
    /// As it was written.
    pub text: String,
    /// Not before this time since the load began.
    pub at: Option<Duration>,
    /// What.
    pub what: What,
}

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Every site answers, one writes, the others follow it.
    WaitSettled(Duration),
    /// The same, but a site may be fenced and reported with what it has too much instead.
    WaitAttached(Duration),
    /// Somebody writes.
    WaitReady(Duration),
    /// Lets time pass under load.
    Rest(Duration),
    /// The load on or off.
    Load(bool),
    /// Does something to the group.
    Act(Act),
    /// Lies in wait: does that when the moment comes.
    Ambush(Moment, Act),
    /// Something must come true in time.
    Expect(Expect, Duration),
    /// It must be true all the time.
    ExpectFor(Expect, Duration),
}

/// When an ambush strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Authority was taken from its holder.
    Revoked,
    /// It was given to somebody, who has not opened yet.
    Granted,
    /// The new holder was read back writable.
    Opened,
    /// A planned failover reached that phase.
    Planned(String),
}

/// What can be expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// That site writes.
    Primary(String),
    /// Any site writes, but not this one.
    PrimaryNot(String),
    /// Nobody may write.
    NoPrimary,
    /// Authority went to another site so often since the beginning.
    Failovers(usize),
    /// The site follows the primary.
    Following(String),
    /// The site does not answer.
    Unreachable(String),
    /// The site's server itself says that it is read-only.
    Closed(String),
    /// The site has a divergence report; of so many transactions, if a number is named.
    Divergent(String, Option<u64>),
    /// Every divergence report lists exactly what its server has and the primary's lacks.
    DivergenceExact,
    /// The group says that it suffers from that; empty: from nothing.
    Degraded(String),
    /// The last move began with that proof that the holder before had let go.
    Proof(String),
    /// A planned failover ended so; with the reason, if one is named.
    Planned(String, Option<String>),
    /// The ledger owes nothing.
    LedgerClean,
    /// The same, and no acknowledged write was given up either: all are on the primary.
    LedgerWhole,
    /// The longest silence since the last deed was shorter.
    GapUnder(Duration),
}
