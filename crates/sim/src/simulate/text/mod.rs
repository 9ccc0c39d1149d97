//! Scenarios as text: one thing a line, in words, with `#` for remarks.
//!
//! In: a file. Out: a [`Scenario`], or the line that is wrong and why; and back again. Must not: let through what cannot
//! happen: an unknown site, a time that is none, a fault that has no meaning.
//!
//! ```text
//! story the primary dies and its site comes back
//! sites 3
//! lease 10s
//! at 12.5s cut operator iad
//! at 20s kill mysqld iad
//! heal at 60s
//! expect primary pdx
//! ```

mod print;
mod words;

#[cfg(test)]
mod tests;

pub use print::{print, scenario as print_scenario};

use super::clock::{SEC, Time};
use super::net::{Channel, End};
use super::scenario::{Edit, Expect, Fault, Moment, Process, Refusable, SITES, Scenario, Setup, Timed, Victim};
use bloodraven_brain::group::kept::PlannedPhase;
use std::error::Error;
use std::fmt;
use words::Words;

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

impl Error for Wrong {}

/// Reads a scenario.
pub fn parse(text: &str) -> Result<Scenario, Wrong> {
    let mut scenario = Scenario {
        seed: 1,
        story: String::new(),
        setup: Setup::default(),
        faults: Vec::new(),
        heal_at: 60 * SEC,
        expects: Vec::new(),
    };
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            read_line(&mut scenario, line).map_err(|because| Wrong { line: number + 1, because })?;
        }
    }
    scenario.faults.sort_by_key(|timed| timed.at);
    if let Some(because) = never_promoted(&scenario) {
        return Err(Wrong { line: text.lines().count(), because });
    }
    match scenario.faults.last() {
        Some(last) if last.at >= scenario.heal_at => {
            let because = "the last fault is not before everything heals; write a later `heal at`".to_owned();
            Err(Wrong { line: text.lines().count(), because })
        }
        _ => Ok(scenario),
    }
}

fn read_line(scenario: &mut Scenario, line: &str) -> Result<(), String> {
    let mut words = Words::new(line, scenario.setup.sites, scenario.setup.operators);
    let setup = &mut scenario.setup;
    match words.next("a word")? {
        "story" => {
            scenario.story = words.rest();
            return Ok(());
        }
        "seed" => scenario.seed = words.number("a seed")?,
        "sites" => setup.sites = usize::try_from(words.within("a number of sites", 2, 5)?).unwrap_or(3),
        "dr-only" => setup.dr_only = usize::try_from(words.within("a number of sites", 0, 3)?).unwrap_or(0),
        "operators" => setup.operators = usize::try_from(words.within("a number of operators", 1, 2)?).unwrap_or(1),
        "lease" => setup.lease = words.time()?,
        "min-peers" => setup.min_peers = u32::try_from(words.within("a number of peers", 1, 5)?).unwrap_or(1),
        "poll" => setup.poll = words.time()?,
        "cooldown" => setup.cooldown = words.time()?,
        "latency" => setup.latency = words.time()?,
        "twice" => setup.twice = words.within("a percentage", 0, 100)?,
        "prefer" => setup.priorities.push(words.site()?),
        "fresh" => setup.fresh = true,
        "best-effort" => setup.best_effort = true,
        "skewed" => setup.skewed = true,
        "lost-for-ever" => setup.lost_for_ever = true,
        "caches" => setup.caches = true,
        "caches-matter" => setup.caches_matter = true,
        "semi-sync" => setup.semi_sync = true,
        "tagged" => setup.tagged = true,
        "recordless" => setup.recordless = true,
        "recreate" => setup.recreate = true,
        "large-promotions" => setup.large_promotions = true,
        "heal" => {
            words.exactly("at")?;
            scenario.heal_at = words.time()?;
        }
        "at" => {
            let at: Time = words.time()?;
            let what = fault(&mut words)?;
            scenario.faults.push(Timed { at, what });
        }
        "expect" => scenario.expects.push(expect(&mut words)?),
        other => return Err(format!("`{other}` is not known; a fault begins with `at <time>`")),
    }
    words.end()?;
    if scenario.setup.dr_only >= scenario.setup.sites {
        return Err("every site is dr-only; one at least must be a candidate".to_owned());
    }
    Ok(())
}

/// A priority list names sites that may be promoted; admission refuses any other.
fn never_promoted(scenario: &Scenario) -> Option<String> {
    let edited = scenario.faults.iter().filter_map(|timed| match timed.what {
        Fault::Edit(Edit::Prefer(site)) => Some(site),
        _ => None,
    });
    let mut named = scenario.setup.priorities.iter().copied().chain(edited);
    let wrong = named.find(|site| !scenario.setup.is_candidate(*site))?;
    Some(format!("{} is dr-only and cannot be preferred; prefer a candidate", SITES[wrong]))
}

