//! The envelope: a body with a signature over its very bytes.
//!
//! In: a body and a nonce to be sealed; bytes from the network. Out: JSON text; a [`Verified`] body. Must not: parse more
//! than the bound allows, look into a body before its signature was found right, or make a nonce.

use crate::error::{Error, beginning};
use crate::key::Keys;
use crate::nonce::Nonce;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest envelope that is read or made; GTID sets are what makes one long.
pub const MAX_ENVELOPE_BYTES: usize = 1 << 20;

/// What a signature is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The record, as sidecars store it.
    View,
    /// A signed GET that asks for a grant or a vouch.
    Question,
    /// The leader's answer.
    Grant,
    /// A voter's answer.
    Vouch,
    /// What a sidecar has stored.
    Ack,
    /// A signed GET outside authority.
    Request,
    /// The leader's order to empty a data folder.
    Empty,
}

/// A signed body whose signature nobody has checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    kind: Kind,
    nonce: Nonce,
    body: String,
    mac: String,
}

/// A body that a holder of the group's key signed. Only [`Envelope::open`] and [`Envelope::open_answer`] make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    kind: Kind,
    nonce: Nonce,
    body: String,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::View, Self::Question, Self::Grant, Self::Vouch, Self::Ack, Self::Request, Self::Empty];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Question => "question",
            Self::Grant => "grant",
            Self::Vouch => "vouch",
            Self::Ack => "ack",
            Self::Request => "request",
            Self::Empty => "empty",
        }
    }

    fn parse(word: &str) -> Result<Self, Error> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| Error::UnknownKind { kind: beginning(word) })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Envelope {
    /// Signs a body. Refused if the envelope would be longer than anyone reads.
    pub fn seal(keys: &Keys, kind: Kind, nonce: Nonce, body: String) -> Result<Self, Error> {
        let mac = keys.sign(kind.as_str(), &nonce.to_string(), &body);
        let envelope = Self { kind, nonce, body, mac };
        within_bound(envelope.to_string().len())?;
        Ok(envelope)
    }

    /// Takes the JSON text of an envelope apart: the body of a POST, or the answer to one.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        parse::<Raw>(bytes)?.check("")
    }

    /// The envelope in the field `signed` of an answer whose other fields are for people; none if it has none.
    pub fn read_signed(bytes: &[u8]) -> Result<Option<Self>, Error> {
        parse::<Answer>(bytes)?.signed.map(|raw| raw.check("signed.")).transpose()
    }

    /// Checks the signature.
    pub fn open(self, keys: &Keys) -> Result<Verified, Error> {
        let Self { kind, nonce, body, mac } = self;
        if keys.accept(kind.as_str(), &nonce.to_string(), &body, &mac) {
            Ok(Verified { kind, nonce, body })
        } else {
            Err(Error::BadSignature)
        }
    }

    /// Checks the signature of what came back for that nonce.
    pub fn open_answer(self, keys: &Keys, nonce: Nonce) -> Result<Verified, Error> {
        let verified = self.open(keys)?;
        if verified.nonce == nonce { Ok(verified) } else { Err(Error::WrongNonce) }
    }
}

impl fmt::Display for Envelope {
    /// The JSON text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, nonce, body, mac } = self;
        let body = serde_json::Value::from(body.as_str());
        write!(f, r#"{{"kind":"{kind}","nonce":"{nonce}","body":{body},"mac":"{mac}"}}"#)
    }
}

/// For the field `signed` of an answer.
impl Serialize for Envelope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { kind, nonce, body, mac } = self;
        let fields = [("kind", kind.as_str()), ("nonce", &nonce.to_string()), ("body", body), ("mac", mac)];
        serializer.collect_map(fields)
    }
}

impl Verified {
    /// What it is.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The question that it answers, or the push that it is.
    pub const fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// The JSON text that was signed.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// That text, if this is of the kind that is due.
    pub(crate) fn body_of(&self, expected: Kind) -> Result<&str, Error> {
        if self.kind == expected { Ok(&self.body) } else { Err(Error::WrongKind { expected, found: self.kind }) }
    }
}

/// An envelope of which nothing is known but that its fields are texts. Unknown fields are skipped without being kept.
#[derive(Deserialize)]
struct Raw {
    kind: Option<String>,
    nonce: Option<String>,
    body: Option<String>,
    mac: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    signed: Option<Raw>,
}

impl Raw {
    fn check(self, before: &str) -> Result<Envelope, Error> {
        let due = |value: Option<String>, name: &str| value.ok_or_else(|| Error::missing(format!("{before}{name}")));
        let kind = due(self.kind, "kind")?;
        let nonce = due(self.nonce, "nonce")?;
        let body = due(self.body, "body")?;
        let mac = due(self.mac, "mac")?;
        Ok(Envelope { kind: Kind::parse(&kind)?, nonce: nonce.parse()?, body, mac })
    }
}

fn within_bound(bytes: usize) -> Result<(), Error> {
    if bytes > MAX_ENVELOPE_BYTES {
        return Err(Error::TooLarge { bytes, limit: MAX_ENVELOPE_BYTES });
    }
    Ok(())
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    within_bound(bytes.len())?;
    // The parser would take a list of the four texts, too.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::NotJson { line: 1, column: 1 });
    }
    serde_json::from_slice(bytes).map_err(|error| {
        // The parser's own words may quote what a stranger sent.
        if error.is_data() {
            Error::malformed("envelope", "kind, nonce, body and mac are texts, each given once")
        } else {
            Error::NotJson { line: error.line(), column: error.column() }
        }
    })
}
