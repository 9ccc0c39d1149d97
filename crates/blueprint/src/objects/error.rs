//! Why objects cannot be built.
//!
//! In: nothing. Out: an error that names the field and the way out. Must not: show a value from a Secret.

use snafu::Snafu;

/// What is wrong, where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(visibility(pub(super)))]
pub enum Error {
    /// The object was never with an API server.
    #[snafu(display("metadata.{field} is empty; objects are built of a group that the API server holds"))]
    Unnamed {
        /// The field.
        field: &'static str,
    },
    /// A name of an object that Kubernetes would refuse.
    #[snafu(display("{field}: {name:?} would not be a DNS label of at most 63 characters; write a shorter name"))]
    Name {
        /// Where its parts come from.
        field: String,
        /// The name.
        name: String,
    },
    /// Nobody knows which image to run.
    #[snafu(display("spec.sidecarImage: the operator's own image is not known; write the image of the sidecar"))]
    NoSidecarImage,
    /// The cluster's domain is no name.
    #[snafu(display("--cluster-domain: {domain:?} is no DNS name; write e.g. cluster.local"))]
    ClusterDomain {
        /// What was given.
        domain: String,
    },
    /// The operator's address is none.
    #[snafu(display("--aux-address: {address:?} is not host:port; write e.g. bloodraven.ops.svc.cluster.local:8082"))]
    OperatorAddress {
        /// What was given.
        address: String,
    },
    /// No server id was chosen.
    #[snafu(display("spec.sites[{site}]: it has no server id; choose one for every site of the group"))]
    NoServerId {
        /// The site.
        site: String,
    },
    /// Two servers with one id would ignore each other's transactions.
    #[snafu(display(
        "spec.sites[{site}]: server id {id} is that of {other}, too; remove the annotation \
        bloodraven.shipstream.io/server-id from the newer claim"
    ))]
    SameServerId {
        /// The site.
        site: String,
        /// The other one.
        other: String,
        /// Their id.
        id: u32,
    },
    /// An option that the operator owns.
    #[snafu(display("spec.mysqlConf.{key}: the operator sets this option; remove it"))]
    OwnedOption {
        /// As it was written.
        key: String,
    },
    /// A text that would become another line.
    #[snafu(display(
        "spec.mysqlConf.{key}: key and value must be one line without control characters; write one key for \
        each option"
    ))]
    NotOneLine {
        /// As it was written.
        key: String,
    },
    /// One option twice, in two spellings.
    #[snafu(display("spec.mysqlConf.{key}: {other} is the same option; keep one of them"))]
    SameOption {
        /// As it was written.
        key: String,
        /// The other spelling.
        other: String,
    },
    /// A container of the user wants a volume that the pod lacks.
    #[snafu(display("{field}: the pod has no volume {volume:?} for it; write one of {volumes}"))]
    NoVolume {
        /// The field.
        field: String,
        /// What was asked for.
        volume: String,
        /// What there is.
        volumes: String,
    },
    /// The claim that is there cannot become the one that is asked for.
    #[snafu(display(
        "{field}: claim {claim} has {present:?}, which cannot be changed; write {present:?}, or delete the claim"
    ))]
    Claim {
        /// The field.
        field: String,
        /// The claim.
        claim: String,
        /// What it has.
        present: String,
    },
}
