//! Real servers: the brain's tasks, as verbs of `bloodraven-mysql`, and what they read, in the brain's words.
//!
//! In: tasks. Out: outcomes. Must not: contain a statement, try anything twice, or take a source for a site by anything but
//! the address that the world gives it.

use crate::logins::Place;
use crate::servers::{Looked, Server, Servers, Silent};
use crate::world::HostPort;
use bloodraven_brain::candidate::Data;
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::group::Task;
use bloodraven_brain::group::command::{SourceSwitch, Switch};
use bloodraven_brain::group::input::{Facts, Outcome, ReplicaFacts, SemiSync, SourceSide};
use bloodraven_brain::group::spec::Durability;
use bloodraven_brain::name::Site;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::Millis;
use bloodraven_gtid::{GtidSet, Uuid};
use bloodraven_mysql as mysql;
use bloodraven_mysql::semi_sync::Source;
use bloodraven_mysql::{Deadline, Error, Guarded, Session, Spared, Wanted, semi_sync, sessions, sets};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One slice of waiting for a set; the brain asks again.
const WAIT_SLICE: Duration = Duration::from_secs(1);

/// So long a session of an earlier account is used.
const TRIED_AGAIN: Duration = Duration::from_secs(30);

/// MySQL.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mysql;

impl Servers for Mysql {
    type Session = Session;

    async fn poll(&self, at: &Server, session: &mut Option<Session>, within: Duration) -> Result<Looked, Silent> {
        let deadline = Deadline::within(within);
        let mut open = taken_or_new(session, at, deadline).await?;
        let reading = mysql::poll(&mut open, deadline).await.map_err(|error| silent(&error))?;
        *session = Some(open);
        Ok(looked(&reading, &at.peers))
    }

