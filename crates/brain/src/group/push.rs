//! Views go to every sidecar on each change and at least every interval; whoever does not know the present epoch is told
//! again soon, and so is everybody while it is not known that the last holder is closed.

use super::command::Command;
use super::{Group, Kept, Step};
use crate::name::Site;
use crate::record::{Phase, Record};
use crate::time::{Boot, Millis, Now};

/// Who failed, or has not stored the present epoch, is told again after this long.
pub(super) const AGAIN: Millis = Millis(500);

/// A push that was not answered for so long is lost.
const LOST: Millis = Millis(3000);

impl Group {
    pub(super) fn push_views(&mut self, now: Now, kept: &Kept, out: &mut Step) {
        let lease = self.lease(kept.record.as_ref());
        for (site, seen) in &mut self.seen.sites {
            seen.pushing = seen.pushing.filter(|since| now.boot < *since + LOST);
            if seen.pushing.is_none() && now.boot >= seen.push_due {
                seen.pushing = Some(now.boot);
                let to = site.clone();
                // One that heard another view of this epoch refuses every push. It says so when it is asked.
                let mute = seen.push_failed && seen.present(lease, now.boot).is_none();
                if mute && kept.record.is_some() {
                    out.commands.push(Command::Probe { to: to.clone() });
                }
                out.commands.push(match &kept.record {
                    Some(record) => Command::Push { to, view: Box::new(record.view()) },
                    None => Command::Probe { to },
                });
            }
        }
    }

    /// Without waiting for the interval, and beside one that is on its way: it brings an older view.
    pub(super) fn push_soon(&mut self, now: Boot) {
        for seen in self.seen.sites.values_mut() {
            seen.pushing = None;
            seen.push_due = now;
        }
    }

    pub(super) fn push_failed(&mut self, now: Now, to: &Site) {
        if let Some(seen) = self.seen.sites.get_mut(to) {
            seen.pushing = None;
            seen.push_failed = true;
            seen.push_due = now.boot + AGAIN;
        }
    }

    /// Whether the holder of a revoked record may still write, as far as is known.
    pub(super) fn awaits_release(&self, record: &Record) -> bool {
        let holder = record.holder.as_ref().filter(|_| record.phase == Phase::Revoking && record.proof.is_none());
        holder.is_some_and(|holder| {
            let member = &holder.member;
            !self.seen.evidence.acknowledged_fenced(record, member) && !record.has_ended(member)
        })
    }

    /// At least every interval, and never slower than a third of the lease.
    pub(super) fn push_interval(&self) -> Millis {
        Millis(self.spec.peer_check.0.min(self.spec.lease.lease_timeout.0 / 3))
    }
}

#[cfg(test)]
mod tests {
    use super::AGAIN;
    use crate::group::forecast::Rehearsal;
    use crate::group::tests::running;
    use crate::group::{Command, Input};
    use crate::name::Site;
    use crate::record::Phase;
    use crate::time::Millis;
    use std::cell::Cell;

    /// Whether that site is probed beside the next push: was a push refused, and is nothing known of it.
    fn is_probed(refused: bool, unheard: bool) -> bool {
        let mut stage = running(&["iad", "pdx"]);
        let iad = Site::new("iad");
        if unheard {
            stage.group.seen.sites.get_mut(&iad).expect("declared").words.clear();
        }
        if refused {
            stage.group.step(stage.now, Input::PushFailed { to: iad.clone() });
        }
        stage.now.boot = stage.now.boot + Millis::from_secs(6);
        let commands = stage.group.step(stage.now, Input::Tick).commands;
        assert!(commands.iter().any(|command| matches!(command, Command::Push { to, .. } if *to == iad)));
        commands.iter().any(|command| matches!(command, Command::Probe { to } if *to == iad))
    }

    /// The longest pause between two pushes to a site that answers each of them, within six seconds.
    fn longest_pause(stage: &mut Rehearsal) -> Millis {
        let longest = Cell::new(Millis(0));
        stage.play(Millis::from_secs(6), |stage| {
            let pdx = stage.group.seen.site(&Site::new("pdx")).expect("declared");
            longest.set(longest.get().max(pdx.push_due.since(stage.now.boot)));
            false
        });
        longest.get()
    }

    #[test]
    fn everybody_is_asked_often_while_the_holders_fence_is_awaited() {
        let mut stage = running(&["iad", "pdx", "fra"]);
        assert!(longest_pause(&mut stage) > Millis::from_secs(4), "at rest: every interval");
        // Without the third site nobody knows how long the holder's lease runs.
        stage.kill(&Site::new("iad"));
        stage.kill(&Site::new("fra"));
        let revoked = |stage: &Rehearsal| stage.store.record.as_ref().is_some_and(|it| it.phase == Phase::Revoking);
        assert!(stage.play(Millis::from_secs(30), revoked), "{:?}", stage.group.obstacle);
        assert_eq!(longest_pause(&mut stage), AGAIN, "a peer may hand the fence on");
        assert!(revoked(&stage), "it was awaited all the time");
    }

    #[test]
    fn one_that_refuses_every_push_is_asked_what_it_knows() {
        for (refused, unheard, probed) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, false)]
        {
            assert_eq!(is_probed(refused, unheard), probed, "refused {refused}, unheard {unheard}");
        }
    }
}
