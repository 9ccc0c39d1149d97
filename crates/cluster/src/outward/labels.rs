//! Role and health labels of MySQL pods, which the Services `-primary` and `-replicas` select.
//!
//! In: the group's pods, the wish. Out: done, or the first pod that is not as wanted. Must not: put `primary` on before
//! every other pod is known not to carry it, or let a pod whose labels are denied hold up any other.

use crate::estate::site_of;
use crate::pods;
use crate::rest::Rest;
use crate::seen::SeenPod;
use bloodraven_api::group::SiteSpec;
use bloodraven_api::keys::{Healthy, LABEL_HEALTHY, LABEL_ROLE, PodRole};
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::command::Label;
use bloodraven_brain::name::Site;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod and what it should carry.
type Wish<'a> = (&'a Arc<SeenPod>, BTreeMap<&'static str, &'static str>);

pub(super) async fn show(
    rest: &Rest,
    pods: &[Arc<SeenPod>],
    sites: &[SiteSpec],
    outward: &Outward,
) -> Result<(), String> {
    let names: Vec<Site> = sites.iter().map(|site| Site::new(&site.name)).collect();
    let (others, primary) = wishes(pods, &names, outward);
    // Those that carry what they may not carry come first.
    let (first, then): (Vec<Wish<'_>>, Vec<Wish<'_>>) = others.into_iter().partition(|(pod, _)| is_primary(pod));
    let (mut all, mut beside) = (Ok(()), false);
    for wish in first.iter().chain(&then) {
        let done = fulfil(rest, wish).await;
        beside |= done.is_err() && is_primary(wish.0);
        all = all.and(done);
    }
    match &primary {
        Some(wish) if !beside => all.and(fulfil(rest, wish).await),
        _ => all,
    }
}

fn is_primary(pod: &SeenPod) -> bool {
    pod.meta.label(LABEL_ROLE) == Some(PodRole::Primary.as_str())
}

/// What every pod should carry; the primary's apart.
fn wishes<'a>(pods: &'a [Arc<SeenPod>], sites: &[Site], outward: &Outward) -> (Vec<Wish<'a>>, Option<Wish<'a>>) {
    let (mut others, mut primary) = (Vec::new(), None);
    for pod in pods {
        let Some(site) = site_of(pod, sites) else { continue };
        let uid = pod.meta.uid.as_deref().unwrap_or_default();
        let named = outward.primary.as_ref();
        let is_primary = named.is_some_and(|member| member.site == site && &*member.instance.pod == uid);
        if is_primary {
            let labels =
                BTreeMap::from([(LABEL_ROLE, PodRole::Primary.as_str()), (LABEL_HEALTHY, Healthy::No.as_str())]);
            primary = Some((pod, labels));
        } else {
            others.push((pod, of(outward.labels.get(&site))));
        }
    }
    (others, primary)
}

/// A site that nothing is said of (a second pod of the primary's, too) is a replica that gets no reads.
fn of(label: Option<&Label>) -> BTreeMap<&'static str, &'static str> {
    let role = if label.is_some_and(|label| label.fenced) { PodRole::Fenced } else { PodRole::Replica };
    let mut labels = BTreeMap::from([(LABEL_ROLE, role.as_str())]);
    let healthy = label.map_or(Some(false), |label| label.healthy);
    if let Some(healthy) = healthy {
        labels.insert(LABEL_HEALTHY, if healthy { Healthy::Yes.as_str() } else { Healthy::No.as_str() });
    }
    labels
}

async fn fulfil(rest: &Rest, (pod, labels): &Wish<'_>) -> Result<(), String> {
    let as_wanted = labels.iter().all(|(key, value)| pod.meta.label(key) == Some(*value));
    if as_wanted {
        return Ok(());
    }
    let name = &pod.meta.name;
    match pods::label(rest, pod, labels).await {
        Ok(()) => Ok(()),
        // Gone, or another pod of that name: it carries what its template says, which is never `primary`.
        Err(fault) if matches!(fault.code(), Some(404 | 409)) => Ok(()),
        Err(fault) => Err(format!("pod {name}: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen;
    use bloodraven_api::keys::{Application, LABEL_NAME, LABEL_SITE};
    use bloodraven_brain::name::{Instance, Member};
    use serde_json::json;

    fn pod(site: &str, uid: &str) -> Arc<SeenPod> {
        let pod = json!({"metadata": {"name": uid, "uid": uid, "labels": {
            LABEL_NAME: Application::Mysql.as_str(), LABEL_SITE: site}}});
        Arc::new(seen::pod(serde_json::from_value(pod).expect("a pod")))
    }

    fn outward(primary: Option<(&str, &str)>) -> Outward {
        let labels = BTreeMap::from([
            (Site::new("pdx"), Label { fenced: false, healthy: Some(true) }),
            (Site::new("fra"), Label { fenced: true, healthy: None }),
        ]);
        let primary =
            primary.map(|(site, pod)| Member { site: Site::new(site), instance: Instance::new(pod, "store") });
        Outward { primary, labels, ..Outward::default() }
    }

    /// K-03: one endpoint at most, also with two pods of the holder's site.
    #[test]
    fn the_primary_is_the_pod_of_the_instance_and_no_other_of_its_site() {
        let pods = [pod("iad", "old"), pod("iad", "new"), pod("pdx", "p"), pod("fra", "f"), pod("gone", "g")];
        let sites = ["iad", "pdx", "fra"].map(Site::new);
        let (others, primary) = wishes(&pods, &sites, &outward(Some(("iad", "new"))));
        assert_eq!(primary.expect("one").0.meta.uid.as_deref(), Some("new"));
        let told: Vec<_> = others
            .iter()
            .map(|(pod, labels)| {
                let uid = pod.meta.uid.as_deref().unwrap_or_default().to_owned();
                (uid, labels.get(LABEL_ROLE).copied(), labels.get(LABEL_HEALTHY).copied())
            })
            .collect();
        let row = |uid: &str, role, healthy| (uid.to_owned(), Some(role), healthy);
        assert_eq!(
            told,
            [row("old", "replica", Some("no")), row("p", "replica", Some("yes")), row("f", "fenced", None)]
        );
        assert!(wishes(&pods, &sites, &outward(None)).1.is_none(), "nobody, while nobody is confirmed");
    }
}
