//! Whole milliseconds in Go's form: `300ms`, `1.5s`, `1m30s`.
//!
//! In: milliseconds, or text. Out: Go's canonical text, or milliseconds. Must not: round, or accept a sign.

use bloodraven_brain::time::Millis;

/// More digits than this on either side of the point say nothing about milliseconds.
const MAX_DIGITS: usize = 20;

/// The longest text that is read; the longest canonical one (`5124095576030h25m51.615s`) has 24 characters.
const MAX_TEXT_BYTES: usize = 64;

/// The canonical text.
pub(crate) fn print(length: Millis) -> String {
    let millis = length.0;
    if millis == 0 {
        return "0s".into();
    }
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (hours, minutes, rest) = (millis / 3_600_000, millis / 60_000 % 60, millis % 60_000);
    let before = match (hours, minutes) {
        (0, 0) => String::new(),
        (0, minutes) => format!("{minutes}m"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    };
    let seconds = format!("{}.{:03}", rest / 1000, rest % 1000);
    format!("{before}{}s", seconds.trim_end_matches('0').trim_end_matches('.'))
}

/// The length that a text of numbers and units (`h`, `m`, `s`, `ms`) says; none if it says none, or no whole milliseconds.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    if text.is_empty() || text.len() > MAX_TEXT_BYTES {
        return None;
    }
    if text == "0" {
        return Some(Millis(0));
    }
    let mut rest = text;
    let mut total: u64 = 0;
    // Bounded: every round takes a number and a unit off `rest`.
    while !rest.is_empty() {
        let (millis, after) = leading_term(rest)?;
        total = total.checked_add(millis)?;
        rest = after;
    }
    Some(Millis(total))
}

/// Takes one number with its unit off the text.
fn leading_term(text: &str) -> Option<(u64, &str)> {
    let (whole, text) = leading_digits(text);
    let (part, text) = text.strip_prefix('.').map_or(("", text), leading_digits);
    if (whole.is_empty() && part.is_empty()) || whole.len() > MAX_DIGITS || part.len() > MAX_DIGITS {
        return None;
    }
    let unit_length = text.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(text.len());
    let (unit, rest) = text.split_at(unit_length);
    let unit: u64 = match unit {
        "h" => 3_600_000,
        "m" => 60_000,
        "s" => 1000,
        "ms" => 1,
        _ => return None,
    };
    let whole = number(whole)?.checked_mul(u128::from(unit))?;
    let part = part.trim_end_matches('0');
    let scale = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = number(part)?.checked_mul(u128::from(unit))?;
    let millis = (part % scale == 0).then(|| whole.checked_add(part / scale))??;
    Some((u64::try_from(millis).ok()?, rest))
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn number(digits: &str) -> Option<u128> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prints_as_go_does() {
        check_text(0, "0s");
        check_text(1, "1ms");
        check_text(300, "300ms");
        check_text(1000, "1s");
        check_text(1500, "1.5s");
        check_text(1050, "1.05s");
        check_text(20_000, "20s");
        check_text(60_000, "1m0s");
        check_text(90_000, "1m30s");
        check_text(3_600_000, "1h0m0s");
        check_text(3_600_001, "1h0m0.001s");
        check_text(u64::MAX, "5124095576030h25m51.615s");
    }

    fn check_text(millis: u64, text: &str) {
        assert_eq!(print(Millis(millis)), text);
        assert_eq!(parse(text), Some(Millis(millis)), "{text}");
    }

    #[test]
    fn reads_other_texts_of_the_same_grammar() {
        check("0", Some(0));
        check("1500ms", Some(1500));
        check("1.5h", Some(5_400_000));
        check(".5s", Some(500));
        check("1.s", Some(1000));
        check("1s1s", Some(2000));
        check("1.50000000000s", Some(1500));
        check("0.0005m", Some(30));
    }

    #[test]
    fn refuses_what_is_no_length_in_milliseconds() {
        for text in [
            "",
            "-1s",
            "+1s",
            "-0",
            "5",
            "s",
            ".s",
            "1 s",
            " 1s",
            "1s ",
            "1d",
            "1us",
            "1ns",
            "0.5ms",
            "1.0005s",
            "1S",
            "1e3s",
            "99999999999999999999s",
            "18446744073709551616ms",
            "111111111111111111111ms",
            "1.5",
            "1..5s",
            "٣s",
        ] {
            check(text, None);
        }
        check(&"1ms".repeat(22), None);
    }

    fn check(text: &str, expect: Option<u64>) {
        assert_eq!(parse(text), expect.map(Millis), "{text:?}");
    }

    proptest! {
        #[test]
        fn every_length_survives_its_own_text(millis: u64) {
            prop_assert_eq!(parse(&print(Millis(millis))), Some(Millis(millis)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+.0-9nuµmsh ]{0,24}") {
            let _ = parse(&text);
        }
    }
}
