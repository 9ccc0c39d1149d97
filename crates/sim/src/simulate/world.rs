//! The world of one run: everybody in it, what is going to happen, and the loop that lets it happen.
//!
//! In: a scenario. Out: a world at its end. Must not: read a clock, or depend on anything but the scenario.

use super::audience::Audience;
use super::cache::Cache;
use super::client::Clients;
use super::clock::{Clock, MS, SEC, Time};
use super::ending::Rest;
use super::event::{Event, Queue};
use super::judge::Judge;
use super::net::{Channel, End, Net};
use super::operator::Operator;
use super::pod::Pod;
use super::random::Random;
use super::scenario::{Moment, Process, SITES, Scenario, Setup, Victim};
use super::server::Server;
use super::store::Store;
use super::trace::Trace;
use bloodraven_brain::authority::Policy;
use bloodraven_brain::fence::{Disk, Marker};
use bloodraven_brain::group::Spec;
use bloodraven_brain::group::input::PodFacts;
use bloodraven_brain::group::kept::{CacheKept, Kept};
use bloodraven_brain::group::spec::{CacheSpec, Durability, PlannedSpec, SiteSpec, UpdateStrategy};
use bloodraven_brain::message::OpeningWord;
use bloodraven_brain::name::{Member, Site};
use bloodraven_brain::record::{Cause, Holder, Phase, Record, Settings, VoterSet};
use bloodraven_brain::site::{Role, Thresholds};
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_gtid::{GtidSet, Interval, Source, Uuid};

/// The epoch that a group has which served before.
const FIRST_EPOCH: u64 = 7;

/// No run takes more events than this; one that would has a loop in it.
const MOST_EVENTS: u64 = 3_000_000;

/// One run.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) queue: Queue,
    pub(super) random: Random,
    pub(super) net: Net,
    pub(super) store: Store,
    pub(super) scenario: Scenario,
    pub(super) names: Vec<Site>,
    pub(super) site_clocks: Vec<Clock>,
    pub(super) operator_clocks: [Clock; 2],
    pub(super) operators: Vec<Operator>,
    /// Every pod that ever was.
    pub(super) pods: Vec<Pod>,
    /// The newest pod of each site.
    pub(super) current: Vec<usize>,
    /// The cache of each site, if there are any.
    pub(super) caches: Vec<Cache>,
    /// Sites whose node is gone.
    pub(super) lost_nodes: Vec<bool>,
    /// Processes that are not started again before they are released.
    pub(super) held: Vec<Process>,
    /// Ambushes that wait for their moment.
    pub(super) ambushes: Vec<(Moment, Victim)>,
    pub(super) clients: Clients,
    pub(super) judge: Judge,
    pub(super) trace: Trace,
    /// Who watches.
    pub(super) audience: Option<Box<dyn Audience>>,
    pub(super) healed: bool,
    pub(super) over: bool,
    pub(super) rest: Rest,
    pub(super) events: u64,
    next: u64,
}

impl World {
    /// The world before anything has happened.
    pub(super) fn new(scenario: &Scenario, told: bool) -> Self {
        let setup = &scenario.setup;
        let mut random = Random::new(scenario.seed, 1);
        let names: Vec<Site> = SITES.iter().take(setup.sites).map(|name| Site::new(name)).collect();
        let mut clock = || Clock {
            offset: random.between(1000, 90_000_000),
            // Each within half a hundredth, so that no two differ by a hundredth.
            drift: i64::try_from(random.below(9800)).unwrap_or(0) - 4900,
            skew: if setup.skewed { i64::try_from(random.below(1_200_000)).unwrap_or(0) - 600_000 } else { 0 },
        };
        let site_clocks = (0..setup.sites).map(|_| clock()).collect();
        let operator_clocks = [clock(), clock()];
        let net = Net::new(setup.sites, setup.latency / 2, setup.latency, setup.twice);
        let mut world = Self {
            now: 0,
            queue: Queue::default(),
            random,
            net,
            store: Store::new(spec(setup, &names)),
            scenario: scenario.clone(),
            lost_nodes: vec![false; setup.sites],
            site_clocks,
            operator_clocks,
            operators: (0..setup.operators).map(|_| Operator::default()).collect(),
            pods: Vec::new(),
            current: Vec::new(),
            caches: Vec::new(),
            held: Vec::new(),
            ambushes: Vec::new(),
            clients: Clients::new(setup.sites),
            judge: Judge::new(setup),
            trace: Trace::new(told),
            audience: None,
            healed: false,
            over: false,
            rest: Rest::Unknown,
            events: 0,
            next: 0,
            names,
        };
        world.store.large_promotions = setup.large_promotions;
        world.people();
        world.schedule();
        world
    }

