//! Signed GETs: a query with a nonce and a signature.
//!
//! In: path and parameters to be signed; method and target of a request. Out: a target; parameters that a holder of the
//! key sent. Must not: accept two texts for one query, or a parameter twice.
//!
//! Signed is `GET /path?key=value&…`, sorted by key, with the nonce and without the `mac`. Values keep letters, digits and
//! `-._~`; every other byte is written `%XX`, upper case. Keys are letters and digits.

use crate::envelope::Kind;
use crate::error::Error;
use crate::key::Keys;
use crate::nonce::Nonce;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The only method that is signed this way.
pub const METHOD: &str = "GET";

/// The longest target that is read or made. No parameter holds a GTID set.
pub const MAX_TARGET_BYTES: usize = 8 << 10;

/// What a signed GET is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A question.
    Authority,
    /// Anything else.
    Other,
}

/// The parameters of a request that a holder of the group's key made. Only [`verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedQuery {
    nonce: Nonce,
    parameters: Parameters,
}

/// Sorted by key, which is the order in which they are signed.
type Parameters = BTreeMap<String, String>;

/// The target of a GET: path, parameters, nonce and signature. `nonce` and `mac` are no names for parameters.
pub fn sign(
    keys: &Keys,
    purpose: Purpose,
    path: &str,
    parameters: &[(&str, &str)],
    nonce: Nonce,
) -> Result<String, Error> {
    check_path(path)?;
    let nonce = nonce.to_string();
    let mut sorted = Parameters::new();
    for (name, value) in parameters.iter().copied().chain([("nonce", nonce.as_str())]) {
        check_name(name)?;
        insert(&mut sorted, name, value.into())?;
    }
    if sorted.contains_key("mac") {
        return Err(Error::malformed("mac", "given beside the signature"));
    }
    let query = print(&sorted);
    let mac = keys.sign(purpose.kind().as_str(), &nonce, &format!("{METHOD} {path}?{query}"));
    let target = format!("{path}?{query}&mac={mac}");
    within_bound(&target)?;
    Ok(target)
}

/// Checks a request. [`Error::MissingField`] for `mac` means that it is not signed at all.
pub fn verify(keys: &Keys, purpose: Purpose, method: &str, target: &str) -> Result<VerifiedQuery, Error> {
    within_bound(target)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    check_path(path)?;
    if method.is_empty() || !method.bytes().all(|letter| letter.is_ascii_uppercase()) {
        return Err(Error::malformed("method", "not upper-case letters"));
    }
    let mut parameters = parse(query)?;
    let mac = parameters.remove("mac").ok_or_else(|| Error::missing("mac"))?;
    let nonce: Nonce = parameters.get("nonce").ok_or_else(|| Error::missing("nonce"))?.parse()?;
    let text = format!("{method} {path}?{}", print(&parameters));
    if !keys.accept(purpose.kind().as_str(), &nonce.to_string(), &text, &mac) {
        return Err(Error::BadSignature);
    }
    Ok(VerifiedQuery { nonce, parameters })
}

impl Purpose {
    const fn kind(self) -> Kind {
        match self {
            Self::Authority => Kind::Question,
            Self::Other => Kind::Request,
        }
    }
}

impl VerifiedQuery {
    /// What the answer has to repeat.
    pub const fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// A parameter, decoded.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// A parameter that has to be there.
    pub fn required(&self, name: &str) -> Result<&str, Error> {
        self.get(name).ok_or_else(|| Error::missing(name))
    }
}

fn within_bound(target: &str) -> Result<(), Error> {
    if target.len() > MAX_TARGET_BYTES {
        return Err(Error::TooLarge { bytes: target.len(), limit: MAX_TARGET_BYTES });
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte == b'/' || stays(byte);
    if path.starts_with('/') && path.bytes().all(plain) {
        return Ok(());
    }
    Err(Error::malformed("path", "not a path of letters, digits and -._~/"))
}

fn check_name(name: &str) -> Result<(), Error> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(Error::malformed("query", "a key that is not letters and digits"))
}

fn insert(parameters: &mut Parameters, name: &str, value: String) -> Result<(), Error> {
    match parameters.insert(name.into(), value) {
        None => Ok(()),
        Some(_) => Err(Error::malformed("query", "a parameter given twice")),
    }
}

fn parse(query: &str) -> Result<Parameters, Error> {
    let mut parameters = Parameters::new();
    if query.is_empty() {
        return Ok(parameters);
    }
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').ok_or_else(|| Error::malformed("query", "a key without ="))?;
        check_name(name)?;
        let decoded = decode(value)
            .filter(|decoded| encode(decoded) == value)
            .ok_or_else(|| Error::malformed("query", "a value that is not encoded as the signer does"))?;
        insert(&mut parameters, name, decoded)?;
    }
    Ok(parameters)
}

fn print(parameters: &Parameters) -> String {
    let pairs: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    pairs.join("&")
}

/// Bytes that mean themselves in every part of a URL.
const fn stays(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn encode(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if stays(byte) {
            text.push(char::from(byte));
        } else {
            // Writing into a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let (high, low) = (char::from(rest.next()?).to_digit(16)?, char::from(rest.next()?).to_digit(16)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
