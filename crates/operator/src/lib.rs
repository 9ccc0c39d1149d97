//! The leader of every group: watches, decides by the brain, and acts, in whatever world it is given.
//!
//! In: a [`world::World`], settings, listeners. Out: calls to that world, to servers and to sidecars; HTTP answers. Must
//! not: decide. Every decision is a step of the brain; this crate carries its inputs in and its commands out.

#![forbid(unsafe_code)]

pub mod ears;
pub mod world;
