//! The layout of a cluster: its machines, their names, addresses and networks.
//!
//! In: nothing. Out: constants and what follows from them. Must not: touch the system; everything here is the same for
//! every cluster, since each one has network namespaces of its own.

use std::net::Ipv4Addr;

use super::error::{Error, UnknownSnafu};

/// The machine with etcd, the API server, the controller manager and the scheduler.
pub const PLANE: &str = "plane";

/// The sites, one node each. A node has the name of its zone.
pub const SITES: [&str; 3] = ["iad", "pdx", "fra"];

/// The addresses of services.
pub(super) const SERVICES: &str = "10.96.0.0/16";

/// The address of the service `kubernetes`, the first of the range.
pub(super) const KUBERNETES_SERVICE: &str = "10.96.0.1";

/// The address of the cluster's DNS.
pub(super) const DNS_SERVICE: &str = "10.96.0.10";

/// The addresses of all pods.
pub(super) const PODS: &str = "10.244.0.0/16";

/// The domain of services.
pub(super) const DOMAIN: &str = "cluster.local";

/// Where the API server listens.
pub(super) const API_PORT: u16 = 6443;

/// A machine of the cluster: a network namespace with one address on the common segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member(usize);

impl Member {
    /// The control plane.
    pub const PLANE: Self = Self(0);

    /// All of them, the control plane first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=SITES.len()).map(Self)
    }

    /// The nodes.
    pub fn nodes() -> impl Iterator<Item = Self> {
        Self::all().skip(1)
    }

    /// The machine of that name: `plane` or a site's.
    pub fn named(name: &str) -> Result<Self, Error> {
        let known = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        let found = Self::all().find(|member| member.name() == name);
        found.ok_or_else(|| UnknownSnafu { sort: "machine", name, known: known() }.build())
    }

    /// The node of that name.
    pub fn node(name: &str) -> Result<Self, Error> {
        let found = Self::nodes().find(|member| member.name() == name);
        found.ok_or_else(|| UnknownSnafu { sort: "node", name, known: SITES.join(", ") }.build())
    }

    /// Its name, which is also that of its port on the switch.
    pub fn name(self) -> &'static str {
        self.0.checked_sub(1).and_then(|index| SITES.get(index)).copied().unwrap_or(PLANE)
    }

    /// Its address on the common segment.
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 10, 0, 10 + self.number())
    }

    /// The addresses of its pods; the control plane has none.
    pub(super) fn pods(self) -> Option<String> {
        (self != Self::PLANE).then(|| format!("10.244.{}.0/24", self.number()))
    }

    fn number(self) -> u8 {
        u8::try_from(self.0).unwrap_or(u8::MAX)
    }
}

/// The commands for `ip` that give a machine its address and its routes. There is no default route: nothing leaves.
pub(super) fn wiring(member: Member) -> String {
    let mut lines = vec![
        "link set lo up".to_owned(),
        format!("addr add {}/24 dev eth0", member.address()),
        "link set eth0 up".to_owned(),
        // Without a route the kernel refuses before the rules of the service proxy see the packet.
        format!("route add {SERVICES} dev eth0"),
    ];
    let others = Member::nodes().filter(|other| *other != member);
    lines.extend(others.filter_map(|other| Some(format!("route add {} via {}", other.pods()?, other.address()))));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_its_own_name_address_and_pods() {
        let names: Vec<_> = Member::all().map(Member::name).collect();
        assert_eq!(names, ["plane", "iad", "pdx", "fra"]);
        let addresses: Vec<_> = Member::all().map(|member| member.address().to_string()).collect();
        assert_eq!(addresses, ["10.10.0.10", "10.10.0.11", "10.10.0.12", "10.10.0.13"]);
        let pods: Vec<_> = Member::all().map(Member::pods).collect();
        assert_eq!(pods[0], None);
        assert_eq!(pods[1..], ["10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24"].map(|it| Some(it.to_owned())));
    }

    #[test]
    fn a_name_that_is_none_is_told_with_those_that_are() {
        assert_eq!(Member::named("plane").unwrap(), Member::PLANE);
        assert_eq!(Member::node("pdx").unwrap().name(), "pdx");
        let error = Member::node("plane").unwrap_err().to_string();
        assert_eq!(error, "there is no node 'plane'; there are: iad, pdx, fra");
        assert!(Member::named("lax").unwrap_err().to_string().contains("plane, iad, pdx, fra"));
    }

    #[test]
    fn a_machine_reaches_every_other_nodes_pods_and_has_no_way_out() {
        let iad = wiring(Member::node("iad").unwrap());
        assert!(iad.contains("addr add 10.10.0.11/24 dev eth0"));
        assert!(iad.contains("route add 10.244.2.0/24 via 10.10.0.12"));
        assert!(iad.contains("route add 10.244.3.0/24 via 10.10.0.13"));
        assert!(!iad.contains("10.244.1.0/24"), "its own pods are behind their own interfaces");
        assert!(!iad.contains("default"));
        assert_eq!(wiring(Member::PLANE).matches(" via ").count(), 3);
    }
}
