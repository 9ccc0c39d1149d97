//! A group without a known holder: a new one, one that was made anew over kept volumes, or one whose record went back in
//! time. Nobody is granted anything before every site is known to be closed.

use super::save::Plan;
use super::{Group, Notice, Obstacle};
use crate::authority::{self, Fresh, Missing, Release};
use crate::candidate::Progress;
use crate::cooldown::{self, Reach};
use crate::name::{Member, Site};
use crate::record::{Cause, Phase, Record};
use crate::site::State;
use crate::time::Now;
use crate::topology::{AuthorityUnknown, SplitBrain, SplitBrainAnswer};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;
use std::fmt;

/// What a group without a known holder waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Nobody has spoken yet.
    ForAnyone,
    /// Several sites write, and no priority list says which one stays.
    SplitBrain(Vec<Site>),
    /// These sites have not spoken, or are not listed yet.
    Unheard(Vec<Site>),
    /// Not all are known to be closed for long enough.
    Release(Missing),
    /// A pod exists whose instance nobody has heard.
    UnknownInstance,
    /// The move that the priority list asks for comes too soon after the last one.
    Cooldown(cooldown::Active),
    /// Data exist, and these sites do not answer.
    Unreachable(Vec<Site>),
    /// The one that holds most still applies what it received.
    Draining(Site),
    /// No site holds all that the others hold, and no priority list says which one to take.
    Incomparable(Vec<Site>),
    /// What there is, is on a site that is never promoted.
    NoCandidate(Vec<Site>),
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |sites: &[Site]| sites.iter().map(Site::as_str).collect::<Vec<_>>().join(", ");
        match self {
            Self::ForAnyone => f.write_str("no sidecar has answered yet"),
            Self::SplitBrain(sites) => {
                write!(f, "{} are writable; name one in splitBrainPolicy.preferSite", names(sites))
            }
            Self::Unheard(sites) => write!(f, "waiting for {} to answer", names(sites)),
            Self::Release(missing) if missing.silent.is_empty() => f.write_str("waiting until every lease has run out"),
            Self::Release(missing) => {
                let silent: Vec<&str> = missing.silent.iter().map(|member| member.site.as_str()).collect();
                write!(f, "waiting until {} is known to be fenced", silent.join(", "))
            }
            Self::Cooldown(active) => write!(f, "the cooldown is in force until {}", active.retry_after),
            Self::UnknownInstance => f.write_str("a pod exists whose sidecar has not answered"),
            Self::Unreachable(sites) => write!(f, "there are data, and {} cannot be compared", names(sites)),
            Self::Draining(site) => write!(f, "{site} applies what it received"),
            Self::Incomparable(sites) => {
                write!(f, "each of {} has what the others lack; name one in splitBrainPolicy.preferSite", names(sites))
            }
            Self::NoCandidate(sites) => write!(f, "only {} has data, and it is never promoted", names(sites)),
        }
    }
}

impl Group {
    /// A first record, or one above every epoch heard: Revoking, and nobody known as the holder.
    pub(super) fn start_over(&mut self, now: Now, why: &AuthorityUnknown, plan: &mut Plan<'_>) {
        let cause = match why {
            AuthorityUnknown::RecordBehind { .. } => Cause::RecordBehind,
            AuthorityUnknown::NoRecord { split_brain: None } => Cause::Bootstrap,
            AuthorityUnknown::NoRecord { split_brain: Some(SplitBrain { writable, answer }) } => match answer {
                SplitBrainAnswer::PolicyWinner(site) => {
                    self.policy_winner = Some(site.clone());
                    Cause::SplitBrain
                }
                SplitBrainAnswer::AlertOnly | SplitBrainAnswer::RecordStands(_) => {
                    self.obstacle = Some(Obstacle::Fresh(Waiting::SplitBrain(writable.clone())));
                    return;
                }
            },
        };
        if plan.kept.record.as_ref().is_some_and(|record| record.phase == Phase::Revoking && record.holder.is_none())
            && cause != Cause::RecordBehind
        {
            return;
        }
        let voters = self.everyone_heard(plan.kept.record.as_ref());
        if voters.is_empty() {
            self.obstacle = Some(Obstacle::Fresh(Waiting::ForAnyone));
            return;
        }
        let highest = self.seen.evidence.highest.max(plan.kept.epoch());
        plan.say(Notice::MoveStarted { cause, because: format!("no holder is known; highest epoch heard: {highest}") });
        plan.set_record(authority::start_over(highest, voters, self.spec.lease, cause, now.wall));
    }

