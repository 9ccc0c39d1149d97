//! Eyes: what each site's server says of itself, asked on the site's own node, whatever is cut off.
//!
//! In: a door a site. Out: the spans of time in which each server was open. Must not: wait for an answer for ever, or call a
//! server open on a guess.
//!
//! What a reading proves: one that was sent at `s`, answered at `a` and says "open" proves that the server was open at some
//! moment from `s` to `a`, and nothing about any other. So a span begins with the answer of its first reading and ends with
//! the sending of its last: both ends lie inside the time in which the server was open. Between two readings it is taken to
//! have stayed open only when both came over one connection, one right after the other; a connection that was lost, or an
//! answer that did not come, ends the span. What is left as an assumption: a server does not close and open again between two
//! readings of one connection, a tenth of a second apart. Were it so, authority would have come and gone twice meanwhile, and
//! the record would show it. A span is never too long, so two that overlap are two writers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bloodraven_testbed::cluster::SITES;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::entrance::Entrance;
use super::stage::Stage;
use super::timeline::Timeline;

/// How often each is asked.
const EVERY: Duration = Duration::from_millis(100);

/// An answer that takes longer says nothing about now.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a lease's proof allows for beyond the lease: a timer of 0.25 s, 2.5 s for the ladder or the keeper, 0.25 s until they
/// are scheduled.
const WAKES_WITHIN: Duration = Duration::from_secs(3);

const QUESTION: &str = "SELECT @@global.read_only, @@global.super_read_only";

/// A time in which a server was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

impl Span {
    /// What two have in common.
    pub(crate) fn meet(self, other: Self) -> Option<Self> {
        let both = Self { from: self.from.max(other.from), until: self.until.min(other.until) };
        (both.from < both.until).then_some(both)
    }
}

/// The spans of every site, how often each answered, and the times in which a site may be open beside another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    pub(crate) spans: BTreeMap<&'static str, Vec<Span>>,
    pub(crate) answers: BTreeMap<&'static str, usize>,
    pub(crate) waking: Vec<(String, Span)>,
}

/// Two sites were open at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) sites: [&'static str; 2],
    pub(crate) both: Span,
}

impl Sight {
    /// Every time at which two sites were open: those that must not be, and those of a site that was waking.
    pub(crate) fn overlaps(&self) -> (Vec<Overlap>, Vec<Overlap>) {
        let wakes = |overlap: &Overlap| {
            let within = |span: &Span| span.from <= overlap.both.from && overlap.both.until <= span.until;
            self.waking.iter().any(|(site, span)| overlap.sites.contains(&site.as_str()) && within(span))
        };
        overlaps(&self.spans).into_iter().partition(|overlap| !wakes(overlap))
    }
}

pub(crate) struct Eyes {
    sight: Arc<Mutex<Sight>>,
    stop: Arc<AtomicBool>,
    lookers: Vec<JoinHandle<()>>,
    timeline: Timeline,
}

impl Eyes {
    pub(crate) fn open(stage: &Stage) -> Self {
        let mut eyes =
            Self { sight: Arc::default(), stop: Arc::default(), lookers: Vec::new(), timeline: stage.timeline.clone() };
        for site in SITES {
            let looker = Looker {
                site,
                at: stage.door_at(site),
                timeline: stage.timeline.clone(),
                sight: Arc::clone(&eyes.sight),
                stop: Arc::clone(&eyes.stop),
            };
            eyes.lookers.push(std::thread::spawn(move || looker.run()));
        }
        eyes
    }

    /// How often that site has answered so far.
    pub(crate) fn answers(&self, site: &str) -> usize {
        self.sight.lock().unwrap_or_else(PoisonError::into_inner).answers.get(site).copied().unwrap_or_default()
    }

    /// When that site was last seen open.
    pub(crate) fn last_open(&self, site: &str) -> Option<Duration> {
        let sight = self.sight.lock().unwrap_or_else(PoisonError::into_inner);
        sight.spans.get(site)?.last().map(|span| span.until)
    }

    pub(crate) fn was_open_since(&self, site: &str, begin: Duration) -> bool {
        self.last_open(site).is_some_and(|last| last >= begin)
    }

    /// A node that stood still goes on now: its server is as it was until one of its watchers has run, which is the one
    /// case in which two servers may be open. What it takes then must still not be acknowledged; the ledger sees to that.
    pub(crate) fn wakes(&self, site: &str) {
        let from = self.timeline.now();
        let waking = (site.to_owned(), Span { from, until: from + WAKES_WITHIN });
        self.sight.lock().unwrap_or_else(PoisonError::into_inner).waking.push(waking);
    }

