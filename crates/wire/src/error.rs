//! Why bytes are not a message, or a message cannot be sent.
//!
//! In: what a reader met. Out: one closed enum; the caller maps it to an HTTP status and a counter. Must not: quote more
//! than a few characters of what a stranger sent, or anything of a key.

use crate::envelope::Kind;
use snafu::Snafu;

/// Why bytes are not a message, or a message cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub enum Error {
    /// More than anyone reads; found before anything was parsed.
    #[snafu(display("{bytes} bytes are too many; the most is {limit}"))]
    TooLarge {
        /// How many there are.
        bytes: usize,
        /// How many are read.
        limit: usize,
    },
    /// An envelope that is no JSON object.
    #[snafu(display("not a JSON object (line {line}, column {column})"))]
    NotJson {
        /// Where it goes wrong.
        line: usize,
        /// Where it goes wrong.
        column: usize,
    },
    /// A field that has to be there is not, or is `null`.
    #[snafu(display("{field} is missing"))]
    MissingField {
        /// Its name, with the way to it.
        field: String,
    },
    /// A kind that this release does not know.
    #[snafu(display("kind {kind:?} is unknown"))]
    UnknownKind {
        /// The first characters of it.
        kind: String,
    },
    /// A nonce that is not 32 lower-case hexadecimal digits.
    #[snafu(display("the nonce is not 32 lower-case hexadecimal digits"))]
    BadNonce,
    /// Neither key signed this.
    #[snafu(display("the signature is not that of the group's key"))]
    BadSignature,
    /// Signed, but another kind of message than is read here.
    #[snafu(display("of kind {found} where {expected} is due"))]
    WrongKind {
        /// What is read here.
        expected: Kind,
        /// What it is.
        found: Kind,
    },
    /// Signed, but no answer to the question asked.
    #[snafu(display("the answer is to another question"))]
    WrongNonce,
    /// Signed, but about another group.
    #[snafu(display("{field} is that of another group"))]
    WrongGroup {
        /// The field that says so.
        field: String,
    },
    /// A field that is not what it has to be.
    #[snafu(display("{field}: {problem}"))]
    Malformed {
        /// Its name, with the way to it.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    pub(crate) fn missing(field: impl Into<String>) -> Self {
        Self::MissingField { field: field.into() }
    }

    pub(crate) fn malformed(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Malformed { field: field.into(), problem: problem.into() }
    }
}

/// The beginning of a text that a stranger chose, for an error.
pub(crate) fn beginning(text: &str) -> String {
    const SHOWN: usize = 32;
    text.chars().take(SHOWN).collect()
}
