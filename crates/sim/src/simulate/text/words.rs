//! The words of one line, taken one by one.
//!
//! In: a line. Out: words as what they should be, or what was expected instead. Must not: guess.

use crate::simulate::clock::{MS, SEC, Time};
use crate::simulate::net::End;
use crate::simulate::scenario::SITES;
use std::str::SplitWhitespace;

pub(super) struct Words<'a> {
    left: SplitWhitespace<'a>,
    sites: usize,
    operators: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str, sites: usize, operators: usize) -> Self {
        Self { left: line.split_whitespace(), sites, operators }
    }

    pub(super) fn next(&mut self, wanted: &str) -> Result<&'a str, String> {
        self.left.next().ok_or_else(|| format!("expected {wanted}, found the end of the line"))
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

    pub(super) fn number(&mut self, what: &str) -> Result<u64, String> {
        let word = self.next(what)?;
        word.parse().map_err(|_| format!("`{word}` is not {what}"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, String> {
        let word = self.next("a number of seconds")?;
        word.parse().map_err(|_| format!("`{word}` is not a number of seconds"))
    }

    pub(super) fn within(&mut self, what: &str, least: u64, most: u64) -> Result<u64, String> {
        let number = self.number(what)?;
        let fits = (least..=most).contains(&number);
        if fits { Ok(number) } else { Err(format!("{number} is not {what} from {least} to {most}")) }
    }

    /// `12s`, `12.5s`, `300ms`; never negative, at most an hour.
    pub(super) fn time(&mut self) -> Result<Time, String> {
        let word = self.next("a time such as 12.5s or 300ms")?;
        let bad = || format!("`{word}` is not a time; write 12.5s or 300ms");
        if word.starts_with('-') {
            return Err(format!("`{word}` is negative"));
        }
        let (digits, unit) = match word.strip_suffix("ms") {
            Some(digits) => (digits, MS),
            None => (word.strip_suffix('s').ok_or_else(bad)?, SEC),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let whole: Time = whole.parse().map_err(|_| bad())?;
        if part.len() > 6 || !part.chars().all(|digit| digit.is_ascii_digit()) {
            return Err(bad());
        }
        let scaled: Time = format!("{part:0<6}").parse().map_err(|_| bad())?;
        let time = whole.checked_mul(unit).and_then(|time| time.checked_add(scaled * unit / 1_000_000));
        time.filter(|time| *time <= 3600 * SEC).ok_or_else(|| format!("`{word}` is more than an hour"))
    }

    pub(super) fn site(&mut self) -> Result<usize, String> {
        let word = self.next("a site")?;
        self.site_named(word)
    }

    fn site_named(&self, word: &str) -> Result<usize, String> {
        let known = SITES.get(..self.sites).unwrap_or(&SITES);
        let number = known.iter().position(|name| *name == word);
        number.ok_or_else(|| format!("`{word}` is not a site; this group has {}", known.join(", ")))
    }

    pub(super) fn end_point(&mut self) -> Result<End, String> {
        let word = self.next("store, operator, clients or a site")?;
        self.named(word)
    }

    pub(super) fn named(&self, word: &str) -> Result<End, String> {
        match word {
            "store" => Ok(End::Store),
            "clients" => Ok(End::Clients),
            "operator" | "operator-0" => Ok(End::Operator(0)),
            "operator-1" if self.operators > 1 => Ok(End::Operator(1)),
            "operator-1" => Err("there is one operator only; write `operators 2` first".to_owned()),
            word => self.site_named(word).map(End::Site),
        }
    }

    pub(super) fn two_ends(&mut self) -> Result<(End, End), String> {
        let (from, to) = (self.end_point()?, self.end_point()?);
        if from == to { Err("a link has two ends".to_owned()) } else { Ok((from, to)) }
    }
}
