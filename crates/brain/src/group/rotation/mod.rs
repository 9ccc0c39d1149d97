//! New passwords: read from the Secrets by others, set on the primary, taken up by the channels of its followers.
//!
//! In: the version of the Secrets, what each server says to logins with it, the one confirmed primary. Out: tasks that log
//! in, set, and renew a channel; what people are told. Must not: know a password; set one anywhere but at the confirmed
//! primary (the others get it by the ordinary binary log), in the middle of a move, or while the group is paused.
//!
//! The password before stays good until whoever uses it can have the new one: files beside a server come a minute or two after
//! the Secret, and a sidecar that cannot log in can only kill its server to fence it. Then it is discarded, at the primary, too.
//! A server knows two passwords of an account, no more: a further change waits until the one before the last has been given up.
//!
//! A login is the only proof. Servers are asked when the Secrets change, when a server starts (its accounts are then as its
//! mounted files say, which may be older than the Secrets), when another site becomes primary, and once in a while. What the
//! primary refuses is set there. What a follower refuses although it has caught up is set at the primary once more: nothing
//! else reaches a closed server.

#[cfg(test)]
mod tests;

use super::accounts::{AccountRole, Channel, Credentials, CredentialsVersion, Logins, NO_SUCH_ACCOUNT};
use super::command::{Lane, Task};
use super::input::Outcome;
use super::recovery::Footing;
use super::save::Plan;
use super::seen::Attempt;
use super::{Group, Notice, Step};
use crate::candidate::drain::{Applier, Receiver};
use crate::message::StartId;
use crate::name::Site;
use crate::record::Epoch;
use crate::time::{Boot, Millis, Now};
use std::collections::{BTreeMap, BTreeSet};

/// A server that let everybody in is asked again after so long: somebody may have changed a password by hand.
const ASK_AGAIN: Millis = Millis::from_secs(600);

/// Between two times that the same passwords are set: each is a transaction. What arrives late has arrived by then.
const SET_AGAIN: Millis = Millis::from_secs(60);

/// And when it was of no use: the account is missing, or the server does not take the password.
const SET_AGAIN_IN_VAIN: Millis = Millis::from_secs(300);

/// As often for one server that goes on refusing. Then only another occasion brings another attempt.
const SETS: u32 = 3;

/// A follower that refuses for so long, while the primary does not, is told of.
const PATIENCE: Millis = Millis::from_secs(60);

/// A receiver that was started anew has connected by then, or somebody else's trouble keeps it.
const CONNECTS_WITHIN: Millis = Millis::from_secs(30);

/// What this leader has found out and done. All of it may be lost: it is found out again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// Since when it knows these Secrets.
    known: Option<(CredentialsVersion, Boot)>,
    sites: BTreeMap<Site, Asked>,
    set: Option<Set>,
    /// When older passwords were last discarded.
    discarded: Option<Boot>,
    /// The channel that was renewed last, and when.
    renewed: Option<(Site, Boot)>,
    /// What people were told, of each site.
    told: BTreeMap<Site, (CredentialsVersion, BTreeMap<AccountRole, u16>)>,
}

/// What a server was asked, and what it said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    of: Occasion,
    begun: Boot,
    /// None: it has not answered.
    found: Option<Logins>,
    /// Since when it refuses somebody.
    refuses_since: Option<Boot>,
    /// How often passwords were set because of it since then.
    sets: u32,
    again: Attempt,
}

/// What makes an answer worth nothing when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Occasion {
    version: CredentialsVersion,
    /// Of the primary: the tenure.
    tenure: Option<Epoch>,
    /// The server's start; none: its sidecar is silent.
    start: Option<StartId>,
}

/// The last time that passwords were set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Set {
    version: CredentialsVersion,
    tenure: Epoch,
    at: Boot,
    /// Who refused.
    wanting: Vec<Site>,
    in_vain: bool,
}

/// What the parts of this step agree about.
struct Scene<'a> {
    now: Now,
    footing: &'a Footing<'a>,
    version: CredentialsVersion,
    /// How long whoever uses a password may be without the next one.
    spread: Millis,
}

