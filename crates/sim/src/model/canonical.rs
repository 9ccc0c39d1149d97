//! One form for states that differ in nothing that matters: times are relative to now and saturated, question ids are
//! numbered anew, what can never have an effect any more is dropped.

use super::world::{LONG_AGO, Leader, Message, NOW, Node, World};
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

impl World {
    /// Time passes: everything lies that much further back.
    pub(super) fn shift(&mut self, by: Millis) {
        self.each_time(&mut |time| time.0 = time.0.saturating_sub(by.0));
    }

    pub(super) fn canonicalise(&mut self) {
        self.each_time(&mut clamp);
        for message in self.messages.values_mut() {
            forget_in_message(message);
        }
        for at in 0..self.nodes.len() {
            forget_in_sidecar(&mut self.nodes[at]);
            self.drop_dead_letters(at);
            self.renumber(at);
            each_start(&mut self.nodes[at]);
        }
        self.forget_in_leader();
        let on_disk = |node: &Node| node.disk.view.as_ref().map_or(0, |view| view.epoch);
        let lowest = self.nodes.iter().map(on_disk).min().unwrap_or(0);
        self.views.retain(|view| view.epoch > lowest);
    }

    /// Acknowledgements matter to a leader that revokes, and to the clocks of old voter sets.
    fn forget_in_leader(&mut self) {
        let Leader { record, evidence } = &mut self.leader;
        let revoking = record.phase == Phase::Revoking;
        let one_set = record.holder.as_ref().is_none_or(|holder| holder.sets.len() == 1);
        if !revoking {
            evidence.heard.clear();
            evidence.run = None;
        }
        if one_set {
            evidence.set_clocks.clear();
        }
        for heard in evidence.heard.values_mut() {
            *heard = Heard { epoch: heard.epoch, released: heard.released, fenced: heard.fenced, ..Heard::default() };
        }
        // When a run began matters to the policy `BestEffort` alone; what the holder itself vouched for, to nobody.
        if let Some(run) = &mut evidence.run {
            run.since = LONG_AGO;
        }
        if let Some(heard) = record.holder.as_ref().and_then(|holder| evidence.heard.get_mut(&holder.member)) {
            heard.released = None;
        }
        evidence.last_grant = evidence.last_grant.filter(|granted| *granted > LONG_AGO);
        evidence.highest = 0;
        let revoked_at = record.revoked_at;
        self.messages.retain(|_, message| match message {
            Message::Ack(ack) => !one_set || (revoking && ack.epoch >= revoked_at),
            Message::Question(_) | Message::Grant(_) | Message::Vouch(_) => true,
        });
    }

    fn each_time(&mut self, f: &mut impl FnMut(&mut Boot)) {
        let Self { nodes, record: _, views: _, leader, late_write: _, messages: _, left: _ } = self;
        for node in nodes {
            each_time_of_node(node, f);
        }
        each_time_of_evidence(&mut leader.evidence, f);
    }

    /// Answers to questions that nobody waits for have no effect, and a question whose every trace is lost will never be
    /// answered.
    fn drop_dead_letters(&mut self, at: usize) {
        let me = self.nodes[at].me.clone();
        let Some(sidecar) = &mut self.nodes[at].sidecar else {
            return self.messages.retain(|_, message| id_for(message, &me).is_none());
        };
        self.messages.retain(|_, message| id_for(message, &me).is_none_or(|id| sidecar.asked.contains_key(&id)));
        let alive: BTreeSet<QuestionId> = self.messages.values().filter_map(|message| id_for(message, &me)).collect();
        sidecar.asked.retain(|id, _| alive.contains(id));
    }

    fn renumber(&mut self, at: usize) {
        let me = self.nodes[at].me.clone();
        let Some(sidecar) = &mut self.nodes[at].sidecar else { return };
        // Numbered by whom they were put to: there is one to each.
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
        for message in self.messages.values_mut() {
            if let Some(new) = id_for(message, &me).and_then(|id| names.get(&id)) {
                match message {
                    Message::Question(question) => question.id = *new,
                    Message::Grant(grant) => grant.id = *new,
                    Message::Vouch(vouch) => vouch.id = *new,
                    Message::Ack(_) => {}
                }
            }
        }
    }
}

