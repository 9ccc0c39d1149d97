//! The opening: the only statement in the project that lets a server be written to, and the only file that can send it.
//!
//! In: the keeper's password for one start of mysqld. Out: a session of that start; later, whether the statement returned.
//! Must not: be reached by anything but the lane, go over another session than the one that stood before the permit was
//! asked for, or be sent after the lease: it carries its own expiry, so that one which lay in the buffer of a server that
//! stood still does nothing when the server goes on.

use crate::clock;
use crate::config::OPENER;
use bloodraven_brain::message::StartId;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_keeper::protocol::Password;
use bloodraven_mysql::Tls;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder, SslOpts};

/// Clears both variables.
const STATEMENT: &str = "SET GLOBAL read_only = OFF";

/// The server's clock, in microseconds of UTC since 2000; server and sidecar share one machine.
const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, '2000-01-01', UTC_TIMESTAMP(6))";

/// 2000-01-01 in milliseconds since 1970.
const YEAR_2000: i64 = 946_684_800_000;

/// Answers are one packet without rows.
const LARGEST_PACKET: usize = 1 << 20;

/// A session of the opener's.
pub(super) struct Opener {
    start: StartId,
    conn: Conn,
}

impl Opener {
    /// Logs in. The password is that of one start: on any other the login fails.
    pub(super) async fn connect(
        (host, port, tls): (&str, u16, Option<Tls>),
        start: StartId,
        password: &Password,
    ) -> Result<Self, String> {
        let options = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(port)
            .user(Some(OPENER))
            .pass(Some(password.reveal()))
            .ssl_opts(tls.map(|tls| verified(&tls)))
            // On loopback the driver would otherwise look for the socket file: perhaps of another server.
            .prefer_socket(false)
            .max_allowed_packet(Some(LARGEST_PACKET))
            .wait_timeout(Some(60))
            .stmt_cache_size(0)
            .tcp_nodelay(true);
        let conn = Conn::new(options).await.map_err(|error| error.to_string())?;
        Ok(Self { start, conn })
    }

    /// Whose session it is.
    pub(super) fn start(&self) -> StartId {
        self.start
    }

    /// Sends the statement, unless the lease is over by now; the server drops it when `within` has passed by then.
    pub(super) async fn open(mut self, lease: Boot, within: Millis) -> Result<(), String> {
        let now = clock::boot();
        if now >= lease {
            return Err("the lease is over".to_owned());
        }
        let left = Millis(within.0.min(lease.since(now).0));
        let until = clock::wall().after(left).0.saturating_sub(YEAR_2000).saturating_mul(1000);
        let expiry = format!("DO IF({CLOCK} < {until}, 0, UUID_TO_BIN('bloodraven: too late'))");
        self.conn.query_drop(format!("{expiry}; {STATEMENT}")).await.map_err(|error| error.to_string())
    }
}

/// No other authority, and the name that the certificate must have.
fn verified(tls: &Tls) -> SslOpts {
    let options = SslOpts::default().with_root_certs(vec![tls.ca.to_vec().into()]).with_disable_built_in_roots(true);
    options.with_danger_tls_hostname_override(tls.name.clone())
}
