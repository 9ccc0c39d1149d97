//! The leader of one group for one reign: owns the brain's state, feeds it whatever happens, and has its commands done.
//!
//! In: its inbox, the time, the group's object, the reign. Out: commands to its hands, answers to questions, notices to
//! whoever listens. Must not: wait for any hand, or do anything that a step did not command.

use super::heard::HeardFrom;
use super::informer::{self, Network};
use super::known;
use super::lanes::{Job, Lanes};
use super::outward;
use super::poller::{self, Rounds};
use super::prober::{self, Probed, Target};
use super::report::{self, Sight};
use super::sidecar::{self, Line, Said};
use super::spec::Valid;
use super::store::{self, ToStore};
use super::words::{self, Memory};
use super::{Common, Shared};
use crate::beats::Beat;
use crate::election::Reign;
use crate::servers::Servers;
use crate::tasks::{Owned, own};
use crate::told::Told;
use crate::world::World;
use bloodraven_blueprint::conditions::Hands;
use bloodraven_blueprint::report::Beside;
use bloodraven_blueprint::requests;
use bloodraven_brain::authority::Answer;
use bloodraven_brain::fence::ReplyId;
use bloodraven_brain::group::accounts::Credentials;
use bloodraven_brain::group::input::{Saved, Saw};
use bloodraven_brain::group::{Command, Group, Input, Outward, WorkId};
use bloodraven_brain::message::{Question, QuestionId};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Boot, Millis, Now};
use bloodraven_wire::Nonce;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The brain hears at least so often that time has passed.
const TICK: Duration = Duration::from_millis(250);

/// What waits for the leader; who finds it full waits, or is told to come again.
const INBOX: usize = 1024;

/// People see the leader at least so often.
const GLANCE: Millis = Millis(1000);

/// Exchanges with one sidecar at a time: one that hangs lasts 2 s, and pushes come twice a second.
const EXCHANGES: usize = 8;

/// Errands at a time: requests removed, pods released.
const ERRANDS: usize = 16;

/// Questions that wait for an answer, of each kind; a group has a few sites, and each asks one at a time.
const QUESTIONS: usize = 256;

/// Whatever reaches a leader.
pub(crate) enum ToLeader {
    /// As it is.
    Input(Input),
    /// A poll ended; `beside`: the server's id, and whether it takes no more clients.
    Polled { site: Site, began_under: u64, saw: Saw, beside: Option<(Option<u32>, bool)> },
    /// A sidecar acknowledged.
    Heard(Box<HeardFrom>),
    /// A sidecar asks.
    Asked(Asked),
    /// What is stored is not what this leader knows: somebody else wrote it.
    Doubt,
    /// What was tried at the primary beside its polls.
    Probed(Probed),
    /// Why things are as they are.
    Why(oneshot::Sender<Value>),
    /// The leader as it is, to be tried out.
    Copy(oneshot::Sender<(Group, Now)>),
}

/// A sidecar's question, and where its answer goes; an answer of none: nothing is known yet.
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) reply: oneshot::Sender<Option<Box<Answer>>>,
}

/// See above.
pub(super) struct Leader<W, S> {
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    reign: Reign,
    group: Group,
    valid: Arc<Valid>,
    /// The epoch that is known to be stored, for those who begin something under it.
    epoch: Arc<AtomicU64>,
    sites: BTreeMap<Site, SiteHands>,
    declared: watch::Sender<Vec<Site>>,
    network: watch::Sender<Network>,
    inbox: mpsc::Sender<ToLeader>,
    taken: mpsc::Receiver<ToLeader>,
    store: mpsc::Sender<ToStore>,
    outward: watch::Sender<Option<Arc<Outward>>>,
    probes: watch::Sender<Option<Target>>,
    exchanges: JoinSet<()>,
    errands: JoinSet<()>,
    askers: BTreeMap<ReplyId, oneshot::Sender<Option<Box<Answer>>>>,
    riding: BTreeMap<QuestionId, Nonce>,
    next: u64,
    memory: Memory,
    beside: BTreeMap<Site, Beside>,
    /// Sites whose server takes no more clients.
    exhausted: BTreeSet<Site>,
    probed: Probed,
    hands: Hands,
    glanced: Option<Boot>,
    beat: Beat,
    _tasks: [Owned; 4],
}

/// What belongs to one site.
struct SiteHands {
    every: Millis,
    lanes: Lanes,
    exchanges: Arc<tokio::sync::Semaphore>,
    poller: Owned,
}

