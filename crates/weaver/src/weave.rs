//! One text out of the code and all its mutants. In: a file and the places in it. Out: a file in which each mutant is
//! switched on by its number. Must not: behave otherwise than the original while no number is chosen.
//!
//! A changed expression stands beside the original, `if on(7) { a <= b } else { a < b }`, and is written as it was, without
//! the switches inside it: only one mutant is on at a time. So the text grows with the depth of an expression and not
//! with two to the power of it. Lines of comment tell which lines are whose, for the compiler's complaints.

use crate::places::{Form, Mutant, Place};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

/// The module that every woven crate gets.
pub(crate) const SWITCH: &str = include_str!("switch.rs.txt");

/// The woven file. Mutants of `left_out` are not in it.
pub(crate) fn weave(text: &str, places: &[Place], mutants: &[Mutant], left_out: &BTreeSet<usize>) -> String {
    let mut loom = Loom { text, places, mutants, left_out, next: 0, out: String::new() };
    loom.write(0..text.len());
    loom.out
}

/// The mutants that the line of a woven file belongs to: the changed text that it stands in, else the innermost place.
/// Lines count from one.
pub(crate) fn owner(woven: &str, line: usize) -> Option<usize> {
    let mut open: Vec<usize> = Vec::new();
    for text in woven.lines().take(line) {
        if let Some(number) = text.strip_prefix("//<").and_then(|number| number.parse().ok()) {
            open.push(number);
        } else if text.starts_with("//>") {
            open.pop();
        }
    }
    open.pop()
}

struct Loom<'a> {
    text: &'a str,
    /// By their beginning, the outer before the inner.
    places: &'a [Place],
    mutants: &'a [Mutant],
    left_out: &'a BTreeSet<usize>,
    next: usize,
    out: String,
}

impl Loom<'_> {
    fn write(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while let Some(place) = self.places.get(self.next).filter(|place| place.range.end <= range.end) {
            self.next += 1;
            self.out.push_str(&self.text[at..place.range.start]);
            at = place.range.end;
            let alive: Vec<usize> =
                place.mutants.iter().copied().filter(|number| !self.left_out.contains(number)).collect();
            match place.form {
                Form::Expression => self.write_expression(place.range.clone(), &alive),
                Form::Insertion => alive.into_iter().for_each(|number| self.write_insertion(number)),
            }
        }
        self.out.push_str(&self.text[at..range.end]);
    }

    fn write_expression(&mut self, range: Range<usize>, alive: &[usize]) {
        let Some(first) = alive.first() else {
            self.write(range);
            return;
        };
        self.out.push('(');
        for number in alive {
            let changed = &self.mutants[*number].text;
            let _ = write!(self.out, "if crate::woven::on({number}) {{\n//<{number}\n{changed}\n//>\n}} else ");
        }
        let _ = write!(self.out, "{{\n//<{first}\n");
        self.write(range);
        self.out.push_str("\n//>\n})");
    }

    fn write_insertion(&mut self, number: usize) {
        let inserted = self.mutants[number].text.replace("{on}", &format!("crate::woven::on({number})"));
        let _ = write!(self.out, "\n//<{number}\n{inserted}\n//>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::{owner, weave};
    use crate::modules::File;
    use crate::places;
    use std::collections::BTreeSet;

    /// The changes found in a text, each as it would be told, without the function's name.
    fn changes(text: &str) -> Vec<String> {
        let mut mutants = Vec::new();
        let file = File { path: "a.rs".into(), text: text.to_owned() };
        places::find(&file, 0, &mut mutants).expect("Rust");
        mutants.iter().map(|mutant| format!("{}: {}", mutant.original, mutant.what)).collect()
    }

    fn woven(text: &str, left_out: &[usize]) -> String {
        let mut mutants = Vec::new();
        let file = File { path: "a.rs".into(), text: text.to_owned() };
        let places = places::find(&file, 0, &mut mutants).expect("Rust");
        let left_out: BTreeSet<usize> = left_out.iter().copied().collect();
        weave(text, &places, &mutants, &left_out)
    }

    #[test]
    fn what_can_be_changed_is_found() {
        let rows: [(&str, &[&str]); 12] = [
            ("fn f() -> &u8 { a < b }", &["a < b: `<` made `<=`", "a < b: `<` made `>`"]),
            ("fn f() -> bool { x }", &["f: returns `true`", "f: returns `false`"]),
            ("fn f() -> Result<(), E> { x() }", &["f: returns `Ok(())`"]),
            ("fn f() -> Result<u8, E> { x() }", &[]),
            ("fn f() { if !a {} }", &["f: returns `()`", "!a: `!` taken away"]),
            (
                "fn f() -> T { matches!(a, B if c) }",
                &["matches!(a, B if c): `matches!` negated", "c: guard made `true`", "c: guard made `false`"],
            ),
            (
                "fn f() -> T { match a { B => 1, C if d => 2, _ => 3 } }",
                &["B: arm taken away", "d: guard made `true`", "d: guard made `false`"],
            ),
            ("fn f() -> T { match a { B => 1, C => 2 } }", &[]),
            ("fn f() -> T { if let A = b && c {} }", &["c: condition made `true`", "c: condition made `false`"]),
            ("const fn f() -> bool { a < b }", &[]),
            ("impl fmt::Display for T { fn fmt(&self) -> bool { a < b } }", &[]),
            (
                "fn f() -> T { #[cfg(test)]\nlet a = b < c;\nlet d = [0; N - 1]; d }\n#[cfg(test)]\nmod t { fn g() { a < b } }",
                &[],
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(changes(text), expected, "{text}");
        }
    }

    #[test]
    fn a_switch_stands_around_each_place_and_changed_text_has_none_inside() {
        let text = woven("fn f() -> T { !(a && b) }", &[]);
        let expected = "fn f() -> T { (if crate::woven::on(0) {\n//<0\n!(!(a && b))\n//>\n} else {\n//<0\n!\
                        ((if crate::woven::on(1) {\n//<1\n(a) || (b)\n//>\n} else {\n//<1\na && b\n//>\n}))\n//>\n}) }";
        assert_eq!(text, expected);
        assert_eq!(woven("fn f() -> T { !(a && b) }", &[0, 1]), "fn f() -> T { !(a && b) }");
    }

    #[test]
    fn bodies_and_arms_are_switched_by_what_is_inserted() {
        let text = woven("fn f() -> bool { match a { B => c, _ => d } }", &[1]);
        let expected = "fn f() -> bool {\n//<0\nif crate::woven::on(0) { return true; }\n//>\n \
                        match a { B\n//<2\n if !crate::woven::on(2)\n//>\n => c, _ => d } }";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_line_of_the_woven_text_has_the_innermost_owner() {
        let text = woven("fn f() -> T { !(a && b) }", &[]);
        let line_of = |wanted: &str| 1 + text.lines().position(|line| line == wanted).expect("that line");
        assert_eq!(owner(&text, line_of("!(!(a && b))")), Some(0));
        assert_eq!(owner(&text, line_of("(a) || (b)")), Some(1));
        assert_eq!(owner(&text, line_of("a && b")), Some(1));
        assert_eq!(owner(&text, 1), None);
    }
}
