//! The fence holds within its time, whatever clients do; and ends whom it should, and nobody else.

use super::world::*;
use bloodraven_mysql::semi_sync::Source;
use bloodraven_mysql::{
    Deadline, Error, Session, Spared, Wanted, attach, fence, fence_over, poll, semi_sync, sessions, sets,
};
use bloodraven_testbed::mysql::start_many;
use bloodraven_testbed::progress::say;
use mysql_async::prelude::Queryable as _;
use std::time::Duration;

/// What the ladder gives a fence.
const BOUND: Duration = Duration::from_millis(1500);

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_holds_within_its_time_behind_writes_and_locks() {
    let server = site("fenced").start().unwrap();
    let (me, mut admin) = (login(&server), opened(&server).await);
    run(&mut admin, "INSERT INTO app.t (v) VALUES (1), (2)").await;
    let wanted = Wanted::Only(uuid(&mut admin).await);
    for (what, holder) in [
        ("idle", None),
        ("an idle transaction", Some("BEGIN; UPDATE app.t SET v = 5 WHERE id = 1")),
        ("a long UPDATE", Some("UPDATE app.t SET v = SLEEP(30)")),
        ("LOCK TABLES … WRITE", Some("LOCK TABLES app.t WRITE; DO SLEEP(30)")),
    ] {
        run(&mut admin, "SET GLOBAL read_only = OFF").await;
        let app = raw(&server, "app", "app").await;
        let held = holder.map(|statement| in_background(app, statement));
        if what != "idle" && what != "an idle transaction" {
            let sleeps = "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE = 'User sleep'";
            until_number(&mut admin, sleeps, 1).await;
        }
        let (fenced, took) = timed(fence(&me, wanted, &spared(), Deadline::within(BOUND))).await;
        say(&format!("fence behind {what}: {took:?}"));
        assert!(
            fenced.unwrap_or_else(|error| panic!("{what}: {error}")).is_fenced() && took < BOUND,
            "{what}: {took:?}"
        );
        assert_eq!(pair(&mut admin).await, (1, 1), "{what}");
        if let Some(held) = held {
            let _ = held.await;
        }
        // F-20: an application can neither write nor open.
        let mut app = raw(&server, "app", "app").await;
        assert!(app.query_drop("INSERT INTO app.t (v) VALUES (9)").await.is_err());
        assert!(app.query_drop("SET GLOBAL read_only = OFF").await.is_err());
    }

    // At 0/1 the second variable alone does nothing; the fence does (F-25).
    run(&mut admin, "SET GLOBAL read_only = OFF").await;
    run(&mut admin, "SET GLOBAL super_read_only = ON").await;
    let session = Session::open(&me, soon()).await.unwrap();
    let ((fenced, mut session), took) = {
        let (outcome, took) = timed(fence_over(session, wanted, &spared(), Deadline::within(BOUND))).await;
        (outcome.unwrap(), took)
    };
    say(&format!("fence over a session that stands: {took:?}"));
    assert!(fenced.is_fenced());
    assert!(poll(&mut session, soon()).await.unwrap().pair.is_fenced(), "it is given back");

    // With nobody spared by name the fence does not end itself.
    run(&mut admin, "SET GLOBAL read_only = OFF").await;
    let held = in_background(raw(&server, "app", "app").await, "LOCK TABLES app.t WRITE; DO SLEEP(30)");
    until_number(&mut admin, "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE = 'User sleep'", 1).await;
    let fenced = fence(&me, wanted, &Spared::default(), Deadline::within(BOUND)).await.unwrap();
    assert!(fenced.is_fenced() && !held.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn f_38_a_fence_that_is_given_up_never_lands() {
    let server = site("held").start().unwrap();
    let (me, mut admin) = (login(&server), opened(&server).await);
    // An account that is spared holds the lock, so nobody frees the way.
    let mut holder = raw(&server, "monitor", "app").await;
    run(&mut holder, "LOCK TABLES app.t WRITE").await;
    let busy = in_background(holder, "DO SLEEP(3)");
    let limit = Duration::from_millis(900);
    let (outcome, took) = timed(fence(&me, Wanted::Any, &spared(), Deadline::within(limit))).await;
    let unfenced = outcome.unwrap_err();
    assert!(matches!(unfenced.error, Error::TimedOut { .. }), "{unfenced}");
    assert!(unfenced.left.is_none() && took < limit + Duration::from_millis(100), "{unfenced} after {took:?}");
    assert!(!unfenced.read.unwrap().is_fenced());
    let waiting = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'SET GLOBAL read_only%'";
    assert_eq!(ask::<(i64,)>(&mut admin, waiting).await, (0,), "its session is gone while the lock is still held");
    assert!(busy.await.unwrap());
    assert_eq!(pair(&mut admin).await, (0, 0), "and nothing landed when the lock was let go");

    // The same for a caller that goes away: dropped half-way, its statement is ended all the same.
    let mut holder = raw(&server, "monitor", "app").await;
    run(&mut holder, "LOCK TABLES app.t WRITE").await;
    let spared = spared();
    let dropped = fence(&me, Wanted::Any, &spared, soon());
    assert!(tokio::time::timeout(Duration::from_millis(150), dropped).await.is_err());
    until_number(&mut admin, waiting, 0).await;
    run(&mut holder, "UNLOCK TABLES").await;
    assert_eq!(pair(&mut admin).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_behind_a_commit_that_waits_for_an_acknowledgement_is_given_up_in_time() {
    let servers = start_many([site("semi-source"), site("semi-replica")]).unwrap();
    let (me, follower) = (login(&servers[0]), login(&servers[1]));
    let mut admin = opened(&servers[0]).await;
    let mut session = Session::open(&me, soon()).await.unwrap();
    let mut beside = Session::open(&follower, soon()).await.unwrap();
    semi_sync::set_source(&mut session, Wanted::Any, Source::On(Duration::ZERO), soon()).await.unwrap();
    semi_sync::set_replica(&mut beside, Wanted::Any, true, soon()).await.unwrap();
    let all = executed(&mut admin).await;
    attach(&follower, Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap();
    until_number(&mut admin, "SELECT VARIABLE_VALUE = '1' FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Rpl_semi_sync_source_clients'", 1).await;
    run(&mut admin, "INSERT INTO app.t (v) VALUES (1)").await;
    let states =
        (poll(&mut session, soon()).await.unwrap().semi_sync, poll(&mut beside, soon()).await.unwrap().semi_sync);
    assert!(states.0.source_enabled && states.0.source_active && states.0.clients == 1, "{states:?}");
    assert!(states.1.replica_enabled && states.1.replica_active, "{states:?}");

    // The replica stands still: the next commit waits for it. On 9.7 a KILL takes its client away, and the commit waits on;
    // letting it go by switching semi-sync off would acknowledge what no replica has. So the fence is given up in time,
    // leaves nothing behind, and says so: the ladder's next rung ends the server.
    servers[1].pause().unwrap();
    let app = raw(&servers[0], "app", "app").await;
    let commit = in_background(app, "INSERT INTO app.t (v) VALUES (2)");
    until_number(
        &mut admin,
        "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE LIKE 'Waiting for semi-sync%'",
        1,
    )
    .await;
    let (outcome, took) = timed(fence(&me, Wanted::Any, &spared(), Deadline::within(BOUND))).await;
    say(&format!("fence behind a commit that waits for semi-sync: {took:?}"));
    let unfenced = outcome.expect_err("a KILL frees such a commit? then the fence may hold");
    assert!(took < BOUND && unfenced.left.is_none(), "{unfenced} after {took:?}");
    assert!(!unfenced.read.unwrap().is_fenced());
    assert!(!commit.await.unwrap(), "the client saw no OK");
    // The acknowledgement comes: nothing of the fence lands, and the next one holds.
    servers[1].resume().unwrap();
    until_number(
        &mut admin,
        "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE LIKE 'Waiting for semi-sync%'",
        0,
    )
    .await;
    assert_eq!(pair(&mut admin).await, (0, 0));
    assert!(fence(&me, Wanted::Any, &spared(), Deadline::within(BOUND)).await.unwrap().is_fenced());
    semi_sync::set_source(&mut session, Wanted::Any, Source::OffIfClosed, soon()).await.unwrap();
    assert!(!poll(&mut session, soon()).await.unwrap().semi_sync.source_enabled);
}

#[tokio::test(flavor = "multi_thread")]
async fn p_19_a_full_server_is_polled_and_fenced_by_the_administrators_port() {
    let server = site("full").arg("--max-connections=12").start().unwrap();
    let (me, admin) = (login(&server), opened(&server).await);
    drop(admin);
    let mut crowd = Vec::new();
    // More than fit: the last ones are refused.
    for _ in 0..30 {
        match tokio::time::timeout(LIMIT, mysql_async::Conn::new(raw_options(&server, "app", "app"))).await.unwrap() {
            Ok(connection) => crowd.push(connection),
            Err(error) => {
                assert!(error.to_string().contains("Too many connections"), "{error}");
                break;
            }
        }
    }
    let mut session = Session::open(&me, soon()).await.unwrap();
    let reading = poll(&mut session, soon()).await.unwrap();
    assert!(reading.connections.is_exhausted() && reading.connections.refused > 0, "{:?}", reading.connections);
    assert!(fence(&me, Wanted::Any, &spared(), Deadline::within(BOUND)).await.unwrap().is_fenced());
    let ended = sessions::end_all(&mut session, Wanted::Any, &spared(), 5, soon()).await.unwrap();
    assert_eq!((ended.ended, ended.left), (crowd.len() as u64, 0));
    assert!(!poll(&mut session, soon()).await.unwrap().connections.is_exhausted());
}

#[tokio::test(flavor = "multi_thread")]
async fn f_21_sessions_are_ended_except_ours_and_the_servers() {
    let servers = start_many([site("crowded"), site("fed")]).unwrap();
    let (me, follower) = (login(&servers[0]), login(&servers[1]));
    let mut admin = opened(&servers[0]).await;
    let all = executed(&mut admin).await;
    attach(&follower, Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap();
    until_number(
        &mut admin,
        "SELECT COUNT(*) FROM performance_schema.processlist WHERE COMMAND = 'Binlog Dump GTID'",
        1,
    )
    .await;
    let mut idle = raw(&servers[0], "app", "app").await;
    let busy = in_background(raw(&servers[0], "app", "app").await, "DO SLEEP(30)");
    let mut monitor = raw(&servers[0], "monitor", "app").await;
    let mut session = Session::open(&me, soon()).await.unwrap();
    until_number(&mut admin, "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE = 'User sleep'", 1).await;
    let seen = sessions::list(&mut session, &spared(), soon()).await.unwrap();
    assert!(seen.len() == 2 && seen.iter().all(|one| one.user == "app"), "{seen:?}");
    let refused = sessions::end_once(&mut session, stranger(), &spared(), soon()).await.unwrap_err();
    assert!(matches!(refused, Error::WrongServer { .. }), "{refused}");
    assert!(idle.query_drop("DO 1").await.is_ok(), "another server's sessions stay");
    let ended = sessions::end_once(&mut session, Wanted::Any, &spared(), soon()).await.unwrap();
    assert_eq!((ended.ended, ended.left), (2, 0));
    assert!(idle.query_drop("DO 1").await.is_err() && !busy.await.unwrap());
    run(&mut monitor, "DO 1").await;
    assert_eq!(
        sessions::end_once(&mut session, Wanted::Any, &spared(), soon()).await.unwrap(),
        sessions::Ended::default()
    );

    // On the replica the applier and the receiver live on.
    let mut beside = Session::open(&follower, soon()).await.unwrap();
    sessions::end_all(&mut beside, Wanted::Any, &spared(), 3, soon()).await.unwrap();
    let mut writer = opened(&servers[0]).await;
    run(&mut writer, "INSERT INTO app.t (v) VALUES (1)").await;
    let all = executed(&mut writer).await;
    assert!(sets::wait_for(&mut beside, &all, LIMIT / 2, soon()).await.unwrap(), "replication goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_at_once_is_not_waited_for() {
    let server = site("pool").start().unwrap();
    let (me, mut admin) = (login(&server), opened(&server).await);
    let client = || {
        let options = raw_options(&server, "app", "app");
        tokio::spawn(async move {
            // Cut off five times below, and for good when the server ends.
            for _ in 0..100 {
                let Ok(mut connection) = mysql_async::Conn::new(options.clone()).await else { return };
                drop(connection.query_drop("DO SLEEP(30)").await);
            }
        })
    };
    let clients: Vec<_> = (0..4).map(|_| client()).collect();
    let sleeping = "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE = 'User sleep'";
    let mut session = Session::open(&me, soon()).await.unwrap();
    for pass in 0..5 {
        until_number(&mut admin, sleeping, 4).await;
        let ended = sessions::end_once(&mut session, Wanted::Any, &spared(), soon()).await.unwrap();
        assert!(ended.ended >= 4 && ended.left == 0, "pass {pass}: {ended:?}");
    }
    for client in clients {
        client.abort();
    }
}
