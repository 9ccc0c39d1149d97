//! What an opening has to satisfy, and what it need not: the word that the leader gives with its grant.

use super::{Group, Kept};
use crate::message::OpeningWord;
use crate::name::Site;
use crate::record::Phase;
use bloodraven_gtid::{GtidSet, Uuid};

impl Group {
    /// The word; none while the granted site's replication is not known to be cut.
    pub(super) fn opening_word(&self, kept: &Kept) -> Option<OpeningWord> {
        let record = kept.record.as_ref()?;
        let promotion_gtid = match (record.phase, &kept.promotion) {
            (Phase::Granting | Phase::Stable, Some(promotion)) => promotion.clone(),
            (Phase::Stable, None) => GtidSet::new(),
            (Phase::Granting, None) | (Phase::Revoking, _) => return None,
        };
        let seat = record.seat.as_ref().map(|seat| &seat.site);
        let others = self.seen.sites.keys().chain(kept.sites.keys());
        let excused = others.filter(|site| Some(*site) != seat).filter_map(|site| {
            let given_up = self.given_up(kept, site);
            (!given_up.is_empty()).then(|| (site.clone(), given_up))
        });
        Some(OpeningWord { promotion_gtid, excused: excused.collect() })
    }

    /// What that site may have and the holder need not: reported as divergent, given up when the holder was promoted, or
    /// stranded there.
    ///
    /// Since the holder was opened nobody but its own server makes transactions that count. What another server made and
    /// the promotion did not have was never part of its history, reported yet or not; a holder that restarts before the
    /// old primary was compared must not stay closed for it.
    pub(super) fn given_up(&self, kept: &Kept, site: &Site) -> GtidSet {
        let told = kept.sites.get(site).map(|kept| kept.divergent.clone()).unwrap_or_default().union(&kept.unapplied);
        let holder = kept.record.as_ref().and_then(|record| record.holder.as_ref());
        let server: Option<Uuid> = holder.and_then(|holder| holder.server_uuid.as_ref()?.parse().ok());
        let theirs = self.seen.site(site).and_then(|seen| seen.executed());
        match (server, &kept.promotion, theirs) {
            (Some(server), Some(promotion), Some(theirs)) => {
                let mut stranded = theirs.subtract(promotion);
                let makers: Vec<Uuid> = stranded.uuids().filter(|maker| *maker != server).collect();
                stranded.retain_uuids(&makers);
                told.union(&stranded)
            }
            _ => told,
        }
    }
}
