//! Secrets stay out of lines.
//!
//! In: a field's name, or any text. Out: whether it may be shown; the text with what follows a password's word hidden. Must
//! not: be the first line of defence. Secrets have a type of their own that cannot be shown; this is for texts by others.

use std::borrow::Cow;

/// Stands where a secret stood.
pub(super) const HIDDEN: &str = "(hidden)";

/// A field of such a name is never shown.
const NAMES: [&str; 7] = ["password", "passwd", "secret", "token", "dsn", "credential", "hmac"];

/// After such words a quoted text is hidden.
const WORDS: [&str; 5] = ["identified by", "identified with", "password", "passwd", "secret"];

/// Whether a field of that name holds a secret.
pub(super) fn is_secret(field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    NAMES.iter().any(|name| field.contains(name))
}

/// The text without secrets: quoted texts after a password's word, and the password in a URL.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    // ASCII lower case keeps every byte where it is.
    let lower = text.to_ascii_lowercase();
    let first = WORDS.iter().filter_map(|word| lower.find(word)).min();
    let quoted = first.map_or(Cow::Borrowed(text), |first| Cow::Owned(hide_quoted(text, first)));
    match hide_in_url(&quoted) {
        Some(hidden) => Cow::Owned(hidden),
        None => quoted,
    }
}

fn hide_quoted(text: &str, from: usize) -> String {
    let (before, after) = text.split_at_checked(from).unwrap_or(("", text));
    let mut out = before.to_owned();
    let mut within: Option<char> = None;
    let mut escaped = false;
    for letter in after.chars() {
        match within {
            None => {
                out.push(letter);
                if matches!(letter, '\'' | '"') {
                    within = Some(letter);
                    out.push_str(HIDDEN);
                }
            }
            Some(quote) if letter == quote && !escaped => {
                within = None;
                out.push(letter);
            }
            Some(_) => {}
        }
        escaped = within.is_some() && letter == '\\' && !escaped;
    }
    out
}

/// `scheme://user:password@` and `user:password@tcp(`.
fn hide_in_url(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut hidden = false;
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            out.push(' ');
        }
        let start = word.find("://").map_or(0, |at| at + 3);
        let is_url = start > 0 || word.contains("@tcp(");
        let found = word.get(start..).filter(|_| is_url).and_then(|rest| {
            let at = rest.rfind('@')?;
            let colon = rest.get(..at)?.find(':')?;
            Some((start + colon + 1, start + at))
        });
        match found.and_then(|(from, to)| Some((word.get(..from)?, word.get(to..)?))) {
            Some((before, after)) => {
                hidden = true;
                out.push_str(before);
                out.push_str(HIDDEN);
                out.push_str(after);
            }
            None => out.push_str(word),
        }
    }
    hidden.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-20: words of others on their way into a line.
    #[test]
    fn passwords_are_hidden_and_the_rest_stays() {
        let rows = [
            ("state transition", "state transition"),
            ("it isn't 'so'", "it isn't 'so'"),
            ("ALTER USER 'a'@'%' IDENTIFIED BY 'x\\'y'", "ALTER USER 'a'@'%' IDENTIFIED BY '(hidden)'"),
            ("CHANGE … SOURCE_PASSWORD='abc', SOURCE_PORT=1", "CHANGE … SOURCE_PASSWORD='(hidden)', SOURCE_PORT=1"),
            ("dial mysql://op:s3:cr@et@iad:3306/ failed", "dial mysql://op:(hidden)@iad:3306/ failed"),
            ("dial op:pw@tcp(iad:3306)/ failed", "dial op:(hidden)@tcp(iad:3306)/ failed"),
            ("GET http://iad:8080/status", "GET http://iad:8080/status"),
            ("Password \"x", "Password \"(hidden)"),
        ];
        for (text, expected) in rows {
            assert_eq!(clean(text), expected, "{text}");
        }
        for (name, secret) in [("password", true), ("source_password", true), ("hmacKey", true), ("site", false)] {
            assert_eq!(is_secret(name), secret, "{name}");
        }
    }
}
