//! What may happen at one node, and what comes of it. Computed once for each state that a node can be in.

use super::local::{self, Said, Stimulus};
use super::step::Machine;
use super::world::{Bounds, Faults, Node, Start};
use bloodraven_brain::fence::{Command, Mysqld, Source};
use bloodraven_brain::record::{Phase, Record};
use std::rc::Rc;

/// What one stimulus does to one node.
pub(super) struct Outcome {
    /// The node afterwards, if it says nothing that anybody could hear.
    pub(super) quiet: u32,
    /// The same, before it was brought into its form.
    pub(super) raw: Node,
    pub(super) said: Vec<Said>,
}

/// A stimulus, the fault that it uses up, and its outcome.
pub(super) type Own = (Rc<Stimulus>, Fault, Rc<Outcome>);

/// Which counter a stimulus uses up.
pub(super) type Fault = fn(&mut Faults) -> Option<&mut u8>;

fn no_fault(_: &mut Faults) -> Option<&mut u8> {
    None
}

impl Machine {
    /// What may happen at a node by itself.
    pub(super) fn own_steps(&mut self, id: u32) -> Rc<Vec<Own>> {
        if let Some(known) = self.own.get(&id) {
            return Rc::clone(known);
        }
        let node = self.nodes.get(id);
        let steps = self.outcomes(&node, own_stimuli(&self.bounds, &node));
        self.own.insert(id, Rc::clone(&steps));
        steps
    }

    pub(super) fn outcomes(&mut self, node: &Node, stimuli: Vec<(Stimulus, Fault)>) -> Rc<Vec<Own>> {
        let mut steps = Vec::new();
        for (stimulus, fault) in stimuli {
            // What can never happen within the bounds is not computed either.
            if fault(&mut self.bounds.faults.clone()).is_some_and(|left| *left == 0) {
                continue;
            }
            let (raw, said) = local::after(&self.bounds, node, &stimulus);
            let quiet = self.nodes.put(raw.clone().canonical(&self.bounds));
            steps.push((Rc::new(stimulus), fault, Rc::new(Outcome { quiet, raw, said })));
        }
        Rc::new(steps)
    }

    /// Which views may reach a node: newer ones, and the record's own again where its acknowledgement is wanted.
    pub(super) fn view_steps(&mut self, id: u32, store: u32) -> Rc<Vec<Own>> {
        if let Some(known) = self.views.get(&(id, store)) {
            return Rc::clone(known);
        }
        let (node, told) = (self.nodes.get(id), self.stores.get(store));
        let mut stimuli: Vec<(Stimulus, Fault)> = Vec::new();
        if node.sidecar.is_some() {
            for view in &told.views {
                let newer = view.epoch > node.known();
                let wanted = view.epoch == told.record.epoch && asks_again(&self.bounds, &told.record);
                if newer || wanted {
                    stimuli.push((Stimulus::View(view.clone(), Source::Operator), no_fault));
                }
                if newer && self.bounds.peer_views {
                    stimuli.push((Stimulus::View(view.clone(), Source::Peer), no_fault));
                }
            }
        }
        let steps = self.outcomes(&node, stimuli);
        self.views.insert((id, store), Rc::clone(&steps));
        steps
    }
}

/// Whether a leader pushes its view to those who have it: for their acknowledgement.
fn asks_again(bounds: &Bounds, record: &Record) -> bool {
    let several_sets = record.holder.as_ref().is_some_and(|holder| holder.sets.len() > 1);
    record.phase == Phase::Revoking || several_sets || bounds.start == Start::RolledBack
}

fn own_stimuli(bounds: &Bounds, node: &Node) -> Vec<(Stimulus, Fault)> {
    if node.ended {
        return Vec::new();
    }
    let mut found: Vec<(Stimulus, Fault)> = Vec::new();
    let server = &node.server;
    if server.running && server.opening_in_flight {
        found.push((Stimulus::OpeningLands(false), no_fault));
        if matches!(node.lane, Some(Command::EndOpeners { .. })) {
            found.push((Stimulus::OpeningLands(true), no_fault));
        }
    }
    if server.running && server.operator_opens {
        found.push((Stimulus::OperatorOpens, no_fault));
    }
    if node.asked_by_ghost.is_some_and(|permit| server.running && permit.start == server.id()) {
        found.push((Stimulus::GhostIsPermitted, no_fault));
    }
    if server.running {
        found.push((Stimulus::MysqldDies, |left| Some(&mut left.mysqld_crashes)));
    } else {
        found.push((Stimulus::MysqldStarts, no_fault));
    }
    found.push((Stimulus::Ends, |left| Some(&mut left.ends)));
    let Some(sidecar) = &node.sidecar else {
        found.push((Stimulus::SidecarStarts, no_fault));
        return found;
    };
    found.extend([(Stimulus::Tick, no_fault as Fault), (Stimulus::Timer, no_fault)]);
    let known = matches!(sidecar.mysqld, Mysqld::Up(start) if server.running && start == server.id())
        || (sidecar.mysqld == Mysqld::Down && !server.running);
    if bounds.slow_keeper && !known {
        found.push((Stimulus::KeeperSpeaks, no_fault));
    }
    found.extend(node.inbox.keys().cloned().map(|from| (Stimulus::Deliver(from), no_fault as Fault)));
    if node.lane.is_some() {
        found.push((Stimulus::LaneDone, no_fault));
        found.push((Stimulus::LaneFails, |left| Some(&mut left.lane_failures)));
    }
    found.push((Stimulus::SidecarDies, |left| Some(&mut left.sidecar_crashes)));
    found.push((Stimulus::StoreIsLost, |left| Some(&mut left.lost_stores)));
    found
}
