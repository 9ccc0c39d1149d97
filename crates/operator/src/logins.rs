//! Accounts of a server: who is let in, new passwords, and what its channel logs in with.
//!
//! In: a session of the operator's, the accounts as the Secrets have them. Out: how the server answers logins, in the
//! brain's words. Must not: decide whose password is changed, or put one into words.

use crate::servers::Server;
use crate::world;
use bloodraven_brain::group::accounts::{AGAINST_THE_RULES, AccountRole, Channel, Logins, NO_SUCH_ACCOUNT};
use bloodraven_brain::group::input::Outcome;
use bloodraven_mysql::{Account, Deadline, Error, Session, Wanted, rotation};
use std::collections::{BTreeMap, BTreeSet};

/// Every account is of any host; who may connect is the network's business.
const HOST: &str = "%";

/// The server that is meant, and how it is reached.
pub(crate) struct Place<'a> {
    pub(crate) at: &'a Server,
    pub(crate) server: &'a bloodraven_mysql::Server,
    pub(crate) wanted: Wanted,
    pub(crate) deadline: Deadline,
}

impl Place<'_> {
    /// Logs in as everybody.
    pub(crate) async fn check(&self, session: &mut Session) -> Result<Outcome, Error> {
        Ok(Outcome::Logins(Box::new(self.logins(session).await?)))
    }

    /// An account that is let in already keeps the password that it had before; any other keeps the one that it has now.
    pub(crate) async fn set(&self, session: &mut Session, accounts: &[AccountRole]) -> Result<Outcome, Error> {
        let mut not_set = BTreeMap::new();
        for (role, account) in self.named(accounts) {
            let keeps = rotation::refusal(self.server, &account, self.deadline).await?.is_some();
            match rotation::set_password(session, self.wanted, &account, HOST, keeps, self.deadline).await {
                Ok(()) => {}
                Err(Error::Server { code: AGAINST_THE_RULES, .. }) => drop(not_set.insert(role, AGAINST_THE_RULES)),
                Err(error) => return Err(error),
            }
        }
        let mut logins = self.logins(session).await?;
        // Why it could not be set says more than that it is refused.
        logins.refused.extend(not_set);
        Ok(Outcome::Logins(Box::new(logins)))
    }

    /// The server throws its second password away, whichever that is: one that was put back may be the second. So each is set
    /// once more, and is the first for certain.
    pub(crate) async fn discard(&self, session: &mut Session, accounts: &[AccountRole]) -> Result<Outcome, Error> {
        for (_, account) in self.named(accounts) {
            match rotation::set_password(session, self.wanted, &account, HOST, false, self.deadline).await {
                Ok(()) => {}
                // It stays as it is: one of the two is the right one.
                Err(Error::Server { code: AGAINST_THE_RULES, .. }) => continue,
                Err(error) => return Err(error),
            }
            rotation::discard_password(session, self.wanted, &account.user, HOST, self.deadline).await?;
        }
        self.check(session).await
    }

    pub(crate) async fn renew_channel(&self, session: &mut Session) -> Result<Outcome, Error> {
        let Some(account) = &self.at.replication else {
            return Ok(Outcome::Refused("there is no replication account".to_owned()));
        };
        rotation::renew_channel(session, self.wanted, &login(account), self.deadline).await?;
        Ok(Outcome::Ok)
    }

    async fn logins(&self, session: &mut Session) -> Result<Logins, Error> {
        let users: Vec<&str> = self.at.accounts().map(|(_, account)| account.user.as_str()).collect();
        let there = rotation::accounts(session, &users, HOST, self.deadline).await?;
        let (mut refused, mut second) = (BTreeMap::new(), BTreeSet::new());
        for (role, account) in self.at.accounts() {
            let refusal = match there.get(&account.user) {
                None => Some(NO_SUCH_ACCOUNT),
                Some(_) => rotation::refusal(self.server, &login(account), self.deadline).await?,
            };
            refused.extend(refusal.map(|code| (role, code)));
            if there.get(&account.user) == Some(&true) {
                second.insert(role);
            }
        }
        let channel = match &self.at.replication {
            None => Channel::None,
            Some(account) => match rotation::channel_has(session, &login(account), self.deadline).await? {
                None => Channel::None,
                Some(true) => Channel::Current,
                Some(false) => Channel::Outdated,
            },
        };
        Ok(Logins { refused, second, channel })
    }

    fn named(&self, accounts: &[AccountRole]) -> Vec<(AccountRole, Account)> {
        let named = self.at.accounts().filter(|(role, _)| accounts.contains(role));
        named.map(|(role, account)| (role, login(account))).collect()
    }
}

fn login(account: &world::Account) -> Account {
    Account::new(account.user.clone(), account.password.as_str())
}
