//! The question: "may I write?", as the query of a signed GET or riding on an acknowledgement.
//!
//! In: the brain's question with its nonce and the moment it was sent. Out: the same. Must not: give the answerer's clock
//! and the asker's a common meaning.

use super::{Context, GroupUid, read_group, same_group};
use crate::error::Error;
use crate::json::Json;
use crate::key::Keys;
use crate::nonce::Nonce;
use crate::query::{self, Purpose, VerifiedQuery};
use crate::word::{Fields, Writer, decimal};
use bloodraven_brain::message::{Question, QuestionId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::time::Boot;

/// A question in one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionMessage {
    /// Whose.
    pub group: GroupUid,
    /// What its answer has to repeat.
    pub nonce: Nonce,
    /// The question. Its id is not sent: asker and answerer each have their own.
    pub question: Question,
    /// When it was sent, on the asker's clock. Nobody but the asker reads it, and the asker goes by what it remembers.
    pub t_send: Boot,
}

impl QuestionMessage {
    /// The path and query of a signed GET; `more` are parameters of the path itself, such as namespace and group.
    pub fn to_target(&self, keys: &Keys, path: &str, more: &[(&str, &str)]) -> Result<String, Error> {
        let Self { group, nonce, question: Question { id: _, from, epoch, open }, t_send } = self;
        let (instance, epoch, t_send) = (from.instance.to_string(), epoch.to_string(), t_send.0.to_string());
        let mut parameters = vec![
            ("groupUid", group.as_str()),
            ("site", from.site.as_str()),
            ("instance", &instance),
            ("epoch", &epoch),
            ("open", if *open { "true" } else { "false" }),
            ("tSend", &t_send),
        ];
        parameters.extend_from_slice(more);
        let target = query::sign(keys, Purpose::Authority, path, &parameters, *nonce)?;
        // What would be refused is not sent.
        let read_back = query::verify(keys, Purpose::Authority, query::METHOD, &target)?;
        if Self::from_query(&read_back, group, self.question.id)? != *self {
            return Err(Error::malformed("query", "says something that has no form on the wire"));
        }
        Ok(target)
    }

    /// Reads it. `id` is the answerer's name for it.
    pub fn from_query(query: &VerifiedQuery, group: &GroupUid, id: QuestionId) -> Result<Self, Error> {
        let group = same_group(query.required("groupUid")?, group, || "groupUid".into())?;
        let site = match query.required("site")? {
            "" => return Err(Error::malformed("site", "an empty name")),
            name => Site::new(name),
        };
        let instance = Instance::parse(query.required("instance")?)
            .ok_or_else(|| Error::malformed("instance", "not <pod UID>/<store id>"))?;
        let open = match query.required("open")? {
            "true" => true,
            "false" => false,
            _ => return Err(Error::malformed("open", "neither true nor false")),
        };
        let question = Question { id, from: Member { site, instance }, epoch: number(query, "epoch")?, open };
        Ok(Self { group, nonce: query.nonce(), question, t_send: Boot(number(query, "tSend")?) })
    }

    /// The field of an acknowledgement.
    pub(super) fn write(&self) -> Json {
        let Self { group, nonce, question: Question { id: _, from, epoch, open }, t_send } = self;
        Writer::new()
            .put("nonce", &nonce.to_string())
            .put("groupUid", &group.to_string())
            .put("site", &from.site)
            .put("instance", &from.instance)
            .put("epoch", epoch)
            .put("open", open)
            .put("tSend", t_send)
            .finish()
    }

    pub(super) fn read(fields: &Fields<'_>, context: Context<'_>) -> Result<Self, Error> {
        let group = read_group(fields, context)?;
        let nonce = fields.required::<String>("nonce")?.parse()?;
        let from = Member { site: fields.required("site")?, instance: fields.required("instance")? };
        let question =
            Question { id: context.id, from, epoch: fields.required("epoch")?, open: fields.required("open")? };
        Ok(Self { group, nonce, question, t_send: fields.required("tSend")? })
    }
}

fn number(query: &VerifiedQuery, name: &str) -> Result<u64, Error> {
    let number = decimal(query.required(name)?).filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| Error::malformed(name, "not a whole number from 0 to 9223372036854775807"))
}
