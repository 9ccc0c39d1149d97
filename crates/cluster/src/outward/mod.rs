//! How the outside looks: pod labels, then the DNS record, then node taints.
//!
//! In: the wish. Out: how far it is fulfilled. Must not: put the primary's label on while another pod may carry it, or let
//! a later step wait for an earlier one that is denied: Services carry writes without DNS, and DNS without taints.

mod dns;
mod labels;
mod taints;

use crate::rest::Rest;
use crate::watches::Watches;
use bloodraven_api::MysqlFailoverGroup;
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::input::Shown;
use bloodraven_brain::time::Wall;
use bloodraven_operator::world::{GroupId, Unavailable};

pub(crate) async fn show(
    rest: &Rest,
    watches: &Watches,
    group: &GroupId,
    object: &MysqlFailoverGroup,
    outward: &Outward,
    at: Wall,
) -> Result<Shown, Unavailable> {
    let unseen = |what: &str| Unavailable { what: what.to_owned(), because: "its list is not whole yet".to_owned() };
    let pods = watches.pods.of(group).ok_or_else(|| unseen("pods"))?;
    let labels = labels::show(rest, &pods, &object.spec.sites, outward).await;
    if let Err(because) = &labels {
        tracing::warn!(fg = %group, error = because, "pod labels are not as wanted");
    }
    let dns = match &outward.dns {
        Some(site) => dns::show(rest, group, object, site).await,
        None => Ok(()),
    };
    let taints = match &outward.taints {
        Some(wanted) => {
            let nodes = watches.nodes.all().ok_or_else(|| unseen("nodes"))?;
            taints::show(rest, &nodes, group, &object.spec.sites, outward.dns.as_ref(), wanted).await
        }
        None => Ok(()),
    };
    Ok(Shown { labels: labels.is_ok(), dns, taints, at })
}
