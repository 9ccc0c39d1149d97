//! The certificates of one API server: made fresh for every start, trusted by nobody else.
//!
//! In: nothing but the random generator of the crypto library. Out: PEM texts of one authority, the serving
//! certificate, the administrator's client certificate and the key pair that signs service-account tokens.
//! Must not: write files (the caller owns the folder), or reuse a key between two servers.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// Every name under which the API server is called: by tests on loopback, by pods by its service name.
/// `10.96.0.1` is the first address of the range that services get, which is the address of the
/// `kubernetes` service.
pub(super) const SERVER_NAMES: [&str; 7] = [
    "127.0.0.1",
    "10.96.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The group that role-based access control lets do everything.
const ADMIN_GROUP: &str = "system:masters";

/// A certificate and its private key, both as PEM.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Everything that one API server and its administrator need to prove who they are.
#[derive(Debug, Clone)]
pub(super) struct Certificates {
    /// The authority's certificate, PEM.
    pub(super) authority: String,
    /// What the API server shows.
    pub(super) server: Identity,
    /// What the administrator shows: `CN=admin`, `O=system:masters`.
    pub(super) admin: Identity,
    /// Signs service-account tokens, PEM.
    pub(super) service_account_key: String,
    /// Verifies service-account tokens, PEM.
    pub(super) service_account_public_key: String,
}

impl Certificates {
    /// Makes a new authority and everything below it (elliptic curve P-256, so this takes milliseconds).
    pub(super) fn generate() -> Result<Self, rcgen::Error> {
        let authority = authority()?;
        let service_account = KeyPair::generate()?;
        Ok(Self {
            authority: authority.pem(),
            server: issue(&authority, &server_params()?)?,
            admin: issue(&authority, &client_params("admin", ADMIN_GROUP)?)?,
            service_account_key: service_account.serialize_pem(),
            service_account_public_key: service_account.public_key_pem(),
        })
    }
}

pub(crate) fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = named("testbed authority", None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

pub(crate) fn issue(
    authority: &CertifiedIssuer<'static, KeyPair>,
    params: &CertificateParams,
) -> Result<Identity, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn server_params() -> Result<CertificateParams, rcgen::Error> {
    serving_params("kube-apiserver", &SERVER_NAMES)
}

/// What a server shows that is called by these names and addresses.
pub(crate) fn serving_params(user: &str, names: &[&str]) -> Result<CertificateParams, rcgen::Error> {
    // `new` tells addresses from names by itself.
    let mut params = CertificateParams::new(names.iter().copied().map(String::from).collect::<Vec<_>>())?;
    params.distinguished_name = distinguished_name(user, None);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// What a client shows: who it is and which group it is of, none when that is empty.
pub(crate) fn client_params(user: &str, group: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = named(user, (!group.is_empty()).then_some(group))?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn named(common_name: &str, organization: Option<&str>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name = distinguished_name(common_name, organization);
    Ok(params)
}

fn distinguished_name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the certificate's bytes contain one alternative name: its tag, its length, its content (RFC 5280,
    /// `GeneralName`: 2 is a DNS name, 7 an address).
    fn has_alternative_name(der: &[u8], tag: u8, content: &[u8]) -> bool {
        let mut wanted = vec![0x80 | tag, u8::try_from(content.len()).unwrap()];
        wanted.extend_from_slice(content);
        der.windows(wanted.len()).any(|window| window == wanted)
    }

    fn server_der() -> Vec<u8> {
        let authority = authority().unwrap();
        let key = KeyPair::generate().unwrap();
        server_params().unwrap().signed_by(&key, &authority).unwrap().der().to_vec()
    }

    #[test]
    fn the_serving_certificate_names_loopback_and_the_service() {
        fn check(tag: u8, content: &[u8], expect: bool) {
            assert_eq!(has_alternative_name(&server_der(), tag, content), expect, "tag {tag}, {content:?}");
        }
        check(7, &[127, 0, 0, 1], true);
        check(7, &[10, 96, 0, 1], true);
        check(2, b"localhost", true);
        check(2, b"kubernetes.default.svc", true);
        check(2, b"kubernetes.default.svc.cluster.local", true);
        check(2, b"127.0.0.1", false);
        check(7, &[127, 0, 0, 2], false);
        check(2, b"example.org", false);
    }

    #[test]
    fn the_admin_certificate_is_of_the_group_that_may_do_everything() {
        let params = client_params("admin", ADMIN_GROUP).unwrap();
        let name = |kind| params.distinguished_name.get(&kind).cloned();
        assert_eq!(name(DnType::OrganizationName), Some("system:masters".into()));
        assert_eq!(name(DnType::CommonName), Some("admin".into()));
        assert_eq!(params.extended_key_usages, [ExtendedKeyUsagePurpose::ClientAuth]);
    }

    #[test]
    fn every_part_is_pem_of_the_kind_its_reader_expects() {
        fn check(pem: &str, label: &str) {
            assert!(pem.starts_with(&format!("-----BEGIN {label}-----")), "{label}: {pem}");
        }
        let made = Certificates::generate().unwrap();
        check(&made.authority, "CERTIFICATE");
        check(&made.server.certificate, "CERTIFICATE");
        check(&made.server.key, "PRIVATE KEY");
        check(&made.admin.certificate, "CERTIFICATE");
        check(&made.admin.key, "PRIVATE KEY");
        check(&made.service_account_key, "PRIVATE KEY");
        check(&made.service_account_public_key, "PUBLIC KEY");
    }

    #[test]
    fn two_servers_share_no_key() {
        let (one, two) = (Certificates::generate().unwrap(), Certificates::generate().unwrap());
        assert_ne!(one.authority, two.authority);
        assert_ne!(one.server.key, two.server.key);
        assert_ne!(one.admin.key, two.admin.key);
        assert_ne!(one.service_account_key, two.service_account_key);
    }
}
