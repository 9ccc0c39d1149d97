//! The sets of metrics and their typed handles.
//!
//! In: what happened. Out: Prometheus text. Must not: take a label that is not declared, keep the series of a group or site
//! that is gone, or grow without bound.
//!
//! Every method of a set is one row of its table and returns a handle: `metrics.group("shop", "orders").failovers("pdx").inc()`.
//! Handles are cheap; whoever keeps one counts on where no series is left after the group is forgotten.

mod catalogue;
mod series;
mod table;

#[cfg(test)]
mod tests;

pub use catalogue::{GroupMetrics, ProcessMetrics, SiteMetrics, catalogue, is_to_come};
pub use series::{Kind, LabelSpec, MetricSpec, Scope};

use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter as RawCounter;
use prometheus_client::metrics::gauge::Gauge as RawGauge;
use prometheus_client::registry::Registry;

use crate::words::{AuthorityPhase, Code, SiteRole, SiteState};
use catalogue::{GroupTables, ProcessTables, SiteTables};

/// What [`OperatorMetrics::text`] and [`SidecarMetrics::text`] are, for the header `content-type`.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Begins every name.
pub const PREFIX: &str = "bloodraven";

/// Counts things.
pub type Counter = RawCounter;
/// Counts seconds.
pub type Seconds = RawCounter<f64, std::sync::atomic::AtomicU64>;
/// A whole number that goes up and down.
pub type Gauge = RawGauge;
/// A number that goes up and down.
pub type Real = RawGauge<f64, std::sync::atomic::AtomicU64>;
/// Lengths of time, in seconds.
pub type Histogram = prometheus_client::metrics::histogram::Histogram;

/// Everything that an operator shows. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct OperatorMetrics {
    registry: Arc<Registry>,
    process: ProcessMetrics,
    groups: Arc<GroupTables>,
}

/// Everything that a sidecar shows. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct SidecarMetrics {
    registry: Arc<Registry>,
    process: ProcessMetrics,
    site: SiteMetrics,
}

impl OperatorMetrics {
    /// A set without a series but `build_info`.
    pub fn new(version: &str) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let process = ProcessMetrics::under(Vec::new(), ProcessTables::register(&mut registry));
        let groups = GroupTables::register(&mut registry);
        process.build_info(version, Code("operator")).set(1);
        Self { registry: Arc::new(registry), process, groups }
    }

    /// What belongs to no group.
    pub const fn process(&self) -> &ProcessMetrics {
        &self.process
    }

    /// The handles of one group.
    pub fn group(&self, namespace: &str, name: &str) -> GroupMetrics {
        GroupMetrics::under(vec![namespace.into(), name.into()], Arc::clone(&self.groups))
    }

    /// Takes away every series of a group that is gone.
    pub fn forget_group(&self, namespace: &str, name: &str) {
        self.group(namespace, name).remove(&[]);
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        encode(&self.registry)
    }
}

impl SidecarMetrics {
    /// The set of the sidecar of one site.
    pub fn new(version: &str, namespace: &str, group: &str, site: &str) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let process = ProcessMetrics::under(Vec::new(), ProcessTables::register(&mut registry));
        let tables = SiteTables::register(&mut registry);
        process.build_info(version, Code("sidecar")).set(1);
        let site = SiteMetrics::under(vec![namespace.into(), group.into(), site.into()], tables);
        Self { registry: Arc::new(registry), process, site }
    }

    /// What belongs to the process.
    pub const fn process(&self) -> &ProcessMetrics {
        &self.process
    }

    /// What belongs to the site.
    pub const fn site(&self) -> &SiteMetrics {
        &self.site
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        encode(&self.registry)
    }
}

impl GroupMetrics {
    /// Shows how far authority is: 1 for this phase, 0 for the others.
    pub fn show_phase(&self, present: AuthorityPhase) {
        for phase in AuthorityPhase::ALL {
            self.authority_phase(*phase).set(i64::from(*phase == present));
        }
    }

    /// Shows the state of a site: 1 for this one, 0 for the others. A role that it no longer has is taken away.
    pub fn show_site_state(&self, site: &str, role: SiteRole, present: SiteState) {
        for other in SiteRole::ALL.iter().filter(|other| **other != role) {
            self.remove_from("site_state", &[("site", site), ("role", other.as_str())]);
            self.remove_from("replication_lag_seconds", &[("site", site), ("role", other.as_str())]);
        }
        for state in SiteState::ALL {
            self.site_state(site, role, *state).set(i64::from(*state == present));
        }
    }

    /// Shows what is wrong: 1 for every reason that holds, 0 for the rest of `all`.
    pub fn show_degraded(&self, all: impl IntoIterator<Item = &'static str>, holding: &[&str]) {
        for reason in all {
            self.degraded(Code(reason)).set(i64::from(holding.contains(&reason)));
        }
    }

    /// Takes away every series of a site that is not declared any more.
    pub fn forget_site(&self, site: &str) {
        for label in ["site", "target_site", "prefer_site"] {
            self.remove(&[(label, site)]);
        }
    }
}

fn encode(registry: &Registry) -> String {
    let mut out = String::new();
    // Writing into a string fails only if a metric refuses to be encoded; what stands until there is still true.
    let _ = text::encode(&mut out, registry);
    out
}
