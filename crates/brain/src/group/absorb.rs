//! Taking inputs: what was seen goes where the parts look for it; questions are answered at once.

use super::command::Command;
use super::input::{Facts, Input, Outcome, Saw, Word};
use super::seen::SiteSeen;
use super::tasks::Running;
use super::{Group, Notice, Spec, Step};
use crate::authority::{self, Answer};
use crate::candidate::drain::{Applier, Receiver};
use crate::fence::ReplyId;
use crate::message::Question;
use crate::name::{Member, Site};
use crate::record::{Epoch, Phase};
use crate::rule::{Rule, off};
use crate::site::{Effect, Observation, Pair, Poll};
use crate::time::{Boot, Millis, Now};
use std::sync::Arc;

/// Between two grants to one site that answer questions which rode on acknowledgements.
const GRANT_AGAIN: Millis = Millis(500);

/// As many instances of one site are remembered; more than two at a time is a fault of its own.
const INSTANCES: usize = 8;

impl Group {
    pub(super) fn absorb(&mut self, now: Now, input: Input, out: &mut Step) {
        self.take_in_sites();
        match input {
            Input::Tick => {}
            Input::Leads(until) => self.lead(now, until),
            Input::Spec(spec) => self.take_spec(*spec),
            Input::Loaded(loaded) => self.loaded(now, loaded, out),
            Input::Saved { id, saved } => self.saved(now, id, saved, out),
            Input::Polled { site, began_under, saw } => self.polled(now, &site, began_under, saw, out),
            Input::Heard(word) => self.heard(now, *word, out),
            Input::PushFailed { to } => self.push_failed(now, &to),
            Input::Asked { question, reply } => self.asked(now, &question, reply, out),
            Input::Done { id, outcome } => {
                self.take_reading(id, &outcome);
                if let Some(running) = self.end(id, &outcome, now) {
                    self.done(now, &running, outcome, out);
                }
            }
            Input::Estate(estate) => self.seen.estate = Some(*estate),
            Input::Requests(requests) => self.seen.requests = *requests,
            Input::Shown(shown) => {
                if let Err(because) = &shown.dns {
                    out.notices.push(Notice::DnsWriteFailed { because: because.clone() });
                }
                self.seen.shown = Some(shown);
            }
            Input::CredentialsChanged(credentials) => self.take_credentials(now, credentials),
            Input::CloneProgress { site, bytes } => self.clone_reported(&site, bytes),
            Input::CachePolled { site, facts } => {
                if let Some(seen) = self.seen.sites.get_mut(&site) {
                    seen.cache = Some(facts);
                }
            }
        }
    }

    /// A leadership that was over, if only for a moment, is a new one: another leader may have granted and stored what
    /// this one knows nothing of.
    fn lead(&mut self, now: Now, until: Option<Boot>) {
        let was_over = self.leads_until.is_some_and(|led| until.is_none() || now.boot >= led);
        if was_over {
            let known = self.kept().map_or(0, |kept| kept.epoch());
            let highest = self.seen.evidence.highest.max(known);
            let fresh = Self::new(self.spec.clone(), now.boot);
            let (estate, requests) = (self.seen.estate.take(), std::mem::take(&mut self.seen.requests));
            let credentials = self.seen.credentials;
            *self = fresh;
            (self.seen.estate, self.seen.requests, self.seen.credentials) = (estate, requests, credentials);
            // A record of a lower epoch was put back by somebody: it is behind, and nobody is granted anything under it.
            if !off(Rule::DoubtKeepsEpochs) {
                self.seen.evidence.highest = highest;
            }
            self.take_in_sites();
        }
        if until.is_some() && self.leads_until.is_none() {
            self.seen.evidence.elected = now.boot;
        }
        self.leads_until = until;
    }

    fn take_spec(&mut self, spec: Spec) {
        self.spec = spec;
        self.take_in_sites();
    }

    /// Every declared site is watched, and no other.
    fn take_in_sites(&mut self) {
        if self.seen.sites.len() == self.spec.sites.len() {
            let known = |site: &Site| self.seen.sites.contains_key(site);
            if self.spec.sites.iter().all(|spec| known(&spec.site)) {
                return;
            }
        }
        let spec = &self.spec;
        self.seen.sites.retain(|site, _| spec.site(site).is_some());
        for site in &spec.sites {
            self.seen.sites.entry(site.site.clone()).or_insert_with(|| SiteSeen::new(&site.site));
        }
    }

