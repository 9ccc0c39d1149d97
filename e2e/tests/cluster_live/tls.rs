//! Scenes of TLS: groups of their own, beside the one that everything else happens to.
//!
//! In: the cast. Out: a group whose every line is encrypted and whose servers are verified, through a failover; and one that
//! nobody trusts. Must not: take a connection for verified because it worked: one that must not work is tried beside it.

use bloodraven_testbed::cluster::SITES;
use bloodraven_testbed::progress::say;
use mysql_async::Error;
use serde_json::Value;

use super::entrance::{Entrance, Trust};
use super::eyes::Eyes;
use super::judge::judge;
use super::load::Load;
use super::scenes::{Cast, HEALS_WITHIN};
use super::seen::Seen;
use super::sessions::{ENCRYPTED, LOCAL, Session, Sessions, ask, refusal};
use super::stage::{GROUP, Stage};
use super::terms::{APP, Accounts, Authority, OPERATOR, REPLICATION, ROOT, Terms};

/// What the server says to a login over a plain line.
const SECURE_TRANSPORT_REQUIRED: u16 = 3159;

const CHANNEL: &str = "SELECT c.HOST, c.SSL_ALLOWED, c.SSL_CA_FILE, c.SSL_VERIFY_SERVER_CERTIFICATE, s.SERVICE_STATE \
    FROM performance_schema.replication_connection_configuration c \
    JOIN performance_schema.replication_connection_status s USING (CHANNEL_NAME)";

const COPY: &str = "SELECT SOURCE, STATE, ERROR_NO FROM performance_schema.clone_status";

const CLOSED: &str = "SELECT @@global.read_only, @@global.super_read_only";

/// K-21: with either way to name the accounts, from nothing to Ready and through a failover.
pub(crate) fn verified(cast: &Cast<'_>) {
    let authority = Authority::found();
    for (name, accounts) in [("tls-one", Accounts::InOneSecret), ("tls-roles", Accounts::OfRoles)] {
        let group = cast.stage.beside(name, Terms::with_tls(accounts, &authority, GROUP));
        let _evidence = group.evidence();
        group.apply_group();
        let sessions = Sessions::watch(&group);
        group.wait_until_whole("applied with TLS", HEALS_WITHIN);
        let first = group.active();
        copies_came_from(&group, &first);
        fails_over(&group);
        is_encrypted(&group, &first, &sessions.stop().into_iter().collect::<Vec<_>>());
        leave(cast, &group);
    }
}

/// Its volumes are there for the next one.
fn leave(cast: &Cast<'_>, group: &Stage) {
    group.delete_group();
    group.wait_until_gone();
    cast.stage.machines().renew_volumes().unwrap();
}

/// One writer, nothing lost, and every channel verifies its source before and after.
fn fails_over(group: &Stage) {
    if group.terms.accounts == Accounts::InOneSecret {
        group.make_account_of_clients();
    }
    let (seen, load) = (Seen::start(group), Load::start(group));
    load.wait_for_writes("with TLS");
    let eyes = Eyes::open(group);
    channels_are_verified(group);
    strangers_are_turned_away(group);
    let before = group.active();
    group.halt_mysqld(&before);
    group.wait_for_another(&before, HEALS_WITHIN);
    load.wait_for_writes("after a failover with TLS");
    group.wait_until_whole("after a failover with TLS", HEALS_WITHIN);
    channels_are_verified(group);
    let (ledger, sight) = (load.stop(), eyes.close());
    judge(group, &seen.stop(), &ledger, &sight);
}

/// The others were copied, and from that one.
fn copies_came_from(group: &Stage, first: &str) {
    for site in SITES.into_iter().filter(|site| *site != first) {
        let copied: Option<(String, String, u64)> = ask(&group.door_at(site), OPERATOR, COPY);
        let wanted = (format!("{}:3306", group.host(first)), "Completed".to_owned(), 0);
        assert_eq!(copied, Some(wanted), "{site} of {}", group.namespace);
    }
}

/// Every replica asks for the primary by a name that its certificate covers, and compares.
fn channels_are_verified(group: &Stage) {
    let active = group.active();
    let wanted = [&group.host(&active), "YES", "/etc/mysql/tls/ca.crt", "YES", "ON"].map(str::to_owned);
    for site in SITES.into_iter().filter(|site| *site != active) {
        let channel: Option<(String, String, String, String, String)> = ask(&group.door_at(site), OPERATOR, CHANNEL);
        let channel = channel.map(|(host, allowed, ca, verified, state)| [host, allowed, ca, verified, state]);
        assert_eq!(channel.as_ref(), Some(&wanted), "{site} of {}", group.namespace);
    }
}

