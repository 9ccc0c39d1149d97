//! A file into a [`Script`].
//!
//! In: text. Out: a script, or the first line that is wrong and why. Must not: ignore a word that it does not know.

use super::words::Words;
use super::{Act, End, Expect, Moment, Process, Profile, SITES, Script, Setup, SiteWish, Step, What, Wrong};
use std::time::Duration;

/// As long as something may take when nothing is said: a lease with its margin, a drain, and then some.
const WITHIN: Duration = Duration::from_secs(90);

/// First start of every server, and copies.
const READY: Duration = Duration::from_mins(5);

/// Words that only the simulator can follow, and what to say about them.
const ONLY_SIMULATED: [&str; 23] = [
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
    "stop-applier",
    "stop-receiver",
    "break-applier",
    "purge",
    "human-fence",
    "human-open",
    "clock",
    "twice",
    "skewed",
];

/// Reads a script. `sites` are the group's unless the file says otherwise.
pub fn parse(text: &str, sites: &[SiteWish]) -> Result<Script, Wrong> {
    let mut reader = Reader {
        story: String::new(),
        setup: Setup::default(),
        steps: Vec::new(),
        sites: sites.iter().map(|site| site.name.clone()).collect(),
        heal: None,
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            reader.read(number, line).map_err(|because| Wrong { line: number, because })?;
        }
    }
    reader.finish(text.lines().count())
}

struct Reader {
    story: String,
    setup: Setup,
    steps: Vec<Step>,
    sites: Vec<String>,
    heal: Option<Duration>,
}

impl Reader {
    fn read(&mut self, line: usize, text: &str) -> Result<(), String> {
        let sites = self.sites.clone();
        let mut words = Words::new(text, &sites, self.setup.operators.unwrap_or(1));
        let first = words.next("a word")?;
        if first == "story" {
            self.story = words.rest();
            return Ok(());
        }
        if !self.header(first, &mut words)? {
            let (at, what) = self.step(first, &mut words)?;
            self.steps.push(Step { line, text: text.to_owned(), at, what });
        }
        words.end()
    }

    /// Lines that say what the group is like.
    fn header(&mut self, first: &str, words: &mut Words<'_>) -> Result<bool, String> {
        let setup = &mut self.setup;
        match first {
            "sites" => {
                let wishes = sites(words.next("a number of sites, or their names")?)?;
                self.sites = wishes.iter().map(|wish| wish.name.clone()).collect();
                setup.sites = Some(wishes);
            }
            "dr-only" => {
                let count = words.within("a number of sites", 0, 3)?;
                let wishes = setup.sites.get_or_insert_with(|| named(self.sites.len().min(SITES.len())));
                make_dr_only(wishes, count)?;
            }
            "operators" => setup.operators = Some(words.within("a number of operators", 1, 2)?),
            "profile" => setup.profile = Some(Profile::named(words.next("default or fast")?)?),
            "lease" => setup.lease = Some(words.time()?),
            "poll" => setup.poll = Some(words.time()?),
            "cooldown" => setup.cooldown = Some(words.time()?),
            // Every run here has its own chance, its own latency, and begins with an empty group.
            "seed" | "latency" => _ = words.rest(),
            "fresh" => {}
            _ => return Ok(false),
        }
        if self.steps.is_empty() {
            return Ok(true);
        }
        Err(format!("`{first}` says what the group is like; write it before the first step"))
    }

    fn step(&mut self, first: &str, words: &mut Words<'_>) -> Result<(Option<Duration>, What), String> {
        let what = match first {
            "at" => {
                let at = words.time()?;
                let verb = words.next("a fault")?;
                return Ok((Some(at), fault(verb, words)?));
            }
            "heal" if words.takes("at") => {
                let at = words.time()?;
                self.heal = Some(at);
                return Ok((Some(at), What::Act(Act::Heal)));
            }
            "heal" => What::Act(Act::Heal),
            "wait" => match words.next("ready or settled")? {
                "ready" => What::WaitReady(within(words, READY)?),
                "settled" => What::WaitSettled(within(words, READY)?),
                other => return Err(format!("`{other}` is not waited for; write ready or settled")),
            },
            "rest" => What::Rest(words.time()?),
            "load" => match words.next("on or off")? {
                "on" => What::Load(true),
                "off" => What::Load(false),
                other => return Err(format!("the load is `on` or `off`, not `{other}`")),
            },
            "expect" => return Ok((None, expect(words)?)),
            verb => fault(verb, words)?,
        };
        Ok((None, what))
    }