    fn polled(&mut self, now: Now, site: &Site, began_under: Epoch, saw: Saw, out: &mut Step) {
        let observation = match &saw {
            Saw::Nothing => Observation::Failed,
            Saw::LoginRefused => Observation::LoginRefused,
            Saw::Facts(facts) => Observation::Read(facts.pair),
        };
        self.observe(site, Poll { began_under, saw: observation }, out);
        if let Saw::Facts(facts) = saw {
            // A poll takes an interval at most, so it began no earlier than that.
            let begun = now.boot - self.spec.poll_interval;
            self.take_facts(now.boot, begun, site, began_under, *facts);
        }
    }

    fn observe(&mut self, site: &Site, poll: Poll, out: &mut Step) {
        let present = self.kept().map_or(0, |kept| kept.epoch());
        let thresholds = self.spec.thresholds;
        let Some(seen) = self.seen.sites.get_mut(site) else { return };
        if let Effect::Changed(transition) = seen.watch.observe(poll, present, thresholds) {
            out.notices.push(Notice::StateChanged(transition));
        }
    }

    fn take_facts(&mut self, now: Boot, begun: Boot, site: &Site, began_under: Epoch, facts: Facts) {
        let kept = self.kept();
        let record = kept.as_ref().and_then(|kept| kept.record.as_ref());
        let holder = record.and_then(|record| record.seat.as_ref().or(record.holder.as_ref().map(|last| &last.member)));
        let holder_site = holder.map(|holder| holder.site.clone());
        let tenure = record.map_or(0, |record| record.tenure);
        let Some(seen) = self.seen.sites.get_mut(site) else { return };
        if began_under < seen.facts_under {
            return;
        }
        seen.following = if follows(&facts, holder_site.as_ref()) { (seen.following + 1).min(2) } else { 0 };
        if is_caught_up(&facts) {
            seen.caught_up_at = Some(now);
        }
        let lonely = facts.semi_sync.source.is_some() && facts.semi_sync.clients == 0;
        seen.lonely_since = lonely.then(|| seen.lonely_since.unwrap_or(now));
        // Open without authority, read under the present tenure, and not the holder: nobody but a human does that.
        let of_this_tenure = began_under >= tenure;
        if facts.pair == Pair::OPEN && of_this_tenure && holder_site.as_ref().is_some_and(|holder| holder != site) {
            seen.opened_by_hand.get_or_insert(now);
        }
        seen.facts = Some(Arc::new(facts));
        seen.facts_under = began_under;
        seen.facts_at = now;
        seen.facts_begun = begun;
    }

    fn heard(&mut self, now: Now, word: Word, out: &mut Step) {
        let kept = self.kept();
        let record = kept.as_ref().and_then(|kept| kept.record.as_ref());
        if let Some(record) = record {
            self.seen.evidence.take(record, &word.ack, now.boot, word.lay);
            // Only its own word: one that was handed on may be of an earlier state.
            if word.via.is_none() {
                self.seen.superseded = authority::ended_by_newer_store(record, &word.ack);
            }
        }
        self.seen.evidence.highest = self.seen.evidence.highest.max(word.ack.epoch.unwrap_or(0));
        let epoch = record.map(|record| record.epoch);
        let opening = record.filter(|record| record.phase == Phase::Granting).and_then(|record| record.seat.clone());
        let interval = self.push_interval();
        let awaited = record.is_some_and(|record| self.awaits_release(record));
        let Some(seen) = self.seen.sites.get_mut(&word.ack.from.site) else { return };
        let Word { ack, lay, via, question } = word;
        let own = via.is_none();
        let rests = ack.epoch >= epoch && opening.as_ref() != Some(&ack.from) && !awaited;
        let opened_by_hand = ack.opened_by_hand;
        seen.hear(ack, lay, via, now.boot);
        while seen.words.len() > INSTANCES {
            let oldest = seen.words.iter().min_by_key(|(_, heard)| heard.at).map(|(instance, _)| instance.clone());
            oldest.map(|oldest| seen.words.remove(&oldest));
        }
        if own && lay.0 == 0 {
            seen.hear_of_hand(opened_by_hand, now.boot);
        }
        if own {
            seen.pushing = None;
            seen.push_failed = false;
            // One that lags behind is pushed again soon; so is one that is to be opened, for its next question; and everybody
            // while the holder's fence is awaited, for its acknowledgement may have to be handed on.
            seen.push_due = now.boot + if rests { interval } else { super::push::AGAIN };
        }
        if let Some(question) = question {
            self.asked_along(now, &question, out);
        }
    }

