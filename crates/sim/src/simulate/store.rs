//! The API store: the group's object with one version, its two copies of what is kept, pods, the operators' lease.
//!
//! In: reads and compare-and-swap writes, when they arrive. Out: what they come to. Must not: tell anyone on its own.

use super::scenario::Refusable;
use bloodraven_brain::authority;
use bloodraven_brain::group::Kept;
use bloodraven_brain::group::command::CacheLabels;
use bloodraven_brain::group::input::{Consent, PlannedWish, PodFacts, RecloneWish, Request, Requests};
use bloodraven_brain::group::kept::Anchor;
use bloodraven_brain::group::{Outward, Spec};
use bloodraven_brain::lease::{Acquired, Lease, NewLease};
use bloodraven_brain::name::{Member, Site};
use bloodraven_brain::record::Record;
use bloodraven_gtid::GtidSet;
use std::sync::Arc;

/// The store.
#[derive(Clone, Debug)]
pub(super) struct Store {
    /// The version of the group's object.
    pub(super) version: u64,
    /// The annotation's copy.
    pub(super) annotation: Anchor,
    /// The status's copy.
    pub(super) status: Kept,
    pub(super) spec: Spec,
    pub(super) requests: Requests,
    /// Pod objects, oldest first.
    pub(super) pods: Vec<PodFacts>,
    /// Sites whose volume was made by this group.
    pub(super) own_volumes: Vec<Site>,
    pub(super) lease: Option<Lease>,
    lease_version: u64,
    /// The pod with the primary's label.
    pub(super) primary: Option<Member>,
    pub(super) dns: Option<Site>,
    pub(super) denied: Vec<Refusable>,
    pub(super) down: bool,
    /// What the caches' labels say.
    pub(super) cache: Option<CacheLabels>,
    /// What pods are made from now.
    pub(super) template: u32,
    /// What each site's pods are made from; absent: from the first template.
    deployed: Vec<u32>,
    /// Promotions stand in status alone: an annotation has no room for them.
    pub(super) large_promotions: bool,
    /// The group's object as it was copied away.
    backup: Option<(Anchor, Kept)>,
}

/// Both copies as they are stored, and the version of the object.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    pub(super) version: u64,
    pub(super) anchor: Anchor,
    pub(super) status: Kept,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    Ok,
    Conflict,
    Denied,
}

impl Store {
    pub(super) fn new(spec: Spec) -> Self {
        Self {
            version: 1,
            annotation: Anchor::default(),
            status: Kept::default(),
            spec,
            requests: Requests::default(),
            pods: Vec::new(),
            own_volumes: Vec::new(),
            lease: None,
            lease_version: 0,
            primary: None,
            dns: None,
            denied: Vec::new(),
            down: false,
            cache: None,
            template: 0,
            deployed: Vec::new(),
            large_promotions: false,
            backup: None,
        }
    }

    pub(super) fn denies(&self, what: Refusable) -> bool {
        self.denied.contains(&what)
    }

    /// Both copies, joined.
    pub(super) fn load(&self) -> Kept {
        Kept::join(self.annotation.clone(), self.status.clone())
    }

    /// The record as it stands.
    pub(super) fn record(&self) -> Option<Record> {
        match (&self.annotation.record, &self.status.record) {
            (Some(one), Some(other)) => Some(authority::join(one.clone(), other.clone())),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        }
    }

    /// What an annotation holds of that.
    pub(super) fn held(&self, kept: &Kept) -> Anchor {
        let anchor = kept.anchor();
        if self.large_promotions { Anchor { promotion: None, unapplied: GtidSet::new(), ..anchor } } else { anchor }
    }

    pub(super) fn copies(&self) -> Copies {
        Copies { version: self.version, anchor: self.annotation.clone(), status: self.status.clone() }
    }

