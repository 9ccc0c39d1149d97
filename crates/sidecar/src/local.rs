//! The server beside this sidecar: how it is reached, and the sessions that are kept for it.
//!
//! In: where it is, the operator account's files, the authority of its certificate. Out: sessions, readings for people. Must not: open it (see
//! [`crate::lane`]), wait without a deadline, or keep a session for another start of mysqld than it was made for.

use crate::config::{Mysql, OPENER};
use bloodraven_brain::message::StartId;
use bloodraven_gtid::{GtidSet, Uuid};
use bloodraven_mysql::{Account, Deadline, Error, Reading, Server, Session, Spared, Tls, poll};
use snafu::{ResultExt as _, Snafu, ensure};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex as Turn;

/// How long a reading for people may take.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// How old such a reading may be: who asks more often gets the same again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Roles whose sessions a fence leaves alone; their user names stand beside the operator's.
const SPARED_ROLES: [&str; 3] = ["replication", "monitor", "backup"];

/// So many accounts of before are tried where a login is refused.
const EARLIER: usize = 4;

/// See above.
#[derive(Debug)]
pub(crate) struct Local {
    mysql: Mysql,
    /// As its files said last: no operation of the lane waits for a disk.
    accounts: RwLock<Accounts>,
    /// The lane's session, and the start it was made for.
    kept: Mutex<Option<(StartId, Session)>>,
    looked: Turn<Option<Looked>>,
}

/// Who the sidecar is on the server, whom a fence leaves alone, and how the server is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Accounts {
    operator: Account,
    /// Who it was before, the last one first: a new password comes to the file and to the server in no certain order.
    earlier: Vec<Account>,
    spared: Spared,
    tls: Option<Tls>,
}

#[derive(Debug)]
struct Looked {
    at: tokio::time::Instant,
    session: Option<Session>,
    reading: Result<Arc<Reading>, String>,
}

/// Why the operator account is not known, or the authority.
#[derive(Debug, Snafu)]
pub enum Unknown {
    /// A file cannot be read.
    #[snafu(display("{variable}: cannot read {}: {source}", path.display()))]
    Unread {
        /// The variable that names it.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds no certificate.
    #[snafu(display("{TLS_CA}: {} holds no certificate; put the authority's there, as PEM", path.display()))]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
}

const CREDENTIALS: &str = "MYSQL_CREDENTIALS_DIR";
const TLS_CA: &str = "MYSQL_TLS_CA";

impl Local {
    /// Reads the accounts. Blocks for as long as the files take.
    pub(crate) fn new(mysql: Mysql) -> Result<Self, Unknown> {
        let accounts = RwLock::new(read_accounts(&mysql)?);
        Ok(Self { mysql, accounts, kept: Mutex::new(None), looked: Turn::new(None) })
    }

    /// Reads the accounts again: they may have been rotated. What cannot be read changes nothing. Blocks.
    pub(crate) fn look_again(&self) -> Result<(), Unknown> {
        let mut found = read_accounts(&self.mysql)?;
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        found.earlier.clone_from(&accounts.earlier);
        if found.operator != accounts.operator {
            found.earlier.insert(0, accounts.operator.clone());
            found.earlier.retain(|account| *account != found.operator);
            found.earlier.truncate(EARLIER);
        }
        *accounts = found;
        Ok(())
    }

    /// The admin port, for the opener, and how the server is trusted there.
    pub(crate) fn admin(&self) -> (&str, u16, Option<Tls>) {
        (&self.mysql.admin.0, self.mysql.admin.1, self.accounts().tls)
    }

