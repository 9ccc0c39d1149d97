//! Starting programs. In: a command. Out: its success, its output, or an error that shows the command.
//!
//! Output streams through as it comes; a program that is silent for a while gets a heartbeat line, so that a person
//! always sees that something goes on.

use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a program may be silent before a heartbeat is printed.
const SILENCE: Duration = Duration::from_secs(15);

/// Runs with the terminal's own input and output.
pub(crate) fn inherit(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", show(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", show(command));
    }
    Ok(())
}

/// Runs and returns what the program wrote to its standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", show(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}: {}", show(command), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs, passes every line on to the terminal and to `each`, and keeps the person informed.
pub(crate) fn stream(name: &str, command: &mut Command, each: impl FnMut(&str)) -> Result<()> {
    stream_as("", name, command, each)
}

/// The same for one of several that run at a time: each line begins with whose it is.
pub(crate) fn stream_as(whose: &str, name: &str, command: &mut Command, mut each: impl FnMut(&str)) -> Result<()> {
    let shown = show(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {shown}"))?;
    let (lines, inbox) = mpsc::sync_channel(256);
    forward(child.stdout.take(), lines.clone());
    forward(child.stderr.take(), lines);
    let began = now();
    loop {
        match inbox.recv_timeout(SILENCE) {
            Ok(line) => {
                each(&line);
                print_line(&format!("{whose}{line}"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                print_line(&format!("{whose}xtask: {name} is still at work, {} s", began.elapsed().as_secs()));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().with_context(|| format!("cannot wait for {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// The clock of this program, for the table of what ran and how long.
#[expect(clippy::disallowed_methods, reason = "chores are timed for people; nothing is decided on it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn forward(source: Option<impl Read + Send + 'static>, lines: mpsc::SyncSender<String>) {
    let Some(source) = source else { return };
    std::thread::spawn(move || {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        // Ends with the program's output; text that is not UTF-8 is shown as well as it can be.
        while matches!(source.read_until(b'\n', &mut line), Ok(read) if read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if lines.send(text).is_err() {
                break;
            }
        }
    });
}

fn print_line(line: &str) {
    // A closed terminal is no reason to stop the work half-way.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn show(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
