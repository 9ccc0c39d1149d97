//! The teller from the outside: a leader is shown to it, and it says and counts what appears and what goes.

use crate::ears::Ears as _;
use crate::tell::{Teller, election};
use crate::world::{Event, EventKind, GroupId, MissingSecret};
use bloodraven_brain::authority::Policy;
use bloodraven_brain::candidate::Data;
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::group::input::{Facts, Input, Loaded, ReplicaFacts, Saw, SemiSync};
use bloodraven_brain::group::spec::{Durability, PlannedSpec, SiteSpec, Spec, UpdateStrategy};
use bloodraven_brain::group::{Group, Kept, Notice};
use bloodraven_brain::lease;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Cause, Holder, Phase, Proof, ProofKind, Record, Settings, VoterSet};
use bloodraven_brain::site::{Pair, Role, Thresholds};
use bloodraven_brain::time::{Boot, Millis, Now, Wall};
use bloodraven_gtid::GtidSet;
use bloodraven_telemetry::OperatorMetrics;
use bloodraven_telemetry::log::LogEvent;

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

fn at(seconds: u64) -> Now {
    Now {
        boot: Boot(100_000 + seconds * 1000),
        wall: Wall(1_776_695_520_000 + i64::try_from(seconds).expect("small") * 1000),
    }
}

fn id() -> GroupId {
    GroupId::new("shop", "orders")
}

fn member(name: &str) -> Member {
    Member::new(&Site::new(name), &Instance::new(name, "s"))
}

fn settings() -> Settings {
    Settings { lease_timeout: Millis(20_000), min_peers: 1 }
}

fn spec() -> Spec {
    let site = |name: &str| SiteSpec { site: Site::new(name), role: Role::PrimaryCandidate };
    Spec {
        name: "orders".to_owned(),
        sites: vec![site("iad"), site("pdx")],
        poll_interval: Millis(2000),
        thresholds: Thresholds { failure: 3, recovery: 2 },
        cooldown: Millis(300_000),
        proof: Policy::Required,
        lease: settings(),
        peer_check: Millis(5000),
        priorities: Vec::new(),
        max_lag: Millis(300_000),
        durability: Durability::Async,
        planned: PlannedSpec { max_lag_wait: Millis(300_000), drain_timeout: Millis(30_000), defer: false },
        cache: None,
        update: UpdateStrategy::Ordered,
        clone_timeout: Millis(3_600_000),
        replication_account: true,
        paused: None,
    }
}

fn record() -> Record {
    let voters = vec![member("iad"), member("pdx")];
    let set = VoterSet { epoch: 4, voters: voters.clone(), settings: settings() };
    Record {
        epoch: 4,
        tenure: 4,
        seat: Some(member("iad")),
        phase: Phase::Stable,
        voters,
        settings: settings(),
        since: Wall(0),
        cause: Cause::Emergency,
        proof: None,
        revoked_at: None,
        holder: Some(Holder { member: member("iad"), server_uuid: None, sets: vec![set], sql_fence_sent: false }),
        ended: Vec::new(),
    }
}

/// A leader that knows its record and has polled both sites often enough.
fn leader() -> Group {
    let mut group = Group::new(spec(), at(0).boot);
    group.step(at(0), Input::Spec(Box::new(spec())));
    group.step(at(0), Input::Leads(Some(Boot(u64::MAX))));
    let kept = Kept { record: Some(record()), ..Kept::default() };
    group.step(at(0), Input::Loaded(Loaded::Kept(Box::new(kept))));
    for second in 0..2 {
        poll(&mut group, at(second), "iad", Some(Pair::OPEN));
        poll(&mut group, at(second), "pdx", Some(Pair::CLOSED));
    }
    group
}

fn poll(group: &mut Group, now: Now, site: &str, pair: Option<Pair>) -> Vec<Notice> {
    let facts = pair.map(|pair| Facts {
        pair,
        server_uuid: UUID.parse().expect("a UUID"),
        data: Some(Data { executed: format!("{UUID}:1-5").parse().expect("a set"), ..Data::default() }),
        replica: pair.is_fenced().then(|| ReplicaFacts {
            source: Some(Site::new("iad")),
            receiver: Receiver::Running,
            receiver_error: None,
            applier: Applier::Running,
            delayed: false,
            behind: Some(Millis(0)),
        }),
        user_data: true,
        semi_sync: SemiSync::default(),
    });
    let saw = facts.map_or(Saw::Nothing, |facts| Saw::Facts(Box::new(facts)));
    group.step(now, Input::Polled { site: Site::new(site), began_under: 4, saw }).notices
}

fn teller() -> Teller {
    Teller::new(OperatorMetrics::new("test"))
}

fn reasons(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.reason.as_str()).collect()
}

