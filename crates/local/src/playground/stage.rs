//! The scene as a script's stage.
//!
//! In: steps. Out: deeds, pictures, verdicts. Must not: let a script see an older picture than its own last deed.

use super::picture::By;
use super::scene::Scene;
use crate::ledger::Verdict;
use crate::load::now;
use crate::script::{self, Act, Moment, Played, Seen, Stage, Step};
use std::time::Duration;

/// How the mark of a scene begins in the book.
const BEGINNING: &str = "scene ";

impl Stage for Scene {
    async fn act(&self, act: &Act) -> Result<(), String> {
        Self::act(self, act).await
    }

    fn load(&self, on: bool) {
        self.load.switch(on);
    }

    /// Who writes and how long nobody has is read from the sources themselves; the rest is the newest picture.
    fn seen(&self) -> Seen {
        super::watch::look(self);
        let (silence, gap) = self.silences(now());
        // Nothing was written since the load began: nobody knows yet whether the door is open.
        let silence = if self.load.book(|book| book.gaps.has_begun()) { silence } else { u64::MAX };
        let moves = self.load.book(|book| book.moves());
        let model = self.model();
        let mut picture = model.picture.clone();
        picture.authority.clone_from(&model.told.authority);
        picture.planned.clone_from(&model.told.planned);
        // One that was there before the last was asked for is not that one.
        if picture.planned.as_ref().is_some_and(|planned| Some(&planned.id) == model.planned_before.as_ref()) {
            picture.planned = None;
        }
        picture.degraded.clone_from(&model.told.degraded);
        let running = self.local.status().map(|status| status.sites).unwrap_or_default();
        for site in &mut picture.sites {
            if let Some(told) = model.told.sites.iter().find(|told| told.name == site.name) {
                site.state.clone_from(&told.state);
                let pod = running.iter().find(|one| one.name == site.name).and_then(|one| one.state.pod.as_deref());
                site.following = told.follows_as(pod);
                site.divergent = told.divergent;
            }
        }
        drop(model);
        picture.load.on = self.load.is_on();
        picture.load.silence_ms = silence / 1000;
        picture.load.gap_ms = gap / 1000;
        picture.moves = moves;
        picture.seen()
    }

    async fn audit(&self) -> Verdict {
        Self::audit(self).await
    }

    fn ambush(&self, moment: &Moment, act: &Act) {
        self.lay(moment, act);
    }

    fn in_wait(&self) -> usize {
        self.model().ambushes.len()
    }

    fn forget(&self) {
        self.model().ambushes.clear();
    }

    async fn divergence(&self) -> Result<(), String> {
        super::probe::read_servers(self).await;
        super::watch::look(self);
        let model = self.model();
        let primary = &model.told.authority.site;
        let Some(has) = model.executed.get(primary) else { return Err("no primary could be read".to_owned()) };
        for site in model.told.sites.iter().filter(|site| site.name != *primary) {
            let more = model.executed.get(&site.name).map(|set| set.subtract(has)).unwrap_or_default();
            let count = u64::try_from(more.count()).unwrap_or(u64::MAX);
            if more != site.divergent_set || count != site.divergent {
                let (name, said, set) = (&site.name, site.divergent, &site.divergent_set);
                return Err(format!("{name} is reported with {said} ({set}), and has {count} ({more})"));
            }
        }
        Ok(())
    }

    async fn closed(&self, site: &str) -> Result<(), String> {
        super::person::is_closed(self, site).await
    }

    fn begins(&self, scene: &script::Scene) {
        self.load.book(|book| book.gaps.mark(format!("{BEGINNING}{}", scene.name), now()));
        self.note(By::Script, "scene", format!("{}: {}", scene.name, scene.story));
    }

    fn ends(&self, played: &mut Played) {
        let gaps = self.load.book(|book| book.gaps.all(now()));
        let since = gaps.iter().rposition(|gap| gap.after.starts_with(BEGINNING)).unwrap_or(0);
        let longest = gaps.iter().skip(since).map(|gap| gap.longest_us).max().unwrap_or(0);
        if !played.took.is_zero() {
            played.gap = Duration::from_micros(longest);
        }
        self.note(By::Script, "verdict", super::SceneVerdict::of(played).to_string());
    }

    fn tell(&self, step: &Step, ended: Option<Duration>) {
        match ended {
            None => self.note(By::Script, "step", step.text.clone()),
            Some(took) => self.note(By::Script, "done", format!("{} ({} ms)", step.text, took.as_millis())),
        }
    }

    fn stopping(&self) -> bool {
        self.is_ending()
    }
}
