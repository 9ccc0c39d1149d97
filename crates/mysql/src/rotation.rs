//! A new password for an account.
//!
//! In: a session on the primary, the account with its new password. Out: nothing. Must not: print either password, or be
//! used on a replica (the statement is replicated; a fenced server refuses it).

use crate::{Account, Deadline, Error, Session, Wanted, quote};

/// `ALTER USER … IDENTIFIED BY`.
pub async fn set_password(
    session: &mut Session,
    wanted: Wanted,
    account: &Account,
    host: &str,
    deadline: Deadline,
) -> Result<(), Error> {
    let statement = format!(
        "ALTER USER {}@{} IDENTIFIED BY {}",
        quote::text(&account.user),
        quote::text(host),
        quote::text(account.password.reveal())
    );
    session.change_in_secret("set a password", wanted, &statement, &[&account.password], deadline).await
}
