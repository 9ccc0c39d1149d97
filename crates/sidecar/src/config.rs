//! What a sidecar has to know before it starts: who it is, whom it talks to, where its files are.
//!
//! In: the environment, handed in. Out: a [`Config`] that cannot be wrong, or the name of the variable that is. Must not:
//! read the process's own environment, or take a default for who this is.
//!
//! Lease and number of vouches are not here: they come with the view.

use bloodraven_brain::name::Site;
use snafu::{OptionExt as _, ResultExt as _, Snafu, ensure};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often peers are asked where the group does not say.
pub const DEFAULT_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The shortest interval that is taken: a tick may take half of it, and a probe needs its time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// The account that opens; made anew by the keeper at every start of mysqld.
pub const OPENER: &str = "bloodraven_opener";

/// Everything that a sidecar is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// This site (`MY_SITE`).
    pub site: Site,
    /// The group (`FAILOVER_GROUP`).
    pub group: String,
    /// The UID of the group object (`GROUP_UID`): a group made anew is another one.
    pub group_uid: String,
    /// The group's namespace (`POD_NAMESPACE`).
    pub namespace: String,
    /// The name of this pod (`MY_POD_NAME`).
    pub pod_name: String,
    /// Half of the instance (`POD_UID`).
    pub pod_uid: String,
    /// The other sites' sidecars, `host:port` by site (`PEER_ADDRESSES`).
    pub peers: BTreeMap<Site, String>,
    /// The operator, `host:port` (`BLOODRAVEN_ADDRESS`).
    pub operator: String,
    /// The tick, unless a third of the lease is shorter (`PEER_CHECK_INTERVAL`).
    pub check_interval: Duration,
    /// The local server.
    pub mysql: Mysql,
    /// The group's key; `hmac.previous` stands beside it (`AUTHORITY_KEY_FILE`).
    pub key_file: PathBuf,
    /// Where view, marker and note are kept (`STATE_DIR`).
    pub state_dir: PathBuf,
    /// The keeper (`KEEPER_SOCKET`).
    pub keeper_socket: PathBuf,
    /// Where answers are given (`LISTEN_ADDR`).
    pub listen: SocketAddr,
}

/// Where the local server is, and who the sidecar is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mysql {
    /// The admin port, host and port: the only way of the opener, the first of everyone else.
    pub admin: (String, u16),
    /// The way in when the admin port does not answer.
    pub client: (String, u16),
    /// A folder with `username` and `password` of the operator account (`MYSQL_CREDENTIALS_DIR`).
    pub credentials: PathBuf,
    /// How the server is trusted; none: no TLS.
    pub tls: Option<TlsFile>,
}

/// How the local server is trusted: it is asked for by address, and its certificate has names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFile {
    /// Certificates of the authority (`MYSQL_TLS_CA`).
    pub ca: PathBuf,
    /// The name that the server's certificate must have (`MYSQL_TLS_NAME`).
    pub name: String,
}

