//! A clone overwrites exactly what is meant, leaves the recipient fenced, and ends as expected.

use super::world::*;
use bloodraven_gtid::GtidSet;
use bloodraven_mysql::progress::{CloneState, clone_progress, clone_status};
use bloodraven_mysql::{CloneOrder, Donor, Error, Guarded, Session, Wanted, attach, clone, sets};
use bloodraven_testbed::mysql::{MysqlServer, start_many};

fn donor(server: &MysqlServer) -> Donor {
    let source = source(server);
    Donor { host: source.host, port: source.port, account: source.account, tls: false }
}

fn why(outcome: Result<Guarded, Error>) -> String {
    match outcome.unwrap() {
        Guarded::Refused { why, .. } => why,
        Guarded::Acted(reading) => panic!("cloned: {reading:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_replaces_exactly_what_is_meant() {
    let mut servers = start_many([site("donor"), site("recipient")]).unwrap();
    let mut writer = opened(&servers[0]).await;
    run(&mut writer, "INSERT INTO app.t (v) VALUES (1), (2), (3)").await;
    let all = executed(&mut writer).await;
    let (me, mut rogue) = (login(&servers[1]), root(&servers[1]).await);
    run(&mut rogue, "SET GLOBAL read_only = OFF").await;
    run(&mut rogue, "CREATE SCHEMA bloodraven").await;
    let own = executed(&mut rogue).await;
    let meant = Wanted::Only(uuid(&mut rogue).await);
    let (from, spared) = (donor(&servers[0]), spared());
    let order = |over| CloneOrder { donor: &from, over, spared: &spared };
    let none = GtidSet::new();

    // Writable, or with more than may be overwritten, or not the one that is meant: nothing happens.
    assert_eq!(why(clone(&me, meant, order(None), soon()).await), "it is not fenced");
    run(&mut rogue, "SET GLOBAL super_read_only = ON").await;
    assert!(why(clone(&me, meant, order(Some(&none)), soon()).await).contains(&own.compact().to_string()));
    let other = clone(&me, stranger(), order(Some(&own)), soon()).await.unwrap_err();
    assert!(matches!(other, Error::WrongServer { .. }), "{other}");
    // A schema of its own, Bloodraven's not excepted: a fenced server cannot drop it, so nothing is begun.
    let refused = why(clone(&me, meant, order(Some(&own)), soon()).await);
    assert!(refused.contains("(bloodraven)"), "{refused}");
    run(&mut rogue, "SET GLOBAL read_only = OFF").await;
    run(&mut rogue, "DROP SCHEMA bloodraven").await;
    run(&mut rogue, "SET GLOBAL super_read_only = ON").await;
    let own = executed(&mut rogue).await;
    // A donor that does not exist, and an account that it refuses: errors, and the recipient stays as it was.
    let mut nobody = from.clone();
    nobody.port = 1;
    let error = clone(&me, meant, CloneOrder { donor: &nobody, over: Some(&own), spared: &spared }, soon()).await;
    assert_eq!(error.unwrap_err().code(), Some(3862));
    let mut wrong = from.clone();
    wrong.account.password = bloodraven_mysql::Secret::new("Xx-marker-xX");
    let error = clone(&me, meant, CloneOrder { donor: &wrong, over: Some(&own), spared: &spared }, soon()).await;
    let error = error.unwrap_err();
    assert!(error.code() == Some(3862) && error.to_string().contains("Access denied"), "{error}");
    assert!(!format!("{error} {error:?}").contains("Xx-marker-xX"));
    assert_eq!((pair(&mut rogue).await, executed(&mut rogue).await), ((1, 1), own.clone()));

    // The right one; its supervisor is this test.
    let cloning = tokio::spawn({
        let (me, from, spared, own) = (me.clone(), from.clone(), spared.clone(), own.clone());
        async move { clone(&me, meant, CloneOrder { donor: &from, over: Some(&own), spared: &spared }, soon()).await }
    });
    until("the recipient ends itself", || !servers[1].is_running());
    servers[1].restart().unwrap();
    let reading = match cloning.await.unwrap().unwrap() {
        Guarded::Acted(reading) => *reading,
        Guarded::Refused { why, .. } => panic!("refused: {why}"),
    };
    assert!(reading.pair.is_fenced() && reading.user_data && reading.replica.is_none(), "{reading:?}");
    assert_eq!((reading.executed, reading.purged), (Some(all.clone()), Some(all.clone())), "all its history is purged");
    assert_eq!(Wanted::Only(reading.server_uuid), meant, "its identity is its own");
    let mut session = Session::open(&me, soon()).await.unwrap();
    let status = clone_status(&mut session, soon()).await.unwrap().unwrap();
    assert_eq!((status.state, status.code, status.executed), (CloneState::Completed, 0, Some(all.clone())));
    assert_eq!(status.source, format!("127.0.0.1:{}", servers[0].port()));
    let stages = clone_progress(&mut session, soon()).await.unwrap();
    assert!(stages.iter().all(|stage| stage.state == CloneState::Completed), "{stages:?}");
    assert!(stages.iter().any(|stage| stage.name == "FILE COPY" && stage.copied > 0), "{stages:?}");

    // And it can follow.
    run(&mut writer, "INSERT INTO app.t (v) VALUES (4)").await;
    let all = executed(&mut writer).await;
    attach(&me, meant, &source(&servers[0]), &all, &spared, soon()).await.unwrap();
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap());
}
