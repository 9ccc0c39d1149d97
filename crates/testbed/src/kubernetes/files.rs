//! The files of one API server: certificates, kubeconfig, data, logs, all below one scratch folder.
//!
//! In: the folder, the certificates, the server's address. Out: the paths, and the files that exist before anything is
//! started. Must not: write anywhere else.

use std::io;
use std::path::{Path, PathBuf};

use super::certificates::Certificates;
use super::kubeconfig;

/// The custom resource of external-dns.
const DNS_ENDPOINT: &str = include_str!("dns_endpoint.yaml");

/// Where everything lies.
#[derive(Debug, Clone)]
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    /// Writes what the programs read.
    pub(super) fn write(folder: &Path, url: &str, certificates: &Certificates) -> io::Result<Self> {
        let files = Self { folder: folder.to_owned() };
        std::fs::write(files.authority(), &certificates.authority)?;
        std::fs::write(files.server_certificate(), &certificates.server.certificate)?;
        std::fs::write(files.server_key(), &certificates.server.key)?;
        std::fs::write(files.admin_certificate(), &certificates.admin.certificate)?;
        std::fs::write(files.admin_key(), &certificates.admin.key)?;
        std::fs::write(files.service_account_key(), &certificates.service_account_key)?;
        std::fs::write(files.service_account_public_key(), &certificates.service_account_public_key)?;
        std::fs::write(files.dns_endpoint(), DNS_ENDPOINT)?;
        let config = kubeconfig::text(url, &files.authority(), &files.admin_certificate(), &files.admin_key());
        std::fs::write(files.kubeconfig(), config)?;
        Ok(files)
    }

    pub(super) fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    pub(super) fn server_certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    pub(super) fn server_key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    fn admin_certificate(&self) -> PathBuf {
        self.folder.join("admin.crt")
    }

    fn admin_key(&self) -> PathBuf {
        self.folder.join("admin.key")
    }

    pub(super) fn service_account_key(&self) -> PathBuf {
        self.folder.join("service-account.key")
    }

    pub(super) fn service_account_public_key(&self) -> PathBuf {
        self.folder.join("service-account.pub")
    }

    pub(super) fn dns_endpoint(&self) -> PathBuf {
        self.folder.join("dns_endpoint.yaml")
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// What `kubectl` remembers of the server's interface; by default that would be in the user's home.
    pub(super) fn kubectl_cache(&self) -> PathBuf {
        self.folder.join("kubectl-cache")
    }

    pub(super) fn etcd_data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    pub(super) fn etcd_log(&self) -> PathBuf {
        self.folder.join("etcd.log")
    }

    pub(super) fn server_log(&self) -> PathBuf {
        self.folder.join("kube-apiserver.log")
    }

    /// What the testbed's own calls of `kubectl` said.
    pub(super) fn kubectl_log(&self) -> PathBuf {
        self.folder.join("kubectl.log")
    }
}