/// Why a sidecar cannot start.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A variable is not there.
    #[snafu(display("{name} is not set; the sidecar needs it"))]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// A variable says something that cannot be.
    #[snafu(display("{name}: {value:?} is not {wanted}"))]
    Wrong {
        /// Its name.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it should say.
        wanted: String,
    },
    /// A file that a variable names cannot be read.
    #[snafu(display("{name}: cannot read {}: {source}", path.display()))]
    Unreadable {
        /// The variable.
        name: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Config {
    /// Reads the variables; `get` gives the value of one. Also looks whether the files they name can be read.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let config = Self::parse(get)?;
        for name in ["username", "password"] {
            readable("MYSQL_CREDENTIALS_DIR", &config.mysql.credentials.join(name))?;
        }
        readable("AUTHORITY_KEY_FILE", &config.key_file)?;
        config.mysql.tls.iter().try_for_each(|tls| readable("MYSQL_TLS_CA", &tls.ca))?;
        Ok(config)
    }

    fn parse(get: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let optional = |name: &'static str| get(name).map(|value| value.trim().to_owned()).filter(|it| !it.is_empty());
        let required = |name: &'static str| optional(name).context(MissingSnafu { name });
        let group = required("FAILOVER_GROUP")?;
        let pod_ip = required("POD_IP")?;
        let ip: IpAddr =
            pod_ip.parse().ok().context(WrongSnafu { name: "POD_IP", value: &pod_ip, wanted: "an IP address" })?;
        let host = optional("MYSQL_HOST");
        let port = |name, default| optional(name).map_or(Ok(default), |text| parse_port(name, &text));
        let tls = match optional("MYSQL_TLS_CA") {
            Some(ca) => Some(TlsFile { ca: ca.into(), name: required("MYSQL_TLS_NAME")? }),
            None => None,
        };
        let mysql = Mysql {
            admin: (host.clone().unwrap_or_else(|| ip.to_string()), port("MYSQL_ADMIN_PORT", 33062)?),
            client: (host.unwrap_or_else(|| "127.0.0.1".into()), port("MYSQL_PORT", 3306)?),
            credentials: optional("MYSQL_CREDENTIALS_DIR").unwrap_or_else(|| "/etc/mysql/creds/operator".into()).into(),
            tls,
        };
        let path = |name, default: &str| PathBuf::from(optional(name).unwrap_or_else(|| default.into()));
        let operator = required("BLOODRAVEN_ADDRESS")?;
        check_address("BLOODRAVEN_ADDRESS", &operator)?;
        let pod_uid = required("POD_UID")?;
        ensure!(
            !pod_uid.contains('/'),
            WrongSnafu { name: "POD_UID", value: pod_uid, wanted: "a UID, which has no slash" }
        );
        Ok(Self {
            site: Site::new(&required("MY_SITE")?),
            peers: parse_peers(&group, &optional("PEER_ADDRESSES").unwrap_or_default())?,
            group,
            group_uid: required("GROUP_UID")?,
            namespace: required("POD_NAMESPACE")?,
            pod_name: required("MY_POD_NAME")?,
            pod_uid,
            operator,
            check_interval: optional("PEER_CHECK_INTERVAL").map_or(Ok(DEFAULT_CHECK_INTERVAL), |it| interval(&it))?,
            mysql,
            key_file: path("AUTHORITY_KEY_FILE", "/etc/bloodraven/authority/hmac.key"),
            state_dir: path("STATE_DIR", "/var/lib/bloodraven"),
            keeper_socket: path("KEEPER_SOCKET", "/run/bloodraven/keeper.sock"),
            listen: listen(&optional("LISTEN_ADDR").unwrap_or_else(|| ":8080".into()))?,
        })
    }
}

fn readable(name: &'static str, path: &Path) -> Result<(), Error> {
    std::fs::read(path).map(drop).context(UnreadableSnafu { name, path })
}

fn parse_port(name: &'static str, text: &str) -> Result<u16, Error> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.context(WrongSnafu { name, value: text, wanted: "a port from 1 to 65535" })
}

/// `host:port`; the host is a name, an IPv4 address or an IPv6 address in brackets.
fn check_address(name: &'static str, text: &str) -> Result<(), Error> {
    let host_and_port = text.rsplit_once(':').filter(|(host, port)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '[' | ']' | ':');
        !host.is_empty() && host.chars().all(plain) && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    host_and_port.map(drop).context(WrongSnafu { name, value: text, wanted: "host:port" })
}

/// Whether a text that somebody sent can be asked: `host:port`.
pub(crate) fn is_address(text: &str) -> bool {
    text.len() <= 256 && check_address("", text).is_ok()
}

/// `site=host:port`, or `mysql-<group>-<site>-internal.<rest>:port`, separated by commas; blanks are dropped.
fn parse_peers(group: &str, text: &str) -> Result<BTreeMap<Site, String>, Error> {
    const NAME: &str = "PEER_ADDRESSES";
    let mut peers = BTreeMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (site, address) = match entry.split_once('=') {
            Some((site, address)) => (site.trim(), address.trim()),
            None => (site_of(group, entry).context(wrong_peer(group, entry))?, entry),
        };
        ensure!(!site.is_empty(), wrong_peer(group, entry));
        check_address(NAME, address)?;
        ensure!(
            peers.insert(Site::new(site), address.to_owned()).is_none(),
            WrongSnafu { name: NAME, value: entry, wanted: "the only address of its site" }
        );
    }
    Ok(peers)
}

