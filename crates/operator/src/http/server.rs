//! Connections: bounded in number, in what they may send, and in how long they may take.
//!
//! In: a listener and what answers. Out: nothing. Must not: let one client take all there is, or end because of one.

use crate::tasks::rest;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at a time. A sidecar keeps one or two, and a thousand groups have three thousand of them.
const CONNECTIONS: usize = 8192;

/// The headers of a request, and the rest between two of them.
const HEADERS: Duration = Duration::from_secs(15);

/// Request line and headers. A signed question has at most 8 KiB.
const HEADER_BYTES: usize = 16 << 10;

/// After an accept that failed: out of file descriptors, as a rule.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`; what is being answered then is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            () = &mut shutdown => return,
            accepted = async {
                // With all places taken nobody is accepted; the kernel lets a few wait.
                let place = Arc::clone(&room).acquire_owned().await;
                (listener.accept().await, place)
            } => accepted,
        };
        let (Ok((stream, _)), Ok(place)) = accepted else {
            rest(AFTER_A_FAILURE).await;
            continue;
        };
        // An answer is one small packet.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        connections.spawn(async move {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
            // A client that breaks off is its own business.
            let _ = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
            drop(place);
        });
    }
}
