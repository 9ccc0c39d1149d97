//! The leader's whole rule for one group: one `step` that takes an input and returns commands and notices.
//!
//! In: what is stored, what polls and sidecars say, what an admin wants, the passing of time. Out: [`Command`]s for the
//! hands, [`Notice`]s for people. Must not: act on anything that is not stored yet. What outlives a leader is [`Kept`];
//! what one leader has seen is [`Seen`].
//!
//! Every part looks at what is stored and what is seen, and closes one gap: it changes what is to be stored, or it gives
//! a command, never both about the same thing. So a part may run at any time, a lost step is done later, and a new
//! leader goes on where the old one stopped.

mod absorb;
pub mod accounts;
mod bootstrap;
pub mod cache;
mod cloning;
pub mod command;
pub mod copies;
pub mod forecast;
mod granting;
mod housekeeping;
pub mod input;
pub mod kept;
pub mod notice;
mod opening;
mod outward;
mod picture;
mod planned;
mod push;
mod reclone;
mod recovery;
pub mod report;
mod revoking;
mod rotation;
mod save;
pub mod seen;
mod semi_sync;
pub mod spec;
mod stable;
mod tasks;
mod update;
mod writers;

#[cfg(test)]
mod tests;

pub use command::{Command, Outward, SaveId, Task, WorkId};
pub use input::Input;
pub use kept::Kept;
pub use notice::Notice;
pub use recovery::{Convergence, ConvergenceReason, ConvergenceState};
pub use seen::Seen;
pub use semi_sync::Receipts;
pub use spec::Spec;

use crate::ages::Ages;
use crate::authority::voters;
use crate::name::{Instance, Member, Site};
use crate::record::{Epoch, Phase, Record};
use crate::time::{Boot, Millis, Now, Wall};
use crate::topology::Judgement;
use save::{Plan, Saving};
use std::collections::BTreeMap;
use std::sync::Arc;
use tasks::Running;

/// The leader of one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// What an admin wants.
    pub spec: Spec,
    /// What is stored, as far as this leader knows for certain.
    pub stored: Stored,
    /// What this leader has seen.
    pub seen: Seen,
    /// Until when this process leads for certain.
    pub leads_until: Option<Boot>,
    /// What is being stored.
    saving: Option<Saving>,
    /// What was to be stored with the record, and was not.
    owed: Option<Box<Kept>>,
    /// Nothing is stored before this moment: the last attempt failed.
    save_not_before: Boot,
    /// Tasks without an answer.
    work: BTreeMap<WorkId, Running>,
    next_id: u64,
    /// The last judgement.
    pub judged: Option<Judgement>,
    /// What stands in the way of the present move.
    pub obstacle: Option<Obstacle>,
    /// Commands that are repeated until they are seen to be done, and when they were last given.
    asked: Vec<(Boot, Command)>,
    /// How the outside was last asked to look, and when.
    shown: Option<(Boot, Outward)>,
    /// How old what is stored with its date is.
    ages: Ages,
    /// The present moment, as of this step.
    clock: Boot,
    /// Since when this leader sees the present epoch.
    epoch_seen: (Epoch, Boot),
    /// Since when the holder was read open without a break.
    serves_since: Option<Boot>,
    /// Every site was lost at once, and no primary was seen since.
    all_lost: bool,
    /// Since when the holder's next pod is waited for after that.
    next_pod_since: Option<Boot>,
    /// A site that was granted authority and could not be opened: others are preferred.
    avoid: Option<Site>,
    /// The run of Revoking for which a proof was found, and when this leader first found it.
    proven: Option<(Epoch, Boot)>,
    /// The writable site that the priority list named when several wrote and there was no record.
    policy_winner: Option<Site>,
    recovering: recovery::Memory,
    switching: semi_sync::Memory,
    rotating: rotation::Memory,
    cloning: cloning::Memory,
    recloning: reclone::Memory,
    planning: planned::Memory,
    updating: update::Memory,
    caching: cache::Memory,
    /// The move for whose cooldown people were told that it blocks.
    cooldown_told: Option<Wall>,
    /// The run of Revoking and the silent ones of which people were told that it is held.
    held_told: Option<(Option<Epoch>, Vec<Member>)>,
}

