//! Requests to overwrite a site by a clone: checked, refused with a reason, or accepted.
//!
//! In: the annotation, read into a wish; what is stored and seen. Out: a stored clone, or a refusal and the request
//! removed, or a reason to wait. Must not: lose a request that is only blocked for now, or take one twice: it is removed
//! before the end of its clone is stored.

#[cfg(test)]
mod tests;

use super::cloning::{begin_clone, updates};
use super::command::{Command, RequestKind};
use super::input::{Consent, RecloneWish, Request};
use super::kept::{CloneKept, CloneSource, Kept, Recovery};
use super::recovery::{Hindrance, block, has_authority, say_once};
use super::save::Plan;
use super::{Group, Notice, Step};
use crate::name::Site;
use crate::time::{Boot, Millis, Now};
use bloodraven_gtid::GtidSet;

/// A removal is asked for again after this long.
const AGAIN: Millis = Millis(2000);

/// So much of the divergent set an admin has to have read.
const PREFIX: usize = 8;

/// What this leader remembers of it. All of it may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// The request whose removal was asked for last, and when.
    removed: Option<(String, Boot)>,
    /// The request of whose refusal people were told.
    refused: Option<String>,
    /// What the standing request waits for.
    waits: Option<(Site, String)>,
}

/// What becomes of a request.
enum Answer {
    /// It is carried out.
    Accept,
    /// Not understood, or not allowed: removed, nothing changed.
    Refuse(String),
    /// It has what nobody has looked at yet: reported, and the request judged by that.
    Diverges(GtidSet),
    /// Kept, and tried again.
    Wait(String),
}

impl Group {
    pub(super) fn heed_reclone_request(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        self.recloning.waits = None;
        let Some(request) = self.seen.requests.reclone.clone() else {
            self.recloning = Memory::default();
            return;
        };
        let answer = match &request.wish {
            Err(why) => Answer::Refuse(why.clone()),
            Ok(wish) if is_served(plan.kept, &wish.site) => return,
            Ok(wish) => self.judge_reclone(now, wish, plan.kept, out),
        };
        match (answer, request.wish.as_ref()) {
            (Answer::Accept, Ok(wish)) => accept(plan, &wish.site),
            (Answer::Diverges(set), Ok(wish)) => block(plan, &wish.site, &set),
            (Answer::Wait(why), Ok(wish)) => self.recloning.waits = Some((wish.site.clone(), why)),
            (Answer::Refuse(because), _) => self.refuse(now, &request, because, out),
            (_, Err(_)) => {}
        }
    }

    /// What a standing reclone request waits for, and at which site.
    pub fn reclone_waits(&self) -> Option<(&Site, &str)> {
        self.recloning.waits.as_ref().map(|(site, why)| (site, why.as_str()))
    }

    /// The table of requests, top to bottom.
    fn judge_reclone(&mut self, now: Now, wish: &RecloneWish, kept: &Kept, out: &mut Step) -> Answer {
        let site = &wish.site;
        if let Some(because) = self.never_recloned(site, kept) {
            return Answer::Refuse(because);
        }
        if !self.spec.replication_account {
            return Answer::Refuse(Hindrance::NoAccount.to_string());
        }
        let divergent = kept.site(site).divergent;
        if let Err(because) = consents(&wish.consent, &divergent, &self.spec.name) {
            return Answer::Refuse(because);
        }
        let footing = match self.footing(now, kept) {
            Ok(footing) => footing,
            Err(why) => return Answer::Wait(why.to_string()),
        };
        if let Some(other) = kept.cloning() {
            return Answer::Wait(format!("a clone into {other} is under way"));
        }
        if updates(kept) {
            return Answer::Wait("an ordered update is under way".to_owned());
        }
        let Some(facts) = self.closed_facts(site, footing.tenure).filter(|_| self.may_receive(&footing, site)) else {
            return Answer::Wait(format!("{site} does not answer, or is not fenced"));
        };
        if facts.data.is_none() {
            return Answer::Wait(format!("the GTID sets of {site} are not understood (InvalidGTID)"));
        }
        match self.finding(now, &footing, site, &facts) {
            None => {
                self.read_primary(now, &footing, out);
                Answer::Wait(format!("{site} is being compared with the primary"))
            }
            // Consent is about what was reported; what was not is reported first.
            Some(verdict) if verdict.is_divergent() && verdict.missing != divergent => {
                Answer::Diverges(verdict.missing)
            }
            Some(_) => Answer::Accept,
        }
    }

