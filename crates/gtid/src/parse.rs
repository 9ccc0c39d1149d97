//! From text to values.
//!
//! In: the text of a GTID set, GTID, UUID or tag. Out: the value, or the first place where the text goes wrong. Accepts and
//! refuses what `GTID_SUBSET` of MySQL 9.7 does (the crate's documentation has the list). Must not: look back, or take
//! more memory than a fixed multiple of the text.

use std::str::FromStr;

use crate::build::Builder;
use crate::error::{ParseError, Problem};
use crate::gtid::{Gtid, Source};
use crate::interval::{Interval, MAX_NUMBER};
use crate::set::GtidSet;
use crate::tag::Tag;
use crate::uuid::Uuid;

/// The longest text that is parsed: 16 MiB, about a million intervals.
///
/// Real sets have a handful of intervals, and those of servers with many holes some thousands. The bound keeps the worst
/// text (tags that alternate, one short interval each) below a gigabyte of memory; such a text takes 750 MiB.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

impl FromStr for GtidSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Scanner::new(text)?.set()
    }
}

/// A place in a text. It moves over ASCII characters only, so it never stands inside a character.
///
/// Every loop here moves forward with each turn, so the length of the text is its bound.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// The beginning of a text.
    pub(crate) fn new(text: &'a str) -> Result<Self, ParseError> {
        if text.len() > MAX_TEXT_BYTES {
            let end = text.floor_char_boundary(MAX_TEXT_BYTES);
            return Err(ParseError::new(Problem::TextTooLong, text, end));
        }
        Ok(Self { text, at: 0 })
    }

    /// A whole set: entries between commas, each of which may be empty.
    fn set(mut self) -> Result<GtidSet, ParseError> {
        let mut builder = Builder::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Ok(builder.finish()),
                Some(b',') => self.at += 1,
                Some(_) => self.entry(&mut builder)?,
            }
        }
    }

    /// One entry: a UUID, then intervals and tags, each after a colon. Ends before a comma or at the end.
    fn entry(&mut self, builder: &mut Builder) -> Result<(), ParseError> {
        let mut source = Source::from(self.uuid()?);
        builder.begin(source);
        let mut unless_delimiter = Problem::ExpectedDelimiter;
        loop {
            self.skip_space();
            if !self.eat(b':') {
                return match self.peek() {
                    None | Some(b',') => Ok(()),
                    Some(_) => Err(self.error(unless_delimiter)),
                };
            }
            self.skip_space();
            if self.peek().is_some_and(begins_tag) {
                source.tag = Some(self.tag()?);
                builder.begin(source);
                unless_delimiter = Problem::ExpectedDelimiter;
            } else {
                unless_delimiter = self.interval(builder)?;
            }
        }
    }

    /// One interval: `5` or `5-9`. Adds nothing if it ends before it starts. Says what must follow it.
    fn interval(&mut self, builder: &mut Builder) -> Result<Problem, ParseError> {
        let start = self.number(1, Problem::ExpectedNumberOrTag)?;
        self.skip_space();
        let (end, unless_delimiter) = if self.eat(b'-') {
            self.skip_space();
            // The server takes `1-0` for an empty interval, and `0-0` for a mistake.
            (self.number(0, Problem::ExpectedNumber)?, Problem::ExpectedDelimiter)
        } else {
            (start, Problem::ExpectedDashOrDelimiter)
        };
        if let Some(interval) = Interval::new(start, end) {
            builder.push(interval);
        }
        Ok(unless_delimiter)
    }

    /// A whole single GTID: a UUID, perhaps a tag, a number.
    pub(crate) fn gtid(mut self) -> Result<Gtid, ParseError> {
        self.skip_space();
        let mut source = Source::from(self.uuid()?);
        self.colon()?;
        if self.peek().is_some_and(begins_tag) {
            source.tag = Some(self.tag()?);
            self.colon()?;
        }
        let start = self.at;
        let unless_digit = if source.tag.is_some() { Problem::ExpectedNumber } else { Problem::ExpectedNumberOrTag };
        let number = self.number(1, unless_digit)?;
        self.skip_space();
        self.end()?;
        Gtid::new(source, number).ok_or_else(|| ParseError::new(Problem::NumberOutOfRange, self.text, start))
    }

    /// A UUID: dashed, 32 bare digits, or dashed in braces.
    #[inline]
    pub(crate) fn uuid(&mut self) -> Result<Uuid, ParseError> {
        match self.rest().first_chunk().and_then(canonical_uuid) {
            Some(uuid) => {
                self.at += CANONICAL_UUID_LENGTH;
                Ok(uuid)
            }
            None => self.unusual_uuid(),
        }
    }

    /// A UUID in any spelling, character by character; finds the place of a mistake.
    fn unusual_uuid(&mut self) -> Result<Uuid, ParseError> {
        let in_braces = self.eat(b'{');
        let mut bytes = [0; 16];
        let mut dashed = in_braces;
        for (index, byte) in bytes.iter_mut().enumerate() {
            // The first dash decides whether there are any; in braces there must be.
            if index == 4 && !in_braces {
                dashed = self.peek() == Some(b'-');
            }
            if dashed && matches!(index, 4 | 6 | 8 | 10) && !self.eat(b'-') {
                return Err(self.error(Problem::ExpectedDash));
            }
            *byte = (self.hex_digit()? << 4) | self.hex_digit()?;
        }
        if in_braces && !self.eat(b'}') {
            return Err(self.error(Problem::ExpectedClosingBrace));
        }
        Ok(Uuid::from_bytes(bytes))
    }

    fn hex_digit(&mut self) -> Result<u8, ParseError> {
        let value = self.peek().map_or(NOT_HEX, hex_value);
        if value == NOT_HEX {
            return Err(self.error(Problem::ExpectedHexDigit));
        }
        self.at += 1;
        Ok(value)
    }

    /// A tag.
    pub(crate) fn tag(&mut self) -> Result<Tag, ParseError> {
        if !self.peek().is_some_and(begins_tag) {
            return Err(self.error(Problem::ExpectedTag));
        }
        let rest = self.rest();
        let length = rest.iter().position(|&byte| !continues_tag(byte)).unwrap_or(rest.len());
        let tag = rest.get(..length).and_then(Tag::from_checked).ok_or_else(|| self.error(Problem::TagTooLong))?;
        self.at += length;
        Ok(tag)
    }

    /// A number from `least` to [`MAX_NUMBER`], with any number of leading zeros.
    fn number(&mut self, least: u64, unless_digit: Problem) -> Result<u64, ParseError> {
        let start = self.at;
        let mut number = self.digit().ok_or_else(|| self.error(unless_digit))?;
        while let Some(digit) = self.digit() {
            // Once out of range it stays there: saturation is far above the range.
            number = number.saturating_mul(10).saturating_add(digit);
        }
        if (least..=MAX_NUMBER).contains(&number) {
            Ok(number)
        } else {
            Err(ParseError::new(Problem::NumberOutOfRange, self.text, start))
        }
    }

    /// The end of the text.
    pub(crate) fn end(&self) -> Result<(), ParseError> {
        if self.at == self.text.len() { Ok(()) } else { Err(self.error(Problem::ExpectedEnd)) }
    }

    /// A colon with any white space around it.
    fn colon(&mut self) -> Result<(), ParseError> {
        self.skip_space();
        if !self.eat(b':') {
            return Err(self.error(Problem::ExpectedColon));
        }
        self.skip_space();
        Ok(())
    }

    #[inline]
    fn digit(&mut self) -> Option<u64> {
        let byte = self.peek().filter(u8::is_ascii_digit)?;
        self.at += 1;
        Some(u64::from(byte - b'0'))
    }

    #[inline]
    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    #[inline]
    fn eat(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn error(&self, problem: Problem) -> ParseError {
        ParseError::new(problem, self.text, self.at)
    }
}

