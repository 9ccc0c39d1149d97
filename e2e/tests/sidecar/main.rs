//! The sidecar beside a real keeper and a real server; operator and peers are played.
//!
//! In: what is granted, vouched for, revoked, killed, stopped and held up. Out: proof that the server is open exactly while
//! it may be. Must not: sleep; every wait is for something to see.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test, as the test itself does")]

mod support;

use std::time::Duration;

use bloodraven_brain::message::{FencedBy, OpeningWord};
use bloodraven_testbed::progress::say;
use mysql_async::prelude::Queryable as _;
use rustix::process::Signal;
use support::bed::{Bed, Plan};
use support::played::{self, Played};
use support::{LONG, until};
use tokio::time::Instant;

async fn make_table(bed: &Bed) {
    bed.run("app", "CREATE SCHEMA app").await.unwrap();
    bed.run("app", "CREATE TABLE app.t (id INT PRIMARY KEY, v INT)").await.unwrap();
    bed.run("app", "INSERT INTO app.t VALUES (1, 1), (2, 2)").await.unwrap();
}

/// F-09, F-12, F-30, P-11, F-20: a push is never a grant, a grant without "open" opens nothing, "open" does.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_opening_grant_opens() {
    let bed = Bed::new("opens", Plan::default()).await;
    let ack = bed.push(&bed.view(1), 1).await;
    assert_eq!((ack.ack.epoch, ack.ack.fenced), (Some(1), true), "stored and closed");
    assert!(ack.question.as_ref().is_some_and(|riding| riding.question.open), "it asks whether it may open");
    assert!(ack.details.version.is_some() && ack.details.variables.is_some(), "{:?}", ack.details);
    bed.ticks(3).await;
    bed.push(&bed.view(1), 2).await;
    bed.ticks(2).await;
    assert_eq!(bed.variables().await, Some((1, 1)), "a push is never a grant");

    bed.operator.says(|says| (says.view, says.agrees) = (Some(bed.view(1)), true));
    until(LONG, "there is a lease", async || bed.status().await?["leaseRemainingMs"].as_u64().filter(|left| *left > 0))
        .await;
    bed.ticks(3).await;
    assert_eq!(bed.variables().await, Some((1, 1)), "a lease alone opens nothing the first time");
    let refused = bed.run("app", "CREATE SCHEMA app").await.unwrap_err();
    assert!(refused.contains("read-only") || refused.contains("read_only"), "{refused}");

    bed.grant(1);
    bed.until_open().await;
    make_table(&bed).await;
    let status =
        until(LONG, "it says so", async || bed.status().await.filter(|status| status["openedEpoch"] == 1)).await;
    assert_eq!((status["role"].as_str(), status["self_fenced"].as_bool()), (Some("primary"), Some(false)));
    let permit = bed.keeper_status().await.unwrap().permit.unwrap();
    assert_eq!(permit.epoch, 1);
    let lifted = bed.run("app", "SET GLOBAL read_only = ON").await.unwrap_err();
    assert!(lifted.contains("denied"), "{lifted}");
}

/// F-10, C-61, F-25: a view that names nobody closes the server within a tick, and so does a peer's word.
#[tokio::test(flavor = "multi_thread")]
async fn a_mismatch_is_fenced_without_waiting_for_the_lease() {
    let bed = Bed::opened("mismatch", Plan { interval: Duration::from_secs(2), ..Plan::default() }).await;
    let began = Instant::now();
    let ack = bed.push(&bed.revoked(2), 1).await;
    let took = began.elapsed();
    assert_eq!((ack.ack.epoch, ack.ack.fenced, ack.ack.fenced_by), (Some(2), true, Some(FencedBy::Mismatch)));
    assert!(ack.ack.gtid.is_some(), "the set read after the fence goes with it");
    assert_eq!(bed.variables().await, Some((1, 1)));
    say(&format!("revoked, fenced and acknowledged in {took:?}"));
    until(LONG, "peers are told", async || bed.peers.iter().all(|peer| peer.pushed() > 0).then_some(())).await;

    bed.grant(3);
    bed.until_open().await;
    let revoked = bed.revoked(4);
    bed.operator.says(|says| says.silent = true);
    bed.peers[0].says(|says| says.view = Some(revoked));
    let began = Instant::now();
    bed.until_closed().await;
    let took = began.elapsed();
    say(&format!("a peer's word closed the server in {took:?}"));
}

