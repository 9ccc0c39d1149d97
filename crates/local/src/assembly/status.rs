//! How things are, for people and for `playground.json`.
//!
//! In: the group's object, the addresses, the supervisor. Out: a snapshot. Must not: guess who is the primary: the record
//! says it.

use std::net::SocketAddr;

use serde_json::Value;

use crate::network::{End, Network, Service};
use crate::store::object::Object;
use crate::supervisor::{SiteState, Supervisor};

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The record's site; empty while nobody may write.
    pub active_site: String,
    /// The record's phase; empty before the first record.
    pub phase: String,
    /// The record's epoch.
    pub epoch: u64,
    /// The front doors.
    pub primary_door: SocketAddr,
    /// The front doors.
    pub replicas_door: SocketAddr,
    /// The sites, in the spec's order.
    pub sites: Vec<SiteStatus>,
    /// The operators.
    pub operators: Vec<OperatorStatus>,
}

/// A site in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteStatus {
    /// Its name.
    pub name: String,
    /// Its role, as the spec spells it.
    pub role: String,
    /// Its server, as who is inside the site reaches it.
    pub mysql: SocketAddr,
    /// Its server's admin port.
    pub admin: SocketAddr,
    /// Its sidecar.
    pub sidecar: SocketAddr,
    /// The server's process.
    pub mysqld_pid: Option<u32>,
    /// What the supervisor knows.
    pub state: SiteState,
}

/// An operator in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorStatus {
    /// Its number.
    pub number: u8,
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// Where it answers.
    pub http: SocketAddr,
    /// How often it was started.
    pub starts: u32,
}

impl Status {
    /// That site; none: there is none.
    pub fn site(&self, name: &str) -> Option<&SiteStatus> {
        self.sites.iter().find(|site| site.name == name)
    }

    pub(super) fn in_words(&self) -> String {
        let site = |site: &SiteStatus| {
            let part =
                |name: &str, pid: Option<u32>| pid.map_or_else(|| format!("no {name}"), |pid| format!("{name} {pid}"));
            let parts = [
                part("mysqld", site.mysqld_pid),
                part("keeper", site.state.keeper_pid),
                part("sidecar", site.state.sidecar_pid),
            ];
            format!("{}: {}", site.name, parts.join(", "))
        };
        let sites: Vec<String> = self.sites.iter().map(site).collect();
        let phase = if self.phase.is_empty() { "no record" } else { &self.phase };
        format!("{phase}, epoch {}, active site {:?}; {}", self.epoch, self.active_site, sites.join("; "))
    }
}

pub(super) fn of(object: &Object, network: &Network, supervisor: &Supervisor) -> Status {
    let states = supervisor.site_states();
    let site = |(name, role): (String, String)| {
        let end = End::Site(name.clone());
        let state = states.get(&name).cloned().unwrap_or_default();
        Some(SiteStatus {
            mysql: network.address(&end, Service::Mysql)?,
            admin: network.address(&end, Service::Admin)?,
            sidecar: network.address(&end, Service::Sidecar)?,
            mysqld_pid: state.mysqld_pid(),
            role: if role.is_empty() { "primary-candidate".to_owned() } else { role },
            name,
            state,
        })
    };
    let operator = |(number, state): (u8, crate::supervisor::OperatorState)| {
        let http = network.address(&End::Operator(number), Service::Aux)?;
        Some(OperatorStatus { number, pid: state.pid, http, starts: state.starts })
    };
    Status {
        active_site: object.text("/status/activeSite").to_owned(),
        phase: object.text("/status/authority/phase").to_owned(),
        epoch: object.value.pointer("/status/authority/epoch").and_then(Value::as_u64).unwrap_or_default(),
        primary_door: network.primary_door(),
        replicas_door: network.replicas_door(),
        sites: object.sites().into_iter().filter_map(site).collect(),
        operators: (0..).zip(supervisor.operator_states()).filter_map(operator).collect(),
    }
}