    fn finish(mut self, lines: usize) -> Result<Script, Wrong> {
        let last = self.steps.iter().filter(|step| step.what != What::Act(Act::Heal)).filter_map(|step| step.at).max();
        if let (Some(heal), Some(last)) = (self.heal, last)
            && last >= heal
        {
            let because = "the last fault is not before everything heals; write a later `heal at`".to_owned();
            return Err(Wrong { line: lines, because });
        }
        let implied = |text: &str, what| Step { line: 0, text: text.to_owned(), at: None, what };
        let timed = self.steps.iter().any(|step| step.at.is_some());
        if timed {
            let (mut first, then): (Vec<_>, Vec<_>) = self.steps.into_iter().partition(|step| step.at.is_some());
            first.sort_by_key(|step| step.at);
            first.push(implied("wait settled", What::WaitSettled(READY)));
            first.extend(then);
            self.steps = first;
        }
        if !self.steps.iter().any(|step| matches!(step.what, What::Load(_))) {
            let begin = [implied("wait ready", What::WaitReady(READY)), implied("load on", What::Load(true))];
            self.steps.splice(0..0, begin);
        }
        let judged = |step: &Step| matches!(step.what, What::Expect(Expect::LedgerClean, _));
        if !self.steps.iter().any(judged) {
            self.steps.push(implied("expect ledger clean", What::Expect(Expect::LedgerClean, WITHIN)));
        }
        Ok(Script { story: self.story, setup: self.setup, steps: self.steps })
    }
}

