//! What one leader has heard since its election. It dies with the leader; a new one starts empty and counts what it did
//! not see from its own election.

use crate::message::Ack;
use crate::name::{Member, Site};
use crate::record::{Epoch, Record};
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use std::collections::{BTreeMap, BTreeSet};

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// When this leader was elected. Grants of earlier leaders are no later.
    pub elected: Boot,
    /// The last grant that this leader answered.
    pub last_grant: Option<Boot>,
    /// The run of Revoking that `released`, `fenced` and `gtid` below speak of.
    pub run: Option<Run>,
    /// What each instance said.
    pub heard: BTreeMap<Member, Heard>,
    /// Ends that this leader saw itself.
    pub ended: BTreeMap<Member, Boot>,
    /// For each voter set: the holder's first acknowledgement of a later epoch.
    pub set_clocks: BTreeMap<Epoch, Boot>,
    /// Living instances that were voters since this leader's election, also those that were replaced.
    pub has_voted: BTreeSet<Member>,
    /// The highest epoch anyone reported. Above the record's: the record went back in time.
    pub highest: Epoch,
}

/// A run of Revoking, as this leader came to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Its first epoch.
    pub revoked_at: Epoch,
    /// When this leader first took anything in it.
    pub since: Boot,
}

/// What one instance said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Heard {
    /// When it last spoke, directly or through a peer.
    pub at: Boot,
    /// The highest epoch it has stored.
    pub epoch: Option<Epoch>,
    /// In the present run of Revoking: its last vouch for the holder was no later than this. Of several
    /// acknowledgements the earliest result stays, so that a voter that restarts each second does not delay anything.
    pub released: Option<Boot>,
    /// In the present run of Revoking: it acknowledged, fenced.
    pub fenced: bool,
    /// Its executed set, read after the fence.
    pub gtid: Option<GtidSet>,
    /// When its sidecar started, at the earliest.
    pub started: Boot,
    /// How long ago each site last answered it, at the time it spoke.
    pub last_answer: BTreeMap<Site, Millis>,
    /// Two views of its epoch were seen.
    pub conflict: bool,
}

impl Evidence {
    /// A leader that was just elected.
    pub fn new(elected: Boot) -> Self {
        Self {
            elected,
            last_grant: None,
            run: None,
            heard: BTreeMap::new(),
            ended: BTreeMap::new(),
            set_clocks: BTreeMap::new(),
            has_voted: BTreeSet::new(),
            highest: 0,
        }
    }

    /// Takes an acknowledgement that was received now and, if a peer handed it on, lay there for `lay`.
    pub fn take(&mut self, record: &Record, ack: &Ack, now: Boot, lay: Millis) {
        let spoken = if off(Rule::RelayedWithItsAge) { now } else { now - lay };
        self.enter_run(record, now);
        self.highest = self.highest.max(ack.epoch.unwrap_or(0));
        // Nearly always it is known already, and its name need not be copied.
        if !self.heard.contains_key(&ack.from) {
            self.heard.insert(ack.from.clone(), Heard::default());
        }
        let Some(heard) = self.heard.get_mut(&ack.from) else { return };
        let news = spoken >= heard.at;
        heard.epoch = heard.epoch.max(ack.epoch);
        heard.at = heard.at.max(spoken);
        heard.started = heard.started.max(spoken - ack.uptime);
        if news {
            heard.last_answer.clone_from(&ack.last_answer);
            heard.conflict = ack.conflict;
        }
        if let Some(revoked_at) = record.revoked_at
            && holds(Rule::AckOfThisRun, ack.epoch >= Some(revoked_at))
        {
            let site = record.holder.as_ref().map(|holder| &holder.member.site);
            let age = site.map_or(Millis(0), |site| last_vouch_age(ack, site));
            let vouched = spoken - age;
            let earlier = heard.released.filter(|_| !off(Rule::EarliestStays));
            heard.released = Some(earlier.map_or(vouched, |earlier| earlier.min(vouched)));
            if news {
                heard.fenced = ack.fenced;
                heard.gtid.clone_from(&ack.gtid);
            }
        }
        self.start_set_clocks(record, ack, now);
        for voter in &record.voters {
            if !self.has_voted.contains(voter) {
                self.has_voted.insert(voter.clone());
            }
        }
        self.forget_strangers(record, now);
    }

