//! The DNS record of a group, as a `DNSEndpoint` for external-dns.
//!
//! In: the group, the site that is confirmed to write. Out: the record points there, or why not. Must not: write what is
//! already so, or ask for it all the time: whether it is wanted so is asked with every poll.

use crate::keep::digest;
use crate::rest::Rest;
use bloodraven_api::names;
use bloodraven_blueprint::objects::{Plan, dns_endpoint};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_operator::pace;
use bloodraven_operator::world::GroupId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What was seen to stand is not looked at for so long: the cluster may not know such objects, so nobody watches them.
const STANDS_FOR: Duration = Duration::from_secs(10);

/// Which records were seen to be as wanted: what was wanted, and when it was seen.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<BTreeMap<GroupId, (u64, Boot)>>);

impl Records {
    fn stands(&self, group: &GroupId, digest: u64, now: Boot) -> bool {
        let records = self.lock();
        let stands_for = pace::among(records.len(), STANDS_FOR).as_millis();
        let stands_for = Millis(u64::try_from(stands_for).unwrap_or(u64::MAX));
        records.get(group).is_some_and(|(seen, at)| *seen == digest && now < *at + stands_for)
    }

    pub(crate) fn forget(&self, group: &GroupId) {
        self.lock().remove(group);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, (u64, Boot)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) async fn show(
    rest: &Rest,
    records: &Records,
    group: &GroupId,
    plan: &Plan<'_>,
    site: &Site,
    now: Boot,
) -> Result<(), String> {
    let target = plan.sites().iter().find(|it| it.name() == site.as_str());
    let target = target.ok_or_else(|| format!("site {site} is not in the spec any more"))?;
    let name = names::dns_endpoint(&group.name);
    let wanted =
        serde_json::to_value(dns_endpoint(plan, target)).map_err(|error| format!("dnsendpoint {name}: {error}"))?;
    let digest = digest(&wanted);
    if records.stands(group, digest, now) {
        return Ok(());
    }
    records.forget(group);
    let path = format!("/apis/externaldns.k8s.io/v1alpha1/namespaces/{}/dnsendpoints/{name}", group.namespace);
    let stands = rest.get(&path).await.map_err(|fault| format!("dnsendpoint {name}: {fault}"))?;
    if stands.is_none_or(|stands| stands["spec"] != wanted["spec"]) {
        rest.apply(&path, &wanted).await.map_err(|fault| match fault.code() {
            Some(404) => format!("dnsendpoint {name}: the cluster has no DNSEndpoint; install external-dns' CRD"),
            _ => format!("dnsendpoint {name}: {fault}"),
        })?;
    }
    records.lock().insert(group.clone(), (digest, now));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-02: a name that stands as wanted is not written again.
    #[test]
    fn what_was_seen_stands_for_a_while_and_only_as_it_was_wanted() {
        let (records, group) = (Records::default(), GroupId::new("shop", "orders"));
        records.lock().insert(group.clone(), (7, Boot(1000)));
        assert!(records.stands(&group, 7, Boot(10_999)));
        assert!(!records.stands(&group, 7, Boot(11_000)) && !records.stands(&group, 8, Boot(1001)));
        assert!(!records.stands(&GroupId::new("shop", "other"), 7, Boot(1001)));
        for other in 0..100 {
            records.lock().insert(GroupId::new("shop", &format!("other-{other}")), (7, Boot(1000)));
        }
        assert!(records.stands(&group, 7, Boot(20_999)) && !records.stands(&group, 7, Boot(21_000)), "one of many");
        records.forget(&group);
        assert!(!records.stands(&group, 7, Boot(1001)));
    }
}
