//! What a line does to the group.
//!
//! In: a verb and the words after it. Out: a deed, or what is wrong. Must not: let through what only a simulator can do.

use super::words::Words;
use super::{Act, Deed, Edit, End, Moment, Process, What};

/// Words that only the simulator can follow, and what to say about them.
const ONLY_SIMULATED: [&str; 22] = [
    "loss",
    "crash",
    "force-delete-pod",
    "lose-node",
    "return-node",
    "deny",
    "allow",
    "store-down",
    "store-up",
    "conflict",
    "fill-disk",
    "free-disk",
    "slow-sql",
    "block-fence",
    "stop-receiver",
    "break-applier",
    "purge",
    "slow-applier",
    "recordless",
    "clock",
    "twice",
    "skewed",
];

pub(super) fn fault(verb: &str, words: &mut Words<'_>) -> Result<What, String> {
    let act = match verb {
        "ambush" => {
            let moment = moment(words)?;
            return Ok(What::Ambush(moment, victim(words)?));
        }
        "kill" => Act::Kill(words.process()?),
        "hold" => Act::Hold(words.process()?),
        "release" => Act::Release(named(words.process()?)?),
        "pause" => Act::Pause(still(words.process()?)?),
        "resume" => Act::Resume(named(still(words.process()?)?)?),
        "stop" => Act::Stop(startable(words.end_point()?)?),
        "start" => Act::Start(startable(words.end_point()?)?),
        "kill-pod" => Act::KillPod(words.site()?),
        "delete-pod" => Act::DeletePod(words.site()?),
        "lose-volume" => Act::LoseVolume(words.site()?),
        "cut" | "cut-one-way" => {
            let (from, to) = words.two_ends()?;
            if let Some(channel) = words.optional() {
                return Err(format!("`{channel}`: a link is cut as a whole here"));
            }
            if verb == "cut" { Act::Cut(from, to) } else { Act::CutOneWay(from, to) }
        }
        "delay" => {
            let (from, to) = words.two_ends()?;
            Act::Delay(from, to, words.time()?)
        }
        "mend" => words.two_ends().map(|(from, to)| Act::Mend(from, to))?,
        "isolate" => Act::Isolate(words.end_point()?),
        "rejoin" => Act::Rejoin(words.end_point()?),
        "planned" => Act::Plan(words.site()?, None),
        "plan" => {
            words.exactly("failover")?;
            words.exactly("to")?;
            let site = words.site()?;
            let wait = if words.takes("waiting") { Some(words.time()?) } else { None };
            Act::Plan(site, wait)
        }
        "reclone" => Act::Reclone(words.site()?),
        "edit" => Act::Edit(edit(words)?),
        "forget-record" => Act::ForgetRecord,
        verb if PERSON.contains(&verb) => person(verb, words)?,
        only if ONLY_SIMULATED.contains(&only) => {
            return Err(format!("`{only}` happens in the simulator only (bloodraven simulate --scenario)"));
        }
        other => return Err(format!("`{other}` is not known; a line is a step, a fault, or `at <time> <fault>`")),
    };
    Ok(What::Act(act))
}

/// Verbs of people at a server.
const PERSON: [&str; 10] = [
    "human-open",
    "human-fence",
    "human-write",
    "lock-tables",
    "block-applier",
    "long-update",
    "fill-connections",
    "stop-applier",
    "start-applier",
    "delay-replica",
];

fn person(verb: &str, words: &mut Words<'_>) -> Result<Act, String> {
    let site = words.site()?;
    let deed = match verb {
        "human-open" => Deed::Open,
        "human-fence" => Deed::Fence,
        "human-write" => {
            let count = u32::try_from(words.within("a number of rows", 1, 1000)?).unwrap_or(1);
            if words.takes("tagged") { Deed::WriteTagged(count) } else { Deed::Write(count) }
        }
        "lock-tables" => Deed::LockTables(words.time()?),
        "block-applier" => Deed::BlockApplier(words.time()?),
        "long-update" => Deed::LongUpdate(words.time()?),
        "fill-connections" => Deed::FillConnections,
        "stop-applier" => Deed::StopApplier,
        "start-applier" => Deed::StartApplier,
        _ => {
            let time = words.time()?;
            if time.subsec_nanos() > 0 || time.is_zero() {
                return Err("a delay is a whole number of seconds, 1 at least".to_owned());
            }
            Deed::DelayApplier(time)
        }
    };
    Ok(Act::Person(site, deed))
}

fn edit(words: &mut Words<'_>) -> Result<Edit, String> {
    Ok(match words.next("paused, unpaused, cooldown or priorities")? {
        "paused" => Edit::Paused(true),
        "unpaused" => Edit::Paused(false),
        "cooldown" => Edit::Cooldown(words.time()?),
        "priorities" if words.takes("none") => Edit::Priorities(Vec::new()),
        "priorities" => Edit::Priorities(words.site_list()?),
        other => {
            return Err(format!("`{other}` is not edited here; write paused, unpaused, cooldown or priorities"));
        }
    })
}

/// What is started and stopped as a whole.
fn startable(end: End) -> Result<End, String> {
    match end {
        End::Clients => Err("clients are not started; write `load on`".to_owned()),
        end => Ok(end),
    }
}

/// What can stand still. A keeper that does while its server runs breaks an assumption of the protocol.
fn still(process: Process) -> Result<Process, String> {
    match process {
        Process::Keeper(_) => Err("a keeper is not paused: the protocol assumes that it runs".to_owned()),
        process => Ok(process),
    }
}

/// What comes back: who led when it went may not lead any more.
fn named(process: Process) -> Result<Process, String> {
    match process {
        Process::Leader => Err("the leader is whoever leads; write operator-0 or operator-1, or heal".to_owned()),
        process => Ok(process),
    }
}

fn moment(words: &mut Words<'_>) -> Result<Moment, String> {
    let planned = ["Pending", "Validating", "Draining", "WaitingForLag", "Promoting", "Resuming"];
    Ok(match words.next("revoked, granted, opened or a phase of a planned failover")? {
        "revoked" => Moment::Revoked,
        "granted" => Moment::Granted,
        "opened" => Moment::Opened,
        "permitted" | "fencing" => return Err("that moment shows in the simulator only".to_owned()),
        phase if planned.contains(&phase) => Moment::Planned(phase.to_owned()),
        other => {
            return Err(format!("`{other}` is no moment; write revoked, granted, opened or {}", planned.join(", ")));
        }
    })
}

/// `operator`, `kill operator`, or any other fault.
fn victim(words: &mut Words<'_>) -> Result<Act, String> {
    let verb = words.next("operator, or a fault")?;
    if verb == "operator" {
        return Ok(Act::Kill(Process::Leader));
    }
    match fault(verb, words)? {
        What::Act(act) => Ok(act),
        _ => Err("an ambush strikes once; write a fault".to_owned()),
    }
}
