//! What measuring programs share: what the kernel tells of processes and of the machine.
//!
//! In: numbers of processes. Out: what they use. Must not: measure a group itself; that is the binary of this package.

#![forbid(unsafe_code)]

pub mod process;
