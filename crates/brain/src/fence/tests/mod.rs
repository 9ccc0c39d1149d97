//! The sidecar's rule, row by row, on a bench: a sidecar, a server and a keeper whose every step the test decides.

mod answers;
mod blind;
mod corners;
mod emptying;
mod gate;
mod ladder;
mod lease;
mod opening;
mod restart;
mod strays;
mod views;

use super::{Command, Disk, Input, KeeperFact, LaneResult, Marker, Permit, ReadBack, ReplyId, Sidecar, Source};
use crate::message::{Ack, Grant, OpeningWord, Question, StartId, Vouch};
use crate::name::{Instance, Member, Site};
use crate::record::{Epoch, Phase, Settings, View};
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;

/// When every bench begins.
const BEGIN: u64 = 100_000;

/// The lease of every bench, unless said otherwise.
const LEASE: u64 = 20_000;

fn member(site: &str) -> Member {
    instance(site, "s1")
}

fn instance(site: &str, store: &str) -> Member {
    Member { site: Site::new(site), instance: Instance::new(&format!("pod-{site}"), store) }
}

/// The site of the sidecar on the bench.
fn me() -> Member {
    member("iad")
}

fn gtids(text: &str) -> GtidSet {
    text.parse().expect("a GTID set of the test")
}

/// So many transactions of the one server that ever wrote.
fn wrote(count: u64) -> GtidSet {
    gtids(&format!("00000000-0000-0000-0000-00000000000a:1-{count}"))
}

fn settings(min_peers: u32) -> Settings {
    Settings { lease_timeout: Millis(LEASE), min_peers }
}

/// A Stable view of that tenure for that seat, all three sites voting; Revoking without a seat.
fn view(epoch: Epoch, tenure: Epoch, seat: Option<&Member>) -> View {
    View {
        epoch,
        tenure,
        phase: if seat.is_some() { Phase::Stable } else { Phase::Revoking },
        seat: seat.cloned(),
        voters: vec![me(), member("pdx"), member("fra")],
        settings: settings(1),
    }
}

fn voting(mut view: View, voters: &[Member]) -> View {
    view.voters = voters.to_vec();
    view
}

fn with_peers(mut view: View, min_peers: u32) -> View {
    view.settings.min_peers = min_peers;
    view
}

/// What an opening has to satisfy in most tests: ten transactions.
fn word() -> OpeningWord {
    OpeningWord { promotion_gtid: wrote(10), ..OpeningWord::default() }
}

/// The truth about mysqld.
#[expect(clippy::struct_excessive_bools, reason = "two server variables and three facts, each true or false")]
struct Server {
    start: u64,
    running: bool,
    read_only: bool,
    super_read_only: bool,
    opening_in_flight: bool,
    fence_in_flight: bool,
    executed: GtidSet,
}

/// A sidecar with its server, its keeper and its disk.
struct Bench {
    sidecar: Sidecar,
    now: u64,
    server: Server,
    /// What the keeper holds.
    permit: Option<Permit>,
    /// The operation of the lane that is under way.
    lane: Option<Command>,
    /// Everything commanded since the bench was built, or since [`Bench::forget`].
    out: Vec<Command>,
    /// Whether the disk stores what it is told to.
    disk_works: bool,
}

impl Bench {
    /// A sidecar that starts with that on its disk, beside a server that has just booted; the keeper has answered.
    fn starts_with(disk: Disk) -> Self {
        let mut bench = Self::silent_keeper(disk);
        bench.keeper();
        bench.run_lane();
        bench
    }

    fn silent_keeper(disk: Disk) -> Self {
        let server = Server {
            start: 1,
            running: true,
            read_only: true,
            super_read_only: true,
            opening_in_flight: false,
            fence_in_flight: false,
            executed: wrote(10),
        };
        Self {
            sidecar: Sidecar::start(me(), disk, Boot(BEGIN)),
            now: BEGIN,
            server,
            permit: None,
            lane: None,
            out: Vec::new(),
            disk_works: true,
        }
    }

    /// The highest view on its disk is this one.
    fn under(view: View) -> Self {
        Self::starts_with(Disk { view: Some(view), ..Disk::default() })
    }

    /// Epoch 5, tenure 5, is this sidecar's; fenced since boot, no lease yet.
    fn named() -> Self {
        Self::under(view(5, 5, Some(&me())))
    }

    /// The same, opened, with a lease that the leader's grant began at [`BEGIN`].
    fn opened() -> Self {
        Self::opened_under(view(5, 5, Some(&me())))
    }

    fn opened_under(view: View) -> Self {
        let mut bench = Self::under(view);
        bench.tick().grant(Some(word())).run_lane();
        assert!(bench.writable(), "the bench opens");
        bench.forget();
        bench
    }

    /// Opened before; now the lease has ended and the server is fenced by the sidecar itself.
    fn lapsed() -> Self {
        let mut bench = Self::opened();
        bench.later(LEASE).timer().run_lane();
        assert!(bench.sidecar.fenced(), "the bench fences");
        bench.forget();
        bench
    }

