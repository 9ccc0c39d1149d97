//! Semi-synchronous replication by role: the holder waits for receipts, primary-candidates give them, nobody else does
//! either.
//!
//! In: the spec, who has authority, what each server says of its sides. Out: the sides that are to be switched, and whether
//! commits at the primary have receipts. Must not: switch the source's side off where a commit may wait (it would be
//! acknowledged, and no candidate has it), start a receiver anew in the middle of a move, or keep a move waiting for more
//! than one answer. One exception: see `stands_in_its_own_way`.
//!
//! A server boots with the source's side on (its configuration says so): a holder that comes back by itself, without any
//! operator, takes no write that nobody else has received. So who is not the holder has it switched off before its threads
//! are started, for an applier would wait for receipts, too.

#[cfg(test)]
mod tests;

use super::command::{Lane, SourceSwitch, Switch, Task};
use super::input::{Facts, Outcome, SourceSide};
use super::recovery::Hindrance;
use super::save::Plan;
use super::seen::SiteSeen;
use super::spec::Durability;
use super::{Group, Kept, Obstacle, Step};
use crate::candidate::drain::Receiver;
use crate::name::Site;
use crate::record::{Epoch, Phase, Record};
use crate::rule::{Rule, off};
use crate::site::Role;
use crate::time::{Boot, Millis, Now};
use std::collections::BTreeMap;

/// The same switch is not tried again for so long when it went well and nothing came of it.
const AGAIN: Millis = Millis::from_secs(10);

/// And for so long when it failed: longer than any pause after a failed change, so that others get their turn at the site.
const AGAIN_AFTER_FAILURE: Millis = Millis::from_secs(60);

/// A new primary's replicas are pointed to it within a moment: so many polls without any are no news.
const LONELY_POLLS: u64 = 3;

/// An opening waits for a switch for so long at most where commits would not wait for ever: less than a site that was granted
/// authority has to be opened.
const OPENING_WAITS: Millis = Millis::from_secs(20);

/// What this leader has tried, of each site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    tried: BTreeMap<Site, Tried>,
    /// The tenure whose first opening waits for the source's side, and since when.
    opening: Option<(Epoch, Boot)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tried {
    switch: Switch,
    at: Boot,
    failed: bool,
}

/// What a site is, as far as semi-synchronous replication goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Station {
    /// It has authority.
    Holder,
    /// Authority is being taken from it: what waits there waits on.
    Revoked,
    /// Anything else.
    Other,
}

/// What is known beside what a server says of itself.
#[derive(Clone, Copy, Debug)]
struct Around {
    durability: Durability,
    role: Role,
    station: Station,
    /// There is one confirmed primary and nobody is being moved: receivers may be started anew.
    steady: bool,
    /// The primary has the plugins: a receiver that connects to it can give receipts.
    source_loaded: bool,
    /// A site that could give receipts is being copied from the primary, and has waited for long.
    copying: bool,
}

/// Whether commits at the primary have receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipts {
    /// Each commit waits for one, and somebody gives it.
    Given,
    /// Not so, and why.
    Missing(String),
}

impl Group {
    /// Each site's sides, as its place asks for. A holder that is not open yet is somebody else's business.
    pub(super) fn switch_semi_sync(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let Some(record) = kept.record.as_ref().filter(|_| !self.is_paused(now)) else { return };
        let steady = matches!(self.footing(now, kept), Ok(_) | Err(Hindrance::NoAccount));
        let primary = self.serving(kept).and_then(|primary| self.seen.site(&primary.site)?.facts.clone());
        let source_loaded = primary.is_some_and(|facts| facts.semi_sync.loaded);
        let copying = self.gives_way_to_a_copy(now, kept);
        for spec in self.spec.sites.clone() {
            let station = station(record, &spec.site);
            let Some(facts) = self.reachable_facts(&spec.site, record.tenure) else { continue };
            if station == Station::Holder && record.phase != Phase::Stable {
                continue;
            }
            let durability = self.spec.durability;
            let around = Around { durability, role: spec.role, station, steady, source_loaded, copying };
            match wanted(around, &facts) {
                Some(switch) => self.switch(now, &spec.site, switch, out),
                None => drop(self.switching.tried.remove(&spec.site)),
            }
        }
    }

