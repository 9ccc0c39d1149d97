//! What some seeds have besides: caches, receipts, tags, updates, a store that goes back, keepers that stand still.
//!
//! In: a scenario as drawn, and its seed. Out: the same with more in it. Must not: change a seed that has nothing of this,
//! or draw what breaks an assumption of the protocol. It has random numbers of its own for that.

use super::clock::{MS, SEC, Time};
use super::random::Random;
use super::scenario::{Edit, Fault, Process, Refusable, Scenario, Timed};

/// Adds to a scenario; `watched`: nothing in it strikes those who watch a server.
pub(super) fn add(scenario: &mut Scenario, watched: bool) {
    scenario.setup.large_promotions = Random::new(scenario.seed, 3).chance(12);
    let mut random = Random::new(scenario.seed, 2);
    let random = &mut random;
    let what = random.below(100);
    match what {
        0..10 => caches(random, scenario),
        10..16 => updates(random, scenario),
        16..21 => restored(random, scenario),
        21..26 => scenario.setup.semi_sync = true,
        26..30 => scenario.setup.tagged = true,
        30..33 => scenario.setup.recordless = !scenario.setup.fresh,
        33..39 => appliers(random, scenario),
        39..45 if watched => keepers(random, scenario),
        45..47 => {
            caches(random, scenario);
            updates(random, scenario);
        }
        _ => return,
    }
    scenario.faults.sort_by_key(|timed| timed.at);
}

fn moment(random: &mut Random, scenario: &Scenario) -> Time {
    9 * SEC + random.below(scenario.heal_at.saturating_sub(14 * SEC))
}

fn long(random: &mut Random) -> Time {
    if random.chance(50) { random.between(200, 4000) * MS } else { random.between(3, 40) * SEC }
}

fn put(scenario: &mut Scenario, at: Time, what: Fault) {
    scenario.faults.push(Timed { at, what });
}

fn caches(random: &mut Random, scenario: &mut Scenario) {
    scenario.setup.caches = true;
    scenario.setup.caches_matter = random.chance(40);
    for _ in 0..random.between(1, 4) {
        let (at, site) = (moment(random, scenario), random.index(scenario.setup.sites));
        let after = at + long(random);
        match random.below(6) {
            0 | 1 => put(scenario, at, Fault::Kill(Process::Cache(site))),
            2 => {
                put(scenario, at, Fault::Pause(Process::Cache(site)));
                put(scenario, after, Fault::Resume(Process::Cache(site)));
            }
            3 => {
                put(scenario, at, Fault::Deny(Refusable::Takeover));
                put(scenario, after, Fault::Allow(Refusable::Takeover));
            }
            4 => put(scenario, at, Fault::Planned(site)),
            _ => put(scenario, at, Fault::Edit(Edit::CacheImage)),
        }
    }
}

fn updates(random: &mut Random, scenario: &mut Scenario) {
    scenario.setup.recreate = random.chance(30);
    for _ in 0..random.between(1, 2) {
        let at = moment(random, scenario);
        put(scenario, at, Fault::Edit(Edit::Template));
    }
}

fn restored(random: &mut Random, scenario: &mut Scenario) {
    let (one, other) = (moment(random, scenario), moment(random, scenario));
    put(scenario, one.min(other), Fault::BackUpStore);
    put(scenario, one.max(other) + 1, Fault::RestoreStore);
}

fn appliers(random: &mut Random, scenario: &mut Scenario) {
    for _ in 0..random.between(1, 3) {
        let (at, site) = (moment(random, scenario), random.index(scenario.setup.sites));
        let after = at + long(random);
        if random.chance(50) {
            put(scenario, at, Fault::SlowApplier(site, random.between(500, 20_000) * MS));
            put(scenario, after, Fault::SlowApplier(site, 0));
        } else {
            put(scenario, at, Fault::DelayReplica(site, random.between(5, 1200) * SEC));
        }
        if random.chance(40) {
            put(scenario, at + random.below(5 * SEC), Fault::Planned(random.index(scenario.setup.sites)));
        }
    }
}

fn keepers(random: &mut Random, scenario: &mut Scenario) {
    for _ in 0..random.between(1, 3) {
        let at = moment(random, scenario);
        let keeper = Process::Keeper(if random.chance(60) { 0 } else { random.index(scenario.setup.sites) });
        put(scenario, at, Fault::Pause(keeper));
        put(scenario, at + long(random), Fault::Resume(keeper));
    }
}
