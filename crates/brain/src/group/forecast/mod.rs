//! "What would you do if that site died now?": the brain's own answer, rehearsed on a copy, without side effects.
//!
//! In: the leader as it is, the sites that die. Out: what would be told, when, and how it would end. Must not: guess. The
//! copy runs the real step against a world in which everything that lives does at once what it is asked for; so the times
//! are the shortest there can be, and the reasons are the real ones.

mod caches;
#[cfg(test)]
pub(crate) mod faults;
mod rehearsal;

#[cfg(test)]
pub(crate) use rehearsal::Actor;
pub(crate) use rehearsal::Rehearsal;

use super::{Group, Notice, Obstacle};
use crate::name::Site;
use crate::time::{Millis, Now};
use crate::topology::{Alert, Verdict};

/// As far ahead as anybody asks: a lease of a minute with its margin, a drain, and then some.
const HORIZON: Millis = Millis::from_secs(180);

/// What would happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forecast {
    /// What would be told, and after how long.
    pub told: Vec<(Millis, Notice)>,
    /// How it would end.
    pub ending: Ending,
}

/// How it would end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// That site writes, after so long.
    Writes {
        /// Which.
        site: Site,
        /// After how long.
        after: Millis,
    },
    /// Nobody writes, and why.
    Nobody {
        /// What the judgement is.
        verdict: Option<Verdict>,
        /// What stands in the way.
        obstacle: Option<Obstacle>,
        /// What people would see.
        alert: Option<Alert>,
    },
    /// What is stored is not known, so nothing can be said.
    Unknown,
}

impl Group {
    /// What would happen if these sites died now, server and sidecar and all, and nothing else went wrong.
    pub fn what_if(&self, now: Now, dead: &[Site]) -> Forecast {
        let Some(mut rehearsal) = Rehearsal::of(self, now) else {
            return Forecast { told: Vec::new(), ending: Ending::Unknown };
        };
        for site in dead {
            rehearsal.kill(site);
        }
        rehearsal.play(HORIZON, |rehearsal| rehearsal.writer().is_some_and(|site| !dead.contains(&site)));
        let ending = match rehearsal.writer().filter(|site| !dead.contains(site)) {
            Some(site) => Ending::Writes { site, after: rehearsal.elapsed() },
            None => rehearsal.nobody(),
        };
        Forecast { told: rehearsal.told, ending }
    }
}
