//! Replication is pointed, re-pointed and cut only as far as its guards hold; single statements do what they say.

use super::world::*;
use bloodraven_gtid::GtidSet;
use bloodraven_mysql::{
    Account, Error, Guarded, Reading, Receiver, Server, Session, Source, Wanted, attach, cut_replication, poll,
    replica, repoint, sets,
};
use bloodraven_testbed::mysql::{MysqlServer, start_many};
use mysql_async::Conn;
use std::time::Duration;

fn acted(outcome: Guarded) -> Reading {
    match outcome {
        Guarded::Acted(reading) => *reading,
        Guarded::Refused { why, .. } => panic!("refused: {why}"),
    }
}

fn refused(outcome: Guarded) -> (String, Reading) {
    match outcome {
        Guarded::Refused { why, reading } => (why, *reading),
        Guarded::Acted(reading) => panic!("acted: {reading:?}"),
    }
}

/// A source with a table and a replica that has caught up.
async fn pair_of_sites(names: [&str; 2]) -> (Vec<MysqlServer>, Conn, Server, Session) {
    let servers = start_many(names.map(site)).unwrap();
    let (mut writer, follower) = (opened(&servers[0]).await, login(&servers[1]));
    let all = executed(&mut writer).await;
    acted(attach(&follower, Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap());
    let mut session = Session::open(&follower, soon()).await.unwrap();
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());
    (servers, writer, follower, session)
}

