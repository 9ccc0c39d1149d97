//! Statements: they reach a server, wait there, run, and are answered; each of these may fail on its own.
//!
//! In: statements of sidecars, operators and humans. Out: their effects and their answers. Must not: let one that was
//! taken be forgotten while its session lives.

use super::clock::{MS, SEC};
use super::event::{Answer, Event, ForLeader};
use super::net::{Channel, End};
use super::server::{Caller, Cloning, Does, Life, Statement};
use super::world::World;
use bloodraven_brain::candidate::Data;
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::fence::{LaneResult, ReadBack};
use bloodraven_brain::group::Task;
use bloodraven_brain::group::input::{Facts, Outcome, ReplicaFacts};
use bloodraven_brain::message::StartId;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::Millis;
use bloodraven_gtid::GtidSet;

/// How a statement ended.
pub(super) enum Ran {
    Lane(LaneResult),
    Task(Outcome),
}

/// The connection broke.
pub(super) fn broken() -> Outcome {
    Outcome::Failed("the connection was lost".to_owned())
}

impl World {
    /// A statement reaches a server; one that does not serve refuses it.
    pub(super) fn reaches(&mut self, p: usize, does: Does, caller: Caller) {
        if self.pods[p].server.life != Life::Up || !self.pods[p].runs {
            return self.answer(p, caller, Ran::Lane(LaneResult::Failed), Some(broken()));
        }
        let id = self.next_number();
        let slow = self.pods[p].server.slow;
        let takes = 100 + self.random.below(900) + if slow > 0 { self.random.below(slow) } else { 0 };
        let server = &mut self.pods[p].server;
        server.take(id, does, caller);
        let start = server.start;
        self.queue.push(self.now + takes, Event::Due(p, start, id));
    }

    pub(super) fn due(&mut self, p: usize, start: u64, id: u64) {
        let now = self.now;
        let server = &mut self.pods[p].server;
        if server.start != start || server.life != Life::Up {
            return;
        }
        let Some(statement) = server.statements.iter_mut().find(|one| one.id == id) else { return };
        if server.hung {
            statement.waits = true;
            return;
        }
        let half = statement.half;
        let again = match statement.does {
            Does::Open(_) => !server.open_half(half),
            Does::Fence { .. } if server.blocked_until > now => {
                self.queue.push(now + 20 * MS, Event::Due(p, start, id));
                return;
            }
            Does::Fence { both } => !server.fence_half(half, both),
            _ => false,
        };
        if again {
            if let Some(statement) = server.statements.iter_mut().find(|one| one.id == id) {
                statement.half += 1;
            }
            let at = self.soon(20, 300);
            return self.queue.push(at, Event::Due(p, start, id));
        }
        let Some(statement) = server.remove(id) else { return };
        self.execute(p, statement.does, statement.caller);
    }

    /// A statement runs to its end.
    fn execute(&mut self, p: usize, does: Does, caller: Caller) {
        let ran = match does {
            Does::Open(tenure) => {
                self.pods[p].server.tenure = tenure;
                self.pods[p].server.by_hand = false;
                self.opened(p);
                Ran::Lane(LaneResult::OpenSent)
            }
            Does::Fence { .. } => {
                self.closed(p);
                Ran::Lane(LaneResult::FenceSet)
            }
            Does::EndOpeners => {
                let server = &mut self.pods[p].server;
                server.opener = None;
                server.statements.retain(|one| !matches!(one.does, Does::Open(_)));
                Ran::Lane(LaneResult::OpenersGone)
            }
            Does::EndFences => {
                let is_stray =
                    |one: &Statement| matches!((&one.does, one.caller), (Does::Fence { .. }, Caller::Sidecar(..)));
                self.pods[p].server.statements.retain(|one| !is_stray(one));
                Ran::Lane(LaneResult::FencesGone)
            }
            Does::EndApps => {
                let server = &mut self.pods[p].server;
                server.unblock();
                return;
            }
            Does::Read(under, _) => {
                let server = &self.pods[p].server;
                Ran::Lane(LaneResult::Read(ReadBack {
                    start: StartId(server.start),
                    under,
                    read_only: server.read_only,
                    super_read_only: server.super_read_only,
                    gtid: server.executed.clone(),
                }))
            }
            Does::Poll => Ran::Task(Outcome::Read(Box::new(self.facts(p)))),
            Does::Task(_, Some(meant)) if meant != self.pods[p].server.uuid => {
                Ran::Task(Outcome::Failed("another server answers".to_owned()))
            }
            Does::Task(task, _) => match self.task(p, &task, caller) {
                Some(outcome) => Ran::Task(outcome),
                None => return,
            },
        };
        self.answer(p, caller, ran, None);
    }

    fn closed(&mut self, p: usize) {
        let server = &mut self.pods[p].server;
        if server.read_only && server.super_read_only {
            server.by_hand = false;
        }
        self.tell(|w| {
            let server = &w.pods[p].server;
            let pair = (u8::from(server.read_only), u8::from(server.super_read_only));
            (format!("mysqld {}", w.pod_name(p)), format!("is closed: {}/{}", pair.0, pair.1))
        });
    }