    pub(crate) fn close(mut self) -> Sight {
        self.stop.store(true, Ordering::Relaxed);
        for looker in self.lookers.drain(..) {
            looker.join().unwrap();
        }
        self.sight.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Eyes {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let sight = self.sight.lock().unwrap_or_else(PoisonError::into_inner);
        for (site, spans) in &sight.spans {
            for Span { from, until } in spans {
                self.timeline.note_at(*from, format!("eyes: {site} is open, until {:.3}", until.as_secs_f64()));
            }
        }
    }
}

/// A reading that said "open".
#[derive(Clone, Copy)]
struct Open {
    sent: Duration,
    answered: Duration,
}

struct Looker {
    site: &'static str,
    at: Entrance,
    timeline: Timeline,
    sight: Arc<Mutex<Sight>>,
    stop: Arc<AtomicBool>,
}

impl Looker {
    fn run(self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut turn = interval(EVERY);
            turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let (mut conn, mut before) = (None, None);
            while !self.stop.load(Ordering::Relaxed) {
                turn.tick().await;
                (conn, before) = self.look(conn, before).await;
            }
        });
    }

    /// One reading: the connection if it can be used again, and the reading if it said "open".
    async fn look(&self, conn: Option<Conn>, before: Option<Open>) -> (Option<Conn>, Option<Open>) {
        let (mut conn, before) = match conn {
            Some(conn) => (conn, before),
            // Another connection may lead to another server: nothing is known of the time between.
            None => match self.at.connect().await {
                Some(conn) => (conn, None),
                None => return (None, None),
            },
        };
        let sent = self.timeline.now();
        let Ok(Ok(Some(said))) = timeout(PATIENCE, conn.query_first::<(u8, u8), _>(QUESTION)).await else {
            return (None, None);
        };
        let reading = (said == (0, 0)).then(|| Open { sent, answered: self.timeline.now() });
        let mut sight = self.sight.lock().unwrap_or_else(PoisonError::into_inner);
        *sight.answers.entry(self.site).or_default() += 1;
        if let (Some(before), Some(now)) = (before, reading) {
            lengthen(sight.spans.entry(self.site).or_default(), before, now);
        }
        (Some(conn), reading)
    }
}

/// Two readings, one right after the other over one connection, both said "open".
fn lengthen(spans: &mut Vec<Span>, before: Open, now: Open) {
    match spans.last_mut() {
        Some(last) if last.until == before.sent => last.until = now.sent,
        _ => spans.push(Span { from: before.answered, until: now.sent }),
    }
}

fn overlaps(spans: &BTreeMap<&'static str, Vec<Span>>) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (one, ones) in spans {
        for (other, others) in spans.iter().filter(|(other, _)| *other > one) {
            let pairs = ones.iter().flat_map(|span| others.iter().map(|other| span.meet(*other)));
            found.extend(pairs.flatten().map(|both| Overlap { sites: [one, other], both }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    fn span(from: u64, until: u64) -> Span {
        Span { from: ms(from), until: ms(until) }
    }

    #[test]
    fn a_span_lies_inside_what_its_readings_prove() {
        let open = |sent: u64, answered: u64| Open { sent: ms(sent), answered: ms(answered) };
        let mut spans = Vec::new();
        lengthen(&mut spans, open(10, 12), open(110, 115));
        assert_eq!(spans, [span(12, 110)]);
        lengthen(&mut spans, open(110, 115), open(215, 216));
        assert_eq!(spans, [span(12, 215)]);
        // The reading between did not come, or said "closed".
        lengthen(&mut spans, open(415, 416), open(515, 516));
        assert_eq!(spans, [span(12, 215), span(416, 515)]);
    }

    #[test]
    fn two_open_at_once_are_found_and_one_after_the_other_are_not() {
        let check = |one: &[Span], other: &[Span], expect: &[Span]| {
            let spans = BTreeMap::from([("iad", one.to_vec()), ("pdx", other.to_vec()), ("fra", Vec::new())]);
            let expect: Vec<_> = expect.iter().map(|both| Overlap { sites: ["iad", "pdx"], both: *both }).collect();
            assert_eq!(overlaps(&spans), expect, "{spans:?}");
        };
        check(&[span(0, 100)], &[span(150, 300)], &[]);
        check(&[span(0, 100), span(400, 500)], &[span(150, 300)], &[]);
        check(&[span(0, 100)], &[span(100, 300)], &[]);
        check(&[span(0, 200)], &[span(150, 300)], &[span(150, 200)]);
        check(&[span(0, 1000)], &[span(150, 300), span(400, 410)], &[span(150, 300), span(400, 410)]);
    }

    #[test]
    fn only_the_site_that_wakes_may_be_open_beside_another_and_only_then() {
        let check = |waking: &str, window: Span, forgiven: bool| {
            let spans = BTreeMap::from([("iad", vec![span(0, 200)]), ("pdx", vec![span(150, 300)])]);
            let sight = Sight { spans, waking: vec![(waking.to_owned(), window)], ..Sight::default() };
            let (wrong, waking) = sight.overlaps();
            assert_eq!((wrong.len(), waking.len()), if forgiven { (0, 1) } else { (1, 0) }, "{sight:?}");
        };
        check("iad", span(140, 3140), true);
        check("fra", span(140, 3140), false);
        check("iad", span(160, 3160), false);
        check("iad", span(0, 190), false);
    }
}
