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

/// A store with a group of two candidates and a site for disasters, and its network.
pub(crate) fn store(folder: &Folder) -> (crate::store::Store, crate::network::Network) {
    let programs = crate::supervisor::Programs {
        bloodraven: PathBuf::new(),
        keeper: PathBuf::new(),
        mysql: crate::supervisor::MysqlPrograms::default(),
    };
    crate::assembly::make(&crate::assembly::Options::new(folder.path(), programs)).unwrap()
}

/// A copy of this test program that runs one test of it, told what to do by a variable.
pub(crate) fn again(test: &str, variable: &str, value: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable, value);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command
}

/// What the copy was told.
#[expect(clippy::disallowed_methods, reason = "this is how a test tells a copy of itself what to do")]
pub(crate) fn told(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// A program that runs this script. It is written by another process: a file that this one has open for writing could not
/// be run while any other test is starting a process.
pub(crate) fn program(folder: &Folder, name: &str, script: &str) -> PathBuf {
    let path = folder.path().join(name);
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", "printf '#!/bin/sh\n%s\n' \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", script]).arg(&path);
    assert!(command.status().unwrap().success());
    path
}