impl<W: World, S: Servers> Leader<W, S> {
    pub(super) fn new(common: &Arc<Common<W, S>>, shared: &Arc<Shared>, reign: Reign, valid: Arc<Valid>) -> Self {
        let (inbox, taken) = mpsc::channel(INBOX);
        let (store, wishes) = mpsc::channel(4);
        let declared = watch::Sender::new(valid.spec.names());
        let (network, outward) = (watch::Sender::new(None), watch::Sender::new(None));
        let probes = watch::Sender::new(None);
        let (c, s) = (|| Arc::clone(common), || Arc::clone(shared));
        let tasks = [
            own(informer::inform(c(), s(), declared.subscribe(), network.clone(), inbox.clone())),
            own(store::run(c(), s(), inbox.clone(), wishes, shared.outlook.subscribe())),
            own(outward::show(c(), s(), outward.subscribe(), inbox.clone())),
            own(prober::keep(c(), s(), probes.subscribe(), network.subscribe(), inbox.clone())),
        ];
        let group = Group::new(valid.spec.clone(), common.world.now().boot);
        Self {
            common: c(),
            shared: s(),
            reign,
            group,
            valid,
            epoch: Arc::default(),
            sites: BTreeMap::new(),
            declared,
            network,
            inbox,
            taken,
            store,
            outward,
            probes,
            exchanges: JoinSet::new(),
            errands: JoinSet::new(),
            askers: BTreeMap::new(),
            riding: BTreeMap::new(),
            next: 0,
            memory: Memory::default(),
            beside: BTreeMap::new(),
            exhausted: BTreeSet::new(),
            probed: Probed::default(),
            hands: Hands::default(),
            glanced: None,
            beat: common.beats.begin(format!("group {}", shared.id), Millis::from_secs(1)),
            _tasks: tasks,
        }
    }

    /// Until the reign is over.
    pub(super) async fn lead(mut self, mut reigns: watch::Receiver<Option<Reign>>) {
        let mut told = self.shared.told.clone();
        let mut secrets = self.shared.secrets.subscribe();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.tend_sites();
        self.feed(Input::Leads(Some(self.reign.until)));
        self.take_object(&Arc::clone(&told.borrow_and_update()));
        self.take_credentials();
        self.shared.reign(self.inbox.clone());
        loop {
            self.beat.beat();
            tokio::select! {
                biased;
                changed = reigns.changed() => {
                    let reign = *reigns.borrow_and_update();
                    match reign.filter(|reign| changed.is_ok() && reign.number == self.reign.number) {
                        Some(reign) => self.feed(Input::Leads(Some(reign.until))),
                        None => return,
                    }
                }
                _ = ticks.tick() => self.feed(Input::Tick),
                changed = told.changed() => {
                    let object = Arc::clone(&told.borrow_and_update());
                    if changed.is_err() || object.deleting {
                        return;
                    }
                    self.take_object(&object);
                }
                Ok(()) = secrets.changed() => self.take_secrets(&Arc::clone(&told.borrow())),
                Some(what) = self.taken.recv() => self.take(what),
            }
            self.glance(false);
        }
    }

    fn take(&mut self, what: ToLeader) {
        match what {
            ToLeader::Input(input) => self.feed(input),
            ToLeader::Polled { site, began_under, saw, beside } => {
                if let Some((server_id, exhausted)) = beside {
                    self.beside.entry(site.clone()).or_default().server_id = server_id;
                    if exhausted {
                        self.exhausted.insert(site.clone())
                    } else {
                        self.exhausted.remove(&site)
                    };
                }
                self.feed(Input::Polled { site, began_under, saw });
                self.glance(true);
            }
            ToLeader::Heard(heard) => {
                let HeardFrom { words, riding, beside } = *heard;
                for (site, said) in beside {
                    let known = self.beside.entry(site).or_default();
                    // Who hands a word on does not say how full another's volume is.
                    *known = Beside { server_id: known.server_id, volume: said.volume.or(known.volume), ..said };
                }
                if let Some((id, nonce)) = riding {
                    bound(&mut self.riding, QUESTIONS);
                    self.riding.insert(id, nonce);
                }
                for word in words {
                    self.feed(Input::Heard(Box::new(word)));
                }
            }
            ToLeader::Asked(Asked { mut question, reply }) => {
                bound(&mut self.askers, QUESTIONS);
                let id = self.number();
                question.id = QuestionId(id);
                self.askers.insert(ReplyId(id), reply);
                self.feed(Input::Asked { question, reply: ReplyId(id) });
            }
            // The brain's word for it is a leadership that was over for a moment: everything is learnt anew.
            ToLeader::Doubt => {
                let until = self.group.leads_until;
                self.feed(Input::Leads(None));
                self.feed(Input::Leads(until));
            }
            ToLeader::Probed(probed) => self.probed = probed,
            // Who asked may be gone.
            ToLeader::Why(reply) => drop(reply.send(words::why(&self.group, &self.memory, self.common.world.now()))),
            ToLeader::Copy(reply) => drop(reply.send((self.group.clone(), self.common.world.now()))),
        }
    }