    fn forget(&mut self) -> &mut Self {
        self.out.clear();
        self
    }

    fn later(&mut self, millis: u64) -> &mut Self {
        self.now += millis;
        self
    }

    fn give(&mut self, input: Input) -> &mut Self {
        let commands = self.sidecar.step(Boot(self.now), input);
        let mut stored = Vec::new();
        for command in commands {
            match &command {
                Command::Store(view) if self.disk_works => stored.push(view.epoch),
                Command::RenewPermit(permit) if self.permit.is_some() => self.permit = Some(*permit),
                Command::WithdrawPermit(_) => self.permit = None,
                Command::Open { .. } => self.server.opening_in_flight = true,
                _ => {}
            }
            if is_lane(&command) {
                self.lane = Some(command.clone());
            }
            self.out.push(command);
        }
        for epoch in stored {
            self.give(Input::Stored(epoch));
        }
        self
    }

    fn tick(&mut self) -> &mut Self {
        self.give(Input::Tick)
    }

    fn timer(&mut self) -> &mut Self {
        self.give(Input::Timer)
    }

    /// The keeper says how things are.
    fn keeper(&mut self) -> &mut Self {
        let running = self.server.running.then_some(StartId(self.server.start));
        self.give(Input::Keeper(KeeperFact { running, permit: self.permit }))
    }

    fn hear(&mut self, view: View, source: Source) -> &mut Self {
        self.give(Input::View { view, source, reply: None })
    }

    /// The operator pushes a view; the reply goes by the epoch's number.
    fn pushed(&mut self, view: View) -> &mut Self {
        let reply = Some(ReplyId(view.epoch));
        self.give(Input::View { view, source: Source::Operator, reply })
    }

    /// The newest question to that voter; none: to the leader.
    fn question(&self, to: Option<&Member>) -> Question {
        let found = self.out.iter().rev().find_map(|command| match command {
            Command::AskOperator(Some(question)) if to.is_none() => Some(question.clone()),
            Command::Acknowledge { question: Some(question), .. } if to.is_none() => Some(question.clone()),
            Command::AskPeer { voter, question } if Some(voter) == to => Some(question.clone()),
            _ => None,
        });
        found.expect("it was asked")
    }

    /// The leader answers the newest question with the view at hand.
    fn grant(&mut self, open: Option<OpeningWord>) -> &mut Self {
        let view = self.sidecar.heard.clone().expect("a view");
        let grant = Grant { id: self.question(None).id, to: me(), view, open };
        self.give(Input::Granted { grant, reply: None })
    }

    /// That voter answers its newest question.
    fn vouch(&mut self, from: &Member) -> &mut Self {
        self.vouch_with(from, None)
    }

    fn vouch_with(&mut self, from: &Member, gtid: Option<GtidSet>) -> &mut Self {
        let question = self.question(Some(from));
        self.give(Input::Vouched(Vouch { gtid, ..answer_to(&question, from) }))
    }

    /// Both voters answer: first what the tick asked, which brings the lease, then what the data gate asks.
    fn all_vouch(&mut self) -> &mut Self {
        for _ in 0..2 {
            self.vouch(&member("pdx")).vouch(&member("fra"));
        }
        self.run_lane()
    }

    /// Carries out the operation of the lane.
    fn lane_done(&mut self) -> &mut Self {
        let result = self.lane_result();
        self.give(Input::Lane(result))
    }

    fn lane_fails(&mut self) -> &mut Self {
        assert!(self.lane.take().is_some(), "something is under way");
        self.give(Input::Lane(LaneResult::Failed))
    }

    /// Carries out whatever the lane asks for, until it is idle.
    fn run_lane(&mut self) -> &mut Self {
        for _ in 0..20 {
            if self.lane.is_some() {
                self.lane_done();
            }
        }
        assert!(self.lane.is_none(), "the lane comes to rest");
        self
    }

    fn lane_result(&mut self) -> LaneResult {
        let command = self.lane.take().expect("something is under way");
        let start = StartId(self.server.start);
        match command {
            Command::Kill(killed) => {
                self.dies();
                LaneResult::Killed(killed)
            }
            _ if !self.server.running => LaneResult::Failed,
            Command::ConnectOpener { .. } => LaneResult::OpenerConnected,
            Command::AskPermit(permit) if permit.start == start => {
                self.permit = Some(permit);
                LaneResult::PermitGiven(permit)
            }
            Command::Open { .. } => {
                self.opening_lands();
                LaneResult::OpenSent
            }
            Command::EndOpeners { .. } => {
                self.server.opening_in_flight = false;
                LaneResult::OpenersGone
            }
            Command::EndFences { .. } => {
                self.server.fence_in_flight = false;
                LaneResult::FencesGone
            }
            Command::Fence { .. } => {
                (self.server.read_only, self.server.super_read_only) = (true, true);
                LaneResult::FenceSet
            }
            Command::Read { under, start: meant, .. } if meant == start => LaneResult::Read(self.reads(under)),
            _ => LaneResult::Failed,
        }
    }

