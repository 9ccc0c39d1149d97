//! The caches of the rehearsed world: each does at once what it is asked for.
//!
//! In: tasks. Out: what came of them, and what a poll would say. Must not: keep what a restart loses; a cache that was
//! taken over from, or whose pod was replaced, comes back with nothing but its snapshot.

use super::rehearsal::{Actor, Rehearsal};
use crate::group::command::{CacheTask, Task};
use crate::group::input::{CacheFacts, CacheRole, Input, Outcome};
use crate::name::Site;

impl Rehearsal {
    /// Every cache is polled.
    pub(super) fn poll_caches(&mut self) {
        if self.group.spec.cache.is_none() {
            return;
        }
        self.let_caches_flow();
        for site in self.group.spec.names() {
            let facts = self.actors.get(&site).and_then(|actor| actor.cache.clone());
            self.tell(Input::CachePolled { site, facts });
        }
    }

    /// Replicas have what their masters have, while those live and know them.
    fn let_caches_flow(&mut self) {
        let masters: Vec<(Site, u64, u64)> =
            self.actors.iter().filter_map(|(site, actor)| actor.cache_source(site)).collect();
        for actor in self.actors.values_mut() {
            let Some(facts) = &mut actor.cache else { continue };
            let CacheRole::Replica { master, link_up, offset, .. } = &mut facts.role else { continue };
            let source = masters.iter().find(|(site, _, _)| Some(site) == master.as_ref());
            *link_up = source.is_some();
            if let Some((_, sent, keys)) = source {
                (*offset, facts.keys) = (*sent, *keys);
            }
        }
    }

    pub(super) fn cache_work(&mut self, site: &Site, task: &CacheTask) -> Outcome {
        self.let_caches_flow();
        let failed = |because: &str| Outcome::Failed(because.to_owned());
        let Some(actor) = self.actors.get_mut(site) else { return failed("no such site") };
        let refused = actor.refuses.is_some_and(|refuses| refuses(&Task::Cache(task.clone())));
        let image = match task {
            // Where nothing runs, nothing starts.
            CacheTask::Roll { image } => Some(image.clone()),
            _ => None,
        };
        if let (Some(image), false) = (image, refused) {
            if actor.cache.is_some() {
                actor.restart_cache(Some(image));
            }
            return Outcome::Ok;
        }
        let Some(facts) = actor.cache.as_mut().filter(|_| !refused) else { return failed("the cache does not answer") };
        match task {
            CacheTask::Follow { master } => return self.follow_cache(site, master),
            CacheTask::TakeOver { .. } => {
                let CacheRole::Replica { master: Some(old), link_up: true, offset, .. } = facts.role.clone() else {
                    return failed("no master to take over from");
                };
                facts.role = CacheRole::Master { offset, replicas: 0 };
                if let Some(old) = self.actors.get_mut(&old) {
                    old.restart_cache(None);
                }
            }
            CacheTask::Promote => facts.role = CacheRole::Master { offset: offset(facts), replicas: 0 },
            CacheTask::Offset => return Outcome::Offset(offset(facts)),
            CacheTask::Snapshot => actor.saved = Some(facts.keys),
            CacheTask::EndClients | CacheTask::Roll { .. } => {}
        }
        Outcome::Ok
    }

    fn follow_cache(&mut self, site: &Site, master: &Site) -> Outcome {
        let source = self.actors.get_mut(master).and_then(|actor| actor.cache.as_mut());
        let Some(CacheFacts { role: CacheRole::Master { offset, replicas }, keys, .. }) = source else {
            return Outcome::Failed("that is no master".to_owned());
        };
        *replicas += 1;
        let (offset, keys) = (*offset, *keys);
        if let Some(facts) = self.actors.get_mut(site).and_then(|actor| actor.cache.as_mut()) {
            let master = Some(master.clone());
            facts.role = CacheRole::Replica { master, link_up: true, syncing: false, heard: true, offset };
            facts.keys = keys;
        }
        Outcome::Ok
    }
}

impl Actor {
    /// What replicas get from it, if it is a master that knows any.
    fn cache_source(&self, site: &Site) -> Option<(Site, u64, u64)> {
        let facts = self.cache.as_ref()?;
        match facts.role {
            CacheRole::Master { offset, replicas: 1.. } => Some((site.clone(), offset, facts.keys)),
            _ => None,
        }
    }

    /// Its cache starts anew, with its snapshot or with nothing.
    pub(crate) fn restart_cache(&mut self, image: Option<String>) {
        let before = self.cache.as_ref().map(|facts| facts.image.clone()).unwrap_or_default();
        let keys = self.saved.take().unwrap_or(0);
        let role = CacheRole::Master { offset: 0, replicas: 0 };
        let image = image.unwrap_or(before);
        self.cache = Some(CacheFacts { role, keys, image, loading: false, takeover: true });
    }
}

fn offset(facts: &CacheFacts) -> u64 {
    match facts.role {
        CacheRole::Master { offset, .. } | CacheRole::Replica { offset, .. } => offset,
    }
}
