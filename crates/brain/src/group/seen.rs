//! What this leader has seen and heard since its election. It dies with the leader.

use super::accounts::Credentials;
use super::input::CacheFacts;
use super::input::{Estate, Facts, Requests, Shown};
use crate::authority::Evidence;
use crate::candidate::Progress;
use crate::candidate::drain::Drain;
use crate::cooldown::LastFailover;
use crate::message::{Ack, Question};
use crate::name::{Instance, Member, Site};
use crate::record::Epoch;
use crate::site::Watch;
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// What sidecars said, as far as proofs rest on it.
    pub evidence: Evidence,
    /// Each declared site.
    pub sites: BTreeMap<Site, SiteSeen>,
    /// Pods and volumes; none: not told yet.
    pub estate: Option<Estate>,
    /// Requests that stand on the group.
    pub requests: Requests,
    /// Which credentials there are; none: not told yet.
    pub credentials: Option<Credentials>,
    /// Older stores of a pod that reported a newer one: ended, and not written down yet.
    pub superseded: Vec<Member>,
    /// The last move, on the steady clock.
    pub last_failover: Option<LastFailover>,
    /// How far the outside follows.
    pub shown: Option<Shown>,
    /// Since when authority is held up without a writer; for backing off.
    pub attempt: Attempt,
}

/// Failed attempts at the present move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// How many in a row.
    pub failures: u32,
    /// Not before.
    pub not_before: Boot,
}

/// One site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SiteSeen {
    /// Its polls.
    pub watch: Watch,
    /// The last answer of its server.
    pub facts: Option<Arc<Facts>>,
    /// The record's epoch when the reading of `facts` began.
    pub facts_under: Epoch,
    /// When `facts` came.
    pub facts_at: Boot,
    /// When the reading of `facts` began, at the earliest.
    pub facts_begun: Boot,
    /// Polls in a row in which it followed the holder, both threads running.
    pub following: u32,
    /// When it was last connected and caught up.
    pub caught_up_at: Option<Boot>,
    /// Since when it waits for receipts and nobody is connected who gives any.
    pub lonely_since: Option<Boot>,
    /// What its instances said last, directly or handed on.
    pub words: BTreeMap<Instance, Heard>,
    /// When a question that rode on an acknowledgement was last answered, and whether with the word to open.
    pub granted: Option<(Boot, bool)>,
    /// The last question that rode on an acknowledgement and got no answer: it is still outstanding.
    pub unanswered: Option<Question>,
    /// A push is on its way since.
    pub pushing: Option<Boot>,
    /// The last push was refused, or did not arrive.
    pub push_failed: bool,
    /// When the next push is due.
    pub push_due: Boot,
    /// Its drain in the present run of Revoking.
    pub drain: Option<DrainSeen>,
    /// It was opened by hand, known since then; a request until the holder is seen to serve after that, or the move has
    /// ended.
    pub opened_by_hand: Option<Boot>,
    /// That request is over, however long its sidecar goes on telling of it.
    pub hand_is_over: bool,
    /// When the next reading may be asked for.
    pub read_due: Boot,
    /// When the next SQL fence may be sent.
    pub fence_due: Boot,
    /// Failed tasks that change replication, in a row, and when the next may be tried.
    pub change: Attempt,
    /// What its cache said last; the outer none: not polled yet, the inner: it does not answer.
    pub cache: Option<Option<CacheFacts>>,
}

/// A drain, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DrainSeen {
    /// The run of Revoking it belongs to.
    pub revoked_at: Epoch,
    /// Its own state.
    pub drain: Drain,
    /// How far it is.
    pub progress: Progress,
}

/// What an instance said last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Heard {
    /// Its acknowledgement.
    pub ack: Ack,
    /// When it spoke.
    pub at: Boot,
    /// The peer that handed it on.
    pub via: Option<Site>,
}

