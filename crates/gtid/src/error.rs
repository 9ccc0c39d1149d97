//! Why a text is not what it should be, and where.
//!
//! In: what the parser met. Out: an error that names the place and what was expected there. Must not: quote the text
//! itself, which may be megabytes; whoever shows the error has it (see [`ParseError::offset`]).

use std::error::Error;
use std::fmt;

use crate::interval::MAX_NUMBER;
use crate::parse::MAX_TEXT_BYTES;
use crate::tag::Tag;

/// A text that is not a GTID set (or a [`Gtid`](crate::Gtid), [`Uuid`](crate::Uuid) or [`Tag`]).
///
/// ```
/// use bloodraven_gtid::{GtidSet, Problem};
///
/// let text = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n3e11fa47-71ca-11e1-9e33-c80aa9429562:7-x";
/// let error = text.parse::<GtidSet>().unwrap_err();
/// assert_eq!(error.problem(), Problem::ExpectedNumber);
/// assert_eq!((error.offset(), error.line(), error.column()), (81, 2, 40));
/// assert_eq!(error.to_string(), "expected a number, found 'x' at byte 81 (line 2, column 40)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    problem: Problem,
    found: Option<char>,
    offset: usize,
    line: usize,
    column: usize,
}

/// What is wrong at the place a [`ParseError`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A digit of a UUID must stand here.
    ExpectedHexDigit,
    /// A dash must stand here: the UUID has dashes elsewhere, or stands in braces.
    ExpectedDash,
    /// The brace around a UUID must close here.
    ExpectedClosingBrace,
    /// A number or a tag must stand here, after a colon.
    ExpectedNumberOrTag,
    /// A number must stand here.
    ExpectedNumber,
    /// A tag must stand here.
    ExpectedTag,
    /// A colon must stand here: a single GTID needs a number.
    ExpectedColon,
    /// The interval, the entry or the text may go on or end here, but not like this, after a number.
    ExpectedDashOrDelimiter,
    /// The entry or the text may go on or end here, but not like this.
    ExpectedDelimiter,
    /// The text must end here.
    ExpectedEnd,
    /// The number that begins here is no transaction number.
    NumberOutOfRange,
    /// The tag that begins here is too long.
    TagTooLong,
    /// The text is longer than [`MAX_TEXT_BYTES`].
    TextTooLong,
}

impl ParseError {
    /// The error for this problem at this byte of the text.
    #[cold]
    pub(crate) fn new(problem: Problem, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            problem,
            found: text.get(offset..).and_then(|rest| rest.chars().next()),
            offset,
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
        }
    }

    /// What is wrong.
    pub const fn problem(&self) -> Problem {
        self.problem
    }

    /// The character at the place; `None` at the end of the text.
    pub const fn found(&self) -> Option<char> {
        self.found
    }

    /// The place: how many bytes of the text come before it.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The line of the place, counted from 1.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The column of the place in its line, in characters, counted from 1.
    pub const fn column(&self) -> usize {
        self.column
    }
}

impl Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)?;
        match (self.problem.is_about_one_character(), self.found) {
            (false, _) => {}
            (true, Some(found)) => write!(f, ", found {found:?}")?,
            (true, None) => f.write_str(", found the end")?,
        }
        write!(f, " at byte {}", self.offset)?;
        if self.line > 1 {
            write!(f, " (line {}, column {})", self.line, self.column)?;
        }
        Ok(())
    }
}

impl Problem {
    /// Whether the character at the place says something; it does not where a whole word is wrong.
    const fn is_about_one_character(self) -> bool {
        !matches!(self, Self::NumberOutOfRange | Self::TagTooLong | Self::TextTooLong)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpectedHexDigit => f.write_str("expected a hexadecimal digit of a UUID"),
            Self::ExpectedDash => f.write_str("expected '-' in the UUID"),
            Self::ExpectedClosingBrace => f.write_str("expected '}' after the UUID"),
            Self::ExpectedNumberOrTag => f.write_str("expected a number or a tag"),
            Self::ExpectedNumber => f.write_str("expected a number"),
            Self::ExpectedTag => f.write_str("expected a tag (a letter or '_', then letters, digits and '_')"),
            Self::ExpectedColon => f.write_str("expected ':'"),
            Self::ExpectedDashOrDelimiter => f.write_str("expected '-', ':', ',' or the end"),
            Self::ExpectedDelimiter => f.write_str("expected ':', ',' or the end"),
            Self::ExpectedEnd => f.write_str("expected the end"),
            Self::NumberOutOfRange => write!(f, "number out of range (1 to {MAX_NUMBER})"),
            Self::TagTooLong => write!(f, "tag longer than {} characters", Tag::MAX_LENGTH),
            Self::TextTooLong => write!(f, "text longer than {MAX_TEXT_BYTES} bytes"),
        }
    }
}
