//! A place for tests that need folders.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed in the end.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("keeper-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
