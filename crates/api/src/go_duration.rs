//! Durations in the form that Go prints and Kubernetes users write: `300ms`, `1.5h`, `2m30s`.
//!
//! In: text (`FromStr`, serde) or whole units. Out: a count of nanoseconds that is never negative, and Go's canonical
//! text (`5m0s`, `1.5s`). Must not: accept what Go refuses, differ from Go by a nanosecond, or hold a negative value.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use snafu::Snafu;

use crate::schema::DURATION_FORMAT;

/// The longest text that the schema admits; the longest canonical text (`2562047h47m16.854775807s`) has 24 characters.
pub const MAX_TEXT_LENGTH: usize = 64;

/// A duration of zero to about 292 years, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

/// Why a text is no duration.
#[derive(Debug, Snafu, PartialEq, Eq)]
#[snafu(visibility(pub(crate)))]
pub enum ParseError {
    /// Nothing was given.
    #[snafu(display("a duration is empty; write a number and a unit, e.g. 30s"))]
    Empty,
    /// A minus sign was given.
    #[snafu(display("duration {text:?} is negative; write 0s or more"))]
    Negative {
        /// What was given.
        text: String,
    },
    /// A place where a number has to stand holds something else.
    #[snafu(display("duration {text:?} has no number where one is due; write e.g. 2m30s"))]
    NoNumber {
        /// What was given.
        text: String,
    },
    /// A number without a unit.
    #[snafu(display("duration {text:?} has a number without a unit; write e.g. 30s (ns, us, ms, s, m, h)"))]
    NoUnit {
        /// What was given.
        text: String,
    },
    /// A unit that Go does not know.
    #[snafu(display("duration {text:?} has the unknown unit {unit:?}; use ns, us, ms, s, m or h"))]
    UnknownUnit {
        /// What was given.
        text: String,
        /// The unit in it.
        unit: String,
    },
    /// More than 64 bits of nanoseconds.
    #[snafu(display("duration {text:?} is too long; the most is 2562047h47m16s"))]
    Overflow {
        /// What was given.
        text: String,
    },
}

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = Self { nanos: 0 };

    /// So many milliseconds.
    pub const fn from_millis(millis: u32) -> Self {
        Self { nanos: millis as i64 * 1_000_000 }
    }

    /// So many seconds.
    pub const fn from_secs(secs: u32) -> Self {
        Self { nanos: secs as i64 * 1_000_000_000 }
    }

    /// So many minutes.
    pub const fn from_mins(mins: u32) -> Self {
        Self { nanos: mins as i64 * 60_000_000_000 }
    }

    /// So many nanoseconds; `None` if negative.
    pub const fn from_nanos(nanos: i64) -> Option<Self> {
        if nanos < 0 { None } else { Some(Self { nanos }) }
    }

    /// The count of nanoseconds, never negative.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The same as a `std` duration.
    pub const fn as_std(self) -> Duration {
        Duration::from_nanos(self.nanos.unsigned_abs())
    }

    /// This many times as long, or the longest there is.
    #[must_use]
    pub const fn saturating_mul(self, factor: u32) -> Self {
        Self { nanos: self.nanos.saturating_mul(factor as i64) }
    }
}

impl From<GoDuration> for Duration {
    fn from(duration: GoDuration) -> Self {
        duration.as_std()
    }
}

impl FromStr for GoDuration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let unsigned = match text.as_bytes().first() {
            None => return EmptySnafu.fail(),
            Some(b'-') => return NegativeSnafu { text }.fail(),
            Some(b'+') => text.get(1..).unwrap_or_default(),
            Some(_) => text,
        };
        if unsigned == "0" {
            return Ok(Self::ZERO);
        }
        if unsigned.is_empty() {
            return NoNumberSnafu { text }.fail();
        }
        let mut rest = unsigned;
        let mut total: u64 = 0;
        // Bounded: every round takes at least one character off `rest`.
        while !rest.is_empty() {
            let (term, after) = leading_term(text, rest)?;
            total = total.checked_add(term).filter(|t| *t <= LIMIT).ok_or_else(|| overflow(text))?;
            rest = after;
        }
        let nanos = i64::try_from(total).map_err(|_| overflow(text))?;
        Ok(Self { nanos })
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos;
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", Fraction { value: nanos, digits: 3 }),
            1_000_000..1_000_000_000 => write!(f, "{}ms", Fraction { value: nanos, digits: 6 }),
            _ => {
                let minutes = nanos / 60_000_000_000;
                let (hours, minutes) = (minutes / 60, minutes % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", Fraction { value: nanos % 60_000_000_000, digits: 9 })
            }
        }
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": MAX_TEXT_LENGTH, "format": DURATION_FORMAT })
    }
}

/// Go computes in unsigned 64 bits up to and including this value and takes the sign into account at the end.
const LIMIT: u64 = 1 << 63;

/// A decimal number with `digits` places after the point, printed without trailing zeros.
struct Fraction {
    value: i64,
    digits: u32,
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = 10_i64.pow(self.digits);
        let (whole, part) = (self.value / scale, self.value % scale);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let places = format!("{part:0width$}", width = self.digits as usize);
        write!(f, "{whole}.{}", places.trim_end_matches('0'))
    }
}

fn overflow(text: &str) -> ParseError {
    OverflowSnafu { text }.build()
}

