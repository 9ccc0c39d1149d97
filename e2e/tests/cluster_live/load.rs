//! Clients that write all the time: one through `-primary`, one straight to each site, from the site's own node.
//!
//! In: ways in. Out: a ledger of every write: by whom, where, when, and how it ended. Must not: wait for ever, or take a
//! write without an answer for refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bloodraven_testbed::cluster::SITES;
use bloodraven_testbed::wait;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::entrance::{Entrance, PATIENCE};
use super::stage::Stage;
use super::timeline::Timeline;

/// The one through the Service.
pub(crate) const FRONT: &str = "front";

/// How often each writes.
const EVERY: Duration = Duration::from_millis(50);

/// So many writes through the front door show that it is open again.
const ENOUGH: usize = 20;

/// Writes that are further apart are told as two spells.
const PAUSE: Duration = Duration::from_secs(1);

const BACK_WITHIN: Duration = Duration::from_mins(5);

/// A write that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) id: u64,
    /// `front`, or the site that was asked.
    pub(crate) by: &'static str,
    pub(crate) sent: Duration,
    pub(crate) answered: Duration,
}

/// Everything that was acknowledged, in the order of the answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) acknowledged: Vec<Acknowledged>,
}

pub(crate) struct Load {
    timeline: Timeline,
    ledger: Arc<Mutex<Ledger>>,
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(stage: &Stage) -> Self {
        let mut load = Self {
            timeline: stage.timeline.clone(),
            ledger: Arc::default(),
            stop: Arc::default(),
            clients: Vec::new(),
        };
        let front = stage.front_door();
        make_table(&front);
        let mut doors = vec![(FRONT, front)];
        doors.extend(SITES.map(|site| (site, stage.door_at(site))));
        for (number, (by, door)) in doors.into_iter().enumerate() {
            let client = Client {
                by,
                at: door,
                next: u64::try_from(number).unwrap(),
                timeline: stage.timeline.clone(),
                ledger: Arc::clone(&load.ledger),
                stop: Arc::clone(&load.stop),
            };
            load.clients.push(std::thread::spawn(move || client.run()));
        }
        load
    }

    fn count(&self) -> usize {
        self.ledger.lock().unwrap().acknowledged.iter().filter(|it| it.by == FRONT).count()
    }

    /// The front door is open, and was not before.
    pub(crate) fn wait_for_writes(&self, after: &str) {
        self.wait_for_more(ENOUGH, after);
    }

    /// So many more writes go through the front door.
    pub(crate) fn wait_for_more(&self, count: usize, after: &str) {
        let before = self.count();
        let open = wait::until(BACK_WITHIN, || (self.count() >= before + count).then_some(()));
        assert!(open.is_some(), "{after}: nobody can write through mysql-orders-primary");
    }

    /// The longest time between two answers through the front door since then, the one that still lasts included.
    pub(crate) fn longest_gap_since(&self, begin: Duration) -> Duration {
        let ledger = self.ledger.lock().unwrap();
        let times = ledger.acknowledged.iter().filter(|it| it.by == FRONT).map(|it| it.answered);
        let times: Vec<Duration> = times.chain([self.timeline.now()]).collect();
        let gaps = times.windows(2).filter(|pair| pair[1] >= begin).map(|pair| pair[1].saturating_sub(pair[0]));
        gaps.max().unwrap_or_default()
    }

    /// The newest write that was acknowledged through the front door.
    pub(crate) fn last_acknowledged(&self) -> u64 {
        let ledger = self.ledger.lock().unwrap();
        ledger.acknowledged.iter().rev().find(|it| it.by == FRONT).expect("a write").id
    }

    /// Ends all clients.
    pub(crate) fn stop(mut self) -> Ledger {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            client.join().unwrap();
        }
        self.ledger.lock().unwrap().clone()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        for (first, last, count) in spells(&ledger.acknowledged) {
            let until = last.answered.as_secs_f64();
            self.timeline
                .note_at(first.answered, format!("ledger: {} takes {count} writes until {until:.3}", first.by));
        }
    }
}

/// Each client's writes without a pause: the first, the last, how many.
fn spells(acknowledged: &[Acknowledged]) -> Vec<(&Acknowledged, &Acknowledged, usize)> {
    let mut spells: Vec<(&Acknowledged, &Acknowledged, usize)> = Vec::new();
    for write in acknowledged {
        let of_client = spells.iter_mut().rev().find(|(first, ..)| first.by == write.by);
        match of_client {
            Some((_, last, count)) if write.answered.saturating_sub(last.answered) < PAUSE => {
                (*last, *count) = (write, *count + 1);
            }
            _ => spells.push((write, write, 1)),
        }
    }
    spells
}

struct Client {
    by: &'static str,
    at: Entrance,
    next: u64,
    timeline: Timeline,
    ledger: Arc<Mutex<Ledger>>,
    stop: Arc<AtomicBool>,
}

impl Client {
    fn run(mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut turn = interval(EVERY);
            turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut conn = None;
            while !self.stop.load(Ordering::Relaxed) {
                turn.tick().await;
                conn = self.write(conn).await;
            }
        });
    }

    /// One write; the connection if it can be used again.
    async fn write(&mut self, conn: Option<Conn>) -> Option<Conn> {
        let mut conn = match conn {
            Some(conn) => conn,
            None => self.at.connect().await?,
        };
        // Numbers of different clients never meet.
        self.next += 16;
        let (id, sent) = (self.next, self.timeline.now());
        let statement = format!("INSERT INTO ledger.writes (id, writer) VALUES ({id}, '{}')", self.by);
        let ended = timeout(PATIENCE, conn.query_drop(statement)).await;
        match ended {
            Ok(Ok(())) => {
                let (by, answered) = (self.by, self.timeline.now());
                self.ledger.lock().unwrap().acknowledged.push(Acknowledged { id, by, sent, answered });
                Some(conn)
            }
            // A closed server says so, and goes on talking.
            Ok(Err(mysql_async::Error::Server(_))) if self.by != FRONT => Some(conn),
            // Through the Service another connection may lead elsewhere.
            _ => None,
        }
    }
}

/// Through the front door, as an application would.
fn make_table(at: &Entrance) {
    const TABLE: &str = "CREATE TABLE IF NOT EXISTS ledger.writes (id BIGINT UNSIGNED PRIMARY KEY, writer VARCHAR(16))";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let made = wait::until_every(BACK_WITHIN, Duration::from_millis(500), || {
        runtime.block_on(async {
            let mut conn = at.connect().await?;
            conn.query_drop("CREATE SCHEMA IF NOT EXISTS ledger").await.ok()?;
            conn.query_drop(TABLE).await.ok()
        })
    });
    assert!(made.is_some(), "no table can be made through mysql-orders-primary");
}
