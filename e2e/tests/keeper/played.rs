//! The keeper with a shell script in mysqld's place: lines, floods, stops, and what only a namespace of one's own shows.
//!
//! In: clients of every kind. Out: proof that each line is answered once and that nobody holds up the dead man. Must not:
//! need a server.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

use bloodraven_keeper::protocol::{DEAD_MAN, FENCE_WAIT, Permit, Refusal, Reply, Request, Unasked};
use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait::Stopwatch;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;

use crate::signal;
use crate::support::talk::Talk;
use crate::support::{self, Bed, boot, runs};

/// F-32: neither garbage nor floods nor clients that do not read, nor a stdout that takes nothing, hold up the dead man.
#[test]
fn nobody_holds_up_the_dead_man() {
    let mut bed = Bed::played("garbage", "exec sleep 1000");
    let full = full_pipe(&bed);
    bed.through(&["sh", "-c", &format!("exec \"$0\" \"$@\" > {}", bed.at("pipe").display())]);
    bed.start();
    let status = bed.until("the keeper listens", || Talk::status(&bed.at("k")).filter(|it| it.start.is_some()));
    let mut talk = bed.hello();
    let deadline = talk.permit(status.start.unwrap(), 500);

    let mut mute = Vec::new();
    let watch = Stopwatch::start();
    let mut rounds = 0;
    while runs(status.pid.unwrap()) {
        assert!(watch.elapsed() < support::LIMIT, "the dead man never came");
        rounds += 1;
        if mute.len() < 60 {
            mute.extend(pester(&bed, rounds));
        }
        let mut reader = Talk::connect(&bed.at("k"));
        let _ = reader.as_mut().and_then(|reader| reader.send("status").ok());
    }
    let gone = boot();
    assert!(gone >= deadline + DEAD_MAN, "gone {gone}, deadline {deadline}");
    say(&format!("gone {} ms after the deadline, beside {rounds} rounds of garbage", gone - deadline));
    // The session was never pushed out by the crowd.
    assert_eq!(talk.word(), Unasked::Exited { start: status.start.unwrap(), code: 137 });
    assert_eq!(bed.ended().code(), Some(137));
    drop(full);
}

/// A spelled pipe that is full: whoever writes to it waits for ever.
fn full_pipe(bed: &Bed) -> File {
    let path = bed.at("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    let mut pipe = File::options().read(true).write(true).custom_flags(flags).open(path).unwrap();
    // Pipes hold 64 KiB unless told otherwise; the end of the loop is the first write that does not fit.
    while pipe.write(&[b'x'; 4096]).is_ok() {}
    pipe
}

/// Clients of every bad kind; those that are still connected.
fn pester(bed: &Bed, round: usize) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(bed.at("k")).ok()?;
    stream.set_nonblocking(true).ok()?;
    let bytes: Vec<u8> = match round % 4 {
        // Never a line end.
        0 => vec![b'x'; 100_000],
        // Many requests, and not one answer is read.
        1 => b"status\n".repeat(20_000),
        // Not text at all.
        2 => (0..=255).cycle().take(50_000).collect(),
        // Half a request.
        _ => b"permit start=".to_vec(),
    };
    drop(stream.write(&bytes));
    Some(stream)
}

/// Contract 5.3: every line is answered by one line, whatever it is; one that is too long is the last.
#[test]
fn every_line_is_answered_once() {
    let mut bed = Bed::played("lines", "exec sleep 1000");
    bed.start();
    let mut talk = bed.until("the keeper listens", || Talk::connect(&bed.at("k")));
    talk.send("\nopen\nstatus  now\nhello\nkill start=1\nrenew start=1 epoch=1").unwrap();
    let expect = [
        "error why=empty-line",
        "error why=unknown-verb-open",
        "error why=unexpected-word-now",
        "welcome",
        "refused why=other-start",
        "error why=missing-deadline",
    ];
    for expect in expect {
        assert_eq!(talk.line().unwrap().to_string(), expect);
    }
    let mut raw = UnixStream::connect(bed.at("k")).unwrap();
    raw.write_all(b"\xff\xfe\nstatus\n").unwrap();
    raw.write_all(&vec![b'x'; 5000]).unwrap();
    let mut answers = String::new();
    raw.set_read_timeout(Some(support::LIMIT)).unwrap();
    // What was not read when the keeper closed makes the end a reset.
    drop(raw.read_to_string(&mut answers));
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!((answers[0], answers.len()), ("error why=not-utf-8", 3), "{answers:?}");
    assert!(answers[1].starts_with("status pid=") && answers[2] == "error why=line-too-long", "{answers:?}");
    assert!(matches!(talk.ask(Request::Status), Reply::Status(_)), "others are not disturbed");
}

