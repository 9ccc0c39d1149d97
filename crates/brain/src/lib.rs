//! Every decision of Bloodraven, pure: state, time and input go in, commands and reasons come out.
//!
//! # The theory on one page
//!
//! **One writer.** At no instant do two sites accept client writes. Authority over a group is a *record* with an *epoch*;
//! it names one *instance* (one life of one site) that may write. The record is persisted before anyone is told.
//!
//! **Revoke, prove, then grant.** To move authority away from X the leader
//! 1. *revokes*: a new epoch in which nobody may write, X remembered as its holder ([`authority::revoke`]);
//! 2. *proves* that X has let go: X's own sidecar acknowledged the revocation with its server fenced, or X's instance has
//!    ended, or so many voters acknowledged that nobody is left to prolong X's lease and the lease has run out
//!    ([`authority::release`]);
//! 3. *grants*: a new epoch and tenure for Y ([`authority::grant`], which cannot be called without such a release).
//!
//! **Only the sidecar opens, and only while the lease runs.** A server is writable only while the highest view its sidecar
//! has heard names this instance, and a grant of the leader or vouches of enough voters are fresh, counted from the moment
//! the question was *sent* ([`fence`]). Its keeper kills mysqld when that permission is over, whatever became of the
//! sidecar. mysqld always boots fenced.
//!
//! So a leader that cannot reach X still knows when X is closed, and a leader that can moves authority in milliseconds.
//!
//! # What is here
//!
//! | module | decides |
//! |---|---|
//! | [`fence`] | the sidecar's rule: when a server is closed, when it may be opened, for whom it vouches |
//! | [`authority`] | the leader's rule: what may follow upon what, when a holder has let go, who is counted, who gets a grant |
//! | [`lease`] | who leads: the election over a Kubernetes Lease |
//! | [`site`] | what one site's polls say |
//! | [`topology`] | what all sites together say, and who writes without authority |
//! | [`candidate`] | who is promoted, and when its relay log is drained |
//! | [`cooldown`] | whether a move may start so soon after the last one |
//! | [`ages`] | how long ago something was that is stored with its date |
//! | [`volume`] | when a data volume is nearly full |
//!
//! The words they share: [`name`], [`record`], [`message`], [`time`].
//!
//! # What is not here
//!
//! No clock, no randomness, no IO, no async, no logging, no hash maps. Time is an argument; whoever wants to know why reads
//! the reason in the value returned.

pub mod ages;
pub mod authority;
pub mod candidate;
pub mod cooldown;
pub mod fence;
pub mod group;
pub mod lease;
pub mod message;
pub mod name;
pub mod record;
pub mod rule;
pub mod site;
pub mod time;
pub mod topology;
pub mod volume;
