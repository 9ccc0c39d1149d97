//! A MySQL that is older than the one that runs: it would not start on files that a newer one has written.
//!
//! In: the wanted image, the Deployments as a watch showed them. Out: why it cannot be. Must not: guess at tags that name no
//! version.

use crate::seen::SeenDeployment;
use std::sync::Arc;

/// Why that image cannot follow what runs; none: it can, or nobody knows.
pub(crate) fn than_what_runs(wanted: &str, running: &[Arc<SeenDeployment>]) -> Option<String> {
    let asked = version(wanted)?;
    let images = running.iter().filter_map(|deployment| deployment.mysql.as_deref());
    let newest = images.filter_map(|image| Some((version(image)?, image))).max()?;
    is_older(&asked, &newest.0).then(|| {
        format!(
            "spec.image: {wanted} is older than {}, which runs: MySQL does not start on files that a newer one has written; write \
             that version or a newer one, or restore a backup into a new group",
            newest.1
        )
    })
}

/// The numbers that a tag begins with: `mysql:9.7.4-debian` is 9, 7, 4.
fn version(image: &str) -> Option<Vec<u32>> {
    let name = image.split('@').next()?;
    // A registry's port comes before the last part.
    let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
    let numbers = tag.split(|sign: char| sign != '.' && !sign.is_ascii_digit()).next()?;
    let numbers: Option<Vec<u32>> = numbers.split('.').map(|number| number.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() > 1)
}

/// As far as both say something: `9.7` may be any of them.
fn is_older(one: &[u32], other: &[u32]) -> bool {
    let both = one.len().min(other.len());
    one.iter().take(both).lt(other.iter().take(both))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen;
    use serde_json::json;

    fn running(images: &[&str]) -> Vec<Arc<SeenDeployment>> {
        let deployment = |image: &&str| {
            let pod = json!({"containers": [{"name": "other", "image": "x:99.0"}, {"name": "mysql", "image": image}]});
            let all = json!({"spec": {"selector": {}, "template": {"spec": pod}}});
            Arc::new(seen::deployment(serde_json::from_value(all).expect("a Deployment")))
        };
        images.iter().map(deployment).collect()
    }

    #[test]
    fn only_a_version_that_is_surely_older_is_refused() {
        let rows: [(&str, &[&str], bool); 11] = [
            ("mysql:9.7.4", &["mysql:9.7.4", "mysql:9.7.4"], false),
            ("mysql:9.7.3", &["mysql:9.7.4"], true),
            ("mysql:9.10.0", &["mysql:9.7.4"], false),
            ("mysql:9.7.4", &["mysql:9.7.4", "mysql:9.8.0"], true),
            ("registry.example:5000/db/mysql:8.4.2-oracle", &["mysql:9.7.4@sha256:00"], true),
            ("mysql:9.7", &["mysql:9.7.4"], false),
            ("mysql:8.4", &["mysql:9.7.4"], true),
            ("mysql@sha256:00", &["mysql:9.7.4"], false),
            ("mysql:stable", &["mysql:9.7.4"], false),
            ("mysql:8.0.1", &["mysql:stable"], false),
            ("mysql:8.0.1", &[], false),
        ];
        for (wanted, runs, refused) in rows {
            let why = than_what_runs(wanted, &running(runs));
            assert_eq!(why.is_some(), refused, "{wanted} over {runs:?}: {why:?}");
            assert!(why.is_none_or(|why| why.starts_with("spec.image: ") && why.contains(wanted)));
        }
    }
}