    /// A task of the operator's. None: it is answered later.
    fn task(&mut self, p: usize, task: &Task, caller: Caller) -> Option<Outcome> {
        let read = |world: &Self| Some(Outcome::Read(Box::new(world.facts(p))));
        match task {
            Task::Read | Task::WaitFor { .. } => return read(self),
            Task::Fence => {
                // The statement, and the sessions of applications ended; but not those that wait for a receipt.
                if !self.pods[p].server.waiting.is_empty() {
                    return Some(Outcome::Failed("a commit waits for another site".to_owned()));
                }
                self.pods[p].server.blocked_until = 0;
                self.pods[p].server.fence_half(1, false);
                self.closed(p);
                return read(self);
            }
            Task::EndSessions => return Some(Outcome::Sessions(0)),
            Task::StopReceiver => {
                self.pods[p].server.receiver = false;
                return read(self);
            }
            Task::StartApplier | Task::LiftDelay => {
                let server = &mut self.pods[p].server;
                if matches!(task, Task::LiftDelay) && server.delay > 0 {
                    (server.delay, server.applying) = (0, false);
                }
                server.applier = true;
                self.go_on_applying(p);
            }
            Task::StartReplica => {
                let server = &mut self.pods[p].server;
                server.applier = server.source.is_some();
                if server.applier && !server.receiver {
                    server.receive();
                }
                server.receiver_error = None;
                self.go_on_applying(p);
                self.start_pulling(p);
            }
            Task::CutReplication { unapplied } => {
                let server = &mut self.pods[p].server;
                server.receiver = false;
                server.applier = false;
                if server.unapplied() != **unapplied {
                    return Some(Outcome::Failed("more was received than is given up".to_owned()));
                }
                self.judge_cut(p);
                self.pods[p].server.reset_replica();
                return read(self);
            }
            Task::Attach { source, contained_in } => {
                let Some(source) = self.site_number(source) else { return Some(broken()) };
                let server = &mut self.pods[p].server;
                server.fence_half(0, true);
                server.fence_half(1, true);
                if contained_in.contains(&server.executed) {
                    self.judge_attach(p, source, "attached");
                    self.pods[p].server.follow(source);
                    self.start_pulling(p);
                }
                return read(self);
            }
            Task::Repoint { source, contained_in } => {
                let Some(source) = self.site_number(source) else { return Some(broken()) };
                let server = &mut self.pods[p].server;
                server.receiver = false;
                server.applier = false;
                if contained_in.contains(&server.held()) {
                    self.judge_attach(p, source, "re-pointed");
                    self.pods[p].server.follow(source);
                    self.start_pulling(p);
                }
                return read(self);
            }
            Task::Clone { donor, over, asked } => {
                let server = &self.pods[p].server;
                // A fenced server drops no schema: only who was asked for is emptied first, and this is done here in one go.
                if server.user_data && !asked {
                    return Some(Outcome::Failed("it has schemas".to_owned()));
                }
                let meant = over.as_ref().is_none_or(|over| over.contains(&server.executed));
                if !meant || server.is_open() {
                    return Some(Outcome::Failed("it is not what was to be overwritten".to_owned()));
                }
                return self.begin_clone(p, donor, caller);
            }
            Task::SwitchSemiSync(switch) => {
                if let Err(why) = self.switch_semi_sync(p, *switch) {
                    return Some(Outcome::Failed(why.to_owned()));
                }
                return read(self);
            }
            // Simulated servers have no accounts: everybody is let in.
            Task::CheckLogins { .. } | Task::SetPasswords { .. } | Task::DiscardPasswords { .. } => {
                return Some(Outcome::Logins(Box::default()));
            }
            Task::RenewChannel { .. } => {}
            Task::Cache(_) => return Some(Outcome::Failed("there is no cache".to_owned())),
        }
        Some(Outcome::Ok)
    }

    fn begin_clone(&mut self, p: usize, donor: &bloodraven_brain::name::Site, caller: Caller) -> Option<Outcome> {
        let (Some(donor), None) = (self.site_number(donor), &self.pods[p].server.cloning) else {
            return Some(broken());
        };
        self.judge_clone(p, donor);
        let server = &mut self.pods[p].server;
        // CLONE drops what there is first.
        server.reset_replica();
        server.replace_data(GtidSet::new(), false);
        server.cloning = Some(Cloning { donor, caller });
        let start = server.start;
        let at = self.soon(500 * MS, 6 * SEC);
        self.queue.push(at, Event::CloneOver(p, start));
        self.tell(|w| {
            (format!("mysqld {}", w.pod_name(p)), format!("is overwritten by a clone of {}", w.names[donor]))
        });
        None
    }

