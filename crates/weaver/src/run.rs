//! One run of the test binary. In: the tests to ask, the mutant that is on, a bound. Out: that a test failed, that
//! none did, or that it took too long. Must not: outlive its bound.

use anyhow::{Context as _, Result};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What is set in the environment: a number that is on, or a file for the numbers that are reached.
pub(crate) enum Switch<'a> {
    On(usize),
    Note(&'a Path),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every test passed.
    Passed,
    /// A test failed, or the process ended badly.
    Failed,
    /// It was still at work when its bound was over.
    TooLong,
}

/// Runs these tests, one after the other; ends with the first that fails.
pub(crate) fn run(binary: &Path, tests: &[&str], switch: &Switch<'_>, bound: Duration) -> Result<End> {
    let mut command = Command::new(binary);
    command.args(["--exact", "--test-threads=1"]).args(tests);
    match switch {
        Switch::On(number) => command.env("WOVEN_MUTANT", number.to_string()),
        Switch::Note(path) => command.env("WOVEN_NOTES", path),
    };
    // Nobody reads where it failed, and finding that out takes longer than most tests.
    command.env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
    let end = watch(&mut child, bound);
    // Also of one that has ended already: whatever comes of it, nothing of it is left.
    let _ = child.kill();
    let status = child.wait().context("cannot wait for the tests")?;
    Ok(match end {
        None if status.success() => End::Passed,
        None => End::Failed,
        Some(end) => end,
    })
}

/// None: its output ended, and no test had failed.
fn watch(child: &mut Child, bound: Duration) -> Option<End> {
    let output = child.stdout.take()?;
    let (lines, inbox) = mpsc::sync_channel(64);
    std::thread::spawn(move || {
        // Ends with the program, or when nobody listens any more.
        for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
    });
    let until = now() + bound;
    loop {
        match inbox.recv_timeout(until.saturating_duration_since(now())) {
            Ok(line) => {
                if is_failure(&line) {
                    return Some(End::Failed);
                }
            }
            Err(RecvTimeoutError::Timeout) => return Some(End::TooLong),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn is_failure(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... FAILED")
}

/// The clock of this program.
#[expect(clippy::disallowed_methods, reason = "runs of foreign programs are bounded and timed")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::is_failure;

    #[test]
    fn a_failed_test_is_known_by_its_line() {
        assert!(is_failure("test fence::tests::one ... FAILED"));
        assert!(!is_failure("test fence::tests::one ... ok"));
        assert!(!is_failure("FAILED"));
    }
}
