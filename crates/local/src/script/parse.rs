//! A file into a [`Script`].
//!
//! In: text. Out: a script, or the first line that is wrong and why. Must not: ignore a word that it does not know.

use super::expect::expect;
use super::faults::fault;
use super::words::Words;
use super::{Act, Expect, Profile, SITES, Scene, Script, Setup, SiteWish, Step, What, Wrong};
use std::time::Duration;

/// As long as something may take when nothing is said: a lease with its margin, a drain, and then some.
pub(super) const WITHIN: Duration = Duration::from_secs(90);

/// First start of every server, and copies.
const READY: Duration = Duration::from_mins(5);

/// `semiSyncTimeout`, when a script does not name one: the API's own.
const SEMI_SYNC: Duration = Duration::from_secs(10);

/// Reads a script. `sites` are the group's unless the file says otherwise.
pub fn parse(text: &str, sites: &[SiteWish]) -> Result<Script, Wrong> {
    let mut reader = Reader {
        story: String::new(),
        setup: Setup::default(),
        steps: Vec::new(),
        scenes: Vec::new(),
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
    scenes: Vec<Scene>,
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
        match first {
            "scene" => self.scene(line, &mut words)?,
            "play" => self.shipped(line, &mut words)?,
            _ if self.header(first, &mut words)? => {}
            _ => {
                let (at, what) = self.step(first, &mut words)?;
                if at.is_some() && !self.scenes.is_empty() {
                    return Err("a scene has no clock; write `rest` before the fault".to_owned());
                }
                let step = Step { line, text: text.to_owned(), at, what };
                self.scenes.last_mut().map_or(&mut self.steps, |scene| &mut scene.steps).push(step);
            }
        }
        words.end()
    }

    /// `scene NAME [from SITE] story`.
    fn scene(&mut self, line: usize, words: &mut Words<'_>) -> Result<(), String> {
        let name = words.next("a name for the scene")?.to_owned();
        if self.scenes.iter().any(|scene| scene.name == name) {
            return Err(format!("there is a scene `{name}` already"));
        }
        if self.steps.iter().any(|step| step.at.is_some()) {
            return Err("scenes and `at <time>` do not go together; write `rest` before the fault".to_owned());
        }
        let from = if words.takes("from") { Some(words.site()?) } else { None };
        let story = words.rest();
        if story.is_empty() {
            return Err("say what the scene shows, in the same line".to_owned());
        }
        self.scenes.push(Scene { line, name, story, from, steps: Vec::new() });
        Ok(())
    }

    /// `play NAME`: a shipped scenario as a scene. What it says of the group is this file's business.
    fn shipped(&mut self, line: usize, words: &mut Words<'_>) -> Result<(), String> {
        let name = words.next("the name of a shipped scenario")?;
        let found = crate::scenarios::find(name)
            .ok_or_else(|| format!("`{name}` is not a shipped scenario; see bloodraven playground --list"))?;
        let wishes: Vec<_> = self.sites.iter().map(|name| SiteWish { name: name.clone(), dr_only: false }).collect();
        let script = parse(found.text, &wishes).map_err(|wrong| format!("{}: {wrong}", found.name))?;
        if script.setup.operators > self.setup.operators {
            return Err(format!("{} needs more operators; write `operators 2` first", found.name));
        }
        let Script { story, steps, .. } = script;
        self.scenes.push(Scene { line, name: found.name.to_owned(), story, from: self.sites.first().cloned(), steps });
        Ok(())
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
            "threshold" => setup.threshold = Some(words.within("a number of polls", 1, 100)?),
            "cooldown" => setup.cooldown = Some(words.time()?),
            "semi-sync" => setup.semi_sync = Some(words.optional_time()?.unwrap_or(SEMI_SYNC)),
            // Every run here has its own chance, its own latency, and begins with an empty group.
            "seed" | "latency" => _ = words.rest(),
            "fresh" => {}
            _ => return Ok(false),
        }
        if self.steps.is_empty() && self.scenes.is_empty() {
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
            "wait" => match words.next("ready, settled or attached")? {
                "ready" => What::WaitReady(within(words, READY)?),
                "settled" => What::WaitSettled(within(words, READY)?),
                "attached" => What::WaitAttached(within(words, READY)?),
                other => return Err(format!("`{other}` is not waited for; write ready, settled or attached")),
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
        if !self.scenes.is_empty() {
            return self.finish_scenes();
        }
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
        Ok(Script { story: self.story, setup: self.setup, steps: self.steps, scenes: Vec::new() })
    }

    /// Each scene is judged at its end, whatever it says itself.
    fn finish_scenes(mut self) -> Result<Script, Wrong> {
        for scene in &mut self.scenes {
            if scene.steps.is_empty() {
                return Err(Wrong {
                    line: scene.line,
                    because: format!("nothing happens in the scene `{}`", scene.name),
                });
            }
            let judged = |step: &Step| matches!(step.what, What::Expect(Expect::LedgerClean, _));
            if !scene.steps.last().is_some_and(judged) {
                scene.steps.push(implied("expect ledger clean", What::Expect(Expect::LedgerClean, WITHIN)));
            }
        }
        Ok(Script { story: self.story, setup: self.setup, steps: self.steps, scenes: self.scenes })
    }
}

/// A step that goes without saying.
fn implied(text: &str, what: What) -> Step {
    Step { line: 0, text: text.to_owned(), at: None, what }
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

pub(super) fn within(words: &mut Words<'_>, otherwise: Duration) -> Result<Duration, String> {
    if words.takes("within") { words.time() } else { Ok(otherwise) }
}
