//! One connection of an ordinary client.
//!
//! In: an address, a user, statements. Out: their outcome within a bound, told apart as a client can tell them. Must not:
//! use a connection again whose last statement did not come to an end.

use crate::ledger::Outcome;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, OptsBuilder, Row};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// Loopback answers in a millisecond; a server that stands still does not answer at all.
const CONNECT: Duration = Duration::from_secs(1);

/// A commit waits for the disk; a busy one takes some tenths of a second.
pub(crate) const STATEMENT: Duration = Duration::from_secs(2);

/// Server errors after which nobody knows whether the write was done: shutdown, killed, failed during commit.
const IN_DOUBT: [u16; 4] = [1053, 1317, 1180, 3024];

/// There is no such database or no such table.
const NOT_THERE: [u16; 2] = [1049, 1146];

/// See above.
pub(crate) struct Client {
    connection: Conn,
    uuid: String,
}

/// How a write ended, and whether the connection can be used again.
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) usable: bool,
    /// The table is not there.
    pub(crate) no_table: bool,
}

impl Client {
    /// Connects, and asks the server who it is.
    pub(crate) async fn open(address: SocketAddr, user: &str, password: &str) -> Option<Self> {
        let options = OptsBuilder::default()
            .ip_or_hostname(address.ip().to_string())
            .tcp_port(address.port())
            .user(Some(user))
            .pass(Some(password))
            .prefer_socket(false)
            .stmt_cache_size(0)
            // Known values: otherwise each connection begins with another question.
            .max_allowed_packet(Some(1 << 20))
            .wait_timeout(Some(28_800));
        let connect = async {
            let mut connection = Conn::new(options).await?;
            let uuid: Option<String> = connection.query_first("SELECT @@server_uuid").await?;
            Ok::<_, Error>((connection, uuid))
        };
        let (connection, uuid) = timeout(CONNECT, connect).await.ok()?.ok()?;
        Some(Self { connection, uuid: uuid? })
    }

    /// The server's uuid.
    pub(crate) fn uuid(&self) -> &str {
        &self.uuid
    }

    /// Sends a write.
    pub(crate) async fn write(&mut self, statement: &str) -> Ending {
        match timeout(STATEMENT, self.connection.query_drop(statement)).await {
            Ok(Ok(())) => Ending { outcome: Outcome::Acknowledged, usable: true, no_table: false },
            Ok(Err(Error::Server(error))) if !IN_DOUBT.contains(&error.code) => {
                Ending { outcome: Outcome::Refused, usable: true, no_table: NOT_THERE.contains(&error.code) }
            }
            Ok(Err(_)) | Err(_) => Ending { outcome: Outcome::Unknown, usable: false, no_table: false },
        }
    }

    /// Asks a question; none: no answer in time, or one that makes no sense. The connection is gone then.
    pub(crate) async fn ask(mut self, question: &str, within: Duration) -> Option<(Self, Vec<Row>)> {
        let rows = timeout(within, self.connection.query(question)).await.ok()?.ok()?;
        Some((self, rows))
    }
}
