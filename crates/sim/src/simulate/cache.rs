//! Caches: one beside every server, a master and its followers, with what a restart and a take-over do to them.
//!
//! In: polls and tasks of the leader, writes of applications, faults. Out: answers. Must not: keep what a restart loses.

use super::clock::{MS, SEC};
use super::event::{Answer, Event, ForLeader};
use super::net::{Channel, End};
use super::operator::Call;
use super::scenario::Refusable;
use super::sidecar::RESTART;
use super::world::World;
use bloodraven_brain::group::command::CacheTask;
use bloodraven_brain::group::input::{CacheFacts, CacheRole, Outcome};

/// One cache.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) up: bool,
    pub(super) hung: bool,
    /// Names its process; a master that started anew does not know its followers.
    life: u32,
    keys: u64,
    offset: u64,
    image: String,
    /// Whom it follows, and which life of it; none: it is a master.
    master: Option<(usize, u32)>,
    syncing: bool,
    saved: Option<u64>,
}

impl World {
    /// The caches of a group: one has served and the others follow it, or all are new.
    pub(super) fn begin_caches(&mut self) {
        let served = !self.scenario.setup.fresh;
        let image = self.store.spec.cache.as_ref().map(|cache| cache.image.clone()).unwrap_or_default();
        self.caches = (0..self.names.len())
            .map(|site| {
                let (keys, offset) = if served { (100, 1000) } else { (0, 0) };
                let master = (served && site > 0).then_some((0, 1));
                Cache { up: true, life: 1, keys, offset, image: image.clone(), master, ..Cache::default() }
            })
            .collect();
    }

    pub(super) fn cache_dies(&mut self, site: usize) {
        let cache = &mut self.caches[site];
        if !cache.up {
            return;
        }
        cache.up = false;
        let at = self.soon(RESTART.0, RESTART.1);
        self.queue.push(at, Event::CacheBegins(site));
        self.tell(|w| (format!("cache {}", w.names[site]), "dies".to_owned()));
    }

    /// It starts with its snapshot or with nothing, and takes itself for a master.
    pub(super) fn cache_begins(&mut self, site: usize) {
        if self.lost_nodes[site] {
            return;
        }
        let cache = &mut self.caches[site];
        let keys = cache.saved.take().unwrap_or(0);
        let (life, image) = (cache.life + 1, std::mem::take(&mut cache.image));
        *cache = Cache { up: true, life, keys, image, ..Cache::default() };
    }

    /// An application writes to whatever cache has the label.
    pub(super) fn cache_write(&mut self) {
        let Some(labels) = self.store.cache.as_ref().filter(|labels| labels.traffic) else { return };
        let site = labels.master.as_ref().and_then(|site| self.site_number(site));
        if let Some(cache) = site.and_then(|site| self.caches.get_mut(site))
            && cache.up
            && !cache.hung
            && cache.master.is_none()
        {
            cache.keys += 1;
            cache.offset += 10;
        }
    }

    /// Whether a follower hears its master.
    fn cache_link(&self, site: usize) -> Option<usize> {
        let (master, life) = self.caches[site].master?;
        let source = self.caches.get(master)?;
        let cut = |a, b| self.net.link(End::Site(a), End::Site(b), Channel::Sql).cut;
        let known = source.up && !source.hung && source.master.is_none() && source.life == life;
        (known && !cut(site, master) && !cut(master, site)).then_some(master)
    }

    /// Followers have what their masters have, while they hear them.
    fn let_caches_flow(&mut self) {
        for site in 0..self.caches.len() {
            if let Some(master) = self.cache_link(site).filter(|_| !self.caches[site].syncing) {
                (self.caches[site].keys, self.caches[site].offset) =
                    (self.caches[master].keys, self.caches[master].offset);
            }
        }
    }

    /// The leader asks a cache, or wants something of it.
    pub(super) fn call_cache(&mut self, op: usize, site: usize, id: u64, task: Option<CacheTask>) {
        let reign = self.operators[op].reign;
        if let Some(at) = self.carry(End::Operator(op), End::Site(site), Channel::Sql) {
            self.queue.push(at, Event::AtCache(op, reign, id, site, task.map(Box::new)));
        }
    }

