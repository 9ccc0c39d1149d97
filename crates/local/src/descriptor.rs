//! Descriptors that the runtime tells about.
//!
//! In: a descriptor of the kernel's (news of files, the end of a process). Out: the same, awaited. Must not: take anything
//! but an owned one: its number stays its own for as long as the runtime knows it.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Has the runtime tell when the descriptor can be read.
#[expect(
    deprecated,
    reason = "the newer way is unsafe for types that may change their descriptor; an owned one cannot, so this is sound"
)]
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(descriptor)
}
