//! The terms on which the servers of a group let people in: one Secret or one a role, with TLS or without.
//!
//! In: what a test wants to see. Out: Secrets and the part of a spec that names them. Must not: keep a key anywhere but in a
//! Secret of the cluster.

use std::sync::Arc;

use bloodraven_testbed::cluster::SITES;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Map, Value, json};

use super::entrance::Trust;
use super::stage::GROUP;

/// A user and a password.
pub(crate) type Login = (&'static str, &'static str);

/// The account of the clients.
pub(crate) const APP: Login = ("shop", "shop-pw");

/// The account of operator and sidecars.
pub(crate) const OPERATOR: Login = ("ops", "ops-pw");

/// The account of replicas and copies.
pub(crate) const REPLICATION: Login = ("repl", "repl-pw");

/// The server's own, on its own machine alone.
pub(crate) const ROOT: Login = ("root", "root-pw");

/// The Secrets of a group in its namespace.
const MAIN: &str = "orders-mysql";
const OF_CLIENTS: &str = "orders-app";
const CERTIFICATE: &str = "orders-tls";

/// How a spec names the accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accounts {
    /// `spec.credentials`: a Secret a role.
    OfRoles,
    /// `spec.secretName`: one Secret, with the operator's account as a DSN. Clients have no account there.
    InOneSecret,
}

#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) accounts: Accounts,
    tls: Option<Tls>,
}

/// A certificate for the servers of a group of that name.
#[derive(Clone)]
struct Tls {
    authority: Authority,
    group: String,
}

/// Whoever signs certificates in this test.
#[derive(Clone)]
pub(crate) struct Authority(Arc<CertifiedIssuer<'static, KeyPair>>);

impl Authority {
    pub(crate) fn found() -> Self {
        let mut params = named(Vec::new(), "authority of the tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(Arc::new(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()))
    }

    /// Its own certificate.
    pub(crate) fn certificate(&self) -> Arc<str> {
        self.0.pem().into()
    }
}

impl Terms {
    /// As in the manual's example, with a Secret a role.
    pub(crate) fn ordinary() -> Self {
        Self { accounts: Accounts::OfRoles, tls: None }
    }

    /// With a certificate for a group of that name: of another one than the group has, it covers none of the servers.
    pub(crate) fn with_tls(accounts: Accounts, authority: &Authority, group: &str) -> Self {
        Self { accounts, tls: Some(Tls { authority: authority.clone(), group: group.to_owned() }) }
    }

    /// The part of a spec.
    pub(crate) fn write_into(&self, spec: &mut Map<String, Value>) {
        spec.remove("secretName");
        let (key, value) = match self.accounts {
            Accounts::OfRoles => ("credentials", json!({"operatorSecret": MAIN, "appSecret": OF_CLIENTS})),
            Accounts::InOneSecret => ("secretName", json!(MAIN)),
        };
        spec.insert(key.to_owned(), value);
        if self.tls.is_some() {
            spec.insert("tls".to_owned(), json!({"secretName": CERTIFICATE}));
        }
    }

    /// What has to be there for it.
    pub(crate) fn secrets(&self, namespace: &str) -> Vec<Value> {
        let mut main = json!({"MYSQL_ROOT_PASSWORD": ROOT.1,
            "MYSQL_REPLICATION_USER": REPLICATION.0, "MYSQL_REPLICATION_PASSWORD": REPLICATION.1});
        let mut all = Vec::new();
        match self.accounts {
            Accounts::OfRoles => {
                main["username"] = json!(OPERATOR.0);
                main["password"] = json!(OPERATOR.1);
                all.push(secret(namespace, OF_CLIENTS, &json!({"username": APP.0, "password": APP.1})));
            }
            Accounts::InOneSecret => {
                main["dsn"] = json!(format!("mysql://{}:{}@nowhere:3306/", OPERATOR.0, OPERATOR.1));
            }
        }
        all.push(secret(namespace, MAIN, &main));
        all.extend(self.tls.as_ref().map(|tls| tls.secret(namespace)));
        all
    }

    /// Whom a client of that Service trusts.
    pub(crate) fn trust(&self, namespace: &str, service: &str) -> Option<Trust> {
        let tls = self.tls.as_ref()?;
        let service = service.replacen(GROUP, &tls.group, 1);
        let name = format!("{service}.{namespace}.svc.cluster.local");
        Some(Trust { authority: tls.authority.certificate(), name })
    }
}

impl Tls {
    fn secret(&self, namespace: &str) -> Value {
        let (authority, key) = (&self.authority.0, KeyPair::generate().unwrap());
        let params = named(covered(&self.group, namespace), &format!("mysql-{}", self.group));
        let certificate = params.signed_by(&key, &**authority).unwrap();
        let files = json!({"ca.crt": authority.pem(), "tls.crt": certificate.pem(), "tls.key": key.serialize_pem()});
        secret(namespace, CERTIFICATE, &files)
    }
}

/// Two certificates need two names: one with its issuer's name is taken for self-signed by the servers.
fn named(covered: Vec<String>, name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(covered).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn secret(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": data})
}

/// Every name that the contract lists, from the bare one to the whole one.
fn covered(group: &str, namespace: &str) -> Vec<String> {
    let sites = SITES.iter().flat_map(|site| [(*site).to_owned(), format!("{site}-internal")]);
    let services = sites.chain(["primary", "replicas"].map(str::to_owned));
    let names = services.flat_map(|service| {
        let domains = ["", ".{}", ".{}.svc", ".{}.svc.cluster.local"];
        domains.map(|domain| format!("mysql-{group}-{service}{}", domain.replace("{}", namespace)))
    });
    names.collect()
}

#[test]
fn a_certificate_covers_every_service_by_its_short_and_its_whole_name() {
    let names = covered("orders", "shop");
    assert_eq!(names.len(), 4 * (2 * SITES.len() + 2));
    for name in ["mysql-orders-iad", "mysql-orders-pdx-internal.shop", "mysql-orders-primary.shop.svc"] {
        assert!(names.iter().any(|it| it == name), "{name} in {names:?}");
    }
    let trust = |group: &str| {
        let terms = Terms::with_tls(Accounts::OfRoles, &Authority::found(), group);
        terms.trust("shop", "mysql-orders-fra-internal").unwrap().name
    };
    assert!(names.contains(&trust("orders")));
    assert!(!names.contains(&trust("others")));
}
