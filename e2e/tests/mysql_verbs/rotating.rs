//! New passwords: who is let in, with which of two, and what a channel logs in with.

use super::world::*;
use bloodraven_mysql::{Account, Error, Server, Session, Wanted, attach, rotation, sets};
use bloodraven_testbed::mysql::start_many;

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_told_by_its_password_and_earlier_accounts_are_tried() {
    let server = site("two-keys").start().unwrap();
    let me = login(&server);
    drop(opened(&server).await);
    let mut session = Session::open(&me, soon()).await.unwrap();
    let (app, wrong) = (Account::new("app", "app"), Account::new("app", "no"));
    // The administrators' port is not for it; its password is compared first.
    assert_eq!(rotation::refusal(&me, &app, soon()).await.unwrap(), None);
    assert_eq!(rotation::refusal(&me, &wrong, soon()).await.unwrap(), Some(1045));

    // Its own password, with no right but those of the contract; the one before stays good until it is discarded.
    let new = Account::new(OPERATOR, "two");
    rotation::set_password(&mut session, Wanted::Any, &new, "%", true, soon()).await.unwrap();
    let newest = Server { account: new.clone(), ..me.clone() };
    Session::open(&me, soon()).await.unwrap();
    Session::open(&newest, soon()).await.unwrap();
    let users = ["app", OPERATOR, "no such"];
    let there = rotation::accounts(&mut session, &users, "%", soon()).await.unwrap();
    assert_eq!(there, [("app".to_owned(), false), (OPERATOR.to_owned(), true)].into());
    rotation::discard_password(&mut session, Wanted::Any, OPERATOR, "%", soon()).await.unwrap();
    assert!(!rotation::accounts(&mut session, &users, "%", soon()).await.unwrap()[OPERATOR]);
    assert!(Session::open(&me, soon()).await.unwrap_err().is_login());
    rotation::discard_password(&mut session, Wanted::Any, OPERATOR, "%", soon()).await.unwrap();

    // One that is put back while it is the second is set once more before the other goes.
    let back = Account::new("app", "app");
    rotation::set_password(&mut session, Wanted::Any, &Account::new("app", "next"), "%", true, soon()).await.unwrap();
    assert_eq!(rotation::refusal(&newest, &back, soon()).await.unwrap(), None, "as the second");
    rotation::set_password(&mut session, Wanted::Any, &back, "%", false, soon()).await.unwrap();
    rotation::discard_password(&mut session, Wanted::Any, "app", "%", soon()).await.unwrap();
    assert_eq!(rotation::refusal(&newest, &back, soon()).await.unwrap(), None);
    assert_eq!(rotation::refusal(&newest, &Account::new("app", "next"), soon()).await.unwrap(), Some(1045));

    // Whoever has a newer one than the server gets in with the one before; where none is right the first refusal is told.
    let ahead = Server { account: Account::new(OPERATOR, "three"), ..me.clone() }.with_earlier(vec![new.clone()]);
    assert_eq!(*Session::open(&ahead, soon()).await.unwrap().account(), new);
    let lost = Server { account: Account::new(OPERATOR, "three"), ..me }.with_earlier(vec![wrong]);
    let refused = Session::open(&lost, soon()).await.unwrap_err();
    assert!(refused.is_login() && refused.to_string().contains(OPERATOR), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_takes_up_a_new_password_and_loses_nothing() {
    let servers = start_many([site("sets"), site("follows")]).unwrap();
    let (mut writer, follower) = (opened(&servers[0]).await, login(&servers[1]));
    let all = executed(&mut writer).await;
    attach(&follower, Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap();
    let mut session = Session::open(&follower, soon()).await.unwrap();
    let old = source(&servers[0]).account;
    let new = Account::new(REPLICATION, "n'\\w");
    let mut at_source = Session::open(&login(&servers[0]), soon()).await.unwrap();
    assert_eq!(rotation::channel_has(&mut at_source, &old, soon()).await.unwrap(), None);
    assert_eq!(rotation::channel_has(&mut session, &old, soon()).await.unwrap(), Some(true));
    assert_eq!(rotation::channel_has(&mut session, &new, soon()).await.unwrap(), Some(false));
    let fenced = rotation::set_password(&mut session, Wanted::Any, &new, "%", true, soon()).await.unwrap_err();
    assert_eq!(fenced.code(), Some(1290), "a replica is not changed: {fenced}");

    rotation::set_password(&mut at_source, Wanted::Any, &new, "%", false, soon()).await.unwrap();
    rotation::renew_channel(&mut session, Wanted::Any, &new, soon()).await.unwrap();
    assert_eq!(rotation::channel_has(&mut session, &new, soon()).await.unwrap(), Some(true));
    run(&mut writer, "INSERT INTO app.t (v) VALUES (1)").await;
    let all = executed(&mut writer).await;
    assert!(sets::wait_for(&mut session, &all, LIMIT / 2, soon()).await.unwrap(), "it is connected with the new one");
    let at_replica = login(&servers[1]);
    assert_eq!(rotation::refusal(&at_replica, &new, soon()).await.unwrap(), None, "it came by the binary log");
    assert_eq!(rotation::refusal(&at_replica, &old, soon()).await.unwrap(), Some(1045));

    // Received and not applied: the server would delete it.
    let mut admin = root(&servers[1]).await;
    run(&mut admin, "STOP REPLICA SQL_THREAD").await;
    run(&mut writer, "INSERT INTO app.t (v) VALUES (2)").await;
    let last = executed(&mut writer).await;
    let received = format!(
        "SELECT GTID_SUBSET('{}', RECEIVED_TRANSACTION_SET) FROM performance_schema.replication_connection_status",
        last.subtract(&all).compact()
    );
    until_number(&mut admin, &received, 1).await;
    let kept = rotation::renew_channel(&mut session, Wanted::Any, &old, soon()).await.unwrap_err();
    assert!(matches!(kept, Error::Unsafe { .. }), "{kept}");
    assert_eq!(rotation::channel_has(&mut session, &new, soon()).await.unwrap(), Some(true));
    let running = "SELECT COUNT(*) FROM performance_schema.replication_connection_status WHERE SERVICE_STATE <> 'OFF'";
    until_number(&mut admin, running, 1).await;
}
