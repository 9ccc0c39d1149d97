//! Nobody may write: find the proof, drain, choose, give.

use super::cloning::finish_copy;
use super::command::Task;
use super::granting::READ_AGAIN;
use super::kept::{ClonePhase, Recovery, SiteKept};
use super::save::Plan;
use super::seen::DrainSeen;
use super::writers::SIDECAR_FIRST;
use super::{Group, Kept, Notice, Obstacle, Step};
use crate::authority::{self, Release};
use crate::candidate::drain::{BOUND, Drain, Replica, Step as DrainStep};
use crate::candidate::{self, Busy, Candidate, Choice, Chosen, Data, Decision, Progress, Sidecar};
use crate::cooldown::{self, Reach};
use crate::name::{Member, Site};
use crate::record::{Cause, Holder, Phase, Record};
use crate::site::State;
use crate::time::{Boot, Millis, Now};
use bloodraven_gtid::{GtidSet, Uuid};
use std::collections::BTreeMap;

/// Acknowledgements are on their way for a moment after every revocation; nobody is told of that.
const HELD_AFTER: Millis = Millis::from_secs(5);

/// Where a move is meant to end.
enum Aim {
    /// At the best candidate; that site first among equals.
    Best(Option<Site>),
    /// At the holder's own instance.
    Back(Member),
    /// At the present instance of the holder's site.
    SameSite(Member),
}

impl Group {
    pub(super) fn go_on_with_the_move(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let Some(record) = &kept.record else { return };
        if self.seen.evidence.highest > record.epoch {
            return;
        }
        match record.phase {
            Phase::Revoking => self.revoking(now, record, plan, out),
            Phase::Granting => self.granting(now, record, plan, out),
            Phase::Stable => {}
        }
    }

    fn revoking(&mut self, now: Now, record: &Record, plan: &mut Plan<'_>, out: &mut Step) {
        self.drain_candidates(now, record, out);
        let Some(holder) = record.holder.clone() else { return self.settle_fresh(now, record, plan) };
        if self.note_fence(now, record, &holder, plan) {
            return;
        }
        if plan.kept.planned_active().is_some() {
            self.obstacle = Some(Obstacle::Planned);
            return;
        }
        if !self.seen.attempt.may_try(now.boot) {
            self.obstacle = Some(Obstacle::BackingOff(self.seen.attempt.not_before));
            return;
        }
        match self.aim(record, &holder) {
            Aim::Back(member) => self.give_back(now, record, &member, plan),
            aim => self.give_with_proof(now, record, &aim, plan, out),
        }
    }

    /// The holder's SQL fence is written down when its own sidecar has not closed it within a second and it is seen open.
    fn note_fence(&mut self, now: Now, record: &Record, holder: &Holder, plan: &mut Plan<'_>) -> bool {
        let closed = self.seen.evidence.acknowledged_fenced(record, &holder.member) || record.has_ended(&holder.member);
        let open = self.seen.site(&holder.member.site).is_some_and(|seen| seen.watch.is_seen_open());
        let patient = now.boot < self.epoch_seen.1 + SIDECAR_FIRST;
        if closed || !open || patient || holder.sql_fence_sent {
            return false;
        }
        let holder = Holder { sql_fence_sent: true, ..holder.clone() };
        plan.set_record(Record { holder: Some(holder), ..record.clone() });
        true
    }

    fn aim(&self, record: &Record, holder: &Holder) -> Aim {
        let member = &holder.member;
        let answers = self.seen.site(&member.site).is_some_and(|seen| seen.watch.state.is_reachable());
        let present = self.present(record.settings.lease_timeout, &member.site);
        let same = present == Some(&member.instance);
        match record.cause {
            Cause::Rollback | Cause::Regrant if answers && same && !record.has_ended(member) => {
                Aim::Back(member.clone())
            }
            Cause::Manual => Aim::Best(self.wish()),
            _ => match present.map(|now| Member::new(&member.site, now)) {
                Some(next) if answers && next.instance != member.instance && record.voters.contains(&next) => {
                    Aim::SameSite(next)
                }
                _ => Aim::Best(None),
            },
        }
    }

