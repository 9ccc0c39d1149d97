//! A mistake in a text, shown to a person.
//!
//! In: the text and the error. Out: the line with the mistake and a caret under it. Must not: flood a terminal: of a long
//! line only the part around the mistake is shown.

use std::fmt;

use bloodraven_gtid::ParseError;

/// How many characters of the line are shown before the mistake: a UUID and an interval.
const BEFORE: usize = 60;

/// How many characters of the line are shown from the mistake on.
const AFTER: usize = 30;

/// A line of text with a caret under one of its characters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    line: String,
    caret: usize,
}

impl Pointer {
    /// Points at the place that the error names in the text.
    pub(crate) fn new(text: &str, error: &ParseError) -> Self {
        let line = text.split('\n').nth(error.line() - 1).unwrap_or_default();
        let at = error.column() - 1;
        let from = at.saturating_sub(BEFORE);
        let head = if from > 0 { "..." } else { "" };
        let tail = if line.chars().nth(at + AFTER).is_some() { "..." } else { "" };
        let shown: String = line.chars().skip(from).take(at + AFTER - from).map(visible).collect();
        Self { line: format!("{head}{shown}{tail}"), caret: head.len() + at - from }
    }
}

/// One column for one character: tabs and other control characters would move the caret or do worse to a terminal.
fn visible(character: char) -> char {
    match character {
        '\t' => ' ',
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}\n  {:caret$}^", self.line, "", caret = self.caret)
    }
}

#[cfg(test)]
mod tests {
    use bloodraven_gtid::GtidSet;

    use super::Pointer;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[track_caller]
    fn check(text: &str, line: &str, caret: usize) {
        let error = text.parse::<GtidSet>().expect_err(text);
        assert_eq!(Pointer::new(text, &error), Pointer { line: line.to_owned(), caret });
    }

    #[test]
    fn the_caret_stands_under_the_mistake() {
        check("x", "x", 0);
        check(&format!("{UUID}:"), &format!("{UUID}:"), 37);
        check(&format!("{UUID}:1,\n {UUID}:,\n"), &format!(" {UUID}:,"), 38);
        check(&format!("\t{UUID}:1\0"), &format!(" {UUID}:1\u{fffd}"), 39);
    }

    #[test]
    fn only_the_neighbourhood_of_a_long_line_is_shown() {
        let many = ":1-5".repeat(1000);
        check(&format!("{UUID}{many};{many}"), &format!("...{}{};{}...", "", ":1-5".repeat(15), &many[..29]), 63);
        check(&format!("{UUID};{many}"), &format!("{UUID};{}...", &many[..29]), 36);
        check(&format!("{UUID}{many};"), &format!("...{};", ":1-5".repeat(15)), 63);
    }
}
