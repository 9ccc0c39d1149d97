//! A group's accounts and keys, from its Secrets.
//!
//! In: names of Secrets from the spec; Secrets, from the store itself. Out: accounts and keys, or the Secret and key that
//! is missing. Must not: put a value into an error or a log.

use crate::rest::Rest;
use bloodraven_api::group::MysqlFailoverGroupSpec;
use bloodraven_api::names;
use bloodraven_blueprint::objects::OperatorAccount;
use bloodraven_brain::group::accounts::AccountRole;
use bloodraven_operator::world::{Account, GroupId, MissingSecret, Secrets, TlsFiles};
use bloodraven_wire::{Key, Keys};
use k8s_openapi::api::core::v1::Secret;
use std::collections::BTreeMap;

/// Where a server of the group finds the authority's certificate.
const CA_AT_SERVER: &str = "/etc/mysql/tls/ca.crt";

/// Names that are the server's own or the keeper's.
const RESERVED: [&str; 2] = ["root", "bloodraven_opener"];

/// A Secret, decoded.
struct Opened {
    name: String,
    data: BTreeMap<String, Vec<u8>>,
}

pub(crate) async fn read(
    rest: &Rest,
    group: &GroupId,
    spec: &MysqlFailoverGroupSpec,
) -> Result<Secrets, MissingSecret> {
    let main = open(rest, group, main(spec)).await?;
    let (operator, replication) = (main.operator(spec.credentials.is_none())?, main.replication()?);
    let authority = open(rest, group, &names::authority(&group.name)).await.map_err(|missing| match missing {
        MissingSecret::NotFound { name } => MissingSecret::ToBeMade { name },
        other => other,
    })?;
    let (others, missing) = others(rest, group, spec).await;
    let tls = match &spec.tls {
        Some(tls) => {
            let secret = open(rest, group, &tls.secret_name).await?;
            Some(TlsFiles { ca: secret.bytes("ca.crt")?.clone(), ca_at_server: CA_AT_SERVER.to_owned() })
        }
        None => None,
    };
    Ok(Secrets { operator, replication, others, missing, keys: authority.keys()?, tls })
}

/// Those that have a Secret of their own. One that cannot be had is left out: nobody waits for it.
async fn others(
    rest: &Rest,
    group: &GroupId,
    spec: &MysqlFailoverGroupSpec,
) -> (BTreeMap<AccountRole, Account>, Option<MissingSecret>) {
    let Some(credentials) = &spec.credentials else { return (BTreeMap::new(), None) };
    let named = [
        (AccountRole::App, &credentials.app_secret),
        (AccountRole::ReadOnly, &credentials.read_only_secret),
        (AccountRole::Monitor, &credentials.monitor_secret),
        (AccountRole::Backup, &credentials.backup_secret),
    ];
    let (mut found, mut missing) = (BTreeMap::new(), None);
    for (role, name) in named.into_iter().filter_map(|(role, name)| Some((role, name.as_ref()?))) {
        match open(rest, group, name).await.and_then(|secret| secret.account("username", "password")) {
            Ok(account) => drop(found.insert(role, account)),
            Err(because) => drop(missing.get_or_insert(because)),
        }
    }
    (found, missing)
}

/// How the Secret gives the operator's account, and whether it has one for replication.
pub(crate) async fn shape(
    rest: &Rest,
    group: &GroupId,
    spec: &MysqlFailoverGroupSpec,
) -> Result<(OperatorAccount, bool), MissingSecret> {
    let main = open(rest, group, main(spec)).await?;
    let is_dsn = spec.credentials.is_none() && main.data.contains_key("dsn");
    let account = if is_dsn { OperatorAccount::Dsn } else { OperatorAccount::Keys };
    main.operator(spec.credentials.is_none())?;
    Ok((account, main.replication()?.is_some()))
}

/// The operator's account alone.
pub(crate) async fn operator_account(
    rest: &Rest,
    group: &GroupId,
    spec: &MysqlFailoverGroupSpec,
) -> Result<Account, MissingSecret> {
    open(rest, group, main(spec)).await?.operator(spec.credentials.is_none())
}

