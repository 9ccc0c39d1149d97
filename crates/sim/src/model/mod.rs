//! The authority protocol as a finite model: real `Sidecar::step`, real record changes, real proofs; the network, the
//! keeper, mysqld and time are modelled around them.
//!
//! Any answer may be late or lost; a view that was ever persisted may reach any sidecar at any later time. What is in
//! flight is state: answers of dead leaders, record writes of dead leaders, opening statements of dead sessions. Time is
//! relative and saturated: lease 2, margin 1, and the only thing that time forces is the keeper's dead man.
//!
//! Reading order: `world` (the words), `local` (one node), `leader`, `step` with `happen`, `mail` and `persist` (how they meet), `first` (where it begins), `canonical` (which
//! states are one), `check` (the promises), `search` and `walk`, [`rows`] (what is searched), [`teeth`] (what is
//! taken away, and who notices).

mod canonical;
mod check;
mod first;
mod happen;
mod intern;
mod leader;
mod local;
mod mail;
mod persist;
pub mod rows;
mod search;
mod step;
pub mod teeth;
mod walk;
mod world;

#[cfg(test)]
mod tests;

pub use check::Breach;
pub use leader::Write;
pub use local::{Said, Stimulus};
pub use search::{Outcome, search};
pub use step::{Action, Heard, Machine, Who};
pub use walk::{Walked, walk};
pub use world::{Bounds, Faults, Start, Without, World};
