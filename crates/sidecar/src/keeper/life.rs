//! Whether the keeper of a session and its mysqld live, as the kernel sees it.
//!
//! In: the lock that the keeper holds and every process that it started. Out: the one fact that they are all gone. Must
//! not: take a lock for one that was never seen held, keep it, or wait for it.
//!
//! Why the fact is safe although a new keeper may start a moment later: it boots its mysqld closed and holds no permit,
//! and only this sidecar asks for one, over a session that it has not made yet. The fact goes through the same queue as
//! the words of sessions, so that whoever hears it has heard nothing of a later keeper. A request, a permit and an opening
//! that were under way died with the session or with the server: the opener's password is another one at every start.
//!
//! The file is opened while a session stands, and seen held then. So it is the very lock of that keeper, whatever becomes
//! of the file's name; and a keeper without one, or a kernel that does not share locks between containers, proves nothing.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use bloodraven_keeper::protocol::lock_of;
use tokio::time::timeout;

/// How long the file may take to be opened: it is in memory.
const OPENED_WITHIN: Duration = Duration::from_millis(500);

/// The lock of a keeper that has been seen to hold it.
pub(super) struct Life(File);

impl Life {
    /// To be asked while a session stands. None: there is no lock, or nobody seems to hold it.
    pub(super) async fn held(socket: &Path) -> Option<Self> {
        let path = lock_of(socket);
        let opening = tokio::task::spawn_blocking(move || File::open(path));
        let life = Self(timeout(OPENED_WITHIN, opening).await.ok()?.ok()?.ok()?);
        (!life.is_over()).then_some(life)
    }

    /// Whether nobody holds it. A keeper that starts meanwhile tries again.
    pub(super) fn is_over(&self) -> bool {
        match self.0.try_lock_shared() {
            Ok(()) => {
                // Also without this nobody is kept out for long: the file is closed when it is over.
                let _ = self.0.unlock();
                true
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        }
    }
}