impl Seen {
    /// A leader that was just elected and has heard nothing.
    pub fn new(elected: Boot) -> Self {
        Self {
            evidence: Evidence::new(elected),
            sites: BTreeMap::new(),
            estate: None,
            requests: Requests::default(),
            credentials: None,
            superseded: Vec::new(),
            last_failover: None,
            shown: None,
            attempt: Attempt::default(),
        }
    }

    /// That site, if it is declared.
    pub fn site(&self, site: &Site) -> Option<&SiteSeen> {
        self.sites.get(site)
    }

    /// What that very instance said last, if it spoke within that time.
    pub fn word_of(&self, member: &Member, within: Millis, now: Boot) -> Option<&Ack> {
        let heard = self.sites.get(&member.site)?.words.get(&member.instance)?;
        (now < heard.at + within).then_some(&heard.ack)
    }
}

impl Attempt {
    /// Whether the next one may be made.
    pub fn may_try(&self, now: Boot) -> bool {
        now >= self.not_before
    }

    /// One more failed: 5, 10, 20, then 30 s.
    pub fn failed(&mut self, now: Boot) {
        let pause = match self.failures {
            0 => 5,
            1 => 10,
            2 => 20,
            _ => 30,
        };
        self.failures = self.failures.saturating_add(1).min(4);
        self.not_before = now + Millis::from_secs(pause);
    }

    /// One went well.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }
}

impl SiteSeen {
    /// A site that was neither polled nor heard.
    pub fn new(site: &Site) -> Self {
        Self {
            watch: Watch::new(site),
            facts: None,
            facts_under: 0,
            facts_at: Boot(0),
            facts_begun: Boot(0),
            following: 0,
            caught_up_at: None,
            lonely_since: None,
            words: BTreeMap::new(),
            granted: None,
            unanswered: None,
            pushing: None,
            push_failed: false,
            push_due: Boot(0),
            drain: None,
            opened_by_hand: None,
            hand_is_over: false,
            read_due: Boot(0),
            fence_due: Boot(0),
            change: Attempt::default(),
            cache: None,
        }
    }

    /// Its sidecar says whether somebody opened it, and goes on saying so for a while: each opening is one wish.
    pub(super) fn hear_of_hand(&mut self, told: bool, now: Boot) {
        self.hand_is_over &= told;
        if told && !self.hand_is_over {
            self.opened_by_hand.get_or_insert(now);
        }
    }

    /// The wish is fulfilled, or was none.
    pub(super) fn forget_hand(&mut self) {
        self.opened_by_hand = None;
        self.hand_is_over = self.words.values().any(|heard| heard.ack.opened_by_hand);
    }

    /// The instance that speaks for the site now: the youngest that was heard within that time.
    pub fn present(&self, within: Millis, now: Boot) -> Option<(&Instance, &Heard)> {
        let speaks = |heard: &&Heard| now < heard.at + within;
        let born = |heard: &Heard| heard.at - heard.ack.uptime;
        self.words.iter().filter(|(_, heard)| speaks(heard)).max_by_key(|(_, heard)| (born(heard), heard.at))
    }

    /// What the server has executed, as last read.
    pub fn executed(&self) -> Option<&GtidSet> {
        Some(&self.facts.as_ref()?.data.as_ref()?.executed)
    }

    /// Whether the server was read in an epoch not below that one.
    pub fn read_since(&self, epoch: Epoch) -> bool {
        self.facts.is_some() && self.facts_under >= epoch
    }

    /// Takes what an instance said. Of one instance the newest stays.
    pub(super) fn hear(&mut self, ack: Ack, lay: Millis, via: Option<Site>, now: Boot) {
        let at = now - lay;
        let instance = &ack.from.instance;
        // What was read of the life before says nothing of a new one.
        let new_life = via.is_none() && !self.words.is_empty() && !self.words.contains_key(instance);
        self.following = if new_life { 0 } else { self.following };
        match self.words.get_mut(instance) {
            Some(heard) if at < heard.at => {}
            Some(heard) => *heard = Heard { ack, at, via },
            None => drop(self.words.insert(instance.clone(), Heard { ack, at, via })),
        }
    }
}
