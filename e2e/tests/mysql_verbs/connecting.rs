//! Logins, TLS, identities, and peers that are not what they seem; no password in any text.

use super::world::*;
use bloodraven_mysql::{Account, Error, Secret, Server, Session, Source, Tls, Wanted, attach, replica, rotation};
use bloodraven_testbed::scratch::Scratch;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// K-20: errors of real servers.
#[tokio::test(flavor = "multi_thread")]
async fn no_password_is_in_any_text() {
    const MARKER: &str = "Zx81-marker'\\-abcdefghij";
    let server = site("secretive").start().unwrap();
    let me = login(&server);
    let mut session = Session::open(&me, soon()).await.unwrap();
    let mut errors: Vec<Error> = Vec::new();

    let wrong = Server { account: Account::new(OPERATOR, MARKER), ..me.clone() };
    let refused = Session::open(&wrong, soon()).await.unwrap_err();
    assert!(refused.is_login() && refused.code() == Some(1045), "{refused}");
    errors.push(refused);
    // Of a fenced server, of an account that is not there.
    let account = |password: &str| Account::new("app", password);
    let fenced =
        rotation::set_password(&mut session, Wanted::Any, &account(MARKER), "%", false, soon()).await.unwrap_err();
    assert_eq!(fenced.code(), Some(1290), "{fenced}");
    errors.push(fenced);
    drop(opened(&server).await);
    let nobody = Account::new("nobody", MARKER);
    rotation::set_password(&mut session, Wanted::Any, &nobody, "%", true, soon()).await.unwrap();
    assert!(rotation::accounts(&mut session, &["nobody"], "%", soon()).await.unwrap().is_empty(), "nobody is made");
    // Longer than a replica's password may be: the server repeats it in its words.
    let long = Account::new(REPLICATION, MARKER.repeat(3));
    let to = Source { account: long, ..source(&server) };
    let all = executed(&mut root(&server).await).await;
    let too_long = attach(&me, Wanted::Any, &to, &all, &spared(), soon()).await.unwrap_err();
    assert!(matches!(too_long, Error::Server { .. }), "{too_long}");
    errors.push(too_long);
    // Threads run.
    let mut admin = root(&server).await;
    run(&mut admin, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'x'").await;
    replica::start(&mut session, Wanted::Any, soon()).await.unwrap();
    errors.push(
        rotation::set_password(&mut session, stranger(), &account(MARKER), "%", false, soon()).await.unwrap_err(),
    );
    for error in errors {
        let text = format!("{error} {error:?}");
        assert!(!text.contains("Zx81") && !text.contains("abcdef"), "{text}");
    }
    let debug = format!("{wrong:?} {to:?} {session:?}");
    assert!(!debug.contains("Zx81") && !debug.contains("s3cret"), "{debug}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_is_set_and_works() {
    let server = site("rotated").start().unwrap();
    let me = login(&server);
    drop(opened(&server).await);
    let mut session = Session::open(&me, soon()).await.unwrap();
    let account = Account::new(OPERATOR, "n\u{fc} 'quoted' \\ \u{1f426}");
    let other = rotation::set_password(&mut session, stranger(), &account, "%", false, soon()).await.unwrap_err();
    assert!(matches!(other, Error::WrongServer { .. }), "{other}");
    rotation::set_password(&mut session, Wanted::Any, &account, "%", false, soon()).await.unwrap();
    assert!(Session::open(&me, soon()).await.unwrap_err().is_login());
    // The first login of an account is the long one: without TLS the password travels under the server's RSA key.
    Session::open(&Server { account, ..me }, soon()).await.unwrap();
}

/// K-21, in part: the operator's connections.
#[tokio::test(flavor = "multi_thread")]
async fn tls_verifies_the_authority_and_the_name() {
    let (authority, other) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let names = vec!["mysql-g-iad-internal".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    let folder = Scratch::new("tls").unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let builder = site("secure").args([
        format!("--ssl-ca={}", file("ca.crt", authority.pem())),
        format!("--ssl-cert={}", file("tls.crt", certificate.pem())),
        format!("--ssl-key={}", file("tls.key", key.serialize_pem())),
        "--require-secure-transport=ON".to_owned(),
    ]);
    let server = builder.start().unwrap();
    let with = |ca: &CertifiedIssuer<'_, KeyPair>, name: Option<&str>| {
        login(&server).with_tls(Tls { ca: ca.pem().into_bytes().into(), name: name.map(str::to_owned) })
    };
    Session::open(&with(&authority, Some("mysql-g-iad-internal")), soon()).await.unwrap();
    for (what, server) in [
        ("another authority", with(&other, Some("mysql-g-iad-internal"))),
        ("another name", with(&authority, Some("mysql-g-pdx-internal"))),
        ("no name, and an address that the certificate lacks", with(&authority, None)),
        ("garbage", login(&server).with_tls(Tls { ca: Arc::from(&b"garbage"[..]), name: None })),
    ] {
        let error = Session::open(&server, soon()).await.unwrap_err();
        assert!(matches!(error, Error::Connect { .. }), "{what}: {error}");
    }
    let plain = Session::open(&login(&server), soon()).await.unwrap_err();
    assert!(matches!(plain, Error::Server { code: 3159, .. }), "{plain}");
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A peer that takes a connection and answers each of the client's packets with the next of these.
async fn pretender(answers: Vec<Vec<u8>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for answer in answers {
            stream.write_all(&answer).await.unwrap();
            let mut some = [0; 1024];
            let _ = stream.read(&mut some).await;
        }
        std::future::pending::<()>().await;
    });
    Server::new("127.0.0.1", port, Account::new("a", "b"))
}

/// A packet of the protocol.
fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], payload].concat()
}

/// K-23: whoever answers where a server should be is read for a bounded time.
#[tokio::test(flavor = "multi_thread")]
async fn peers_that_are_no_servers_give_errors_in_time() {
    let greeting = [
        &b"\x0a9.7.4\0"[..],
        &[8, 0, 0, 0],
        b"12345678\0",
        &[0xff, 0xff, 0xff, 2, 0, 0xff, 0xdf, 21],
        &[0; 10],
        b"123456789012\0",
        b"caching_sha2_password\0",
    ]
    .concat();
    let garbage_key = vec![packet(0, &greeting), packet(2, &[1, 4]), packet(4, b"\x01no key at all")];
    let malformed = Session::open(&pretender(garbage_key).await, soon()).await.unwrap_err();
    assert!(matches!(malformed, Error::Connect { .. }), "a panic of the driver is an error here: {malformed}");
    let noise =
        Session::open(&pretender(vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]).await, within_ms(400)).await;
    assert!(matches!(noise.unwrap_err(), Error::Connect { .. } | Error::TimedOut { .. }));
    let (silent, took) = timed(Session::open(&pretender(Vec::new()).await, within_ms(300))).await;
    assert!(matches!(silent.unwrap_err(), Error::TimedOut { doing: "connect", .. }));
    assert!((Duration::from_millis(290)..Duration::from_millis(800)).contains(&took), "{took:?}");
    let nobody = Server::new("127.0.0.1", 1, Account::new("a", "b"));
    let refused = Session::open(&nobody, soon()).await.unwrap_err();
    assert!(matches!(refused, Error::Connect { .. }) && refused.to_string().starts_with("127.0.0.1:1: "), "{refused}");
    assert_eq!(Secret::new("x"), Secret::new("x"));
}