    /// Lets everything happen.
    pub(super) fn run(&mut self) {
        while self.next_event() {}
    }

    /// Lets one thing happen. Returns whether the run goes on.
    pub(super) fn next_event(&mut self) -> bool {
        let Some((at, event)) = self.queue.pop() else { return false };
        self.now = at;
        self.events += 1;
        if self.events > MOST_EVENTS {
            self.judge.broken(at, "simulator", || "too many events".to_owned());
            return false;
        }
        self.happen(event);
        !self.over && !self.judge.is_broken()
    }

    fn people(&mut self) {
        for site in 0..self.scenario.setup.sites {
            let pod = self.new_pod(site, None);
            self.current.push(pod);
            self.store.own_volumes.push(self.names[site].clone());
        }
        if !self.scenario.setup.fresh {
            self.serve_before();
        }
        if self.scenario.setup.caches {
            self.begin_caches();
        }
        if self.scenario.setup.tagged {
            let tag = "nightly".parse().ok();
            self.pods.iter_mut().for_each(|pod| pod.server.tag = tag);
        }
    }

    /// A group that has served: its first site has authority, the others follow, everything is stored.
    fn serve_before(&mut self) {
        let setup = self.scenario.setup.clone();
        let voters: Vec<Member> = self.pods.iter().map(Pod::member).collect();
        let (Some(first), Some(settings)) = (voters.first().cloned(), Some(settings(&setup))) else { return };
        let uuid = self.pods[0].server.uuid;
        let mut executed = GtidSet::new();
        if let Some(some) = Interval::new(1, 100) {
            executed.insert_interval(Source::from(uuid), some);
        }
        let sets = vec![VoterSet { epoch: FIRST_EPOCH, voters: voters.clone(), settings }];
        let server_uuid = Some(uuid.to_string());
        let holder = Holder { member: first.clone(), server_uuid, sets, sql_fence_sent: false };
        let record = Record {
            epoch: FIRST_EPOCH,
            tenure: FIRST_EPOCH,
            seat: Some(first),
            phase: Phase::Stable,
            voters,
            settings,
            since: Wall(1_779_000_000_000),
            cause: Cause::Bootstrap,
            proof: None,
            revoked_at: None,
            holder: Some(holder),
            ended: Vec::new(),
        };
        let view = record.view();
        for (number, pod) in self.pods.iter_mut().enumerate() {
            pod.server.executed = executed.clone();
            pod.server.user_data = true;
            pod.server.source = (number > 0).then_some(0);
            let marker = Marker { tenure: FIRST_EPOCH, start: None, word: OpeningWord::default() };
            let marker = (number == 0).then_some(marker);
            pod.side.disk = Disk { view: Some(view.clone()), marker, ..Disk::default() };
        }
        let cache = setup.caches.then(|| CacheKept { active: self.names.first().cloned(), ..CacheKept::default() });
        let kept = Kept { record: Some(record), promotion: Some(GtidSet::new()), cache, ..Kept::default() };
        if setup.recordless {
            // The group's object is another one, and made none of these volumes.
            self.store.own_volumes.clear();
        } else {
            self.store.annotation = self.store.held(&kept);
            self.store.status = kept;
        }
        self.judge.begin(FIRST_EPOCH);
    }

