//! The wire, from outside: bytes that may not drift, everything that is refused, and values that come back.
//!
//! In: the crate's public items. Out: verdicts. Must not: know anything of the crate that its users cannot.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod envelope;
mod messages;
mod properties;
mod query;
mod vectors;
