//! From a seed to a scenario: a setup, a character, and faults of that character.
//!
//! In: a seed, and how many sites if somebody says so. Out: a scenario. Must not: draw what breaks an assumption of the
//! protocol, such as a whole machine that stands still.

use super::clock::{MS, SEC, Time};
use super::net::{Channel, End};
use super::random::Random;
use super::scenario::{Edit, Fault, Moment, Process, Refusable, Scenario, Setup, Timed, Victim};

/// The kinds of faults that a character is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Crash,
    Stop,
    Cut,
    Weather,
    Pods,
    Store,
    Disk,
    Sql,
    Replication,
    Human,
    Spec,
    Requests,
    Operators,
    Clocks,
    Ambush,
}

const KINDS: [Kind; 16] = [
    Kind::Crash,
    Kind::Stop,
    Kind::Cut,
    Kind::Weather,
    Kind::Pods,
    Kind::Store,
    Kind::Disk,
    Kind::Sql,
    Kind::Replication,
    Kind::Human,
    Kind::Spec,
    Kind::Requests,
    Kind::Operators,
    Kind::Clocks,
    Kind::Ambush,
    Kind::Ambush,
];

/// The scenario of that seed.
pub fn draw(seed: u64, sites: Option<usize>) -> Scenario {
    let mut random = Random::new(seed, 0);
    let setup = setup(&mut random, sites);
    let kinds = character(&mut random);
    let heal_at = random.between(60, 150) * SEC;
    let faults = faults(&mut random, &setup, &kinds, heal_at);
    let story = format!("seed {seed}: {kinds:?}");
    let mut scenario = Scenario { seed, story, setup, faults, heal_at, expects: Vec::new() };
    super::more::add(&mut scenario, !kinds.iter().any(|kind| kind.strikes_watchers()));
    scenario
}

impl Kind {
    /// Whether it can leave a server without anyone who could close it while its keeper stands still: the protocol assumes
    /// that this does not happen.
    const fn strikes_watchers(self) -> bool {
        matches!(self, Self::Crash | Self::Stop | Self::Ambush | Self::Pods | Self::Sql | Self::Disk)
    }
}

fn setup(random: &mut Random, sites: Option<usize>) -> Setup {
    let sites = sites.unwrap_or_else(|| [2, 2, 3, 3, 3, 3, 4, 5][random.index(8)]).clamp(2, 5);
    let dr_only = usize::from(sites > 2 && random.chance(30));
    let majority = u32::try_from(sites / 2).unwrap_or(1).max(1);
    Setup {
        sites,
        dr_only,
        operators: if random.chance(40) { 2 } else { 1 },
        lease: [6, 10, 20, 20][random.index(4)] * SEC,
        min_peers: if random.chance(30) { majority } else { 1 },
        poll: [500, 1000, 2000, 2000][random.index(4)] * MS,
        cooldown: [5, 20, 31, 60][random.index(4)] * SEC,
        fresh: random.chance(12),
        best_effort: random.chance(4),
        priorities: preferred(random, sites, dr_only),
        skewed: random.chance(20),
        latency: [300, 1000, 5000, 20_000][random.index(4)],
        twice: if random.chance(20) { 5 } else { 0 },
        lost_for_ever: random.chance(8),
        ..Setup::default()
    }
}

/// One site, or none. Admission refuses a list that names a site which is never promoted.
fn preferred(random: &mut Random, sites: usize, dr_only: usize) -> Vec<usize> {
    let drawn = random.chance(30).then(|| random.index(sites));
    drawn.filter(|site| site + dr_only < sites).into_iter().collect()
}