    fn everyone_heard(&self, record: Option<&Record>) -> Vec<Member> {
        let lease = self.lease(record);
        let member = |site: &Site| Some(Member::new(site, self.present(lease, site)?));
        self.spec.sites.iter().filter_map(|spec| member(&spec.site)).collect()
    }

    /// Goes on with a record that has no holder.
    pub(super) fn settle_fresh(&mut self, now: Now, record: &Record, plan: &mut Plan<'_>) {
        let chosen = match self.fresh_release(record) {
            Some(release) => self.seed(record).map(|seed| (release, seed, BTreeMap::new())),
            None => self.with_data(now, record).map_err(Some),
        };
        match chosen {
            Ok((release, target, given_up)) => {
                self.give(now, record, &release, &target, given_up, GtidSet::new(), plan);
            }
            Err(Some(Waiting::Cooldown(active))) => self.obstacle = Some(Obstacle::Cooldown(active)),
            Err(Some(waiting)) => self.obstacle = Some(Obstacle::Fresh(waiting)),
            Err(None) => {}
        }
    }

    /// The shortcut: every volume is this group's own, and every site is empty and knows no epoch, or never started.
    fn fresh_release(&self, record: &Record) -> Option<Release> {
        let estate = self.seen.estate.as_ref()?;
        let fresh = |site: &Site| {
            let own_volume = estate.own_volumes.contains(site);
            let never_started = !estate.pods.iter().any(|pod| pod.site == *site && pod.started);
            Fresh { own_volume, never_started, says_empty: self.says_empty(record, site) }
        };
        let sites: Vec<Fresh> = self.spec.sites.iter().map(|spec| fresh(&spec.site)).collect();
        authority::release_of_fresh(record, &sites)
    }

    /// Its sidecar knows no epoch but those of this very beginning, and its server has nothing.
    fn says_empty(&self, record: &Record, site: &Site) -> bool {
        let Some(seen) = self.seen.site(site) else { return false };
        let Some((_, heard)) = seen.present(record.settings.lease_timeout, self.clock) else { return false };
        let of_this_beginning =
            heard.ack.epoch.is_none_or(|epoch| Some(epoch) >= record.revoked_at && epoch <= record.epoch);
        let nothing = heard.ack.gtid.as_ref().is_none_or(GtidSet::is_empty);
        let polled_empty = seen
            .facts
            .as_ref()
            .is_some_and(|facts| !facts.user_data && facts.data.as_ref().is_some_and(|data| data.held().is_empty()));
        of_this_beginning && nothing && heard.ack.fenced && polled_empty
    }

    /// Whether the shortcut may be in reach, before there is a record.
    pub(super) fn is_fresh_and_empty(&self) -> bool {
        let Some(estate) = &self.seen.estate else { return false };
        let fresh = |site: &Site| {
            let started = estate.pods.iter().any(|pod| pod.site == *site && pod.started);
            let empty = self.seen.site(site).is_some_and(|seen| {
                let nothing = |set: &GtidSet| set.is_empty();
                let quiet = seen.words.values().all(|heard| heard.ack.epoch.is_none());
                !seen.words.is_empty() && quiet && seen.executed().is_some_and(nothing)
            });
            estate.own_volumes.contains(site) && (!started || empty)
        };
        self.spec.sites.iter().all(|spec| fresh(&spec.site))
    }

    fn seed(&self, record: &Record) -> Result<Member, Option<Waiting>> {
        let Some(site) = self.spec.seed() else { return Err(None) };
        let unheard = || Some(Waiting::Unheard(vec![site.clone()]));
        let member = Member::new(site, record.voter_at(site).ok_or_else(unheard)?);
        let closed = self.seen.evidence.acknowledged_fenced(record, &member);
        if closed { Ok(member) } else { Err(unheard()) }
    }

