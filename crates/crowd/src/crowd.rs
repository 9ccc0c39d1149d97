//! The crowd: every group, where its sites are, and what befalls them.
//!
//! In: how many groups and sites. Out: listeners that answer for all of them; faults. Must not: be slow. Everything of one
//! group is behind one lock, and nothing waits while it holds one.

use crate::group::{Belonging, Group, Played, ToAsk};
use crate::polls::Polls;
use crate::say::Answer;
use crate::server::Server;
use crate::{ask, clock, http, kubelet, mysql, names};
use anyhow::{Context as _, Result};
use bloodraven_api::names as objects;
use bloodraven_gtid::GtidSet;
use bloodraven_wire::{GroupUid, Keys};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

/// The namespace of every group.
pub const NAMESPACE: &str = "crowd";

/// The domain of Services.
pub const DOMAIN: &str = "crowd.test";

/// The Secret that every group names.
pub const SECRET: &str = "accounts";

/// Sites of every group. The first one is the seed.
pub const SITES: [&str; 3] = ["iad", "pdx", "fra"];

/// Where the operator answers sidecars.
pub const OPERATOR: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8082);

/// The first site's address; the next has the next one. There is room for two million.
const FIRST: u32 = u32::from_be_bytes([127, 64, 0, 1]);

/// Ports of a site, as its Service has them.
const ADMIN: u16 = 33062;
const SIDECAR: u16 = 8080;

/// A played site is looked at at least so often.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// One site of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which group, counted from 0.
    pub group: usize,
    /// Which of its sites.
    pub site: usize,
}

/// What may befall a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its server is killed and stays down; its sidecar lives and says so.
    ServerKilled,
    /// Its machine loses power: connections are reset, nothing answers.
    Dead,
    /// It stands still: connections are accepted and kept, nothing is ever answered.
    Hung,
    /// It is as it was; a server that had ended has started again, closed.
    Back,
}

/// How a site takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Hung,
    Shut,
}

pub(crate) struct Doors {
    pub(crate) mysql: watch::Sender<Door>,
    pub(crate) sidecar: watch::Sender<Door>,
}

/// See above.
pub struct Crowd {
    groups: Vec<Mutex<Group>>,
    doors: Vec<Doors>,
    pub(crate) sites: usize,
    accounts: Vec<(String, String)>,
    /// When polls came.
    pub polls: Polls,
    unknown: Mutex<BTreeMap<String, u64>>,
}

impl Crowd {
    /// So many groups, none of which has pods yet.
    pub fn new(groups: usize) -> Arc<Self> {
        let accounts = vec![("operator".to_owned(), "op-pw".to_owned()), ("repl".to_owned(), "repl-pw".to_owned())];
        let doors = || Doors { mysql: watch::Sender::new(Door::Open), sidecar: watch::Sender::new(Door::Open) };
        Arc::new(Self {
            groups: (0..groups).map(|group| Mutex::new(played(group, &accounts))).collect(),
            doors: (0..groups * SITES.len()).map(|_| doors()).collect(),
            sites: SITES.len(),
            accounts,
            polls: Polls::default(),
            unknown: Mutex::default(),
        })
    }

    /// Listens for all sites, answers for their names, and lets them live. Needs a running tokio, inside a
    /// [place](crate::place).
    pub async fn begin(self: &Arc<Self>, client: kube::Client) -> Result<()> {
        let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let mysql_port = TcpListener::bind((everywhere, ADMIN)).await.context("cannot listen for servers")?;
        let http_port = TcpListener::bind((everywhere, SIDECAR)).await.context("cannot listen for sidecars")?;
        names::serve(Arc::clone(self)).await.context("cannot listen for names")?;
        tokio::spawn(mysql::serve(Arc::clone(self), mysql_port));
        tokio::spawn(http::serve(Arc::clone(self), http_port));
        tokio::spawn(kubelet::serve(Arc::clone(self), client));
        Ok(())
    }

    /// The name of a group.
    pub fn name(group: usize) -> String {
        format!("g{group:04}")
    }

    /// Which group has that name.
    pub fn group_named(&self, name: &str) -> Option<usize> {
        let number: usize = name.strip_prefix('g')?.parse().ok()?;
        (number < self.groups.len()).then_some(number)
    }

    /// Something befalls a site.
    pub fn befall(self: &Arc<Self>, place: Place, fault: Fault) {
        let (mysql, sidecar) = match fault {
            Fault::ServerKilled => (Door::Shut, Door::Open),
            Fault::Dead => (Door::Shut, Door::Shut),
            Fault::Hung => (Door::Hung, Door::Hung),
            Fault::Back => (Door::Open, Door::Open),
        };
        let to_ask = self.with(place, |group| {
            let (was_away, site) = (group.sites[place.site].away, &mut group.sites[place.site]);
            site.away = sidecar != Door::Open;
            match fault {
                Fault::ServerKilled | Fault::Dead => site.server.end(),
                Fault::Back if site.server.start.is_none() && was_away => return group.begin_again(place.site),
                Fault::Back if site.server.start.is_none() => site.server.boot(),
                Fault::Back | Fault::Hung => {}
            }
            group.keeper_speaks(place.site)
        });
        let doors = self.doors(place);
        doors.mysql.send_replace(mysql);
        doors.sidecar.send_replace(sidecar);
        self.ask(place.group, to_ask);
    }

