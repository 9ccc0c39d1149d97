//! A group's secrets, read again every 30 s and after a refused login; until they are complete, sooner.
//!
//! In: the world's secrets. Out: the last ones that were complete, which they are, and who logged in before; word of a
//! change. Must not: forget what it knew because a reading failed, the key that was in force before the present one, or an
//! account that some server may still ask for; take what no server would.

use super::{Common, PATIENT_BOUND, Shared, lock, spec};
use crate::servers::Servers;
use crate::tasks::rest;
use crate::world::{Account, GroupId, MissingSecret, Secrets, World};
use bloodraven_brain::group::accounts::{AccountRole, CredentialsVersion};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Without a reason.
const AGAIN: Duration = Duration::from_secs(30);

/// With a reason: many logins may be refused at once.
const SOON: Duration = Duration::from_secs(1);

/// A spec or a key that is new is told of in several words.
const SWARM: Duration = Duration::from_millis(50);

/// So many accounts of before are tried where a login is refused: a Secret may change again before the first change has
/// reached every server.
const EARLIER: usize = 4;

/// As the keeper has it: neither reads more of a file.
const LONGEST_PASSWORD: usize = 1024;

/// The server's own bound for what a channel logs in with.
const LONGEST_OF_A_CHANNEL: usize = 32;

/// The server's own bound.
const LONGEST_USER: usize = 32;

/// What is known of a group's secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// As last read.
    pub(crate) now: Secrets,
    /// Which accounts and passwords these are.
    pub(crate) version: CredentialsVersion,
    /// Who logged in before, the last one first.
    pub(crate) earlier: Vec<Account>,
}

/// Runs as long as the group is attended to.
pub(super) async fn keep<W: World, S: Servers>(common: Arc<Common<W, S>>, shared: Arc<Shared>) {
    let (mut specs, mut reigns) = (shared.valid.subscribe(), common.reigns.clone());
    let mut missing: Option<MissingSecret> = None;
    let mut pauses = Pauses { complete: share(AGAIN, &shared.id), incomplete: SOON };
    loop {
        specs.borrow_and_update();
        let reign = reigns.borrow_and_update().map(|reign| reign.number);
        let now_missing = match Box::pin(read(&common, &shared)).await.and_then(usable) {
            Ok(secrets) => {
                let missing = secrets.missing.clone();
                shared.secrets.send_if_modified(|known| take(known, secrets));
                missing
            }
            Err(because) => Some(because),
        };
        *lock(&shared.unread) = now_missing.as_ref().filter(|it| it.is_peoples()).map(ToString::to_string);
        if now_missing != missing && common.leadership.holds() {
            let events = common.ears.secrets_missing(&shared.id, common.world.now(), now_missing.as_ref());
            shared.write(events);
            missing = now_missing;
        }
        let known = shared.secrets.borrow().is_some();
        let pause = pauses.next(known);
        tokio::select! {
            () = shared.reread.notified() => {}
            // Closed channels never wake: the timer does.
            Ok(()) = specs.changed(), if !known => {}
            Ok(_) = reigns.wait_for(|now| now.map(|now| now.number) != reign), if !known => {}
            () = rest(pause) => continue,
        }
        rest(if known { SOON } else { SWARM }).await;
    }
}

/// How long until they are read again without a reason.
struct Pauses {
    complete: Duration,
    incomplete: Duration,
}

impl Pauses {
    /// Longer each time while something is missing: a thousand groups may wait for somebody who makes their Secrets.
    fn next(&mut self, complete: bool) -> Duration {
        if complete {
            self.incomplete = SOON;
            return std::mem::replace(&mut self.complete, AGAIN);
        }
        let longer = self.incomplete.saturating_mul(2).min(AGAIN);
        std::mem::replace(&mut self.incomplete, longer)
    }
}

/// A part of that time which is a group's own: groups that are attended to in the same moment read apart from then on.
fn share(time: Duration, group: &GroupId) -> Duration {
    let mut hasher = DefaultHasher::new();
    group.hash(&mut hasher);
    // Nine bits are enough to spread a thousand groups over half a minute.
    let part = u32::try_from(hasher.finish() % 512).unwrap_or_default();
    time * (part + 1) / 512
}

/// Those that the spec in force names; without one, those that the object names, as far as it can be read.
async fn read<W: World, S: Servers>(common: &Common<W, S>, shared: &Shared) -> Result<Secrets, MissingSecret> {
    let unread = |because: String| MissingSecret::Unread { because };
    // Who does not lead takes no spec: what it took while it led may be long gone.
    let valid = shared.valid.borrow().clone().filter(|_| common.leadership.holds());
    let wanted = match &valid {
        Some(valid) => Cow::Borrowed(valid.object()),
        None => Cow::Owned(spec::typed(shared.object()).map_err(unread)?),
    };
    let read = timeout(PATIENT_BOUND, common.world.secrets(&shared.id, &wanted)).await;
    read.unwrap_or_else(|_| Err(unread(format!("no answer within {PATIENT_BOUND:?}"))))
}

