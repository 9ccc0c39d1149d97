//! Empty sites, clones and their phases: one table for each paragraph of the rules.

mod attempts;
mod empty;
mod leaders;
mod promoted;