/// F-12: a follower's word is no grant, but it names the leader, who is asked in the same tick.
#[tokio::test(flavor = "multi_thread")]
async fn the_leader_that_a_follower_names_is_asked() {
    let bed = Bed::new("follower", Plan::default()).await;
    let leader = Played::operator().await;
    let view = bed.view(1);
    bed.operator.says(|says| (says.view, says.leader) = (Some(view.clone()), Some(leader.address)));
    leader.says(|says| {
        (says.view, says.agrees, says.open) = (Some(view.clone()), true, Some(OpeningWord::default()));
    });
    bed.until_open().await;
    assert!(bed.operator.agreed().is_none() && leader.agreed().is_some());
}

/// F-40: two views of one epoch that differ close the server; the grant of a new one opens it, without a human.
#[tokio::test(flavor = "multi_thread")]
async fn a_contradiction_closes_the_server_until_a_new_epoch() {
    let bed = Bed::opened("conflict", Plan::default()).await;
    let mut other = bed.view(1);
    other.voters.pop();
    let (status, _) = played::push(bed.config.listen, &other, 1).await;
    assert_eq!(status, 409);
    bed.until_closed().await;
    until(LONG, "it says why", async || bed.status().await.filter(|status| status["fencedBy"] == "conflict")).await;
    assert!(bed.push(&bed.view(1), 2).await.ack.conflict, "and reports it");
    bed.ticks(3).await;
    assert_eq!(bed.variables().await, Some((1, 1)), "the operator grants the disputed epoch all the time");
    bed.grant(2);
    bed.until_open().await;
}

/// What is not on disk is not acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_a_full_disk_refuses_is_not_acknowledged() {
    let bed = Bed::new("full", Plan::default()).await;
    assert_eq!(bed.push(&bed.revoked(1), 1).await.ack.epoch, Some(1));
    let beside = bed.config.state_dir.join("sidecar.store.new");
    std::os::unix::fs::symlink("/dev/full", &beside).unwrap();
    let (status, _) = played::push(bed.config.listen, &bed.revoked(2), 2).await;
    assert_eq!(status, 507);
    assert_eq!(bed.status().await.unwrap()["epoch"], 1);
    std::fs::remove_file(&beside).unwrap();
    assert_eq!(bed.push(&bed.revoked(2), 3).await.ack.epoch, Some(2), "tried again with the next copy");
}

/// F-23, C-84, F-25: what somebody opens by hand without authority is closed within a tick, half-open too.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_opened_by_hand_is_closed_again() {
    let bed = Bed::new("by-hand", Plan::default()).await;
    bed.push(&bed.revoked(1), 1).await;
    for statement in ["SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF"] {
        until(LONG, "somebody opens it", async || bed.run("root", statement).await.ok()).await;
        bed.until_closed().await;
    }
}

/// F-02, F-12, F-09: the lease ends when the last answer is a lease old, and no later; it opens again under its own note.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_over_closes_the_server_and_not_before() {
    let bed = Bed::opened("lease", Plan { lease: Duration::from_secs(4), ..Plan::default() }).await;
    bed.ticks(3).await;
    assert_eq!(bed.variables().await, Some((0, 0)), "renewed by grants");
    bed.operator.says(|says| says.silent = true);
    let granted = bed.operator.agreed().unwrap();
    bed.until_closed().await;
    let after = granted.elapsed();
    say(&format!("closed {after:?} after the last grant left, with a lease of 4 s"));
    assert!(after + Duration::from_secs(1) > bed.plan.lease, "not before: {after:?}");
    until(LONG, "the permit is withdrawn", async || bed.keeper_status().await.filter(|it| it.permit.is_none())).await;

    bed.operator.says(|says| (says.silent, says.open) = (false, None));
    bed.until_open().await;
}

/// F-17, F-18: a server that stands still is killed by its keeper, while the sidecar goes on answering.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_mysqld_is_killed_when_the_lease_is_over() {
    let mut bed = Bed::opened("stopped", Plan { lease: Duration::from_secs(4), ..Plan::default() }).await;
    bed.ticks(1).await;
    bed.operator.says(|says| says.silent = true);
    let granted = bed.operator.agreed().unwrap();
    bed.signal_mysqld(Signal::STOP).await;
    let asked = bed.operator.asked();
    let ended = until(LONG, "the keeper's end", async || bed.keeper().status().map(|_| granted.elapsed())).await;
    say(&format!("killed {ended:?} after the last grant left, with a lease of 4 s"));
    assert!(bed.operator.asked() > asked, "it went on asking");
    let ack = bed.push(&bed.revoked(2), 1).await;
    assert!(ack.ack.fenced && ack.ack.mysqld.is_none(), "killed is fenced: {:?}", ack.ack);

    bed.start_keeper();
    until(LONG, "it comes up closed", async || bed.variables().await.filter(|pair| *pair == (1, 1))).await;
}

