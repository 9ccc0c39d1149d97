//! What the operator says to played sidecars: signed HTTP, as the real ones take it.
//!
//! In: connections, each of a site by the address that it came to. Out: acknowledgements. Must not: answer for a site that
//! is dead or hung, or believe what is not signed.

use crate::crowd::{Crowd, Door, Place};
use crate::group::{Acknowledged, PushAnswer};
use axum::body::{Body, to_bytes};
use bloodraven_brain::fence::{Input, Source};
use bloodraven_brain::message::QuestionId;
use bloodraven_brain::time::Millis;
use bloodraven_wire::message::{Details, Relayed};
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{
    AckMessage, Envelope, GrantMessage, GroupUid, Keys, Kind, MAX_ENVELOPE_BYTES, Nonce, ViewMessage,
};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// As a real sidecar has it.
const ANSWER_WITHIN: Duration = Duration::from_millis(2500);

/// A lease, while no view tells one.
const NO_LEASE: Millis = Millis(20_000);

/// Serves every site, for ever.
pub(crate) async fn serve(crowd: Arc<Crowd>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(connection(Arc::clone(&crowd), stream));
    }
}

async fn connection(crowd: Arc<Crowd>, stream: TcpStream) {
    let Some(place) = crowd.place_of(&stream) else { return };
    let mut door = crowd.doors(place).sidecar.subscribe();
    if *door.borrow() == Door::Shut {
        let _ = stream.set_zero_linger();
        return;
    }
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let crowd = Arc::clone(&crowd);
        async move {
            let mut door = crowd.doors(place).sidecar.subscribe();
            let _ = door.wait_for(|door| *door != Door::Hung).await;
            let answer = answer(&crowd, place, request).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|status| plain(status, String::new())))
        }
    });
    tokio::select! {
        // Who hangs up is its own business.
        _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service) => {}
        _ = door.wait_for(|door| *door == Door::Shut) => {}
    }
}

async fn answer(crowd: &Arc<Crowd>, place: Place, request: Request<Incoming>) -> Result<Response<Body>, StatusCode> {
    let known = crowd.with(place, |group| {
        let belonging = group.belonging.as_ref()?;
        Some((belonging.uid.clone(), belonging.keys.clone()))
    });
    // The pod is there, its container is not yet.
    let (uid, keys) = known.ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match (&method, path.as_str()) {
        (&Method::GET, "/authority") => {
            let target = request.uri().path_and_query().map_or("", |target| target.as_str());
            let query =
                query::verify(&keys, Purpose::Other, query::METHOD, target).map_err(|_| StatusCode::UNAUTHORIZED)?;
            let answer = crowd.with(place, |group| group.probed(place.site));
            seal(&uid, &keys, answer, query.nonce())
        }
        (&Method::POST, "/authority") => {
            let body = to_bytes(Body::new(request.into_body()), MAX_ENVELOPE_BYTES).await;
            let body = body.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
            let (answer, nonce) = take_push(crowd, place, &uid, &keys, &body)?;
            let answer = timeout(ANSWER_WITHIN, answer).await.ok().and_then(Result::ok);
            seal(&uid, &keys, answer.ok_or(StatusCode::SERVICE_UNAVAILABLE)?, nonce)
        }
        (&Method::POST, "/empty") => {
            Ok(plain(StatusCode::CONFLICT, r#"{"error":"a double holds nothing"}"#.to_owned()))
        }
        _ => Err(StatusCode::NOT_FOUND),
    }
}

type Pushed = (oneshot::Receiver<PushAnswer>, Nonce);

/// A view, or the answer to a question that rode on an acknowledgement.
fn take_push(crowd: &Arc<Crowd>, place: Place, uid: &GroupUid, keys: &Keys, body: &[u8]) -> Result<Pushed, StatusCode> {
    let bad = |_| StatusCode::BAD_REQUEST;
    let verified =
        Envelope::read(body).and_then(|envelope| envelope.open(keys)).map_err(|_| StatusCode::UNAUTHORIZED)?;
    let nonce = verified.nonce();
    let (answer, to_ask) = match verified.kind() {
        Kind::View => {
            let ViewMessage { view, .. } = ViewMessage::open(&verified, uid).map_err(bad)?;
            let view = |reply| Input::View { view, source: Source::Operator, reply: Some(reply) };
            crowd.with(place, |group| group.pushed(place.site, view))
        }
        Kind::Grant => {
            let lease = GrantMessage::open(&verified, uid, QuestionId(0))
                .map_or(NO_LEASE, |message| message.grant.view.settings.lease_timeout);
            let asked = crowd.with(place, |group| group.asked(place.site, nonce, lease));
            let asked = asked.ok_or(StatusCode::BAD_REQUEST)?;
            let GrantMessage { grant, .. } = GrantMessage::open(&verified, uid, asked).map_err(bad)?;
            let granted = |reply| Input::Granted { grant, reply: Some(reply) };
            crowd.with(place, |group| group.pushed(place.site, granted))
        }
        _ => return Err(StatusCode::BAD_REQUEST),
    };
    crowd.ask(place.group, to_ask);
    Ok((answer, nonce))
}

fn seal(uid: &GroupUid, keys: &Keys, answer: PushAnswer, nonce: Nonce) -> Result<Response<Body>, StatusCode> {
    let Acknowledged { ack, details, question, relayed } = answer.ok_or(StatusCode::CONFLICT)?;
    let handed_on = |(ack, age)| Relayed { ack, details: Details::default(), age };
    let relayed = relayed.into_iter().map(handed_on).collect();
    let message = AckMessage { group: uid.clone(), ack: *ack, details, question, relayed };
    let sealed = message.seal(keys, nonce).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(plain(StatusCode::OK, sealed.to_string()))
}

fn plain(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
}