impl Group {
    pub(super) fn rotate(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let Some(Credentials { version, spread }) = self.seen.credentials else { return };
        let kept = plan.kept;
        let Ok(footing) = self.standing(now, kept) else { return };
        let scene = Scene { now, footing: &footing, version, spread };
        for site in self.spec.names() {
            self.ask_logins(&scene, &site, out);
        }
        self.set_passwords(&scene, kept.epoch(), out);
        self.renew_a_channel(&scene, out);
        self.discard_passwords(&scene, kept.epoch(), out);
        self.tell_of_whoever_is_missing(&scene, out);
        self.tell_of_followers(&scene, out);
    }

    /// The version of the Secrets: what failed for want of others is tried again.
    pub(super) fn take_credentials(&mut self, now: Now, credentials: Credentials) {
        let before = self.seen.credentials.replace(credentials);
        if before.is_some_and(|before| before.version != credentials.version) {
            self.forgive_failed_clones();
        }
        if self.rotating.known.is_none_or(|(version, _)| version != credentials.version) {
            self.rotating.known = Some((credentials.version, now.boot));
        }
    }

    fn ask_logins(&mut self, scene: &Scene<'_>, site: &Site, out: &mut Step) {
        let Some(seen) = self.seen.site(site) else { return };
        if !seen.watch.state.is_reachable() || seen.watch.login_refused {
            return;
        }
        let start = seen.present(self.spec.lease.lease_timeout, scene.now.boot).and_then(|(_, heard)| heard.ack.mysqld);
        let tenure = (*site == scene.footing.primary.site).then_some(scene.footing.tenure);
        let of = Occasion { version: scene.version, tenure, start };
        let last = self.rotating.sites.get(site);
        let same = last.filter(|last| last.of.is_as_good_as(&of));
        if same.is_some_and(|last| !last.is_due(scene.now.boot)) {
            return;
        }
        let (refuses_since, sets, again) =
            same.map_or_else(Default::default, |last| (last.refuses_since, last.sets, last.again));
        if self.begin(scene.now, site, Task::CheckLogins { version: scene.version }, out) {
            let asked = Asked { of, begun: scene.now.boot, found: None, refuses_since, sets, again };
            self.rotating.sites.insert(site.clone(), asked);
        }
    }

    /// What that server said to logins of this version.
    fn logins(&self, site: &Site, version: CredentialsVersion) -> Option<(&Asked, &Logins)> {
        let asked = self.rotating.sites.get(site).filter(|asked| asked.of.version == version)?;
        Some((asked, asked.found.as_ref()?))
    }

    fn set_passwords(&mut self, scene: &Scene<'_>, epoch: Epoch, out: &mut Step) {
        let mut wanting = self.wanting(scene);
        let spreading = self.spreading(scene);
        for roles in wanting.values_mut() {
            roles.retain(|role| !spreading.contains(role));
        }
        wanting.retain(|_, roles| !roles.is_empty());
        let due = self.last_set(scene).is_none_or(|last| scene.now.boot >= last.at + last.pause());
        let primary = &scene.footing.primary.site;
        if wanting.is_empty() || !due || self.is_busy(primary, Lane::Accounts) {
            return;
        }
        let accounts: BTreeSet<AccountRole> = wanting.values().flatten().copied().collect();
        let accounts = accounts.into_iter().collect();
        let task = Task::SetPasswords { version: scene.version, epoch, accounts };
        if self.begin(scene.now, primary, task, out) {
            self.rotating.set = Some(Set {
                version: scene.version,
                tenure: scene.footing.tenure,
                at: scene.now.boot,
                wanting: wanting.into_keys().collect(),
                in_vain: false,
            });
        }
    }

    /// Accounts of which the server has an older password besides its present one, and somebody may still need that: a third one
    /// would end it. A leader that did not set them itself counts from when it knew the Secrets.
    fn spreading(&self, scene: &Scene<'_>) -> BTreeSet<AccountRole> {
        let before = self.rotating.set.as_ref().filter(|set| set.version != scene.version);
        let since = before.map_or_else(|| self.known_since(scene), |set| set.at);
        let Some((_, at_primary)) = self.logins(&scene.footing.primary.site, scene.version) else {
            return BTreeSet::new();
        };
        let is_refused = |role: &&AccountRole| at_primary.refused.contains_key(*role);
        let older = at_primary.second.iter().filter(is_refused).copied();
        older.filter(|_| scene.now.boot < since + scene.spread).collect()
    }

