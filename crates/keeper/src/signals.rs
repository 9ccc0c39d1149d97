//! Signals, turned into something that can be polled.
//!
//! In: SIGTERM, SIGINT, SIGCHLD. Out: a file descriptor that becomes readable, and whether the keeper shall end. Must
//! not: do anything in a handler but set a flag and write eight bytes.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::Signal;

/// Wakes the loop.
static WAKE: OnceLock<OwnedFd> = OnceLock::new();

/// SIGTERM or SIGINT came.
static END: AtomicBool = AtomicBool::new(false);

#[expect(
    unsafe_code,
    reason = "neither std nor rustix can set a signal handler; `signal` of the C library that std \
                                links anyway is the smallest way: one foreign function, and a handler in safe code"
)]
mod handler {
    use std::ffi::c_int;

    // SAFETY: this is its declaration in C, with the handler as a pointer to a function; it has no requirements but
    // that the handler does only what a handler may.
    unsafe extern "C" {
        pub(super) safe fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    }
}

/// An atomic store and one system call: both may happen anywhere.
extern "C" fn note(number: c_int) {
    if number != Signal::CHILD.as_raw() {
        END.store(true, Ordering::Release);
    }
    wake();
}

/// Makes the loop turn once more.
pub(crate) fn wake() {
    if let Some(fd) = WAKE.get() {
        // Full means that the loop is about to be woken anyway.
        let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
    }
}

/// Sets the handlers.
pub(crate) fn listen() -> io::Result<()> {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let _ = WAKE.set(fd);
    for signal in [Signal::TERM, Signal::INT, Signal::CHILD] {
        if handler::signal(signal.as_raw(), note) == usize::MAX {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// What becomes readable when a signal came.
pub(crate) fn readable() -> Option<BorrowedFd<'static>> {
    WAKE.get().map(OwnedFd::as_fd)
}

/// Takes back what made it readable.
pub(crate) fn clear() {
    if let Some(fd) = WAKE.get() {
        let _ = rustix::io::read(fd, &mut [0; 8]);
    }
}

/// Whether the keeper was told to end.
pub(crate) fn told_to_end() -> bool {
    END.load(Ordering::Acquire)
}
