//! The actor: one task that owns the brain. Everything else sends it what happened and does what it wants done.
//!
//! In: time, the ends of operations and writes, the keeper's words, what others say. Out: steps of the brain, and its
//! commands, handed to [`hands`]. Must not: wait for anything but its next input; block; decide.
//!
//! Inputs are taken in this order: the timer before all, so that nothing delays the deadline; then the lane, the disk and
//! the keeper; then what others say.

mod hands;
mod outside;

use crate::chain::{After, Chains};
use crate::clock;
use crate::config::Config;
use crate::event::Outside;
use crate::keeper::{Keeper, Word};
use crate::lane::{Ended, Lane};
use crate::notice::{self, Glimpse};
use crate::outward::Outward;
use crate::store::{Done, Writer, Wrote};
use crate::tell::Teller;
use crate::volume::Gauge;
use bloodraven_brain::fence::{Input, KeeperFact, Mysqld, Permit, ReplyId, Sidecar, TIMER};
use bloodraven_brain::message::{QuestionId, StartId};
use bloodraven_brain::name::Site;
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_keeper::protocol::Status;
use bloodraven_telemetry::log::Level;
use bloodraven_wire::Outstanding;
use hands::ReplyTo;
use snafu::Snafu;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// A lease for the tick as long as no view tells one.
const NO_LEASE: Millis = Millis(20_000);

/// The shortest tick: a lease of less than half a second is none.
const SHORTEST_TICK: Duration = Duration::from_millis(100);

/// The first tick after mysqld was started and did not answer yet; each one after it waits twice as long, up to the
/// interval. A server that boots within a second is read, and opened if it may be, a moment later.
const EAGER: Duration = Duration::from_millis(250);

/// How long a sidecar that is told to end waits for its keeper to be told the same: both get the signal at once.
const LISTENS_ON: Duration = Duration::from_secs(1);

/// How long it then has to fence; the keeper waits as long.
const FENCES_ON: Duration = Duration::from_secs(5);

/// What the actor is made of.
pub(crate) struct Parts {
    pub(crate) config: Arc<Config>,
    pub(crate) brain: Sidecar,
    pub(crate) observed_at: String,
    pub(crate) writer: Writer,
    pub(crate) keeper: Keeper,
    pub(crate) lane: Lane,
    pub(crate) outward: Outward,
    pub(crate) teller: Teller,
    pub(crate) outstanding: Arc<Mutex<Outstanding>>,
    pub(crate) volume: Gauge,
}

/// Where its inputs come from.
pub(crate) struct Inputs {
    pub(crate) lane: mpsc::Receiver<Ended>,
    pub(crate) disk: mpsc::Receiver<Done>,
    pub(crate) keeper: mpsc::Receiver<Word>,
    pub(crate) outside: mpsc::Receiver<Outside>,
}

/// Why it ended, other than by being told to.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Another sidecar said hello to the keeper.
    #[snafu(display("another sidecar has taken the keeper's session; this one ends"))]
    Superseded,
}

/// See above.
pub(crate) struct Actor {
    parts: Parts,
    chains: Chains,
    tasks: JoinSet<()>,
    /// Who waits for an answer of the brain.
    replies: BTreeMap<ReplyId, ReplyTo>,
    next_reply: u64,
    /// When each epoch's view was observed; only the highest is kept.
    observed: (Epoch, String),
    /// Pushes under way: a newer view ends the older push to the same peer.
    pushes: BTreeMap<Site, AbortHandle>,
    /// How often the keeper was told something that changes its permit: a status that was asked before is stale.
    told_keeper: u64,
    /// The same when the present session began: its first status carries no number.
    told_before: u64,
    stopping: Stopping,
    last_timer: Instant,
    last_tick: Option<Instant>,
    /// How soon the next tick comes while mysqld runs and was never read.
    eager: Duration,
    /// The tick whose commands are being carried out, and its measure.
    tick: Option<Arc<Tick>>,
    operator_heard: Option<Boot>,
    /// What could not even be begun, told to the brain after the step that wanted it.
    not_stored: Vec<Epoch>,
    unanswered: Vec<QuestionId>,
}