fn wrong_peer(group: &str, entry: &str) -> WrongSnafu<&'static str, String, String> {
    let wanted = format!("site=host:port or mysql-{group}-<site>-internal.<domain>:port");
    WrongSnafu { name: "PEER_ADDRESSES", value: entry.to_owned(), wanted }
}

fn site_of<'a>(group: &str, address: &'a str) -> Option<&'a str> {
    let label = address.split(['.', ':']).next()?;
    label.strip_prefix("mysql-")?.strip_prefix(group)?.strip_prefix('-')?.strip_suffix("-internal")
}

/// `host:port`, or `:port` for every address of this host.
fn listen(text: &str) -> Result<SocketAddr, Error> {
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole.parse().ok().context(WrongSnafu { name: "LISTEN_ADDR", value: text, wanted: ":port or address:port" })
}

/// A duration as Go writes it, of whole units: `5s`, `1m30s`, `250ms`.
fn interval(text: &str) -> Result<Duration, Error> {
    let wrong = || WrongSnafu { name: "PEER_CHECK_INTERVAL", value: text, wanted: "a duration from 100ms on, like 5s" };
    let found = go_duration(text).filter(|found| *found >= SHORTEST_INTERVAL);
    found.with_context(wrong)
}

fn go_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    // At most one part a unit; more is no duration that anyone writes.
    for _ in 0..8 {
        if rest.is_empty() {
            return (!text.is_empty()).then_some(total);
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let seconds = number.parse::<f64>().ok()? * scale;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(changes: &[(&str, Option<&str>)]) -> BTreeMap<String, String> {
        let all = [
            ("MY_SITE", "iad"),
            ("FAILOVER_GROUP", "orders"),
            ("GROUP_UID", "9b1d"),
            ("POD_NAMESPACE", "shop"),
            ("MY_POD_NAME", "mysql-orders-iad-0"),
            ("POD_UID", "pod-1"),
            ("POD_IP", "10.0.0.7"),
            ("BLOODRAVEN_ADDRESS", "bloodraven.system.svc.cluster.local:8082"),
        ];
        let mut all: BTreeMap<String, String> = all.map(|(name, value)| (name.into(), value.into())).into();
        for (name, value) in changes {
            match value {
                Some(value) => drop(all.insert((*name).into(), (*value).into())),
                None => drop(all.remove(*name)),
            }
        }
        all
    }

    fn parse(changes: &[(&str, Option<&str>)]) -> Result<Config, Error> {
        let all = environment(changes);
        Config::parse(|name| all.get(name).cloned())
    }

    #[test]
    fn defaults_are_those_of_a_pod() {
        let config = parse(&[]).expect("complete");
        assert_eq!(config.mysql.admin, ("10.0.0.7".to_owned(), 33062));
        assert_eq!(config.mysql.client, ("127.0.0.1".to_owned(), 3306));
        assert_eq!((config.mysql.tls, config.check_interval), (None, DEFAULT_CHECK_INTERVAL));
        assert_eq!(config.listen, SocketAddr::from(([0, 0, 0, 0], 8080)));
        assert_eq!(config.state_dir, Path::new("/var/lib/bloodraven"));
        assert!(config.peers.is_empty());
    }

    #[test]
    fn the_error_names_the_variable() {
        let names = ["MY_SITE", "FAILOVER_GROUP", "GROUP_UID", "POD_NAMESPACE", "MY_POD_NAME", "POD_UID", "POD_IP"];
        for name in names.into_iter().chain(["BLOODRAVEN_ADDRESS"]) {
            for value in [None, Some(""), Some("  ")] {
                let error = parse(&[(name, value)]).expect_err(name).to_string();
                assert!(error.starts_with(name), "{error}");
            }
        }
    }

    /// K-12: what a sidecar is told is checked, too.
    #[test]
    fn what_cannot_be_is_refused_with_the_variable_and_the_way_out() {
        let rows = [
            ("POD_IP", "10.0.0"),
            ("POD_UID", "a/b"),
            ("BLOODRAVEN_ADDRESS", "bloodraven"),
            ("BLOODRAVEN_ADDRESS", "bloodraven:0"),
            ("BLOODRAVEN_ADDRESS", "a b:1"),
            ("PEER_CHECK_INTERVAL", "5"),
            ("PEER_CHECK_INTERVAL", "-5s"),
            ("PEER_CHECK_INTERVAL", "50ms"),
            ("PEER_CHECK_INTERVAL", "s"),
            ("PEER_ADDRESSES", "somewhere.else:8080"),
            ("PEER_ADDRESSES", "pdx=nowhere"),
            ("PEER_ADDRESSES", "=a:1"),
            ("PEER_ADDRESSES", "pdx=a:1,pdx=b:1"),
            ("LISTEN_ADDR", "8080"),
            ("LISTEN_ADDR", ":port"),
            ("MYSQL_PORT", "0"),
            ("MYSQL_ADMIN_PORT", "70000"),
        ];
        for (name, value) in rows {
            let error = parse(&[(name, Some(value))]).expect_err(value).to_string();
            assert!(error.starts_with(name), "{value}: {error}");
        }
    }

    #[test]
    fn peers_are_read_in_both_forms_and_blanks_are_dropped() {
        let text = "mysql-orders-pdx-internal.shop.svc.cluster.local:8080, ,fra=127.3.4.13:8080,";
        let config = parse(&[("PEER_ADDRESSES", Some(text))]).expect("peers");
        let peers: Vec<(&str, &str)> =
            config.peers.iter().map(|(site, address)| (site.as_str(), address.as_str())).collect();
        let pdx = "mysql-orders-pdx-internal.shop.svc.cluster.local:8080";
        assert_eq!(peers, [("fra", "127.3.4.13:8080"), ("pdx", pdx)]);
    }

    #[test]
    fn the_local_server_can_be_elsewhere() {
        let rows = [("MYSQL_HOST", Some("127.3.4.11")), ("MYSQL_PORT", Some("3307")), ("MYSQL_ADMIN_PORT", Some("1"))];
        let config = parse(&rows).expect("overrides");
        assert_eq!(config.mysql.admin, ("127.3.4.11".to_owned(), 1));
        assert_eq!(config.mysql.client, ("127.3.4.11".to_owned(), 3307));
    }

    #[test]
    fn tls_needs_an_authority_and_a_name() {
        let (ca, name) = (("MYSQL_TLS_CA", Some("/tls/ca.crt")), ("MYSQL_TLS_NAME", Some("mysql-orders-iad-internal")));
        let config = parse(&[ca, name]).expect("both");
        let expect = TlsFile { ca: "/tls/ca.crt".into(), name: "mysql-orders-iad-internal".to_owned() };
        assert_eq!(config.mysql.tls, Some(expect));
        let error = parse(&[ca]).expect_err("no name: any certificate of the authority would do").to_string();
        assert!(error.starts_with("MYSQL_TLS_NAME"), "{error}");
    }

    #[test]
    fn intervals_are_go_durations() {
        let rows = [("5s", 5000), ("250ms", 250), ("1m30s", 90_000), ("1.5s", 1500), ("1h", 3_600_000)];
        for (text, millis) in rows {
            let config = parse(&[("PEER_CHECK_INTERVAL", Some(text))]).expect(text);
            assert_eq!(config.check_interval, Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn files_that_cannot_be_read_stop_the_start_with_the_variable() {
        let folder = crate::testing::Folder::new();
        let text = |path: &Path| path.to_str().expect("plain path").to_owned();
        let mut all = environment(&[]);
        all.insert("MYSQL_CREDENTIALS_DIR".into(), text(folder.path()));
        all.insert("AUTHORITY_KEY_FILE".into(), text(&folder.path().join("hmac.key")));
        let read = |all: &BTreeMap<String, String>| Config::from_env(|name| all.get(name).cloned());
        let error = read(&all).expect_err("no credentials").to_string();
        assert!(error.starts_with("MYSQL_CREDENTIALS_DIR"), "{error}");
        for name in ["username", "password"] {
            std::fs::write(folder.path().join(name), "x").expect("a file");
        }
        let error = read(&all).expect_err("no key").to_string();
        assert!(error.starts_with("AUTHORITY_KEY_FILE"), "{error}");
        std::fs::write(folder.path().join("hmac.key"), [7; 32]).expect("a key");
        read(&all).expect("complete");
    }
}
