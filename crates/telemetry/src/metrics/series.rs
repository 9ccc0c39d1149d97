//! The series of one metric: a table from label values to a number.
//!
//! In: label values. Out: a handle; encoded in the order of the values, so that two scrapes can be compared. Must not: hold
//! more than [`MOST`] series: beyond it a handle counts for nobody, and the scrape stays readable.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

use crate::words::Values;

/// Series of one metric: a thousand groups, and some thirty reasons why one may be degraded.
pub(super) const MOST: usize = 50_000;

/// Row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricSpec {
    /// As it is exposed, prefix and `_total` included.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// Whose it is; says which labels stand before its own.
    pub scope: Scope,
    /// Its own labels.
    pub labels: &'static [LabelSpec],
    /// Upper bounds; empty unless it is a histogram.
    pub buckets: &'static [f64],
    /// What it is.
    pub help: &'static str,
}

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelSpec {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub values: Values,
}

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Lengths of time in buckets.
    Histogram,
}

/// Whose series it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process's: no labels but its own.
    Process,
    /// A group's, in the operator: `namespace`, `group`.
    Group,
    /// A site's, in its sidecar: `namespace`, `group`, `site`.
    Site,
}

impl Kind {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Scope {
    /// The labels that stand before a metric's own.
    pub const fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Process => &[],
            Self::Group => &["namespace", "group"],
            Self::Site => &["namespace", "group", "site"],
        }
    }
}

/// See above.
pub(super) struct Series<M> {
    spec: &'static MetricSpec,
    make: fn(&'static [f64]) -> M,
    rows: Arc<RwLock<Rows<M>>>,
}

/// The series of each owner by themselves: whoever looks for one of its own does not pass those of a thousand others.
struct Rows<M> {
    owners: BTreeMap<Vec<Arc<str>>, Vec<Row<M>>>,
    count: usize,
}

/// One series: the values of the metric's own labels, and its handle. Those of one owner are kept in their order.
struct Row<M> {
    own: Box<[Box<str>]>,
    handle: M,
}

impl<M> Rows<M> {
    /// Where that series of the owner is, or belongs.
    fn place(rows: &[Row<M>], own: &[&str]) -> Result<usize, usize> {
        rows.binary_search_by(|row| row.own.iter().map(|value| &**value).cmp(own.iter().copied()))
    }

    fn get(&self, owner: &[Arc<str>], own: &[&str]) -> Option<&M> {
        let rows = self.owners.get(owner)?;
        Some(&rows.get(Self::place(rows, own).ok()?)?.handle)
    }
}

impl<M> Clone for Series<M> {
    fn clone(&self) -> Self {
        Self { spec: self.spec, make: self.make, rows: Arc::clone(&self.rows) }
    }
}

impl<M> fmt::Debug for Series<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl<M: Clone> Series<M> {
    pub(super) fn new(spec: &'static MetricSpec, make: fn(&'static [f64]) -> M) -> Self {
        Self { spec, make, rows: Arc::new(RwLock::new(Rows { owners: BTreeMap::new(), count: 0 })) }
    }

    /// The handle of that series, made if there is none yet.
    pub(super) fn of(&self, prefix: &[Arc<str>], own: &[&str]) -> M {
        if let Some(found) = self.rows.read().unwrap_or_else(PoisonError::into_inner).get(prefix, own) {
            return found.clone();
        }
        let made = (self.make)(self.spec.buckets);
        let mut all = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let Rows { owners, count } = &mut *all;
        if *count >= MOST {
            return made;
        }
        let rows = owners.entry(prefix.to_vec()).or_default();
        match Rows::place(rows, own) {
            // Somebody was first.
            Ok(place) => rows.get(place).map_or(made, |row| row.handle.clone()),
            Err(place) => {
                let own = own.iter().map(|value| Box::from(*value)).collect();
                rows.insert(place, Row { own, handle: made.clone() });
                *count += 1;
                made
            }
        }
    }

    /// Takes away every series that has all these labels with these values; none if one is not a label of it.
    pub(super) fn remove(&self, prefix: &[Arc<str>], wanted: &[(&str, &str)]) {
        let mut places = Vec::new();
        for (name, value) in wanted {
            let Some(place) = self.spec.labels.iter().position(|label| label.name == *name) else { return };
            places.push((place, *value));
        }
        let goes =
            |row: &Row<M>| places.iter().all(|(place, value)| row.own.get(*place).is_some_and(|at| **at == **value));
        let is_there = |rows: &Rows<M>| rows.owners.get(prefix).is_some_and(|rows| rows.iter().any(goes));
        // As a rule there is none, and those who count meanwhile are not held up.
        if !is_there(&self.rows.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut all = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let Rows { owners, count } = &mut *all;
        if let Some(rows) = owners.get_mut(prefix) {
            let before = rows.len();
            rows.retain(|row| !goes(row));
            *count -= before - rows.len();
            if rows.is_empty() {
                owners.remove(prefix);
            }
        }
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.bare_name() == name
    }

    fn bare_name(&self) -> &'static str {
        let bare = self.spec.name.strip_prefix(super::PREFIX).and_then(|rest| rest.strip_prefix('_'));
        bare.unwrap_or(self.spec.name)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.spec.scope.labels().iter().copied().chain(self.spec.labels.iter().map(|label| label.name))
    }
}

impl<M: EncodeMetric + TypedMetric + Clone + Send + Sync + 'static> Series<M> {
    /// Puts it into the registry, which adds the prefix; the encoder adds `_total` to counters.
    pub(super) fn register(&self, registry: &mut Registry) {
        let name = self.bare_name();
        let name = if self.spec.kind == Kind::Counter { name.strip_suffix("_total").unwrap_or(name) } else { name };
        registry.register(name, self.spec.help, self.clone());
    }
}

impl<M: EncodeMetric + TypedMetric + Clone> EncodeMetric for Series<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let all = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(only) = all.get(&[], &[]) {
            return only.encode(encoder);
        }
        for (owner, rows) in &all.owners {
            for row in rows {
                let values = owner.iter().map(|value| &**value).chain(row.own.iter().map(|value| &**value));
                let labels: Vec<(&str, &str)> = self.names().zip(values).collect();
                row.handle.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).count == 0
    }
}
