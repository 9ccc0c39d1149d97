//! The one file that knows the driver's habits.
//!
//! In: a server, a statement. Out: a connection, rows. Must not: wait for ever (callers wrap every call), let a panic of
//! the driver through (it panics on a malformed RSA key), leave a socket behind, or move to a socket file.

use crate::{Account, Server};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder, Row, SslOpts};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

/// The largest packet that is read or sent. GTID sets are the only long things here; one of a million intervals has 16 MB.
const LARGEST_PACKET: usize = 32 << 20;

/// The most rows that one packet's answers may have in all. Every statement here asks for at most a thousand.
const MOST_ROWS: usize = 10_000;

/// The connection attribute under which a session can be found on the server.
pub(crate) const ATTRIBUTE: &str = "bloodraven";

/// The connection attribute that tells what a session is for.
pub(crate) const PURPOSE: &str = "bloodraven_purpose";

/// What went wrong below.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The driver's error.
    Driver(mysql_async::Error),
    /// The driver panicked.
    Panicked,
    /// More rows than anybody asked for.
    TooMuch,
}

impl From<mysql_async::Error> for Trouble {
    fn from(error: mysql_async::Error) -> Self {
        Self::Driver(error)
    }
}

/// Connects and logs in.
pub(crate) async fn connect(server: &Server, account: &Account, token: &str) -> Result<Conn, Trouble> {
    let tls = server.tls.as_ref().map(|tls| {
        let options =
            SslOpts::default().with_root_certs(vec![tls.ca.to_vec().into()]).with_disable_built_in_roots(true);
        match &tls.name {
            Some(name) => options.with_danger_tls_hostname_override(Some(name.clone())),
            None => options,
        }
    });
    let options = OptsBuilder::default()
        .ip_or_hostname(server.host.clone())
        .tcp_port(server.port)
        .user(Some(account.user.clone()))
        .pass(Some(account.password.reveal()))
        .ssl_opts(tls)
        // On loopback the driver would otherwise ask for the socket file's path and go there: perhaps to another server.
        .prefer_socket(false)
        // Both known beforehand: saves the driver a round trip.
        .max_allowed_packet(Some(LARGEST_PACKET))
        .wait_timeout(Some(28_800))
        .stmt_cache_size(0)
        .tcp_nodelay(true)
        .connect_attribute(ATTRIBUTE, token);
    let options = match server.purpose {
        Some(purpose) => options.connect_attribute(PURPOSE, purpose),
        None => options,
    };
    unpanicked(Conn::new(options)).await.ok_or(Trouble::Panicked)?.map_err(Trouble::from)
}

/// Sends one packet of statements, and reads the rows of each.
pub(crate) async fn exchange(conn: &mut Conn, statements: &str) -> Result<Vec<Vec<Row>>, Trouble> {
    unpanicked(read_all(conn, statements)).await.ok_or(Trouble::Panicked)?
}

async fn read_all(conn: &mut Conn, statements: &str) -> Result<Vec<Vec<Row>>, Trouble> {
    let mut result = conn.query_iter(statements).await?;
    let (mut sets, mut count) = (Vec::new(), 0);
    // As many turns as there are statements in the packet.
    loop {
        let mut rows = Vec::new();
        while let Some(row) = result.next().await? {
            count += 1;
            if count > MOST_ROWS {
                return Err(Trouble::TooMuch);
            }
            rows.push(row);
        }
        sets.push(rows);
        if result.is_empty() {
            // "Empty" may also mean that the next statement failed: only this brings its error to light. Left there, it
            // would be the answer to the next question.
            result.drop_result().await?;
            return Ok(sets);
        }
    }
}

/// Closes a connection at once: says goodbye if the socket takes it without waiting. The driver's own way would wait, in
/// a task of its own, for a server that may never answer.
pub(crate) fn close(conn: Conn) {
    let goodbye = pin!(conn.disconnect());
    let _ = poll_unpanicked(goodbye, &mut Context::from_waker(Waker::noop()));
}

/// A future that gives nothing where it would have panicked.
async fn unpanicked<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| poll_unpanicked(future.as_mut(), context)).await
}

fn poll_unpanicked<F: Future>(future: Pin<&mut F>, context: &mut Context<'_>) -> std::task::Poll<Option<F::Output>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(poll) => poll.map(Some),
        Err(_) => std::task::Poll::Ready(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_below_is_an_answer_here() {
        let odd = |number: u32| async move {
            assert!(number < 2, "the driver met a malformed key");
            number
        };
        assert_eq!(unpanicked(odd(1)).await, Some(1));
        assert_eq!(unpanicked(odd(2)).await, None);
    }
}
