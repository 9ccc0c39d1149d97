//! What the record needs whatever goes on: ends that were seen, the voters it should have, the settings it should have,
//! sets that nobody can hold any more.

use super::command::Command;
use super::input::PodFacts;
use super::save::Plan;
use super::{Group, Notice, Step};
use crate::authority::{self, voters};
use crate::name::Member;
use crate::record::{Phase, Record};
use crate::time::Now;

impl Group {
    /// Ends are written down before anyone acts on them; a pod's object is let go when its end is written down, or when
    /// the record names nothing of it.
    pub(super) fn note_ends(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let Some(record) = &kept.record else { return };
        let pods: Vec<PodFacts> = self
            .seen
            .estate
            .iter()
            .flat_map(|estate| &estate.pods)
            .filter(|pod| pod.deleting || pod.has_ended())
            .cloned()
            .collect();
        if pods.is_empty() && self.seen.superseded.is_empty() {
            return;
        }
        let mut next = record.clone();
        for pod in &pods {
            let open = record.members().filter(|member| pod.is_pod_of(member) && !record.has_ended(member));
            let open: Vec<&Member> = open.collect();
            if pod.has_ended() {
                for member in &open {
                    self.seen.evidence.take_end(member, now.boot);
                    next = authority::note_end(&next, member, now.wall);
                }
            }
            self.forget_unlisted(record, pod);
            // While nobody is known as the holder, a pod that nobody has asked may be the one.
            let asked_for = record.holder.is_none() || self.seen.evidence.highest > record.epoch;
            let dispensable = open.is_empty() && (!asked_for || pod.has_ended());
            if pod.finalizer && pod.deleting && dispensable {
                out.commands.push(Command::ReleasePod { uid: pod.uid.clone() });
            }
        }
        for member in self.seen.superseded.clone() {
            self.seen.evidence.take_end(&member, now.boot);
            next = authority::note_end(&next, &member, now.wall);
        }
        if next != *record {
            plan.set_record(next);
        }
    }

    /// Whether that instance's pod exists and is not on its way out.
    pub(super) fn has_live_pod(&self, member: &Member) -> bool {
        let lives = |pod: &PodFacts| pod.is_pod_of(member) && !pod.deleting && !pod.has_ended();
        self.seen.estate.as_ref().is_some_and(|estate| estate.pods.iter().any(lives))
    }

    /// Who has ended, or is about to, and is named nowhere, is not heard any more. Taken in, its end could not be seen: its
    /// pod's object is let go.
    fn forget_unlisted(&mut self, record: &Record, pod: &PodFacts) {
        let stays = |member: &Member| record.lists(member) || !pod.is_pod_of(member);
        self.seen.evidence.heard.retain(|member, _| stays(member));
        if let Some(seen) = self.seen.sites.get_mut(&pod.site) {
            seen.words.retain(|instance, _| stays(&Member::new(&pod.site, instance)));
        }
    }

    pub(super) fn keep_house(&mut self, now: Now, plan: &mut Plan<'_>, _: &mut Step) {
        let kept = plan.kept;
        let Some(record) = &kept.record else { return };
        if self.seen.evidence.highest > record.epoch {
            return;
        }
        let outlived = voters::outlived_sets(record, &self.seen.evidence, now.boot);
        if !outlived.is_empty() {
            return plan.set_record(authority::drop_sets(record, &outlived));
        }
        if self.fence_note_is_over(record, now) {
            return plan.set_record(authority::drop_fence_note(record));
        }
        if record.settings != self.spec.lease && (record.phase == Phase::Stable || record.holder.is_none()) {
            let next = authority::change_settings(record, self.spec.lease, now.wall);
            plan.say(Notice::LeaseChanged {
                epoch: next.epoch,
                lease_timeout: next.settings.lease_timeout,
                min_peers: next.settings.min_peers,
            });
            return plan.set_record(next);
        }
        if let Some(next) = self.answer_to_conflict(record, now) {
            return plan.set_record(next);
        }
        // Only who has a pod that lives is taken in: a word that was handed on may be of one that is long gone, and whose
        // end nobody could see any more.
        if self.seen.estate.is_none() {
            return;
        }
        let dead: Vec<Member> = self
            .seen
            .evidence
            .heard
            .keys()
            .filter(|member| !record.lists(member) && !self.has_live_pod(member))
            .cloned()
            .collect();
        for member in dead {
            self.seen.evidence.heard.remove(&member);
        }
        let sites = self.spec.sites.iter().map(|spec| &spec.site);
        let wanted = voters::wanted(record, &self.seen.evidence, sites, now.boot);
        if let Some(Ok(next)) = wanted.map(|wanted| authority::change_voters(record, wanted, now.wall)) {
            plan.say(Notice::VotersChanged { epoch: next.epoch, voters: next.voters.clone() });
            plan.set_record(next);
        }
    }
}

impl Group {
    /// What was sent to the holder before it was granted again has arrived, or its session is long gone: it was read open
    /// for a lease.
    fn fence_note_is_over(&self, record: &Record, now: Now) -> bool {
        let noted = record.holder.as_ref().is_some_and(|holder| holder.sql_fence_sent);
        let calm = self.serves_since.is_some_and(|since| now.boot >= since + record.settings.lease_timeout);
        noted && calm && record.phase == Phase::Stable
    }

    /// A voter that heard two views of this epoch vouches for nobody under it: it gets another epoch, with the same
    /// voters. The holder's own conflict is mended by a grant.
    fn answer_to_conflict(&self, record: &Record, now: Now) -> Option<Record> {
        let disputes = |voter: &&Member| {
            let heard = self.seen.evidence.heard.get(*voter);
            heard.is_some_and(|heard| heard.conflict && heard.epoch == Some(record.epoch))
        };
        record.voters.iter().find(disputes).filter(|voter| record.seat.as_ref() != Some(*voter))?;
        authority::change_voters(record, record.voters.clone(), now.wall).ok()
    }
}