/// Contract 5.3: SIGTERM asks the session for a fence, waits for it five seconds at most, and then stops mysqld.
#[test]
fn a_stop_waits_for_the_fence_but_not_for_ever() {
    let bed = Bed::played("stop", "");
    let up = bed.at("up");
    let script = "trap 'exit 3' TERM; : > UP; while :; do sleep 0.05; done";
    let mut bed = bed.script(&script.replace("UP", &up.display().to_string()));
    // Before the script has set its trap it would end by the signal itself.
    let running = |bed: &mut Bed| {
        let _ = std::fs::remove_file(&up);
        bed.start();
        bed.until("the script has set its trap", || up.exists().then_some(()));
        bed.until("the keeper listens", || Talk::status(&bed.at("k")).filter(|status| status.start.is_some()))
    };
    let check = |bed: &mut Bed, session: bool, fence: bool| {
        let start = running(bed).start.unwrap();
        let mut talk = bed.hello();
        talk.permit(start, 60_000);
        let mut talk = Some(talk).filter(|_| session);
        // Its answer comes after it has seen who is gone.
        assert!(Talk::status(&bed.at("k")).is_some_and(|status| status.permit.is_some()));
        let began = boot();
        signal(Some(bed.keeper().pid()), Signal::TERM);
        if let Some(talk) = &mut talk {
            assert_eq!(talk.word(), Unasked::Stopping);
            let deadline = boot() + 60_000;
            talk.refused(Request::Permit(Permit { start, epoch: 1, deadline }), Refusal::Stopping);
            if fence {
                assert_eq!(talk.ask(Request::Fenced { start }), Reply::Noted);
            }
        }
        assert_eq!(bed.ended().code(), Some(3), "{}", bed.log());
        let waited = bed.log().contains("\"NotFenced\"");
        assert_eq!(waited, session && !fence, "session {session}, fence {fence}: {}", bed.log());
        assert!(!waited || boot() - began >= FENCE_WAIT);
    };
    check(&mut bed, true, true);
    check(&mut bed, true, false);
    check(&mut bed, false, false);
    // The sidecar itself asks.
    running(&mut bed);
    assert_eq!(bed.hello().ask(Request::Stop), Reply::Stopping);
    assert_eq!(bed.ended().code(), Some(3), "{}", bed.log());
}

/// Contract 5.3: as pid 1 of a container the keeper hears SIGTERM and reaps every orphan; and a volume that is full is
/// called so. Both need a namespace of our own.
#[test]
fn it_works_as_pid_1_and_tells_of_a_full_volume() {
    let inside = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let possible = Command::new(inside[0]).args(&inside[1..]).arg("true").status();
    if !possible.is_ok_and(|status| status.success()) {
        return say("this machine gives no namespaces to its users: pid 1 and full volumes were not tried");
    }
    let mut bed = Bed::played("pid1", "");
    let up = bed.at("up");
    let orphans = "trap 'exit 0' TERM; (sleep 0.1 &) ; (sleep 0.1 &) ; : > UP; while :; do sleep 0.05; done";
    bed = bed.script(&orphans.replace("UP", &up.display().to_string()));
    bed.through(&inside);
    bed.start();
    let status = bed.until("the keeper listens", || Talk::status(&bed.at("k")).filter(|status| status.start.is_some()));
    assert!(status.pid.is_some_and(|pid| pid < 10), "in a world of its own: {status}");
    let child = format!("/proc/{0}/task/{0}/children", bed.keeper().pid());
    let pid_1: u32 = bed.until("the keeper runs", || std::fs::read_to_string(&child).ok()?.trim().parse().ok());
    let children = || std::fs::read_to_string(format!("/proc/{pid_1}/task/{pid_1}/children")).unwrap_or_default();
    bed.until("the orphans came and went", || {
        (up.exists() && children().split_whitespace().count() == 1).then_some(())
    });
    signal(Some(pid_1), Signal::TERM);
    assert_eq!(bed.ended().code(), Some(0), "{}", bed.log());

    // mysqld's part is played: it writes until nothing fits.
    let script = "for a; do case $a in --initialize-insecure) yes > DATA/ibdata1; exit 1;; esac; done; exit 7";
    let mut bed = Bed::played("full", "");
    let data = bed.at("data").display().to_string();
    let mount = format!("mount -t tmpfs -o size=2m tmpfs {data} && exec \"$0\" \"$@\"");
    bed = bed.script(&script.replace("DATA", &data));
    bed.through(&[&inside[..], &["sh", "-c", &mount]].concat());
    bed.start();
    assert_eq!(bed.ended().code(), Some(1), "{}", bed.log());
    assert!(bed.log().contains("the data volume is full: 0 MiB are left"), "{}", bed.log());
    assert!(bed.at("state/init-started").exists() && !bed.at("state/init-done").exists());
}