    /// Whether the site's source side is being switched on, and is to be waited for: for as long as a commit would wait for
    /// a receipt, and not for so long that the site is given up. Who has receipts waited for without end has no write without
    /// one, and the move is taken elsewhere in time; for all others authority goes on then, and people are told that receipts
    /// are missing.
    pub(super) fn begin_to_wait(
        &mut self,
        now: Now,
        tenure: Epoch,
        site: &Site,
        facts: &Facts,
        out: &mut Step,
    ) -> bool {
        let Durability::SemiSync { timeout } = self.spec.durability else { return false };
        if off(Rule::ReceiptsBeforeOpening)
            || !facts.semi_sync.loaded
            || facts.semi_sync.source == Some(SourceSide { timeout, strict: true })
        {
            return false;
        }
        let switch = Switch { source: Some(SourceSwitch::On { timeout }), replica: None };
        if self.may_change(now, site) {
            self.begin(now, site, Task::SwitchSemiSync(switch), out);
        }
        if self.is_busy(site, Lane::Change) {
            return true;
        }
        self.obstacle = Some(Obstacle::Receipts(site.clone()));
        let since = self.switching.opening.filter(|(of, _)| *of == tenure).map_or(now.boot, |(_, since)| since);
        self.switching.opening = Some((tenure, since));
        !off(Rule::OpeningWaitsForReceipts) && (timeout.0 == 0 || now.boot < since + timeout.min(OPENING_WAITS))
    }

    /// Whether a site that could give receipts is being copied, and nobody has given any for so long that the copy would wait
    /// for nothing else; once receipts are not waited for, until it follows.
    fn gives_way_to_a_copy(&self, now: Now, kept: &Kept) -> bool {
        let primary = || self.serving(kept).and_then(|primary| self.seen.site(&primary.site));
        let off = |seen: &SiteSeen| seen.facts.as_ref().is_some_and(|facts| facts.semi_sync.source.is_none());
        let lonely = |seen: &SiteSeen| seen.lonely_since.is_some_and(|since| now.boot >= since + COPY_WAITS);
        let candidates = kept.sites.iter().filter(|(site, _)| self.spec.is_candidate(site));
        let copied = candidates.filter_map(|(_, kept)| kept.clone.as_ref()).any(|clone| clone.phase.is_active());
        copied && primary().is_some_and(|seen| off(seen) || lonely(seen))
    }

    fn reachable_facts(&self, site: &Site, tenure: u64) -> Option<std::sync::Arc<Facts>> {
        let seen = self.seen.site(site)?;
        seen.facts.clone().filter(|_| seen.watch.state.is_reachable() && seen.read_since(tenure))
    }

    fn switch(&mut self, now: Now, site: &Site, switch: Switch, out: &mut Step) {
        let last = self.switching.tried.get(site).filter(|last| last.switch == switch);
        let due = last.is_none_or(|last| now.boot >= last.at + last.pause());
        if due && self.may_change(now, site) && self.begin(now, site, Task::SwitchSemiSync(switch), out) {
            self.switching.tried.insert(site.clone(), Tried { switch, at: now.boot, failed: false });
        }
    }

    pub(super) fn switch_ended(&mut self, site: &Site, outcome: &Outcome) {
        if let Some(last) = self.switching.tried.get_mut(site) {
            last.failed = matches!(outcome, Outcome::Failed(_) | Outcome::Refused(_));
        }
    }