/// Rows that the replica has received and, its applier being stopped, not applied.
async fn receive_without_applying(writer: &mut Conn, replica: &mut Conn, rows: usize) -> GtidSet {
    let before = executed(writer).await;
    run(replica, "STOP REPLICA SQL_THREAD").await;
    for _ in 0..rows {
        run(writer, "INSERT INTO app.t (v) VALUES (7)").await;
    }
    let new = executed(writer).await.subtract(&before);
    let received = format!(
        "SELECT GTID_SUBSET('{}', RECEIVED_TRANSACTION_SET) FROM performance_schema.replication_connection_status",
        new.compact()
    );
    until_number(replica, &received, 1).await;
    new
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_attached_only_where_the_source_has_all_it_has() {
    let servers = start_many([site("centre"), site("joins"), site("differs")]).unwrap();
    let mut writer = opened(&servers[0]).await;
    run(&mut writer, "INSERT INTO app.t (v) VALUES (1)").await;
    let all = executed(&mut writer).await;

    // Contained: fenced, reset, pointed, started; leftovers of an older source are gone.
    let follower = login(&servers[1]);
    let mut admin = root(&servers[1]).await;
    run(&mut admin, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'gone', SOURCE_DELAY = 99").await;
    run(&mut admin, "SET GLOBAL read_only = OFF").await;
    let other = attach(&follower, stranger(), &source(&servers[0]), &all, &spared(), soon()).await.unwrap_err();
    assert!(matches!(other, Error::WrongServer { .. }), "{other}");
    assert_eq!(pair(&mut admin).await, (0, 0), "another server is left alone");
    let me = Wanted::Only(uuid(&mut admin).await);
    let reading = acted(attach(&follower, me, &source(&servers[0]), &all, &spared(), soon()).await.unwrap());
    let replica = reading.replica.unwrap();
    assert!(reading.pair.is_fenced() && replica.delay.is_zero() && replica.source_port == servers[0].port());
    let mut session = Session::open(&follower, soon()).await.unwrap();
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());

    // Not contained: fenced, and otherwise left as it is.
    let mut rogue = opened(&servers[2]).await;
    let (why, reading) =
        refused(attach(&login(&servers[2]), Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap());
    assert!(why.contains(&uuid(&mut rogue).await.to_string()), "{why}");
    assert!(reading.pair.is_fenced() && reading.replica.is_none());
    assert_eq!(pair(&mut rogue).await, (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn p_03_replication_is_cut_only_with_what_is_given_up() {
    let (servers, mut writer, follower, mut session) = pair_of_sites(["cut-source", "cut"]).await;
    let mut admin = root(&servers[1]).await;
    let me = Wanted::Only(uuid(&mut admin).await);
    let unapplied = receive_without_applying(&mut writer, &mut admin, 3).await;
    let other = cut_replication(&follower, stranger(), &unapplied, soon()).await.unwrap_err();
    assert!(matches!(other, Error::WrongServer { .. }), "{other}");

    // More was received than is given up, or less: nothing is thrown away, both threads stand.
    for given_up in [GtidSet::new(), unapplied.union(&set(&format!("{}:999", uuid(&mut writer).await)))] {
        let (why, reading) = refused(cut_replication(&follower, me, &given_up, soon()).await.unwrap());
        assert!(why.contains(&format!("{:?}", unapplied.compact())), "{why}");
        let replica = reading.replica.unwrap();
        assert_eq!((replica.receiver, replica.applier_running), (Receiver::Stopped, false));
        assert!(replica.received.unwrap().contains(&unapplied), "the relay logs are there");
    }

    // P-01: started once, the applier applies all of it, though the source is gone.
    servers[0].kill().unwrap();
    replica::start_applier(&mut session, me, soon()).await.unwrap();
    assert!(sets::wait_for(&mut session, &unapplied, LIMIT / 2, soon()).await.unwrap());
    let reading = acted(cut_replication(&follower, me, &GtidSet::new(), soon()).await.unwrap());
    assert!(reading.replica.is_none() && reading.executed.unwrap().contains(&unapplied));
    // Once more changes nothing more.
    assert!(acted(cut_replication(&follower, me, &GtidSet::new(), soon()).await.unwrap()).replica.is_none());
    let none = replica::start_applier(&mut session, me, soon()).await.unwrap_err();
    assert!(matches!(none, Error::NotAReplica { .. }), "{none}");
    let none = replica::start(&mut session, me, soon()).await.unwrap_err();
    assert_eq!(none.code(), Some(1200), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_up_by_name_is_thrown_away() {
    let (servers, mut writer, follower, _session) = pair_of_sites(["lost-source", "lost"]).await;
    let mut admin = root(&servers[1]).await;
    let unapplied = receive_without_applying(&mut writer, &mut admin, 2).await;
    let reading = acted(cut_replication(&follower, Wanted::Any, &unapplied, soon()).await.unwrap());
    assert!(reading.replica.is_none() && reading.executed.unwrap().is_disjoint(&unapplied));
}

#[tokio::test(flavor = "multi_thread")]
async fn r_09_a_replica_is_pointed_elsewhere_only_where_nothing_is_lost() {
    let servers = start_many([site("old"), site("new"), site("moves")]).unwrap();
    let mut writer = opened(&servers[0]).await;
    let all = executed(&mut writer).await;
    for index in [1, 2] {
        let outcome = attach(&login(&servers[index]), Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await;
        acted(outcome.unwrap());
        let mut session = Session::open(&login(&servers[index]), soon()).await.unwrap();
        assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());
    }
    let (mut admin, mover) = (root(&servers[2]).await, login(&servers[2]));
    let unapplied = receive_without_applying(&mut writer, &mut admin, 2).await;

    // It has received what the set does not hold: stopped, and its relay logs kept.
    let (why, reading) = refused(repoint(&mover, Wanted::Any, &source(&servers[1]), &all, soon()).await.unwrap());
    assert!(why.contains(&unapplied.compact().to_string()), "{why}");
    let replica = reading.replica.unwrap();
    assert_eq!((replica.source_port, replica.receiver), (servers[0].port(), Receiver::Stopped));
    assert!(replica.received.unwrap().contains(&unapplied));

    // The new source has all: pointed, started, and what was received comes again from there.
    let mut session = Session::open(&login(&servers[1]), soon()).await.unwrap();
    let all = executed(&mut writer).await;
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());
    let reading = acted(repoint(&mover, Wanted::Any, &source(&servers[1]), &all, soon()).await.unwrap());
    assert_eq!(reading.replica.unwrap().source_port, servers[1].port());
    let mut session = Session::open(&mover, soon()).await.unwrap();
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());
    let healthy = poll(&mut session, soon()).await.unwrap().replica.unwrap();
    assert_eq!((healthy.receiver, healthy.applier_running), (Receiver::Running, true));

    // A source whose account is refused is pointed at all the same: the server's OK proves nothing.
    let wrong = Source { account: Account::new(REPLICATION, "wrong"), ..source(&servers[0]) };
    acted(repoint(&mover, Wanted::Any, &wrong, &all, soon()).await.unwrap());
    until_number(&mut admin, "SELECT LAST_ERROR_NUMBER FROM performance_schema.replication_connection_status", 1045)
        .await;
    let fault = poll(&mut session, soon()).await.unwrap().replica.unwrap().receiver_error.unwrap();
    assert!(fault.code == 1045 && !fault.is_link(), "{fault:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn single_statements_stop_start_and_lift_a_delay_without_losing_what_was_received() {
    let (servers, mut writer, _follower, mut session) = pair_of_sites(["delay-source", "delayed"]).await;
    let mut admin = root(&servers[1]).await;
    let session = &mut session;
    replica::stop_receiver(session, Wanted::Any, soon()).await.unwrap();
    let stopped = replica::status(session, soon()).await.unwrap().unwrap();
    assert_eq!((stopped.receiver, stopped.applier_running), (Receiver::Stopped, true));
    replica::start(session, Wanted::Any, soon()).await.unwrap();

    run(&mut admin, "STOP REPLICA SQL_THREAD").await;
    run(&mut admin, "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600").await;
    run(&mut admin, "START REPLICA SQL_THREAD").await;
    let before = executed(&mut writer).await;
    run(&mut writer, "INSERT INTO app.t (v) VALUES (1)").await;
    let new = executed(&mut writer).await.subtract(&before);
    let received = format!(
        "SELECT GTID_SUBSET('{}', RECEIVED_TRANSACTION_SET) FROM performance_schema.replication_connection_status",
        new.compact()
    );
    until_number(&mut admin, &received, 1).await;
    // The source is gone: what was received cannot come again.
    servers[0].kill().unwrap();
    replica::stop_receiver(session, Wanted::Any, soon()).await.unwrap();
    let held = poll(session, soon()).await.unwrap();
    assert_eq!(held.replica.unwrap().delay, Duration::from_hours(1));
    assert!(held.executed.unwrap().is_disjoint(&new));
    let other = replica::lift_delay(session, stranger(), soon()).await.unwrap_err();
    assert!(matches!(other, Error::WrongServer { .. }), "{other}");
    replica::lift_delay(session, Wanted::Any, soon()).await.unwrap();
    assert!(sets::wait_for(session, &new, LIMIT / 2, soon()).await.unwrap());
    assert!(replica::status(session, soon()).await.unwrap().unwrap().delay.is_zero());
}
