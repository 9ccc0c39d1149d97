//! Processes of our own: `sh` and `sleep` stand in for the servers.

use super::*;
use crate::testing::Folder;

const LONG: Duration = Duration::from_mins(1);

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn start(folder: &Folder, script: &str) -> Process {
    Process::spawn(shell(script), "shell", folder.path().join("log")).unwrap()
}

/// The letter of `/proc/<pid>/stat`: `S` asleep, `T` stopped; nothing when the process is gone.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn a_killed_process_is_gone_and_leaves_no_zombie() {
    let folder = Folder::new();
    let process = start(&folder, "exec sleep 1000");
    let pid = process.pid();
    assert!(process.is_running() && state(pid).is_some());
    assert!(!process.kill().unwrap().success());
    assert_eq!(state(pid), None);
    assert!(!process.is_running());
    assert_eq!(process.kill().unwrap(), process.kill().unwrap(), "a second kill is fine");
}

#[test]
fn a_dropped_process_is_gone_with_its_group_even_when_paused() {
    let folder = Folder::new();
    let process = start(&folder, "sleep 1000 & echo $!; wait");
    let grandchild = wait::until(LONG, || process.log_tail(1).parse::<u32>().ok()).unwrap();
    let pid = process.pid();
    process.pause().unwrap();
    drop(process);
    assert_eq!(state(pid), None);
    // The grandchild is not ours to wait for: it is gone, or a zombie until the system's first process takes it.
    let gone = wait::until(LONG, || matches!(state(grandchild), None | Some('Z')).then_some(()));
    assert!(gone.is_some(), "{grandchild} is {:?}", state(grandchild));
}

#[test]
fn a_paused_process_stands_still_until_resumed() {
    let folder = Folder::new();
    let process = start(&folder, "exec sleep 1000");
    process.pause().unwrap();
    assert!(state(process.pid()) == Some('T') && process.is_running(), "it stands still once pause returns");
    process.resume().unwrap();
    let going = wait::until(LONG, || (state(process.pid()) != Some('T')).then_some(()));
    assert!(going.is_some() && process.is_running());
}

#[test]
fn terminate_lets_a_process_end_itself_even_when_paused() {
    let folder = Folder::new();
    let process = start(&folder, "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    assert!(wait::until(LONG, || (process.log_tail(1) == "ready").then_some(())).is_some());
    process.pause().unwrap();
    assert_eq!(process.terminate(LONG).unwrap().code(), Some(7));
}

#[test]
fn terminate_kills_what_does_not_listen() {
    use std::os::unix::process::ExitStatusExt as _;
    let folder = Folder::new();
    let process = start(&folder, "trap '' TERM; echo ready; while :; do sleep 0.01; done");
    assert!(wait::until(LONG, || (process.log_tail(1) == "ready").then_some(())).is_some());
    assert_eq!(process.terminate(Duration::from_millis(50)).unwrap().signal(), Some(9));
}

#[test]
fn an_ended_process_tells_how_and_takes_no_signals() {
    let folder = Folder::new();
    let process = start(&folder, "exit 3");
    assert_eq!(process.wait(LONG).unwrap().and_then(|status| status.code()), Some(3));
    assert_eq!(process.terminate(LONG).unwrap().code(), Some(3));
    let error = process.pause().unwrap_err();
    assert!(matches!(error, Error::Ended { what: "pause", .. }), "{error}");
    assert!(matches!(process.resume().unwrap_err(), Error::Ended { what: "resume", .. }));
}

#[test]
fn a_process_started_by_a_short_thread_outlives_that_thread() {
    let folder = Folder::new();
    let process = std::thread::scope(|scope| scope.spawn(|| start(&folder, "exec sleep 1000")).join().unwrap());
    // A signal sent at the end of the thread would be there before this question is answered.
    assert_eq!(process.wait(Duration::from_millis(100)).unwrap(), None);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let folder = Folder::new();
    let error = Process::spawn(Command::new("/no/such/program"), "ghost", folder.path().join("log")).unwrap_err();
    assert!(error.to_string().starts_with("ghost: cannot start /no/such/program:"), "{error}");
    let error = Process::spawn(shell("true"), "ghost", folder.path().join("no/log")).unwrap_err();
    assert!(error.to_string().contains("/no/log"), "{error}");
}

#[test]
fn a_run_ends_with_success_or_with_the_last_words() {
    let folder = Folder::new();
    let log = folder.path().join("log");
    let run = |script: &str, limit| run(shell(script), "step", &log, limit).map_err(|error| error.to_string());
    assert_eq!(run("echo fine", LONG), Ok(()));
    let failed = run("echo first; echo 'no route' >&2; exit 5", LONG).unwrap_err();
    assert!(failed.starts_with("step: exit status: 5") && failed.ends_with("first | no route"), "{failed}");
    let late = run("echo slow; exec sleep 1000", Duration::from_millis(200)).unwrap_err();
    assert!(late.contains("no end after 0 s") && late.ends_with("slow"), "{late}");
}

#[test]
fn the_tail_of_a_log_is_its_last_lines() {
    let folder = Folder::new();
    let log = folder.path().join("log");
    let check = |text: &str, lines, expect: &str| {
        std::fs::write(&log, text).unwrap();
        assert_eq!(tail(&log, lines), expect, "{lines} of {text:?}");
    };
    check("", 3, "");
    check("a\nb\nc\n", 2, "b\nc");
    check("a\nb\nc", 2, "b\nc");
    check("a\n", 5, "a");
    check("a\nb\n", 0, "");
    check(&format!("{}\nlast", "x".repeat(200_000)), 1, "last");
    assert_eq!(tail(Path::new("/no/such/file"), 3), "");
}

#[test]
fn a_short_program_is_fed_read_and_ended_when_it_takes_too_long() {
    let said = output(&mut shell("cat; echo no >&2; exit 3"), "text", LONG).unwrap();
    assert_eq!((said.status.code(), &said.stdout[..], &said.stderr[..]), (Some(3), &b"text"[..], &b"no\n"[..]));
    let large = output(&mut shell("head -c 1000000 /dev/zero"), "", LONG).unwrap();
    assert_eq!(large.stdout.len(), 1_000_000);
    let watch = wait::Stopwatch::start();
    let error = output(&mut shell("sleep 1000 & sleep 1000"), "", Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(watch.elapsed() < LONG, "what it started does not hold it up");
}
