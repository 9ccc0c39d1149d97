//! The keeper's protocol: what it and its clients say to each other over its socket.
//!
//! In: lines of text. Out: typed requests, replies and unasked words, and back. Must not: do IO; the program itself is
//! the binary `keeper` of this package.

pub mod protocol;
