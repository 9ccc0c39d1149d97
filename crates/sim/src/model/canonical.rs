//! One form for parts that differ in nothing that matters: times are relative to now and saturated, question ids are
//! numbered anew, what can never have an effect any more is dropped. Each reduction says why it is sound.

use super::world::{Bounds, LONG_AGO, Leader, Letter, NOW, Node};
use bloodraven_brain::authority::Evidence;
use bloodraven_brain::authority::evidence::Heard;
use bloodraven_brain::fence::{Command, Disk, Lane, Mysqld, Round, Sidecar};
use bloodraven_brain::message::{Ack, QuestionId, StartId};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::Phase;
use bloodraven_brain::time::{Boot, Millis};
use std::collections::{BTreeMap, BTreeSet};

fn clamp(time: &mut Boot) {
    // Zero is what the model has forgotten altogether.
    if time.0 > 0 {
        time.0 = time.0.max(LONG_AGO.0);
    }
}

fn clamp_age(age: &mut Millis) {
    age.0 = age.0.min(NOW.0 - LONG_AGO.0);
}

impl Node {
    /// Time passes: everything lies that much further back.
    pub(super) fn shift(&mut self, by: Millis) {
        self.each_time(&mut |time| time.0 = time.0.saturating_sub(by.0));
    }

    /// The canonical form.
    pub(super) fn canonical(mut self, bounds: &Bounds) -> Self {
        self.each_time(&mut clamp);
        if let Some((_, ack)) = &mut self.late_ack {
            forget_in_ack(ack);
        }
        for letter in self.inbox.values_mut() {
            // What voters say of themselves reaches the leader by acknowledgements of their own.
            if let Letter::Vouch(vouch) = letter {
                *vouch.ack = silence(&vouch.from);
            }
        }
        self.forget_in_sidecar(bounds);
        self.drop_dead_letters(bounds.lease_is_one_number());
        self.renumber();
        self.rename_starts();
        self
    }

    fn forget_in_sidecar(&mut self, bounds: &Bounds) {
        let Some(sidecar) = &mut self.sidecar else { return };
        sidecar.answer_had.clear();
        sidecar.peer_acks.clear();
        // Every server holds the same data here: what others hold keeps nobody closed.
        sidecar.others.clear();
        sidecar.replies.clear();
        // Readings take no time here: what is owed is answered at once or, with the lane taken, not at all.
        sidecar.vouches_owed.clear();
        sidecar.fenced_by = None;
        // The leader of this model hears of no wish.
        sidecar.opened_by_hand = None;
        // A failed attempt is repeated within a step.
        sidecar.retry_at = Boot(0);
        if let Some(view) = &sidecar.heard {
            // What is older than a lease renews nothing any more.
            let lease = view.settings.lease_timeout;
            sidecar.asked.retain(|_, asked| NOW < asked.sent + lease);
            if bounds.faults.settings_changes == 0 {
                sidecar.granted = sidecar.granted.filter(|sent| NOW < *sent + lease);
                sidecar.vouched.retain(|_, sent| NOW < *sent + lease);
            }
            sidecar.inherited = sidecar.inherited.filter(|deadline| NOW < *deadline);
            if bounds.lease_is_one_number() {
                fold_lease(sidecar);
            }
        }
        // Marker and note are about one tenure, and a tenure that was taken away never comes back.
        let named = sidecar.heard.as_ref().is_some_and(|view| view.names(&sidecar.me));
        if !named {
            sidecar.disk.marker = None;
            sidecar.disk.note = None;
        }
        // After the last move of the search nobody is asked any more when it last vouched.
        if bounds.is_last(sidecar.heard.as_ref().map_or(0, |view| view.epoch)) && named_somebody(sidecar) {
            sidecar.vouch_given.clear();
        }
        // A ladder is over its time within one step.
        if let Lane::Fencing { began, .. } | Lane::Blind { began, .. } = &mut sidecar.lane
            && *began < NOW
        {
            *began = LONG_AGO;
        }
        if sidecar.born == LONG_AGO {
            sidecar.vouch_given.retain(|_, given| *given > LONG_AGO);
        }
    }

