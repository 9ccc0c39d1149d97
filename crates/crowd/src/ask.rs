//! Questions of played sidecars to the operator: signed, over a connection of its own each, as the real ones put them.
//!
//! In: a question. Out: what the operator said, put to the sidecar. Must not: take longer than a real sidecar waits.

use crate::crowd::{Crowd, OPERATOR, Place};
use crate::group::{ToAsk, fresh_nonce};
use bloodraven_brain::fence::{Input, Source};
use bloodraven_brain::message::{Question, QuestionId};
use bloodraven_wire::{Envelope, GrantMessage, Kind, MAX_ENVELOPE_BYTES, QuestionMessage, ViewMessage};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// As a real sidecar has it.
const LONGEST_CALL: Duration = Duration::from_secs(2);

/// Names a question that no answer counts for: the view is all that is wanted.
const NO_QUESTION: QuestionId = QuestionId(u64::MAX);

/// Asks, and tells the site what was said; nothing, if nothing was.
pub(crate) async fn operator(crowd: Arc<Crowd>, group: usize, to_ask: ToAsk) {
    let place = Place { group, site: to_ask.site };
    let heard = timeout(LONGEST_CALL, ask(&crowd, place, &to_ask)).await;
    let input = match heard {
        Ok(Some(input)) => input,
        Ok(None) | Err(_) => match to_ask.question {
            Some(question) => Input::NoAnswer(question.id),
            None => return,
        },
    };
    let more = crowd.with(place, |group| group.drive(place.site, input));
    crowd.ask(group, more);
}

async fn ask(crowd: &Crowd, place: Place, to_ask: &ToAsk) -> Option<Input> {
    let nonce = fresh_nonce();
    let asked = to_ask.question.as_ref().map_or(NO_QUESTION, |question| question.id);
    let (target, uid, keys) = crowd.with(place, |group| {
        let belonging = group.belonging.as_ref()?;
        let me = group.sites[place.site].sidecar.as_ref()?.me.clone();
        let nothing = Question { id: NO_QUESTION, from: me, epoch: to_ask.epoch, open: false };
        let question = to_ask.question.clone().unwrap_or(nothing);
        let message = QuestionMessage { group: belonging.uid.clone(), nonce, question, t_send: to_ask.sent };
        let more = [("namespace", group.namespace.as_str()), ("group", group.name.as_str())];
        let target = message.to_target(&belonging.keys, "/active-site", &more).ok()?;
        Some((target, belonging.uid.clone(), belonging.keys.clone()))
    })?;
    let body = get(&target).await.ok()?;
    let verified = Envelope::read_signed(&body).ok()??.open_answer(&keys, nonce).ok()?;
    if verified.kind() == Kind::Grant {
        let GrantMessage { grant, .. } = GrantMessage::open(&verified, &uid, asked).ok()?;
        if asked == NO_QUESTION {
            return Some(Input::View { view: grant.view, source: Source::Operator, reply: None });
        }
        return Some(Input::Granted { grant, reply: None });
    }
    let ViewMessage { view, .. } = ViewMessage::open(&verified, &uid).ok()?;
    Some(Input::View { view, source: Source::Operator, reply: None })
}

/// The body of a good answer.
async fn get(target: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(OPERATOR).await?;
    let request = format!("GET {target} HTTP/1.1\r\nhost: {OPERATOR}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let most = u64::try_from(MAX_ENVELOPE_BYTES).unwrap_or(u64::MAX).saturating_add(64 << 10);
    stream.take(most).read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (Some(end), true) = (end, answer.starts_with(b"HTTP/1.1 200")) else {
        return Err(io::Error::other("not a good answer"));
    };
    Ok(answer.split_off(end + 4))
}
