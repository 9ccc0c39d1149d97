//! The operator's world in a cluster, against a real API server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that its tests share"
)]

mod again;
mod drawn;
mod ended;
mod fields;
mod hostile;
mod kept;
mod labels;
mod marked;
mod outside;
mod patched;
mod played;
mod recorded;
mod rights;
mod scoped;
mod shuffled;
mod stage;
mod trusted;
mod world;
