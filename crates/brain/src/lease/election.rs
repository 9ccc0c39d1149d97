//! The state machine of one candidate.

#[cfg(test)]
use super::model::Mutation;
use super::{Acquired, CallId, Command, Found, Input, Lease, LostBy, NewLease, Notice, Outcome, Times, Written};
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Now};
use std::sync::Arc;

/// How many calls a release may take.
const RELEASE_CALLS: u8 = 3;

/// One candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    pub(super) identity: Arc<str>,
    pub(super) times: Times,
    /// The lease as last seen; none: never, or there was none.
    pub(super) seen: Option<Lease>,
    /// What was seen may be out of date: a write of ours ended in doubt or was refused.
    pub(super) in_doubt: bool,
    /// Another may lead until then, if nothing of its lease changes.
    pub(super) wait_until: Option<Boot>,
    /// We lead until then.
    pub(super) led_until: Option<Boot>,
    /// The call in flight.
    pub(super) call: Option<Call>,
    pub(super) next_call: u64,
    /// When to act next, if no call is in flight.
    pub(super) due: Boot,
    pub(super) stage: Stage,
    #[cfg(test)]
    pub(super) mutation: Mutation,
}

/// A call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) kind: Kind,
    /// When it was sent, or a little earlier: what a success is worth counts from here.
    pub(super) sent: Boot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Read,
    Hold,
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Running,
    /// So many calls are left for the release.
    Releasing(u8),
    Stopped,
}

impl Election {
    /// A candidate that has just started. The identity is `<pod name>_<pod uid>`: a restarted container has the same.
    pub fn new(identity: &str, times: Times, now: Boot) -> Self {
        Self {
            identity: identity.into(),
            times,
            seen: None,
            in_doubt: true,
            wait_until: None,
            led_until: None,
            call: None,
            next_call: 0,
            due: now,
            stage: Stage::Running,
            #[cfg(test)]
            mutation: Mutation::None,
        }
    }

    /// Until when we lead. Compare it with the time right before every call that changes anything.
    pub const fn leads_until(&self) -> Option<Boot> {
        self.led_until
    }

    /// Whether we lead now.
    pub fn leads(&self, now: Boot) -> bool {
        self.led_until.is_some_and(|until| now < until)
    }