    /// Every site is known, closed for a lease, and compared.
    fn with_data(&mut self, now: Now, record: &Record) -> Result<(Release, Member, BTreeMap<Site, GtidSet>), Waiting> {
        let unheard: Vec<Site> = self.spec.names().into_iter().filter(|site| record.voter_at(site).is_none()).collect();
        if !unheard.is_empty() {
            return Err(Waiting::Unheard(unheard));
        }
        let unknown = self.unknown_instances(record);
        let release = match authority::release_of_all(record, &self.seen.evidence, unknown, now) {
            Ok(release) => release,
            Err(_) if unknown => return Err(Waiting::UnknownInstance),
            Err(missing) => return Err(Waiting::Release(missing)),
        };
        let since = self.proven_since(record, now);
        let silent = |site: &Site| {
            let read = self.seen.site(site).is_some_and(|seen| {
                seen.facts_begun >= since && seen.watch.state == State::ReadOnly && seen.executed().is_some()
            });
            !read
        };
        let silent: Vec<Site> = self.spec.names().into_iter().filter(silent).collect();
        if !silent.is_empty() {
            return Err(Waiting::Unreachable(silent));
        }
        let (target, given_up) = self.holds_most(record)?;
        if record.cause == Cause::SplitBrain
            && let Err(active) = cooldown::may_start(
                Cause::SplitBrain,
                Reach::OtherSite,
                self.seen.last_failover.as_ref(),
                self.spec.cooldown,
                now.boot,
            )
        {
            return Err(Waiting::Cooldown(active));
        }
        Ok((release, target, given_up))
    }

    /// A pod of this group that may run, and of which no instance is asked.
    fn unknown_instances(&self, record: &Record) -> bool {
        let Some(estate) = &self.seen.estate else { return true };
        let asked = |uid: &str| record.voters.iter().any(|voter| *voter.instance.pod == *uid);
        estate.pods.iter().any(|pod| !pod.has_ended() && pod.started && !asked(&pod.uid))
    }

    fn held(&self, site: &Site) -> GtidSet {
        let data = self.seen.site(site).and_then(|seen| seen.facts.as_ref()?.data.as_ref());
        data.map(crate::candidate::Data::held).unwrap_or_default()
    }

    /// All empty: the seed. Else the site that holds all that the others hold; else the priority list; else nobody.
    fn holds_most(&self, record: &Record) -> Result<(Member, BTreeMap<Site, GtidSet>), Waiting> {
        let held: BTreeMap<Site, GtidSet> =
            self.spec.names().into_iter().map(|site| (site.clone(), self.held(&site))).collect();
        if held.values().all(GtidSet::is_empty) {
            let seed = self.seed(record).map_err(|waiting| waiting.unwrap_or(Waiting::ForAnyone))?;
            return Ok((seed, BTreeMap::new()));
        }
        let eligible: Vec<&Site> =
            self.spec.sites.iter().map(|spec| &spec.site).filter(|site| self.spec.is_candidate(site)).collect();
        let contains_all =
            |site: &&&Site| held.values().all(|other| held.get(**site).is_some_and(|own| own.contains(other)));
        let by_list = || {
            let winner = self.policy_winner.iter().filter(|_| record.cause == Cause::SplitBrain);
            let has_data = |site: &&Site| eligible.contains(site) && held.get(*site).is_some_and(|set| !set.is_empty());
            winner.chain(&self.spec.priorities).find(has_data).cloned()
        };
        let first = eligible.iter().find(contains_all).map(|site| (*site).clone());
        let first = if record.cause == Cause::SplitBrain { by_list().or(first) } else { first.or_else(by_list) };
        let Some(chosen) = first else {
            let sites: Vec<Site> =
                held.iter().filter(|(_, set)| !set.is_empty()).map(|(site, _)| site.clone()).collect();
            let promotable = sites.iter().any(|site| self.spec.is_candidate(site));
            return Err(if promotable { Waiting::Incomparable(sites) } else { Waiting::NoCandidate(sites) });
        };
        if self.drain_of(record, &chosen) == Progress::Pending {
            return Err(Waiting::Draining(chosen));
        }
        let own = held.get(&chosen).cloned().unwrap_or_default();
        let given_up =
            held.iter().filter(|(site, _)| **site != chosen).map(|(site, set)| (site.clone(), set.subtract(&own)));
        let given_up = given_up.filter(|(_, set)| !set.is_empty()).collect();
        let instance = record.voter_at(&chosen).ok_or_else(|| Waiting::Unheard(vec![chosen.clone()]))?;
        Ok((Member::new(&chosen, instance), given_up))
    }
}
