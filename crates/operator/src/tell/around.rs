//! What a notice alone does not say: who had authority, how far things were, how long they took.
//!
//! In: the leader, and what this teller remembers of earlier notices. Out: an [`Around`], plain data. Must not: look at a
//! clock of its own.

use bloodraven_brain::group::kept::{Planned, PlannedPhase};
use bloodraven_brain::group::{Group, Notice};
use bloodraven_brain::name::Site;
use bloodraven_brain::record::{Cause, Epoch, Phase};
use bloodraven_brain::time::{Boot, Millis, Now};
use bloodraven_brain::topology::{AuthorityUnknown, SplitBrainAnswer, Verdict};

/// See above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// The group's name, for commands that people can copy.
    pub group: String,
    /// The record's epoch; 0 without one.
    pub epoch: Epoch,
    /// Declared sites.
    pub declared: Vec<Site>,
    /// The site that has authority, or had it last.
    pub holder: Option<Site>,
    /// The site that lost authority in the present move.
    pub old_primary: Option<Site>,
    /// The site that the policy keeps where several write and there is no record.
    pub policy_winner: Option<Site>,
    /// The planned failover, as stored.
    pub planned: Option<Planned>,
    /// The phase that it was in before this notice, and for how long.
    pub planned_before: Option<(PlannedPhase, Millis)>,
    /// A site was granted authority in this move and could not be opened.
    pub failed_attempt: Option<Site>,
    /// How long the steps of the present move took.
    pub took: Took,
}

/// How long the steps of a move took, as far as they are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// From the holder's last answer to the start.
    pub detect: Option<Millis>,
    /// From the start to the proof.
    pub proof: Option<Millis>,
    /// From the proof to the grant.
    pub drain: Option<Millis>,
    /// From the grant to the reading back.
    pub open: Option<Millis>,
    /// From the holder's last answer (else the start) to the reading back.
    pub total: Option<Millis>,
}

/// What is remembered from notice to notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// The holder that last served, and its last answer.
    answered: Option<(Site, Boot)>,
    /// The move under way.
    under_way: Option<Move>,
    /// The planned failover's phase, and since when.
    planned: Option<(PlannedPhase, Boot)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Move {
    from: Option<Site>,
    answered: Option<Boot>,
    started: Boot,
    proven: Option<Boot>,
    granted: Option<(Boot, Site)>,
}

impl Around {
    /// The site, if it is declared: anything else would make a label without bound.
    pub fn declared(&self, site: &Site) -> Option<Site> {
        self.declared.contains(site).then(|| site.clone())
    }

    /// The site that had authority, for sentences.
    pub fn old(&self) -> &str {
        self.old_primary.as_ref().or(self.holder.as_ref()).map_or("the last primary", Site::as_str)
    }

    /// The site that has authority, for sentences.
    pub fn primary(&self) -> &str {
        self.holder.as_ref().map_or("the primary", Site::as_str)
    }
}

impl Memory {
    /// Remembers who serves, and when it last answered.
    pub(super) fn look(&mut self, group: &Group) {
        let Some(kept) = group.kept() else { return };
        if let Some(primary) = group.serving(&kept)
            && let Some(seen) = group.seen.site(&primary.site)
        {
            self.answered = Some((primary.site.clone(), seen.facts_at));
        }
    }

    /// What is around that notice; then remembers the notice.
    pub(super) fn around(&mut self, now: Now, group: &Group, notice: &Notice) -> Around {
        let kept = group.kept();
        let record = kept.as_ref().and_then(|kept| kept.record.as_ref());
        let seat = record.and_then(|record| record.seat.as_ref());
        let holder = record.and_then(|record| record.holder.as_ref());
        let before = self.planned.map(|(phase, since)| (phase, now.boot.since(since)));
        let failed_attempt = self.take(now.boot, group, notice);
        Around {
            group: group.spec.name.clone(),
            epoch: record.map_or(0, |record| record.epoch),
            declared: group.spec.names(),
            holder: seat.or(holder.map(|holder| &holder.member)).map(|member| member.site.clone()),
            old_primary: self.under_way.as_ref().and_then(|under_way| under_way.from.clone()),
            policy_winner: policy_winner(group),
            planned: kept.as_ref().and_then(|kept| kept.planned.clone()),
            planned_before: before,
            failed_attempt,
            took: self.took(now.boot),
        }
    }

