//! What becomes of what a node says: heard at once, late, or lost.

use super::happen::Outcome;
use super::intern::fingerprint;
use super::leader::Write;
use super::local::{self, Said, Stimulus};
use super::step::{Action, Machine, Who, with_leader};
use super::world::{Letter, NOW, World};
use bloodraven_brain::message::{Ack, Question};
use bloodraven_brain::name::Member;
use bloodraven_brain::time::Millis;
use std::rc::Rc;

/// A world in the making: what was heard of what a node said.
#[derive(Clone)]
struct Draft {
    world: World,
    letters: Vec<(Option<Member>, Letter)>,
    late_ack: Option<Ack>,
}

impl Machine {
    /// Every way in which what a node says may be heard or lost.
    pub(super) fn heard(
        &mut self,
        base: World,
        at: usize,
        stimulus: &Rc<Stimulus>,
        outcome: &Rc<Outcome>,
        found: &mut Vec<(Action, World)>,
    ) {
        let mut drafts = vec![Draft { world: base, letters: Vec::new(), late_ack: None }];
        for said in &outcome.said {
            for draft in drafts.clone() {
                self.listen(&draft, said, &mut drafts);
            }
        }
        for (number, draft) in (0..).zip(drafts) {
            let mut next = draft.world;
            next.nodes[at] = Some(if draft.letters.is_empty() && draft.late_ack.is_none() {
                outcome.quiet
            } else {
                self.with_letters(outcome, draft.letters, draft.late_ack)
            });
            found.push((Action::Node(at, Rc::clone(stimulus), number), next));
        }
    }

    pub(super) fn with_letters(
        &mut self,
        outcome: &Rc<Outcome>,
        letters: Vec<(Option<Member>, Letter)>,
        ack: Option<Ack>,
    ) -> u32 {
        // An outcome is kept as long as the machine, so its place names it.
        let key = (Rc::as_ptr(outcome).addr(), fingerprint(&(&letters, &ack)));
        if let Some(known) = self.letters.get(&key) {
            return *known;
        }
        let mut node = outcome.raw.clone();
        node.inbox.extend(letters);
        node.late_ack = ack.map(|ack| (NOW, ack)).or(node.late_ack);
        let id = self.nodes.put(node.canonical(&self.bounds));
        self.letters.insert(key, id);
        id
    }

    fn listen(&mut self, draft: &Draft, said: &Said, drafts: &mut Vec<Draft>) {
        let with = |draft: &Draft, world: World, letter: Option<(Option<Member>, Letter)>| {
            let mut draft = Draft { world, ..draft.clone() };
            draft.letters.extend(letter);
            draft
        };
        match said {
            Said::Question(None, question) => {
                for who in [Who::Leader, Who::Rival] {
                    if let Some((world, Some(letter))) = self.answered(draft.world, who, question) {
                        drafts.push(with(draft, world, Some((None, letter))));
                    }
                }
            }
            Said::Question(Some(voter), question) => {
                let Some(to) = self.find(&draft.world, voter) else { return };
                let Some(id) = draft.world.nodes[to] else { return };
                if let (after, Some(letter)) = self.vouched(id, question) {
                    let mut world = draft.world;
                    world.nodes[to] = Some(after);
                    drafts.push(with(draft, world, Some((Some(voter.clone()), letter))));
                }
            }
            Said::Ack(ack) => {
                for who in [Who::Leader, Who::Rival] {
                    if self.leader(&draft.world, who).is_some_and(|leader| leader.cares_for(ack)) {
                        let world = self.acknowledged(draft.world, who, ack, None);
                        drafts.push(with(draft, world, None));
                    }
                }
                if self.bounds.late_acks {
                    drafts.push(Draft { late_ack: Some(ack.clone()), ..draft.clone() });
                }
            }
            Said::Vouch(_) => {}
        }
    }

    /// The voter's answer, if it vouches.
    pub(super) fn vouched(&mut self, id: u32, question: &Question) -> (u32, Option<Letter>) {
        let key = (id, question.clone());
        if let Some(known) = self.vouches.get(&key) {
            return known.clone();
        }
        let (node, said) = local::after(&self.bounds, &self.nodes.get(id), &Stimulus::Asked(question.clone()));
        let vouch = said.into_iter().find_map(|said| match said {
            Said::Vouch(vouch) if vouch.ok => Some(Letter::Vouch(vouch)),
            _ => None,
        });
        let answer = (self.nodes.put(node.canonical(&self.bounds)), vouch);
        self.vouches.insert(key, answer.clone());
        answer
    }

    /// A leader's answer, if it grants.
    pub(super) fn answered(&mut self, world: World, who: Who, question: &Question) -> Option<(World, Option<Letter>)> {
        let id = match who {
            Who::Leader => world.leader,
            // One that was replaced knows it, and grants nothing, unless the Lease or the check is not kept.
            Who::Rival => world.rival?,
        };
        let key = (id, question.clone());
        if let Some((after, letter)) = self.answers.get(&key) {
            return Some((with_leader(world, who, *after), letter.clone()));
        }
        let mut leader = (*self.leaders.get(id)).clone();
        let letter = leader.answers(question).map(Letter::Grant);
        let after = self.leaders.put(leader.canonical(&self.bounds));
        self.answers.insert(key, (after, letter.clone()));
        Some((with_leader(world, who, after), letter))
    }

    pub(super) fn acknowledged(&mut self, world: World, who: Who, ack: &Ack, lay: Option<Millis>) -> World {
        let Some(leader) = self.leader(&world, who) else { return world };
        let mut leader = (*leader).clone();
        let ended = leader.takes(&self.bounds, ack, lay);
        let mut world = with_leader(world, who, self.leaders.put(leader.clone().canonical(&self.bounds)));
        // An end is written down before anyone acts on it; a leader that cannot write it does not know of it.
        for member in ended {
            if self.stores.get(world.store).record == leader.record
                && let Some(next) = leader.next(&Write::NoteEnd(member))
            {
                leader.record = next.clone();
                world = self.persist(world, who, &Rc::new(next), false);
            }
        }
        world
    }
}
