//! The DNS record of a group, as a `DNSEndpoint` for external-dns.
//!
//! In: the group, the site that is confirmed to write. Out: the record points there, or why not. Must not: write what is
//! already so.

use crate::group::KIND;
use crate::rest::Rest;
use bloodraven_api::keys::{
    API_GROUP, API_VERSION, Application, FIELD_MANAGER, LABEL_FAILOVER_GROUP, LABEL_INSTANCE, LABEL_MANAGED_BY,
    LABEL_NAME,
};
use bloodraven_api::{MysqlFailoverGroup, names};
use bloodraven_brain::name::Site;
use bloodraven_operator::world::GroupId;
use serde_json::{Value, json};
use std::net::IpAddr;

pub(super) async fn show(rest: &Rest, group: &GroupId, object: &MysqlFailoverGroup, site: &Site) -> Result<(), String> {
    let target = object.spec.sites.iter().find(|it| it.name == site.as_str());
    let target = target.ok_or_else(|| format!("site {site} is not in the spec any more"))?;
    let wanted = endpoint(group, object, &target.lb_ip);
    let name = names::dns_endpoint(&group.name);
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

fn endpoint(group: &GroupId, object: &MysqlFailoverGroup, target: &str) -> Value {
    let dns = &object.spec.dns;
    let kind = if target.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) { "AAAA" } else { "A" };
    json!({
        "apiVersion": "externaldns.k8s.io/v1alpha1",
        "kind": "DNSEndpoint",
        "metadata": {
            "name": names::dns_endpoint(&group.name),
            "namespace": &*group.namespace,
            "labels": {
                LABEL_NAME: Application::Mysql.as_str(),
                LABEL_INSTANCE: &*group.name,
                LABEL_MANAGED_BY: FIELD_MANAGER,
                LABEL_FAILOVER_GROUP: &*group.name,
            },
            "ownerReferences": [{
                "apiVersion": format!("{API_GROUP}/{API_VERSION}"),
                "kind": KIND,
                "name": &*group.name,
                "uid": object.metadata.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": { "endpoints": [{
            "dnsName": dns.hostname,
            "recordType": kind,
            "targets": [target],
            "recordTTL": dns.ttl,
        }] },
    })
}
