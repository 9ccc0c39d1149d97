//! The verdict: nobody wrote on the wrong side, and nothing that was acknowledged is lost.
//!
//! In: the ledger, what was seen, and the sites as they are now. Out: a panic that says what is wrong. Must not: call a write
//! lost that a divergence report names a site for.

use std::collections::BTreeSet;

use bloodraven_testbed::progress::say;
use mysql_async::prelude::Queryable as _;

use super::load::{FRONT, Ledger, connect};
use super::seen::History;
use super::stage::Stage;

pub(crate) fn judge(stage: &Stage, history: &History, ledger: &Ledger) {
    let History { writers, doubles, .. } = history;
    let count = ledger.acknowledged.len();
    say(&format!("{count} writes acknowledged; writers in turn: {}", writers.join(", ")));
    assert!(doubles.is_empty(), "{doubles:?}");
    let taken = sites_in_turn(ledger);
    assert_eq!(&taken, writers, "sites that acknowledged writes sent straight to them, one after the other");
    let active = stage.active();
    let there = ids(stage, &active).unwrap_or_else(|| panic!("{active} does not answer"));
    let reported = stage.reported();
    let missing: Vec<_> = ledger.acknowledged.iter().filter(|it| !there.contains(&it.id)).collect();
    let lost: Vec<_> = missing.iter().filter(|it| !reported.contains(&it.id)).collect();
    assert!(lost.is_empty(), "{} of {count} acknowledged writes are lost: {lost:?}", lost.len());
    say(&format!("wrong side 0, lost 0, acknowledged and only on a site that was reported {}", missing.len()));
}

/// The sites that took writes, in the order in which those were sent: a site that takes one after another has begun is there
/// twice.
fn sites_in_turn(ledger: &Ledger) -> Vec<String> {
    let mut direct: Vec<_> = ledger.acknowledged.iter().filter(|it| it.by != FRONT).collect();
    direct.sort_by_key(|it| it.sent);
    let mut turns: Vec<String> = Vec::new();
    for write in direct {
        if turns.last().map(String::as_str) != Some(write.by) {
            turns.push(write.by.to_owned());
        }
    }
    turns
}

/// What a site holds; none: it does not answer.
pub(crate) fn ids(stage: &Stage, site: &str) -> Option<BTreeSet<u64>> {
    let door = stage.door(&format!("mysql-orders-{site}-internal"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut conn = connect(door.address()).await?;
        let ids: Vec<u64> = conn.query("SELECT id FROM ledger.writes").await.ok()?;
        Some(ids.into_iter().collect())
    })
}