/// The question that this message asks for, or answers to, that asker.
fn id_for(message: &Message, asker: &Member) -> Option<QuestionId> {
    let (who, id) = match message {
        Message::Question(question) => (&question.from, question.id),
        Message::Grant(grant) => (&grant.to, grant.id),
        Message::Vouch(vouch) => (&vouch.about, vouch.id),
        Message::Ack(_) => return None,
    };
    (who == asker).then_some(id)
}

/// What nobody reads in this model.
fn forget_in_message(message: &mut Message) {
    match message {
        Message::Ack(ack) => forget_in_ack(ack),
        Message::Vouch(vouch) => *vouch.ack = silence(&vouch.from),
        Message::Question(_) | Message::Grant(_) => {}
    }
}

fn forget_in_ack(ack: &mut Ack) {
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

/// Starts of mysqld are compared with the present one only: that one is 1, all earlier ones are 0.
fn each_start(node: &mut Node) {
    let present = node.mysqld.start;
    node.mysqld.start = 1;
    let rename = |start: &mut StartId| start.0 = u64::from(start.0 == present);
    let rename_disk = |disk: &mut Disk| {
        disk.marker.iter_mut().filter_map(|marker| marker.start.as_mut()).for_each(rename);
        disk.note.iter_mut().for_each(|note| rename(&mut note.start));
    };
    rename_disk(&mut node.disk);
    node.permit.iter_mut().for_each(|permit| rename(&mut permit.start));
    match &mut node.lane {
        Some(Command::AskPermit(permit)) => rename(&mut permit.start),
        Some(Command::Kill(start)) => rename(start),
        _ => {}
    }
    let Some(sidecar) = &mut node.sidecar else { return };
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

fn forget_in_sidecar(node: &mut Node) {
    let Some(sidecar) = &mut node.sidecar else { return };
    sidecar.answer_had.clear();
    sidecar.peer_acks.clear();
    sidecar.others.clear();
    sidecar.replies.clear();
    // Readings take no time here: what is owed is answered at once or, with the lane taken, not at all.
    sidecar.vouches_owed.clear();
    sidecar.fenced_by = None;
    sidecar.retry_at = Boot(0);
    // What is older than a lease is dropped at the next step anyway.
    if let Some(view) = &sidecar.heard {
        let lease = view.settings.lease_timeout;
        sidecar.asked.retain(|_, asked| NOW < asked.sent + lease);
        // One generation of questions at a time: the answers to older ones are lost.
        let newest = sidecar.asked.values().map(|asked| asked.sent).max();
        sidecar.asked.retain(|_, asked| Some(asked.sent) == newest);
        sidecar.granted = sidecar.granted.filter(|sent| NOW < *sent + lease);
        sidecar.vouched.retain(|_, sent| NOW < *sent + lease);
        sidecar.inherited = sidecar.inherited.filter(|deadline| NOW < *deadline);
    }
    // A ladder is over its time within one step.
    if let Lane::Fencing { began, .. } = &mut sidecar.lane
        && *began < NOW
    {
        *began = LONG_AGO;
    }
    if sidecar.born == LONG_AGO {
        sidecar.vouch_given.retain(|_, given| *given > LONG_AGO);
    }
}

fn each_time_of_node(node: &mut Node, f: &mut impl FnMut(&mut Boot)) {
    let Node { me: _, sidecar, disk: _, mysqld: _, permit, lane, .. } = node;
    if let Some(permit) = permit {
        f(&mut permit.deadline);
    }
    if let Some(Command::AskPermit(permit)) = lane {
        f(&mut permit.deadline);
    }
    if let Some(sidecar) = sidecar {
        each_time_of_sidecar(sidecar, f);
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
        read: _,
        lane,
        read_owed: _,
        retry_at,
        round: _,
        replies,
        vouches_owed: _,
        second_word,
        fenced_by: _,
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
    if let Lane::Fencing { began, .. } = lane {
        f(began);
    }
}

fn each_time_of_evidence(evidence: &mut Evidence, f: &mut impl FnMut(&mut Boot)) {
    let Evidence { elected, last_grant, run, heard, ended, set_clocks, highest: _ } = evidence;
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
