//! The testbed: real MySQL servers and a real Kubernetes API server for tests, brought up and taken down in process.
//!
//! In: what is wanted (so many servers, an API server). Out: running processes on loopback, ended for certain when the
//! value is dropped or the test process dies. Must not: contain product logic, touch the system outside the cache
//! folder and its own scratch folders, or leave a half-written cache entry behind.

pub mod cache;
pub mod debian;
pub mod kubernetes;
pub mod mysql;
pub mod ports;
pub mod process;
pub mod progress;