/// The Secret that the operator's account is in.
fn main(spec: &MysqlFailoverGroupSpec) -> &str {
    spec.credentials.as_ref().map_or(&spec.secret_name, |credentials| &credentials.operator_secret)
}

async fn open(rest: &Rest, group: &GroupId, name: &str) -> Result<Opened, MissingSecret> {
    let path = format!("/api/v1/namespaces/{}/secrets/{name}", group.namespace);
    let read = rest.get(&path).await.map_err(|fault| MissingSecret::Unread { because: fault.to_string() })?;
    let object = read.ok_or_else(|| MissingSecret::NotFound { name: name.to_owned() })?;
    // What does not parse is not quoted: it may be a password.
    let secret: Secret = serde_json::from_value(object)
        .map_err(|_| MissingSecret::Unread { because: format!("secret {name} is not shaped like one") })?;
    let data = secret.data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
    Ok(Opened { name: name.to_owned(), data })
}

impl Opened {
    fn wrong(&self, key: &str, because: &str) -> MissingSecret {
        MissingSecret::Key { name: self.name.clone(), key: key.to_owned(), because: because.to_owned() }
    }

    fn bytes(&self, key: &str) -> Result<&Vec<u8>, MissingSecret> {
        let value = self.data.get(key).ok_or_else(|| self.wrong(key, "is missing; add it"))?;
        if value.is_empty() { Err(self.wrong(key, "is empty; give it a value")) } else { Ok(value) }
    }

    fn text(&self, key: &str) -> Result<String, MissingSecret> {
        let text = String::from_utf8(self.bytes(key)?.clone());
        let text = text.map_err(|_| self.wrong(key, "is no text; write it as UTF-8"))?;
        // As keeper and sidecar read the same value from a file: without the line end that editors leave.
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() { Err(self.wrong(key, "is empty; give it a value")) } else { Ok(text.to_owned()) }
    }

    fn account(&self, user: &str, password: &str) -> Result<Account, MissingSecret> {
        let account = Account { user: self.text(user)?, password: self.text(password)? };
        self.allowed(user, account)
    }

    /// `username` and `password`; in the one Secret for everything `dsn` stands for both.
    fn operator(&self, may_be_dsn: bool) -> Result<Account, MissingSecret> {
        if may_be_dsn && self.data.contains_key("dsn") {
            let account = dsn(&self.text("dsn")?).map_err(|because| self.wrong("dsn", because))?;
            return self.allowed("dsn", account);
        }
        self.account("username", "password")
    }

    /// Both keys or neither.
    fn replication(&self) -> Result<Option<Account>, MissingSecret> {
        const KEYS: [&str; 2] = ["MYSQL_REPLICATION_USER", "MYSQL_REPLICATION_PASSWORD"];
        if KEYS.iter().all(|key| !self.data.contains_key(*key)) {
            return Ok(None);
        }
        self.account(KEYS[0], KEYS[1]).map(Some)
    }

    fn allowed(&self, key: &str, account: Account) -> Result<Account, MissingSecret> {
        if RESERVED.contains(&account.user.as_str()) {
            return Err(self.wrong(key, "names a user that is not for this; name another"));
        }
        Ok(account)
    }

    fn keys(&self) -> Result<Keys, MissingSecret> {
        let key = |name: &str| {
            Key::try_from(self.bytes(name)?.as_slice()).map_err(|error| self.wrong(name, &error.to_string()))
        };
        let previous = self.data.contains_key("hmac.previous").then(|| key("hmac.previous")).transpose()?;
        Ok(Keys { current: key("hmac.key")?, previous })
    }
}

