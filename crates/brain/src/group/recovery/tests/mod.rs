//! Bringing sites back: one table for each paragraph of the rules.

pub(in crate::group) mod bench;

mod comparisons;
mod divergence;
mod footing;
mod old_primaries;
mod replicas;
mod words;
