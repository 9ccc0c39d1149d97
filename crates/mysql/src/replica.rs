//! Single statements that steer replication.
//!
//! In: a session, the server that is meant. Out: nothing but success: what came of it is read by a poll (the server's OK to
//! a start proves nothing). Must not: throw relay logs away, except where the name says so.

use crate::error::{NotAReplicaSnafu, UnsafeSnafu};
use crate::poll::by_name;
use crate::replica_status;
use crate::{Account, Deadline, Error, Receiver, ReplicaReading, Session, Wanted, guard, quote};

/// How often a replica tries to reach its source again, in seconds. The server's own 60 is long against a failover.
const CONNECT_RETRY: u32 = 2;

/// And how many times: two days at that rate. The server's own number is small, and a replica that gave up stays down.
const RETRY_COUNT: u32 = 86_400;

/// What the guard of a changed delay says.
const RECEIVER_OFF: &str = "the receiver is off";

/// Where a replica gets its transactions from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The stable name of the site, never a pod's address.
    pub host: String,
    /// Its port for clients.
    pub port: u16,
    /// The replication account.
    pub account: Account,
    /// How the link is secured.
    pub tls: SourceTls,
}

/// How the link between two servers is secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceTls {
    /// Not at all; the password travels under the source's RSA key.
    Off,
    /// The source's certificate must come from this authority and carry its name.
    Verified {
        /// The authority's file, as the replica's server sees it.
        ca_file: String,
    },
}

/// `STOP REPLICA IO_THREAD`: nothing more is received.
pub async fn stop_receiver(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    session.change("stop the receiver", wanted, "STOP REPLICA IO_THREAD FOR CHANNEL ''", deadline).await.map(drop)
}

/// `STOP REPLICA`: both threads.
pub async fn stop(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    session.change("stop the replica", wanted, "STOP REPLICA FOR CHANNEL ''", deadline).await.map(drop)
}

/// `START REPLICA`: both threads.
pub async fn start(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    session.change("start the replica", wanted, "START REPLICA FOR CHANNEL ''", deadline).await.map(drop)
}

/// `START REPLICA SQL_THREAD`. A server without replication would start an applier that nobody sees: it is told apart
/// first.
pub async fn start_applier(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    const DOING: &str = "start the applier";
    wanted.check(session.place(), session.uuid())?;
    if status(session, deadline).await?.is_none() {
        return NotAReplicaSnafu { place: session.place(), doing: DOING }.fail();
    }
    session.change(DOING, wanted, "START REPLICA SQL_THREAD FOR CHANNEL ''", deadline).await.map(drop)
}

/// Stops the applier, sets its delay to zero, starts it. What was received stays.
///
/// With both threads off the server deletes the relay logs when the delay is changed. So a receiver that is off is
/// started for that moment (it need not reach its source), and one that does not stay up keeps the delay as it is.
pub async fn lift_delay(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    const DOING: &str = "lift the delay";
    wanted.check(session.place(), session.uuid())?;
    let Some(before) = status(session, deadline).await? else {
        return NotAReplicaSnafu { place: session.place(), doing: DOING }.fail();
    };
    let was_off = before.receiver == Receiver::Stopped;
    if was_off {
        session.change(DOING, wanted, "START REPLICA IO_THREAD FOR CHANNEL ''", deadline).await?;
    }
    let statements = format!(
        "STOP REPLICA SQL_THREAD FOR CHANNEL ''; {}; \
         CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0 FOR CHANNEL ''; START REPLICA SQL_THREAD FOR CHANNEL ''",
        guard::unless(
            "(SELECT SERVICE_STATE FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = '') \
             <> 'OFF'",
            RECEIVER_OFF
        )
    );
    let lifted = session.change(DOING, wanted, &statements, deadline).await;
    match lifted {
        Err(error) if guard::is_unless(&error, RECEIVER_OFF) => {
            session.change(DOING, wanted, "START REPLICA SQL_THREAD FOR CHANNEL ''", deadline).await?;
            let why = "the receiver does not stay up, and without it the server would delete what was received";
            return UnsafeSnafu { place: session.place(), doing: DOING, why }.fail();
        }
        other => other?,
    };
    if was_off { stop_receiver(session, wanted, deadline).await } else { Ok(()) }
}

/// `RESET REPLICA ALL`: settings and relay logs are gone, applied or not. Both threads must be stopped.
pub(crate) async fn reset_all(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    session.change("reset the replica", wanted, "RESET REPLICA ALL FOR CHANNEL ''", deadline).await.map(drop)
}

/// `CHANGE REPLICATION SOURCE TO`: deletes the relay logs. Both threads must be stopped.
pub(crate) async fn change_source(
    session: &mut Session,
    wanted: Wanted,
    source: &Source,
    deadline: Deadline,
) -> Result<(), Error> {
    let secrets = [&source.account.password];
    session.change_in_secret("point the replica", wanted, &change_statement(source), &secrets, deadline).await
}

/// `SHOW REPLICA STATUS` alone; none: not configured.
pub async fn status(session: &mut Session, deadline: Deadline) -> Result<Option<ReplicaReading>, Error> {
    const DOING: &str = "read the replica";
    let sets = session.ask(DOING, "SHOW REPLICA STATUS", deadline).await?;
    let rows: Vec<_> = sets.iter().flatten().map(by_name).collect();
    replica_status::read(&rows, None).map_err(|what| Error::Unreadable {
        place: session.place().to_owned(),
        doing: DOING,
        what,
    })
}

fn change_statement(source: &Source) -> String {
    let tls = match &source.tls {
        SourceTls::Off => "SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1".to_owned(),
        SourceTls::Verified { ca_file } => format!(
            "SOURCE_SSL = 1, SOURCE_SSL_CA = {}, SOURCE_SSL_VERIFY_SERVER_CERT = 1, GET_SOURCE_PUBLIC_KEY = 0",
            quote::text(ca_file)
        ),
    };
    format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = {}, SOURCE_PORT = {}, SOURCE_USER = {}, SOURCE_PASSWORD = {}, \
         SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = {CONNECT_RETRY}, SOURCE_RETRY_COUNT = {RETRY_COUNT}, {tls} \
         FOR CHANNEL ''",
        quote::text(&source.host),
        source.port,
        quote::text(&source.account.user),
        quote::text(source.account.password.reveal()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_written_with_everything_quoted() {
        let mut source =
            Source { host: "iad'".to_owned(), port: 3306, account: Account::new("repl", r"p\'w"), tls: SourceTls::Off };
        let plain = change_statement(&source);
        assert!(plain.contains(r"SOURCE_HOST = 'iad\'', SOURCE_PORT = 3306, SOURCE_USER = 'repl'"), "{plain}");
        assert!(plain.contains(r"SOURCE_PASSWORD = 'p\\\'w'"), "{plain}");
        assert!(plain.contains("GET_SOURCE_PUBLIC_KEY = 1") && plain.contains("SOURCE_AUTO_POSITION = 1"), "{plain}");
        source.tls = SourceTls::Verified { ca_file: "/etc/mysql/tls/ca.crt".to_owned() };
        let secure = change_statement(&source);
        assert!(secure.contains("SOURCE_SSL = 1, SOURCE_SSL_CA = '/etc/mysql/tls/ca.crt'"), "{secure}");
        assert!(secure.contains("SOURCE_SSL_VERIFY_SERVER_CERT = 1"), "{secure}");
        assert!(!format!("{source:?}").contains("p\\"), "{source:?}");
    }
}