/// F-17, F-21, C-69: neither a long statement nor a table lock holds up a fence.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_update_and_a_locked_table_do_not_hold_up_a_fence() {
    let bed = Bed::opened("locked", Plan { lease: Duration::from_secs(20), ..Plan::default() }).await;
    make_table(&bed).await;
    let mut locking = bed.connect("app").await.unwrap();
    locking.query_drop("LOCK TABLES app.t WRITE").await.unwrap();
    let ack = bed.push(&bed.revoked(2), 1).await;
    let confirmed = until(LONG, "the fence under the lock", async || {
        bed.status().await.filter(|status| status["self_fenced"] == true && status["epoch"] == 2)
    });
    let status = confirmed.await;
    assert_eq!(status["mysqld"], "up", "no kill was needed; at first: {:?}", ack.ack.fenced);
    let mut app = bed.connect("app").await.unwrap();
    assert!(locking.query_drop("UPDATE app.t SET v = 9").await.is_err(), "its session was ended");
    drop(locking);

    bed.grant(3);
    bed.until_open().await;
    let mut running = bed.connect("app").await.unwrap();
    let update = tokio::spawn(async move { running.query_drop("UPDATE app.t SET v = v + SLEEP(30)").await });
    until(LONG, "the update runs", async || {
        let question = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'UPDATE app.t%'";
        let count: Option<(i64,)> = bed.ask("monitor", question).await;
        count.filter(|(count,)| *count > 0)
    })
    .await;
    let began = Instant::now();
    bed.push(&bed.revoked(4), 2).await;
    bed.until_closed().await;
    say(&format!("fenced beside a running update in {:?}", began.elapsed()));
    let outcome = tokio::time::timeout(LONG, update).await.unwrap().unwrap();
    assert!(outcome.is_err(), "no client was told that its write is there");
    assert!(app.query_drop("INSERT INTO app.t VALUES (3, 3)").await.is_err());
    let (sum,): (i64,) = bed.ask("root", "SELECT CAST(SUM(v) AS SIGNED) FROM app.t").await.unwrap();
    assert_eq!(sum, 3, "nothing of the update stayed");
}

/// F-19, C-67, C-124: a restarted sidecar goes on with the permit's deadline, neither earlier nor later.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_sidecar_inherits_the_deadline() {
    let mut bed = Bed::opened("inherits", Plan { lease: Duration::from_secs(8), ..Plan::default() }).await;
    bed.ticks(2).await;
    bed.operator.says(|says| says.silent = true);
    let granted = bed.operator.agreed().unwrap();
    bed.kill_sidecar().await;
    let permit = bed.keeper_status().await.unwrap().permit.unwrap();
    bed.start_sidecar();
    let asked = bed.operator.asked();
    until(LONG, "it asks again", async || (bed.operator.asked() >= asked + 2).then_some(())).await;
    assert_eq!(bed.variables().await, Some((0, 0)), "a restart alone closes nothing");
    assert_eq!(bed.keeper_status().await.unwrap().permit, Some(permit), "and prolongs nothing");
    bed.until_closed().await;
    let after = granted.elapsed();
    say(&format!("closed {after:?} after the last grant left, with a lease of 8 s"));
    assert!(after + Duration::from_secs(1) > bed.plan.lease, "{after:?}");
}

/// F-32, C-68: no sidecar at all: the keeper ends the server at the deadline and 2.5 s.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_sidecar_the_keeper_kills_at_the_deadline() {
    let mut bed = Bed::opened("dead-man", Plan { lease: Duration::from_secs(4), ..Plan::default() }).await;
    bed.ticks(2).await;
    bed.operator.says(|says| says.silent = true);
    let granted = bed.operator.agreed().unwrap();
    bed.kill_sidecar().await;
    let ended = until(LONG, "the keeper's end", async || bed.keeper().status().map(|_| granted.elapsed())).await;
    say(&format!("killed {ended:?} after the last grant left, with a lease of 4 s and no sidecar"));
}