/// The account of `mysql://user:password@host:port/` or `user:password@tcp(host:port)/`.
fn dsn(text: &str) -> Result<Account, &'static str> {
    const SHAPE: &str = "has no account; write mysql://user:password@host:port/ or user:password@tcp(host:port)/";
    let (account, is_url) = match text.strip_prefix("mysql://") {
        Some(rest) => (rest.rsplit_once('@').map(|(account, _)| account), true),
        None => (text.rsplit_once("@tcp(").or_else(|| text.rsplit_once('@')).map(|(account, _)| account), false),
    };
    let (user, password) = account.and_then(|account| account.split_once(':')).ok_or(SHAPE)?;
    if user.is_empty() || password.is_empty() {
        return Err(SHAPE);
    }
    if !is_url {
        return Ok(Account { user: user.to_owned(), password: password.to_owned() });
    }
    let plain = |text: &str| unescape(text).ok_or("has a % that stands for no character; write it as %25");
    Ok(Account { user: plain(user)?, password: plain(password)? })
}

/// `%41` is `A`; none: a sign that is no such pair, or bytes that are no text.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok())?;
            bytes.push(u8::from_str_radix(pair, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(data: &[(&str, &str)]) -> Opened {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        Opened { name: "creds".to_owned(), data }
    }

    #[test]
    fn the_account_of_a_dsn() {
        let rows = [
            ("mysql://ops:pw@db:3306/", Some(("ops", "pw"))),
            ("mysql://ops:p%40w%25%2F@db:3306/", Some(("ops", "p@w%/"))),
            ("mysql://ops:a@b@db:3306/", Some(("ops", "a@b"))),
            ("ops:p@w:x@tcp(db:3306)/", Some(("ops", "p@w:x"))),
            ("ops:pw@tcp(db)/?tls=true", Some(("ops", "pw"))),
            ("mysql://db:3306/", None),
            ("ops@tcp(db)/", None),
            (":pw@tcp(db)/", None),
            ("mysql://ops:a%zz@db/", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let found = dsn(text).ok().map(|account| (account.user, account.password));
            assert_eq!(found, expected.map(|(user, password)| (user.to_owned(), password.to_owned())), "{text}");
        }
    }

    /// K-20: errors about Secrets.
    #[test]
    fn what_is_missing_is_named_and_no_value_is_told() {
        let said = |result: Result<Account, MissingSecret>| result.expect_err("refused").to_string();
        assert_eq!(
            said(opened(&[("password", "hidden")]).operator(true)),
            "secret creds: key username is missing; add it"
        );
        assert_eq!(
            said(opened(&[("username", ""), ("password", "hidden")]).operator(true)),
            "secret creds: key username is empty; give it a value"
        );
        for refused in [
            opened(&[("username", "root"), ("password", "hidden")]).operator(false),
            opened(&[("dsn", "mysql://x:hid%den@h/")]).operator(true),
        ] {
            assert!(!said(refused).contains("hid"), "no value in words");
        }
        let half = opened(&[("MYSQL_REPLICATION_USER", "r")]).replication().expect_err("refused");
        assert!(half.to_string().contains("MYSQL_REPLICATION_PASSWORD"), "{half}");
        assert_eq!(opened(&[]).replication(), Ok(None));
    }

    #[test]
    fn a_line_end_is_no_part_of_a_password() {
        let account = opened(&[("username", "ops\n"), ("password", "p w\r\n")]).operator(false).expect("an account");
        assert_eq!((account.user.as_str(), account.password.as_str()), ("ops", "p w"));
        assert!(opened(&[("username", "ops"), ("password", "\n")]).operator(false).is_err());
    }

    #[test]
    fn a_role_of_its_own_takes_no_dsn() {
        let both = opened(&[("dsn", "mysql://a:b@h/"), ("username", "ops"), ("password", "pw")]);
        assert_eq!(both.operator(true).map(|account| account.user), Ok("a".to_owned()));
        assert_eq!(both.operator(false).map(|account| account.user), Ok("ops".to_owned()));
    }

    #[test]
    fn the_last_two_keys_count() {
        let key = "k".repeat(32);
        let keys = opened(&[("hmac.key", &key)]).keys().expect("a key");
        assert!(keys.previous.is_none());
        let before = "p".repeat(32);
        assert!(opened(&[("hmac.key", &key), ("hmac.previous", &before)]).keys().expect("both").previous.is_some());
        assert!(opened(&[("hmac.key", "short")]).keys().is_err());
    }
}
