//! The verdict: nobody wrote on the wrong side, never were two servers open, and nothing that was acknowledged is lost.
//!
//! In: the ledger, what was seen, and the sites as they are now. Out: a panic that says what is wrong. Must not: call a write
//! lost that a divergence report names a site for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bloodraven_testbed::progress::say;
use mysql_async::prelude::Queryable as _;

use super::eyes::{Sight, Span};
use super::load::{Acknowledged, FRONT, Ledger};
use super::seen::History;
use super::stage::Stage;

pub(crate) fn judge(stage: &Stage, history: &History, ledger: &Ledger, sight: &Sight) {
    let History { writers, doubles, .. } = history;
    let count = ledger.acknowledged.len();
    say(&format!("{count} writes acknowledged; writers in turn: {}", writers.join(", ")));
    assert!(doubles.is_empty(), "{doubles:?}");
    let found = two_open_servers(sight).or_else(|| wrong_side(ledger, writers, &sight.spans));
    assert_eq!(found, None);
    tell_readings(sight);
    let active = stage.active();
    let there = stage.wait_until(&format!("{active} answers"), || ids(stage, &active));
    let reported = stage.reported();
    let missing: Vec<_> = ledger.acknowledged.iter().filter(|it| !there.contains(&it.id)).collect();
    let lost: Vec<_> = missing.iter().filter(|it| !reported.contains(&it.id)).collect();
    assert!(lost.is_empty(), "{} of {count} acknowledged writes are lost: {lost:?}", lost.len());
    say(&format!("wrong side 0, lost 0, acknowledged and only on a site that was reported {}", missing.len()));
}

/// Two servers that were open at once, asked on their own nodes.
fn two_open_servers(sight: &Sight) -> Option<String> {
    let (wrong, _) = sight.overlaps();
    (!wrong.is_empty()).then(|| format!("two servers were open at once: {wrong:?}"))
}

/// How often was looked, and how long a server was open beside another one after it had stood still.
fn tell_readings(sight: &Sight) {
    let (_, waking) = sight.overlaps();
    let longest = waking.iter().map(|overlap| overlap.both.until.saturating_sub(overlap.both.from)).max();
    let (count, longest) = (waking.len(), longest.unwrap_or_default().as_millis());
    let readings: usize = sight.answers.values().sum();
    say(&format!(
        "{readings} readings of the servers: two open 0 times; after a standstill {count} times, {longest} ms"
    ));
}

/// A site that took a write while it was not its turn, by the times of sending or by those of the answers; or while another's
/// server was open.
fn wrong_side(ledger: &Ledger, writers: &[String], spans: &BTreeMap<&'static str, Vec<Span>>) -> Option<String> {
    let (sent, answered) = (sites_in_turn(ledger, |it| it.sent), sites_in_turn(ledger, |it| it.answered));
    let beside = beside_an_open_server(ledger, spans);
    if sent != writers {
        Some(format!("writers are {writers:?}; in the order of sending, writes were taken by {sent:?}"))
    } else if answered != writers {
        Some(format!("writers are {writers:?}; in the order of the answers, writes were taken by {answered:?}"))
    } else {
        (!beside.is_empty()).then(|| format!("acknowledged while another's server was open: {beside:?}"))
    }
}

/// The sites that took writes, one after the other: a site that takes one after another has begun is there twice.
fn sites_in_turn(ledger: &Ledger, at: impl Fn(&Acknowledged) -> Duration) -> Vec<String> {
    let mut direct: Vec<_> = ledger.acknowledged.iter().filter(|it| it.by != FRONT).collect();
    direct.sort_by_key(|it| at(it));
    let mut turns: Vec<String> = Vec::new();
    for write in direct {
        if turns.last().map(String::as_str) != Some(write.by) {
            turns.push(write.by.to_owned());
        }
    }
    turns
}

/// Writes that were sent and answered while another's server was open the whole time: wherever in between they were taken,
/// there were two.
fn beside_an_open_server(ledger: &Ledger, spans: &BTreeMap<&'static str, Vec<Span>>) -> Vec<(Acknowledged, String)> {
    let direct = ledger.acknowledged.iter().filter(|it| it.by != FRONT);
    let beside = direct.filter_map(|write| {
        let covers = |span: &Span| span.from <= write.sent && write.answered <= span.until;
        let other = spans.iter().find(|(site, spans)| **site != write.by && spans.iter().any(covers))?;
        Some((write.clone(), (*other.0).to_owned()))
    });
    beside.collect()
}

/// What a site holds; none: it does not answer.
pub(crate) fn ids(stage: &Stage, site: &str) -> Option<BTreeSet<u64>> {
    let door = stage.door_at(site);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut conn = door.connect().await?;
        let ids: Vec<u64> = conn.query("SELECT id FROM ledger.writes").await.ok()?;
        Some(ids.into_iter().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    /// Writes by site: when each was sent and answered.
    fn ledger(writes: &[(&'static str, u64, u64)]) -> Ledger {
        let number = |place: usize| u64::try_from(place).unwrap();
        let acknowledged = writes.iter().enumerate().map(|(place, (by, sent, answered))| Acknowledged {
            id: number(place),
            by,
            sent: ms(*sent),
            answered: ms(*answered),
        });
        Ledger { acknowledged: acknowledged.collect() }
    }

    #[test]
    fn a_write_on_the_wrong_side_is_found_by_its_sending_by_its_answer_and_by_what_was_open_beside_it() {
        let check =
            |writes: &[(&'static str, u64, u64)], open: Option<(&'static str, u64, u64)>, said: Option<&str>| {
                let spans = open.map(|(site, from, until)| (site, vec![Span { from: ms(from), until: ms(until) }]));
                let writers = ["iad", "pdx"].map(str::to_owned);
                let found = wrong_side(&ledger(writes), &writers, &spans.into_iter().collect());
                let as_wanted = found.as_deref().map(|found| said.is_some_and(|said| found.contains(said)));
                assert_eq!(as_wanted, said.map(|_| true), "{writes:?} {open:?}: {found:?}");
            };
        let good = [("iad", 0, 10), ("front", 15, 18), ("pdx", 50, 60), ("front", 61, 70)];
        check(&good, None, None);
        check(&good, Some(("pdx", 45, 90)), None);
        check(&good, Some(("iad", 0, 40)), None);
        // Taken by the first after the second had begun.
        check(&[("iad", 0, 10), ("pdx", 50, 60), ("iad", 70, 80)], None, Some("order of sending"));
        // Sent in good time, and acknowledged after the second had acknowledged.
        check(&[("iad", 0, 80), ("pdx", 50, 60)], None, Some("order of the answers"));
        // Acknowledged in good time, while the other server was open the whole time.
        check(&good, Some(("pdx", 0, 90)), Some("server was open"));
        check(&good, Some(("iad", 0, 60)), Some("server was open"));
    }

    #[test]
    fn two_open_servers_are_a_verdict() {
        let check = |until: u64, found: bool| {
            let span = |from: u64, until: u64| vec![Span { from: ms(from), until: ms(until) }];
            let spans = BTreeMap::from([("iad", span(0, until)), ("pdx", span(150, 300))]);
            let sight = Sight { spans, ..Sight::default() };
            assert_eq!(two_open_servers(&sight).is_some(), found, "{sight:?}");
        };
        check(140, false);
        check(160, true);
    }
}
