//! What leader and sidecars say to each other, as the brain sees it; bytes and signatures are the hands' business.
//!
//! A *question* carries an id that only the asker's present life knows. A *grant* is the leader's answer "this epoch is
//! yours", a *vouch* is a voter's answer "I have stored that epoch and know nothing newer". An answer counts only for an
//! outstanding question and from the moment the question was sent. An *acknowledgement* says what was stored.

use crate::name::{Member, Site};
use crate::record::{Epoch, View};
use crate::time::Millis;
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

/// Names a question within one life of the asker; the hands tie it to an unguessable nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// One start of mysqld under its keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartId(pub u64);

/// "May I write?", put to the leader or to a voter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// For the answer.
    pub id: QuestionId,
    /// Who asks.
    pub from: Member,
    /// Under which epoch.
    pub epoch: Epoch,
    /// Whether the asker is fenced and would open.
    pub open: bool,
}

/// The leader's answer to a question: the epoch is the asker's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The question answered.
    pub id: QuestionId,
    /// Whose epoch it is.
    pub to: Member,
    /// The leader's view.
    pub view: View,
    /// Set when the asker may open for the first time in this tenure, or again.
    pub open: Option<OpeningWord>,
}

/// What an opening has to satisfy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpeningWord {
    /// The first opening of a tenure needs an executed set that contains this one.
    pub promotion_gtid: GtidSet,
    /// What the choice gave up, per site; the data gate leaves it out.
    pub excused: BTreeMap<Site, GtidSet>,
}

/// A voter's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vouch {
    /// The question answered.
    pub id: QuestionId,
    /// The epoch it speaks of.
    pub epoch: Epoch,
    /// Who answers.
    pub from: Member,
    /// About whom.
    pub about: Member,
    /// Whether it vouches; a refusal still tells that the voter lives.
    pub ok: bool,
    /// The answerer's executed set, when asked for an opening.
    pub gtid: Option<GtidSet>,
    /// The answerer's own acknowledgement, to be handed on.
    pub ack: Box<Ack>,
}

/// "I have stored this epoch", with what the sidecar knows about itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ack {
    /// Who speaks.
    pub from: Member,
    /// The highest epoch on its disk; none: it has never stored one.
    pub epoch: Option<Epoch>,
    /// Both variables read as 1 after that epoch was stored and no opening in flight, or mysqld not running.
    pub fenced: bool,
    /// The executed set read after the fence; none when mysqld does not run.
    pub gtid: Option<GtidSet>,
    /// Why it is fenced.
    pub fenced_by: Option<FencedBy>,
    /// Found writable without a permit.
    pub opened_by_hand: bool,
    /// Two views of this epoch were seen.
    pub conflict: bool,
    /// Whether mysqld runs, and which start.
    pub mysqld: Option<StartId>,
    /// How long ago it last vouched for each site; a site that it does not remember: its own uptime.
    pub last_vouch: BTreeMap<Site, Millis>,
    /// How long ago it last had an answer from each site.
    pub last_answer: BTreeMap<Site, Millis>,
    /// How long this life of the sidecar has lasted: no vouch of it is older, none of an earlier life is younger.
    pub uptime: Millis,
}

/// Why a server is fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FencedBy {
    /// It came up fenced and was not opened since.
    Boot,
    /// The view names somebody else, or nobody.
    Mismatch,
    /// The lease ran out.
    Lease,
    /// Two views of one epoch.
    Conflict,
    /// Somebody else did it: a human, or the operator's SQL fence.
    Others,
}

impl Ack {
    /// How long ago, at most, the speaker last vouched for that site.
    pub fn last_vouch_age(&self, site: &Site) -> Millis {
        self.last_vouch.get(site).copied().unwrap_or(self.uptime).min(self.uptime)
    }
}
