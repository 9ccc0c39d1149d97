//! Kubernetes quantities (`500Gi`, `1500m`, `1e3`), read exactly, so that code compares them as the API server does.
//!
//! In: text. Out: a value in billionths that orders correctly across suffixes. Must not: use floating point, or accept
//! what the API server's `isQuantity` refuses.

use snafu::Snafu;

/// The longest text that the schema admits where a rule reads a quantity.
pub const MAX_TEXT_LENGTH: usize = 32;

/// A quantity in billionths, capped like in Kubernetes at 2^63-1 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    billionths: i128,
}

/// A text that is no quantity.
#[derive(Debug, Snafu, PartialEq, Eq)]
#[snafu(display("{text:?} is no quantity; write a number with a suffix such as Mi, Gi or Ti"))]
pub struct ParseError {
    text: String,
}

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        read(text).map(|billionths| Self { billionths }).ok_or_else(|| ParseError { text: text.to_owned() })
    }

    /// Whether it is more than nothing.
    pub fn is_positive(self) -> bool {
        self.billionths > 0
    }
}

const LARGEST: i128 = (i64::MAX as i128) * BILLION;
const BILLION: i128 = 1_000_000_000;

fn read(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let number_length = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number_length);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    // No digits at all are a zero to Kubernetes.
    if part.contains('.') {
        return None;
    }
    let (binary, decimal) = exponents(suffix)?;
    let magnitude = scale(&format!("{whole}{part}"), part.len(), binary, decimal);
    Some(if negative { -magnitude } else { magnitude })
}

/// Powers of 1024 and of 10 that a suffix stands for.
fn exponents(suffix: &str) -> Option<(u32, i32)> {
    let plain = match suffix {
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (1, 0),
        "Mi" => (2, 0),
        "Gi" => (3, 0),
        "Ti" => (4, 0),
        "Pi" => (5, 0),
        "Ei" => (6, 0),
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?;
            return power.parse::<i32>().ok().map(|p| (0, p));
        }
    };
    Some(plain)
}

/// `digits` with `places` of them after the point, times 1024^binary, times 10^decimal, in billionths; precision
/// below a billionth rounds up, size above the largest is cut to it, both as Kubernetes does.
fn scale(digits: &str, places: usize, binary: u32, decimal: i32) -> i128 {
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return 0;
    }
    let Some(mantissa) = significant.parse::<i128>().ok().and_then(|m| m.checked_mul(1024_i128.pow(binary))) else {
        return LARGEST;
    };
    let power = i64::from(decimal) + 9 - i64::try_from(places).unwrap_or(i64::MAX);
    let Ok(shift) = u32::try_from(power.unsigned_abs()) else {
        return if power > 0 { LARGEST } else { 1 };
    };
    if power >= 0 {
        10_i128.checked_pow(shift).and_then(|p| mantissa.checked_mul(p)).map_or(LARGEST, |v| v.min(LARGEST))
    } else {
        10_i128.checked_pow(shift).map_or(1, |p| (mantissa / p + i128::from(mantissa % p != 0)).min(LARGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text<TAB>value in billionths`, or `text<TAB>error`: what `resource.ParseQuantity` of Kubernetes answered.
    const KUBERNETES_SAYS: &str = include_str!("../testdata/quantities.tsv");

    #[test]
    fn values_are_read_as_kubernetes_reads_them() {
        let mut lines = 0;
        for line in KUBERNETES_SAYS.lines().filter(|l| !l.starts_with('#')) {
            let (text, expect) = line.split_once('\t').expect("two columns");
            match expect {
                "error" => assert!(Quantity::parse(text).is_err(), "{text:?}"),
                // Kubernetes cuts some giants to the largest and not others; here all are cut.
                value => {
                    let value = value.parse::<i128>().map_or(LARGEST, |v| v.min(LARGEST));
                    assert_eq!(Quantity::parse(text).expect(text).billionths, value, "{text:?}");
                }
            }
            lines += 1;
        }
        assert!(lines > 200, "the table has only {lines} lines");
    }

    #[test]
    fn order_is_by_value_whatever_the_suffix() {
        let ascending = [
            "-1", "0", "1n", "1u", "1m", "0.5", "1", "1.5", "1Ki", "1025", "15e2", "1501", "1M", "1Mi", "1G", "1Gi",
            "1.5Gi", "2Gi", "1T", "1Ti", "1P", "1Pi", "1E", "1Ei", "9e30",
        ];
        let values: Vec<Quantity> = ascending.iter().map(|t| Quantity::parse(t).expect(t)).collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    }

    #[test]
    fn equal_values_are_equal_in_any_spelling() {
        for (a, b) in [
            ("1Gi", "1024Mi"),
            ("1500m", "1.5"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("+5", "5"),
            ("0.1n", "1n"),
            ("1.", "1"),
            (".5", "500m"),
        ] {
            assert_eq!(Quantity::parse(a), Quantity::parse(b), "{a} and {b}");
        }
    }

    #[test]
    fn what_kubernetes_refuses_is_refused() {
        for text in ["", "1 Gi", "1gi", "1KB", "1.5.5", "--1", "1e", "1e1.5", "ten", "1Gi ", "0x10"] {
            assert!(Quantity::parse(text).is_err(), "{text:?}");
        }
    }
}
