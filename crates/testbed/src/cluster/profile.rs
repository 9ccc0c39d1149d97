//! How patient a cluster is with a node that falls silent.
//!
//! In: nothing. Out: the times that kubelet, controller manager and API server are told. Must not: hold anything else.

/// The times of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Impatient: a lost node is seen after ten seconds and its pods are given up after ten more.
    #[default]
    Fast,
    /// As Kubernetes is shipped: fifty seconds, then five minutes.
    Default,
}

impl Profile {
    pub(super) fn toleration_seconds(self) -> u32 {
        self.choose(10, 300)
    }

    /// How long a node may be silent.
    pub(super) fn grace_seconds(self) -> u32 {
        self.choose(10, 50)
    }

    /// How often that is looked at.
    pub(super) fn monitor_seconds(self) -> u32 {
        self.choose(2, 5)
    }

    /// How long a node's lease lasts; it is renewed at a quarter of that.
    pub(super) fn lease_seconds(self) -> u32 {
        self.choose(6, 40)
    }

    /// How often a node tells its state.
    pub(super) fn status_seconds(self) -> u32 {
        self.choose(2, 10)
    }

    fn choose(self, fast: u32, default: u32) -> u32 {
        match self {
            Self::Fast => fast,
            Self::Default => default,
        }
    }
}
