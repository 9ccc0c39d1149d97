//! Rules on sites: names, roles, addresses, volumes.
//!
//! In: `spec.sites` or one entry. Out: the rules. Must not: pair entries of two versions by position; they are paired by
//! name.

use std::net::IpAddr;

use serde::Deserialize;

use super::Rule;
use super::text::{DNS_LABEL, LABEL_VALUE, RESERVED_SITE_NAME};
use crate::group::SiteRole;
use crate::quantity::Quantity;

/// Name and role of a site; an empty or absent role is primary-candidate.
#[derive(Deserialize)]
pub(super) struct SiteView {
    pub(super) name: String,
    #[serde(default)]
    role: String,
}

/// Whether site `s` is a primary-candidate, in CEL.
pub(super) const CANDIDATE: &str = "s.role != 'dr-only'";

/// Whether there is a primary-candidate of that name.
pub(super) fn has_candidate(sites: &[SiteView], name: &str) -> bool {
    sites.iter().any(|site| site.name == name && site.is_candidate())
}

impl SiteView {
    fn is_candidate(&self) -> bool {
        self.role != SiteRole::DrOnly.as_str()
    }
}

pub(super) fn rules() -> Vec<Rule> {
    vec![
        Rule::state::<Vec<SiteView>>(
            "two-candidates",
            "spec.sites",
            format!("self.filter(s, {CANDIDATE}).size() >= 2"),
            "spec.sites must hold at least 2 sites with role primary-candidate, so that there is always one to promote; add \
             one, or change a role",
            |sites| sites.iter().filter(|site| site.is_candidate()).count() >= 2,
        ),
        Rule::matches(
            "site-name",
            "spec.sites[].name",
            &DNS_LABEL,
            "spec.sites[].name must hold only lower case letters, digits and '-', and neither begin nor end with '-'; write \
             e.g. iad",
        ),
        Rule::state::<String>(
            "site-reserved",
            "spec.sites[].name",
            format!("!{}", RESERVED_SITE_NAME.cel("self")),
            "spec.sites[].name may not be primary, replicas or end in -internal, which name Services of the group; write \
             another name",
            |name| !RESERVED_SITE_NAME.holds(name),
        ),
        Rule::matches(
            "zone",
            "spec.sites[].zone",
            &LABEL_VALUE,
            "spec.sites[].zone must be the value of the node label topology.kubernetes.io/zone; write e.g. us-east-1a",
        ),
        Rule::state::<String>(
            "lb-ip",
            "spec.sites[].lbIP",
            "isIP(self)",
            "spec.sites[].lbIP must be an IPv4 or IPv6 address; write e.g. 10.0.0.10 or 2001:db8::10",
            |text| is_ip(text),
        ),
        immutable("spec.sites[].storage.storageClassName", "the class of an existing volume"),
        immutable("spec.sites[].storage.accessMode", "the access mode of an existing volume"),
        positive_quantity("spec.sites[].storage.size"),
        Rule::change::<String>(
            "size-grows",
            "spec.sites[].storage.size",
            "!isQuantity(self) || !isQuantity(oldSelf) || quantity(self).compareTo(quantity(oldSelf)) >= 0",
            "spec.sites[].storage.size may only grow; write the old size or more",
            |size, old| match (Quantity::parse(size), Quantity::parse(old)) {
                (Ok(size), Ok(old)) => size >= old,
                _ => true,
            },
        ),
    ]
}

/// A quantity above zero.
pub(super) fn positive_quantity(at: impl Into<String>) -> Rule {
    let at = at.into();
    let message = format!("{at} must be a quantity above zero; write e.g. 500Gi");
    let cel = "isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))";
    Rule::state::<String>("quantity", at, cel, message, |text| Quantity::parse(text).is_ok_and(Quantity::is_positive))
}

fn immutable(at: &'static str, what: &str) -> Rule {
    Rule::change::<String>(
        "immutable",
        at,
        "self == oldSelf",
        format!(
            "{at} cannot be changed ({what}); write the old value, or add a site with another name and remove this one"
        ),
        |value, old| value == old,
    )
}

/// As the API server reads addresses: no zone, no IPv4 address dressed up as IPv6.
fn is_ip(text: &str) -> bool {
    match text.parse() {
        Ok(IpAddr::V4(_)) => true,
        Ok(IpAddr::V6(address)) => address.to_ipv4_mapped().is_none(),
        Err(_) => false,
    }
}