    fn accounts(&self) -> Accounts {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Who is left alone when applications' sessions are ended.
    pub(crate) fn spared(&self) -> Spared {
        self.accounts().spared
    }

    /// The server as the operator account reaches it: by the admin port, or else by the clients'.
    pub(crate) fn servers(&self) -> [Server; 2] {
        let Accounts { operator, earlier, spared: _, tls } = self.accounts();
        let at = |(host, port): &(String, u16)| Server {
            tls: tls.clone(),
            ..Server::new(host, *port, operator.clone()).with_earlier(earlier.clone())
        };
        [at(&self.mysql.admin), at(&self.mysql.client)]
    }

    /// A new session.
    pub(crate) async fn open(&self, deadline: Deadline) -> Result<Session, Error> {
        let [admin, client] = self.servers();
        match Session::open(&admin, deadline).await {
            // Where neither leads in, the first one's reason is the one to know.
            Err(first @ Error::Connect { .. }) => match Session::open(&client, deadline).await {
                Err(Error::Connect { .. }) => Err(first),
                opened => opened,
            },
            opened => opened,
        }
    }

    /// Does something over the session that is kept for that start, or over a new one, which is then kept.
    pub(crate) async fn over_kept<T>(
        &self,
        start: StartId,
        deadline: Deadline,
        act: impl AsyncFn(&mut Session, Deadline) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(mut session) = self.take(start) {
            match act(&mut session, deadline).await {
                // It broke since it was last used: once more over a new one. All that is done here may be done twice.
                Err(Error::Lost { .. }) => {}
                outcome => {
                    self.keep(start, session);
                    return outcome;
                }
            }
        }
        let mut session = self.open(deadline).await?;
        let outcome = act(&mut session, deadline).await;
        self.keep(start, session);
        outcome
    }

    /// Whether the server is that one, closed, and has executed nothing beyond this; read now, over a session of its own.
    pub(crate) async fn holds_no_more_than(
        &self,
        server: Uuid,
        over: &GtidSet,
        deadline: Deadline,
    ) -> Result<(), String> {
        let mut session = self.open(deadline).await.map_err(|error| error.to_string())?;
        let reading = poll(&mut session, deadline).await.map_err(|error| error.to_string())?;
        if reading.server_uuid != server {
            return Err(format!("the server is {}, not {server}", reading.server_uuid));
        }
        if !reading.pair.is_fenced() {
            return Err("the server is not fenced".to_owned());
        }
        match &reading.executed {
            None => Err("its set is not understood".to_owned()),
            Some(executed) if over.contains(executed) => Ok(()),
            Some(executed) => Err(format!("it has {} more", executed.subtract(over).compact())),
        }
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

fn read_accounts(mysql: &Mysql) -> Result<Accounts, Unknown> {
    let folder = &mysql.credentials;
    let operator = Account::new(text(&folder.join("username"))?, text(&folder.join("password"))?);
    let beside = folder.parent().unwrap_or(Path::new("/"));
    // Whose file is not mounted here has the name of its role.
    let named = |role: &str| text(&beside.join(role).join("username")).unwrap_or_else(|_| role.to_owned());
    let own = [OPENER.to_owned(), operator.user.clone()];
    let spared = Spared::accounts(own.into_iter().chain(SPARED_ROLES.map(named)));
    let tls = match &mysql.tls {
        Some(tls) => Some(Tls { ca: authority(&tls.ca)?.into_bytes().into(), name: Some(tls.name.clone()) }),
        None => None,
    };
    Ok(Accounts { operator, earlier: Vec::new(), spared, tls })
}

/// A small file, without the line end that editors leave.
fn text(path: &Path) -> Result<String, Unknown> {
    let read = std::fs::read_to_string(path).context(UnreadSnafu { variable: CREDENTIALS, path })?;
    Ok(read.trim_end_matches(['\r', '\n']).to_owned())
}

/// What is no certificate would let nobody in: the one before stays.
fn authority(path: &Path) -> Result<String, Unknown> {
    let read = std::fs::read_to_string(path).context(UnreadSnafu { variable: TLS_CA, path })?;
    ensure!(read.contains("-----BEGIN CERTIFICATE-----"), NoCertificateSnafu { path });
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    /// K-22: a sidecar's own accounts.
    #[test]
    fn accounts_are_those_of_the_files_and_rotate_with_them() {
        let folder = Folder::new();
        let at = |role: &str| folder.path().join(role);
        let write = |role: &str, name: &str, text: &str| {
            std::fs::create_dir_all(at(role)).expect("a folder");
            std::fs::write(at(role).join(name), text).expect("a file");
        };
        let nowhere = ("127.0.0.1".to_owned(), 1);
        let mysql = Mysql { admin: nowhere.clone(), client: nowhere, credentials: at("operator"), tls: None };
        let error = Local::new(mysql.clone()).expect_err("no files").to_string();
        assert!(error.starts_with("MYSQL_CREDENTIALS_DIR"), "{error}");
        write("operator", "username", "op\n");
        write("operator", "password", "one");
        write("replication", "username", "repl");
        let local = Local::new(mysql).expect("both are there");
        let user = |local: &Local| local.servers()[0].account.clone();
        assert_eq!(user(&local), Account::new("op", "one"));
        let spared = Spared::accounts([OPENER, "op", "repl", "monitor", "backup"]);
        assert_eq!(local.spared(), spared);
        write("operator", "password", "two");
        local.look_again().expect("there");
        assert_eq!(user(&local), Account::new("op", "two"));
        let earlier = |local: &Local| local.servers().map(|server| server.earlier);
        assert_eq!(earlier(&local), [vec![Account::new("op", "one")], vec![Account::new("op", "one")]]);
        local.look_again().expect("the same");
        assert_eq!(earlier(&local)[0].len(), 1, "the server may not have the new one yet");
        std::fs::remove_file(at("operator").join("password")).expect("there");
        assert!(local.look_again().is_err());
        assert_eq!(user(&local), Account::new("op", "two"), "what cannot be read changes nothing");
    }
    #[test]
    fn the_authority_is_that_of_the_file_and_goes_to_every_session() {
        const PEM: &str = "-----BEGIN CERTIFICATE-----\n";
        let folder = Folder::new();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write("username", "op");
        write("password", "one");
        let nowhere = ("127.0.0.1".to_owned(), 1);
        let tls = crate::config::TlsFile { ca: folder.path().join("ca.crt"), name: "mysql-g-iad-internal".to_owned() };
        let credentials = folder.path().to_owned();
        let mysql = Mysql { admin: nowhere.clone(), client: nowhere, credentials, tls: Some(tls) };
        let error = Local::new(mysql.clone()).expect_err("no file").to_string();
        assert!(error.starts_with("MYSQL_TLS_CA: cannot read"), "{error}");
        write("ca.crt", PEM);
        let local = Local::new(mysql).expect("there");
        let expect = Some(Tls { ca: PEM.as_bytes().into(), name: Some("mysql-g-iad-internal".to_owned()) });
        assert_eq!(local.admin().2, expect);
        assert!(local.servers().iter().all(|server| server.tls == expect));
        write("ca.crt", "not a certificate");
        let error = local.look_again().expect_err("garbage").to_string();
        assert!(error.starts_with("MYSQL_TLS_CA") && local.admin().2 == expect, "{error}");
    }
}