fn expect(words: &mut Words<'_>) -> Result<Expect, String> {
    match words
        .next("primary, no-primary, failovers, planned-succeeded, planned-failed, divergent, cache or updated")?
    {
        "primary" => Ok(Expect::Primary(words.site()?)),
        "no-primary" => Ok(Expect::NoPrimary),
        "failovers" => Ok(Expect::Failovers(u32::try_from(words.within("a number", 0, 99)?).unwrap_or(0))),
        "planned-succeeded" => Ok(Expect::Planned(true)),
        "planned-failed" => Ok(Expect::Planned(false)),
        "divergent" => Ok(Expect::Divergent(words.site()?)),
        "cache" => Ok(Expect::Cache(words.site()?)),
        "updated" => Ok(Expect::Updated),
        other => Err(format!(
            "`{other}` cannot be expected; write primary <site>, no-primary, failovers <n>, planned-succeeded, \
             planned-failed, divergent <site>, cache <site> or updated"
        )),
    }
}

fn fault(words: &mut Words<'_>) -> Result<Fault, String> {
    let name = words.next("a fault")?;
    let fault = match name {
        "cut" | "cut-one-way" => {
            let (from, to) = words.two_ends()?;
            let channel = channel(words)?;
            if name == "cut" { Fault::CutBoth(from, to, channel) } else { Fault::Cut(from, to, channel) }
        }
        "mend" => {
            let (from, to) = words.two_ends()?;
            Fault::Mend(from, to)
        }
        "isolate" => Fault::Isolate(words.end_point()?),
        "rejoin" => Fault::Rejoin(words.end_point()?),
        "loss" => {
            let (from, to) = words.two_ends()?;
            Fault::Loss(from, to, words.within("a percentage", 0, 100)?)
        }
        "delay" => {
            let (from, to) = words.two_ends()?;
            Fault::Delay(from, to, words.time()?)
        }
        "kill" => Fault::Kill(process(words)?),
        "pause" => Fault::Pause(process(words)?),
        "resume" => Fault::Resume(process(words)?),
        "hold" => Fault::Hold(holdable(words)?),
        "release" => Fault::Release(holdable(words)?),
        "stop" => match process(words)? {
            Process::Mysqld(site) => Fault::Stop(site),
            _ => return Err("only mysqld ends in order; write `stop mysqld <site>`, or kill or hold".to_owned()),
        },
        "crash" => {
            let End::Operator(op) = words.end_point()? else { return Err("only operators crash so".to_owned()) };
            words.exactly("after")?;
            Fault::CrashAfter(op, u32::try_from(words.within("a number of commands", 0, 1000)?).unwrap_or(0))
        }
        "delete-pod" => Fault::DeletePod(words.site()?),
        "force-delete-pod" => Fault::ForceDeletePod(words.site()?),
        "lose-volume" => Fault::LoseVolume(words.site()?),
        "lose-node" => Fault::LoseNode(words.site()?),
        "return-node" => Fault::ReturnNode(words.site()?),
        "deny" => Fault::Deny(refusable(words)?),
        "allow" => Fault::Allow(refusable(words)?),
        "store-down" => Fault::StoreDown,
        "store-up" => Fault::StoreUp,
        "back-up-store" => Fault::BackUpStore,
        "restore-store" => Fault::RestoreStore,
        "conflict" => Fault::Conflict,
        "fill-disk" => Fault::FillDisk(words.site()?),
        "free-disk" => Fault::FreeDisk(words.site()?),
        "slow-sql" => Fault::SlowSql(words.site()?, words.time()?),
        "block-fence" => Fault::BlockFence(words.site()?, words.time()?),
        "stop-applier" => Fault::StopApplier(words.site()?),
        "break-applier" => Fault::BreakApplier(words.site()?),
        "slow-applier" => Fault::SlowApplier(words.site()?, words.time()?),
        "delay-replica" => Fault::DelayReplica(words.site()?, words.time()?),
        "stop-receiver" => Fault::StopReceiver(words.site()?),
        "purge" => Fault::Purge(words.site()?),
        "human-fence" => Fault::HumanFence(words.site()?),
        "human-open" => Fault::HumanOpen(words.site()?),
        "edit" => Fault::Edit(edit(words)?),
        "planned" => Fault::Planned(words.site()?),
        "reclone" => Fault::Reclone(words.site()?),
        "ambush" => Fault::Ambush(moment(words)?, victim(words)?),
        "must-be-closed" => Fault::MustBeClosed(words.site()?),
        "clock" => Fault::ClockJump(words.end_point()?, words.signed()?),
        other => return Err(format!("`{other}` is not a fault")),
    };
    Ok(fault)
}

