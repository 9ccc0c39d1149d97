//! `/ws/status`: every poll of every group, to whoever keeps up.
//!
//! In: a WebSocket. Out: one message per group and poll. Must not: wait for a slow client, serve pages of strangers, or
//! hold more than a bounded number of messages for anyone.

use super::{App, refuse};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// Clients at a time.
pub(crate) const CLIENTS: usize = 100;

/// Messages that wait for a client; one that is further behind is dropped.
pub(crate) const QUEUE: usize = 64;

/// A client takes a message within so long, or is dropped.
const SEND_BOUND: Duration = Duration::from_secs(5);

/// A client that says nothing is asked whether it is there.
const PING: Duration = Duration::from_secs(15);

/// One that has not said anything for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);

/// Clients have nothing to say.
const CLIENT_BYTES: usize = 1024;

pub(super) async fn follow(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if !is_welcome(&headers, &app.origins) {
        return refuse(StatusCode::FORBIDDEN, "pages of this origin may not follow; see --ws-allowed-origin");
    }
    let Ok(upgrade) = upgrade else {
        return refuse(StatusCode::BAD_REQUEST, "this path speaks WebSocket");
    };
    let Ok(place) = Arc::clone(&app.followers).try_acquire_owned() else {
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too many follow already");
    };
    let polls = app.hub.subscribe();
    let upgrade = upgrade.max_message_size(CLIENT_BYTES).max_frame_size(CLIENT_BYTES);
    upgrade.on_upgrade(move |socket| async move {
        app.ears.followers(CLIENTS - app.followers.available_permits());
        let (ears, followers) = (Arc::clone(&app.ears), Arc::clone(&app.followers));
        // The socket does not keep the rest alive.
        drop(app);
        serve(socket, polls, place).await;
        ears.followers(CLIENTS - followers.available_permits());
    })
}

/// A page of the same origin, of one that is allowed, or no page at all.
fn is_welcome(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let own = origin.split_once("://").map(|(_, rest)| rest);
    allowed.iter().any(|one| one == origin) || (host.is_some() && own == host)
}

async fn serve(mut socket: WebSocket, mut polls: broadcast::Receiver<Arc<str>>, place: OwnedSemaphorePermit) {
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    loop {
        let message = tokio::select! {
            poll = polls.recv() => match poll {
                Ok(text) => Message::text(&*text),
                // Too slow, or nobody tells any more.
                Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => break,
            },
            said = socket.recv() => match said {
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {
                    heard = Instant::now();
                    continue;
                }
            },
            _ = pings.tick() => {
                if heard.elapsed() > SILENCE {
                    break;
                }
                Message::Ping(axum::body::Bytes::new())
            }
        };
        if !matches!(timeout(SEND_BOUND, socket.send(message)).await, Ok(Ok(()))) {
            break;
        }
    }
    drop(place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_own_or_of_an_allowed_origin_follow() {
        let allowed = ["https://dashboard.example".to_owned()];
        let rows = [
            (None, true),
            (Some("http://127.0.0.1:8082"), true),
            (Some("https://dashboard.example"), true),
            (Some("https://dashboard.example.evil"), false),
            (Some("http://127.0.0.1:8083"), false),
            (Some("null"), false),
            (Some(""), false),
        ];
        for (origin, welcome) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:8082".parse().expect("a value"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().expect("a value"));
            }
            assert_eq!(is_welcome(&headers, &allowed), welcome, "{origin:?}");
        }
    }
}