    /// What an admin wants may have changed: the spec, the requests.
    fn take_object(&mut self, told: &Told) {
        let object = told.object();
        if let Some(valid) = self.shared.take_spec(&self.common, &object)
            && !Arc::ptr_eq(&valid, &self.valid)
        {
            self.valid = valid;
        }
        self.declared.send_if_modified(|declared| {
            let names = self.valid.spec.names();
            let news = *declared != names;
            *declared = names;
            news
        });
        if self.group.spec != self.valid.spec {
            self.feed(Input::Spec(Box::new(self.valid.spec.clone())));
        }
        let requests = requests::read(&object.annotations);
        if self.group.seen.requests != requests {
            self.feed(Input::Requests(Box::new(requests)));
        }
        self.tend_sites();
    }

    /// The secrets are others; whether there is a replication account is part of the spec.
    fn take_secrets(&mut self, told: &Told) {
        self.take_object(told);
        self.take_credentials();
    }

    /// Which they are, never what they say.
    fn take_credentials(&mut self) {
        let version = self.shared.secrets.borrow().as_ref().map(|known| known.version);
        let spread = u64::try_from(self.common.world.secrets_spread().as_millis()).unwrap_or(u64::MAX);
        if let Some(version) = version {
            self.feed(Input::CredentialsChanged(Credentials { version, spread: Millis(spread) }));
        }
    }

    /// Every declared site has hands, and no other.
    fn tend_sites(&mut self) {
        let spec = &self.valid.spec;
        let every = spec.poll_interval;
        self.sites.retain(|site, _| spec.site(site).is_some());
        for site in spec.names() {
            if self.sites.get(&site).is_some_and(|hands| hands.every == every) {
                continue;
            }
            let (network, inbox) = (self.network.subscribe(), self.inbox.clone());
            let rounds = Rounds {
                site: site.clone(),
                every,
                epoch: Arc::clone(&self.epoch),
                network: network.clone(),
                inbox: inbox.clone(),
            };
            let poller = own(poller::poll(Arc::clone(&self.common), Arc::clone(&self.shared), rounds));
            // Another rate of polls: what is being done to the site goes on.
            if let Some(hands) = self.sites.get_mut(&site) {
                (hands.every, hands.poller) = (every, poller);
                continue;
            }
            let lanes = Lanes::begin(&self.common, &self.shared, &site, &network, &inbox, &self.epoch);
            let exchanges = Arc::new(tokio::sync::Semaphore::new(EXCHANGES));
            self.sites.insert(site, SiteHands { every, lanes, exchanges, poller });
        }
    }

    /// One step of the brain, and what it wants done.
    fn feed(&mut self, input: Input) {
        let now = self.common.world.now();
        let step = self.group.step(now, input);
        self.epoch.store(self.group.kept().map_or(0, |kept| kept.epoch()), Ordering::SeqCst);
        if !step.notices.is_empty() {
            for notice in &step.notices {
                self.memory.take(now, notice);
            }
            let events = self.common.ears.notices(&self.shared.id, now, &self.group, &step.notices);
            self.shared.write(events);
            self.glanced = None;
        }
        for command in step.commands {
            self.command(command);
        }
    }

    /// Leadership is looked at here, and by each hand again at its last moment.
    fn command(&mut self, command: Command) {
        if !self.common.leadership.holds() {
            return;
        }
        match command {
            // Not taken: asked for again when it is overdue.
            Command::Load => drop(self.store.try_send(ToStore::Load)),
            Command::Save { id, kept } => {
                let base = self.group.kept().unwrap_or_default();
                if self.store.try_send(ToStore::Save { id, kept, base }).is_err() {
                    self.tell_myself(Input::Saved { id, saved: Saved::Unknown });
                }
            }
            Command::Push { to, view } => self.say(to, Said::Push(view)),
            Command::Probe { to } => self.say(to, Said::Probe),
            Command::Grant(grant) => {
                if let Some(nonce) = self.riding.remove(&grant.id) {
                    self.say(grant.to.site.clone(), Said::Grant(grant, nonce));
                }
            }
            Command::Answer { reply, answer } => {
                if let Some(asker) = self.askers.remove(&reply) {
                    // Who asked may be gone.
                    drop(asker.send(answer));
                }
            }
            Command::Work { id, site, server, task, within } => {
                let until = Instant::now() + Duration::from_millis(within.0);
                self.work(&site, Box::new(Job { id, server, task, until }));
            }
            Command::Show(outward) => drop(self.outward.send_replace(Some(Arc::from(outward)))),
            errand => self.errand(errand),
        }
    }