    fn reads(&self, under: Option<Epoch>) -> ReadBack {
        ReadBack {
            start: StartId(self.server.start),
            under,
            read_only: self.server.read_only,
            super_read_only: self.server.super_read_only,
            gtid: self.server.executed.clone(),
        }
    }

    fn opening_lands(&mut self) {
        if std::mem::take(&mut self.server.opening_in_flight) {
            (self.server.read_only, self.server.super_read_only) = (false, false);
        }
    }

    /// A fence that an earlier life had sent lands, unless its session was ended.
    fn fence_lands(&mut self) -> &mut Self {
        if std::mem::take(&mut self.server.fence_in_flight) {
            (self.server.read_only, self.server.super_read_only) = (true, true);
        }
        self
    }

    /// Somebody sets both variables.
    fn by_hand(&mut self, read_only: bool, super_read_only: bool) -> &mut Self {
        (self.server.read_only, self.server.super_read_only) = (read_only, super_read_only);
        self
    }

    fn dies(&mut self) -> &mut Self {
        self.server.running = false;
        self.server.opening_in_flight = false;
        self.server.fence_in_flight = false;
        self.permit = None;
        self
    }

    /// mysqld dies and boots again, fenced; the keeper says so.
    fn reboots(&mut self) -> &mut Self {
        self.dies();
        self.lane = None;
        self.keeper();
        self.server.start += 1;
        (self.server.running, self.server.read_only, self.server.super_read_only) = (true, true, true);
        self.keeper();
        self.run_lane()
    }

    /// The sidecar dies and starts again with what is on its disk.
    fn sidecar_restarts(&mut self) -> &mut Self {
        self.lane = None;
        self.sidecar = Sidecar::start(me(), self.sidecar.disk.clone(), Boot(self.now));
        self.forget()
    }

    fn writable(&self) -> bool {
        self.server.running && !(self.server.read_only && self.server.super_read_only)
    }

    fn deadline(&self) -> Option<u64> {
        self.sidecar.deadline().map(|deadline| deadline.0)
    }

    fn ack(&self) -> Ack {
        self.sidecar.ack(Boot(self.now))
    }

    /// The names of the commands, in order.
    fn said(&self) -> Vec<&'static str> {
        self.out.iter().map(name).collect()
    }

    fn did(&self, wanted: &str) -> bool {
        self.said().contains(&wanted)
    }

    /// The acknowledgements given, by reply.
    fn acknowledged(&self) -> Vec<(ReplyId, Ack)> {
        let acks = self.out.iter().filter_map(|command| match command {
            Command::Acknowledge { reply, ack, .. } => Some((*reply, (**ack).clone())),
            _ => None,
        });
        acks.collect()
    }

    fn answers(&self) -> Vec<Vouch> {
        let answers = self.out.iter().filter_map(|command| match command {
            Command::Answer { vouch, .. } => Some(vouch.clone()),
            _ => None,
        });
        answers.collect()
    }

    fn marker(&self) -> Option<Marker> {
        self.sidecar.disk.marker.clone()
    }
}

fn answer_to(question: &Question, from: &Member) -> Vouch {
    Vouch {
        id: question.id,
        epoch: question.epoch,
        from: from.clone(),
        about: question.from.clone(),
        ok: true,
        gtid: None,
        ack: Box::new(ack_of(from, Some(question.epoch))),
    }
}

fn ack_of(from: &Member, epoch: Option<Epoch>) -> Ack {
    Ack {
        from: from.clone(),
        epoch,
        fenced: true,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: None,
        last_vouch: std::collections::BTreeMap::new(),
        last_answer: std::collections::BTreeMap::new(),
        uptime: Millis(0),
    }
}

fn is_lane(command: &Command) -> bool {
    ["ConnectOpener", "AskPermit", "Open", "EndOpeners", "EndFences", "Fence", "Read", "Kill"].contains(&name(command))
}

fn name(command: &Command) -> &'static str {
    match command {
        Command::Store(_) => "Store",
        Command::WriteMarker(_) => "WriteMarker",
        Command::WriteNote { note: Some(_), .. } => "WriteNote",
        Command::WriteNote { note: None, .. } => "RemoveNote",
        Command::WriteConflict(_) => "WriteConflict",
        Command::PushToPeers(_) => "PushToPeers",
        Command::AskOperator(_) => "AskOperator",
        Command::AskPeer { .. } => "AskPeer",
        Command::Acknowledge { .. } => "Acknowledge",
        Command::Refuse { .. } => "Refuse",
        Command::Answer { .. } => "Answer",
        Command::AskKeeper => "AskKeeper",
        Command::ConnectOpener { .. } => "ConnectOpener",
        Command::AskPermit(_) => "AskPermit",
        Command::RenewPermit(_) => "RenewPermit",
        Command::WithdrawPermit(_) => "WithdrawPermit",
        Command::Open { .. } => "Open",
        Command::EndOpeners { .. } => "EndOpeners",
        Command::EndFences { .. } => "EndFences",
        Command::Fence { .. } => "Fence",
        Command::KillAppSessions => "KillAppSessions",
        Command::Read { .. } => "Read",
        Command::Kill(_) => "Kill",
    }
}