    fn wish(&self) -> Option<Site> {
        let opened = |site: &Site| self.seen.site(site).is_some_and(|seen| seen.opened_by_hand.is_some());
        self.spec.sites.iter().map(|spec| &spec.site).find(|site| opened(site)).cloned()
    }

    /// Authority returns to the instance that had it: no proof, only its own acknowledgement, fenced.
    pub(super) fn give_back(&mut self, now: Now, record: &Record, member: &Member, plan: &mut Plan<'_>) {
        let fenced = self.seen.evidence.acknowledged_fenced(record, member);
        match authority::return_to_holder(record, &self.seen.evidence).filter(|_| fenced) {
            Some(release) => self.give(now, record, &release, member, BTreeMap::new(), GtidSet::new(), plan),
            None => self.obstacle = Some(Obstacle::AwaitingTarget(member.clone())),
        }
    }

    /// Authority goes where it is aimed at, once there is a proof. One that is found is written down at once if the grant
    /// has to wait.
    fn give_with_proof(&mut self, now: Now, record: &Record, aim: &Aim, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let release = match authority::release(record, &self.seen.evidence, self.spec.proof, now) {
            Ok(release) => release,
            Err(missing) => {
                self.tell_held(now, record, &missing, plan);
                self.obstacle = Some(Obstacle::Release(missing));
                return;
            }
        };
        let since = self.proven_since(record, now);
        let chosen = match aim {
            _ if self.runs(|_, task| *task == Task::Fence) => Err(Obstacle::EndingFence),
            Aim::SameSite(next) => self.same_site(now, record, kept, next, since, out),
            Aim::Best(wish) => self.best(now, record, kept, wish.as_ref(), since, out),
            Aim::Back(member) => Ok(only(member)),
        };
        match chosen {
            Ok(chosen) => {
                // Only a drain that was given up gives anything up; what else is pending is applied before the cut.
                let gave_up = matches!(chosen.drain, Progress::GaveUp(_));
                let unapplied = if gave_up { chosen.unapplied.clone() } else { GtidSet::new() };
                self.give(now, record, &release, &chosen.member, chosen.given_up.clone(), unapplied, plan);
                if plan.record_changed() {
                    tell_choice(chosen, plan);
                }
            }
            Err(obstacle) => {
                self.obstacle = Some(obstacle);
                write_proof(record, &release, plan);
            }
        }
    }

    /// Told when time alone will not bring a proof, once for each run of Revoking and set of silent ones.
    fn tell_held(&mut self, now: Now, record: &Record, missing: &authority::Missing, plan: &mut Plan<'_>) {
        let held = (record.revoked_at, missing.silent.clone());
        let for_a_while = now.boot >= self.epoch_seen.1 + HELD_AFTER;
        if for_a_while && missing.until.is_none() && self.held_told.as_ref() != Some(&held) {
            plan.say(Notice::PromotionHeld { silent: missing.silent.clone() });
            self.held_told = Some(held);
        }
    }

    /// When this leader first found the proof of this run: until then the holder may have written, and candidates may
    /// have received, so what was read before says too little.
    pub(super) fn proven_since(&mut self, record: &Record, now: Now) -> Boot {
        match self.proven {
            Some((run, since)) if Some(run) == record.revoked_at => since,
            _ => {
                self.proven = record.revoked_at.map(|run| (run, now.boot));
                now.boot
            }
        }
    }

    /// The present instance of the holder's site, if its server lacks nothing; else whoever is best.
    fn same_site(
        &mut self,
        now: Now,
        record: &Record,
        kept: &Kept,
        next: &Member,
        since: Boot,
        out: &mut Step,
    ) -> Result<Chosen, Obstacle> {
        let unread = self.unread_candidates(since);
        if !unread.is_empty() {
            return self.read_first(now, unread, out);
        }
        let closed = self.seen.site(&next.site).is_some_and(|seen| seen.watch.is_fenced());
        if closed
            && self.passes_gate(kept, next)
            && self.seen.site(&next.site).is_some_and(|seen| seen.facts_begun >= since)
        {
            return Ok(only(next));
        }
        self.best(now, record, kept, None, since, out)
    }