    /// What was said in an earlier run of Revoking says nothing about this one: about another holder, or about the same
    /// one before it was given authority anew. Called by [`Self::take`]; to be called as soon as Revoking is persisted,
    /// too, for the time of [`crate::record::ProofKind::Assumed`] counts from it.
    pub fn enter_run(&mut self, record: &Record, now: Boot) {
        if let Some(revoked_at) = record.revoked_at
            && self.run.is_none_or(|run| run.revoked_at != revoked_at)
        {
            if !off(Rule::RunsAreApart) {
                self.forget_run();
            }
            self.run = Some(Run { revoked_at, since: now });
        }
    }

    /// Instances that the record lists nowhere are remembered while they speak: they may be taken in. Bounds the memory.
    fn forget_strangers(&mut self, record: &Record, now: Boot) {
        let lease = record.settings.lease_timeout;
        self.heard.retain(|member, heard| now < heard.at + lease || record.lists(member));
        self.ended.retain(|member, _| record.lists(member));
        self.has_voted.retain(|member| self.heard.contains_key(member));
    }

    /// An old set's clock starts with the holder's first acknowledgement of any later epoch.
    fn start_set_clocks(&mut self, record: &Record, ack: &Ack, now: Boot) {
        let Some(holder) = record.holder.as_ref().filter(|holder| holder.member == ack.from) else { return };
        for set in &holder.sets {
            if holds(Rule::SetLeavesAfterAck, ack.epoch > Some(set.epoch)) {
                self.set_clocks.entry(set.epoch).or_insert(now);
            }
        }
        self.set_clocks.retain(|epoch, _| holder.sets.iter().any(|set| set.epoch == *epoch));
    }

    /// A new run of Revoking begins, or one has ended: what was said in an earlier one says nothing about this one.
    pub fn forget_run(&mut self) {
        for heard in self.heard.values_mut() {
            heard.released = None;
            heard.fenced = false;
            heard.gtid = None;
        }
    }

    /// This leader saw that instance end.
    pub fn take_end(&mut self, member: &Member, now: Boot) {
        self.ended.entry(member.clone()).or_insert(now);
    }

    /// Whether that instance acknowledged an epoch of the present run of Revoking, fenced.
    pub fn acknowledged_fenced(&self, record: &Record, member: &Member) -> bool {
        self.heard_in_run(record, member).is_some_and(|heard| holds(Rule::FencedMeansFenced, heard.fenced))
    }

    /// What that instance said in the present run of Revoking, if it acknowledged an epoch of it.
    pub(super) fn heard_in_run(&self, record: &Record, member: &Member) -> Option<&Heard> {
        let run = self.run.filter(|run| record.revoked_at == Some(run.revoked_at))?;
        let said = self.heard.get(member).or_else(|| self.said_by_a_stranger(member));
        said.filter(|heard| holds(Rule::AckOfThisRun, heard.epoch >= Some(run.revoked_at)))
    }

    /// What another life of that site said. It counts for nothing.
    fn said_by_a_stranger(&self, member: &Member) -> Option<&Heard> {
        let of_site = self.heard.iter().find(|(other, _)| other.site == member.site);
        of_site.filter(|_| off(Rule::StrangersCountForNothing)).map(|(_, heard)| heard)
    }

    /// The last moment at which the holder can have got a grant.
    pub fn last_grant(&self) -> Boot {
        let elected = if off(Rule::GrantsFromElection) { Boot(0) } else { self.elected };
        let answered = self.last_grant.filter(|_| !off(Rule::FromLastGrant));
        answered.map_or(elected, |granted| granted.max(elected))
    }
}

/// How long ago, at most, the speaker last vouched for that site: what it does not remember may be as young as itself.
fn last_vouch_age(ack: &Ack, site: &Site) -> Millis {
    if off(Rule::UptimeBoundsMemory) {
        return ack.last_vouch.get(site).copied().unwrap_or(Millis(u64::MAX));
    }
    ack.last_vouch_age(site)
}