/// `3`, or `iad,pdx,fra:dr-only`.
pub fn sites(word: &str) -> Result<Vec<SiteWish>, String> {
    let wishes = match word.parse::<usize>() {
        Ok(count) if (2..=SITES.len()).contains(&count) => named(count),
        Ok(count) => return Err(format!("{count} is not a number of sites from 2 to {}", SITES.len())),
        Err(_) => word.split(',').map(site).collect::<Result<_, _>>()?,
    };
    let mut names: Vec<&str> = wishes.iter().map(|wish| wish.name.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.windows(2).find(|pair| matches!(pair, [one, two] if one == two)) {
        return Err(format!("`{twice}` is named twice"));
    }
    if !(2..=SITES.len()).contains(&wishes.len()) {
        return Err(format!("a group has 2 to {} sites, not {}", SITES.len(), wishes.len()));
    }
    if wishes.iter().filter(|wish| !wish.dr_only).count() < 2 {
        return Err("two sites at least must be candidates; take `:dr-only` off one".to_owned());
    }
    Ok(wishes)
}

fn site(word: &str) -> Result<SiteWish, String> {
    let (name, role) = word.split_once(':').map_or((word, None), |(name, role)| (name, Some(role)));
    let dr_only = match role {
        None | Some("primary-candidate") => false,
        Some("dr-only") => true,
        Some(other) => return Err(format!("`{other}` is not a role; write dr-only or primary-candidate")),
    };
    let letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let starts = name.chars().next().is_some_and(|letter| letter.is_ascii_lowercase());
    let reserved = ["operator", "clients", "store", "primary", "replicas"].contains(&name);
    if !starts || name.len() > 12 || !name.chars().all(letter) || reserved {
        return Err(format!("`{name}` is not a name for a site; write up to 12 small letters and digits"));
    }
    Ok(SiteWish { name: name.to_owned(), dr_only })
}

/// The first so many of the usual names.
fn named(count: usize) -> Vec<SiteWish> {
    SITES.iter().take(count).map(|name| SiteWish { name: (*name).to_owned(), dr_only: false }).collect()
}

/// The last so many sites are never promoted.
fn make_dr_only(wishes: &mut [SiteWish], count: usize) -> Result<(), String> {
    if count >= wishes.len() {
        return Err("every site is dr-only; one at least must be a candidate".to_owned());
    }
    wishes.iter_mut().rev().take(count).for_each(|wish| wish.dr_only = true);
    Ok(())
}

fn within(words: &mut Words<'_>, otherwise: Duration) -> Result<Duration, String> {
    if words.takes("within") { words.time() } else { Ok(otherwise) }
}

fn expect(words: &mut Words<'_>) -> Result<What, String> {
    let expect = match words.next("primary, no-primary, failovers, site, planned, ledger or gap")? {
        "primary" if words.takes("not") => Expect::PrimaryNot(words.site()?),
        "primary" => Expect::Primary(words.site()?),
        "no-primary" => Expect::NoPrimary,
        "failovers" => Expect::Failovers(words.within("a number", 0, 99)?),
        "site" => {
            let site = words.site()?;
            match words.next("following, unreachable or divergent")? {
                "following" => Expect::Following(site),
                "unreachable" => Expect::Unreachable(site),
                "divergent" => Expect::Divergent(site),
                other => return Err(format!("a site is following, unreachable or divergent, not `{other}`")),
            }
        }
        "planned" => {
            let ending = match words.next("succeeded or failed")? {
                "succeeded" => "Succeeded",
                "failed" => "Failed",
                other => return Err(format!("a planned failover has succeeded or failed, not `{other}`")),
            };
            let reason = if words.takes("because") { Some(words.next("a reason")?.to_owned()) } else { None };
            Expect::Planned(ending.to_owned(), reason)
        }
        "ledger" => words.exactly("clean").map(|()| Expect::LedgerClean)?,
        "gap" => {
            words.exactly("under")?;
            Expect::GapUnder(words.time()?)
        }
        other => {
            return Err(format!(
                "`{other}` cannot be expected; write primary <site>, no-primary, failovers <n>, site <site> following, planned succeeded, ledger clean or gap under <time>"
            ));
        }
    };
    if words.takes("for") {
        return Ok(What::ExpectFor(expect, words.time()?));
    }
    Ok(What::Expect(expect, within(words, WITHIN)?))
}

fn fault(verb: &str, words: &mut Words<'_>) -> Result<What, String> {
    let act = match verb {
        "ambush" => {
            let moment = moment(words)?;
            return Ok(What::Ambush(moment, victim(words)?));
        }
        "kill" => Act::Kill(words.process()?),
        "hold" => Act::Hold(words.process()?),
        "release" => Act::Release(words.process()?),
        "pause" => Act::Pause(still(words.process()?)?),
        "resume" => Act::Resume(still(words.process()?)?),
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
        "planned" => Act::Plan(words.site()?),
        "plan" => {
            words.exactly("failover")?;
            words.exactly("to")?;
            Act::Plan(words.site()?)
        }
        "reclone" => Act::Reclone(words.site()?),
        "edit" => match words.next("paused or unpaused")? {
            "paused" => Act::PauseGroup(true),
            "unpaused" => Act::PauseGroup(false),
            other => return Err(format!("`{other}` is not edited here; write paused or unpaused")),
        },
        only if ONLY_SIMULATED.contains(&only) => {
            return Err(format!("`{only}` happens in the simulator only (bloodraven simulate --scenario)"));
        }
        other => return Err(format!("`{other}` is not known; a line is a step, a fault, or `at <time> <fault>`")),
    };
    Ok(What::Act(act))
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
        return Ok(Act::Kill(Process::Operator(0)));
    }
    match fault(verb, words)? {
        What::Act(act) => Ok(act),
        _ => Err("an ambush strikes once; write a fault".to_owned()),
    }
}
