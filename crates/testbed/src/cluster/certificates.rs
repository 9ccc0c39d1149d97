//! The certificates of a cluster: one authority, one identity for everyone who speaks to the API server.
//!
//! In: a folder. Out: files in it, by the names below, and kubeconfigs that name them. Must not: reuse a key between two
//! clusters.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair};
use snafu::ResultExt as _;

use super::error::{CertificatesSnafu, Error, FileSnafu};
use super::layout::{API_PORT, KUBERNETES_SERVICE, Member};
use crate::kubernetes::certificates::{Identity, authority, client_params, issue, serving_params};
use crate::kubernetes::kubeconfig;

/// The group that role-based access control lets do everything.
const MASTERS: &str = "system:masters";

/// Everyone with a client certificate: the file, the user, the group.
const CLIENTS: [(&str, &str, &str); 6] = [
    ("admin", "admin", MASTERS),
    ("apiserver-kubelet", "kube-apiserver-kubelet", MASTERS),
    ("front-proxy", "front-proxy", ""),
    ("controller-manager", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
    ("kube-proxy", "system:kube-proxy", ""),
];

/// The files of a cluster's identities.
#[derive(Clone, Debug)]
pub(super) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes and writes all of them; elliptic curves, so this takes a fraction of a second.
    pub(super) fn make(folder: &Path) -> Result<Self, Error> {
        let made = Self { folder: folder.to_owned() };
        std::fs::create_dir_all(folder).context(FileSnafu { what: "make", path: folder })?;
        let authority = authority().context(CertificatesSnafu)?;
        made.write("ca.crt", &authority.pem())?;
        made.write("ca.key", &authority.key().serialize_pem())?;
        for (name, user, group) in CLIENTS {
            let params = client_params(user, group).context(CertificatesSnafu)?;
            made.store(name, &issue(&authority, &params).context(CertificatesSnafu)?)?;
        }
        let server = api_server_params().context(CertificatesSnafu)?;
        made.store("apiserver", &issue(&authority, &server).context(CertificatesSnafu)?)?;
        for node in Member::nodes() {
            let params = node_params(node).context(CertificatesSnafu)?;
            made.store(node.name(), &issue(&authority, &params).context(CertificatesSnafu)?)?;
        }
        let accounts = KeyPair::generate().context(CertificatesSnafu)?;
        made.write("service-accounts.key", &accounts.serialize_pem())?;
        made.write("service-accounts.pub", &accounts.public_key_pem())?;
        Ok(made)
    }

    /// The path of a file, such as `ca.crt`.
    pub(super) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Writes the kubeconfig of an identity for an address, and gives its path.
    pub(super) fn kubeconfig(&self, name: &str, url: &str) -> Result<PathBuf, Error> {
        let at = |end: &str| self.folder.join(format!("{name}.{end}"));
        let text = kubeconfig::text(url, &self.folder.join("ca.crt"), &at("crt"), &at("key"));
        self.write(&format!("{name}.kubeconfig"), &text)?;
        Ok(at("kubeconfig"))
    }

    fn store(&self, name: &str, identity: &Identity) -> Result<(), Error> {
        self.write(&format!("{name}.crt"), &identity.certificate)?;
        self.write(&format!("{name}.key"), &identity.key)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).context(FileSnafu { what: "write", path })
    }
}

/// The API server as the machines of the cluster call it.
pub(super) fn api_url() -> String {
    format!("https://{}:{API_PORT}", Member::PLANE.address())
}

fn api_server_params() -> Result<CertificateParams, rcgen::Error> {
    let address = Member::PLANE.address().to_string();
    let service = "kubernetes.default.svc.cluster.local";
    let names = [
        &address,
        "127.0.0.1",
        KUBERNETES_SERVICE,
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        service,
    ];
    serving_params("kube-apiserver", &names)
}

/// A kubelet calls the API server and is called by it, under one identity.
fn node_params(node: Member) -> Result<CertificateParams, rcgen::Error> {
    let mut params = serving_params("", &[&node.address().to_string(), node.name()])?;
    params.distinguished_name =
        client_params(&format!("system:node:{}", node.name()), "system:nodes")?.distinguished_name;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

#[cfg(test)]
mod tests {
    use rcgen::{DnType, SanType};

    use super::*;
    use crate::testing::Folder;

    fn addresses(params: &CertificateParams) -> Vec<String> {
        let address = |name: &SanType| match name {
            SanType::IpAddress(address) => Some(address.to_string()),
            _ => None,
        };
        params.subject_alt_names.iter().filter_map(address).collect()
    }

    #[test]
    fn the_api_server_is_called_by_the_nodes_by_the_host_and_by_pods() {
        let params = api_server_params().unwrap();
        assert_eq!(addresses(&params), ["10.10.0.10", "127.0.0.1", "10.96.0.1"]);
        let names = params.subject_alt_names.iter().filter(|name| matches!(name, SanType::DnsName(_))).count();
        assert_eq!(names, 5);
    }

    #[test]
    fn a_node_is_a_server_and_a_client_under_the_name_that_the_node_authorizer_knows() {
        let params = node_params(Member::node("pdx").unwrap()).unwrap();
        assert_eq!(addresses(&params), ["10.10.0.12"]);
        let name = |kind| params.distinguished_name.get(&kind).cloned();
        assert_eq!(name(DnType::CommonName), Some("system:node:pdx".into()));
        assert_eq!(name(DnType::OrganizationName), Some("system:nodes".into()));
        assert_eq!(params.extended_key_usages.len(), 2);
    }

    #[test]
    fn everyone_has_a_certificate_and_a_key() {
        let folder = Folder::new();
        let made = Certificates::make(folder.path()).unwrap();
        let names = CLIENTS.map(|(name, ..)| name).into_iter().chain(["apiserver", "iad", "pdx", "fra", "ca"]);
        for name in names {
            for end in ["crt", "key"] {
                assert!(Path::new(&made.file(&format!("{name}.{end}"))).is_file(), "{name}.{end}");
            }
        }
        let config = made.kubeconfig("admin", &api_url()).unwrap();
        assert!(std::fs::read_to_string(config).unwrap().contains("https://10.10.0.10:6443"));
    }
}
