//! Sessions with a keeper that is played by the test.

use super::*;
use crate::keeper::Keeper;
use crate::testing::Folder;
use bloodraven_brain::fence::Permit;
use bloodraven_brain::time::Boot;
use std::fs::File;
use tokio::io::{Lines, split};
use tokio::net::UnixListener;
use tokio::net::UnixStream as Stream;

const SOON: Duration = Duration::from_secs(10);

struct Played {
    lines: Lines<BufReader<tokio::io::ReadHalf<Stream>>>,
    to: tokio::io::WriteHalf<Stream>,
}

impl Played {
    async fn accept(listener: &UnixListener) -> Self {
        let (stream, _) = timeout(SOON, listener.accept()).await.expect("a client").expect("a client");
        let (from, to) = split(stream);
        let mut played = Self { lines: BufReader::new(from).lines(), to };
        assert_eq!(played.hears().await, "hello");
        played.says("welcome").await;
        assert_eq!(played.hears().await, "status");
        played
    }

    async fn hears(&mut self) -> String {
        timeout(SOON, self.lines.next_line()).await.expect("a line").expect("a line").expect("no end")
    }

    async fn says(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).await.expect("somebody listens");
    }
}

struct Bench {
    folder: Folder,
    listener: UnixListener,
    keeper: Keeper,
    words: mpsc::Receiver<Word>,
    work: tokio::task::JoinHandle<()>,
}

impl Bench {
    fn new() -> Self {
        let folder = Folder::new();
        let socket = folder.path().join("k");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (tell, words) = mpsc::channel(8);
        let (keeper, work) = Keeper::at(socket, tell);
        Self { folder, listener, keeper, words, work: tokio::spawn(work) }
    }

    /// The lock, as the keeper and its mysqld hold it.
    fn lock(&self) -> File {
        let lock = File::create(self.folder.path().join("mysqld.lock")).expect("a file");
        lock.try_lock().expect("nobody has it");
        lock
    }

    async fn word(&mut self) -> Word {
        timeout(SOON, self.words.recv()).await.expect("a word").expect("no end")
    }
}

const RUNNING: &str = "status pid=41 start=7 started=1000 mysqld=running code=- permit=7,12,34567 stopping=0";

fn permit() -> Permit {
    Permit { start: StartId(7), epoch: 12, deadline: Boot(99) }
}

#[tokio::test]
async fn words_come_in_the_order_of_the_keeper() {
    let mut bench = Bench::new();
    let mut played = Played::accept(&bench.listener).await;
    played.says("!exited start=6 code=16").await;
    played.says("!started start=7").await;
    played.says(RUNNING).await;
    assert_eq!(bench.word().await, Word::Connected);
    assert_eq!(bench.word().await, Word::Exited(StartId(6)));
    assert_eq!(bench.word().await, Word::Started(StartId(7)));
    assert!(matches!(bench.word().await, Word::Status(status, 0) if status.permit.is_some()));
    assert_eq!(bench.keeper.known_start(), Some(StartId(7)));
    drop(played);
    assert_eq!(bench.word().await, Word::Lost);
    assert_eq!(bench.keeper.known_start(), None);
    let _again = Played::accept(&bench.listener).await;
    assert_eq!(bench.word().await, Word::Connected);
}

#[tokio::test]
async fn each_answer_goes_to_its_question_and_a_kill_waits_for_its_end() {
    let bench = Bench::new();
    let mut played = Played::accept(&bench.listener).await;
    played.says(RUNNING).await;
    let keeper = bench.keeper.clone();
    let kill = tokio::spawn(async move { keeper.kill(StartId(7), SOON).await });
    assert_eq!(played.hears().await, "kill start=7");
    let keeper = bench.keeper.clone();
    let given = tokio::spawn(async move { keeper.permit(permit(), SOON).await });
    assert_eq!(played.hears().await, "permit start=7 epoch=12 deadline=99");
    played.says("permitted").await;
    assert!(timeout(SOON, given).await.expect("an answer").expect("no panic"));
    bench.keeper.renew(permit());
    assert_eq!(played.hears().await, "renew start=7 epoch=12 deadline=99");
    played.says("renewed").await;
    played.says("killed start=7").await;
    assert!(timeout(SOON, kill).await.expect("an answer").expect("no panic"));
}

