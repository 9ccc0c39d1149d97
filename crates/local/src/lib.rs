//! A whole group on one machine without Kubernetes: real servers, a state directory, a front door, weather and load.
//!
//! In: a directory, programs, the names of sites. Out: running sites, operators and front doors, and verbs that hurt
//! them. Must not: decide anything that the brain decides, need root, or leave a process behind.
//!
//! Reading order: [`network`] says who listens where, [`store`] is what an API server is in a cluster, [`world`] lets an
//! operator live in it, [`supervisor`] plays the kubelet, [`router`] is the Services, [`weather`] is what can befall links,
//! [`assembly`] brings all of it up and down.

pub mod admin;
pub mod assembly;
mod descriptor;
pub mod files;
pub mod ledger;
pub mod load;
pub mod network;
pub mod operate;
pub mod playground;
pub mod router;
pub mod scenarios;
pub mod script;
pub mod store;
pub mod supervisor;
#[cfg(test)]
mod testing;
pub mod ui;
pub mod weather;
pub mod world;

pub use assembly::{Local, Options, Profile, Progress, Role, Status};
pub use network::{End, Network, Service};
pub use supervisor::{MysqlPrograms, Part, Programs, Wipe};
pub use weather::Weather;