/// A plain line is refused by every server; a server by whoever trusts another authority, or looks for another name.
fn strangers_are_turned_away(group: &Stage) {
    for site in SITES {
        let good = group.door_at(site);
        let plain = refusal(&Entrance { trust: None, ..good.clone() }, OPERATOR);
        let refused = |error: &Error| matches!(error, Error::Server(said) if said.code == SECURE_TRANSPORT_REQUIRED);
        assert!(plain.as_ref().is_some_and(refused), "{site} over a plain line: {plain:?}");
        let trust = good.trust.clone().expect("TLS");
        let other = Trust { authority: Authority::found().certificate(), ..trust.clone() };
        for stranger in [other, Trust { name: "mysql.example.com".to_owned(), ..trust }] {
            let error = refusal(&Entrance { trust: Some(stranger.clone()), ..good.clone() }, OPERATOR);
            assert!(matches!(error, Some(Error::Io(_))), "{site}, looked for as {}: {error:?}", stranger.name);
        }
    }
}

/// Everybody who is meant to was there, and nobody ever over a plain line.
fn is_encrypted(group: &Stage, first: &str, sessions: &[Session]) {
    let plain: Vec<_> = sessions.iter().filter(|it| ![ENCRYPTED, LOCAL].contains(&it.kind.as_str())).collect();
    assert!(plain.is_empty(), "{}: sessions over a plain line: {plain:?}", group.namespace);
    let address = |pod: &Value| pod["status"]["podIP"].as_str().unwrap_or_default().to_owned();
    let operators: Vec<String> = group.operator_pods().iter().map(address).collect();
    let pods = SITES.map(|site| (site, address(&group.pod_object(site).expect("a pod"))));
    let others = |site: &str| -> Vec<String> {
        pods.iter().filter(|(other, _)| *other != site).map(|(_, address)| address.clone()).collect()
    };
    let was_there = |who: &str, site: &str, user: &str, from: &[String], does: &str| {
        let fits = |it: &&Session| it.site == site && it.user == user && from.contains(&it.from);
        let found = sessions.iter().filter(fits).any(|it| it.kind == ENCRYPTED && it.does.starts_with(does));
        assert!(found, "{}: no session of {who} at {site}, from {from:?}; seen: {sessions:?}", group.namespace);
    };
    for (site, own) in &pods {
        was_there("the operator", site, OPERATOR.0, &operators, "");
        was_there("the sidecar", site, OPERATOR.0, std::slice::from_ref(own), "");
    }
    let now = group.active();
    was_there("a replica", first, REPLICATION.0, &others(first), "Binlog Dump");
    was_there("a replica", &now, REPLICATION.0, &others(&now), "Binlog Dump");
    was_there("a copy", first, REPLICATION.0, &others(first), "clone");
    say(&format!("{}: {} sorts of sessions, all of them encrypted or local", group.namespace, sessions.len()));
}

/// K-21: a certificate that covers other names. Nobody is trusted, so nobody is opened, and people are told why; with a
/// certificate for the right names, and servers that have read it, it goes on by itself.
pub(crate) fn not_covered(cast: &Cast<'_>) {
    let authority = Authority::found();
    let terms = |group: &str| Terms::with_tls(Accounts::OfRoles, &authority, group);
    let group = cast.stage.beside("tls-other", terms("payments"));
    let _evidence = group.evidence();
    group.apply_group();
    for site in SITES {
        let words = format!("the certificate of {site}");
        group.wait_until(&format!("people are told of {words}"), || {
            group.notes("CredentialReconcileFailed").into_iter().find(|note| note.contains(&words))
        });
        group.wait_for_unreachable(site);
        assert_eq!(ask(&group.door_at(site), OPERATOR, CLOSED), Some((1_u8, 1_u8)), "{site} is closed");
    }
    let status = group.object().expect("the group")["status"].clone();
    assert!(status["activeSite"].as_str().unwrap_or_default().is_empty(), "nobody has authority: {status}");
    for secret in terms(GROUP).secrets(&group.namespace) {
        group.apply(&secret);
    }
    // A server reads its certificate when it starts.
    group.delete_all_pods();
    group.wait_until_whole("with a certificate for its names", HEALS_WITHIN);
    leave(cast, &group);
}

impl Stage {
    /// The name by which the others ask for a site's server.
    fn host(&self, site: &str) -> String {
        format!("mysql-{GROUP}-{site}-internal.{}.svc.cluster.local", self.namespace)
    }

    /// As an admin does where the group has no Secret for it.
    fn make_account_of_clients(&self) {
        let pod = self.pod(&self.active()).expect("a pod");
        let (name, password) = APP;
        let statements = format!(
            "CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'; \
             GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP ON *.* TO '{name}'@'%'"
        );
        let password = format!("--password={}", ROOT.1);
        let client = ["mysql", "--user", ROOT.0, &password, "--socket=/run/bloodraven/mysqld.sock", "-e", &statements];
        self.kubectl(&[&["exec", "-n", &self.namespace, &pod, "-c", "mysql", "--"][..], &client[..]].concat());
    }
}
