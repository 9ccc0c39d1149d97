//! The sides of semi-synchronous replication: what waits is not let go, and a receiver takes its side up when it connects.

use super::world::*;
use bloodraven_mysql::semi_sync::{Source, renew_receiver, set_replica, set_source};
use bloodraven_mysql::{Error, SemiSync, Session, Wanted, attach, poll};
use bloodraven_testbed::mysql::start_many;
use std::time::Duration;

const WAITING: &str = "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE LIKE 'Waiting for semi-sync%'";
const CLIENTS: &str = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM performance_schema.global_status \
                       WHERE VARIABLE_NAME = 'Rpl_semi_sync_source_clients'";

async fn says(session: &mut Session) -> SemiSync {
    poll(session, soon()).await.unwrap().semi_sync
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_on_an_open_server_is_let_go_only_when_that_is_asked_for() {
    let server = site("asks").start().unwrap();
    let mut session = Session::open(&login(&server), soon()).await.unwrap();
    let mut admin = opened(&server).await;
    set_source(&mut session, Wanted::Any, Source::On(Duration::ZERO), soon()).await.unwrap();
    let on = says(&mut session).await;
    assert!(on.source_enabled && on.source_active && on.strict && on.clients == 0, "{on:?}");
    assert_eq!(on.timeout, Some(Duration::from_millis(4_294_967_295)));
    let commit = in_background(raw(&server, "app", "app").await, "INSERT INTO app.t (v) VALUES (1)");
    until_number(&mut admin, WAITING, 1).await;
    // It may be at replicas by now, and does not count as executed here.
    let read = poll(&mut session, soon()).await.unwrap();
    let (committing, executed) = (read.committing.unwrap(), read.executed.unwrap());
    assert_eq!((committing.count(), committing.is_disjoint(&executed)), (1, true), "{committing} beside {executed}");

    let open = set_source(&mut session, Wanted::Any, Source::OffIfClosed, soon()).await.unwrap_err();
    assert!(matches!(open, Error::Unsafe { .. }), "{open}");
    let other = set_source(&mut session, stranger(), Source::Off, soon()).await.unwrap_err();
    assert!(matches!(other, Error::WrongServer { .. }), "{other}");
    // What somebody sets by hand shows.
    run(&mut admin, "SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_COMMIT").await;
    let still = says(&mut session).await;
    assert!(still.source_enabled && !still.strict, "{still:?}");
    until_number(&mut admin, WAITING, 1).await;

    set_source(&mut session, Wanted::Any, Source::Off, soon()).await.unwrap();
    assert!(commit.await.unwrap(), "what waited has gone through");
    let read = poll(&mut session, soon()).await.unwrap();
    assert_eq!(read.executed.unwrap(), executed.union(&committing));
    assert!(read.committing.unwrap().is_empty());
    set_source(&mut session, Wanted::Any, Source::On(Duration::from_secs(2)), soon()).await.unwrap();
    run(&mut admin, "SET GLOBAL super_read_only = ON").await;
    set_source(&mut session, Wanted::Any, Source::OffIfClosed, soon()).await.unwrap();
    let off = says(&mut session).await;
    assert!(!off.source_enabled && off.strict && off.timeout == Some(Duration::from_secs(2)), "{off:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_takes_its_side_up_when_it_is_started_anew() {
    let servers = start_many([site("waits"), site("gives")]).unwrap();
    let mut admin = opened(&servers[0]).await;
    let mut session = Session::open(&login(&servers[1]), soon()).await.unwrap();
    // Nothing runs yet: nothing is started.
    renew_receiver(&mut session, Wanted::Any, soon()).await.unwrap();
    assert!(poll(&mut session, soon()).await.unwrap().replica.is_none());
    let all = executed(&mut admin).await;
    attach(&login(&servers[1]), Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap();
    let mut beside = root(&servers[1]).await;
    let runs = "SELECT COUNT(*) FROM performance_schema.replication_connection_status WHERE SERVICE_STATE = 'ON'";
    until_number(&mut beside, runs, 1).await;

    set_replica(&mut session, Wanted::Any, true, soon()).await.unwrap();
    let side = says(&mut session).await;
    assert!(side.replica_enabled && !side.replica_active, "a receiver that runs goes on as it was: {side:?}");
    renew_receiver(&mut session, Wanted::Any, soon()).await.unwrap();
    until_number(&mut admin, CLIENTS, 1).await;
    assert!(says(&mut session).await.replica_active);

    // Each commit has a receipt now, and the source's side may come and go under running receivers.
    let mut source = Session::open(&login(&servers[0]), soon()).await.unwrap();
    set_source(&mut source, Wanted::Any, Source::On(Duration::ZERO), soon()).await.unwrap();
    run(&mut admin, "INSERT INTO app.t (v) VALUES (1)").await;
    let on = says(&mut source).await;
    assert!(on.source_active && on.clients == 1, "{on:?}");
    set_source(&mut source, Wanted::Any, Source::Off, soon()).await.unwrap();

    set_replica(&mut session, Wanted::Any, false, soon()).await.unwrap();
    assert!(says(&mut session).await.replica_active, "off, too, is taken up by the next connection");
    renew_receiver(&mut session, Wanted::Any, soon()).await.unwrap();
    until_number(&mut beside, runs, 1).await;
    until_number(&mut admin, CLIENTS, 0).await;
    let side = says(&mut session).await;
    assert!(!side.replica_enabled && !side.replica_active, "{side:?}");
}