#[test]
fn what_appears_is_said_once_and_its_end_too() {
    let (teller, mut group) = (teller(), leader());
    assert_eq!(reasons(&teller.glance(&id(), at(2), &group)), Vec::<&str>::new());
    let text = teller.metrics();
    for line in [
        "bloodraven_authority_epoch{namespace=\"shop\",group=\"orders\"} 4",
        "bloodraven_authority_phase{namespace=\"shop\",group=\"orders\",phase=\"Stable\"} 1",
        "site=\"iad\",role=\"primary-candidate\",state=\"writable\"} 1",
        "bloodraven_degraded{namespace=\"shop\",group=\"orders\",reason=\"Alert\"} 0",
        "bloodraven_replication_running{namespace=\"shop\",group=\"orders\",site=\"pdx\",thread=\"sql\"} 1",
        "bloodraven_unavailable_seconds_total{namespace=\"shop\",group=\"orders\"} 0",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let mut notices = Vec::new();
    for second in 3..6 {
        notices.extend(poll(&mut group, at(second), "pdx", None));
    }
    teller.notices(&id(), at(6), &group, &notices);
    let events = teller.glance(&id(), at(6), &group);
    assert_eq!(reasons(&events), ["Alert"]);
    assert_eq!(events[0].kind, EventKind::Warning);
    assert!(events[0].message.starts_with("pdx unreachable while iad is primary"), "{}", events[0].message);
    assert!(teller.metrics().contains("reason=\"Alert\"} 1"));
    assert!(teller.metrics().contains("from=\"read-only\",to=\"unreachable\"} 1"), "{}", teller.metrics());
    assert_eq!(reasons(&teller.glance(&id(), at(7), &group)), Vec::<&str>::new(), "said already");
    for second in 8..10 {
        poll(&mut group, at(second), "pdx", Some(Pair::CLOSED));
    }
    let events = teller.glance(&id(), at(10), &group);
    assert_eq!(reasons(&events), ["SiteRecovered"]);
    assert_eq!(events[0].message, "nothing is wrong any more; it was: Alert");
    assert!(teller.metrics().contains("reason=\"Alert\"} 0"));
}

#[test]
fn time_without_a_writer_is_counted() {
    let (teller, mut group) = (teller(), leader());
    teller.glance(&id(), at(2), &group);
    for second in 3..6 {
        poll(&mut group, at(second), "iad", None);
    }
    teller.glance(&id(), at(6), &group);
    teller.glance(&id(), at(8), &group);
    let text = teller.metrics();
    assert!(text.contains("bloodraven_unavailable_seconds_total{namespace=\"shop\",group=\"orders\"} 2.0"), "{text}");
}

#[test]
fn the_steps_of_a_failover_are_timed() {
    let (teller, group) = (teller(), leader());
    teller.glance(&id(), at(2), &group);
    let changed = |phase, seat: Option<&str>| Notice::AuthorityChanged {
        epoch: 5,
        phase,
        cause: Cause::Emergency,
        seat: seat.map(member),
        proof: None,
    };
    let proof = Proof { kind: ProofKind::ProcessEnded, about: member("iad"), at: Wall(0) };
    teller.notices(&id(), at(7), &group, &[changed(Phase::Revoking, None)]);
    teller.notices(&id(), at(9), &group, &[Notice::ReleaseProven(proof.clone())]);
    teller.notices(&id(), at(9), &group, &[changed(Phase::Granting, Some("pdx"))]);
    let done = Notice::FailoverExecuted {
        site: Site::new("pdx"),
        epoch: 6,
        cause: Cause::Emergency,
        proof: Some(proof),
        gtid: GtidSet::new(),
    };
    let events = teller.notices(&id(), at(10), &group, &[done]);
    assert_eq!(reasons(&events), ["FailoverExecuted"]);
    let text = teller.metrics();
    // The last answer of iad was at 1 s, the move began at 7 s.
    for (step, seconds) in [("detect", "6.0"), ("proof", "2.0"), ("drain", "0.0"), ("open", "1.0"), ("total", "9.0")] {
        let line = format!("target_site=\"pdx\",step=\"{step}\"}} {seconds}\n");
        assert!(
            text.contains(&format!(
                "bloodraven_failover_duration_seconds_sum{{namespace=\"shop\",group=\"orders\",{line}"
            )),
            "{line} in\n{text}"
        );
    }
    assert!(text.contains("bloodraven_failovers_total{namespace=\"shop\",group=\"orders\",target_site=\"pdx\"} 1"));
}

#[test]
fn a_site_that_could_not_be_opened_is_a_failed_attempt() {
    let (teller, group) = (teller(), leader());
    let changed = |phase, seat: Option<&str>| Notice::AuthorityChanged {
        epoch: 5,
        phase,
        cause: Cause::Emergency,
        seat: seat.map(member),
        proof: None,
    };
    for notice in
        [changed(Phase::Revoking, None), changed(Phase::Granting, Some("pdx")), changed(Phase::Revoking, None)]
    {
        teller.notices(&id(), at(7), &group, &[notice]);
    }
    assert!(teller.metrics().contains("target_site=\"pdx\",result=\"failed\"} 1"), "{}", teller.metrics());
}

#[test]
fn whom_nobody_trusts_is_named_before_a_reason_of_any_length() {
    let events = teller().untrusted(&id(), at(0), &Site::new("pdx"), &"a name that it covers, ".repeat(100));
    let [event] = &events[..] else { panic!("one Event: {events:?}") };
    assert_eq!(event.reason, "CredentialReconcileFailed");
    // An Event is cut after 1024 signs.
    let kept: String = event.message.chars().take(200).collect();
    for words in ["the certificate of pdx", "spec.tls"] {
        assert!(kept.contains(words), "{words} in {kept}");
    }
}

#[test]
fn a_fence_that_is_repeated_is_told_once() {
    let (teller, group) = (teller(), leader());
    let fencing = Notice::FencingWriter { site: Site::new("pdx"), because: "NotTheHolder".to_owned() };
    for second in 0..5 {
        assert!(teller.notices(&id(), at(second), &group, std::slice::from_ref(&fencing)).is_empty());
    }
}

#[test]
fn a_held_promotion_is_said_every_five_minutes() {
    use crate::tell::glance::Memory;
    use crate::tell::repeat::Repeats;
    use crate::tell::{Told, fresh};
    use bloodraven_api::conditions::DegradedReason;
    let (mut memory, mut repeats) = (Memory::default(), Repeats::default());
    let found = [
        (DegradedReason::PromotionHeld, "no proof; silent: iad".to_owned()),
        (DegradedReason::ReplicationLagging, "pdx is 301 s behind".to_owned()),
    ];
    let mut said = Vec::new();
    for second in 0..=600 {
        let told = memory.changes(&found, Told::new());
        let events = told.events.into_iter().filter_map(|saying| fresh(saying, at(second), &mut repeats));
        said.extend(events.map(|event| (second, event.reason)));
    }
    let expected = [(0, "PromotionHeld"), (0, "ReplicationLagging"), (300, "PromotionHeld"), (600, "PromotionHeld")];
    assert_eq!(said, expected.map(|(second, reason)| (second, reason.to_owned())));
}

#[test]
fn missing_secrets_are_told_with_the_way_on() {
    let teller = teller();
    let missing = MissingSecret::NotFound { name: "orders-db".to_owned() };
    let events = teller.secrets_missing(&id(), at(0), Some(&missing));
    assert_eq!(reasons(&events), ["SecretNotFound"]);
    assert!(events[0].message.starts_with("secret orders-db is missing; create it"), "{}", events[0].message);
    assert!(teller.secrets_missing(&id(), at(30), Some(&missing)).is_empty(), "said a moment ago");
    assert!(teller.secrets_missing(&id(), at(60), None).is_empty());
    let ours = MissingSecret::ToBeMade { name: "mysql-orders-authority".to_owned() };
    assert!(teller.secrets_missing(&id(), at(90), Some(&ours)).is_empty(), "nobody has to do anything");
}

#[test]
fn a_refused_spec_is_degraded() {
    let (teller, group) = (teller(), leader());
    teller.spec_refused(&id(), at(2), Some("sites: at least 2 are needed"));
    assert_eq!(reasons(&teller.glance(&id(), at(2), &group)), ["InvalidSpec"]);
    assert!(teller.known_by_hands(&id()).invalid_spec.is_some());
    teller.spec_refused(&id(), at(3), None);
    assert_eq!(reasons(&teller.glance(&id(), at(3), &group)), ["SiteRecovered"]);
}

#[test]
fn a_group_that_is_gone_leaves_nothing() {
    let (teller, group) = (teller(), leader());
    teller.glance(&id(), at(2), &group);
    assert!(teller.metrics().contains("orders"));
    teller.forget(&id());
    assert!(!teller.metrics().contains("orders"));
}

#[test]
fn the_election_in_words() {
    let rows = [
        (lease::Notice::Elected(Boot(1)), Some(LogEvent::LeaderElected), Some(true)),
        (lease::Notice::Lost(lease::LostBy::Deadline), Some(LogEvent::LeaderLost), Some(false)),
        (lease::Notice::Lost(lease::LostBy::Taken("b".into())), Some(LogEvent::LeaderLost), Some(false)),
        (lease::Notice::Lost(lease::LostBy::Cleared), Some(LogEvent::LeaderLost), Some(false)),
        (lease::Notice::Lost(lease::LostBy::Deleted), Some(LogEvent::LeaderLost), Some(false)),
        (lease::Notice::Lost(lease::LostBy::Shutdown), Some(LogEvent::LeaderLost), Some(false)),
        (lease::Notice::Follows("b".into()), None, Some(false)),
        (lease::Notice::Released, None, Some(false)),
        (lease::Notice::Stopped, None, Some(false)),
    ];
    for (notice, event, leads) in rows {
        let (line, leading) = election::told(&notice);
        assert_eq!((line.event, leading), (event, leads), "{notice:?}");
    }
    let teller = teller();
    teller.election(at(0), &lease::Notice::Elected(Boot(1)));
    assert!(teller.metrics().contains("bloodraven_leader 1"));
}
