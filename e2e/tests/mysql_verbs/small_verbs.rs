//! The write probe, scheduled events, and sessions that know a restart.

use super::world::*;
use bloodraven_mysql::write_probe::{prepare, write_probe};
use bloodraven_mysql::{Error, Session, Wanted, attach, events, restart, schemas, sets, wait_for_restart};
use bloodraven_testbed::mysql::start_many;

#[tokio::test(flavor = "multi_thread")]
async fn a_write_probe_writes_without_a_gtid_and_tells_a_fenced_server() {
    let server = site("probed").start().unwrap();
    let mut session = Session::open(&login(&server), soon()).await.unwrap();
    let fenced = prepare(&mut session, Wanted::Any, soon()).await.unwrap_err();
    assert_eq!(fenced.code(), Some(1290), "{fenced}");
    let mut admin = opened(&server).await;
    let before = executed(&mut admin).await;
    for _ in 0..2 {
        prepare(&mut session, Wanted::Any, soon()).await.unwrap();
    }
    assert_eq!(schemas::of_users(&mut session, soon()).await.unwrap(), ["app"], "its schema is nobody's data");
    run(&mut admin, "SET GLOBAL super_read_only = ON").await;
    let fenced = write_probe(&mut session, Wanted::Any, soon()).await.unwrap_err();
    assert_eq!(fenced.code(), Some(1290), "{fenced}");
    run(&mut admin, "SET GLOBAL read_only = OFF").await;
    for _ in 0..3 {
        write_probe(&mut session, Wanted::Any, soon()).await.unwrap();
    }
    assert_eq!(ask::<(u64,)>(&mut admin, "SELECT beats FROM bloodraven.heartbeat").await, (3,));
    assert_eq!(executed(&mut admin).await, before, "nothing is replicated");
    let other = write_probe(&mut session, stranger(), soon()).await.unwrap_err();
    assert!(matches!(other, Error::WrongServer { .. }), "{other}");
    // A statement that finds no row proves nothing.
    run(&mut admin, "DELETE FROM bloodraven.heartbeat WHERE id = 1").await;
    let empty = write_probe(&mut session, Wanted::Any, soon()).await.unwrap_err();
    assert!(matches!(empty, Error::Unreadable { .. }), "{empty}");
    // A commit that cannot end in time is given up.
    run(&mut admin, "INSERT INTO bloodraven.heartbeat VALUES (1, 0)").await;
    run(&mut admin, "BEGIN").await;
    run(&mut admin, "UPDATE bloodraven.heartbeat SET beats = 9").await;
    let late = write_probe(&mut session, Wanted::Any, within_ms(300)).await.unwrap_err();
    assert!(matches!(late, Error::TimedOut { .. }) && late.outcome_is_unknown(), "{late}");
    drop(session);
    let waiting = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'UPDATE bloodraven%'";
    until_number(&mut admin, waiting, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_a_promotion_leaves_off_are_listed() {
    let servers = start_many([site("scheduler"), site("scheduled")]).unwrap();
    let mut writer = opened(&servers[0]).await;
    run(&mut writer, "CREATE EVENT app.nightly ON SCHEDULE EVERY 1 DAY DO DO 1").await;
    let (all, follower) = (executed(&mut writer).await, login(&servers[1]));
    attach(&follower, Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap();
    let mut session = Session::open(&follower, soon()).await.unwrap();
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());
    assert_eq!(events::disabled_on_replica(&mut session, soon()).await.unwrap(), ["app.nightly"]);
    let mut source = Session::open(&login(&servers[0]), soon()).await.unwrap();
    assert!(events::disabled_on_replica(&mut source, soon()).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_seen_and_the_old_start_is_not_taken_for_it() {
    let mut server = site("restarted").start().unwrap();
    let me = login(&server);
    let mut session = Session::open(&me, soon()).await.unwrap();
    let before = restart::started(&mut session, soon()).await.unwrap();
    let same = wait_for_restart(&me, Wanted::Any, before, within_ms(700)).await.unwrap_err();
    assert!(matches!(same, Error::TimedOut { .. }), "{same}");
    let waiting = tokio::spawn({
        let me = me.clone();
        async move { wait_for_restart(&me, Wanted::Any, before, soon()).await }
    });
    server.restart().unwrap();
    let mut session = waiting.await.unwrap().unwrap();
    assert!(restart::started(&mut session, soon()).await.unwrap().is_after(before));
}