    /// A question that came on its own.
    fn asked(&mut self, now: Now, question: &Question, reply: ReplyId, out: &mut Step) {
        let answer = self.answer(now, question).map(Box::new);
        out.commands.push(Command::Answer { reply, answer });
    }

    /// A question that rode on an acknowledgement; only a grant is worth a push of its own.
    fn asked_along(&mut self, now: Now, question: &Question, out: &mut Step) {
        let Some(Answer::Grant(grant)) = self.answer(now, question) else { return };
        let Some(seen) = self.seen.sites.get_mut(&question.from.site) else { return };
        // Each grant is acknowledged with the next question: only the first one that says "open" is in a hurry.
        let open = grant.open.is_some();
        let hurry = open && seen.granted.is_none_or(|(_, opened)| !opened);
        if hurry || seen.granted.is_none_or(|(at, _)| now.boot >= at + GRANT_AGAIN) {
            seen.granted = Some((now.boot, open));
            seen.unanswered = None;
            out.commands.push(Command::Grant(grant));
        } else {
            seen.unanswered = Some(question.clone());
        }
    }

    /// The word to open goes to the question that is still outstanding, without waiting for the next one.
    pub(super) fn answer_who_waits(&mut self, now: Now, seat: &Member, out: &mut Step) {
        let Some(seen) = self.seen.sites.get_mut(&seat.site) else { return };
        if seen.granted.is_some_and(|(_, opened)| opened) {
            return;
        }
        let waits = seen.unanswered.take();
        if let Some(question) = waits.filter(|question| question.from == *seat) {
            self.asked_along(now, &question, out);
        }
    }

    /// Leadership, the stored record and what is about to change are looked at here, at the moment of answering.
    fn answer(&mut self, now: Now, question: &Question) -> Option<Answer> {
        let kept = self.kept()?;
        let record = kept.record.as_ref()?;
        let leads_until = self.leads_until.filter(|_| !self.record_in_doubt());
        let word = self.opening_word(&kept);
        Some(authority::answer(record, &mut self.seen.evidence, question, leads_until, word, now.boot))
    }

    fn done(&mut self, now: Now, running: &Running, outcome: Outcome, out: &mut Step) {
        let (site, under) = (&running.site, running.began_under);
        match outcome {
            Outcome::Read(facts) => {
                let promoted = self.is_granted(site) && facts.pair == Pair::OPEN;
                let saw = if promoted { Observation::PromotionReadBack } else { Observation::Read(facts.pair) };
                self.observe(site, Poll { began_under: under, saw }, out);
                self.take_facts(now.boot, running.begun, site, under, *facts);
            }
            outcome => self.task_ended(now, site, &running.task, &outcome, out),
        }
    }

    /// Whether that site has authority and was not confirmed open yet.
    fn is_granted(&self, site: &Site) -> bool {
        let kept = self.kept();
        let record = kept.as_ref().and_then(|kept| kept.record.as_ref());
        record.is_some_and(|record| {
            record.phase == Phase::Granting && record.seat.as_ref().is_some_and(|seat| seat.site == *site)
        })
    }
}

/// Whether a server follows that site with both threads running.
pub(super) fn follows(facts: &Facts, source: Option<&Site>) -> bool {
    facts.replica.as_ref().is_some_and(|replica| {
        let runs = replica.receiver == Receiver::Running && replica.applier == Applier::Running;
        runs && source.is_some() && replica.source.as_ref() == source
    })
}

fn is_caught_up(facts: &Facts) -> bool {
    facts.replica.as_ref().is_some_and(|replica| {
        replica.receiver == Receiver::Running && replica.behind.is_some_and(|behind| behind.0 == 0)
    })
}