/// White space as C's `isspace` has it, which is one more than Rust's `is_ascii_whitespace`: the vertical tab.
#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[inline]
fn begins_tag(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

#[inline]
fn continues_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of a UUID as servers print it.
const CANONICAL_UUID_LENGTH: usize = 36;

/// What [`hex_value`] says of a character that is no digit.
const NOT_HEX: u8 = 0xff;

const HEX_VALUES: [u8; 256] = {
    let mut values = [NOT_HEX; 256];
    let mut digit = 0;
    while digit < 16 {
        let lower = b"0123456789abcdef"[digit as usize];
        values[lower as usize] = digit;
        values[lower.to_ascii_uppercase() as usize] = digit;
        digit += 1;
    }
    values
};

#[inline]
fn hex_value(byte: u8) -> u8 {
    HEX_VALUES[usize::from(byte)]
}

/// A UUID with dashes and without braces, in half the time that character by character takes: the text of a set of many
/// servers is mostly UUIDs.
#[inline]
fn canonical_uuid(text: &[u8; CANONICAL_UUID_LENGTH]) -> Option<Uuid> {
    const PAIRS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut bytes = [0; 16];
    let mut seen = 0;
    for (byte, at) in bytes.iter_mut().zip(PAIRS) {
        let (high, low) = (hex_value(text[at]), hex_value(text[at + 1]));
        seen |= high | low;
        *byte = (high << 4) | low;
    }
    let dashed = [8, 13, 18, 23].iter().all(|&at: &usize| text[at] == b'-');
    (dashed && seen < 16).then_some(Uuid::from_bytes(bytes))
}
