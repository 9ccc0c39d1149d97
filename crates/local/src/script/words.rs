//! The words of one line, taken one by one.
//!
//! In: a line. Out: words as what they should be, or what was expected instead. Must not: guess.

use super::act::{End, Process};
use std::iter::Peekable;
use std::str::SplitWhitespace;
use std::time::Duration;

pub(super) struct Words<'a> {
    left: Peekable<SplitWhitespace<'a>>,
    sites: &'a [String],
    operators: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str, sites: &'a [String], operators: usize) -> Self {
        Self { left: line.split_whitespace().peekable(), sites, operators }
    }

    pub(super) fn next(&mut self, wanted: &str) -> Result<&'a str, String> {
        self.left.next().ok_or_else(|| format!("expected {wanted}, found the end of the line"))
    }

    /// Takes the word if it is the next one.
    pub(super) fn takes(&mut self, word: &str) -> bool {
        self.left.next_if_eq(&word).is_some()
    }

    pub(super) fn optional(&mut self) -> Option<&'a str> {
        self.left.next()
    }

    pub(super) fn rest(&mut self) -> String {
        self.left.by_ref().collect::<Vec<_>>().join(" ")
    }

    pub(super) fn exactly(&mut self, word: &str) -> Result<(), String> {
        let found = self.next(&format!("`{word}`"))?;
        if found == word { Ok(()) } else { Err(format!("expected `{word}`, found `{found}`")) }
    }

    pub(super) fn end(&mut self) -> Result<(), String> {
        self.left.next().map_or(Ok(()), |word| Err(format!("`{word}` is too much")))
    }

    pub(super) fn within(&mut self, what: &str, least: usize, most: usize) -> Result<usize, String> {
        let word = self.next(what)?;
        let number: usize = word.parse().map_err(|_| format!("`{word}` is not {what}"))?;
        let fits = (least..=most).contains(&number);
        if fits { Ok(number) } else { Err(format!("{number} is not {what} from {least} to {most}")) }
    }

    /// Takes the next word if it is a number.
    pub(super) fn optional_number(&mut self) -> Option<u64> {
        let number = self.left.peek()?.parse().ok()?;
        self.left.next();
        Some(number)
    }

    /// `pdx,iad`.
    pub(super) fn site_list(&mut self) -> Result<Vec<String>, String> {
        self.next("sites with commas between them")?.split(',').map(|word| self.site_named(word)).collect()
    }

    pub(super) fn time(&mut self) -> Result<Duration, String> {
        time(self.next("a time such as 12.5s or 300ms")?)
    }

    /// The time that is left in the line, if there is one.
    pub(super) fn optional_time(&mut self) -> Result<Option<Duration>, String> {
        self.left.next().map(time).transpose()
    }

    pub(super) fn site(&mut self) -> Result<String, String> {
        let word = self.next("a site")?;
        self.site_named(word)
    }

    fn site_named(&self, word: &str) -> Result<String, String> {
        let found = self.sites.iter().find(|name| *name == word);
        found.cloned().ok_or_else(|| format!("`{word}` is not a site; this group has {}", self.sites.join(", ")))
    }

    pub(super) fn end_point(&mut self) -> Result<End, String> {
        let word = self.next("operator, clients or a site")?;
        self.named(word)
    }

    fn named(&self, word: &str) -> Result<End, String> {
        match word {
            "clients" => Ok(End::Clients),
            "operator" | "operator-0" => Ok(End::Operator(0)),
            "operator-1" if self.operators > 1 => Ok(End::Operator(1)),
            "operator-1" => Err("there is one operator only; write `operators 2` first".to_owned()),
            "store" => Err("the store is a folder here: no link leads to it".to_owned()),
            word => self.site_named(word).map(End::Site),
        }
    }

    pub(super) fn two_ends(&mut self) -> Result<(End, End), String> {
        let (from, to) = (self.end_point()?, self.end_point()?);
        if from == to { Err("a link has two ends".to_owned()) } else { Ok((from, to)) }
    }

    /// `mysqld iad`, `mysqld at iad`, `operator`, `leader`.
    pub(super) fn process(&mut self) -> Result<Process, String> {
        let word = self.next("mysqld, keeper, sidecar or an operator")?;
        let kind: fn(String) -> Process = match word {
            "mysqld" => Process::Mysqld,
            "keeper" => Process::Keeper,
            "sidecar" => Process::Sidecar,
            "leader" => return Ok(Process::Leader),
            other => match self.named(other)? {
                End::Operator(number) => return Ok(Process::Operator(number)),
                _ => return Err(format!("`{other}` is not a process; write mysqld, keeper or sidecar before a site")),
            },
        };
        self.takes("at");
        self.site().map(kind)
    }
}

/// `12s`, `12.5s`, `300ms`; never negative, at most an hour.
fn time(word: &str) -> Result<Duration, String> {
    let bad = || format!("`{word}` is not a time; write 12.5s or 300ms");
    if word.starts_with('-') {
        return Err(format!("`{word}` is negative"));
    }
    let (digits, unit) = match word.strip_suffix("ms") {
        Some(digits) => (digits, 1_000),
        None => (word.strip_suffix('s').ok_or_else(bad)?, 1_000_000),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    if part.len() > 6 || !part.chars().all(|digit| digit.is_ascii_digit()) {
        return Err(bad());
    }
    let scaled: u64 = format!("{part:0<6}").parse().map_err(|_| bad())?;
    let micros = whole.checked_mul(unit).and_then(|micros| micros.checked_add(scaled * unit / 1_000_000));
    let time = micros.map(Duration::from_micros).filter(|time| *time <= Duration::from_hours(1));
    time.ok_or_else(|| format!("`{word}` is more than an hour"))
}