    pub(super) fn write_annotation(&mut self, version: u64, kept: &Kept) -> Wrote {
        if self.denies(Refusable::Annotation) {
            return Wrote::Denied;
        }
        if version != self.version {
            return Wrote::Conflict;
        }
        self.version += 1;
        self.annotation = self.held(kept);
        Wrote::Ok
    }

    pub(super) fn write_status(&mut self, version: u64, kept: Kept) -> Wrote {
        if self.denies(Refusable::Status) {
            return Wrote::Denied;
        }
        if version != self.version {
            return Wrote::Conflict;
        }
        self.version += 1;
        self.status = kept;
        Wrote::Ok
    }

    /// Writes the lease if it has that version; none: if there is none.
    pub(super) fn write_lease(&mut self, version: Option<&Arc<str>>, new: &NewLease) -> Result<Lease, Wrote> {
        if self.denies(Refusable::Lease) {
            return Err(Wrote::Denied);
        }
        if self.lease.as_ref().map(|lease| &lease.version) != version {
            return Err(Wrote::Conflict);
        }
        self.lease_version += 1;
        let acquired = match &new.acquired {
            Acquired::At(at) => Some(at.0.to_string().into()),
            Acquired::AsRead(text) => text.clone(),
        };
        let lease = Lease {
            version: self.lease_version.to_string().into(),
            holder: new.holder.clone(),
            duration: Some(new.duration),
            acquired,
            renewed: Some(new.renewed.0.to_string().into()),
            transitions: new.transitions,
        };
        self.lease = Some(lease.clone());
        Ok(lease)
    }

    /// Labels, the name. Returns whether each was written.
    pub(super) fn show(&mut self, wanted: &Outward) -> (bool, bool) {
        let labels = !self.denies(Refusable::Labels);
        if labels {
            self.primary.clone_from(&wanted.primary);
            self.cache.clone_from(&wanted.cache);
        }
        let dns = !self.denies(Refusable::Dns);
        if let (true, Some(site)) = (dns, &wanted.dns) {
            self.dns = Some(site.clone());
        }
        (labels, dns)
    }

    pub(super) fn request_planned(&mut self, site: &Site, number: u64) {
        self.version += 1;
        let wish = PlannedWish { site: site.clone(), max_lag_wait: None, id: Some(format!("request-{number}")) };
        self.requests.planned = Some(Request { text: format!("{site} id={number}"), wish: Ok(wish) });
    }

    pub(super) fn request_reclone(&mut self, site: &Site, number: u64) {
        self.version += 1;
        let divergent = self.status.site(site).divergent;
        let consent = if divergent.is_empty() { Consent::None } else { Consent::Prefix(divergent.to_string()) };
        let wish = RecloneWish { site: site.clone(), consent };
        self.requests.reclone = Some(Request { text: format!("{site} {number}"), wish: Ok(wish) });
    }

    /// What that site's pods are made from.
    pub(super) fn deployed(&self, site: usize) -> u32 {
        self.deployed.get(site).copied().unwrap_or(0)
    }

    /// From now on that site's pods are made from the present template.
    pub(super) fn deploy(&mut self, site: usize) {
        if self.deployed.len() <= site {
            self.deployed.resize(site + 1, 0);
        }
        self.deployed[site] = self.template;
    }

    pub(super) fn back_up(&mut self) {
        self.backup = Some((self.annotation.clone(), self.status.clone()));
    }

    /// The group's object goes back in time; whoever remembers a version of it is refused. Returns whether there was a copy.
    pub(super) fn restore(&mut self) -> bool {
        let Some((annotation, status)) = self.backup.take() else { return false };
        (self.annotation, self.status) = (annotation, status);
        self.version += 1;
        true
    }

    /// Takes the finalizer off; an object that is being deleted is gone then.
    pub(super) fn release_pod(&mut self, uid: &str) {
        for pod in self.pods.iter_mut().filter(|pod| *pod.uid == *uid) {
            pod.finalizer = false;
        }
        self.pods.retain(|pod| pod.finalizer || !pod.deleting);
    }
}
