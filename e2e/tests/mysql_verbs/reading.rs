//! What a poll says, and that it says it whatever the server is busy with.

use super::world::*;
use bloodraven_mysql::{Error, Poller, Receiver, Session, Wanted, attach, poll, read_back, replica, schemas, sets};
use bloodraven_testbed::mysql::start_many;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_says_everything_of_a_server() {
    let mut server = site("polled").start().unwrap();
    let (mut poller, mut admin) = (Poller::new(login(&server)), root(&server).await);
    let fresh = poller.poll(soon()).await.unwrap();
    assert_eq!(fresh.server_uuid, uuid(&mut admin).await);
    assert_eq!(poller.uuid(), Some(fresh.server_uuid));
    assert!(fresh.pair.is_fenced() && !fresh.user_data && fresh.replica.is_none(), "{fresh:?}");
    assert!(fresh.executed.unwrap().is_empty() && fresh.purged.unwrap().is_empty());
    assert!(fresh.server_id > 0 && fresh.version.starts_with("9."), "{}", fresh.version);
    assert!(fresh.semi_sync.source_loaded && fresh.semi_sync.replica_loaded && !fresh.semi_sync.source_enabled);
    assert!(fresh.connections.used >= 2 && fresh.connections.most == 60 && !fresh.connections.is_exhausted());
    assert!(fresh.uptime < Duration::from_mins(5));

    // tags are kept apart, and what a user made is seen.
    let mut writer = opened(&server).await;
    run(&mut writer, "SET gtid_next = 'AUTOMATIC:Zulu'").await;
    run(&mut writer, "INSERT INTO app.t (v) VALUES (1)").await;
    let busy = poller.poll(soon()).await.unwrap();
    let expect = set(&format!("{0}:1-2:zulu:1", fresh.server_uuid));
    assert_eq!(busy.executed, Some(expect.clone()));
    assert!(busy.user_data && !busy.pair.read_only && !busy.pair.super_read_only);
    let mut session = Session::open(&login(&server), soon()).await.unwrap();
    assert_eq!(schemas::of_users(&mut session, soon()).await.unwrap(), ["app"]);
    assert_eq!(sets::read(&mut session, soon()).await.unwrap().executed, Some(expect.clone()));
    let back = read_back(&mut session, soon()).await.unwrap();
    assert_eq!((back.server_uuid, back.executed), (fresh.server_uuid, Some(expect.clone())));

    // The server's own arithmetic, tags included.
    let part = set(&format!("{}:zulu:1", fresh.server_uuid));
    assert!(sets::contains(&mut session, &expect, &part, soon()).await.unwrap());
    assert!(!sets::contains(&mut session, &part, &expect, soon()).await.unwrap());
    assert_eq!(sets::subtract(&mut session, &expect, &part, soon()).await.unwrap(), Some(expect.subtract(&part)));
    assert!(sets::wait_for(&mut session, &part, Duration::from_secs(1), soon()).await.unwrap());
    let more = set(&format!("{}:zulu:1-2", fresh.server_uuid));
    let (waited, took) = timed(sets::wait_for(&mut session, &more, Duration::from_millis(300), soon())).await;
    assert!(!waited.unwrap() && took >= Duration::from_millis(290), "{took:?}");

    // 0/1 and 1/0 are told as they are (F-25).
    for (statement, expect) in
        [("SET GLOBAL super_read_only = ON", (true, true)), ("SET GLOBAL super_read_only = OFF", (true, false))]
    {
        run(&mut admin, statement).await;
        let pair = read_back(&mut session, soon()).await.unwrap().pair;
        assert_eq!((pair.read_only, pair.super_read_only), expect, "{statement}");
    }

    // A server that was restarted fails one poll, and answers the next one.
    server.restart().unwrap();
    let lost = poller.poll(soon()).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { .. }), "{lost}");
    assert!(poller.poll(soon()).await.unwrap().pair.is_fenced());
    server.kill().unwrap();
    assert!(matches!(poller.poll(soon()).await.unwrap_err(), Error::Lost { .. }));
    let refused = poller.poll(soon()).await.unwrap_err();
    assert!(matches!(refused, Error::Connect { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_says_what_ails_a_replica() {
    let servers = start_many([site("source"), site("replica")]).unwrap();
    let (primary, follower) = (&servers[0], login(&servers[1]));
    let mut writer = opened(primary).await;
    let all = executed(&mut writer).await;
    attach(&follower, Wanted::Any, &source(primary), &all, &spared(), soon()).await.unwrap();
    let mut session = Session::open(&follower, soon()).await.unwrap();
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());
    let healthy = poll(&mut session, soon()).await.unwrap().replica.unwrap();
    assert_eq!((healthy.source_host.as_str(), healthy.source_port), ("127.0.0.1", primary.port()));
    assert_eq!((healthy.receiver, healthy.applier_running, healthy.auto_position), (Receiver::Running, true, true));
    assert_eq!((healthy.receiver_error, healthy.applier_error), (None, None));
    assert_eq!((healthy.received, healthy.source_uuid), (Some(all), Some(uuid(&mut writer).await)));
    assert_eq!((healthy.delay, healthy.other_channels), (Duration::ZERO, 0));

    // An applier that meets a row which is there already: the worker's words, not the coordinator's.
    let mut intruder = root(&servers[1]).await;
    run(&mut intruder, "SET GLOBAL read_only = OFF").await;
    run(&mut intruder, "SET sql_log_bin = 0").await;
    run(&mut intruder, "INSERT INTO app.t (id, v) VALUES (77, 1)").await;
    run(&mut writer, "INSERT INTO app.t (id, v) VALUES (77, 2)").await;
    until_number(
        &mut intruder,
        "SELECT COUNT(*) FROM performance_schema.replication_applier_status WHERE SERVICE_STATE = 'OFF'",
        1,
    )
    .await;
    let stuck = poll(&mut session, soon()).await.unwrap().replica.unwrap();
    let fault = stuck.applier_error.unwrap();
    assert_eq!((stuck.applier_running, fault.code), (false, 1062));
    assert!(fault.message.contains("Duplicate entry '77'"), "{}", fault.message);
    assert_eq!((stuck.receiver, stuck.behind), (Receiver::Running, None));

    // A source that is gone: the link, and nothing else. A login that is refused is something else.
    primary.kill().unwrap();
    until_number(
        &mut intruder,
        "SELECT COUNT(*) FROM performance_schema.replication_connection_status WHERE SERVICE_STATE = 'CONNECTING'",
        1,
    )
    .await;
    let alone = poll(&mut session, soon()).await.unwrap().replica.unwrap();
    let fault = alone.receiver_error.unwrap();
    assert!(fault.is_link() && alone.receiver == Receiver::Connecting, "{fault:?}");
    replica::stop(&mut session, Wanted::Any, soon()).await.unwrap();
    let stopped = poll(&mut session, soon()).await.unwrap().replica.unwrap();
    assert_eq!((stopped.receiver, stopped.applier_running), (Receiver::Stopped, false));
}