/// F-32: the sidecar dies a tenth of a second before its lease is over, before it could fence: the keeper ends the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_dies_just_before_its_deadline_leaves_no_writer() {
    let mut bed = Bed::opened("just-before", Plan { lease: Duration::from_secs(4), ..Plan::default() }).await;
    for epoch in 2..8 {
        bed.ticks(2).await;
        bed.operator.says(|says| says.silent = true);
        let nearly = async || bed.status().await?["leaseRemainingMs"].as_u64().filter(|left| *left <= 150);
        let left = until(LONG, "the lease is nearly over", nearly).await;
        bed.kill_sidecar().await;
        if bed.keeper_status().await.is_some_and(|status| status.permit.is_some()) && left > 0 {
            say(&format!("the sidecar died {left} ms before its deadline"));
            until(LONG, "the keeper's end", async || bed.keeper().status()).await;
            assert!(bed.log().contains("DeadMan"), "{}", bed.log());
            bed.start_keeper();
            until(LONG, "it comes up closed", async || bed.variables().await.filter(|pair| *pair == (1, 1))).await;
            return;
        }
        // Too late: it had fenced already. Once more.
        bed.start_sidecar();
        bed.grant(epoch);
        bed.until_open().await;
    }
    panic!("the moment before the deadline was never met");
}

/// F-42: mysqld restarted between permit and opening: nothing opens, also when the statement gets through at last.
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_of_one_start_opens_no_other() {
    let plan = Plan { lease: Duration::from_secs(4), ..Plan::default() };
    let mut bed = Bed::holding("restarted", plan, "read_only = OFF").await;
    bed.grant(1);
    let way = bed.way.as_ref().unwrap();
    until(LONG, "the opening is under way", async || way.holds().then_some(())).await;
    let permit = bed.keeper_status().await.unwrap().permit.unwrap();
    bed.operator.says(|says| (says.silent, says.agrees) = (true, false));
    bed.signal_mysqld(Signal::KILL).await;
    until(LONG, "the keeper's end", async || bed.keeper().status()).await;
    until(LONG, "the lease is over", async || bed.status().await.filter(|status| status["leaseRemainingMs"] == 0))
        .await;

    bed.start_keeper();
    until(LONG, "the next start is closed", async || bed.variables().await.filter(|pair| *pair == (1, 1))).await;
    bed.way.as_ref().unwrap().let_go();
    bed.ticks(3).await;
    assert_eq!(bed.variables().await, Some((1, 1)));
    let status = bed.keeper_status().await.unwrap();
    assert!(status.permit.is_none() && status.start != Some(permit.start), "{status:?}");
}

/// F-28: the opening of a dead sidecar, held up on its way, never lands after a confirmed fence.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_clients_opening_never_lands_after_a_confirmed_fence() {
    let plan = Plan { lease: Duration::from_secs(20), ..Plan::default() };
    let mut bed = Bed::holding("held-up", plan, "read_only = OFF").await;
    bed.grant(1);
    let way = bed.way.as_ref().unwrap();
    until(LONG, "the opening is under way", async || way.holds().then_some(())).await;
    bed.kill_sidecar().await;
    bed.operator.says(|says| says.silent = true);
    bed.start_sidecar();
    until(LONG, "it is back", async || bed.status().await).await;
    let revoked = bed.revoked(2);
    bed.push(&revoked, 1).await;
    until(LONG, "it is known to be fenced", async || {
        bed.status().await.filter(|status| status["self_fenced"] == true && status["epoch"] == 2)
    })
    .await;
    assert_eq!(bed.keeper_status().await.unwrap().permit, None, "the permit is withdrawn with the fence");
    bed.way.as_ref().unwrap().let_go();
    bed.ticks(4).await;
    assert_eq!(bed.variables().await, Some((1, 1)));
    let question = "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'bloodraven_opener'";
    assert_eq!(bed.ask("monitor", question).await, Some((0_i64,)), "its session is gone");
}