    fn read_first<T>(&mut self, now: Now, unread: Vec<Site>, out: &mut Step) -> Result<T, Obstacle> {
        for site in &unread {
            self.begin(now, site, Task::Read, out);
        }
        Err(Obstacle::Reading(unread))
    }

    /// The best candidate, if its sets and those of all others are read and its drain is over.
    fn best(
        &mut self,
        now: Now,
        record: &Record,
        kept: &Kept,
        wish: Option<&Site>,
        since: Boot,
        out: &mut Step,
    ) -> Result<Chosen, Obstacle> {
        let unread = self.unread_candidates(since);
        if !unread.is_empty() {
            return self.read_first(now, unread, out);
        }
        let Decision { chosen, refused } = self.choose(record, kept, wish);
        let Some(chosen) = chosen else { return Err(Obstacle::NoCandidate(refused)) };
        if chosen.drain == Progress::Pending {
            return Err(Obstacle::Draining(chosen.member.site));
        }
        let home = record.holder.as_ref().is_some_and(|holder| holder.member.site == chosen.member.site);
        let reach = if home { Reach::SameSite } else { Reach::OtherSite };
        let last = self.seen.last_failover.as_ref();
        // What was begun as a return and ends elsewhere has become an automatic move; one that was begun as such goes on.
        let returns = matches!(record.cause, Cause::Instance | Cause::Regrant);
        if returns && !home && self.is_paused(now) {
            return Err(Obstacle::Paused);
        }
        if returns && let Err(active) = cooldown::may_start(record.cause, reach, last, self.spec.cooldown, now.boot) {
            return Err(Obstacle::Cooldown(active));
        }
        Ok(chosen)
    }

    /// Candidates that answer, or may, and were not read, closed, since the proof was found. Each of them is read, or is
    /// unreachable, before long. One that lets nobody in is not waited for: nobody knows what it holds.
    fn unread_candidates(&self, since: Boot) -> Vec<Site> {
        let unread = |site: &Site| {
            self.seen.site(site).is_some_and(|seen| match seen.watch.state {
                State::Unreachable => false,
                _ if seen.watch.login_refused => false,
                State::Unknown | State::Writable => true,
                State::ReadOnly => seen.facts_begun < since || seen.watch.pair.is_none(),
            })
        };
        let candidates = self.spec.sites.iter().filter(|spec| self.spec.is_candidate(&spec.site));
        candidates.map(|spec| &spec.site).filter(|site| unread(site)).cloned().collect()
    }

    /// One that was granted authority and could not be opened is chosen only when nobody else may be.
    pub(super) fn choose(&self, record: &Record, kept: &Kept, wish: Option<&Site>) -> Decision {
        let all = self.candidates(record, kept);
        if let Some(avoid) = &self.avoid {
            let others: Vec<Candidate> = all.iter().filter(|one| one.site != *avoid).cloned().collect();
            let decision = self.choose_among(&others, record, kept, wish);
            if decision.chosen.is_some() {
                return decision;
            }
        }
        self.choose_among(&all, record, kept, wish)
    }

    fn choose_among(&self, sites: &[Candidate], record: &Record, kept: &Kept, wish: Option<&Site>) -> Decision {
        let holder = record.holder.as_ref();
        let promotion = kept.promotion.clone().unwrap_or_default();
        let last_primary: Option<Uuid> = holder.and_then(|holder| holder.server_uuid.as_ref()?.parse().ok());
        let mut known: Vec<Uuid> = promotion.uuids().collect();
        known.extend(last_primary);
        candidate::choose(&Choice {
            sites,
            last_site: holder.map(|holder| &holder.member.site),
            recovery_threshold: self.spec.thresholds.recovery,
            known_primaries: &known,
            last_primary,
            last_promotion: &promotion,
            priorities: &self.spec.priorities,
            wish,
        })
    }

