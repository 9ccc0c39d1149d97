//! The operator's world in Kubernetes: groups, pods, volumes, Secrets and leases at an API server.
//!
//! In: the operator's wishes (`bloodraven_operator::world::World`). Out: calls to the API server, and what became of them.
//! Must not: decide. What is an end, a proof or a candidate is the brain's business; here it is read off objects word for
//! word.
//!
//! One way to talk to the API server (`rest`), one way to hear from it (`watches`), and a file for each thing that the
//! operator wants of it.

#![forbid(unsafe_code)]

mod addresses;
mod bell;
mod dismiss;
mod estate;
mod events;
mod furnish;
mod group;
pub mod init;
mod keep;
mod lean;
mod lease;
mod older;
pub mod operate;
mod outward;
mod pods;
mod prune;
mod rest;
mod secrets;
mod seen;
mod shelf;
mod taken;
mod turns;
mod watches;
mod world;

pub use furnish::House;
pub use world::{ClusterWorld, Places};