/// Returns whether something is new.
fn take(known: &mut Option<Arc<Known>>, mut read: Secrets) -> bool {
    let Some(before) = known.as_deref() else {
        *known = Some(Arc::new(Known { now: read, version: CredentialsVersion(1), earlier: Vec::new() }));
        return true;
    };
    // Others may still sign with the key that was in force until now.
    if read.keys.previous.is_none() && before.now.keys.current != read.keys.current {
        read.keys.previous = Some(before.now.keys.current.clone());
    } else if read.keys.previous.is_none() {
        read.keys.previous.clone_from(&before.now.keys.previous);
    }
    if before.now == read {
        return false;
    }
    let accounts = |secrets: &Secrets| (secrets.operator.clone(), secrets.replication.clone(), secrets.others.clone());
    let others = accounts(&before.now) != accounts(&read);
    let version = CredentialsVersion(before.version.0 + u64::from(others));
    let mut earlier = before.earlier.clone();
    if before.now.operator != read.operator {
        earlier.insert(0, before.now.operator.clone());
    }
    earlier.retain(|account| *account != read.operator);
    earlier.truncate(EARLIER);
    *known = Some(Arc::new(Known { now: read, version, earlier }));
    true
}

/// What no server takes is not tried: it would be set on one, and refused by another. Without the operator's account or that
/// of replication nothing is taken; any other is left out.
fn usable(mut read: Secrets) -> Result<Secrets, MissingSecret> {
    let unusable = |role: AccountRole, because: &'static str| MissingSecret::Unusable { role, because };
    if read.tls.as_ref().is_some_and(|tls| !holds_a_certificate(&tls.ca)) {
        return Err(MissingSecret::Certificate);
    }
    check(AccountRole::Operator, &read.operator).map_err(|because| unusable(AccountRole::Operator, because))?;
    let mut users = vec![read.operator.user.clone()];
    if let Some(account) = &read.replication {
        let role = AccountRole::Replication;
        check(role, account).and_then(|()| is_new(&users, account)).map_err(|because| unusable(role, because))?;
        users.push(account.user.clone());
    }
    let mut missing = read.missing.take();
    read.others.retain(|role, account| match check(*role, account).and_then(|()| is_new(&users, account)) {
        Ok(()) => {
            users.push(account.user.clone());
            true
        }
        Err(because) => {
            missing.get_or_insert(unusable(*role, because));
            false
        }
    });
    Ok(Secrets { missing, ..read })
}

/// Whether there is a block of PEM that could be one: whom it names, and whether it is still good, the handshake finds out.
fn holds_a_certificate(pem: &[u8]) -> bool {
    const EDGES: [&str; 2] = ["-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"];
    let text = String::from_utf8_lossy(pem);
    let body = text.split_once(EDGES[0]).and_then(|(_, rest)| rest.split_once(EDGES[1])).map(|(body, _)| body);
    let body: String = body.unwrap_or_default().split_whitespace().collect();
    let is_base64 = |letter: u8| letter.is_ascii_alphanumeric() || b"+/=".contains(&letter);
    // A sequence of DER with a length of two bytes, as every certificate is.
    body.starts_with("MI") && body.len().is_multiple_of(4) && body.bytes().all(is_base64)
}

fn check(role: AccountRole, account: &Account) -> Result<(), &'static str> {
    let Account { user, password } = account;
    if user == "root" || user == "bloodraven_opener" || user.starts_with("mysql.") {
        return Err("its user belongs to the server; choose another name");
    }
    if user.is_empty() || user.chars().count() > LONGEST_USER {
        return Err("its user has no name, or one of more than 32 signs; choose a shorter one");
    }
    if password.is_empty() || password.len() > LONGEST_PASSWORD {
        return Err("its password is empty, or longer than 1024 bytes; choose another");
    }
    if role == AccountRole::Replication && password.chars().count() > LONGEST_OF_A_CHANNEL {
        return Err("its password has more than 32 signs, and no replica could log in with it; choose a shorter one");
    }
    Ok(())
}