/// Reads one number with its unit off `rest`; gives its nanoseconds and what follows.
fn leading_term<'a>(text: &str, rest: &'a str) -> Result<(u64, &'a str), ParseError> {
    let whole_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut rest) = rest.split_at(whole_digits);
    let mut fraction = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        let digits = after_point.bytes().take_while(u8::is_ascii_digit).count();
        (fraction, rest) = after_point.split_at(digits);
    }
    if whole.is_empty() && fraction.is_empty() {
        return NoNumberSnafu { text }.fail();
    }
    let unit_length = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit_name, rest) = rest.split_at(unit_length);
    if unit_name.is_empty() {
        return NoUnitSnafu { text }.fail();
    }
    let Some(unit) = unit_nanos(unit_name) else {
        return UnknownUnitSnafu { text, unit: unit_name }.fail();
    };
    let mut nanos =
        leading_int(whole).and_then(|v| v.checked_mul(unit)).filter(|v| *v <= LIMIT).ok_or_else(|| overflow(text))?;
    let (part, scale) = leading_fraction(fraction);
    if part > 0 {
        nanos = nanos
            .checked_add(fraction_nanos(part, scale, unit))
            .filter(|v| *v <= LIMIT)
            .ok_or_else(|| overflow(text))?;
    }
    Ok((nanos, rest))
}

fn unit_nanos(name: &str) -> Option<u64> {
    match name {
        "ns" => Some(1),
        // Both code points of the micro sign, U+00B5 and U+03BC, as in Go.
        "us" | "\u{b5}s" | "\u{3bc}s" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        _ => None,
    }
}

fn leading_int(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    digits.parse::<u64>().ok().filter(|v| *v <= LIMIT)
}

/// The digits after the point as an integer and the power of ten below it; digits beyond 63 bits are dropped, as in Go.
fn leading_fraction(digits: &str) -> (u64, f64) {
    let mut value: u64 = 0;
    let mut scale: f64 = 1.0;
    for digit in digits.bytes() {
        if value > (LIMIT - 1) / 10 {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value, scale)
}

/// Go multiplies in floating point here; the same operations in the same order give the same nanosecond.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rounding of Go's own conversion is what is wanted; the value is below one unit, so it fits"
)]
fn fraction_nanos(part: u64, scale: f64, unit: u64) -> u64 {
    (part as f64 * (unit as f64 / scale)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `input<TAB>nanoseconds<TAB>canonical text`, or `input<TAB>error`: what Go's `time.ParseDuration` and
    /// `Duration.String` answered.
    const GO_SAYS: &str = include_str!("../testdata/go_durations.tsv");

    #[test]
    fn parses_and_prints_as_go_does() {
        let mut lines = 0;
        for line in GO_SAYS.lines().filter(|l| !l.starts_with('#')) {
            let mut columns = line.split('\t');
            let input = columns.next().expect("a first column");
            let second = columns.next().expect("a second column");
            let ours = input.parse::<GoDuration>();
            if second == "error" || second.starts_with('-') || input.starts_with('-') {
                assert!(ours.is_err(), "{input:?} must be refused, got {ours:?}");
            } else {
                let ours = ours.unwrap_or_else(|e| panic!("{input:?}: {e}"));
                assert_eq!(ours.as_nanos().to_string(), second, "{input:?}");
                assert_eq!(ours.to_string(), columns.next().expect("a third column"), "{input:?}");
            }
            lines += 1;
        }
        assert!(lines > 300, "the table has only {lines} lines");
    }

    #[test]
    fn refusals_name_the_fix() {
        check_refusal("", "write a number and a unit");
        check_refusal("-5s", "write 0s or more");
        check_refusal("-0", "write 0s or more");
        check_refusal("5", "number without a unit");
        check_refusal("+", "no number where one is due");
        check_refusal("s", "no number where one is due");
        check_refusal("5 s", "unknown unit \" s\"");
        check_refusal("5d", "unknown unit \"d\"");
        check_refusal("9999999999h", "too long");
    }

    fn check_refusal(input: &str, expect: &str) {
        let message = input.parse::<GoDuration>().expect_err(input).to_string();
        assert!(message.contains(expect), "{input:?}: {message}");
    }

    #[test]
    fn constructors_agree_with_the_text() {
        assert_eq!(GoDuration::from_millis(1500).to_string(), "1.5s");
        assert_eq!(GoDuration::from_secs(90).to_string(), "1m30s");
        assert_eq!(GoDuration::from_mins(60).to_string(), "1h0m0s");
        assert_eq!(GoDuration::from_nanos(-1), None);
        assert_eq!(GoDuration::from_secs(3).saturating_mul(3), GoDuration::from_secs(9));
        assert_eq!(GoDuration::from_secs(2).as_std(), Duration::from_secs(2));
    }

    proptest! {
        #[test]
        fn every_value_survives_its_own_text(nanos in 0..=i64::MAX) {
            let duration = GoDuration::from_nanos(nanos).expect("not negative");
            prop_assert_eq!(duration.to_string().parse::<GoDuration>().expect("canonical"), duration);
            let json = serde_json::to_string(&duration).expect("json");
            prop_assert_eq!(serde_json::from_str::<GoDuration>(&json).expect("json"), duration);
        }

        #[test]
        fn no_text_makes_it_panic_or_negative(text in "[-+.0-9nuµmsh ]{0,24}") {
            if let Ok(duration) = text.parse::<GoDuration>() {
                prop_assert!(duration.as_nanos() >= 0);
            }
        }
    }
}