    /// Whether commits at the primary have receipts; none: nobody wants any, or there is no primary.
    pub fn receipts(&self, now: Now, kept: &Kept) -> Option<(Site, Receipts)> {
        let Durability::SemiSync { timeout } = self.spec.durability else { return None };
        let primary = self.serving(kept)?.site.clone();
        let seen = self.seen.site(&primary)?;
        let semi_sync = seen.facts.as_ref()?.semi_sync;
        let patience = Millis(self.spec.poll_interval.0 * LONELY_POLLS);
        let lonely = seen.lonely_since.is_some_and(|since| now.boot >= since + patience);
        let why = if !semi_sync.loaded {
            "the plugins are not loaded; they come with the next start of its pod".to_owned()
        } else if semi_sync.source.is_none() && is_copying(kept) {
            "nobody gives receipts, and the copy of a site waits for commits that wait; they go through without until it \
             follows"
                .to_owned()
        } else if semi_sync.source.is_none() {
            "the source's side is off, and could not be switched on yet".to_owned()
        } else if !semi_sync.waits {
            format!("no receipt came within {} s, commits go through without", secs(timeout))
        } else if lonely {
            format!("no primary-candidate gives receipts, {}", waits(timeout))
        } else {
            return Some((primary, Receipts::Given));
        };
        Some((primary, Receipts::Missing(why)))
    }
}

/// A copy of the primary ends only when the commits that were under way have ended, and gives up after five minutes.
const COPY_WAITS: Millis = Millis::from_secs(60);

impl Around {
    /// Nobody gives receipts, somebody is being copied who could, and the copy waits for the commits that wait for receipts:
    /// without this the group would stand still for ever.
    fn stands_in_its_own_way(&self, timeout: Millis, facts: &Facts) -> bool {
        let long = timeout.0 == 0 || timeout > COPY_WAITS;
        self.copying && long && facts.semi_sync.clients == 0
    }
}

fn is_copying(kept: &Kept) -> bool {
    kept.sites.values().any(|site| site.clone.as_ref().is_some_and(|clone| clone.phase.is_active()))
}

impl Tried {
    const fn pause(self) -> Millis {
        if self.failed { AGAIN_AFTER_FAILURE } else { AGAIN }
    }
}

fn station(record: &Record, site: &Site) -> Station {
    let is = |member: &crate::name::Member| member.site == *site;
    if record.seat.as_ref().is_some_and(is) {
        Station::Holder
    } else if record.phase == Phase::Revoking && record.holder.as_ref().is_some_and(|holder| is(&holder.member)) {
        Station::Revoked
    } else {
        Station::Other
    }
}

/// What is to be switched at a server; none: nothing.
fn wanted(around: Around, facts: &Facts) -> Option<Switch> {
    if !facts.semi_sync.loaded {
        return None;
    }
    let switch = Switch { source: source_wanted(around, facts), replica: replica_wanted(around, facts) };
    (switch != Switch::default()).then_some(switch)
}

fn source_wanted(around: Around, facts: &Facts) -> Option<SourceSwitch> {
    let source = facts.semi_sync.source;
    match (around.durability, around.station) {
        (_, Station::Revoked) => None,
        (Durability::SemiSync { timeout }, Station::Holder) if around.stands_in_its_own_way(timeout, facts) => {
            source.is_some().then_some(SourceSwitch::Off)
        }
        (Durability::SemiSync { timeout }, Station::Holder) => {
            let wanted = SourceSide { timeout, strict: true };
            (source != Some(wanted)).then_some(SourceSwitch::On { timeout })
        }
        (Durability::SemiSync { .. }, Station::Other) => {
            (source.is_some() && facts.pair.is_fenced()).then_some(SourceSwitch::OffIfClosed)
        }
        (Durability::Async, Station::Holder | Station::Other) => source.is_some().then_some(SourceSwitch::Off),
    }
}

/// A receiver that runs has the side that was on when it connected; if that is another one it is started anew.
fn replica_wanted(around: Around, facts: &Facts) -> Option<bool> {
    let on = around.durability != Durability::Async && around.role == Role::PrimaryCandidate;
    let semi_sync = facts.semi_sync;
    let receives = facts.replica.as_ref().is_some_and(|replica| replica.receiver == Receiver::Running);
    let outdated = receives && semi_sync.acknowledges != on && (!on || around.source_loaded);
    (around.steady && (semi_sync.replica != on || outdated)).then_some(on)
}

fn secs(time: Millis) -> String {
    format!("{}", f64::from(u32::try_from(time.0).unwrap_or(u32::MAX)) / 1000.0)
}

fn waits(timeout: Millis) -> String {
    if timeout.0 == 0 {
        return "commits wait until one does".to_owned();
    }
    format!("commits wait {} s, then go through without", secs(timeout))
}