    /// An answer to a question that nobody waits for has no effect; one that is older than what was had already changes
    /// nothing; and a question whose answer is lost will never be answered.
    fn drop_dead_letters(&mut self, folded: bool) {
        let Some(sidecar) = &mut self.sidecar else { return self.inbox.clear() };
        let known: BTreeSet<QuestionId> = sidecar.asked.keys().copied().collect();
        self.inbox.retain(|_, letter| known.contains(&letter.id()));
        let told = sidecar.word.is_some();
        let (granted, vouched) = (sidecar.granted, &sidecar.vouched);
        let asked = &sidecar.asked;
        self.inbox.retain(|_, letter| {
            let sent = asked.get(&letter.id()).map(|asked| asked.sent);
            match letter {
                Letter::Grant(grant) => sent > granted || (grant.open.is_some() && !told),
                Letter::Vouch(_) if folded => sent > granted,
                Letter::Vouch(vouch) => sent > vouched.get(&vouch.from).copied(),
            }
        });
        let alive: BTreeSet<QuestionId> = self.inbox.values().map(Letter::id).collect();
        sidecar.asked.retain(|id, _| alive.contains(id));
    }

    /// Questions are numbered by whom they were put to: of each, one answer at most is on its way.
    fn renumber(&mut self) {
        let Some(sidecar) = &mut self.sidecar else { return };
        let mut order: Vec<(Option<Member>, QuestionId)> =
            sidecar.asked.iter().map(|(id, asked)| (asked.voter.clone(), *id)).collect();
        order.sort();
        let names: BTreeMap<QuestionId, QuestionId> =
            order.into_iter().zip(0..).map(|((_, id), new)| (id, QuestionId(new))).collect();
        sidecar.next_question = names.len() as u64;
        sidecar.asked = std::mem::take(&mut sidecar.asked).into_iter().map(|(id, asked)| (names[&id], asked)).collect();
        if let Some(Round { open, .. }) = &mut sidecar.round {
            *open = open.iter().filter_map(|id| names.get(id).copied()).collect();
        }
        for letter in self.inbox.values_mut() {
            if let Some(new) = names.get(&letter.id()) {
                match letter {
                    Letter::Grant(grant) => grant.id = *new,
                    Letter::Vouch(vouch) => vouch.id = *new,
                }
            }
        }
    }

    /// Starts of mysqld are compared with the present one only: that one is 1, all earlier ones are 0.
    fn rename_starts(&mut self) {
        let present = self.server.start;
        self.server.start = 1;
        let rename = |start: &mut StartId| start.0 = u64::from(start.0 == present);
        let rename_disk = |disk: &mut Disk| {
            disk.marker.iter_mut().filter_map(|marker| marker.start.as_mut()).for_each(rename);
            disk.note.iter_mut().for_each(|note| rename(&mut note.start));
        };
        rename_disk(&mut self.disk);
        let permits = self.permit.iter_mut().chain(&mut self.asked_by_ghost);
        permits.for_each(|permit| rename(&mut permit.start));
        match &mut self.lane {
            Some(Command::AskPermit(permit)) => rename(&mut permit.start),
            Some(Command::Kill(start)) => rename(start),
            _ => {}
        }
        let Some(sidecar) = &mut self.sidecar else { return };
        rename_disk(&mut sidecar.disk);
        if let Mysqld::Up(start) = &mut sidecar.mysqld {
            rename(start);
        }
        sidecar.permit.iter_mut().for_each(|permit| rename(&mut permit.start));
        sidecar.read.iter_mut().for_each(|read| rename(&mut read.start));
        sidecar.round.iter_mut().for_each(|round| rename(&mut round.start));
        if let Lane::Opening { start, .. } | Lane::Fencing { start, .. } = &mut sidecar.lane {
            rename(start);
        }
    }

    fn each_time(&mut self, f: &mut impl FnMut(&mut Boot)) {
        let Self { me: _, sidecar, disk: _, server: _, permit, asked_by_ghost, lane, inbox: _, late_ack, ended: _ } =
            self;
        permit.iter_mut().chain(asked_by_ghost).for_each(|permit| f(&mut permit.deadline));
        if let Some(Command::AskPermit(permit)) = lane {
            f(&mut permit.deadline);
        }
        if let Some((spoken, _)) = late_ack {
            f(spoken);
        }
        if let Some(sidecar) = sidecar {
            each_time_of_sidecar(sidecar, f);
        }
    }
}

impl Letter {
    /// The question that it answers.
    pub(super) fn id(&self) -> QuestionId {
        match self {
            Self::Grant(grant) => grant.id,
            Self::Vouch(vouch) => vouch.id,
        }
    }
}

fn named_somebody(sidecar: &Sidecar) -> bool {
    sidecar.heard.as_ref().is_some_and(|view| view.phase != Phase::Revoking)
}

/// Where one vouch of any voter is as good as a grant, and nobody stops being a voter, only the latest of them all
/// matters: a deadline is the maximum over them, and later answers only raise it.
fn fold_lease(sidecar: &mut Sidecar) {
    let latest = sidecar.vouched.values().copied().max();
    sidecar.granted = sidecar.granted.max(latest);
    sidecar.vouched.clear();
}