    /// Since when this leader knows these Secrets.
    fn known_since(&self, scene: &Scene<'_>) -> Boot {
        let known = self.rotating.known.filter(|(version, _)| *version == scene.version);
        known.map_or(scene.now.boot, |(_, at)| at)
    }

    /// The last time that these passwords were set on this primary.
    fn last_set(&self, scene: &Scene<'_>) -> Option<&Set> {
        let of_now = |set: &&Set| set.version == scene.version && set.tenure == scene.footing.tenure;
        self.rotating.set.as_ref().filter(of_now)
    }

    /// What the primary refuses; and what a follower refuses that has everything the primary had.
    fn wanting(&self, scene: &Scene<'_>) -> BTreeMap<Site, Vec<AccountRole>> {
        let primary = &scene.footing.primary.site;
        let set_at = self.last_set(scene).map(|set| set.at);
        let since = |at: Boot| set_at.is_none_or(|set| at > set);
        let has_all = |site: &Site| {
            let seen = self.seen.site(site).filter(|seen| seen.following >= 2);
            site == primary || seen.is_some_and(|seen| seen.caught_up_at.is_some_and(since))
        };
        // Nobody knows what it says to others until the primary has answered.
        let names = self.spec.names().into_iter().filter(|_| self.logins(primary, scene.version).is_some());
        let refusing = names.filter_map(|site| {
            let (asked, logins) = self.logins(&site, scene.version)?;
            // Who is not there cannot be changed.
            let wrong = logins.refused.iter().filter(|(_, code)| **code != NO_SUCH_ACCOUNT);
            let wrong: Vec<AccountRole> = wrong.map(|(role, _)| *role).collect();
            let counts = since(asked.begun) && asked.sets < SETS && has_all(&site) && !wrong.is_empty();
            counts.then_some((site, wrong))
        });
        refusing.collect()
    }

    /// One at a time, and the next when that one receives again: a primary that waits for receipts is never left alone.
    fn renew_a_channel(&mut self, scene: &Scene<'_>, out: &mut Step) {
        let primary = &scene.footing.primary.site;
        let lets_in = self
            .logins(primary, scene.version)
            .is_some_and(|(_, logins)| !logins.refused.contains_key(&AccountRole::Replication));
        if !lets_in || self.runs(|_, task| matches!(task, Task::RenewChannel { .. })) || self.is_connecting(scene.now) {
            return;
        }
        for site in self.spec.names() {
            let outdated =
                self.logins(&site, scene.version).is_some_and(|(_, logins)| logins.channel == Channel::Outdated);
            if !outdated || !self.may_change(scene.now, &site) || !self.applies_from(&site, scene.footing) {
                continue;
            }
            if self.begin(scene.now, &site, Task::RenewChannel { version: scene.version }, out) {
                self.rotating.renewed = Some((site, scene.now.boot));
                return;
            }
        }
    }

    /// What was good before, at the primary or at a follower that has everything the primary had.
    fn discard_passwords(&mut self, scene: &Scene<'_>, epoch: Epoch, out: &mut Step) {
        let now = scene.now.boot;
        let known = self.known_since(scene);
        let set = self.last_set(scene).map_or(known, |set| set.at);
        let paused = self.rotating.discarded.is_some_and(|at| now < at + SET_AGAIN);
        let primary = &scene.footing.primary.site;
        if now < known.max(set) + scene.spread || paused || self.is_busy(primary, Lane::Accounts) {
            return;
        }
        let accounts: Vec<AccountRole> = self.discardable(scene).into_iter().collect();
        let task = Task::DiscardPasswords { version: scene.version, epoch, accounts: accounts.clone() };
        if !accounts.is_empty() && self.begin(scene.now, primary, task, out) {
            self.rotating.discarded = Some(now);
        }
    }

