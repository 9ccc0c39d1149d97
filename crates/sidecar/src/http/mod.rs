//! The sidecar's server: what others may ask it, and how much of it they may take.
//!
//! In: connections. Out: answers (see [`routes`]). Must not: be taken up by clients that are slow, many or silent: a
//! request has a bound for its head, its body and its answer; connections have a cap, and beyond it the one that has kept
//! the server waiting for longest gives way to the new one.

mod routes;
mod seen;
mod status;

pub(crate) use routes::Service;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};

/// How many connections may stand: every site and operator has a few.
const MOST_CONNECTIONS: usize = 64;

/// How long a client may take for the head of a request, and how long it may stay silent between two.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// How long a connection may last: whoever needs more comes again. What is being answered then is still answered.
const LONGEST_CONNECTION: Duration = Duration::from_mins(2);

/// The longest head: the longest signed target, and some headers.
const HEAD_BYTES: usize = 16 << 10;

/// How long to wait after the system had no connection to give (too many open files), instead of asking at once again.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

struct Connection {
    since: Instant,
    serving: Arc<AtomicU32>,
    task: AbortHandle,
}

/// Serves for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, service: Arc<Service>) {
    let mut tasks = JoinSet::new();
    let mut standing: Vec<Connection> = Vec::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(error = %error, "no connection can be taken");
                tokio::time::sleep_until(Instant::now() + AFTER_FAILURE).await;
                continue;
            }
        };
        while tasks.try_join_next().is_some() {}
        standing.retain(|connection| !connection.task.is_finished());
        if standing.len() >= MOST_CONNECTIONS && !make_room(&mut standing) {
            // Everyone is being served: this one may come again.
            continue;
        }
        let serving = Arc::new(AtomicU32::new(0));
        let router = routes::router(Arc::clone(&service), Arc::clone(&serving));
        let task = tasks.spawn(talk(stream, router));
        standing.push(Connection { since: Instant::now(), serving, task });
    }
}

/// Ends the oldest connection that waits for its client. False: there is none.
fn make_room(standing: &mut Vec<Connection>) -> bool {
    let waiting = |(_, connection): &(usize, &Connection)| connection.serving.load(Ordering::Relaxed) == 0;
    let oldest = standing.iter().enumerate().filter(waiting).min_by_key(|(_, connection)| connection.since);
    let Some((at, connection)) = oldest else { return false };
    connection.task.abort();
    standing.swap_remove(at);
    true
}

async fn talk(stream: TcpStream, router: Router) {
    // Small answers go out at once.
    let _ = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    // A client that breaks off is no event.
    if timeout(LONGEST_CONNECTION, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(HEAD_WITHIN, connection).await;
    }
}

#[cfg(test)]
mod tests;