/// Whether the keeper is about to stop mysqld. Nothing is opened from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    /// It is not.
    No,
    /// It is; the server is being closed first.
    Closing,
    /// The server was closed; the brain has not read it yet.
    Closed,
    /// The keeper knows.
    Told,
}

/// Measures a tick: it lasts as long as anything that it began.
pub(crate) struct Tick {
    began: Instant,
    teller: Teller,
}

impl Drop for Tick {
    fn drop(&mut self) {
        self.teller.ticked(self.began.elapsed());
    }
}

impl Actor {
    pub(crate) fn new(parts: Parts) -> Self {
        let epoch = parts.brain.disk.view.as_ref().map_or(0, |view| view.epoch);
        let observed = (epoch, parts.observed_at.clone());
        Self {
            parts,
            chains: Chains::default(),
            tasks: JoinSet::new(),
            replies: BTreeMap::new(),
            next_reply: 1,
            observed,
            pushes: BTreeMap::new(),
            told_keeper: 1,
            told_before: 1,
            stopping: Stopping::No,
            last_timer: Instant::now(),
            last_tick: None,
            eager: EAGER,
            tick: None,
            operator_heard: None,
            not_stored: Vec::new(),
            unanswered: Vec::new(),
        }
    }

    /// Runs until it is told to end. Then a server that is open, and whose keeper ends too, is fenced first.
    pub(crate) async fn run(mut self, mut inputs: Inputs, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let mut shutdown = pin!(shutdown);
        let mut end: Option<Instant> = None;
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = sleep_until(wake) => self.woken(),
                Some(ended) = inputs.lane.recv() => self.lane_ended(ended),
                Some(done) = inputs.disk.recv() => self.disk_done(done),
                Some(word) = inputs.keeper.recv() => self.keeper_said(word)?,
                () = &mut shutdown, if end.is_none() => end = Some(Instant::now() + LISTENS_ON),
                Some(outside) = inputs.outside.recv() => self.hear_outside(outside),
            }
            self.tell_what_was_not_begun();
            // Bounds the memory of tasks that have ended.
            while self.tasks.try_join_next().is_some() {}
            if end.is_some_and(|until| self.may_end(until)) {
                return Ok(());
            }
        }
    }

    /// A step may want more of the same; who is told twice in a row is told again next time.
    fn tell_what_was_not_begun(&mut self) {
        for epoch in std::mem::take(&mut self.not_stored) {
            self.step(Input::NotStored(epoch));
        }
        for id in std::mem::take(&mut self.unanswered) {
            self.step(Input::NoAnswer(id));
        }
    }

    /// Whether the process may end: nothing is permitted, or the keeper goes on without us, or time is up.
    fn may_end(&self, listened: Instant) -> bool {
        let now = Instant::now();
        let open = self.parts.brain.permit.is_some() || self.parts.brain.lane.may_open();
        let waits = if self.stopping == Stopping::No { now < listened } else { now < listened + FENCES_ON };
        !open || !waits
    }

    /// The next moment at which time alone may change something.
    fn next_wake(&self) -> Instant {
        let now = (Instant::now(), clock::boot());
        let mut next = self.last_timer + duration(TIMER);
        next = next.min(self.next_tick());
        if let Some(deadline) = self.parts.brain.deadline().filter(|deadline| *deadline > now.1) {
            next = next.min(now.0 + duration(deadline.since(now.1)));
        }
        self.chains.next_impatience().map_or(next, |impatient| next.min(impatient))
    }

    fn next_tick(&self) -> Instant {
        let interval = if self.is_unread() { self.eager.min(self.interval()) } else { self.interval() };
        self.last_tick.map_or(self.last_timer, |last| last + interval)
    }

    /// Whether mysqld runs and has not answered yet.
    fn is_unread(&self) -> bool {
        let brain = &self.parts.brain;
        matches!(brain.mysqld, Mysqld::Up(start) if brain.read.as_ref().is_none_or(|read| read.start != start))
    }

    /// The smaller of what the group says and a third of the view's lease.
    fn interval(&self) -> Duration {
        let lease = self.parts.brain.heard.as_ref().map_or(NO_LEASE, |view| view.settings.lease_timeout);
        self.parts.config.check_interval.min(duration(lease) / 3).max(SHORTEST_TICK)
    }

    fn woken(&mut self) {
        let now = Instant::now();
        self.last_timer = now;
        if now >= self.next_tick() || self.stopping == Stopping::Closed {
            self.last_tick = Some(now);
            self.eager = if self.is_unread() { (self.eager * 2).min(self.interval()) } else { EAGER };
            // Whoever has hung up needs no answer.
            self.replies.retain(|_, to| !to.is_gone());
            self.tick = Some(Arc::new(Tick { began: now, teller: self.parts.teller.clone() }));
            self.step(Input::Tick);
            self.tick = None;
        } else {
            self.step(Input::Timer);
        }
        for chain in self.chains.impatient(now) {
            self.carry_out(chain);
        }
    }

    /// One step of the brain, and what it wants done.
    fn step(&mut self, input: Input) {
        let now = clock::boot();
        let brain = &mut self.parts.brain;
        let before = Glimpse::of(brain, now);
        let commands = brain.step(now, input);
        let after = Glimpse::of(brain, now);
        let epoch = brain.disk.view.as_ref().map(|view| view.epoch);
        for notice in notice::between(&before, &after) {
            self.parts.teller.notice(now, epoch, &notice);
        }
        let chain = self.chains.issue(commands);
        self.carry_out(chain);
    }

    fn lane_ended(&mut self, ended: Ended) {
        if self.chains.ended(ended.token) {
            self.step(Input::Lane(ended.result));
            self.tell_closed_for_the_end();
        }
    }

    fn disk_done(&mut self, done: Done) {
        match self.chains.written(done) {
            After::Nothing => {}
            After::Goes(chain) => self.carry_out(chain),
            After::Fails(rest, token) => {
                self.lane_failed(token);
                self.carry_out(rest);
            }
        }
        match (done.wrote, done.ok) {
            (Wrote::View(epoch), true) => self.step(Input::Stored(epoch)),
            (Wrote::View(epoch), false) => self.step(Input::NotStored(epoch)),
            _ => {}
        }
    }

    /// Whether the keeper was told nothing since it was asked.
    fn is_fresh(&self, asked: u64) -> bool {
        let since = if asked == 0 { self.told_before } else { asked };
        since == self.told_keeper
    }

    fn keeper_said(&mut self, word: Word) -> Result<(), Error> {
        match word {
            Word::Status(status, asked) if self.is_fresh(asked) => {
                if status.stopping && self.stopping == Stopping::No {
                    self.stop_server();
                }
                self.step(Input::Keeper(fact(&status)));
            }
            // The keeper was told something since: what it says of the permit is old. It is asked once more.
            Word::Status(..) => self.parts.keeper.ask_status(self.told_keeper),
            Word::Started(start) => self.step(Input::Keeper(KeeperFact { running: Some(start), permit: None })),
            Word::Exited(_) => self.step(Input::Keeper(KeeperFact { running: None, permit: None })),
            Word::Stopping => self.stop_server(),
            Word::Superseded => return SupersededSnafu.fail(),
            Word::Connected => {
                self.told_before = self.told_keeper;
                self.stopping = Stopping::No;
                self.parts.teller.prose(Level::Info, "the keeper's session stands", None);
            }
            Word::Lost => self.parts.teller.prose(Level::Warn, "the keeper's session is lost", None),
            Word::Ended => {
                self.parts.teller.prose(Level::Warn, "the keeper and its mysqld have ended", None);
                self.step(Input::Keeper(KeeperFact { running: None, permit: None }));
            }
        }
        Ok(())
    }
}

fn fact(status: &Status) -> KeeperFact {
    let permit = status.permit.map(|permit| Permit {
        start: StartId(permit.start.get()),
        epoch: permit.epoch,
        deadline: Boot(permit.deadline),
    });
    KeeperFact { running: status.start.map(|start| StartId(start.get())), permit }
}

const fn duration(millis: Millis) -> Duration {
    Duration::from_millis(millis.0)
}

/// The id of a question that somebody else put: any will do that is not in use here.
const fn asked_here(reply: ReplyId) -> QuestionId {
    QuestionId(reply.0)
}
