//! How sites are reached: by their internal Services, whatever their pods' state.
//!
//! In: a group, its sites, the cluster's domain. Out: names and ports. Must not: look anything up; names hold while pods
//! come and go.

use bloodraven_api::names;
use bloodraven_brain::name::Site;
use bloodraven_operator::world::{Addresses, GroupId, HostPort};
use std::collections::BTreeMap;

/// Ports of the internal Service.
const MYSQL: u16 = 3306;
const ADMIN: u16 = 33062;
const SIDECAR: u16 = 8080;

pub(crate) fn of(group: &GroupId, sites: &[Site], domain: &str) -> BTreeMap<Site, Addresses> {
    let host = |site: &Site| {
        let service = names::site_internal(&group.name, site.as_str());
        format!("{service}.{}.svc.{domain}", group.namespace)
    };
    let at = |site: &Site, port| HostPort { host: host(site), port };
    let addresses = |site: &Site| Addresses {
        admin: at(site, ADMIN),
        sidecar: at(site, SIDECAR),
        peers: sites.iter().filter(|peer| *peer != site).map(|peer| (peer.clone(), at(peer, MYSQL))).collect(),
    };
    sites.iter().map(|site| (site.clone(), addresses(site))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_its_internal_service() {
        let sites = ["iad", "pdx"].map(Site::new);
        let all = of(&GroupId::new("shop", "orders"), &sites, "cluster.local");
        let iad = &all[&sites[0]];
        assert_eq!(iad.admin.to_string(), "mysql-orders-iad-internal.shop.svc.cluster.local:33062");
        assert_eq!(iad.sidecar.port, 8080);
        assert_eq!(iad.peers.len(), 1);
        assert_eq!(iad.peers[&sites[1]].to_string(), "mysql-orders-pdx-internal.shop.svc.cluster.local:3306");
    }
}