    fn discardable(&self, scene: &Scene<'_>) -> BTreeSet<AccountRole> {
        let primary = &scene.footing.primary.site;
        let Some((_, at_primary)) = self.logins(primary, scene.version) else { return BTreeSet::new() };
        let mut accounts = at_primary.second.clone();
        let since = |at: Boot| self.rotating.discarded.is_none_or(|discarded| at > discarded);
        let mut outdated = false;
        for site in self.spec.names().iter().filter(|site| *site != primary) {
            let Some(seen) = self.seen.site(site).filter(|seen| seen.following >= 2) else { continue };
            let Some((asked, logins)) = self.logins(site, scene.version) else {
                // Nobody knows what its channel logs in with.
                outdated = true;
                continue;
            };
            outdated |= logins.channel == Channel::Outdated;
            if since(asked.begun) && seen.caught_up_at.is_some_and(since) {
                accounts.extend(&logins.second);
            }
        }
        accounts.retain(|role| !at_primary.refused.contains_key(role));
        if outdated {
            accounts.remove(&AccountRole::Replication);
        }
        accounts
    }

    /// It follows the primary and its applier runs: then the server keeps what it has received.
    fn applies_from(&self, site: &Site, footing: &Footing<'_>) -> bool {
        let facts = self.closed_facts(site, footing.tenure);
        let replica = facts.as_ref().and_then(|facts| facts.replica.as_ref());
        replica.is_some_and(|replica| {
            replica.source.as_ref() == Some(&footing.primary.site) && replica.applier == Applier::Running
        })
    }

    /// Whether a receiver that was started anew has not been seen to receive yet.
    fn is_connecting(&self, now: Now) -> bool {
        let Some((site, at)) = &self.rotating.renewed else { return false };
        let seen = self.seen.site(site).filter(|seen| seen.facts_begun > *at);
        let replica = seen.and_then(|seen| seen.facts.as_ref()).and_then(|facts| facts.replica.as_ref());
        let receives = replica.is_some_and(|replica| replica.receiver == Receiver::Running);
        !receives && now.boot < *at + CONNECTS_WITHIN
    }

    pub(super) fn logins_checked(&mut self, now: Now, site: &Site, version: CredentialsVersion, outcome: &Outcome) {
        let asked = self.rotating.sites.get_mut(site).filter(|asked| asked.of.version == version);
        let Some(asked) = asked else { return };
        let Outcome::Logins(logins) = outcome else { return asked.again.failed(now.boot) };
        asked.take(now.boot, (**logins).clone());
        if logins.refused.is_empty() {
            self.rotating.told.remove(site);
        }
    }

    /// The hands have tried the passwords at the same server.
    pub(super) fn passwords_changed(&mut self, now: Now, site: &Site, task: &Task, outcome: &Outcome, out: &mut Step) {
        let (Task::SetPasswords { version, epoch, accounts } | Task::DiscardPasswords { version, epoch, accounts }) =
            task
        else {
            return;
        };
        let Outcome::Logins(logins) = outcome else { return self.not_changed(site, *version, *epoch, outcome, out) };
        self.logins_checked(now, site, *version, outcome);
        let accounts = accounts.iter().copied();
        if matches!(task, Task::SetPasswords { .. }) {
            let done: Vec<AccountRole> = accounts.filter(|role| !logins.refused.contains_key(role)).collect();
            self.passwords_set(site, *version, done, logins, out);
        } else {
            let done: Vec<AccountRole> = accounts.filter(|role| !logins.second.contains(role)).collect();
            out.notices.push(Notice::PasswordsDiscarded { site: site.clone(), accounts: done });
        }
    }

    fn passwords_set(
        &mut self,
        site: &Site,
        version: CredentialsVersion,
        done: Vec<AccountRole>,
        logins: &Logins,
        out: &mut Step,
    ) {
        // They get it within a moment.
        for (_, asked) in self.rotating.sites.iter_mut().filter(|(other, _)| *other != site) {
            asked.again.succeeded();
        }
        if let Some(set) = self.rotating.set.as_mut().filter(|set| set.version == version) {
            set.in_vain = !logins.refused.is_empty();
            for wanting in &set.wanting {
                self.rotating.sites.entry(wanting.clone()).and_modify(|asked| asked.sets += 1);
            }
        }
        if done.contains(&AccountRole::Replication) {
            self.forgive_failed_clones();
        }
        if !done.is_empty() {
            out.notices.push(Notice::PasswordsSet { site: site.clone(), accounts: done });
        }
        self.tell_of_refusals(site, version, logins.refused.clone(), out);
    }

