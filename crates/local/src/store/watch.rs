//! News of the store: that something of it may have changed.
//!
//! In: a directory. Out: a count that goes up when a file of interest is replaced or removed, by whichever process. Must
//! not: say what changed, or wake anyone for what nobody decides by.
//!
//! The kernel tells (inotify), so that a request of an admin is seen in the moment it is written. Everything in a store is
//! replaced by a rename, which is one event with the file's name.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use snafu::ResultExt as _;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{DirectorySnafu, Error, Store};
use crate::descriptor::watched;

/// How much news is read at once: some fifty names.
const NEWS: usize = 4096;

/// News of a store, as long as it is held.
#[derive(Debug)]
pub struct Watch {
    count: watch::Receiver<u64>,
    listener: AbortHandle,
}

impl Store {
    /// News of the group's object, pods and secrets: of what operators look at. Needs a running tokio.
    pub fn watch(&self) -> Result<Watch, Error> {
        self.watch_for(&["", "pods", "secrets"], |name| {
            name == super::object::FILE || name.starts_with("hmac.") || pod(name)
        })
    }

    /// News of what front doors follow.
    pub fn watch_outward(&self) -> Result<Watch, Error> {
        self.watch_for(&[""], |name| name == super::outward::FILE)
    }

    /// News of files of these names in these folders.
    pub fn watch_for(&self, folders: &[&str], wanted: impl Fn(&str) -> bool + Send + 'static) -> Result<Watch, Error> {
        let open = || -> std::io::Result<AsyncFd<OwnedFd>> {
            let news = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            for folder in folders {
                inotify::add_watch(&news, self.path(folder), WatchFlags::MOVED_TO | WatchFlags::DELETE)?;
            }
            watched(news)
        };
        let news = open().context(DirectorySnafu { path: self.dir() })?;
        let (sender, count) = watch::channel(0);
        let listener = tokio::spawn(listen(news, wanted, sender)).abort_handle();
        Ok(Watch { count, listener })
    }
}

impl Watch {
    /// The count.
    pub fn count(&self) -> watch::Receiver<u64> {
        self.count.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// A pod's file, or the word that its end is written down.
fn pod(name: &str) -> bool {
    !name.starts_with('.') && [".json", ".released"].iter().any(|end| name.ends_with(end)) && name.len() > 36
}

async fn listen(news: AsyncFd<OwnedFd>, wanted: impl Fn(&str) -> bool, count: watch::Sender<u64>) {
    while let Ok(mut ready) = news.readable().await {
        let mut buffer = [MaybeUninit::uninit(); NEWS];
        let mut reader = inotify::Reader::new(news.get_ref(), &mut buffer);
        let mut told = false;
        loop {
            match reader.next() {
                // More happened than the kernel kept: anything may have.
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => told = true,
                Ok(event) => {
                    told |= event.file_name().is_some_and(|name| name.to_str().is_ok_and(&wanted));
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => return,
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        if told {
            count.send_modify(|count| *count = count.wrapping_add(1));
        }
        ready.clear_ready();
    }
}
