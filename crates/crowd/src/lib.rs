//! Thousands of sites in one process, all of them doubles: so that one operator can be run against a thousand groups.
//!
//! In: how many groups. Out: a network of its own in which a real API server, a real `bloodraven operator` and that many
//! played sites meet; faults; what was seen of the operator. Must not: be taken for MySQL. Nothing is stored or
//! replicated here, no write is ever made, and a statement that is not known is refused by name.
//!
//! | part | real or played |
//! |---|---|
//! | etcd, `kube-apiserver`, `bloodraven operator` | real |
//! | the sidecar's decisions | real: the brain's own step; its hands are played, and are never slow |
//! | the sidecar's words to and from the operator | real: signed HTTP, a connection for each question |
//! | words between sidecars | played: within the process |
//! | MySQL's protocol | real as far as it goes: handshake, `caching_sha2_password`, `COM_QUERY` with several statements |
//! | what a server says | played, from a small model of a site (`server.rs`) |
//! | kubelet, names | played: pods for Deployments, a name server for Services |
//!
//! Every site has a loopback address of its own and the standard ports, in a network namespace that ends with the process
//! ([`place`]): nothing of the machine is touched, and no port can be taken already.

#![forbid(unsafe_code)]

mod ask;
mod clock;
pub mod crowd;
mod group;
mod http;
mod kubelet;
mod mysql;
mod names;
mod packet;
pub mod place;
pub mod polls;
mod say;
mod server;
pub mod stage;
pub mod watch;

pub use bloodraven_bench::process;
pub use clock::pass;
pub use crowd::{Crowd, Fault};
pub use stage::Stage;