/// F-28: the same statement in the buffer of a server that stands still; the server goes on while it is being fenced.
#[tokio::test(flavor = "multi_thread")]
async fn an_opening_in_a_stopped_servers_buffer_never_lands_after_a_confirmed_fence() {
    let plan = Plan { lease: Duration::from_secs(20), ..Plan::default() };
    let mut bed = Bed::holding("buffered", plan, "read_only = OFF").await;
    bed.grant(1);
    let way = bed.way.as_ref().unwrap();
    until(LONG, "the opening is under way", async || way.holds().then_some(())).await;
    bed.signal_mysqld(Signal::STOP).await;
    bed.way.as_ref().unwrap().let_go();
    bed.kill_sidecar().await;
    bed.operator.says(|says| says.silent = true);
    bed.start_sidecar();
    let revoked = bed.revoked(2);
    let (ack, ()) = tokio::join!(
        async {
            until(LONG, "it is back", async || bed.status().await).await;
            bed.push(&revoked, 1).await
        },
        bed.signal_mysqld(Signal::CONT)
    );
    until(LONG, "fenced or dead", async || {
        bed.status().await.filter(|status| status["self_fenced"] == true && status["epoch"] == 2)
    })
    .await;
    bed.ticks(4).await;
    match bed.variables().await {
        Some(pair) => assert_eq!(pair, (1, 1), "at first: {:?}", ack.ack),
        None => assert!(bed.keeper().status().is_some(), "silent, so it was killed"),
    }
}

/// F-28, F-42: a revocation that comes while an opening is under way wins, whoever is first at the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_fence_that_races_an_opening_wins() {
    let plan = Plan { lease: Duration::from_secs(20), ..Plan::default() };
    let bed = Bed::holding("races", plan, "read_only = OFF").await;
    bed.grant(1);
    let way = bed.way.as_ref().unwrap();
    until(LONG, "the opening is under way", async || way.holds().then_some(())).await;
    bed.operator.says(|says| says.silent = true);
    let revoked = bed.revoked(2);
    let (ack, ()) = tokio::join!(bed.push(&revoked, 1), async { way.let_go() });
    is_closed_for_good(&bed, ack.ack.fenced, 2).await;
    for epoch in [3, 5, 7, 9] {
        bed.grant(epoch);
        let permitted = async || bed.keeper_status().await?.permit.filter(|permit| permit.epoch == epoch);
        until(LONG, "an opening is permitted", permitted).await;
        bed.operator.says(|says| says.silent = true);
        let ack = bed.push(&bed.revoked(epoch + 1), u8::try_from(epoch).unwrap()).await;
        is_closed_for_good(&bed, ack.ack.fenced, epoch + 1).await;
    }
}

/// What was acknowledged as fenced is; what was not is in the end.
async fn is_closed_for_good(bed: &Bed, acknowledged: bool, epoch: u64) {
    if acknowledged {
        assert_eq!(bed.variables().await, Some((1, 1)), "acknowledged as fenced under {epoch}");
    }
    let fenced = async || bed.status().await.filter(|status| status["self_fenced"] == true && status["epoch"] == epoch);
    until(LONG, "it is fenced", fenced).await;
    bed.ticks(3).await;
    assert_eq!(bed.variables().await, Some((1, 1)), "and stays so under {epoch}");
}

/// F-08, F-09, C-02: a crashed mysqld comes up closed and is opened again under the lease, with the operator down, because
/// k peers vouch and its data are not behind theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_server_reopens_on_vouches_alone() {
    let mut bed = Bed::opened("reopens", Plan { lease: Duration::from_secs(8), ..Plan::default() }).await;
    make_table(&bed).await;
    let executed = bed.executed().await;
    for peer in &bed.peers {
        peer.says(|says| (says.agrees, says.executed) = (true, executed.clone()));
    }
    bed.operator.says(|says| says.silent = true);
    until(LONG, "peers vouch", async || bed.peers[0].agreed()).await;
    bed.signal_mysqld(Signal::KILL).await;
    until(LONG, "the keeper's end", async || bed.keeper().status()).await;
    bed.start_keeper();
    bed.until_open().await;
    bed.run("app", "INSERT INTO app.t VALUES (4, 4)").await.unwrap();
    let metrics = bed.metrics().await;
    assert!(metrics.contains("result=\"reopened\"") && metrics.contains("result=\"opened\""), "{metrics}");
}