    /// The identity that the lease was last seen to carry.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.holder.as_deref()
    }

    /// When the next [`Input::Tick`] is wanted; none: never again.
    pub fn wake_at(&self) -> Option<Boot> {
        let next = match (self.stage, &self.call) {
            (Stage::Stopped, _) => return None,
            (_, Some(call)) => call.sent + self.times.call_deadline(),
            (_, None) => self.due,
        };
        Some(self.led_until.map_or(next, |until| until.min(next)))
    }

    /// Takes one input.
    pub fn step(&mut self, now: Now, input: Input) -> Outcome {
        let mut out = Outcome::default();
        if self.led_until.is_some_and(|until| now.boot >= until) {
            self.lose(LostBy::Deadline, &mut out);
        }
        match input {
            Input::Tick => self.tick(now, &mut out),
            Input::Read(id, found) => self.was_read(now, id, found, &mut out),
            Input::Wrote(id, written) => self.was_written(now, id, written, &mut out),
            Input::Shutdown => self.shut_down(now, &mut out),
        }
        out
    }

    fn tick(&mut self, now: Now, out: &mut Outcome) {
        if let Some(call) = self.call.filter(|call| now.boot >= call.sent + self.times.call_deadline()) {
            self.call = None;
            self.ended_in_doubt(now, call, out);
        }
        if self.call.is_none() && now.boot >= self.due {
            self.act(now, out);
        }
    }

    /// Renews what is surely ours, else looks first.
    fn act(&mut self, now: Now, out: &mut Outcome) {
        let ours = !self.in_doubt && self.is_ours();
        match self.stage {
            Stage::Stopped => {}
            Stage::Running if ours && self.leads(now.boot) => self.hold(now, out),
            Stage::Releasing(_) if ours => self.release(now, out),
            Stage::Running | Stage::Releasing(_) => out.command = Some(Command::Read(self.begin(Kind::Read, now.boot))),
        }
    }

    fn was_read(&mut self, now: Now, id: CallId, found: Found, out: &mut Outcome) {
        let Some(call) = self.end_of(id) else { return };
        match found {
            Found::Failed => self.ended_in_doubt(now, call, out),
            Found::Absent => self.found_absent(now, out),
            Found::Lease(lease) => {
                let at = now.boot;
                #[cfg(test)]
                let at = self.mutation.observed_at(at, call);
                self.observe(lease, at, out);
                #[cfg(test)]
                if self.mutation == Mutation::ReadProlongs && self.is_ours() {
                    self.lead_from(call.sent, now, out);
                }
                self.found_lease(now, out);
            }
        }
    }

    fn found_lease(&mut self, now: Now, out: &mut Outcome) {
        let holder = self.seen.as_ref().and_then(|lease| lease.holder.clone());
        match (self.stage, holder) {
            (Stage::Stopped, _) => {}
            (Stage::Running, holder) if self.is_ours() || holder.is_none() || self.is_over(now) => self.hold(now, out),
            (Stage::Running, _) => self.due = now.boot + self.times.retry_period(),
            (Stage::Releasing(_), _) if self.is_ours() => self.release(now, out),
            (Stage::Releasing(_), _) => self.stop(out),
        }
    }

    /// Nobody has a lease. One that we saw another have was deleted under it: it may lead on for a while.
    fn found_absent(&mut self, now: Now, out: &mut Outcome) {
        self.seen = None;
        self.in_doubt = false;
        if self.led_until.is_some() {
            self.lose(LostBy::Deleted, out);
        }
        match self.stage {
            Stage::Stopped => {}
            Stage::Releasing(_) => self.stop(out),
            Stage::Running if self.wait_until.is_none_or(|until| now.boot >= until) => self.hold(now, out),
            Stage::Running => self.due = now.boot + self.times.retry_period(),
        }
    }

    fn was_written(&mut self, now: Now, id: CallId, written: Written, out: &mut Outcome) {
        let Some(call) = self.end_of(id) else { return };
        match written {
            Written::Unknown => self.ended_in_doubt(now, call, out),
            Written::Conflict => self.was_refused(now, out),
            Written::Done(lease) => {
                self.observe(lease, now.boot, out);
                match call.kind {
                    Kind::Release => {
                        out.notices.push(Notice::Released);
                        self.stop(out);
                    }
                    Kind::Read | Kind::Hold => self.was_held(now, call, out),
                }
            }
        }
    }

    /// A create or update of ours was done. What it is worth counts from when it was sent.
    fn was_held(&mut self, now: Now, call: Call, out: &mut Outcome) {
        self.due = now.boot.max(call.sent + self.times.retry_period());
        let from = if off(Rule::LeadsFromSending) { now.boot } else { call.sent };
        #[cfg(test)]
        let from = self.mutation.counted_from(from, now);
        match self.stage {
            Stage::Running if self.is_ours() => self.lead_from(from, now, out),
            Stage::Running | Stage::Stopped => {}
            Stage::Releasing(_) => self.act(now, out),
        }
    }

    fn lead_from(&mut self, from: Boot, now: Now, out: &mut Outcome) {
        let until = from + self.times.renew_deadline();
        if until <= now.boot {
            return;
        }
        if self.led_until.is_none() {
            out.notices.push(Notice::Elected(until));
        }
        self.led_until = Some(until);
    }

    /// Somebody else wrote. A leader looks at once, for it may have lost; the others take their time.
    fn was_refused(&mut self, now: Now, out: &mut Outcome) {
        self.in_doubt = true;
        match self.stage {
            Stage::Running if self.leads(now.boot) => self.act(now, out),
            Stage::Running => self.due = now.boot + self.times.retry_period(),
            Stage::Releasing(_) => self.release_again(now, out),
            Stage::Stopped => {}
        }
    }

    /// It may have been done, or may yet be. It prolongs nothing, and before the next write we look.
    fn ended_in_doubt(&mut self, now: Now, call: Call, out: &mut Outcome) {
        self.in_doubt = true;
        self.due = now.boot.max(call.sent + self.times.retry_period());
        if off(Rule::DoubtProlongsNothing) && call.kind == Kind::Hold {
            self.lead_from(call.sent, now, out);
        }
        #[cfg(test)]
        if self.mutation == Mutation::ProlongOnUnknown && call.kind == Kind::Hold {
            self.lead_from(call.sent, now, out);
        }
        if let Stage::Releasing(_) = self.stage {
            self.release_again(now, out);
        }
    }

    /// Writes the lease in our name, over the very version that was seen.
    fn hold(&mut self, now: Now, out: &mut Outcome) {
        let ours = self.is_ours();
        let id = self.begin(Kind::Hold, now.boot);
        let (acquired, transitions) = match &self.seen {
            Some(lease) if ours => (Acquired::AsRead(lease.acquired.clone()), lease.transitions),
            Some(lease) => (Acquired::At(now.wall), lease.transitions.saturating_add(1)),
            None => (Acquired::At(now.wall), 0),
        };
        let holder = Some(Arc::clone(&self.identity));
        let duration = self.times.lease_duration();
        let lease = NewLease { holder, duration, acquired, renewed: now.wall, transitions };
        out.command = Some(match &self.seen {
            Some(seen) => Command::Update(id, Arc::clone(&seen.version), lease),
            None => Command::Create(id, lease),
        });
    }

    /// Clears the holder, so that the next one need not wait. Leadership was over when the release was decided.
    fn release(&mut self, now: Now, out: &mut Outcome) {
        let Some(seen) = self.seen.clone() else { return self.stop(out) };
        let id = self.begin(Kind::Release, now.boot);
        let lease = NewLease {
            holder: None,
            duration: self.times.lease_duration(),
            acquired: Acquired::AsRead(seen.acquired),
            renewed: now.wall,
            transitions: seen.transitions,
        };
        out.command = Some(Command::Release(id, seen.version, lease));
    }

    fn release_again(&mut self, now: Now, out: &mut Outcome) {
        match self.stage {
            Stage::Releasing(left @ 2..) => {
                self.stage = Stage::Releasing(left - 1);
                self.act(now, out);
            }
            Stage::Releasing(_) => self.stop(out),
            Stage::Running | Stage::Stopped => {}
        }
    }

    fn shut_down(&mut self, now: Now, out: &mut Outcome) {
        if self.stage != Stage::Running {
            return;
        }
        let leads = self.led_until.is_some() && !off(Rule::ReleaseEndsFirst);
        #[cfg(test)]
        let leads = leads && self.mutation != Mutation::LeadThroughRelease;
        if leads {
            self.lose(LostBy::Shutdown, out);
        }
        self.stage = Stage::Releasing(RELEASE_CALLS);
        let writing = self.call.is_some_and(|call| call.kind == Kind::Hold);
        match (&self.call, self.is_ours() || writing) {
            (_, false) => self.stop(out),
            (None, true) => self.act(now, out),
            // Its end brings the version that the release needs.
            (Some(_), true) => {}
        }
    }

    fn stop(&mut self, out: &mut Outcome) {
        self.stage = Stage::Stopped;
        self.call = None;
        self.led_until = None;
        out.notices.push(Notice::Stopped);
    }

    fn lose(&mut self, why: LostBy, out: &mut Outcome) {
        self.led_until = None;
        out.notices.push(Notice::Lost(why));
    }

    /// Takes in the lease as it is. Whatever changed in another's is a sign of its life: the wait begins anew, and it
    /// begins when the answer is here, for the change may be as young as that.
    fn observe(&mut self, lease: Lease, at: Boot, out: &mut Outcome) {
        self.in_doubt = false;
        let before = self.seen.replace(lease);
        let Some(lease) = &self.seen else { return };
        let unchanged = before.as_ref().is_some_and(|old| old.version == lease.version && old.renewed == lease.renewed);
        match lease.holder.clone() {
            Some(holder) if holder != self.identity => {
                let wait = self.times.lease_duration().max(lease.duration.unwrap_or_default());
                if !unchanged || self.wait_until.is_none() {
                    self.wait_until = Some(at + wait);
                }
                if before.is_none_or(|old| old.holder.as_ref() != Some(&holder)) {
                    out.notices.push(Notice::Follows(Arc::clone(&holder)));
                }
                if self.led_until.is_some() {
                    self.lose(LostBy::Taken(holder), out);
                }
            }
            Some(_) => self.wait_until = None,
            None => {
                self.wait_until = None;
                if self.led_until.is_some() {
                    self.lose(LostBy::Cleared, out);
                }
            }
        }
    }

    fn is_ours(&self) -> bool {
        self.seen.as_ref().is_some_and(|lease| lease.holder.as_ref() == Some(&self.identity))
    }

    /// Whether another's lease was seen unchanged for so long that its holder has stopped.
    fn is_over(&self, now: Now) -> bool {
        #[cfg(test)]
        if let Some(over) = self.mutation.is_over(self, now) {
            return over;
        }
        self.wait_until.is_some_and(|until| holds(Rule::AnothersLeaseIsWaitedFor, now.boot >= until))
    }

    fn begin(&mut self, kind: Kind, now: Boot) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.call = Some(Call { id, kind, sent: now });
        id
    }

    /// The call that this answers. An answer to an earlier one, or a second answer, is none.
    fn end_of(&mut self, id: CallId) -> Option<Call> {
        #[cfg(test)]
        let id = self.mutation.taken_for(id, self.call);
        let call = self.call.filter(|call| holds(Rule::AnswerOfThePresentCall, call.id == id))?;
        self.call = None;
        Some(call)
    }
}
