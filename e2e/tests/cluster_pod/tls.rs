//! The same pod with TLS: the sidecar trusts its server by authority and name, and nobody else.

use std::time::Duration;

use bloodraven_mysql::{Account, Deadline, Error, Server, Session, Tls};
use bloodraven_testbed::scratch::Scratch;
use bloodraven_testbed::wait;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::kubelet::{Files, Pod, write};
use super::{LIMIT, all_ready, ask, drawn, files, group, start, status};

/// The name that operator and peers ask for.
const NAME: &str = "mysql-orders-iad-internal.shop.svc.cluster.local";

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The Secret of a certificate for that name.
fn secret(authority: &CertifiedIssuer<'_, KeyPair>, name: &str) -> Files {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    files(&[("ca.crt", &authority.pem()), ("tls.crt", &certificate.pem()), ("tls.key", &key.serialize_pem())])
}

/// K-21, in part: a drawn pod with certificates; the sidecar verifies authority and name.
#[test]
fn with_tls_the_sidecar_talks_to_its_own_server_alone() {
    let node = Scratch::new("tls-pod").unwrap();
    let (mut cluster, spec, _) = drawn(&group(true));
    let (ours, other) = (authority(), authority());
    cluster.secrets.insert("orders-tls".to_owned(), secret(&ours, NAME));
    let pod = Pod::place(&node, "u1", spec.clone(), "shop", &cluster);
    let started = start(&pod);
    all_ready(&pod);
    assert_eq!(status(&pod)["super_read_only"], true);
    operator_verifies(&pod, &ours, &other);

    // another authority: a sidecar that starts with it does not talk to this server, and says why
    drop(started.sidecar);
    let stranger = files(&[("ca.crt", &other.pem())]);
    write(&pod.volume("tls"), &stranger);
    let _sidecar = pod.start("sidecar");
    let refused = wait::until_every(LIMIT, Duration::from_millis(100), || {
        ask(&pod, 8080, "/health").filter(|answer| answer.0 == 503)
    });
    assert!(refused.is_some(), "{}", pod.words_of("sidecar"));
    let said = status(&pod)["error"].as_str().unwrap_or_default().to_lowercase();
    assert!(said.contains("certificate"), "{said}");
    // put right again: taken without a restart
    write(&pod.volume("tls"), &files(&[("ca.crt", &ours.pem())]));
    all_ready(&pod);
}

/// K-21, in part: a certificate of another name.
#[test]
fn a_certificate_of_another_name_is_refused() {
    let node = Scratch::new("name-pod").unwrap();
    let (mut cluster, spec, _) = drawn(&group(true));
    cluster.secrets.insert("orders-tls".to_owned(), secret(&authority(), "mysql-orders-pdx-internal"));
    let pod = Pod::place(&node, "u1", spec, "shop", &cluster);
    let _started = start(&pod);
    super::ready(&pod, "mysql", pod.container("mysql").readiness_probe.as_ref().unwrap());
    let said = wait::until_every(LIMIT, Duration::from_millis(100), || {
        let error = status(&pod)["error"].as_str()?.to_lowercase();
        error.contains("certificate").then_some(error)
    });
    assert!(said.is_some(), "{}", status(&pod));
    assert_eq!(ask(&pod, 8080, "/health").map(|answer| answer.0), Some(503));
}

/// The operator asks by the name of the internal Service; here the name is resolved by hand.
fn operator_verifies(pod: &Pod, ours: &CertifiedIssuer<'_, KeyPair>, other: &CertifiedIssuer<'_, KeyPair>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let open = |tls: Option<(&CertifiedIssuer<'_, KeyPair>, &str)>| {
        let tls = tls.map(|(ca, name)| Tls { ca: ca.pem().into_bytes().into(), name: Some(name.to_owned()) });
        let server = Server { tls, ..Server::new(pod.address.to_string(), 33062, Account::new("ops", "ops'pw")) };
        runtime.block_on(Session::open(&server, Deadline::within(LIMIT))).map(drop)
    };
    open(Some((ours, NAME))).unwrap();
    for refused in [Some((other, NAME)), Some((ours, "mysql-orders-pdx-internal.shop.svc.cluster.local"))] {
        assert!(matches!(open(refused), Err(Error::Connect { .. })));
    }
    let plain = open(None).unwrap_err();
    assert!(matches!(plain, Error::Server { code: 3159, .. }), "{plain}");
}
