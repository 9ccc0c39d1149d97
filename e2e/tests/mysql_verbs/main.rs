//! The verbs that Bloodraven says to a MySQL server, against real servers.
//!
//! In: servers of the testbed with the accounts of a site. Out: proof that each verb does what its file says, on time,
//! with the rights of the operator's account and no others. Must not: leave a server behind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test, as the test itself does")]

mod cloning;
mod connecting;
mod fencing;
mod reading;
mod replicating;
mod rotating;
mod semi_sync;
mod small_verbs;
mod standstill;
mod world;