fn is_new(users: &[String], account: &Account) -> Result<(), &'static str> {
    if users.contains(&account.user) { Err("another account has the same user; each has its own") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_wire::{Key, Keys};
    use std::collections::BTreeMap;

    fn account(user: &str, password: &str) -> Account {
        Account { user: user.to_owned(), password: password.to_owned() }
    }

    fn secrets(operator: &str, app: &str, key: u8) -> Secrets {
        Secrets {
            operator: account("op", operator),
            replication: Some(account("repl", "r")),
            others: BTreeMap::from([(AccountRole::App, account("app", app))]),
            missing: None,
            keys: Keys::only(Key::new([key; 32])),
            tls: None,
        }
    }

    #[test]
    fn a_change_has_a_number_and_who_logged_in_before_is_remembered() {
        let mut known = None;
        let mut read = |operator: &str, app: &str, key: u8| {
            let news = take(&mut known, secrets(operator, app, key));
            let known = known.as_ref().expect("known");
            let earlier: Vec<String> = known.earlier.iter().map(|account| account.password.clone()).collect();
            (news, known.version.0, earlier.join(" "), known.now.keys.previous.is_some())
        };
        let row = |news, version, earlier: &str, previous| (news, version, earlier.to_owned(), previous);
        assert_eq!(read("one", "a", 1), row(true, 1, "", false));
        assert_eq!(read("one", "a", 1), row(false, 1, "", false));
        assert_eq!(read("one", "b", 1), row(true, 2, "", false), "not who logs in");
        assert_eq!(read("one", "b", 2), row(true, 2, "", true), "a key is no account");
        assert_eq!(read("two", "b", 2), row(true, 3, "one", true));
        assert_eq!(read("one", "b", 2), row(true, 4, "two", true), "back again");
        for (number, password) in ["three", "four", "five", "six"].into_iter().enumerate() {
            assert_eq!(read(password, "b", 2).1, 5 + u64::try_from(number).expect("small"));
        }
        assert_eq!(read("six", "b", 2), row(false, 8, "five four three one", true), "bounded");
    }

    #[test]
    fn who_waits_for_its_secrets_asks_less_often_each_time() {
        let mut pauses = Pauses { complete: Duration::from_secs(7), incomplete: SOON };
        let mut seconds = |complete: &[bool]| -> Vec<u64> {
            complete.iter().map(|complete| pauses.next(*complete).as_secs()).collect()
        };
        assert_eq!(seconds(&[false; 7]), [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(seconds(&[true; 3]), [7, 30, 30], "the first time in its own turn");
        assert_eq!(seconds(&[false, false, true]), [1, 2, 30]);
    }

    #[test]
    fn groups_that_begin_together_read_apart() {
        let whole = Duration::from_secs(30);
        let shares: Vec<Duration> =
            (0..300).map(|group| share(whole, &GroupId::new("shop", &format!("orders-{group}")))).collect();
        assert!(shares.iter().all(|share| !share.is_zero() && *share <= whole));
        let third = |from: u64| shares.iter().filter(|share| (from..from + 10).contains(&share.as_secs())).count();
        assert!([third(0), third(10), third(20)].into_iter().all(|count| (50..150).contains(&count)), "{shares:?}");
    }

    #[test]
    fn what_is_no_certificate_leaves_the_one_before_in_force() {
        let begin = "-----BEGIN CERTIFICATE-----\n";
        let rows = [
            (format!("{begin}MIIBszCCAVmg\nAwIBAgIU\n-----END CERTIFICATE-----\n"), true),
            (format!("# ours\n{begin}MIIBszCCAVmg\n-----END CERTIFICATE-----"), true),
            (format!("{begin}MIIBszCCAVmg\n"), false),
            (format!("{begin}MIIBsz!CAVmg\n-----END CERTIFICATE-----"), false),
            (format!("{begin}-----END CERTIFICATE-----"), false),
            ("-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----".to_owned(), false),
            ("one".to_owned(), false),
        ];
        for (text, fine) in rows {
            let tls = Some(crate::world::TlsFiles { ca: text.clone().into_bytes(), ca_at_server: String::new() });
            let taken = usable(Secrets { tls, ..secrets("one", "a", 1) });
            assert_eq!(taken.is_ok(), fine, "{text}");
            assert!(fine || taken == Err(MissingSecret::Certificate), "{text}");
        }
    }

    #[test]
    fn what_no_server_takes_is_left_out_or_refused() {
        type Row = (&'static str, fn(&mut Secrets, &str), bool, &'static str);
        let long = "x".repeat(33);
        let rows: [Row; 6] = [
            ("fine", |_, _| {}, true, ""),
            (
                "long",
                |all, long| all.replication = Some(account("repl", long)),
                false,
                "the replication account cannot be used: its password has more than 32 signs",
            ),
            ("long for others", |all, long| all.operator.password = long.to_owned(), true, ""),
            (
                "root",
                |all, _| all.operator.user = "root".to_owned(),
                false,
                "the operator account cannot be used: its user belongs to the server",
            ),
            (
                "twice",
                |all, _| all.replication = Some(account("op", "r")),
                false,
                "the replication account cannot be used: another account has the same user",
            ),
            (
                "twice elsewhere",
                |all, _| drop(all.others.insert(AccountRole::Monitor, account("app", "m"))),
                true,
                "the monitor account cannot be used: another account has the same user",
            ),
        ];
        for (what, change, taken, told) in rows {
            let mut all = secrets("one", "a", 1);
            change(&mut all, &long);
            let (is_taken, missing) = match usable(all) {
                Ok(secrets) => {
                    assert!(secrets.others.len() == 1, "{what}");
                    (true, secrets.missing)
                }
                Err(missing) => (false, Some(missing)),
            };
            let said = missing.map(|missing| missing.to_string()).unwrap_or_default();
            assert!(
                is_taken == taken && said.starts_with(told) && said.is_empty() == told.is_empty(),
                "{what}: {said}"
            );
        }
    }
}