/// What is stored, as far as this leader knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stored {
    /// Not read yet, or in doubt since a write went wrong; asked for at that moment, none: not asked yet.
    Unknown(Option<Boot>),
    /// Unreadable: nothing moves, the holder keeps its lease.
    Corrupt(String, Option<Boot>),
    /// This.
    Known(Arc<Kept>),
}

/// What stands in the way of the present move, for people and for `why`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// No proof of release.
    Release(crate::authority::Missing),
    /// The anti-flap cooldown.
    Cooldown(crate::cooldown::Active),
    /// The group is paused.
    Paused,
    /// Nobody may be promoted, and why not.
    NoCandidate(Vec<(Site, crate::candidate::Refusal)>),
    /// The chosen one still applies what it received.
    Draining(Site),
    /// Sets of candidates are being read.
    Reading(Vec<Site>),
    /// A session that fences is being ended.
    EndingFence,
    /// The last attempt failed; the next one waits.
    BackingOff(Boot),
    /// The granted site has not stored its epoch, or is not fenced under it.
    AwaitingTarget(Member),
    /// The granted site's replication is being cut.
    Cutting(Site),
    /// The granted site's commits would not wait for receipts: that could not be switched on yet.
    Receipts(Site),
    /// The granted site is being opened by its sidecar.
    Opening(Site),
    /// Every site was lost at once, and the next pod of this one is on its way: it has everything that was acknowledged.
    NextPod(Site),
    /// A fresh group waits.
    Fresh(Waiting),
    /// A planned failover leads the move.
    Planned,
}

pub use bootstrap::Waiting;

/// What a step comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Step {
    /// What is to be done, in order.
    pub commands: Vec<Command>,
    /// What people are told.
    pub notices: Vec<Notice>,
}