/// The canonical form of a leader.
pub(super) fn leader(leader: &mut Leader, bounds: &Bounds) {
    let Leader { record, evidence } = leader;
    each_time_of_evidence(evidence, &mut clamp);
    let revoking = record.phase == Phase::Revoking;
    let one_set = record.holder.as_ref().is_none_or(|holder| holder.sets.len() == 1);
    // Acknowledgements matter to a leader that revokes, and to the clocks of old voter sets.
    if !revoking {
        evidence.heard.clear();
        evidence.run = None;
    }
    if one_set {
        evidence.set_clocks.clear();
    }
    let without_holder = record.holder.is_none();
    for heard in evidence.heard.values_mut() {
        let started = if without_holder { heard.started } else { Boot(0) };
        let Heard { epoch, released, fenced, .. } = *heard;
        *heard = Heard { epoch, released, fenced, started, ..Heard::default() };
    }
    // When a run began matters to the policy `BestEffort` alone; what the holder itself vouched for, to nobody.
    if let Some(run) = &mut evidence.run {
        run.since = LONG_AGO;
    }
    if let Some(heard) = record.holder.as_ref().and_then(|holder| evidence.heard.get_mut(&holder.member)) {
        heard.released = None;
    }
    // The wait counts from the later of the two.
    evidence.last_grant = evidence.last_grant.filter(|granted| *granted > evidence.elected && *granted > LONG_AGO);
    if !revoking && bounds.is_last(record.epoch) {
        evidence.last_grant = None;
        evidence.elected = LONG_AGO;
    }
    if evidence.highest <= record.epoch {
        evidence.highest = 0;
    }
    evidence.has_voted.clear();
}

impl Leader {
    /// Time passes: everything lies that much further back.
    pub(super) fn shift(&mut self, by: Millis) {
        each_time_of_evidence(&mut self.evidence, &mut |time| time.0 = time.0.saturating_sub(by.0));
    }
}

/// What the leader of this model reads of an acknowledgement.
pub(super) fn forget_in_ack(ack: &mut Ack) {
    clamp_age(&mut ack.uptime);
    ack.last_vouch.values_mut().for_each(clamp_age);
    let mut kept = silence(&ack.from);
    kept.epoch = ack.epoch;
    kept.fenced = ack.fenced;
    kept.uptime = ack.uptime;
    kept.last_vouch = std::mem::take(&mut ack.last_vouch);
    *ack = kept;
}

fn silence(from: &Member) -> Ack {
    Ack {
        from: from.clone(),
        epoch: None,
        fenced: false,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: None,
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis(0),
    }
}

fn each_time_of_sidecar(sidecar: &mut Sidecar, f: &mut impl FnMut(&mut Boot)) {
    let Sidecar {
        me: _,
        born,
        disk: _,
        heard: _,
        asked,
        next_question: _,
        granted,
        word: _,
        vouched,
        inherited,
        others,
        peer_acks,
        vouch_given,
        answer_had,
        mysqld: _,
        permit,
        stray_openers: _,
        stray_fences: _,
        read: _,
        lane,
        read_owed: _,
        retry_at,
        round: _,
        replies,
        vouches_owed: _,
        second_word,
        fenced_by: _,
        opened_by_hand: _,
    } = sidecar;
    f(born);
    f(retry_at);
    for asked in asked.values_mut() {
        f(&mut asked.sent);
    }
    granted.iter_mut().chain(inherited).chain(second_word).for_each(&mut *f);
    vouched.values_mut().chain(vouch_given.values_mut()).chain(answer_had.values_mut()).for_each(&mut *f);
    replies.values_mut().for_each(&mut *f);
    for (moment, _) in others.values_mut() {
        f(moment);
    }
    for (moment, _) in peer_acks.values_mut() {
        f(moment);
    }
    if let Some(permit) = permit {
        f(&mut permit.deadline);
    }
    if let Lane::Fencing { began, .. } | Lane::Blind { began, .. } = lane {
        f(began);
    }
}

fn each_time_of_evidence(evidence: &mut Evidence, f: &mut impl FnMut(&mut Boot)) {
    let Evidence { elected, last_grant, run, heard, ended, set_clocks, has_voted: _, highest: _ } = evidence;
    f(elected);
    last_grant.iter_mut().for_each(&mut *f);
    if let Some(run) = run {
        f(&mut run.since);
    }
    ended.values_mut().for_each(&mut *f);
    set_clocks.values_mut().for_each(&mut *f);
    for heard in heard.values_mut() {
        let Heard { at, epoch: _, released, fenced: _, gtid: _, started, last_answer: _, conflict: _ } = heard;
        f(at);
        f(started);
        released.iter_mut().for_each(&mut *f);
    }
}
