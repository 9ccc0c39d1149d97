//! The leader of every group: watches, decides by the brain, and acts, in whatever world it is given.
//!
//! In: a [`world::World`], settings, listeners. Out: calls to that world, to servers and to sidecars; HTTP answers. Must
//! not: decide. Every decision is a step of the brain; this crate carries its inputs in and its commands out.

#![forbid(unsafe_code)]

mod beats;
pub mod clock;
mod directory;
pub mod ears;
mod election;
mod group;
mod guard;
mod http;
mod logins;
mod object;
pub mod pace;
mod run;
pub mod servers;
pub mod settings;
pub mod sql;
mod tasks;
pub mod tell;
mod told;
pub mod world;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use run::{run, run_with};
pub use settings::{Error, Listeners, Settings};
