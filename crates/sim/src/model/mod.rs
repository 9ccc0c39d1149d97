//! The authority protocol as a finite model: real `Sidecar::step`, real record changes, real proofs; the network, the
//! keeper, mysqld and time are modelled around them.
//!
//! Any message may be late or lost; a view that was ever persisted may reach any sidecar at any later time. What is in
//! flight is state: answers of dead leaders, record writes of dead leaders, opening statements of dead sessions. Time is
//! relative and saturated: lease 2, margin 1, and the only thing that time forces is the keeper's dead man.

mod action;
mod canonical;
mod check;
mod search;
mod world;

#[cfg(test)]
mod tests;

pub use action::Action;
pub use check::Breach;
pub use search::{Outcome, search};
pub use world::{Bounds, Channel, Message, Without, World};