/// F-06: data that a peer has and this server lacks keep it closed after a crash.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_behind_stays_closed() {
    let mut bed = Bed::opened("behind", Plan { lease: Duration::from_secs(8), ..Plan::default() }).await;
    let ahead: bloodraven_gtid::GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77".parse().unwrap();
    for peer in &bed.peers {
        peer.says(|says| (says.agrees, says.executed) = (true, ahead.clone()));
    }
    bed.operator.says(|says| says.silent = true);
    until(LONG, "peers vouch", async || bed.peers[0].agreed()).await;
    bed.signal_mysqld(Signal::KILL).await;
    until(LONG, "the keeper's end", async || bed.keeper().status()).await;
    bed.start_keeper();
    until(LONG, "it comes up closed", async || bed.variables().await.filter(|pair| *pair == (1, 1))).await;
    until(LONG, "the gate is closed", async || {
        bed.metrics().await.lines().any(|line| line.contains("result=\"gate\"") && !line.ends_with(" 0")).then_some(())
    })
    .await;
    bed.ticks(3).await;
    assert_eq!(bed.variables().await, Some((1, 1)));
}

/// F-44, C-83: a human's fence on the holder stays under its epoch; the grant of a new tenure lifts it.
#[tokio::test(flavor = "multi_thread")]
async fn a_humans_fence_stays() {
    let bed = Bed::opened("human", Plan::default()).await;
    bed.run("root", "SET GLOBAL super_read_only = ON").await.unwrap();
    until(LONG, "it is seen", async || bed.status().await.filter(|status| status["fencedBy"] == "others")).await;
    bed.ticks(4).await;
    assert_eq!(bed.variables().await, Some((1, 1)), "the operator grants all the time");
    bed.grant(2);
    bed.until_open().await;
}

/// F-18: sixteen peers that take connections and never answer keep no tick longer than half its interval.
#[tokio::test(flavor = "multi_thread")]
async fn black_holed_peers_do_not_lengthen_the_tick() {
    let plan = Plan { black_holes: 16, interval: Duration::from_secs(2), lease: Duration::from_secs(20) };
    let bed = Bed::opened("holes", plan).await;
    bed.ticks(6).await;
    // Counted anew after one that was late: a busy machine may hold a single one up, and then the next ones are in time.
    let mut since: Option<(u64, u64)> = None;
    until(LONG, "five ticks in a row took no more than half of 2 s", async || {
        let metrics = bed.metrics().await;
        let number = |name: &str, label: &str| {
            let of = |line: &&str| line.starts_with(name) && line.contains(label);
            metrics.lines().find(of)?.rsplit(' ').next()?.parse::<u64>().ok()
        };
        let within = number("bloodraven_sidecar_tick_seconds_bucket", "le=\"1.0\"")?;
        let all = number("bloodraven_sidecar_tick_seconds_count", "")?;
        let (first_within, first_all) = *since.get_or_insert((within, all));
        if all - first_all > within - first_within {
            since = None;
        }
        (all - first_all >= 5 && since.is_some()).then_some(())
    })
    .await;
    assert_eq!(bed.variables().await, Some((0, 0)));
}

/// The keeper is told to end: the server is closed before it is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_is_told_to_end_has_its_server_fenced_first() {
    let bed = Bed::opened("ends", Plan { lease: Duration::from_secs(20), ..Plan::default() }).await;
    make_table(&bed).await;
    let began = Instant::now();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(bed.keeper().pid().try_into().unwrap()).unwrap(),
        Signal::TERM,
    )
    .unwrap();
    let status = until(LONG, "the keeper's end", async || bed.keeper().status()).await;
    say(&format!("fenced and stopped in {:?}", began.elapsed()));
    assert_eq!(status.code(), Some(0), "{}", bed.log());
    assert!(!bed.log().contains("DeadMan"), "{}", bed.log());
}

async fn lose_store(bed: &mut Bed) {
    bed.kill_sidecar().await;
    std::fs::write(bed.config.state_dir.join("sidecar.store"), "damaged").unwrap();
    bed.start_sidecar();
}

/// F-24, F-35: a store that was emptied makes a new instance, which nobody's old view opens.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_store_is_a_new_instance() {
    let mut bed = Bed::opened("lost-store", Plan::default()).await;
    lose_store(&mut bed).await;
    until(LONG, "it is somebody else", async || {
        let instance = bed.status().await?["instance"].as_str()?.to_owned();
        let same = instance == bed.me.instance.to_string();
        // A write of the life before was under way, and came after the damage.
        if same {
            lose_store(&mut bed).await;
        }
        (!same).then_some(())
    })
    .await;
    bed.until_closed().await;
    bed.ticks(3).await;
    assert_eq!(bed.variables().await, Some((1, 1)), "the grants are to another instance");
}
