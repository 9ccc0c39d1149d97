//! Text inside a statement.
//!
//! In: any text. Out: a literal that the server reads back as that text, in the `sql_mode` that every session sets for
//! itself (backslashes escape, double quotes are not used). Must not: let text end its literal.

/// A string literal.
pub(crate) fn text(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('\'');
    for letter in text.chars() {
        match letter {
            '\'' => literal.push_str("\\'"),
            '\\' => literal.push_str("\\\\"),
            '\0' => literal.push_str("\\0"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\u{1a}' => literal.push_str("\\Z"),
            other => literal.push(other),
        }
    }
    literal.push('\'');
    literal
}

/// Several, with commas in between; never empty, so that `IN (…)` stays a statement.
pub(crate) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<String> = texts.into_iter().map(text).collect();
    if all.is_empty() { "''".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_literal() {
        for (input, expect) in [
            ("", "''"),
            ("plain", "'plain'"),
            ("o'brien", r"'o\'brien'"),
            (r"back\slash", r"'back\\slash'"),
            (r"\' OR 1=1 -- ", r"'\\\' OR 1=1 -- '"),
            ("a\0b\nc\rd\u{1a}e", r"'a\0b\nc\rd\Ze'"),
            ("\"double\" `tick`", "'\"double\" `tick`'"),
            ("gr\u{fc}n \u{1f426}", "'gr\u{fc}n \u{1f426}'"),
            ("%_;", "'%_;'"),
        ] {
            assert_eq!(text(input), expect, "{input:?}");
        }
    }

    #[test]
    fn a_list_is_never_empty() {
        assert_eq!(list([]), "''");
        assert_eq!(list(["a", "b'c"]), r"'a', 'b\'c'");
    }
}
