//! Scenes of sites that come and go while clients write.
//!
//! In: the cast. Out: the sites that there were before. Must not: call a site gone while something of it is left, but for
//! the volume that people keep.

use std::time::Duration;

use bloodraven_testbed::cluster::SITES;
use bloodraven_testbed::progress::say;
use serde_json::{Value, json};

use super::entrance::Entrance;
use super::leaders::UNNOTICED;
use super::scenes::{Cast, HEALS_WITHIN};
use super::sessions::ask;
use super::stage::{GROUP, Stage};
use super::terms::APP;

/// The site that comes and goes, and the node that it is on.
const NEW: &str = "ams";
const NODE: &str = "fra";

/// C-56: a site that only follows comes and is copied, and goes and leaves nothing but its volume. Sidecars learn of it by
/// new pods, so each time there is one move in good order, and nothing else that a client could notice.
pub(crate) fn comes_and_goes(cast: &Cast<'_>) {
    let (stage, moves) = (cast.stage, cast.seen.moves());
    let begin = stage.timeline.now();
    stage.add_site(NEW, NODE);
    stage.wait_until(&format!("{NEW} follows"), || (stage.site(NEW)?["replicating"] == true).then_some(()));
    stage.wait_until_whole("a site came", HEALS_WITHIN);
    let cloned = stage.site(NEW).unwrap_or_default()["clone"].clone();
    assert_eq!(cloned["phase"], "Done", "{NEW} joins by a copy: {cloned}");
    stage.holds_what_was_written(NEW, NODE, cast);
    told(cast, "came", begin, moves);

    let (begin, moves) = (stage.timeline.now(), cast.seen.moves());
    stage.remove_site(NEW);
    stage.wait_until(&format!("{NEW} leaves nothing behind"), || stage.left_of(NEW).is_empty().then_some(()));
    stage.wait_until_whole("a site went", HEALS_WITHIN);
    told(cast, "went", begin, moves);
    let claim = stage.cluster.get(&stage.of_group(&["pvc", &format!("mysql-{GROUP}-{NEW}-data")])).unwrap();
    assert_eq!((&claim["status"]["phase"], &claim["metadata"]["deletionTimestamp"]), (&json!("Bound"), &Value::Null));
    stage.give_volume_back(NEW);
}

/// What clients noticed.
fn told(cast: &Cast<'_>, what: &str, begin: Duration, moves: usize) {
    let gap = cast.load.longest_gap_since(begin);
    let more = cast.seen.moves() - moves;
    say(&format!("a site {what}: {more} moves, {:.1} s without a write", gap.as_secs_f64()));
    assert!(more <= 1, "a site {what}, and authority moved {more} times");
    assert!(gap < UNNOTICED, "a site {what}, and nobody could write for {gap:?}");
}

impl Stage {
    /// The site that may not be promoted.
    pub(crate) fn follower_only(&self) -> &'static str {
        let spec = self.object().expect("the group")["spec"].clone();
        let follows = |name: &str| {
            let all = spec["sites"].as_array().into_iter().flatten();
            all.into_iter().any(|site| site["name"] == name && site["role"] == "dr-only")
        };
        SITES.into_iter().find(|name| follows(name)).expect("a site that only follows")
    }

    fn add_site(&self, name: &str, node: &str) {
        let site = json!({"name": name, "role": "dr-only", "zone": self.cluster.zone(node), "lbIP": "10.3.0.10",
            "taintNodeSelector": {"shipstream.io/site.orders": name},
            "storage": {"storageClassName": self.cluster.storage_class(), "size": "1Gi"}});
        self.patch(&json!([{"op": "add", "path": "/spec/sites/-", "value": site}]));
    }

    fn remove_site(&self, name: &str) {
        let spec = self.object().expect("the group")["spec"].clone();
        let place = spec["sites"].as_array().and_then(|all| all.iter().position(|site| site["name"] == name));
        let path = format!("/spec/sites/{}", place.expect("a site of that name"));
        self.patch(
            &json!([{"op": "test", "path": format!("{path}/name"), "value": name}, {"op": "remove", "path": path}]),
        );
    }

    fn patch(&self, patch: &Value) {
        self.kubectl(&self.of_group(&["patch", "mfg", GROUP, "--type=json", "-p", &patch.to_string()]));
    }

    /// Everything that there is of a site, its volume apart.
    fn left_of(&self, site: &str) -> Vec<String> {
        let label = format!("shipstream.io/failover-group={GROUP},shipstream.io/site={site}");
        let kinds = "deployments,pods,services,configmaps";
        let listed = self.cluster.kubectl(&self.of_group(&["get", kinds, "-l", &label, "-o", "name"]));
        let mut left: Vec<String> =
            listed.map_or_else(|error| vec![error.to_string()], |text| text.lines().map(str::to_owned).collect());
        left.extend(self.site(site).map(|_| format!("status of {site}")));
        left
    }

    /// The site has every write that was acknowledged until now.
    fn holds_what_was_written(&self, site: &str, node: &str, cast: &Cast<'_>) {
        let at = self.site_entrance(site, node);
        let wanted = cast.load.last_acknowledged();
        let question = format!("SELECT COUNT(*) FROM ledger.writes WHERE id = {wanted}");
        self.wait_until(&format!("{site} has write {wanted}"), || {
            (ask::<u64>(&at, APP, &question)? == 1).then_some(())
        });
    }

    fn site_entrance(&self, site: &str, node: &str) -> Entrance {
        self.entrance(node, &format!("mysql-{GROUP}-{site}-internal"), &format!("shipstream.io/site={site}"))
    }

    /// What people do who do not want it any more.
    fn give_volume_back(&self, site: &str) {
        self.kubectl(&self.of_group(&["delete", "pvc", &format!("mysql-{GROUP}-{site}-data"), "--wait=true"]));
        self.machines().renew_volumes().unwrap();
    }
}