    /// The site whose server takes writes, and since when; none: no site's does, or several do.
    pub fn writer(&self, group: usize) -> Option<(usize, Instant)> {
        let group = self.lock(group);
        let mut open = group.sites.iter().enumerate().filter(|(_, played)| played.server.is_open());
        let (site, played) = open.next()?;
        let at = played.opened?;
        open.next().is_none().then_some((site, at))
    }

    /// How many sites' servers take writes.
    pub fn writers(&self, group: usize) -> usize {
        self.lock(group).sites.iter().filter(|played| played.server.is_open()).count()
    }

    /// Statements that no played server knew, and how often each was said. More than none: the product says something new.
    pub fn unknown(&self) -> BTreeMap<String, u64> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the site of a Deployment is.
    pub(crate) fn place_of_deployment(&self, name: &str) -> Option<Place> {
        let (group, site) = name.strip_prefix("mysql-")?.split_once('-')?;
        let site = SITES.iter().position(|it| *it == site)?;
        Some(Place { group: self.group_named(group)?, site })
    }

    /// Its pod is there: the sidecar begins, and goes on for ever.
    pub(crate) fn pod_is_there(self: &Arc<Self>, place: Place, group: &str, keys: Keys, pod: &str) {
        let to_ask = self.with(place, |played| {
            played.belonging = Some(Belonging { uid: GroupUid::new(group), keys });
            played.begin(place.site, pod)
        });
        self.ask(place.group, to_ask);
        let crowd = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                let now = clock::boot();
                let wake = crowd.with(place, |group| group.sites[place.site].next_wake(now));
                let rest = Duration::from_millis(wake.since(now).0.max(1)).min(LONGEST_REST);
                clock::pass(rest).await;
                let to_ask = crowd.with(place, |group| group.wake(place.site));
                crowd.ask(place.group, to_ask);
            }
        });
    }

    /// Puts questions to the operator, beside everything else.
    pub(crate) fn ask(self: &Arc<Self>, group: usize, to_ask: Vec<ToAsk>) {
        for question in to_ask {
            tokio::spawn(ask::operator(Arc::clone(self), group, question));
        }
    }

    pub(crate) fn with<T>(&self, place: Place, what: impl FnOnce(&mut Group) -> T) -> T {
        what(&mut self.lock(place.group))
    }

    fn lock(&self, group: usize) -> MutexGuard<'_, Group> {
        self.groups[group].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn doors(&self, place: Place) -> &Doors {
        &self.doors[place.group * self.sites + place.site]
    }

    pub(crate) fn accounts(&self) -> &[(String, String)] {
        &self.accounts
    }

    /// Whose connection that is: each site has an address.
    pub(crate) fn place_of(&self, stream: &TcpStream) -> Option<Place> {
        let Ok(SocketAddr::V4(address)) = stream.local_addr() else { return None };
        let number = usize::try_from(u32::from(*address.ip()).checked_sub(FIRST)?).ok()?;
        let place = Place { group: number / self.sites, site: number % self.sites };
        (place.group < self.groups.len()).then_some(place)
    }

    /// Where a Service of a site leads to.
    pub(crate) fn address_of(&self, name: &str) -> Option<Ipv4Addr> {
        let service = name.strip_suffix(&format!("-internal.{NAMESPACE}.svc.{DOMAIN}"))?;
        let place = self.place_of_deployment(service)?;
        let number = u32::try_from(place.group * self.sites + place.site).ok()?;
        Some(Ipv4Addr::from(FIRST + number))
    }

    pub(crate) fn note_unknown(&self, said: &[Answer]) {
        if let Some(Answer::Refused { code: 1064, message }) = said.last() {
            let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
            *unknown.entry(message.clone()).or_default() += 1;
        }
    }
}

/// A group whose sites all hold the same.
fn played(group: usize, accounts: &[(String, String)]) -> Group {
    let name = Crowd::name(group);
    let first = u32::try_from(group * SITES.len()).unwrap_or(0);
    let executed: GtidSet = format!("{first:08x}-0000-4000-8000-000000000001:1-1000").parse().unwrap_or_default();
    let site = |(number, site): (u32, &&str)| {
        let host = format!("{}.{NAMESPACE}.svc.{DOMAIN}", objects::site_internal(&name, site));
        Played::new(site, host, Server::new(first + number, executed.clone()))
    };
    Group {
        namespace: NAMESPACE.to_owned(),
        name: name.clone(),
        belonging: None,
        sites: (0..).zip(&SITES).map(site).collect(),
        accounts: accounts.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_has_a_name_and_an_address_of_its_own() {
        let crowd = Crowd::new(300);
        let name = |group, site| format!("mysql-{}-{site}-internal.crowd.svc.crowd.test", Crowd::name(group));
        assert_eq!(crowd.address_of(&name(0, "iad")), Some(Ipv4Addr::new(127, 64, 0, 1)));
        assert_eq!(crowd.address_of(&name(0, "fra")), Some(Ipv4Addr::new(127, 64, 0, 3)));
        assert_eq!(crowd.address_of(&name(299, "fra")), Some(Ipv4Addr::new(127, 64, 3, 132)));
        for nobody in [name(300, "iad"), name(0, "lax"), "example.org".to_owned()] {
            assert_eq!(crowd.address_of(&nobody), None, "{nobody}");
        }
    }
}