    fn schedule(&mut self) {
        for pod in 0..self.pods.len() {
            let at = self.random.below(800 * MS);
            self.queue.push(at, Event::PodBegins(pod));
        }
        for operator in 0..self.operators.len() {
            let at = self.random.below(2 * SEC);
            self.queue.push(at, Event::OperatorBegins(operator));
        }
        for client in 0..=self.scenario.setup.sites {
            let at = SEC + self.random.below(SEC);
            self.queue.push(at, Event::Write(client));
        }
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            self.queue.push(fault.at, Event::Fault(number));
        }
        self.queue.push(self.scenario.heal_at, Event::Heal);
    }

    /// A pod of that site: on a volume of its own, or on the volume of that other one.
    pub(super) fn new_pod(&mut self, site: usize, volume: Option<usize>) -> usize {
        self.next += 1;
        let number = self.next;
        let uid = format!("pod-{}-{number}", self.names[site]);
        let mut pod = match volume {
            None => {
                let mut bytes = [0; 16];
                bytes[0] = u8::try_from(site + 1).unwrap_or(1);
                bytes[15] = u8::try_from(number).unwrap_or(u8::MAX);
                let server = Server::new(Uuid::from_bytes(bytes));
                Pod::new(site, &self.names[site], &uid, server, &format!("store-{number}"))
            }
            Some(other) => {
                let other = &self.pods[other];
                let mut server = other.server.clone();
                server.end();
                let mut pod = Pod::new(site, &self.names[site], &uid, server, &other.side.store);
                pod.side.disk = other.side.disk.clone();
                pod
            }
        };
        pod.server.slow = 0;
        pod.template = self.store.deployed(site);
        self.pods.push(pod);
        let name = self.names[site].clone();
        self.store.pods.push(PodFacts {
            site: name,
            uid: uid.as_str().into(),
            started: false,
            all_terminated: false,
            deleting: false,
            finished: false,
            collected: false,
            node_vouches: true,
            finalizer: true,
        });
        self.pods.len() - 1
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fault(number) => self.strike(number),
            Event::Struck(pod, victim) => self.struck(pod, victim),
            Event::GoesOn(pod) => {
                self.resume_server(pod);
                self.resume_sidecar(pod);
            }
            Event::Heal => self.heal(),
            Event::LookAround => self.look_around(),
            Event::StillOpen(pod, start, life) => self.still_open(pod, start, life),
            Event::OperatorBegins(op) => self.operator_begins(op),
            Event::Elect(op, life) => self.elect_tick(op, life),
            Event::LeaseCall(op, life, command) => self.lease_call(op, life, *command),
            Event::LeaseBack(op, life, input) => self.lease_back(op, life, input),
            Event::Leader(op, reign, what) => self.for_leader(op, reign, what),
            Event::AskOperator(op, pod, life, question) => self.asked_operator(op, pod, life, question),
            Event::AtStore(op, reign, call, wish) => self.at_store(op, reign, call, *wish),
            Event::Reaches(pod, does, caller) => self.reaches(pod, *does, caller),
            Event::Due(pod, start, id) => self.due(pod, start, id),
            Event::CloneOver(pod, start) => self.clone_over(pod, start),
            Event::ServerUp(pod, start) => self.server_up(pod, start),
            Event::Reaped(pod, start, teller) => self.reaped(pod, start, teller),
            Event::KeeperBegins(pod) => self.keeper_begins(pod),
            Event::DeadMan(pod, start) => self.dead_man(pod, start),
            Event::KeeperSays(pod, life) => self.keeper_says(pod, life),
            Event::KeeperGone(pod, life) => self.keeper_gone(pod, life),
            Event::SidecarBegins(pod, life) => self.sidecar_begins(pod, life),
            Event::SidecarTick(pod, life) => self.sidecar_tick(pod, life),
            Event::SidecarTimer(pod, life, at) => self.sidecar_timer(pod, life, at),
            Event::ToSidecar(pod, life, what) => self.reaches_sidecar(pod, life, what),
            Event::Lane(pod, life, token, result) => self.lane_over(pod, life, token, result),
            Event::Disk(pod, life, id) => self.disk_done(pod, life, id),
            Event::DiskLate(pod, life, id) => self.disk_late(pod, life, id),
            Event::Pull(pod, start) => self.pull(pod, start),
            Event::Apply(pod, start) => self.apply(pod, start),
            Event::CacheBegins(site) => self.cache_begins(site),
            Event::CacheSynced(site, life) => self.cache_synced(site, life),
            Event::AtCache(op, reign, id, site, task) => self.at_cache(op, reign, id, site, task.as_deref()),
            Event::Write(client) => self.client_writes(client),
            Event::PodEnds(pod) => self.pod_ends(pod),
            Event::PodBegins(pod) => self.pod_begins(pod),
            Event::NodeVouches(pod) => self.node_vouches(pod),
            Event::StuckWrite(pod, start) => self.stuck_write(pod, start),
        }
    }

    /// When something sent now arrives; none: it does not. A stray pod reaches nobody.
    pub(super) fn carry(&mut self, from: End, to: End, channel: Channel) -> Option<Time> {
        let arrival = self.net.carry(&mut self.random, self.now, from, to, channel)?;
        Some(arrival.at)
    }

    /// The same, and when it comes a second time.
    pub(super) fn carry_twice(&mut self, from: End, to: End, channel: Channel) -> [Option<Time>; 2] {
        match self.net.carry(&mut self.random, self.now, from, to, channel) {
            None => [None, None],
            Some(arrival) => [Some(arrival.at), arrival.again],
        }
    }

    /// Where a pod sits; none: nobody reaches it.
    pub(super) fn end_of(&self, pod: usize) -> Option<End> {
        let pod = &self.pods[pod];
        (!pod.stray).then_some(End::Site(pod.site))
    }

    pub(super) fn site_number(&self, site: &Site) -> Option<usize> {
        self.names.iter().position(|name| name == site)
    }

    /// The pod that a site's address leads to.
    pub(super) fn pod_at(&self, site: usize) -> Option<usize> {
        self.current.get(site).copied().filter(|pod| self.pods[*pod].runs)
    }

    /// A moment soon: within so many microseconds.
    pub(super) fn soon(&mut self, least: Time, most: Time) -> Time {
        self.now + self.random.between(least, most)
    }
}