    /// Remembers the notice; returns the site that could not be opened, if that is what it says.
    fn take(&mut self, now: Boot, group: &Group, notice: &Notice) -> Option<Site> {
        match notice {
            Notice::AuthorityChanged { phase: Phase::Revoking, cause, .. } => return self.revoked(now, group, *cause),
            Notice::AuthorityChanged { phase: Phase::Granting, seat: Some(seat), .. } => {
                if let Some(under_way) = &mut self.under_way {
                    under_way.proven.get_or_insert(now);
                    under_way.granted = Some((now, seat.site.clone()));
                }
            }
            Notice::ReleaseProven(_) => {
                if let Some(under_way) = &mut self.under_way {
                    under_way.proven.get_or_insert(now);
                }
            }
            Notice::PlannedChanged { phase, .. } => self.planned = Some((*phase, now)),
            _ => {}
        }
        None
    }

    /// A move begins; or the one under way goes on without the site that was granted.
    fn revoked(&mut self, now: Boot, group: &Group, cause: Cause) -> Option<Site> {
        if let Some(under_way) = &mut self.under_way {
            under_way.proven = under_way.proven.filter(|_| under_way.granted.is_none());
            return under_way.granted.take().map(|(_, site)| site);
        }
        let kept = group.kept();
        let holder = kept.as_ref().and_then(|kept| kept.record.as_ref()).and_then(|record| record.holder.as_ref());
        let from = holder.map(|holder| holder.member.site.clone());
        // Of a holder that is asked to let go nobody has to find out that it is lost.
        let lost = matches!(cause, Cause::Emergency | Cause::Instance | Cause::Manual);
        let answered =
            self.answered.as_ref().filter(|(site, _)| lost && Some(site) == from.as_ref()).map(|(_, at)| *at);
        self.under_way = Some(Move { from, answered, started: now, proven: None, granted: None });
        None
    }

    /// The move is over.
    pub(super) fn forget_move(&mut self, notice: &Notice) {
        if matches!(notice, Notice::FailoverExecuted { .. } | Notice::AuthorityRestored { .. }) {
            self.under_way = None;
        }
        if matches!(notice, Notice::PlannedChanged { phase, .. } if phase.is_terminal()) {
            self.planned = None;
        }
    }

    fn took(&self, now: Boot) -> Took {
        let Some(Move { from: _, answered, started, proven, granted }) = &self.under_way else {
            return Took::default();
        };
        let granted = granted.as_ref().map(|(at, _)| *at);
        Took {
            detect: answered.map(|answered| started.since(answered)),
            proof: proven.map(|proven| proven.since(*started)),
            drain: proven.zip(granted).map(|(proven, granted)| granted.since(proven)),
            open: granted.map(|granted| now.since(granted)),
            total: Some(now.since(answered.unwrap_or(*started))),
        }
    }
}

/// Who stays where several sites write and there is no record to say it.
fn policy_winner(group: &Group) -> Option<Site> {
    let (Verdict::SplitBrain(split)
    | Verdict::AuthorityUnknown(AuthorityUnknown::NoRecord { split_brain: Some(split) })) =
        &group.judged.as_ref()?.verdict
    else {
        return None;
    };
    match &split.answer {
        SplitBrainAnswer::PolicyWinner(site) => Some(site.clone()),
        SplitBrainAnswer::RecordStands(_) | SplitBrainAnswer::AlertOnly => None,
    }
}