    pub(super) fn at_cache(&mut self, op: usize, reign: u32, id: u64, site: usize, task: Option<&CacheTask>) {
        self.let_caches_flow();
        let roll = matches!(task, Some(CacheTask::Roll { .. }));
        if self.caches[site].hung && !roll {
            return;
        }
        let answer = match task {
            None => Answer::Cache(self.caches[site].up.then(|| Box::new(self.cache_facts(site)))),
            Some(task) => Answer::Sql(self.cache_task(site, task)),
        };
        if let Some(at) = self.carry(End::Site(site), End::Operator(op), Channel::Sql) {
            self.queue.push(at, Event::Leader(op, reign, ForLeader::Back(id, Box::new(answer))));
        }
    }

    fn cache_facts(&self, site: usize) -> CacheFacts {
        let cache = &self.caches[site];
        let followers = (0..self.caches.len()).filter(|other| self.cache_link(*other) == Some(site)).count();
        let role = match cache.master {
            None => CacheRole::Master { offset: cache.offset, replicas: u32::try_from(followers).unwrap_or(0) },
            Some((master, _)) => CacheRole::Replica {
                master: self.names.get(master).cloned(),
                link_up: self.cache_link(site).is_some(),
                syncing: cache.syncing,
                heard: !cache.syncing,
                offset: cache.offset,
            },
        };
        CacheFacts { role, keys: cache.keys, image: cache.image.clone(), loading: false, takeover: true }
    }

    fn cache_task(&mut self, site: usize, task: &CacheTask) -> Outcome {
        let failed = |because: &str| Outcome::Failed(because.to_owned());
        if let CacheTask::Roll { image } = task {
            if self.caches[site].image != *image {
                self.caches[site].image.clone_from(image);
                self.caches[site].hung = false;
                self.cache_dies(site);
            }
            return Outcome::Ok;
        }
        if !self.caches[site].up {
            return failed("the cache does not answer");
        }
        match task {
            CacheTask::Follow { master } => {
                let Some(master) = self.site_number(master).filter(|master| *master != site) else {
                    return failed("no such master");
                };
                let life = self.caches[master].life;
                let cache = &mut self.caches[site];
                (cache.master, cache.syncing) = (Some((master, life)), true);
                let own = cache.life;
                let at = self.soon(100 * MS, 3 * SEC);
                self.queue.push(at, Event::CacheSynced(site, own));
            }
            CacheTask::TakeOver { .. } => {
                let Some(master) = self.cache_link(site).filter(|_| !self.caches[site].syncing) else {
                    return failed("no master to take over from");
                };
                if self.store.denies(Refusable::Takeover) {
                    return failed("refused");
                }
                self.caches[site].master = None;
                self.cache_dies(master);
            }
            CacheTask::Promote => (self.caches[site].master, self.caches[site].syncing) = (None, false),
            CacheTask::Offset => return Outcome::Offset(self.caches[site].offset),
            CacheTask::Snapshot => self.caches[site].saved = Some(self.caches[site].keys),
            CacheTask::EndClients | CacheTask::Roll { .. } => {}
        }
        Outcome::Ok
    }

    pub(super) fn cache_synced(&mut self, site: usize, life: u32) {
        if self.caches[site].life != life || !self.caches[site].syncing {
            return;
        }
        // Its master may be gone by now: then the link is down, and it has what it had.
        self.caches[site].syncing = false;
        self.let_caches_flow();
    }

    /// One master, at the database's site, with the label and the traffic; every other one follows it.
    pub(super) fn caches_rest(&self, primary: usize) -> Result<(), String> {
        if !self.scenario.setup.caches {
            return Ok(());
        }
        let site = self.pods[primary].site;
        let name = &self.names[site];
        let labels = self.store.cache.clone().unwrap_or_default();
        if labels.master.as_ref() != Some(name) || !labels.traffic {
            return Err(format!("the cache's label is at {:?}, traffic {}", labels.master, labels.traffic));
        }
        for other in (0..self.caches.len()).filter(|other| !self.lost_nodes[*other]) {
            let cache = &self.caches[other];
            let right = if other == site { cache.master.is_none() } else { self.cache_link(other) == Some(site) };
            if !cache.up || !right || cache.syncing {
                return Err(format!("the cache of {} does not follow {name}", self.names[other]));
            }
        }
        Ok(())
    }

    /// The site whose cache is the labelled master.
    pub(super) fn cache_master(&self) -> Option<usize> {
        self.site_number(self.store.cache.as_ref()?.master.as_ref()?)
    }

    /// A poll of a cache.
    pub(super) fn poll_cache(&mut self, op: usize, site: usize) {
        let id = self.new_call(op, Call::CachePoll { site }, self.scenario.setup.poll);
        self.call_cache(op, site, id, None);
    }
}