fn channel(words: &mut Words<'_>) -> Result<Option<Channel>, String> {
    match words.optional() {
        None => Ok(None),
        Some("http") => Ok(Some(Channel::Http)),
        Some("sql") => Ok(Some(Channel::Sql)),
        Some(other) => Err(format!("`{other}` is not a channel; write http, sql or nothing")),
    }
}

fn process(words: &mut Words<'_>) -> Result<Process, String> {
    Ok(match words.next("mysqld, keeper, sidecar, cache or an operator")? {
        "mysqld" => Process::Mysqld(words.site()?),
        "keeper" => Process::Keeper(words.site()?),
        "sidecar" => Process::Sidecar(words.site()?),
        "cache" => Process::Cache(words.site()?),
        other => match words.named(other)? {
            End::Operator(op) => Process::Operator(op),
            _ => return Err(format!("`{other}` is not a process; write mysqld, keeper or sidecar before a site")),
        },
    })
}

/// A process that can stay away.
fn holdable(words: &mut Words<'_>) -> Result<Process, String> {
    match process(words)? {
        Process::Cache(_) => Err("a cache is not held; write kill or pause".to_owned()),
        process => Ok(process),
    }
}

/// The phases in which somebody can lie in wait.
const PHASES: [(PlannedPhase, &str); 8] = [
    (PlannedPhase::Pending, "Pending"),
    (PlannedPhase::Validating, "Validating"),
    (PlannedPhase::Draining, "Draining"),
    (PlannedPhase::WaitingForLag, "WaitingForLag"),
    (PlannedPhase::WaitingForCache, "WaitingForCache"),
    (PlannedPhase::PromotingCache, "PromotingCache"),
    (PlannedPhase::Promoting, "Promoting"),
    (PlannedPhase::Resuming, "Resuming"),
];

/// The phase of that name.
fn phase(name: &str) -> Result<PlannedPhase, String> {
    PHASES.iter().find(|(_, known)| *known == name).map(|(phase, _)| *phase).ok_or_else(|| {
        let names: Vec<&str> = PHASES.iter().map(|(_, name)| *name).collect();
        let names = names.join(", ");
        format!("`{name}` is no moment; write revoked, granted, permitted, opened, fencing or {names}")
    })
}

/// The name of a phase in which somebody can lie in wait.
fn phase_name(phase: PlannedPhase) -> Option<&'static str> {
    PHASES.iter().find(|(known, _)| *known == phase).map(|(_, name)| *name)
}

fn refusable(words: &mut Words<'_>) -> Result<Refusable, String> {
    Ok(match words.next("status, annotation, lease, labels, dns or takeover")? {
        "status" => Refusable::Status,
        "annotation" => Refusable::Annotation,
        "lease" => Refusable::Lease,
        "labels" => Refusable::Labels,
        "dns" => Refusable::Dns,
        "takeover" => Refusable::Takeover,
        other => {
            return Err(format!("`{other}` is not refused; write status, annotation, lease, labels, dns or takeover"));
        }
    })
}

fn moment(words: &mut Words<'_>) -> Result<Moment, String> {
    Ok(match words.next("revoked, granted, permitted, opened, fencing or a phase such as Draining")? {
        "revoked" => Moment::Revoked,
        "granted" => Moment::Granted,
        "permitted" => Moment::Permitted,
        "opened" => Moment::Opened,
        "fencing" => Moment::Fencing,
        other => Moment::Planned(phase(other)?),
    })
}

fn victim(words: &mut Words<'_>) -> Result<Victim, String> {
    Ok(match words.next("mysqld, keeper, sidecar, mysqld-stops, sidecar-stops or operator")? {
        "mysqld" => Victim::Mysqld,
        "keeper" => Victim::Keeper,
        "sidecar" => Victim::Sidecar,
        "mysqld-stops" => Victim::MysqldStops,
        "sidecar-stops" => Victim::SidecarStops,
        "operator" => Victim::Operator,
        other => return Err(format!("`{other}` cannot be struck so; write mysqld, keeper, sidecar or operator")),
    })
}

fn edit(words: &mut Words<'_>) -> Result<Edit, String> {
    Ok(match words.next("lease, min-peers, prefer, paused, unpaused, template or cache-image")? {
        "lease" => Edit::Lease(words.time()?),
        "min-peers" => Edit::MinPeers(u32::try_from(words.within("a number of peers", 1, 5)?).unwrap_or(1)),
        "prefer" => Edit::Prefer(words.site()?),
        "paused" => Edit::Paused(true),
        "unpaused" => Edit::Paused(false),
        "template" => Edit::Template,
        "cache-image" => Edit::CacheImage,
        other => {
            return Err(format!(
                "`{other}` is not edited; write lease, min-peers, prefer, paused, unpaused, template or cache-image"
            ));
        }
    })
}