/// F-42: a password of another start opens nothing, and is not asked to.
#[tokio::test]
async fn the_password_of_another_start_is_none() {
    let bench = Bench::new();
    let mut played = Played::accept(&bench.listener).await;
    played.says(RUNNING).await;
    for (start, expect) in [(8, false), (7, true)] {
        let keeper = bench.keeper.clone();
        let asked = tokio::spawn(async move { keeper.opener(StartId(7), SOON).await });
        assert_eq!(played.hears().await, "opener");
        played.says(&format!("opener start={start} password=ab")).await;
        assert_eq!(timeout(SOON, asked).await.expect("an answer").expect("no panic").is_some(), expect);
    }
}

/// F-42: what was asked of one keeper never reaches the next.
#[tokio::test]
async fn a_request_dies_with_its_session() {
    let mut bench = Bench::new();
    let played = Played::accept(&bench.listener).await;
    drop(played);
    assert_eq!(bench.word().await, Word::Connected);
    assert_eq!(bench.word().await, Word::Lost);
    assert!(!bench.keeper.permit(permit(), Duration::from_millis(10)).await);
    let mut played = Played::accept(&bench.listener).await;
    played.says(RUNNING).await;
    bench.keeper.ask_status(3);
    assert_eq!(played.hears().await, "status", "nothing of the earlier session comes first");
}

#[tokio::test]
async fn a_sidecar_that_was_superseded_does_not_come_back() {
    let mut bench = Bench::new();
    let mut played = Played::accept(&bench.listener).await;
    played.says("!superseded").await;
    assert_eq!(bench.word().await, Word::Connected);
    assert_eq!(bench.word().await, Word::Superseded);
    timeout(SOON, bench.work).await.expect("it ends").expect("no panic");
}

#[tokio::test]
async fn garbage_ends_the_session() {
    let long = "x".repeat(2 * MAX_LINE);
    for garbage in ["what", "", long.as_str(), "!hello"] {
        let mut bench = Bench::new();
        let mut played = Played::accept(&bench.listener).await;
        played.says(garbage).await;
        assert_eq!(bench.word().await, Word::Connected);
        assert_eq!(bench.word().await, Word::Lost, "{garbage:.10}");
    }
}

#[tokio::test]
async fn a_keeper_that_hangs_is_given_up_and_greeted_again() {
    let mut bench = Bench::new();
    let _silent = Played::accept(&bench.listener).await;
    assert_eq!(bench.word().await, Word::Connected);
    assert_eq!(bench.word().await, Word::Lost);
    let _next = Played::accept(&bench.listener).await;
}

/// The session ends first, then the keeper, then the last process that it started.
#[tokio::test]
async fn the_end_of_keeper_and_mysqld_is_told_when_both_are_gone() {
    let mut bench = Bench::new();
    let keeper = bench.lock();
    let mysqld = keeper.try_clone().expect("a second holder");
    let played = Played::accept(&bench.listener).await;
    assert_eq!(bench.word().await, Word::Connected);
    drop(played);
    assert_eq!(bench.word().await, Word::Lost);
    drop(keeper);
    // A session comes and goes: time enough to tell too early.
    drop(Played::accept(&bench.listener).await);
    assert_eq!(bench.word().await, Word::Connected);
    assert_eq!(bench.word().await, Word::Lost, "mysqld still has the lock");
    drop(mysqld);
    assert_eq!(bench.word().await, Word::Ended);
    bench.lock().unlock().expect("the next keeper is not kept out");
}

/// A lock that nobody held while the keeper surely lived says nothing about its end; neither does a missing one.
#[tokio::test]
async fn a_lock_that_was_not_seen_held_proves_nothing() {
    for made in [false, true] {
        let mut bench = Bench::new();
        if made {
            drop(bench.lock());
        }
        for _ in 0..2 {
            drop(Played::accept(&bench.listener).await);
            assert_eq!(bench.word().await, Word::Connected);
            assert_eq!(bench.word().await, Word::Lost);
        }
    }
}