    /// Every site as the choice sees it.
    fn candidates(&self, record: &Record, kept: &Kept) -> Vec<Candidate> {
        let candidate = |site: &Site| {
            let (spec, seen) = (self.spec.site(site)?, self.seen.site(site)?);
            let sidecar = match self.present(record.settings.lease_timeout, site) {
                None => Sidecar::Silent,
                Some(instance) if record.voter_at(site) == Some(instance) => Sidecar::Listed(instance.clone()),
                Some(_) => Sidecar::NotListed,
            };
            let kept = kept.site(site);
            Some(Candidate {
                site: site.clone(),
                role: spec.role,
                state: seen.watch.state,
                fenced: seen.watch.is_fenced(),
                sidecar,
                busy: busy(&kept, seen.facts.as_ref().and_then(|facts| facts.data.as_ref())),
                answers: seen.watch.answers,
                data: seen.facts.as_ref().and_then(|facts| facts.data.clone()),
                drain: self.drain_of(record, site),
            })
        };
        let all: Vec<Candidate> = self.spec.sites.iter().filter_map(|spec| candidate(&spec.site)).collect();
        all
    }

    /// How far a site's drain is in this run of Revoking.
    pub(super) fn drain_of(&self, record: &Record, site: &Site) -> Progress {
        let seen = self.seen.site(site).and_then(|seen| seen.drain.as_ref());
        let drain = seen.filter(|drain| Some(drain.revoked_at) == record.revoked_at);
        drain.map_or(Progress::Pending, |drain| drain.progress.clone())
    }

    /// Candidates apply what they received while the proof is waited for.
    fn drain_candidates(&mut self, now: Now, record: &Record, out: &mut Step) {
        let since = record.revoked_at.unwrap_or(record.epoch);
        let sites: Vec<Site> = self.spec.names().into_iter().filter(|site| self.spec.is_candidate(site)).collect();
        for site in sites {
            self.drain_one(now, since, &site, out);
        }
    }

    fn drain_one(&mut self, now: Now, since: u64, site: &Site, out: &mut Step) {
        let Some(seen) = self.seen.sites.get(site).filter(|seen| seen.watch.state == State::ReadOnly) else { return };
        let fresh = || DrainSeen { revoked_at: since, drain: Drain::begin(now.boot), progress: Progress::Pending };
        let before = seen.drain.clone().filter(|drain| drain.revoked_at == since).unwrap_or_else(fresh);
        let mut drain = before.clone();
        let read = if seen.read_since(since) { seen.facts.as_ref() } else { None };
        let step = read.and_then(|facts| {
            let data = facts.data.as_ref()?;
            let Some(replica) = &facts.replica else { return Some(DrainStep::Done) };
            let replica =
                Replica { applier: replica.applier.clone(), receiver: replica.receiver, delayed: replica.delayed };
            Some(drain.drain.step(data, &replica, BOUND, now.boot))
        });
        drain.progress = match &step {
            Some(DrainStep::Done) => Progress::Done,
            Some(DrainStep::GiveUp { cause, .. }) => Progress::GaveUp(cause.clone()),
            // More may have arrived since it was done: it is not, then.
            Some(_) => Progress::Pending,
            None => drain.progress,
        };
        let task = match step {
            None => Some(Task::Read),
            Some(DrainStep::KeepWaiting { .. }) => (now.boot >= seen.facts_at + READ_AGAIN).then_some(Task::Read),
            Some(DrainStep::StartApplier) => Some(Task::StartApplier),
            Some(DrainStep::LiftDelay) => Some(Task::LiftDelay),
            Some(DrainStep::Done | DrainStep::GiveUp { .. }) => None,
        };
        let once = matches!(task, Some(Task::StartApplier | Task::LiftDelay));
        let begun = task.is_some_and(|task| self.begin(now, site, task, out));
        // What is asked for once counts as asked for only when it was begun.
        if once && !begun {
            drain.drain = before.drain;
        }
        if let Some(seen) = self.seen.sites.get_mut(site) {
            seen.drain = Some(drain);
        }
    }

