//! Attempts that failed: how long until the next one, and what makes them count anew.

use super::{ATTEMPTS, fail, go_to, title};
use crate::group::kept::{CloneKept, ClonePhase, CloneSource};
use crate::group::save::Plan;
use crate::group::{Group, Step};
use crate::name::Site;
use crate::time::{Boot, Millis, Now};

/// After the first failed attempt, the second, and any later one.
const PAUSES: [Millis; 3] = [Millis::from_secs(60), Millis::from_secs(300), Millis::from_secs(900)];

impl Group {
    /// The attempt is over. A request that asked for it is removed first, so that no later leader takes it for a new one.
    pub(super) fn attempt_failed(
        &mut self,
        now: Now,
        site: &Site,
        clone: &CloneKept,
        why: &str,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        if self.request_is_gone(now, site, clone, out) {
            let last = clone.attempts >= ATTEMPTS || self.cloning.refused.contains(site);
            fail(plan, site, clone, why, (!last).then(|| pause_after(clone.attempts)));
        }
    }

    /// Nothing can be done for the clone now; people see why, and its time does not run.
    pub(super) fn wait_with_clone(&mut self, now: Now, site: &Site, clone: &CloneKept, why: &str, plan: &mut Plan<'_>) {
        if let Some((_, _, since)) = &mut self.cloning.phase {
            *since = now.boot;
        }
        let message = format!("{}: waits: {why}", title(clone.source));
        if plan.next().site(site).clone.as_ref().is_some_and(|known| known.message != message) {
            plan.change().site_mut(site).clone = Some(CloneKept { message, ..clone.clone() });
        }
    }

    /// Nothing stands in the way any more; people see that, too.
    pub(super) fn waits_no_more(site: &Site, clone: &CloneKept, plan: &mut Plan<'_>) {
        if clone.message.starts_with(&format!("{}: waits: ", title(clone.source))) {
            let message = format!("{}: attempt {} of {ATTEMPTS}", title(clone.source), clone.attempts);
            plan.change().site_mut(site).clone = Some(CloneKept { message, ..clone.clone() });
        }
    }

    /// How long this leader has seen the clone in its phase.
    pub(super) fn phase_age(&mut self, now: Now, site: &Site, clone: &CloneKept) -> Millis {
        let key = ((site.clone(), clone.attempts), clone.phase);
        match &self.cloning.phase {
            Some((attempt, phase, since)) if (attempt, phase) == (&key.0, &key.1) => now.boot.since(*since),
            _ => {
                self.cloning.phase = Some((key.0, key.1, now.boot));
                Millis(0)
            }
        }
    }

    pub(super) fn phase_began(&self) -> Option<Boot> {
        self.cloning.phase.as_ref().map(|(_, _, since)| *since)
    }

    /// Whether the next attempt at the site is due; without a failed one there is nothing to wait for.
    pub(super) fn is_due(&self, now: Now, site: &Site, clone: Option<&CloneKept>) -> bool {
        let Some(clone) = clone.filter(|clone| clone.phase == ClonePhase::Failed) else { return true };
        let since = self.cloning.failed.get(site).filter(|(attempts, _)| *attempts == clone.attempts);
        let over = since.is_some_and(|(_, since)| now.boot >= *since + pause_after(clone.attempts));
        over && clone.attempts < ATTEMPTS && !self.cloning.refused.contains(site)
    }

    /// Credentials were read anew: what failed is tried again.
    pub(in crate::group) fn forgive_failed_clones(&mut self) {
        self.cloning.forgive = true;
    }

    /// Failed attempts are timed, forgotten when something has changed, and over when the site follows all the same.
    pub(super) fn tend_failed_clones(&mut self, now: Now, plan: &mut Plan<'_>) {
        let kept = plan.kept;
        let failed: Vec<(&Site, &CloneKept)> = kept
            .sites
            .iter()
            .filter_map(|(site, kept)| Some((site, kept.clone.as_ref()?)))
            .filter(|(_, clone)| clone.phase == ClonePhase::Failed)
            .collect();
        self.cloning.failed.retain(|site, _| failed.iter().any(|(failed, _)| *failed == site));
        self.cloning.refused.retain(|site| failed.iter().any(|(failed, _)| *failed == site));
        if failed.is_empty() {
            (self.cloning.forgive, self.cloning.failed_under) = (false, None);
            return;
        }
        let before = self.cloning.failed_under.get_or_insert_with(|| Box::new(self.spec.clone()));
        if **before != self.spec {
            self.cloning.forgive = true;
            self.cloning.failed_under = Some(Box::new(self.spec.clone()));
        }
        // Until it is stored that nothing has failed.
        self.cloning.forgive &= failed.iter().any(|(_, clone)| clone.source != CloneSource::Reclone);
        let forgive = self.cloning.forgive;
        for (site, clone) in failed {
            let known = self.cloning.failed.entry(site.clone()).or_insert((clone.attempts, now.boot));
            if known.0 != clone.attempts {
                *known = (clone.attempts, now.boot);
            }
            if clone.source == CloneSource::Reclone {
                continue;
            }
            if forgive {
                self.cloning.refused.remove(site);
                plan.change().site_mut(site).clone = None;
            } else if self.is_replicating(kept, site) {
                go_to(plan, site, clone, ClonePhase::Done, "it follows the primary");
            }
        }
    }
}

fn pause_after(attempts: u32) -> Millis {
    let last = PAUSES.len() - 1;
    let index = usize::try_from(attempts.saturating_sub(1)).unwrap_or(last).min(last);
    PAUSES.get(index).copied().unwrap_or(Millis::from_secs(900))
}
