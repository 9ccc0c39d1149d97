//! The testbed: real MySQL servers and a real Kubernetes API server for tests, brought up and taken down in process.
//!
//! In: what is wanted (so many servers, an API server). Out: running processes on loopback, ended for certain when the
//! value is dropped or the test process dies. Must not: contain product logic, touch the system outside the cache
//! folder and its own scratch folders, or leave a half-written cache entry behind.
//!
//! Reading order: [`mysql`] and [`kubernetes`] are what tests use; [`cache`] keeps what was fetched, [`debian`] fetches
//! it, [`process`], [`ports`], [`lock`] and [`scratch`] are what a running server holds; [`wait`], [`environment`] and
//! [`progress`] are the only files that look at the clock, at variables and at the terminal.

pub mod cluster;
pub mod kubernetes;
pub mod mysql;

pub mod cache;
pub mod debian;
pub mod lock;
pub mod ports;
pub mod process;
pub mod scratch;

pub mod environment;
pub mod progress;
pub mod wait;

#[cfg(test)]
mod testing;