/// What may still be changed, and what may be commanded, in the course of a step. First to last; a part that changes the
/// record ends the round, for what follows has to see it stored.
const PARTS: [fn(&mut Group, Now, &mut Plan<'_>, &mut Step); 13] = [
    Group::note_ends,
    Group::keep_house,
    Group::go_on_with_the_plan,
    Group::go_on_with_the_move,
    Group::start_a_move,
    // Before threads are started: a receiver takes its side up when it connects, and an applier under the source's side waits.
    Group::switch_semi_sync,
    Group::recover,
    Group::heed_reclone_request,
    Group::fill_empty_sites,
    Group::rotate,
    Group::roll_sites,
    Group::tend_cache,
    Group::mark_sites,
];

impl Group {
    /// The leader of that group, just elected.
    pub fn new(spec: Spec, elected: Boot) -> Self {
        Self {
            spec,
            stored: Stored::Unknown(None),
            seen: Seen::new(elected),
            leads_until: None,
            saving: None,
            owed: None,
            save_not_before: Boot(0),
            work: BTreeMap::new(),
            next_id: 0,
            judged: None,
            obstacle: None,
            asked: Vec::new(),
            shown: None,
            ages: Ages::default(),
            clock: elected,
            epoch_seen: (0, elected),
            serves_since: None,
            all_lost: false,
            next_pod_since: None,
            avoid: None,
            proven: None,
            policy_winner: None,
            recovering: recovery::Memory::default(),
            switching: semi_sync::Memory::default(),
            rotating: rotation::Memory::default(),
            cloning: cloning::Memory::default(),
            recloning: reclone::Memory::default(),
            planning: planned::Memory::default(),
            updating: update::Memory::default(),
            caching: cache::Memory::default(),
            cooldown_told: None,
            held_told: None,
        }
    }

    /// Takes one input and returns what is to be done.
    pub fn step(&mut self, now: Now, input: Input) -> Step {
        let mut out = Step::default();
        self.clock = now.boot;
        self.absorb(now, input, &mut out);
        if self.leads(now.boot) {
            self.decide(now, &mut out);
        }
        self.pace(now, &mut out);
        out
    }

    /// What is asked for until it is seen to be done is asked for once a second, not in every step.
    fn pace(&mut self, now: Now, out: &mut Step) {
        self.asked.retain(|(at, _)| now.boot < *at + Millis(1000));
        let asked = &mut self.asked;
        out.commands.retain(|command| {
            let repeated = matches!(
                command,
                Command::RemoveRequest { .. }
                    | Command::Roll { .. }
                    | Command::ReleasePod { .. }
                    | Command::SetCacheImage { .. }
            );
            if repeated && asked.iter().any(|(_, before)| before == command) {
                return false;
            }
            if repeated {
                asked.push((now.boot, command.clone()));
            }
            true
        });
    }

    fn decide(&mut self, now: Now, out: &mut Step) {
        self.doubt_overdue_save(now, out);
        self.load(now, out);
        self.forget_overdue_work(now);
        let Some(kept) = self.kept() else { return };
        self.note_epoch(kept.epoch(), now.boot);
        self.judge(now, &kept, out);
        self.serves_since = self.serving(&kept).and(self.serves_since.or(Some(now.boot)));
        self.push_views(now, &kept, out);
        self.fence_writers(now, &kept, out);
        // Nothing is decided on top of what is not stored, nor while it could not be stored.
        if self.saving.is_none() && now.boot >= self.save_not_before {
            self.obstacle = None;
            let mut plan = Plan::new(&kept, self.owed.take());
            for part in PARTS {
                part(self, now, &mut plan, out);
                if plan.record_changed() {
                    break;
                }
            }
            self.save(now, plan, out);
        }
        self.show(now, out);
    }

    /// Whether this process leads at that moment.
    pub fn leads(&self, now: Boot) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// What is stored, if that is known.
    pub fn kept(&self) -> Option<Arc<Kept>> {
        match &self.stored {
            Stored::Known(kept) => Some(Arc::clone(kept)),
            Stored::Unknown(_) | Stored::Corrupt(..) => None,
        }
    }

    /// Nothing is under way: what was asked for is asked for again.
    pub(crate) fn forget_what_is_under_way(&mut self) {
        self.saving = None;
        self.owed = None;
        self.work.clear();
        self.push_soon(self.clock);
    }

    /// Whether a pause is in force.
    pub fn is_paused(&self, now: Now) -> bool {
        self.spec.pause(now.wall).is_some()
    }

    /// The holder that is confirmed to write: authority is Stable and its site reads writable.
    pub fn serving<'a>(&self, kept: &'a Kept) -> Option<&'a Member> {
        let record = kept.record.as_ref().filter(|record| record.phase == Phase::Stable)?;
        let seat = record.seat.as_ref()?;
        let writable = self.seen.site(&seat.site)?.watch.state == crate::site::State::Writable;
        (writable && self.speaks_for(record, seat)).then_some(seat)
    }

    /// Whether no other instance than this one answers at its site.
    fn speaks_for(&self, record: &Record, member: &Member) -> bool {
        let present = voters::present_instance(record, &self.seen.evidence, &member.site, self.clock);
        present.is_none_or(|present| present.instance == member.instance)
    }

    /// The instance that answers at that site.
    fn present(&self, within: Millis, site: &Site) -> Option<&Instance> {
        let record = match &self.stored {
            Stored::Known(kept) => kept.record.as_ref(),
            Stored::Unknown(_) | Stored::Corrupt(..) => None,
        };
        match record {
            Some(record) => {
                voters::present_instance(record, &self.seen.evidence, site, self.clock).map(|now| &now.instance)
            }
            None => self.seen.site(site)?.present(within, self.clock).map(|(instance, _)| instance),
        }
    }

    fn note_epoch(&mut self, epoch: Epoch, now: Boot) {
        if self.epoch_seen.0 != epoch {
            self.epoch_seen = (epoch, now);
        }
    }
}