/// A few kinds out of many, so that runs differ.
fn character(random: &mut Random) -> Vec<Kind> {
    let wanted = random.between(1, 4);
    let mut kinds = Vec::new();
    for _ in 0..wanted {
        let kind = KINDS[random.index(KINDS.len())];
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn faults(random: &mut Random, setup: &Setup, kinds: &[Kind], heal_at: Time) -> Vec<Timed> {
    let mut faults = Vec::new();
    let count = random.between(1, 9);
    let begin = 9 * SEC;
    for _ in 0..count {
        let Some(kind) = random.pick(kinds).copied() else { break };
        let at = begin + random.below(heal_at.saturating_sub(begin + 5 * SEC));
        let long = length(random);
        // Some come close together: two faults within a second find more than two within a minute.
        let at = match faults.last() {
            Some(Timed { at, .. }) if random.chance(40) => *at + random.below(3 * SEC),
            _ => at,
        };
        let (fault, cure) = one(random, setup, kind);
        faults.push(Timed { at, what: fault });
        faults.extend(cure.map(|what| Timed { at: at + long, what }));
    }
    // An ambush without a move waits for nothing: the first site is lost after it.
    if kinds.contains(&Kind::Ambush) {
        let at = begin + random.below(heal_at / 2);
        let (fault, cure) = match random.below(4) {
            0 => (Fault::Pause(Process::Mysqld(0)), Some(Fault::Resume(Process::Mysqld(0)))),
            1 => (
                Fault::CutBoth(End::Site(0), End::Operator(0), None),
                Some(Fault::Mend(End::Site(0), End::Operator(0))),
            ),
            2 => (Fault::DeletePod(0), None),
            _ => (Fault::Isolate(End::Site(0)), Some(Fault::Rejoin(End::Site(0)))),
        };
        faults.push(Timed { at: at.saturating_sub(2 * SEC), what: ambush(random) });
        faults.push(Timed { at, what: fault });
        faults.extend(cure.map(|what| Timed { at: at + length(random), what }));
    }
    faults.sort_by_key(|timed| timed.at);
    faults
}

/// How long something lasts: often around a lease, sometimes a blink.
fn length(random: &mut Random) -> Time {
    match random.below(4) {
        0 => random.between(20, 900) * MS,
        1 => random.between(1, 8) * SEC,
        2 => random.between(5, 30) * SEC,
        _ => random.between(15, 70) * SEC,
    }
}

fn end(random: &mut Random, setup: &Setup) -> End {
    match random.below(10) {
        0 => End::Store,
        1..=3 => End::Operator(random.index(setup.operators)),
        _ => End::Site(random.index(setup.sites)),
    }
}

/// A link has two ends.
fn other_than(from: End, to: End) -> End {
    match from {
        _ if from != to => to,
        End::Operator(0) => End::Store,
        _ => End::Operator(0),
    }
}

/// The first site has authority at the beginning: it is struck more often.
fn site(random: &mut Random, setup: &Setup) -> usize {
    if random.chance(35) { 0 } else { random.index(setup.sites) }
}

fn one(random: &mut Random, setup: &Setup, kind: Kind) -> (Fault, Option<Fault>) {
    let here = site(random, setup);
    match kind {
        Kind::Crash => {
            let process = [Process::Mysqld(here), Process::Keeper(here), Process::Sidecar(here)][random.index(3)];
            (Fault::Kill(process), None)
        }
        Kind::Stop => {
            let process = [Process::Mysqld(here), Process::Sidecar(here)][random.index(2)];
            (Fault::Pause(process), Some(Fault::Resume(process)))
        }
        Kind::Cut => cut(random, setup, here),
        Kind::Weather => {
            let (from, to) = (end(random, setup), end(random, setup));
            let to = other_than(from, to);
            let fault = if random.chance(50) {
                Fault::Loss(from, to, random.between(5, 70))
            } else {
                Fault::Delay(from, to, random.between(50, 3000) * MS)
            };
            (fault, Some(Fault::Mend(from, to)))
        }
        Kind::Pods => match random.below(6) {
            0 => (Fault::ForceDeletePod(here), None),
            1 => (Fault::LoseNode(here), Some(Fault::ReturnNode(here))),
            2 => (Fault::LoseVolume(here), None),
            _ => (Fault::DeletePod(here), None),
        },
        Kind::Store => match random.below(4) {
            0 => (Fault::StoreDown, Some(Fault::StoreUp)),
            1 => (Fault::Conflict, None),
            _ => {
                let all = [
                    Refusable::Status,
                    Refusable::Status,
                    Refusable::Annotation,
                    Refusable::Lease,
                    Refusable::Labels,
                    Refusable::Dns,
                ];
                let what = all[random.index(all.len())];
                (Fault::Deny(what), Some(Fault::Allow(what)))
            }
        },
        Kind::Disk => (Fault::FillDisk(here), Some(Fault::FreeDisk(here))),
        Kind::Sql => {
            if random.chance(50) {
                (Fault::SlowSql(here, random.between(20, 2500) * MS), Some(Fault::SlowSql(here, 0)))
            } else {
                (Fault::BlockFence(here, random.between(1, 30) * SEC), None)
            }
        }
        Kind::Replication => match random.below(8) {
            0 => (Fault::BreakApplier(here), None),
            1 => (Fault::Purge(here), None),
            2..=4 => (Fault::StopApplier(here), None),
            _ => (Fault::StopReceiver(here), None),
        },
        Kind::Human => {
            if random.chance(70) {
                (Fault::HumanOpen(here), None)
            } else {
                (Fault::HumanFence(here), None)
            }
        }
        Kind::Spec => spec(random, setup, here),
        Kind::Requests => {
            if random.chance(80) {
                (Fault::Planned(here), None)
            } else {
                (Fault::Reclone(here), None)
            }
        }
        Kind::Operators => {
            let op = random.index(setup.operators);
            match random.below(4) {
                0 => (Fault::Kill(Process::Operator(op)), None),
                1 => {
                    let process = Process::Operator(op);
                    (Fault::Pause(process), Some(Fault::Resume(process)))
                }
                _ => (Fault::CrashAfter(op, u32::try_from(random.below(12)).unwrap_or(0)), None),
            }
        }
        Kind::Ambush => (ambush(random), None),
        Kind::Clocks => {
            let seconds = i64::try_from(random.below(7200)).unwrap_or(0) - 3600;
            let end = if random.chance(50) { End::Operator(0) } else { End::Site(here) };
            (Fault::ClockJump(end, seconds), None)
        }
    }
}

fn ambush(random: &mut Random) -> Fault {
    let moments = [Moment::Revoked, Moment::Granted, Moment::Permitted, Moment::Opened, Moment::Fencing];
    let victims =
        [Victim::Mysqld, Victim::Keeper, Victim::Sidecar, Victim::MysqldStops, Victim::SidecarStops, Victim::Operator];
    Fault::Ambush(moments[random.index(moments.len())], victims[random.index(victims.len())])
}

fn cut(random: &mut Random, setup: &Setup, here: usize) -> (Fault, Option<Fault>) {
    if random.chance(35) {
        let end = if random.chance(80) { End::Site(here) } else { end(random, setup) };
        return (Fault::Isolate(end), Some(Fault::Rejoin(end)));
    }
    let from = End::Site(here);
    let to = other_than(from, end(random, setup));
    let channel = match random.below(3) {
        0 => Some(Channel::Http),
        1 => Some(Channel::Sql),
        _ => None,
    };
    let fault = match random.below(4) {
        0 => Fault::Cut(from, to, channel),
        1 => Fault::Cut(to, from, channel),
        _ => Fault::CutBoth(from, to, channel),
    };
    (fault, Some(Fault::Mend(from, to)))
}

fn spec(random: &mut Random, setup: &Setup, here: usize) -> (Fault, Option<Fault>) {
    match random.below(4) {
        0 => (Fault::Edit(Edit::Lease(random.between(4, 30) * SEC)), None),
        1 => {
            let most = u64::try_from(setup.sites).unwrap_or(2);
            (Fault::Edit(Edit::MinPeers(u32::try_from(random.between(1, most)).unwrap_or(1))), None)
        }
        2 => (Fault::Edit(Edit::Prefer(if setup.is_candidate(here) { here } else { 0 })), None),
        _ => (Fault::Edit(Edit::Paused(true)), Some(Fault::Edit(Edit::Paused(false)))),
    }
}
