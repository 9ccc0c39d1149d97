//! The reader: asks the replicas' front door for the newest write, ten times a second.
//!
//! In: the plan. Out: counters. Must not: judge; a replica that is behind is allowed to be.

use super::client::{Client, STATEMENT};
use super::{Plan, Shared};
use crate::ledger::lookup::TABLE;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

const EVERY: Duration = Duration::from_millis(100);

/// Ends when the switch is gone.
pub(super) async fn run(plan: Plan, shared: Arc<Shared>) {
    let mut on = shared.on.clone();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut client: Option<Client> = None;
    while on.wait_for(|on| *on).await.is_ok() {
        ticks.tick().await;
        if client.is_none() {
            client = Client::open(plan.replicas, &plan.user, &plan.password).await;
        }
        let Some(open) = client.take() else {
            shared.count(|tally| tally.reads.unconnected += 1);
            continue;
        };
        match open.ask(&format!("SELECT MAX(id) FROM {TABLE}"), STATEMENT).await {
            Some((open, _)) => {
                shared.count(|tally| tally.reads.done += 1);
                client = Some(open);
            }
            None => shared.count(|tally| tally.reads.refused += 1),
        }
    }
}