    /// The copy is complete: the server starts anew on it. Or the donor is gone: it stays empty.
    pub(super) fn clone_over(&mut self, p: usize, start: u64) {
        if self.pods[p].server.start != start || !self.pods[p].server.is_up() {
            return;
        }
        let Some(cloning) = self.pods[p].server.cloning.take() else { return };
        let site = self.pods[p].site;
        let donor = self.pod_at(cloning.donor).filter(|donor| {
            let link = self.net.link(End::Site(cloning.donor), End::Site(site), Channel::Sql);
            self.pods[*donor].server.is_up() && !self.pods[*donor].server.hung && !link.cut && !self.pods[p].stray
        });
        let Some(donor) = donor else {
            let outcome = Outcome::Failed("the donor is gone".to_owned());
            return self.answer_operator(p, cloning.caller, outcome);
        };
        let (executed, user_data) = (self.pods[donor].server.executed.clone(), self.pods[donor].server.user_data);
        self.pods[p].server.replace_data(executed, user_data);
        self.answer_operator(p, cloning.caller, Outcome::Cloned);
        // Exit code 16: the keeper starts it again by itself.
        let left = self.pods[p].server.end();
        self.pods[p].keeper.permit = None;
        drop(left);
        if self.pods[p].keeper.up {
            self.start_server(p);
        }
    }

    /// What a poll reads.
    pub(super) fn facts(&self, p: usize) -> Facts {
        let server = &self.pods[p].server;
        let replica = server.source.map(|source| {
            let connected = self.source_of(p).is_some();
            let receiver = match (server.receiver, connected) {
                (false, _) => Receiver::Stopped,
                (true, true) => Receiver::Running,
                (true, false) => Receiver::Connecting,
            };
            let applier = match (server.applier, server.applier_error) {
                (_, true) => Applier::Failed { code: 1062, message: "duplicate entry".to_owned() },
                (true, false) => Applier::Running,
                (false, false) => Applier::Stopped,
            };
            let caught_up = server.unapplied().is_empty();
            let lag = if server.delay > 0 { server.delay / MS } else { 1000 };
            let behind = (receiver == Receiver::Running && applier == Applier::Running)
                .then_some(Millis(if caught_up && server.delay == 0 { 0 } else { lag }));
            ReplicaFacts {
                source: self.names.get(source).cloned(),
                receiver,
                receiver_error: server.receiver_error.clone(),
                applier,
                delayed: server.delay > 0,
                behind,
            }
        });
        // A commit that waits for a receipt is at those who receive, and is not executed yet. A server that could be closed has
        // none: closing waits for them, and who is ended there has committed.
        let waiting = server.waiting.iter().copied().filter(|_| server.is_open());
        let committing: GtidSet = waiting.collect();
        Facts {
            pair: Pair { read_only: server.read_only, super_read_only: server.super_read_only },
            server_uuid: server.uuid,
            data: Some(Data {
                executed: server.executed.subtract(&committing),
                received: server.received.clone(),
                purged: server.purged.clone(),
                committing,
            }),
            replica,
            user_data: server.user_data,
            semi_sync: self.semi_sync_facts(p),
        }
    }

    /// Answers whoever waits. `instead` is what an operator hears in place of a lane's result.
    fn answer(&mut self, p: usize, caller: Caller, ran: Ran, instead: Option<Outcome>) {
        match (caller, ran) {
            (Caller::Sidecar(life, token), Ran::Lane(result)) => {
                let at = self.soon(50, 500);
                self.queue.push(at, Event::Lane(p, life, token, Box::new(result)));
            }
            (Caller::Operator(..), Ran::Lane(_)) => {
                self.answer_operator(p, caller, instead.unwrap_or(Outcome::Ok));
            }
            (Caller::Operator(..), Ran::Task(outcome)) => self.answer_operator(p, caller, outcome),
            (Caller::Sidecar(..), Ran::Task(_)) | (Caller::Nobody, _) => {}
        }
    }

    pub(super) fn answer_operator(&mut self, p: usize, caller: Caller, outcome: Outcome) {
        let Caller::Operator(op, reign, call) = caller else { return };
        let Some(from) = self.end_of(p) else { return };
        if let Some(at) = self.carry(from, End::Operator(op), Channel::Sql) {
            let answer = ForLeader::Back(call, Box::new(Answer::Sql(outcome)));
            self.queue.push(at, Event::Leader(op, reign, answer));
        }
    }

    /// The server goes on after it stood still: what waited runs, in any order.
    pub(super) fn resume_server(&mut self, p: usize) {
        let server = &mut self.pods[p].server;
        if !server.hung {
            return;
        }
        server.hung = false;
        let start = server.start;
        let mut waiting = Vec::new();
        for statement in server.statements.iter_mut().filter(|one| one.waits) {
            statement.waits = false;
            waiting.push(statement.id);
        }
        for id in waiting {
            let at = self.soon(10, 3 * MS);
            self.queue.push(at, Event::Due(p, start, id));
        }
        self.start_pulling(p);
        self.go_on_applying(p);
    }
}
