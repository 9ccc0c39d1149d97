//! The look at every site: which of the open writes it has.
//!
//! In: addresses, an ordinary user, ranges of ids. Out: a [`Reading`] of each site that answered in time. Must not: ask
//! through a front door, or take half an answer for a whole one.

use super::{Reading, SiteNumber};
use crate::load::Client;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The table of the load.
pub(crate) const TABLE: &str = "ledger.writes";

/// So many ids are asked for at once.
const PAGE: usize = 10_000;

/// A page comes out of the primary key; the rest is a busy machine.
const WITHIN: Duration = Duration::from_secs(5);

/// Asks every site, side by side. A site that has no table yet has none of the writes.
pub async fn ask_all(
    sites: &[SocketAddr],
    user: &str,
    password: &str,
    ranges: &[(u64, u64)],
) -> BTreeMap<SiteNumber, Reading> {
    let asked = (0..=u8::MAX).zip(sites).map(|(number, address)| async move {
        Some((SiteNumber(number), ask(*address, user, password, ranges).await?))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

async fn ask(address: SocketAddr, user: &str, password: &str, ranges: &[(u64, u64)]) -> Option<Reading> {
    let client = Client::open(address, user, password).await?;
    let there =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'ledger' AND table_name = 'writes'";
    let (mut client, rows) = client.ask(there, WITHIN).await?;
    let mut reading = Reading::default();
    if rows.first().and_then(|row| row.get::<u64, _>(0)) != Some(1) {
        return Some(reading);
    }
    for (first, last) in ranges {
        let mut from = *first;
        // Ends: each page begins behind the one before it.
        while from <= *last {
            let question =
                format!("SELECT id FROM {TABLE} WHERE id BETWEEN {from} AND {last} ORDER BY id LIMIT {PAGE}");
            let (open, rows) = client.ask(&question, WITHIN).await?;
            client = open;
            let ids: Option<Vec<u64>> = rows.iter().map(|row| row.get(0)).collect();
            let ids = ids?;
            let full = ids.len() == PAGE;
            from = ids.last().map_or(u64::MAX, |id| id.saturating_add(1));
            reading.found.extend(ids);
            if !full {
                break;
            }
        }
    }
    Some(reading)
}
