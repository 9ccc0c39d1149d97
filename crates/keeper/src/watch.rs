//! Sees mysqld read its init file, without speaking to it.
//!
//! In: the init file and the data folder of a start. Out: the moment the file was read, and whether to its end. Must
//! not: take somebody else's look at the file for mysqld's.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::accounts::BOOT;

/// How many notices are taken in one turn: a start makes a few dozen files.
const NOTICES: usize = 256;

/// What is watched, and how far mysqld is.
#[derive(Debug)]
pub(crate) struct Watch {
    fd: OwnedFd,
    file: i32,
    /// The schema of the beginning was made.
    begun: bool,
    /// It was dropped: every statement succeeded.
    done: bool,
}

impl Watch {
    pub(crate) fn new(init_file: &Path, datadir: &Path) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let file = inotify::add_watch(&fd, init_file, WatchFlags::CLOSE_NOWRITE)?;
        inotify::add_watch(&fd, datadir, WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ONLYDIR)?;
        Ok(Self { fd, file, begun: false, done: false })
    }

    /// Whether mysqld has closed its init file: whether it ran to its end. Nothing while it has not.
    pub(crate) fn closed(&mut self) -> Option<bool> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        for _ in 0..NOTICES {
            let Ok(notice) = reader.next() else { return None };
            let (what, boot) =
                (notice.events(), notice.file_name().is_some_and(|name| name.to_bytes() == BOOT.as_bytes()));
            if boot && what.contains(ReadFlags::CREATE) {
                self.begun = true;
            } else if boot && self.begun && what.contains(ReadFlags::DELETE) {
                self.done = true;
            } else if notice.wd() == self.file && what.contains(ReadFlags::CLOSE_NOWRITE) && self.begun {
                return Some(self.done);
            }
        }
        None
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
