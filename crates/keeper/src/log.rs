//! The log: one JSON object a line on stdout.
//!
//! In: entries. Out: lines, written by a thread of their own. Must not: make the caller wait for stdout, whatever holds
//! it up (then lines are lost, and the next one that gets through says how many); tell a secret.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::clock;

/// How many lines may wait for a stdout that is held up: more than the keeper says in a day.
const WAITING: usize = 256;

/// How long the last lines may take when the keeper ends.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The writer calls a handful of functions.
const STACK: usize = 128 << 10;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warn,
    Error,
}

/// One line to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    level: Level,
    event: &'static str,
    msg: String,
    fields: Vec<(&'static str, Value)>,
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i128),
    Text(String),
}

impl Entry {
    pub(crate) fn new(level: Level, event: &'static str, msg: impl Into<String>) -> Self {
        Self { level, event, msg: msg.into(), fields: Vec::new() }
    }

    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((key, value.into()));
        self
    }

    /// The line, its end included.
    fn line(&self, time: &str) -> String {
        let level = match self.level {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        let Self { event, msg, fields, .. } = self;
        let mut line = format!(r#"{{"time":"{time}","level":"{level}","msg":{},"event":"{event}""#, Quoted(msg));
        line.push_str(r#","component":"keeper""#);
        for (key, value) in fields {
            // Writing to a string cannot fail.
            let _ = match value {
                Value::Number(number) => write!(line, r#","{key}":{number}"#),
                Value::Text(text) => write!(line, r#","{key}":{}"#, Quoted(text)),
            };
        }
        line.push_str("}\n");
        line
    }
}

macro_rules! numbers {
    ($($from:ty),*) => { $(impl From<$from> for Value {
        fn from(number: $from) -> Self {
            Self::Number(number.into())
        }
    })* };
}
numbers!(i32, u32, u64);

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A text as JSON has it.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// The way to stdout.
pub(crate) struct Log {
    lines: Option<SyncSender<String>>,
    ended: Receiver<()>,
    lost: u64,
}

impl Log {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(WAITING);
        let (end, ended) = sync_channel(1);
        let write = move || {
            // Ends when the sender is dropped.
            for line in waiting {
                // What stdout does not take is lost; there is no other place to say so.
                let _ = std::io::stdout().lock().write_all(line.as_bytes());
            }
            let _ = end.send(());
        };
        std::thread::Builder::new().name("log".into()).stack_size(STACK).spawn(write)?;
        Ok(Self { lines: Some(lines), ended, lost: 0 })
    }

    pub(crate) fn say(&mut self, entry: &Entry) {
        let Some(lines) = &self.lines else { return };
        let time = rfc3339(clock::wall());
        if self.lost > 0 {
            let entry = Entry::new(Level::Warn, "LogLost", "stdout was held up").with("count", self.lost);
            if lines.try_send(entry.line(&time)).is_ok() {
                self.lost = 0;
            }
        }
        if lines.try_send(entry.line(&time)).is_err() {
            self.lost += 1;
        }
    }
}

impl Drop for Log {
    /// Gives the last lines their time, and no more.
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.ended.recv_timeout(LAST_WORDS);
    }
}

/// Nanoseconds since 1970 as RFC 3339 in UTC.
fn rfc3339(nanoseconds: u64) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let (seconds, fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (days, of_day) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z")
}

/// Year, month and day of a day since 1970. Years begin in March here, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    // 719468 days lie between 0000-03-01 and 1970-01-01; 146097 days are 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_json_object() {
        let entry = Entry::new(Level::Error, "Odd", "a \"b\" \\ \n\u{1}").with("code", -1).with("path", "é".to_owned());
        assert_eq!(
            entry.line("T"),
            "{\"time\":\"T\",\"level\":\"error\",\"msg\":\"a \\\"b\\\" \\\\ \\n\\u0001\",\"event\":\"Odd\",\
             \"component\":\"keeper\",\"code\":-1,\"path\":\"é\"}\n"
        );
    }

    #[test]
    fn times_are_utc() {
        let check = |seconds: u64, nanos: u64, expect: &str| {
            assert_eq!(rfc3339(seconds * 1_000_000_000 + nanos), expect);
        };
        check(0, 0, "1970-01-01T00:00:00.000000000Z");
        check(951_782_399, 1, "2000-02-28T23:59:59.000000001Z");
        check(951_782_400, 0, "2000-02-29T00:00:00.000000000Z");
        check(1_709_164_800, 0, "2024-02-29T00:00:00.000000000Z");
        check(1_735_689_599, 999_999_999, "2024-12-31T23:59:59.999999999Z");
        check(4_107_542_400, 0, "2100-03-01T00:00:00.000000000Z");
    }
}