    /// What no consent makes good.
    fn never_recloned(&self, site: &Site, kept: &Kept) -> Option<String> {
        if self.spec.site(site).is_none() {
            let known: Vec<String> = self.spec.names().iter().map(ToString::to_string).collect();
            return Some(format!("reclone-site: \"{site}\" is not a site; write one of {}", known.join(", ")));
        }
        if has_authority(kept, site) {
            return Some(format!("reclone-site: {site} is the holder; move authority away first"));
        }
        let open = self.seen.site(site).is_some_and(|seen| seen.watch.is_seen_open());
        open.then(|| format!("reclone-site: {site} is writable; it is never overwritten while it is open"))
    }

    fn refuse(&mut self, now: Now, request: &Request<RecloneWish>, because: String, out: &mut Step) {
        if self.recloning.refused.as_ref() != Some(&request.text) {
            self.recloning.refused = Some(request.text.clone());
            out.notices.push(Notice::RecloneRejected { because });
        }
        self.remove_request(now, &request.text, out);
    }

    fn remove_request(&mut self, now: Now, text: &str, out: &mut Step) {
        let asked = self.recloning.removed.as_ref().filter(|(known, _)| known == text);
        if asked.is_none_or(|(_, at)| now.boot >= *at + AGAIN) {
            self.recloning.removed = Some((text.to_owned(), now.boot));
            out.commands.push(Command::RemoveRequest { kind: RequestKind::Reclone, text: text.to_owned() });
        }
    }

    /// Whether the request that this clone serves is gone; while it stands, its removal is asked for.
    pub(super) fn request_is_gone(&mut self, now: Now, site: &Site, clone: &CloneKept, out: &mut Step) -> bool {
        let of_this = |request: &&Request<RecloneWish>| request.wish.as_ref().is_ok_and(|wish| wish.site == *site);
        let text = self.seen.requests.reclone.as_ref().filter(of_this).map(|request| request.text.clone());
        match text {
            Some(text) if clone.source == CloneSource::Reclone => {
                self.remove_request(now, &text, out);
                false
            }
            Some(_) | None => true,
        }
    }
}

/// Whether the site's present clone is the one that was asked for.
fn is_served(kept: &Kept, site: &Site) -> bool {
    kept.site(site).clone.is_some_and(|clone| clone.phase.is_active() && clone.source == CloneSource::Reclone)
}

/// To be stored: the clone begins. What diverges stays reported until a reading disproves it.
fn accept(plan: &mut Plan<'_>, site: &Site) {
    if plan.next().site(site).recovery == Recovery::InProgress {
        plan.change().site_mut(site).recovery = Recovery::None;
    }
    say_once(plan, Notice::RecloneRequested { site: site.clone() });
    begin_clone(plan, site, CloneSource::Reclone, 1);
}

/// Whether the admin knows what is lost.
fn consents(consent: &Consent, divergent: &GtidSet, group: &str) -> Result<(), String> {
    let because = if divergent.is_empty() {
        match consent {
            Consent::Confirm(name) if name != group => format!("confirm={name} does not name this group"),
            Consent::None | Consent::Confirm(_) => return Ok(()),
            Consent::Prefix(_) => format!("the site has no divergentGtid; write <site> or <site>:confirm={group}"),
        }
    } else {
        let shown = divergent.to_string();
        match consent {
            Consent::Prefix(prefix) if prefix.chars().count() < PREFIX => {
                format!("\"{prefix}\" is shorter than {PREFIX} characters of divergentGtid")
            }
            Consent::Prefix(prefix) if shown.starts_with(prefix.as_str()) => return Ok(()),
            Consent::Prefix(prefix) => format!("\"{prefix}\" is not the beginning of divergentGtid"),
            Consent::None | Consent::Confirm(_) => {
                format!("the site has divergentGtid; write <site>:<its first {PREFIX} or more characters>")
            }
        }
    };
    Err(format!("reclone-site: {because}"))
}