    fn work(&mut self, site: &Site, job: Box<Job>) {
        let id: WorkId = job.id;
        let because = match self.sites.get_mut(site) {
            Some(hands) => match hands.lanes.take(job) {
                Ok(()) => return,
                Err(_) => "its lane is full",
            },
            None => "the site is not declared",
        };
        let outcome = bloodraven_brain::group::input::Outcome::Failed(because.to_owned());
        self.tell_myself(Input::Done { id, outcome });
    }

    /// Through the inbox: a step is not taken inside another. When it is full the brain finds out by its own bounds.
    fn tell_myself(&self, input: Input) {
        let _ = self.inbox.try_send(ToLeader::Input(input));
    }

    /// Says something to a site's sidecar, beside everything else.
    fn say(&mut self, to: Site, said: Said) {
        while self.exchanges.try_join_next().is_some() {}
        let id = QuestionId(self.number());
        let addresses = self.network.borrow().as_ref().and_then(|network| network.get(&to).cloned());
        let secrets = self.shared.secrets.borrow().clone();
        let room = self.sites.get(&to).and_then(|hands| Arc::clone(&hands.exchanges).try_acquire_owned().ok());
        let (Some(addresses), Some(secrets), Some(room)) = (addresses, secrets, room) else {
            return self.tell_myself(Input::PushFailed { to });
        };
        let line = Line {
            client: self.common.client.clone(),
            site: to,
            at: addresses.sidecar,
            group: self.shared.uid.clone(),
            keys: secrets.now.keys.clone(),
            id,
            observed: self.common.world.now().wall,
        };
        let (leadership, inbox) = (self.common.leadership.clone(), self.inbox.clone());
        self.exchanges.spawn(async move {
            let heard = match leadership.guard(sidecar::say(&line, &said)).await {
                Ok(Ok(message)) => ToLeader::Heard(Box::new(HeardFrom::new(&line.site, message))),
                Ok(Err(unheard)) => {
                    tracing::debug!(site = %line.site, error = %unheard, "a sidecar did not acknowledge");
                    ToLeader::Input(Input::PushFailed { to: line.site })
                }
                Err(_) => return,
            };
            drop(room);
            // The leader is gone.
            let _ = inbox.send(heard).await;
        });
    }

    /// Done beside everything else; asked for again until it is seen to be done.
    fn errand(&mut self, command: Command) {
        while self.errands.try_join_next().is_some() {}
        if self.errands.len() >= ERRANDS {
            return;
        }
        let (common, id, valid) = (Arc::clone(&self.common), self.shared.id.clone(), Arc::clone(&self.valid));
        self.errands.spawn(async move { super::errand::run(&common, &id, &valid, command).await });
    }

    /// Lets people see the leader: after each notice and at least once a second; those who follow, after each poll, too.
    fn glance(&mut self, polled: bool) {
        let now = self.common.world.now();
        let due = self.glanced.is_none_or(|at| now.boot >= at + GLANCE);
        let followed = polled && self.common.hub.receiver_count() > 0;
        if !due && !followed {
            return;
        }
        self.note_hands();
        let sight = Sight {
            group: self.group.clone(),
            now,
            generation: self.valid.generation,
            beside: self.beside.clone(),
            hands: self.hands.clone(),
        };
        if due {
            self.glanced = Some(now.boot);
            self.shared.write(self.common.ears.glance(&self.shared.id, now, &self.group));
        }
        if followed {
            let text = report::follow(&self.shared.id, &report::whole(&sight), now.wall);
            // Nobody follows any more.
            let _ = self.common.hub.send(text.into());
        }
        self.shared.outlook.send_replace(Some(Arc::new(sight)));
    }

    /// What only the hands know of the whole group.
    fn note_hands(&mut self) {
        let target = known::target(&self.group, &self.valid);
        let writer = target.as_ref().map(|target| &target.site);
        let known = known::hands(&self.shared, &self.valid, writer, &self.exhausted, &self.probed, &self.beside);
        if known != self.hands {
            self.common.ears.hands(&self.shared.id, &known);
            self.hands = known;
        }
        self.probes.send_if_modified(|before| {
            let news = *before != target;
            *before = target;
            news
        });
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// The oldest go when there are too many.
fn bound<K: Ord + Copy, V>(map: &mut BTreeMap<K, V>, most: usize) {
    while map.len() >= most {
        map.pop_first();
    }
}