    /// What a drain asked for once has failed: it may ask again.
    pub(super) fn drain_task_failed(&mut self, site: &Site) {
        if let Some(drain) = self.seen.sites.get_mut(site).and_then(|seen| seen.drain.as_mut()) {
            (drain.drain.applier_started, drain.drain.delay_lifted) = (false, false);
        }
    }

    /// Gives authority. What the choice gives up is written down with it; what the target could not apply, too, for its
    /// relay logs are purged next.
    #[expect(clippy::too_many_arguments, reason = "a grant is decided from exactly these")]
    pub(super) fn give(
        &mut self,
        now: Now,
        record: &Record,
        release: &Release,
        target: &Member,
        given_up: BTreeMap<Site, GtidSet>,
        unapplied: GtidSet,
        plan: &mut Plan<'_>,
    ) {
        // A fence that is under way could close what is granted here.
        if self.runs(|_, task| *task == Task::Fence) {
            self.obstacle = Some(Obstacle::EndingFence);
            return;
        }
        let cause = cause_of_grant(record, target);
        let Ok(next) = authority::grant(record, target, release, cause, now.wall) else {
            self.obstacle = Some(Obstacle::AwaitingTarget(target.clone()));
            return;
        };
        if record.proof.is_none() {
            plan.notices.extend(next.proof.clone().map(Notice::ReleaseProven));
        }
        if !unapplied.is_empty() {
            plan.say(Notice::UnappliedTransactions { site: target.site.clone(), set: unapplied.clone() });
        }
        let kept = plan.change();
        kept.record = Some(next);
        kept.promotion = None;
        kept.unapplied = unapplied;
        for (site, set) in given_up {
            kept.site_mut(&site).divergent = set;
        }
        finish_copy(plan, &target.site);
    }
}

/// The work that keeps a site from being promoted. What a site had before it was emptied for a copy says nothing of the copy.
fn busy(kept: &SiteKept, data: Option<&Data>) -> Option<Busy> {
    let copied = kept.clone.as_ref().is_some_and(|clone| clone.phase == ClonePhase::SetupReplication);
    let clear = data.is_some_and(|data| data.held().is_disjoint(&kept.divergent));
    match kept.clone.as_ref().filter(|clone| clone.holds_the_site()) {
        Some(_) if copied && clear => Some(Busy::Copied),
        Some(_) => Some(Busy::Cloning),
        None => (kept.recovery == Recovery::Blocked).then_some(Busy::RecoveryBlocked),
    }
}

/// By which rule the site was chosen, and what the choice could not compare.
fn tell_choice(chosen: Chosen, plan: &mut Plan<'_>) {
    let (doubtful, rule) = (chosen.is_doubtful(), chosen.rule.to_string());
    if doubtful {
        let site = chosen.member.site.clone();
        plan.say(Notice::IncomparableCandidates { chosen: site, differences: chosen.incomparable });
    }
    plan.say(Notice::CandidateChosen { member: chosen.member, rule });
}

fn write_proof(record: &Record, release: &Release, plan: &mut Plan<'_>) {
    let noted = authority::note_proof(record, release);
    if noted != *record {
        plan.notices.extend(noted.proof.clone().map(Notice::ReleaseProven));
        plan.set_record(noted);
    }
}

/// A choice that nobody had to make.
fn only(member: &Member) -> Chosen {
    Chosen {
        member: member.clone(),
        rule: candidate::Rule { by: candidate::Comparison::OnlyCandidate, tie: None },
        drain: Progress::Done,
        unapplied: GtidSet::new(),
        given_up: BTreeMap::new(),
        incomparable: Vec::new(),
    }
}

/// Why authority is where it is now. A move that ends where it began was a return; a return that ends elsewhere was a
/// move.
fn cause_of_grant(record: &Record, target: &Member) -> Cause {
    let Some(holder) = &record.holder else { return record.cause };
    let home = holder.member.site == target.site;
    match record.cause {
        Cause::Rollback if home => Cause::Rollback,
        _ if holder.member == *target => Cause::Regrant,
        _ if home => Cause::Instance,
        Cause::Instance | Cause::Regrant | Cause::Rollback | Cause::Voters | Cause::Lease => Cause::Emergency,
        cause => cause,
    }
}
