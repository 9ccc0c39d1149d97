//! What the tests of this crate share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a test waits for anything: a thousand times what it takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A folder of a test, removed with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("brv-local-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Looks every few milliseconds until the condition gives a value.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut every = tokio::time::interval(Duration::from_millis(2));
    let found = tokio::time::timeout(LIMIT, async {
        loop {
            every.tick().await;
            if let Some(value) = look() {
                return value;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("{what}: not within {LIMIT:?}"))
}

/// A call that has to end.
pub(crate) async fn within<T>(what: &str, call: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, call).await.unwrap_or_else(|_| panic!("{what}: no end within {LIMIT:?}"))
}
