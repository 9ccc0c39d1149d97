//! The bodies of messages, to and from the brain's words.
//!
//! In: the brain's words with what travels beside them; verified bodies. Out: sealed envelopes; the brain's words again.
//! Must not: read a body that is not verified, judge what a message means, or send what the other side would refuse.
//!
//! What a message says and the brain does not use stands beside the brain's word in the same struct.

mod ack;
mod empty;
mod grant;
mod question;
mod view;
mod vouch;

pub use ack::{AckMessage, Details, Relayed, Variables};
pub use empty::EmptyMessage;
pub use grant::GrantMessage;
pub use question::QuestionMessage;
pub use view::ViewMessage;
pub use vouch::VouchMessage;

use crate::envelope::{Envelope, Kind, Verified};
use crate::error::Error;
use crate::json::Json;
use crate::key::Keys;
use crate::nonce::Nonce;
use crate::word::{Fields, Place};
use bloodraven_brain::message::QuestionId;
use std::fmt;
use std::sync::Arc;

/// The UID of the group object: a group made anew under the same name is another group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupUid(Arc<str>);

impl GroupUid {
    /// The group of that UID.
    pub fn new(uid: &str) -> Self {
        Self(uid.into())
    }

    /// The UID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for GroupUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a reader knows beforehand.
#[derive(Clone, Copy)]
struct Context<'a> {
    /// The group that the message has to be about.
    group: &'a GroupUid,
    /// The brain's name for the question that the message answers or carries.
    id: QuestionId,
}

/// A message that travels in an envelope.
trait Body: Sized + PartialEq {
    const KIND: Kind;

    /// What a reader has to know to read the same again.
    fn context(&self) -> Context<'_>;
    fn write(&self) -> Json;
    fn read(fields: &Fields<'_>, context: Context<'_>) -> Result<Self, Error>;
}

/// Signs a message, unless the other side would refuse it or read something else.
fn seal<T: Body>(message: &T, keys: &Keys, nonce: Nonce) -> Result<Envelope, Error> {
    let text = message.write().to_string();
    if read_text::<T>(&text, message.context())? != *message {
        return Err(Error::malformed("body", "says something that has no form on the wire"));
    }
    Envelope::seal(keys, T::KIND, nonce, text)
}

fn open<T: Body>(verified: &Verified, context: Context<'_>) -> Result<T, Error> {
    read_text(verified.body_of(T::KIND)?, context)
}

fn read_text<T: Body>(text: &str, context: Context<'_>) -> Result<T, Error> {
    let json = Json::parse(text)?;
    T::read(&Fields::of(&json, Place::Body)?, context)
}

/// The group that an object names, which has to be the one that is meant.
fn read_group(fields: &Fields<'_>, context: Context<'_>) -> Result<GroupUid, Error> {
    same_group(&fields.required::<String>("groupUid")?, context.group, || fields.at("groupUid").to_string())
}

fn same_group(found: &str, expected: &GroupUid, field: impl FnOnce() -> String) -> Result<GroupUid, Error> {
    if found == expected.as_str() { Ok(expected.clone()) } else { Err(Error::WrongGroup { field: field() }) }
}
