//! All sites together: the verdict of a tick.
//!
//! In: the record (or that there is none), the highest epoch heard, and per site what polls and sidecars say. Out: a
//! [`Judgement`]: one [`Verdict`] with its reason, the alert that people should see, and every writer that has no
//! authority. Must not: guess who has authority from who looks writable; the record says it. Pauses, guards and the
//! cooldown are applied by whoever acts on the verdict.
//!
//! The verdict is the first row of `rows` that fits. The list of `writers` is filled whatever the verdict is.

mod rows;
mod told;
mod verdict;
mod writers;

#[cfg(test)]
mod tests;

pub use verdict::{
    Alert, AuthorityUnknown, Judgement, Lost, NoPrimary, NotServing, RegrantReason, SplitBrain, SplitBrainAnswer,
    Verdict, Writer, WriterReason,
};

use crate::message::FencedBy;
use crate::name::{Instance, Member, Site};
use crate::record::{Epoch, Phase, Record};
use crate::site::{Role, State, Watch};
use bloodraven_gtid::GtidSet;

/// What is known of one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SiteFacts {
    /// Its polls.
    pub watch: Watch,
    /// What it may become.
    pub role: Role,
    /// The instance that answers for the site now; none while its sidecar is silent.
    pub instance: Option<Instance>,
    /// Other instances of the site that report themselves not fenced: a second pod that lives on.
    pub open_strays: Vec<Instance>,
    /// Its set is empty although data are known to exist, see [`data_lost`].
    pub data_lost: bool,
    /// Found writable without a permit, by its sidecar's word or by a poll that its sidecar did not explain. It stays
    /// true after the fence, for it is a request; it is forgotten when the holder serves or the move has ended.
    pub opened_by_hand: bool,
    /// Why its sidecar says it is fenced.
    pub fenced_by: Option<FencedBy>,
}

/// What is known of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Picture<'a> {
    /// The persisted record; none for a group that has no history.
    pub record: Option<&'a Record>,
    /// The highest epoch that any sidecar reported.
    pub highest_heard: Epoch,
    /// All sites, in declared order.
    pub sites: &'a [SiteFacts],
    /// The effective priority list: the preferred site, then the others named.
    pub priorities: &'a [Site],
    /// Polls after which a fenced holder is alerted.
    pub failure_threshold: u32,
    /// A fresh group, shown to be empty everywhere: it starts without waiting for sites that never answered.
    pub fresh_and_empty: bool,
}

/// The verdict of this tick, its alert, and the writers to fence.
pub fn judge(picture: &Picture<'_>) -> Judgement {
    let verdict = rows::first_that_fits(picture);
    let alert = rows::alert(picture, &verdict);
    Judgement { verdict, alert, fence: writers::unauthorised(picture) }
}

/// Whether a site has lost its data: its own set is empty, although the last promotion or another site has
/// transactions.
pub fn data_lost<'a>(own: &GtidSet, last_promotion: &GtidSet, mut others: impl Iterator<Item = &'a GtidSet>) -> bool {
    own.is_empty() && (!last_promotion.is_empty() || others.any(|set| !set.is_empty()))
}

impl SiteFacts {
    /// What the polls say; nothing was heard from the site's sidecar.
    pub fn polled(watch: Watch, role: Role) -> Self {
        Self {
            watch,
            role,
            instance: None,
            open_strays: Vec::new(),
            data_lost: false,
            opened_by_hand: false,
            fenced_by: None,
        }
    }

    fn site(&self) -> &Site {
        &self.watch.site
    }

    fn is(&self, state: State) -> bool {
        self.watch.state == state
    }
}

impl<'a> Picture<'a> {
    /// Who has authority, or had it last while it is being moved.
    fn holder(&self) -> Option<&'a Member> {
        let record = self.record?;
        record.seat.as_ref().or_else(|| record.holder.as_ref().map(|holder| &holder.member))
    }

    /// What is known of the holder's site, whichever instance answers there.
    fn holder_site(&self) -> Option<&'a SiteFacts> {
        let holder = self.holder()?;
        self.sites.iter().find(|facts| *facts.site() == holder.site)
    }

    /// Whether the holder itself answers at that site. While its sidecar is silent, nothing speaks against it.
    fn is_holder(&self, facts: &SiteFacts) -> bool {
        self.holder().is_some_and(|holder| {
            *facts.site() == holder.site && facts.instance.as_ref().is_none_or(|now| *now == holder.instance)
        })
    }

    /// Whether that instance of that site may be writable.
    fn may_write(&self, site: &Site, instance: Option<&Instance>) -> bool {
        let Some(record) = self.record.filter(|record| record.phase != Phase::Revoking) else { return false };
        record.seat.as_ref().is_some_and(|seat| seat.site == *site && instance.is_none_or(|now| *now == seat.instance))
    }

    /// An epoch above the record's was heard: the record went back in time.
    fn record_is_behind(&self) -> bool {
        self.record.is_some_and(|record| self.highest_heard > record.epoch)
    }

    /// The sites in that state.
    fn sites_in(&self, state: State) -> Vec<Site> {
        self.sites.iter().filter(|facts| facts.is(state)).map(|facts| facts.site().clone()).collect()
    }
}
