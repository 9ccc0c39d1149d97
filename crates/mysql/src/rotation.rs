//! New passwords: set on the primary, tried, and taken up by a replica's channel.
//!
//! In: sessions, accounts with their new passwords. Out: whom the server lets in, what a channel logs in with. Must not:
//! print a password or compare one on the server (the text would stand in its logs); set one on a replica (the statement is
//! replicated; a fenced server refuses it); let a channel's change delete what was received.

use crate::error::{NotAReplicaSnafu, UnsafeSnafu};
use crate::{Account, Deadline, Error, Reading, Receiver, Server, Session, Wanted, poll, quote, replica};
use std::collections::BTreeMap;

/// The server asks for a right to the administrators' port, and does so only when the password was right.
const NOT_FOR_ADMINISTRATORS: u16 = 1227;

/// `ALTER USER … IDENTIFIED BY`; with `keep` the present password stays good beside it, in place of any earlier one. Where
/// there is no such user nothing is done: servers make users for themselves, and a replica that lacks one would stop at an
/// error.
pub async fn set_password(
    session: &mut Session,
    wanted: Wanted,
    account: &Account,
    host: &str,
    keep: bool,
    deadline: Deadline,
) -> Result<(), Error> {
    const DOING: &str = "set a password";
    let statement = format!(
        "ALTER USER IF EXISTS {}@{} IDENTIFIED BY {}{}",
        quote::text(&account.user),
        quote::text(host),
        quote::text(account.password.reveal()),
        if keep { " RETAIN CURRENT PASSWORD" } else { "" }
    );
    still_wanted(session, DOING, wanted, deadline).await?;
    session.change_in_secret(DOING, wanted, &statement, &[&account.password], deadline).await
}

/// `ALTER USER … DISCARD OLD PASSWORD`: only the present one is good any more. Right also where there is no other.
pub async fn discard_password(
    session: &mut Session,
    wanted: Wanted,
    user: &str,
    host: &str,
    deadline: Deadline,
) -> Result<(), Error> {
    let statement = format!("ALTER USER IF EXISTS {}@{} DISCARD OLD PASSWORD", quote::text(user), quote::text(host));
    session.change("discard a password", wanted, &statement, deadline).await.map(drop)
}

/// Those of these users that there are, and whether they are let in with a second password, too.
pub async fn accounts(
    session: &mut Session,
    users: &[&str],
    host: &str,
    deadline: Deadline,
) -> Result<BTreeMap<String, bool>, Error> {
    const DOING: &str = "read accounts";
    if users.is_empty() {
        return Ok(BTreeMap::new());
    }
    let users: Vec<String> = users.iter().map(|user| quote::text(user)).collect();
    let statement = format!(
        "SELECT User, JSON_EXTRACT(User_attributes, '$.additional_password') IS NOT NULL FROM mysql.user \
         WHERE Host = {} AND User IN ({})",
        quote::text(host),
        users.join(", ")
    );
    let sets = session.ask(DOING, &statement, deadline).await?;
    let rows = sets.iter().flatten().map(|row| session.columns(DOING, row));
    rows.map(|row| Ok((row.text(0, "a user")?, row.flag(1, "its second password")?))).collect()
}

/// Logs in with that account and no other; the server's error number where it refuses.
pub async fn refusal(server: &Server, account: &Account, deadline: Deadline) -> Result<Option<u16>, Error> {
    match Session::open_as(server, account, deadline).await {
        Ok(_) | Err(Error::LoginRefused { code: NOT_FOR_ADMINISTRATORS, .. }) => Ok(None),
        Err(Error::LoginRefused { code, .. }) => Ok(Some(code)),
        Err(error) => Err(error),
    }
}

/// Whether the channel logs in at its source with that account and password; none: there is no channel.
pub async fn channel_has(session: &mut Session, account: &Account, deadline: Deadline) -> Result<Option<bool>, Error> {
    const DOING: &str = "read the channel's account";
    let statement = "SELECT User_name, User_password FROM mysql.slave_master_info WHERE Channel_name = ''";
    let sets = session.ask(DOING, statement, deadline).await?;
    let Some(row) = sets.into_iter().flatten().next() else { return Ok(None) };
    let columns = session.columns(DOING, &row);
    let (user, password) = (columns.text(0, "the user")?, columns.text(1, "its password")?);
    Ok(Some(user == account.user && password == account.password.reveal()))
}

/// Gives the channel another account. The receiver is stopped for it, and started again if it ran.
///
/// The server deletes what was received when neither thread runs. So the applier has to run, or to have nothing left.
pub async fn renew_channel(
    session: &mut Session,
    wanted: Wanted,
    account: &Account,
    deadline: Deadline,
) -> Result<(), Error> {
    const DOING: &str = "renew the channel's account";
    wanted.check(session.place(), session.uuid())?;
    let Some(before) = replica::status(session, deadline).await? else {
        return NotAReplicaSnafu { place: session.place(), doing: DOING }.fail();
    };
    let ran = before.receiver != Receiver::Stopped;
    if ran {
        replica::stop_receiver(session, wanted, deadline).await?;
    }
    let renewed = renew_stopped(session, DOING, wanted, account, deadline).await;
    if ran && session.is_usable() {
        session.change(DOING, wanted, "START REPLICA IO_THREAD FOR CHANNEL ''", deadline).await?;
    }
    renewed
}

async fn renew_stopped(
    session: &mut Session,
    doing: &'static str,
    wanted: Wanted,
    account: &Account,
    deadline: Deadline,
) -> Result<(), Error> {
    if !keeps_what_it_received(&poll(session, deadline).await?) {
        let why = "the applier does not run, and the server would delete what was received and not applied";
        return UnsafeSnafu { place: session.place(), doing, why }.fail();
    }
    let statement = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_USER = {}, SOURCE_PASSWORD = {} FOR CHANNEL ''",
        quote::text(&account.user),
        quote::text(account.password.reveal())
    );
    still_wanted(session, doing, wanted, deadline).await?;
    session.change_in_secret(doing, wanted, &statement, &[&account.password], deadline).await
}

/// The applier runs, or everything that was received is executed.
fn keeps_what_it_received(reading: &Reading) -> bool {
    let Some(replica) = &reading.replica else { return false };
    let left = match (&reading.executed, &replica.received) {
        (Some(executed), Some(received)) => !executed.contains(received),
        _ => true,
    };
    replica.applier_running || !left
}

/// A statement with a password is sent without the guard; right before it the guard is sent alone.
async fn still_wanted(
    session: &mut Session,
    doing: &'static str,
    wanted: Wanted,
    deadline: Deadline,
) -> Result<(), Error> {
    session.change(doing, wanted, "DO 0", deadline).await.map(drop)
}
