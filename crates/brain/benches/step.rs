//! How long one step of a five-site group takes, by kind of input. Figures are for `cargo xtask bench brain`.

use bloodraven_brain::authority::Policy;
use bloodraven_brain::candidate::Data;
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::group::input::{Facts, Input, Loaded, ReplicaFacts, Saw, SemiSync, Word};
use bloodraven_brain::group::spec::{Durability, PlannedSpec, SiteSpec, Spec, UpdateStrategy};
use bloodraven_brain::group::{Group, Kept};
use bloodraven_brain::message::{Ack, StartId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Cause, Holder, Phase, Record, Settings, VoterSet};
use bloodraven_brain::site::{Pair, Role, Thresholds};
use bloodraven_brain::time::{Boot, Millis, Now, Wall};
use bloodraven_gtid::{GtidSet, Uuid};
use divan::{Bencher, black_box};
use std::collections::BTreeMap;

const SITES: [&str; 5] = ["iad", "pdx", "fra", "syd", "gru"];
const NOW: Now = Now { boot: Boot(10_000_000), wall: Wall(1_800_000_000_000) };
const LEASE: Settings = Settings { lease_timeout: Millis::from_secs(20), min_peers: 1 };

fn main() {
    divan::main();
}

fn spec() -> Spec {
    let site = |name: &&str| SiteSpec { site: Site::new(name), role: Role::PrimaryCandidate };
    Spec {
        name: "orders".to_owned(),
        sites: SITES.iter().map(site).collect(),
        poll_interval: Millis(2000),
        thresholds: Thresholds { failure: 3, recovery: 2 },
        cooldown: Millis::from_secs(300),
        proof: Policy::Required,
        lease: LEASE,
        peer_check: Millis(5000),
        priorities: Vec::new(),
        max_lag: Millis::from_secs(300),
        durability: Durability::Async,
        planned: PlannedSpec {
            max_lag_wait: Millis::from_secs(300),
            drain_timeout: Millis::from_secs(30),
            defer: false,
        },
        cache: None,
        update: UpdateStrategy::Ordered,
        clone_timeout: Millis::from_secs(3600),
        replication_account: true,
        paused: None,
    }
}

fn member(number: usize) -> Member {
    Member::new(&Site::new(SITES[number]), &Instance::new(&format!("pod-{}", SITES[number]), "s1"))
}

fn executed() -> GtidSet {
    (1..=5u8)
        .map(|number| format!("{}:1-1000000", Uuid::from_bytes([number; 16])))
        .collect::<Vec<_>>()
        .join(",")
        .parse()
        .unwrap_or_default()
}

fn facts(number: usize) -> Facts {
    let replica = ReplicaFacts {
        source: Some(Site::new(SITES[0])),
        receiver: Receiver::Running,
        receiver_error: None,
        applier: Applier::Running,
        delayed: false,
        behind: Some(Millis(0)),
    };
    Facts {
        pair: if number == 0 { Pair::OPEN } else { Pair::CLOSED },
        server_uuid: Uuid::from_bytes([u8::try_from(number).unwrap_or(0) + 1; 16]),
        data: Some(Data { executed: executed(), ..Data::default() }),
        replica: (number > 0).then_some(replica),
        user_data: true,
        semi_sync: SemiSync::default(),
    }
}

fn polled(number: usize) -> Input {
    Input::Polled { site: Site::new(SITES[number]), began_under: 2, saw: Saw::Facts(Box::new(facts(number))) }
}

fn heard(number: usize) -> Input {
    let ack = Ack {
        from: member(number),
        epoch: Some(2),
        fenced: number > 0,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: Some(StartId(1)),
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis::from_secs(5000),
    };
    Input::Heard(Box::new(Word { ack, lay: Millis(0), via: None, question: None }))
}

/// A group at rest: the first site writes, four follow.
fn at_rest() -> Group {
    let voters: Vec<Member> = (0..SITES.len()).map(member).collect();
    let set = VoterSet { epoch: 2, voters: voters.clone(), settings: LEASE };
    let record = Record {
        epoch: 2,
        tenure: 2,
        seat: Some(member(0)),
        phase: Phase::Stable,
        voters,
        settings: LEASE,
        since: NOW.wall,
        cause: Cause::Bootstrap,
        proof: None,
        revoked_at: None,
        holder: Some(Holder { member: member(0), server_uuid: None, sets: vec![set], sql_fence_sent: false }),
        ended: Vec::new(),
    };
    let kept = Kept { record: Some(record), promotion: Some(GtidSet::new()), ..Kept::default() };
    let mut group = Group::new(spec(), NOW.boot);
    group.step(NOW, Input::Leads(Some(NOW.boot + Millis::from_secs(3600))));
    group.step(NOW, Input::Loaded(Loaded::Kept(Box::new(kept))));
    for number in (0..SITES.len()).cycle().take(15) {
        group.step(NOW, polled(number));
        group.step(NOW, heard(number));
    }
    group
}

fn bench(bencher: Bencher<'_, '_>, input: &Input) {
    let mut group = at_rest();
    bencher.with_inputs(|| input.clone()).bench_local_values(|input| black_box(group.step(NOW, input)));
}

#[divan::bench]
fn poll_of_the_primary(bencher: Bencher<'_, '_>) {
    bench(bencher, &polled(0));
}

#[divan::bench]
fn poll_of_a_replica(bencher: Bencher<'_, '_>) {
    bench(bencher, &polled(3));
}

#[divan::bench]
fn acknowledgement(bencher: Bencher<'_, '_>) {
    bench(bencher, &heard(2));
}

#[divan::bench]
fn tick(bencher: Bencher<'_, '_>) {
    bench(bencher, &Input::Tick);
}
