//! Everything that a sidecar can tell is told by something that happens to one: the simulator's corpus is played, and every
//! step of every sidecar in it is told as the real process tells it.

use super::Teller;
use crate::event::Look;
use crate::notice::{Glimpse, Notice, between};
use bloodraven_brain::fence::{Mysqld, Permit, Sidecar};
use bloodraven_brain::message::{FencedBy, StartId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_keeper::protocol::DEAD_MAN;
use bloodraven_sim::simulate::{Audience, play_before, text};
use bloodraven_telemetry::log::LogEvent;
use bloodraven_telemetry::metrics::{Scope, catalogue, is_to_come};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

fn me() -> Member {
    Member::new(&Site::new("iad"), &Instance::new("pod", "store"))
}

/// Tells what each sidecar's steps come to. All count together.
struct Listener {
    teller: Teller,
    known: BTreeMap<(usize, u32), Glimpse>,
}

impl Audience for Listener {
    fn sidecar(&mut self, pod: usize, life: u32, now: Boot, brain: &Sidecar) {
        let after = Glimpse::of(brain, now);
        if let Some(before) = self.known.insert((pod, life), after.clone()) {
            for notice in between(&before, &after) {
                self.teller.notice(now, brain.disk.view.as_ref().map(|view| view.epoch), &notice);
            }
        }
    }
}

/// Hears the log events of its thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<BTreeSet<String>>>);

impl Visit for Lines {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.0.lock().expect("nobody panicked here").insert(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn play_the_corpus(teller: &Teller) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/corpus");
    for file in folder.read_dir().expect("the corpus is there") {
        let scenario = std::fs::read_to_string(file.expect("a file").path()).expect("it is text");
        let scenario = text::parse(&scenario).expect("a scenario");
        play_before(&scenario, Box::new(Listener { teller: teller.clone(), known: BTreeMap::new() }));
    }
}

/// What is beside the brain: ticks, requests, and how things stand when somebody asks.
fn beside(teller: &Teller) -> String {
    let look = Look {
        me: me(),
        view: None,
        fenced: true,
        fenced_by: None,
        mysqld: Mysqld::Down,
        opened: None,
        lease_remaining: Millis(0),
        variables: None,
        contact: vec![("pdx".to_owned(), Millis(10))],
    };
    // Two that no sidecar of the corpus lives to see: an opening of before its own start, and a keeper's dead man.
    teller.notice(Boot(0), None, &Notice::Fencing(FencedBy::Boot));
    let permit = Permit { start: StartId(7), epoch: 1, deadline: Boot(0) };
    teller.notice(Boot(DEAD_MAN), None, &Notice::EndedWithPermit(permit));
    teller.ticked(Duration::from_millis(3));
    teller.answered("status", "GET", 200, Duration::from_millis(3));
    teller.metrics(Some(&look)).1
}

#[test]
fn everything_that_a_sidecar_can_tell_is_told_by_something_that_happens() {
    let (teller, lines) = (Teller::of("shop", "orders", &me()), Lines::default());
    tracing::subscriber::with_default(lines.clone(), || play_the_corpus(&teller));
    let said = lines.0.lock().expect("nobody panicked here").clone();
    for event in [LogEvent::SelfFencing, LogEvent::SelfFenced, LogEvent::Opened] {
        assert!(said.contains(event.as_str()), "{} in {said:?}", event.as_str());
    }
    let metrics = beside(&teller);
    // What was made with a zero has happened, too.
    let counted = |line: &&str| line.contains("_total{") && line.contains("bloodraven_sidecar_");
    let idle: Vec<&str> = metrics.lines().filter(counted).filter(|line| line.ends_with(" 0")).collect();
    assert_eq!(idle, Vec::<&str>::new(), "nothing produces it");
    let shown = |name: &str| metrics.lines().any(|line| !line.starts_with('#') && line.starts_with(name));
    for spec in catalogue().filter(|spec| spec.scope == Scope::Site) {
        assert_eq!(shown(spec.name), !is_to_come(spec.name), "{}", spec.name);
    }
}
