//! How far a site is from following the primary, in the words of the status.

use super::bench::{alone, bench, following, site};
use crate::candidate::drain::Receiver;
use crate::group::Kept;
use crate::group::input::{Facts, Outcome};
use crate::group::kept::{Recovery, SiteKept};
use crate::group::seen::SiteSeen;
use crate::group::tests::set;
use crate::site::State;
use std::sync::Arc;

fn check(facts: Facts, up: bool, expect: Option<&str>, replicating: bool) {
    let mut bench = bench(vec![("pdx", facts)]);
    bench.group.spec.replication_account = false;
    bench.server("pdx").up = up;
    bench.run(10);
    let kept = bench.group.kept().expect("it is known");
    let words = bench.group.convergence(&kept, &site("pdx"));
    let words = words.map(|words| format!("{}/{}", words.state.as_str(), words.reason.as_str()));
    assert_eq!(words.as_deref(), expect);
    assert_eq!(bench.group.is_replicating(&kept, &site("pdx")), replicating);
    assert_eq!(bench.group.convergence(&kept, &site("iad")), None);
}

#[test]
fn the_states_and_reasons_of_source_convergence() {
    check(following(2, "1:1-9", "iad"), true, Some("Converged/DirectSource"), true);
    let mut stopped = following(2, "1:1-9", "iad");
    stopped.replica.as_mut().expect("a replica").receiver = Receiver::Stopped;
    check(stopped, true, Some("Converged/DirectSource"), false);
    check(following(2, "1:1-9", "fra"), true, Some("Pending/SourceMismatch"), false);
    check(alone(2, "1:1-9"), true, Some("Pending/SourceMismatch"), false);
    check(alone(2, "1:1-9"), false, Some("Pending/ProbeFailed"), false);
    check(Facts { data: None, ..alone(2, "1:1-9") }, true, Some("Pending/ProbeFailed"), false);
}

#[test]
fn what_failed_and_what_diverges_is_told_as_such() {
    let words = |facts: Facts| {
        let mut bench = bench(vec![("pdx", facts)]);
        bench.outcomes.insert("Repoint", Some(Outcome::Failed("timeout".to_owned())));
        bench.run(10);
        let kept = bench.group.kept().expect("it is known");
        let words = bench.group.convergence(&kept, &site("pdx")).expect("a replica");
        format!("{}/{}", words.state.as_str(), words.reason.as_str())
    };
    assert_eq!(words(following(2, "1:1-9", "fra")), "Pending/MutationFailed");
    assert_eq!(words(following(2, "1:1-9,2:1", "fra")), "Blocked/GTIDDiverged");
}

#[test]
fn a_site_that_is_blocked_or_diverges_is_told_so_by_either() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))]);
    bench.run(10);
    let kept = Kept::clone(&bench.group.kept().expect("it is known"));
    let blocked = SiteKept { recovery: Recovery::Blocked, ..SiteKept::default() };
    let divergent = SiteKept { divergent: set("2:1"), ..SiteKept::default() };
    for (of_site, expect) in
        [(blocked, "GTIDDiverged"), (divergent, "GTIDDiverged"), (SiteKept::default(), "DirectSource")]
    {
        let mut kept = kept.clone();
        *kept.site_mut(&site("pdx")) = of_site;
        let words = bench.group.convergence(&kept, &site("pdx")).expect("a replica");
        assert_eq!(words.reason.as_str(), expect);
    }
}

/// Each row breaks one condition.
/// K-05: `replicating` is right two polls after a rejoin, which is well within its 30 s.
#[test]
fn a_site_replicates_while_it_is_reachable_and_followed_the_holder_twice() {
    let check = |name: &str, change: fn(&mut SiteSeen), expect: bool| {
        let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))]);
        bench.run(10);
        change(bench.group.seen.sites.get_mut(&site("pdx")).expect("declared"));
        let kept = bench.group.kept().expect("it is known");
        assert_eq!(bench.group.is_replicating(&kept, &site("pdx")), expect, "{name}");
    };
    check("as it is", |_| (), true);
    check("one poll", |seen| seen.following = 1, false);
    check("out of reach", |seen| seen.watch.state = State::Unreachable, false);
    check("another source", |seen| seen.facts = Some(Arc::new(following(2, "1:1-9", "fra"))), false);
}
