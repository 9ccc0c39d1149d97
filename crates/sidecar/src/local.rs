//! The server beside this sidecar: how it is reached, and the sessions that are kept for it.
//!
//! In: where it is, the operator account's files. Out: sessions, readings for people. Must not: open it (see
//! [`crate::lane`]), wait without a deadline, or keep a session for another start of mysqld than it was made for.

use crate::config::{Mysql, OPENER};
use bloodraven_brain::message::StartId;
use bloodraven_mysql::{Account, Deadline, Error, Reading, Server, Session, Spared, poll};
use snafu::{ResultExt as _, Snafu};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Turn;

/// How long a reading for people may take.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// How old such a reading may be: who asks more often gets the same again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How long the admin port may take to refuse before the other way is tried.
const ADMIN_FIRST: Duration = Duration::from_secs(1);

/// Roles whose sessions a fence leaves alone; their user names stand beside the operator's.
const SPARED_ROLES: [&str; 3] = ["replication", "monitor", "backup"];

/// See above.
#[derive(Debug)]
pub(crate) struct Local {
    mysql: Mysql,
    /// The lane's session, and the start it was made for.
    kept: Mutex<Option<(StartId, Session)>>,
    looked: Turn<Option<Looked>>,
}

#[derive(Debug)]
struct Looked {
    at: tokio::time::Instant,
    session: Option<Session>,
    reading: Result<Arc<Reading>, String>,
}

/// Why the operator account is not known.
#[derive(Debug, Snafu)]
#[snafu(display("MYSQL_CREDENTIALS_DIR: cannot read {}: {source}", path.display()))]
pub(crate) struct Unknown {
    path: PathBuf,
    source: io::Error,
}

/// Why there is no session.
#[derive(Debug, Snafu)]
pub(crate) enum NoSession {
    /// The account is not known.
    #[snafu(transparent)]
    Account {
        /// Why not.
        source: Unknown,
    },
    /// The server did not do what was asked.
    #[snafu(transparent)]
    Server {
        /// What it did instead.
        source: Error,
    },
}

impl Local {
    pub(crate) fn new(mysql: Mysql) -> Self {
        Self { mysql, kept: Mutex::new(None), looked: Turn::new(None) }
    }

    /// The admin port, for the opener.
    pub(crate) fn admin(&self) -> (&str, u16) {
        (&self.mysql.admin.0, self.mysql.admin.1)
    }

    /// Reads the account anew each time: it may have been rotated.
    async fn account(&self) -> Result<Account, Unknown> {
        let folder = &self.mysql.credentials;
        let (user, password) = (text(folder.join("username")).await?, text(folder.join("password")).await?);
        Ok(Account::new(user, password))
    }

    /// Who is left alone when applications' sessions are ended.
    pub(crate) async fn spared(&self) -> Spared {
        let beside = self.mysql.credentials.parent().unwrap_or(Path::new("/"));
        let mut names = vec![OPENER.to_owned()];
        names.extend(text(self.mysql.credentials.join("username")).await.ok());
        for role in SPARED_ROLES {
            // Whose file is not mounted here has the name of its role.
            names.push(text(beside.join(role).join("username")).await.unwrap_or_else(|_| role.to_owned()));
        }
        Spared::accounts(names)
    }

    /// The server as the operator account reaches it: by the admin port, or else by the clients'.
    pub(crate) async fn servers(&self) -> Result<[Server; 2], Unknown> {
        let account = self.account().await?;
        let at = |(host, port): &(String, u16)| Server::new(host, *port, account.clone());
        Ok([at(&self.mysql.admin), at(&self.mysql.client)])
    }

    /// A new session.
    pub(crate) async fn open(&self, deadline: Deadline) -> Result<Session, NoSession> {
        let [admin, client] = self.servers().await?;
        match Session::open(&admin, deadline.but_within(ADMIN_FIRST.max(deadline.left() / 2))).await {
            Err(Error::Connect { .. }) => Ok(Session::open(&client, deadline).await?),
            opened => Ok(opened?),
        }
    }

    /// Does something over the session that is kept for that start, or over a new one, which is then kept.
    pub(crate) async fn over_kept<T>(
        &self,
        start: StartId,
        deadline: Deadline,
        act: impl AsyncFn(&mut Session, Deadline) -> Result<T, Error>,
    ) -> Result<T, NoSession> {
        if let Some(mut session) = self.take(start) {
            match act(&mut session, deadline).await {
                // It broke since it was last used: once more over a new one. All that is done here may be done twice.
                Err(Error::Lost { .. }) => {}
                outcome => {
                    self.keep(start, session);
                    return Ok(outcome?);
                }
            }
        }
        let mut session = self.open(deadline).await?;
        let outcome = act(&mut session, deadline).await;
        self.keep(start, session);
        Ok(outcome?)
    }

    fn take(&self, start: StartId) -> Option<Session> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|(of, session)| *of == start && session.is_usable()).map(|(_, session)| session)
    }

    fn keep(&self, start: StartId, session: Session) {
        if session.is_usable() {
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((start, session));
        }
    }

    /// What the server says of itself, at most half a second old; or why it is silent. One looks at a time.
    pub(crate) async fn look(&self) -> Result<Arc<Reading>, String> {
        let deadline = Deadline::within(LOOK_WITHIN);
        let silent = || "MySQL did not answer within 2 s".to_owned();
        let turn = tokio::time::timeout_at(deadline.instant(), self.looked.lock()).await;
        let Ok(mut looked) = turn else { return Err(silent()) };
        let session = match looked.take() {
            Some(last) if last.at.elapsed() < LOOK_AGAIN => {
                let reading = last.reading.clone();
                *looked = Some(last);
                return reading;
            }
            last => last.and_then(|last| last.session),
        };
        let found = tokio::time::timeout_at(deadline.instant(), self.read(session, deadline)).await;
        let (session, reading) = found.unwrap_or_else(|_| (None, Err(silent())));
        *looked = Some(Looked { at: tokio::time::Instant::now(), session, reading: reading.clone() });
        reading
    }

    async fn read(
        &self,
        session: Option<Session>,
        deadline: Deadline,
    ) -> (Option<Session>, Result<Arc<Reading>, String>) {
        if let Some(mut session) = session.filter(Session::is_usable)
            && let Ok(reading) = poll(&mut session, deadline).await
        {
            return (Some(session), Ok(Arc::new(reading)));
        }
        let mut session = match self.open(deadline).await {
            Ok(session) => session,
            Err(error) => return (None, Err(error.to_string())),
        };
        match poll(&mut session, deadline).await {
            Ok(reading) => (Some(session), Ok(Arc::new(reading))),
            Err(error) => (None, Err(error.to_string())),
        }
    }
}

/// A small file, without the line end that editors leave.
async fn text(path: PathBuf) -> Result<String, Unknown> {
    let read = tokio::fs::read_to_string(&path).await.context(UnknownSnafu { path })?;
    Ok(read.trim_end_matches(['\r', '\n']).to_owned())
}
