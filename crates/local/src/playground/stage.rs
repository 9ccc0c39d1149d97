//! The scene as a script's stage.
//!
//! In: steps. Out: deeds, pictures, verdicts. Must not: let a script see an older picture than its own last deed.

use super::picture::By;
use super::scene::Scene;
use crate::ledger::Verdict;
use crate::load::now;
use crate::script::{Act, Moment, Seen, Stage, Step};
use std::time::Duration;

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
        let moves = self.load.book(|book| book.moves());
        let model = self.model();
        let mut picture = model.picture.clone();
        picture.authority.clone_from(&model.told.authority);
        picture.planned.clone_from(&model.told.planned);
        for site in &mut picture.sites {
            if let Some(told) = model.told.sites.iter().find(|told| told.name == site.name) {
                site.state.clone_from(&told.state);
                site.following = told.following;
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
