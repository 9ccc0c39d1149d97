//! Servers that stand still: deadlines hold, and what was given up does not land when the server goes on.

use super::world::*;
use bloodraven_mysql::{Deadline, Error, Poller, Session, Wanted, attach, fence, fence_over, poll, replica, sessions};
use bloodraven_testbed::mysql::start_many;
use mysql_async::prelude::Queryable as _;
use std::time::Duration;

/// What a deadline may be missed by: the machine is busy.
const SLACK: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_hold_and_nothing_lands_when_a_server_goes_on() {
    let servers = start_many([site("still-source"), site("still")]).unwrap();
    let (me, mut admin) = (login(&servers[1]), root(&servers[1]).await);
    let all = executed(&mut opened(&servers[0]).await).await;
    attach(&me, Wanted::Any, &source(&servers[0]), &all, &spared(), soon()).await.unwrap();
    run(&mut admin, "SET GLOBAL read_only = OFF").await;
    let mut watcher = Poller::new(me.clone());
    watcher.poll(soon()).await.unwrap();
    let to_fence = Session::open(&me, soon()).await.unwrap();
    let mut to_stop = Session::open(&me, soon()).await.unwrap();

    servers[1].pause().unwrap();
    let limit = Duration::from_millis(400);
    let (polled, took) = timed(watcher.poll(Deadline::within(limit))).await;
    assert!(matches!(polled, Err(Error::TimedOut { .. })) && took < limit + SLACK, "{polled:?} after {took:?}");
    let (polled, took) = timed(watcher.poll(Deadline::within(limit))).await;
    assert!(matches!(polled, Err(Error::TimedOut { doing: "connect", .. })) && took < limit + SLACK, "{polled:?}");
    let (stopped, took) = timed(replica::stop(&mut to_stop, Wanted::Any, Deadline::within(limit))).await;
    assert!(matches!(stopped, Err(Error::TimedOut { .. })) && took < limit + SLACK, "{stopped:?}");
    assert!(!to_stop.is_usable());
    let again = replica::stop(&mut to_stop, Wanted::Any, soon()).await.unwrap_err();
    assert!(matches!(again, Error::Lost { .. }), "a session that was given up is not used again: {again}");
    drop(to_stop);
    // The statement lies in the server's buffer (F-28, F-38): its own expiry keeps it from running later.
    let (fenced, took) = timed(fence_over(to_fence, Wanted::Any, &spared(), Deadline::within(limit))).await;
    let unfenced = fenced.map(drop).unwrap_err();
    assert!(unfenced.left.is_some() && took < limit + SLACK, "{unfenced} after {took:?}");
    let (fenced, took) = timed(fence(&me, Wanted::Any, &spared(), Deadline::within(limit))).await;
    assert!(fenced.unwrap_err().left.is_none() && took < limit + SLACK, "nothing was sent");
    servers[1].resume().unwrap();

    // Whoever needs to know sees the session gone, and then it is certain.
    let left = unfenced.left.unwrap();
    sessions::end_marked(&me, Wanted::Any, &left, soon()).await.unwrap();
    let reading = Poller::new(me).poll(soon()).await.unwrap();
    assert_eq!((reading.pair.read_only, reading.pair.super_read_only), (false, false), "no fence landed");
    let replica = reading.replica.unwrap();
    assert!(replica.applier_running, "no STOP REPLICA landed");
}

#[tokio::test(flavor = "multi_thread")]
async fn f_38_a_fence_that_waits_on_a_server_that_stands_still_is_ended_before_a_grant() {
    let server = site("stuck").start().unwrap();
    let (me, mut admin) = (login(&server), opened(&server).await);
    let mut holder = raw(&server, "monitor", "app").await;
    run(&mut holder, "LOCK TABLES app.t WRITE").await;
    let fencing = tokio::spawn({
        let me = me.clone();
        async move { fence(&me, Wanted::Any, &spared(), within_ms(900)).await }
    });
    let waiting = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'SET GLOBAL read_only%'";
    until_number(&mut admin, waiting, 1).await;
    server.pause().unwrap();
    let unfenced = fencing.await.unwrap().unwrap_err();
    let left = unfenced.left.clone().unwrap_or_else(|| panic!("nobody could see it gone: {unfenced}"));
    server.resume().unwrap();
    sessions::end_marked(&me, Wanted::Any, &left, soon()).await.unwrap();
    run(&mut holder, "UNLOCK TABLES").await;
    assert_eq!(pair(&mut admin).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn f_44_fences_of_an_earlier_life_are_found_by_their_purpose_and_never_land() {
    let server = site("stray").start().unwrap();
    let (me, mut admin) = (login(&server), opened(&server).await);
    let mut holder = raw(&server, "monitor", "app").await;
    run(&mut holder, "LOCK TABLES app.t WRITE").await;
    let fence_for = |purpose: &'static str| {
        let server = me.clone().with_purpose(purpose);
        tokio::spawn(async move { fence(&server, Wanted::Any, &spared(), soon()).await })
    };
    let (ours, another) = (fence_for("ours"), fence_for("another's"));
    let waiting = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'SET GLOBAL read_only%'";
    until_number(&mut admin, waiting, 2).await;

    let mut session = Session::open(&me, soon()).await.unwrap();
    let refused = sessions::end_purpose(&mut session, stranger(), "ours", soon()).await.unwrap_err();
    assert!(matches!(refused, Error::WrongServer { .. }), "{refused}");
    sessions::end_purpose(&mut session, Wanted::Any, "ours", within_ms(2000)).await.unwrap();
    assert_eq!(
        ask::<(i64,)>(&mut admin, waiting).await,
        (1,),
        "gone while the lock is still held; the other one waits on"
    );
    assert!(ours.await.unwrap().is_err());
    sessions::end_purpose(&mut session, Wanted::Any, "another's", within_ms(2000)).await.unwrap();
    assert!(another.await.unwrap().is_err());
    run(&mut holder, "UNLOCK TABLES").await;
    assert_eq!(pair(&mut admin).await, (0, 0), "and nothing landed when the lock was let go");
}

#[tokio::test(flavor = "multi_thread")]
async fn f_28_an_opening_in_flight_is_gone_before_a_fence_counts() {
    let server = site("opening").start().unwrap();
    let (me, mut admin) = (login(&server), root(&server).await);
    let opener = || raw_options(&server, OPENER, "opener").tcp_port(server.admin_port().unwrap());
    let mut queued = within("the opener", mysql_async::Conn::new(opener())).await;
    let idle = within("the opener", mysql_async::Conn::new(opener())).await;
    // The statement lies in the buffer of a server that stands still, and its sender dies.
    server.pause().unwrap();
    let sent = tokio::time::timeout(Duration::from_millis(100), queued.query_drop("SET GLOBAL read_only = OFF")).await;
    assert!(sent.is_err(), "no answer");
    drop(queued);
    server.resume().unwrap();

    let mut session = Session::open(&me, soon()).await.unwrap();
    let refused = sessions::end_account(&mut session, stranger(), OPENER, soon()).await.unwrap_err();
    assert!(matches!(refused, Error::WrongServer { .. }), "{refused}");
    sessions::end_account(&mut session, Wanted::Any, OPENER, within_ms(2000)).await.unwrap();
    let left = "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'bloodraven_opener'";
    assert_eq!(ask::<(i64,)>(&mut admin, left).await, (0,));
    assert!(fence(&me, Wanted::Any, &spared(), within_ms(1500)).await.unwrap().is_fenced());
    assert!(poll(&mut session, soon()).await.unwrap().pair.is_fenced());
    drop(idle);
}
