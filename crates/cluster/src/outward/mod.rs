//! How the outside looks: pod labels, then the DNS record, then node taints.
//!
//! In: the wish. Out: how far it is fulfilled. Must not: put the primary's label on while another pod may carry it, or let
//! a later step wait for an earlier one that is denied: Services carry writes without DNS, and DNS without taints.

mod dns;
mod labels;

pub(crate) use dns::Records;

use crate::dismiss::set_taints;
use crate::furnish::House;
use crate::rest::Rest;
use crate::watches::Watches;
use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::objects::{OperatorAccount, Plan, Surroundings, server_ids, taints};
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::input::Shown;
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Now;
use bloodraven_operator::world::{GroupId, Unavailable};
use k8s_openapi::api::core::v1::Node;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a look at the outside needs.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    pub(crate) rest: &'a Rest,
    pub(crate) watches: &'a Watches,
    pub(crate) records: &'a Records,
    pub(crate) house: &'a House,
}

pub(crate) async fn show(
    outside: Outside<'_>,
    group: &GroupId,
    object: &MysqlFailoverGroup,
    outward: &Outward,
    now: Now,
) -> Result<Shown, Unavailable> {
    let Outside { rest, watches, records, house } = outside;
    let unseen = |what: &str| Unavailable { what: what.to_owned(), because: "its list is not whole yet".to_owned() };
    let pods = watches.pods.of(group).ok_or_else(|| unseen("pods"))?;
    let labels = labels::show(rest, &pods, &object.spec.sites, outward).await;
    if let Err(because) = &labels {
        tracing::warn!(fg = %group, error = because, "pod labels are not as wanted");
    }
    let surroundings = surroundings(house, group, object);
    let plan = Plan::new(object, &surroundings).map_err(|error| error.to_string());
    let dns = match (&outward.dns, &plan) {
        (Some(site), Ok(plan)) => dns::show(rest, records, group, plan, site, now.boot).await,
        (Some(_), Err(because)) => Err(because.clone()),
        (None, _) => Ok(()),
    };
    let taints = match (&outward.taints, &plan) {
        (Some(wanted), Ok(plan)) => {
            let nodes = watches.nodes.all().ok_or_else(|| unseen("nodes"))?;
            show_taints(rest, &nodes, plan, wanted).await
        }
        (Some(_), Err(because)) => Err(because.clone()),
        (None, _) => Ok(()),
    };
    Ok(Shown { labels: labels.is_ok(), dns, taints, at: now.wall })
}

/// No pod is built here: its image, its accounts and its server id do not matter.
fn surroundings(house: &House, group: &GroupId, object: &MysqlFailoverGroup) -> Surroundings {
    let sites: Vec<&str> = object.spec.sites.iter().map(|site| site.name.as_str()).collect();
    let House { own_image, operator_address, cluster_domain } = house.clone();
    Surroundings {
        own_image: own_image.or_else(|| Some("none".to_owned())),
        operator_address,
        cluster_domain,
        operator_account: OperatorAccount::Keys,
        replication_account: false,
        server_ids: server_ids(&group.name, &sites, &BTreeMap::new()),
    }
}

/// First the nodes that get the taint, then those that lose it.
async fn show_taints(
    rest: &Rest,
    nodes: &[Arc<Node>],
    plan: &Plan<'_>,
    wanted: &BTreeMap<Site, bool>,
) -> Result<(), String> {
    let read_only: BTreeSet<&str> =
        wanted.iter().filter(|(_, tainted)| **tainted).map(|(site, _)| site.as_str()).collect();
    let nodes: Vec<Node> = nodes.iter().map(|node| (**node).clone()).collect();
    let found = taints(plan, &read_only, &nodes);
    for change in &found.changes {
        set_taints(rest, change).await?;
    }
    match found.conflicts.iter().next() {
        None => Ok(()),
        Some((node, sites)) => {
            let sites: Vec<&str> = sites.iter().map(String::as_str).collect();
            Err(format!("node {node} belongs to {}; it is left untainted", sites.join(" and ")))
        }
    }
}
