//! A keeper that is killed, with a shell in the place of mysqld: what its lock says.

#![expect(clippy::unwrap_used, reason = "helpers of tests: what goes wrong ends the test, and says so")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bloodraven_keeper::protocol::lock_of;
use rustix::event::poll;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::Timespec;

/// A folder that is removed in the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("keeper-killed-{}", std::process::id()));
        std::fs::create_dir_all(path.join("data")).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("k.sock")
    }

    /// A keeper whose server writes down its own number and that of a child, which would outlive it.
    fn keeper(&self) -> Child {
        let folder = self.0.display();
        let server = format!(
            "case \"$*\" in *initialize*) echo x > {folder}/data/x; exit 0;; esac; \
             sleep 1000 & echo $$ $! > {folder}/new; mv {folder}/new {folder}/numbers; wait"
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_keeper"));
        command.arg("--socket").arg(self.socket());
        for (name, below) in [("--state-dir", "state"), ("--run-dir", "run"), ("--datadir", "data")] {
            command.arg(name).arg(self.0.join(below));
        }
        command.args(["--", "sh", "-c", &server, "server"]).stdin(Stdio::null()).spawn().unwrap()
    }

    fn numbers(&self) -> [i32; 2] {
        until("the server runs", || self.0.join("numbers").exists());
        let text = std::fs::read_to_string(self.0.join("numbers")).unwrap();
        let numbers: Vec<i32> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Looks a hundred times a second, for twenty seconds.
fn until(what: &str, is: impl Fn() -> bool) {
    let mut looks = 0;
    while !is() {
        looks += 1;
        assert!(looks < 2000, "{what}: not in time");
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 }));
    }
}

fn is_free(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|file| file.try_lock_shared().is_ok())
}

fn is_gone(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// The server dies with its keeper; the lock waits for the last one that has it, whoever that is.
#[test]
fn the_lock_of_a_killed_keeper_is_free_when_nothing_of_it_is_left() {
    let place = Place::new();
    let lock = lock_of(&place.socket());
    let mut keeper = place.keeper();
    let [server, last] = place.numbers();
    assert!(!is_free(&lock) && place.socket().exists());
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    until("the server dies with its keeper", || is_gone(server));
    assert!(!is_gone(last) && !is_free(&lock), "its last child lives");
    kill_process(Pid::from_raw(last).unwrap(), Signal::KILL).unwrap();
    until("nothing is left", || is_free(&lock));
}