    async fn work(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        meant: Option<Uuid>,
        task: &Task,
        within: Duration,
    ) -> Outcome {
        let deadline = Deadline::within(within);
        // Taken out: a task that is dropped half-way, or fails, leaves no session behind.
        match perform(at, session.take(), meant.into(), task, deadline).await {
            Ok((outcome, kept)) => {
                *session = kept;
                outcome
            }
            Err(error) if error.is_login() => Outcome::Refused(error.to_string()),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    async fn commit(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        meant: Uuid,
        within: Duration,
    ) -> Result<(), Silent> {
        let (deadline, wanted) = (Deadline::within(within), Wanted::Only(meant));
        let mut open = if let Some(open) = session.take().filter(|open| is_current(open, at)) {
            open
        } else {
            let mut open = Session::open(&target(at), deadline).await.map_err(|error| silent(&error))?;
            mysql::write_probe::prepare(&mut open, wanted, deadline).await.map_err(|error| uncommitted(&error))?;
            open
        };
        mysql::write_probe::write_probe(&mut open, wanted, deadline).await.map_err(|error| uncommitted(&error))?;
        *session = Some(open);
        Ok(())
    }

    async fn disabled_events(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        within: Duration,
    ) -> Result<Vec<String>, Silent> {
        let deadline = Deadline::within(within);
        let (mut open, kept) = match session.take().filter(|open| is_current(open, at)) {
            Some(open) => (open, true),
            None => (Session::open(&target(at), deadline).await.map_err(|error| silent(&error))?, false),
        };
        let names = mysql::events::disabled_on_replica(&mut open, deadline).await.map_err(|error| silent(&error))?;
        // One that was made here has not prepared a commit.
        *session = kept.then_some(open);
        Ok(names)
    }

    async fn clone_bytes(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        within: Duration,
    ) -> Result<Option<(u64, u64)>, Silent> {
        let deadline = Deadline::within(within);
        let mut open = taken_or_new(session, at, deadline).await?;
        let bytes = mysql::progress::clone_bytes(&mut open, deadline).await.map_err(|error| silent(&error))?;
        *session = Some(open);
        Ok(bytes)
    }
}

/// The session of last time, if it is still good, or a new one. Taken out: a call that is dropped half-way, or fails, leaves no
/// session behind.
async fn taken_or_new(session: &mut Option<Session>, at: &Server, deadline: Deadline) -> Result<Session, Silent> {
    match session.take().filter(|open| is_current(open, at)) {
        Some(open) => Ok(open),
        None => Session::open(&target(at), deadline).await.map_err(|error| silent(&error)),
    }
}

/// Short tasks share a session: connecting takes longer than they do. A fence ends with its own; what waits for threads or
/// for a whole copy has its own, too.
async fn perform(
    at: &Server,
    kept: Option<Session>,
    wanted: Wanted,
    task: &Task,
    deadline: Deadline,
) -> Result<(Outcome, Option<Session>), Error> {
    let server = target(at);
    let alone = match task {
        Task::Fence => fence(at, &server, wanted, deadline).await?,
        Task::Attach { source, contained_in } => match replication_source(at, source) {
            Some(source) => {
                let done = mysql::attach(&server, wanted, &source, contained_in, &spared(at), deadline).await?;
                read(at, done.reading())
            }
            None => no_account(source),
        },
        Task::Repoint { source, contained_in } => match replication_source(at, source) {
            Some(source) => {
                let done = mysql::repoint(&server, wanted, &source, contained_in, deadline).await?;
                read(at, done.reading())
            }
            None => no_account(source),
        },
        Task::Clone { donor, over, asked: _ } => copy(at, &server, wanted, donor, over.as_deref(), deadline).await?,
        Task::Cache(_) => Outcome::Failed("caches are not built yet".to_owned()),
        Task::CheckLogins { version }
        | Task::SetPasswords { version, .. }
        | Task::DiscardPasswords { version, .. }
        | Task::RenewChannel { version }
            if *version != at.version =>
        {
            Outcome::Failed("the Secrets are others by now".to_owned())
        }
        Task::CheckLogins { .. }
        | Task::SetPasswords { .. }
        | Task::DiscardPasswords { .. }
        | Task::RenewChannel { .. } => {
            let mut session = Session::open(&server, deadline).await?;
            let place = Place { at, server: &server, wanted, deadline };
            match task {
                Task::SetPasswords { accounts, .. } => place.set(&mut session, accounts).await?,
                Task::DiscardPasswords { accounts, .. } => place.discard(&mut session, accounts).await?,
                Task::RenewChannel { .. } => place.renew_channel(&mut session).await?,
                _ => place.check(&mut session).await?,
            }
        }
        Task::Read
        | Task::EndSessions
        | Task::StopReceiver
        | Task::StartApplier
        | Task::LiftDelay
        | Task::StartReplica
        | Task::SwitchSemiSync(_)
        | Task::WaitFor { .. }
        | Task::CutReplication { .. } => {
            let mut session = match kept {
                Some(session) => session,
                None => Session::open(&server, deadline).await?,
            };
            let outcome = over_one_session(at, &mut session, wanted, task, deadline).await?;
            return Ok((outcome, Some(session)));
        }
    };
    Ok((alone, None))
}

async fn copy(
    at: &Server,
    server: &mysql::Server,
    wanted: Wanted,
    donor: &Site,
    over: Option<&GtidSet>,
    deadline: Deadline,
) -> Result<Outcome, Error> {
    let Some(donor) = clone_donor(at, donor) else { return Ok(no_account(donor)) };
    let order = mysql::CloneOrder { donor: &donor, over, spared: &spared(at) };
    Ok(match mysql::clone(server, wanted, order, deadline).await? {
        Guarded::Acted(_) => Outcome::Cloned,
        Guarded::Refused { why, .. } => Outcome::Failed(why),
    })
}

/// The fence, and what is there afterwards, over the same session; it ends with this. What may still land is ended first.
async fn fence(at: &Server, server: &mysql::Server, wanted: Wanted, deadline: Deadline) -> Result<Outcome, Error> {
    let session = Session::open(server, deadline).await?;
    match mysql::fence::fence_over(session, wanted, &spared(at), deadline).await {
        Ok((_, mut session)) => Ok(read(at, &mysql::poll(&mut session, deadline).await?)),
        Err(unfenced) => {
            if let Some(mark) = &unfenced.left {
                // Its own failure is the same news: nobody saw it end.
                let _ = sessions::end_marked(server, wanted, mark, deadline).await;
            }
            Ok(Outcome::Failed(unfenced.to_string()))
        }
    }
}

async fn over_one_session(
    at: &Server,
    session: &mut Session,
    wanted: Wanted,
    task: &Task,
    deadline: Deadline,
) -> Result<Outcome, Error> {
    match task {
        Task::CutReplication { unapplied } => {
            let cut = mysql::cut_over(session, wanted, unapplied, deadline).await?;
            return Ok(acted_or(at, &cut, |why| Outcome::Failed(why.to_owned())));
        }
        Task::EndSessions => {
            let ended = sessions::end_once(session, wanted, &spared(at), deadline).await?;
            return Ok(Outcome::Sessions(ended.left));
        }
        Task::StartApplier => {
            mysql::replica::start_applier(session, wanted, deadline).await?;
            return Ok(Outcome::Ok);
        }
        Task::LiftDelay => {
            mysql::replica::lift_delay(session, wanted, deadline).await?;
            return Ok(Outcome::Ok);
        }
        Task::StartReplica => {
            mysql::replica::start(session, wanted, deadline).await?;
            return Ok(Outcome::Ok);
        }
        Task::StopReceiver => mysql::replica::stop_receiver(session, wanted, deadline).await?,
        Task::SwitchSemiSync(switch) => switch_semi_sync(session, wanted, *switch, deadline).await?,
        Task::WaitFor { set } => drop(sets::wait_for(session, set, WAIT_SLICE, deadline).await?),
        _ => {}
    }
    let reading = mysql::poll(session, deadline).await?;
    // A reading changes nothing, but one of another server says nothing about the one that is meant.
    if let Wanted::Only(meant) = wanted
        && meant != reading.server_uuid
    {
        return Ok(Outcome::Failed(format!("{} answers, not {meant}", reading.server_uuid)));
    }
    Ok(read(at, &reading))
}

async fn switch_semi_sync(
    session: &mut Session,
    wanted: Wanted,
    switch: Switch,
    deadline: Deadline,
) -> Result<(), Error> {
    let side = switch.source.map(|side| match side {
        SourceSwitch::On { timeout } => Source::On(Duration::from_millis(timeout.0)),
        SourceSwitch::OffIfClosed => Source::OffIfClosed,
        SourceSwitch::Off => Source::Off,
    });
    if let Some(side) = side {
        semi_sync::set_source(session, wanted, side, deadline).await?;
    }
    if let Some(on) = switch.replica {
        semi_sync::set_replica(session, wanted, on, deadline).await?;
        semi_sync::renew_receiver(session, wanted, deadline).await?;
    }
    Ok(())
}

fn acted_or(at: &Server, guarded: &Guarded, refused: impl FnOnce(&str) -> Outcome) -> Outcome {
    match guarded {
        Guarded::Acted(reading) => read(at, reading),
        Guarded::Refused { why, .. } => refused(why),
    }
}

fn read(at: &Server, reading: &mysql::Reading) -> Outcome {
    Outcome::Read(Box::new(looked(reading, &at.peers).facts))
}

fn no_account(site: &Site) -> Outcome {
    Outcome::Refused(format!("there is no replication account, or no address of {site}"))
}

fn silent(error: &Error) -> Silent {
    let words = error.to_string();
    if error.is_login() {
        Silent::LoginRefused(words)
    } else if error.is_untrusted() {
        Silent::Untrusted(words)
    } else {
        Silent::Failed(words)
    }
}

/// A server that is fenced by now, or does not give the account the right, has answered: nothing hangs there.
fn uncommitted(error: &Error) -> Silent {
    const REFUSALS: [u16; 6] = [1044, 1142, 1227, 1290, 1792, 1836];
    match error.code() {
        Some(code) if REFUSALS.contains(&code) => Silent::LoginRefused(error.to_string()),
        _ => silent(error),
    }
}

/// One that was let in with an earlier account is opened anew once in a while: by then the server may have the new one.
fn is_current(session: &Session, at: &Server) -> bool {
    let account = session.account();
    let newest = account.user == at.operator.user && account.password.reveal() == at.operator.password;
    newest || session.since().elapsed() < TRIED_AGAIN
}

fn target(at: &Server) -> mysql::Server {
    let account = mysql::Account::new(at.operator.user.clone(), at.operator.password.as_str());
    let earlier = at.earlier.iter().map(|account| mysql::Account::new(account.user.clone(), account.password.as_str()));
    let server = mysql::Server::new(at.admin.host.clone(), at.admin.port, account).with_earlier(earlier.collect());
    match &at.tls {
        Some(tls) => server.with_tls(mysql::Tls { ca: Arc::from(tls.ca.as_slice()), name: None }),
        None => server,
    }
}

fn spared(at: &Server) -> Spared {
    let ours = [Some(&at.operator), at.replication.as_ref()].into_iter().flatten().map(|account| account.user.clone());
    Spared::accounts(ours.chain(at.spared.iter().cloned()))
}

fn replication_source(at: &Server, site: &Site) -> Option<mysql::Source> {
    let (account, HostPort { host, port }) = (at.replication.as_ref()?, at.peers.get(site)?);
    let tls = match &at.tls {
        Some(tls) => mysql::SourceTls::Verified { ca_file: tls.ca_at_server.clone() },
        None => mysql::SourceTls::Off,
    };
    let account = mysql::Account::new(account.user.clone(), account.password.as_str());
    Some(mysql::Source { host: host.clone(), port: *port, account, tls })
}

fn clone_donor(at: &Server, site: &Site) -> Option<mysql::Donor> {
    let (account, HostPort { host, port }) = (at.replication.as_ref()?, at.peers.get(site)?);
    let account = mysql::Account::new(account.user.clone(), account.password.as_str());
    Some(mysql::Donor { host: host.clone(), port: *port, account, tls: at.tls.is_some() })
}

/// What a server says, in the brain's words. A set that is not understood leaves all of them out: half of it would compare
/// as less than there is.
pub(crate) fn looked(reading: &mysql::Reading, peers: &BTreeMap<Site, HostPort>) -> Looked {
    let replica = reading.replica.as_ref();
    let received = match replica {
        Some(replica) => replica.received.clone(),
        None => Some(GtidSet::new()),
    };
    let data = match (reading.executed.clone(), received, reading.purged.clone()) {
        (Some(executed), Some(received), Some(purged)) => {
            // Not understood, it explains nothing: what a site has too much is told then, as it should be.
            let committing = reading.committing.clone().unwrap_or_default();
            Some(Data { executed, received, purged, committing })
        }
        _ => None,
    };
    let facts = Facts {
        pair: Pair { read_only: reading.pair.read_only, super_read_only: reading.pair.super_read_only },
        server_uuid: reading.server_uuid,
        data,
        replica: replica.map(|replica| replica_facts(replica, peers)),
        user_data: reading.user_data,
        semi_sync: semi_sync_facts(&reading.semi_sync),
    };
    Looked { facts, server_id: Some(reading.server_id), exhausted: reading.connections.is_exhausted() }
}

fn semi_sync_facts(says: &mysql::SemiSync) -> SemiSync {
    let wait = says.timeout.map(|wait| Millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
    let source = SourceSide { timeout: Durability::wait(wait.unwrap_or_default()), strict: says.strict };
    SemiSync {
        loaded: says.source_loaded && says.replica_loaded,
        source: says.source_enabled.then_some(source),
        waits: says.source_enabled && says.source_active,
        clients: says.clients,
        replica: says.replica_enabled,
        acknowledges: says.replica_active,
    }
}

fn replica_facts(replica: &mysql::ReplicaReading, peers: &BTreeMap<Site, HostPort>) -> ReplicaFacts {
    let is_source =
        |at: &HostPort| at.host.eq_ignore_ascii_case(&replica.source_host) && at.port == replica.source_port;
    let source = peers.iter().find(|(_, at)| is_source(at)).map(|(site, _)| site.clone());
    // A broken link is lag, not an error.
    let receiver_error = replica.receiver_error.as_ref().filter(|fault| !fault.is_link());
    let applier = match (&replica.applier_error, replica.applier_running) {
        (Some(fault), false) => Applier::Failed { code: fault.code, message: fault.message.clone() },
        (_, true) => Applier::Running,
        (None, false) => Applier::Stopped,
    };
    ReplicaFacts {
        source,
        receiver: match replica.receiver {
            mysql::Receiver::Running => Receiver::Running,
            mysql::Receiver::Connecting => Receiver::Connecting,
            mysql::Receiver::Stopped => Receiver::Stopped,
        },
        receiver_error: receiver_error.map(|fault| fault.message.clone()),
        applier,
        delayed: !replica.delay.is_zero(),
        behind: replica.behind.map(|behind| Millis(u64::try_from(behind.as_millis()).unwrap_or(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_gtid::GtidSet;
    use bloodraven_mysql::{Connections, Fault, Reading, ReplicaReading};

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn reading() -> Reading {
        Reading {
            server_uuid: UUID.parse().expect("a uuid"),
            server_id: 7,
            version: "8.4.0".to_owned(),
            uptime: Duration::from_secs(1),
            pair: mysql::Pair { read_only: true, super_read_only: false },
            executed: Some(format!("{UUID}:1-9").parse().expect("a set")),
            committing: Some(GtidSet::new()),
            purged: Some(GtidSet::new()),
            user_data: true,
            replica: Some(ReplicaReading {
                source_host: "IAD.example".to_owned(),
                source_port: 3306,
                source_uuid: None,
                receiver: mysql::Receiver::Connecting,
                receiver_error: Some(Fault { code: 2003, message: "cannot reach it".to_owned() }),
                applier_running: false,
                applier_error: Some(Fault { code: 1062, message: "twice".to_owned() }),
                received: Some(format!("{UUID}:9").parse().expect("a set")),
                delay: Duration::from_secs(3),
                behind: Some(Duration::from_secs(2)),
                auto_position: true,
                other_channels: 0,
            }),
            semi_sync: mysql::SemiSync::default(),
            connections: Connections { used: 1, most: 10, refused: 0 },
        }
    }

    fn peers() -> BTreeMap<Site, HostPort> {
        let at = |host: &str| HostPort { host: host.to_owned(), port: 3306 };
        BTreeMap::from([(Site::new("fra"), at("fra.example")), (Site::new("iad"), at("iad.example"))])
    }

    #[test]
    fn a_source_is_a_site_by_its_address_alone() {
        let facts = looked(&reading(), &peers()).facts;
        let replica = facts.replica.expect("a replica");
        assert_eq!(replica.source, Some(Site::new("iad")));
        assert_eq!(replica.receiver, Receiver::Connecting);
        // A link that is cut is no error.
        assert_eq!(replica.receiver_error, None);
        assert_eq!(replica.applier, Applier::Failed { code: 1062, message: "twice".to_owned() });
        assert_eq!((replica.delayed, replica.behind), (true, Some(Millis(2000))));
        let mut elsewhere = reading();
        if let Some(replica) = &mut elsewhere.replica {
            replica.source_port = 3307;
        }
        assert_eq!(looked(&elsewhere, &peers()).facts.replica.expect("a replica").source, None);
    }

    #[test]
    fn the_sides_are_what_the_server_says() {
        assert_eq!(looked(&reading(), &peers()).facts.semi_sync, SemiSync::default());
        let mut source = reading();
        source.semi_sync = mysql::SemiSync {
            source_loaded: true,
            source_enabled: true,
            source_active: true,
            clients: 2,
            replica_loaded: true,
            timeout: Some(Duration::from_millis(4_294_967_295)),
            strict: true,
            ..mysql::SemiSync::default()
        };
        let side = SourceSide { timeout: Millis(0), strict: true };
        let expect = SemiSync { loaded: true, source: Some(side), waits: true, clients: 2, ..SemiSync::default() };
        assert_eq!(looked(&source, &peers()).facts.semi_sync, expect);
        // Its settings say nothing while it is off.
        source.semi_sync.source_enabled = false;
        assert_eq!(looked(&source, &peers()).facts.semi_sync, SemiSync { source: None, waits: false, ..expect });
    }

    #[test]
    fn a_set_that_is_not_understood_leaves_no_set() {
        assert!(looked(&reading(), &peers()).facts.data.is_some());
        let mut unread = reading();
        unread.purged = None;
        assert_eq!(looked(&unread, &peers()).facts.data, None);
        let mut unread = reading();
        if let Some(replica) = &mut unread.replica {
            replica.received = None;
        }
        assert_eq!(looked(&unread, &peers()).facts.data, None);
    }
}
