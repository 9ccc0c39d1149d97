//! The theatre: the brain's own functions, put through every schedule that a bound allows.
//!
//! In: bounds. Out: how many states were seen, and the shortest trace to the first one in which a promise was broken.
//! Must not: touch a clock, a network or a real server. Ground truth judges, never what the actors believe.

pub mod model;
pub mod simulate;
