//! The DNS record of a group, as a `DNSEndpoint` for external-dns.
//!
//! In: the group, the site that is confirmed to write. Out: the record points there, or why not. Must not: write what is
//! already so.

use crate::rest::Rest;
use bloodraven_api::names;
use bloodraven_blueprint::objects::{Plan, dns_endpoint};
use bloodraven_brain::name::Site;
use bloodraven_operator::world::GroupId;

pub(super) async fn show(rest: &Rest, group: &GroupId, plan: &Plan<'_>, site: &Site) -> Result<(), String> {
    let target = plan.sites().iter().find(|it| it.name() == site.as_str());
    let target = target.ok_or_else(|| format!("site {site} is not in the spec any more"))?;
    let name = names::dns_endpoint(&group.name);
    let wanted =
        serde_json::to_value(dns_endpoint(plan, target)).map_err(|error| format!("dnsendpoint {name}: {error}"))?;
    let path = format!("/apis/externaldns.k8s.io/v1alpha1/namespaces/{}/dnsendpoints/{name}", group.namespace);
    let stands = rest.get(&path).await.map_err(|fault| format!("dnsendpoint {name}: {fault}"))?;
    if stands.is_some_and(|stands| stands["spec"] == wanted["spec"]) {
        return Ok(());
    }
    rest.apply(&path, &wanted).await.map(drop).map_err(|fault| match fault.code() {
        Some(404) => format!("dnsendpoint {name}: the cluster has no DNSEndpoint; install external-dns' CRD"),
        _ => format!("dnsendpoint {name}: {fault}"),
    })
}