    /// What was asked for under an older record or older Secrets is asked for anew, and no trouble.
    fn not_changed(
        &mut self,
        site: &Site,
        version: CredentialsVersion,
        epoch: Epoch,
        outcome: &Outcome,
        out: &mut Step,
    ) {
        let present = self.seen.credentials.is_some_and(|known| known.version == version)
            && self.kept().is_some_and(|kept| kept.epoch() == epoch);
        if !present {
            (self.rotating.set, self.rotating.discarded) = (None, None);
        } else if let Outcome::Failed(because) | Outcome::Refused(because) = outcome {
            out.notices.push(Notice::PasswordsNotSet { site: site.clone(), because: because.clone() });
        }
    }

    pub(super) fn channel_renewed(&mut self, site: &Site, outcome: &Outcome) {
        // A failure is paced with everything else that changes replication there.
        if *outcome == Outcome::Ok {
            self.rotating.sites.remove(site);
        }
    }

    /// Each is told once.
    fn tell_of_refusals(
        &mut self,
        site: &Site,
        version: CredentialsVersion,
        refused: BTreeMap<AccountRole, u16>,
        out: &mut Step,
    ) {
        if refused.is_empty() || self.rotating.told.get(site).is_some_and(|told| *told == (version, refused.clone())) {
            return;
        }
        self.rotating.told.insert(site.clone(), (version, refused.clone()));
        out.notices.push(Notice::PasswordsRefused { site: site.clone(), accounts: refused });
    }

    /// At the primary: only its next start makes a user.
    fn tell_of_whoever_is_missing(&mut self, scene: &Scene<'_>, out: &mut Step) {
        let primary = scene.footing.primary.site.clone();
        let Some((_, logins)) = self.logins(&primary, scene.version) else { return };
        if logins.refused.values().all(|code| *code == NO_SUCH_ACCOUNT) {
            let refused = logins.refused.clone();
            self.tell_of_refusals(&primary, scene.version, refused, out);
        }
    }

    /// A follower that goes on refusing what the primary takes.
    fn tell_of_followers(&mut self, scene: &Scene<'_>, out: &mut Step) {
        let primary = &scene.footing.primary.site;
        let Some(at_primary) = self.logins(primary, scene.version).map(|(_, logins)| logins.refused.clone()) else {
            return;
        };
        for site in self.spec.names().into_iter().filter(|site| site != primary) {
            let Some((asked, logins)) = self.logins(&site, scene.version) else { continue };
            if asked.refuses_since.is_none_or(|since| scene.now.boot < since + PATIENCE) {
                continue;
            }
            let only_here = logins.refused.iter().filter(|(role, _)| !at_primary.contains_key(role));
            let only_here = only_here.map(|(role, code)| (*role, *code)).collect();
            self.tell_of_refusals(&site, scene.version, only_here, out);
        }
    }
}

impl Occasion {
    /// A sidecar that is silent says nothing of a start.
    fn is_as_good_as(&self, now: &Self) -> bool {
        let same_start = self.start.is_none() || now.start.is_none() || self.start == now.start;
        self.version == now.version && self.tenure == now.tenure && same_start
    }
}

impl Asked {
    fn is_due(&self, now: Boot) -> bool {
        let fine = self.found.as_ref().is_some_and(Logins::are_fine);
        if fine { now >= self.begun + ASK_AGAIN } else { self.again.may_try(now) }
    }

    fn take(&mut self, now: Boot, logins: Logins) {
        self.refuses_since = (!logins.refused.is_empty()).then(|| self.refuses_since.unwrap_or(now));
        if logins.refused.is_empty() {
            self.sets = 0;
        }
        if logins.are_fine() {
            self.again.succeeded();
        } else {
            self.again.failed(now);
        }
        self.found = Some(logins);
    }
}

impl Set {
    const fn pause(&self) -> Millis {
        if self.in_vain { SET_AGAIN_IN_VAIN } else { SET_AGAIN }
    }
}
