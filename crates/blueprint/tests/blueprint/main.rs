//! Objects into the brain's words and back, from the outside: one test program, because each one links all of Kubernetes.
//!
//! In: objects, annotations, and everything that a leader can keep. Out: what comes of them.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod conditions;
mod corrupt;
mod objects;
mod round_trip;
mod shown;
mod wishes;