fn settings(setup: &Setup) -> Settings {
    Settings { lease_timeout: Millis(setup.lease / MS), min_peers: setup.min_peers }
}

fn spec(setup: &Setup, names: &[Site]) -> Spec {
    let role = |site| if setup.is_candidate(site) { Role::PrimaryCandidate } else { Role::DrOnly };
    let site = |(number, name): (usize, &Site)| SiteSpec { site: name.clone(), role: role(number) };
    Spec {
        name: "orders".to_owned(),
        sites: names.iter().enumerate().map(site).collect(),
        poll_interval: Millis(setup.poll / MS),
        thresholds: Thresholds { failure: 3, recovery: 2 },
        cooldown: Millis(setup.cooldown / MS),
        proof: if setup.best_effort { Policy::BestEffort } else { Policy::Required },
        lease: settings(setup),
        peer_check: Millis(5000),
        priorities: setup.priorities.iter().filter_map(|site| names.get(*site).cloned()).collect(),
        max_lag: Millis::from_secs(300),
        durability: if setup.semi_sync { Durability::semi_sync(Millis(0)) } else { Durability::Async },
        planned: PlannedSpec {
            max_lag_wait: Millis::from_secs(30),
            drain_timeout: Millis::from_secs(5),
            defer: setup.seeded_defer(),
        },
        cache: setup.caches.then(|| CacheSpec {
            image: "dragonfly:1".to_owned(),
            max_sync_wait: Millis::from_secs(10),
            fail_on_timeout: setup.caches_matter,
            stale_master_grace: Millis::from_secs(20),
            snapshot_dir: None,
        }),
        update: if setup.recreate { UpdateStrategy::Recreate } else { UpdateStrategy::Ordered },
        clone_timeout: Millis::from_secs(60),
        replication_account: true,
        paused: None,
    }
}
