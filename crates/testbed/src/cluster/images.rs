//! Container images, made without a container engine: a folder, packed as one layer.
//!
//! In: folders of the cache and programs of this workspace. Out: archives that containerd imports. Must not: pull anything,
//! or change a file that is linked from the cache.

mod archive;
mod recipes;

pub(super) use self::archive::{Image, pack};
pub(super) use self::recipes::{Sources, bloodraven, standing};

/// The first process of a pod, which holds its namespaces.
pub(super) const PAUSE: &str = "bloodraven.test/pause:1";

/// MySQL from Debian's packages, with a shell and the MySQL clients; user 999.
pub const MYSQL: &str = "bloodraven.test/mysql:9.7";

/// The name service of the cluster.
pub(super) const COREDNS: &str = "bloodraven.test/coredns:1";

/// `bloodraven` and `keeper` of this workspace, in `/usr/local/bin`; the entry point is `bloodraven`.
pub const BLOODRAVEN: &str = "bloodraven.test/bloodraven:testbed";
