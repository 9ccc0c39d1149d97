//! One writer: a write each tick, on one connection that is made anew whenever it is in doubt.
//!
//! In: a place and an address. Out: entries in the book. Must not: have two writes under way, or write through the front
//! door on a server that nobody can name: such a write could not be judged.

use super::client::Client;
use super::{PREPARE, Plan, Shared, Totals, insert, lock, now};
use crate::ledger::{Outcome, SiteNumber, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// A site writer whose server is down tries again after so many ticks; the one at the door at every tick.
const REST: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Site(SiteNumber),
    Door,
}

pub(super) struct Writer {
    place: Place,
    address: SocketAddr,
    user: String,
    password: String,
    rate: u32,
    next: u64,
}

impl Writer {
    pub(super) fn new(place: Place, address: SocketAddr, plan: &Plan, run: u32) -> Self {
        let number = match place {
            Place::Site(SiteNumber(number)) => u64::from(number) + 1,
            Place::Door => 0,
        };
        // 23 bits of run, 8 of writer, 32 of count: positive also as a signed number.
        let next = (((u64::from(run) & 0x7f_ffff) << 8) | (number & 0xff)) << 32;
        let (user, password) = (plan.user.clone(), plan.password.clone());
        Self { place, address, user, password, rate: plan.rate.max(1), next }
    }
}

/// Ends when the switch is gone.
pub(super) async fn run(mut writer: Writer, shared: Arc<Shared>) {
    let mut on = shared.on.clone();
    let mut ticks = interval(Duration::from_secs(1) / writer.rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut client: Option<Client> = None;
    let mut rest = 0;
    loop {
        tokio::select! {
            gone = on.wait_for(|on| *on) => if gone.is_err() { return },
        }
        ticks.tick().await;
        if rest > 0 {
            rest -= 1;
            continue;
        }
        if client.is_none() {
            client = writer.connect(&shared).await;
        }
        let Some(open) = client.as_mut() else {
            writer.count(&shared, |totals| totals.unconnected += 1);
            rest = if writer.place == Place::Door { 0 } else { REST };
            continue;
        };
        if !writer.write(open, &shared).await {
            client = None;
        }
    }
}

impl Writer {
    async fn connect(&self, shared: &Shared) -> Option<Client> {
        let client = Client::open(self.address, &self.user, &self.password).await?;
        match self.place {
            Place::Site(site) => shared.met(client.uuid(), site),
            Place::Door => _ = shared.site_of(client.uuid())?,
        }
        Some(client)
    }

    /// One write; says whether the connection can be used again.
    async fn write(&mut self, client: &mut Client, shared: &Shared) -> bool {
        if lock(&shared.book).is_full() {
            return true;
        }
        self.next += 1;
        let (id, sent) = (self.next, now());
        let ending = client.write(&insert(id)).await;
        let (door, site) = (self.place == Place::Door, shared.site_of(client.uuid()));
        let write = Write { id, door, site, sent, ended: now(), outcome: ending.outcome };
        // A full book is noticed before the next write.
        let _ = lock(&shared.book).enter(write);
        self.count(shared, |totals| match ending.outcome {
            Outcome::Acknowledged => totals.done += 1,
            Outcome::Refused => totals.refused += 1,
            Outcome::Unknown => totals.unknown += 1,
        });
        if door && ending.no_table {
            for statement in PREPARE {
                client.write(statement).await;
            }
        }
        // Who is refused at the front door is at the wrong server, and comes in anew.
        ending.usable && (!door || ending.outcome != Outcome::Refused || ending.no_table)
    }

    fn count(&self, shared: &Shared, change: impl FnOnce(&mut Totals)) {
        shared.count(|tally| match self.place {
            Place::Door => change(&mut tally.door),
            Place::Site(SiteNumber(number)) => {
                if let Some(totals) = tally.sites.get_mut(usize::from(number)) {
                    change(totals);
                }
            }
        });
    }
}
