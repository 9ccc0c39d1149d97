//! Tasks that end with their owner, loops that are started again when they panic, and waiting with a bound.
//!
//! In: futures. Out: the same, owned. Must not: leave a task behind that nobody ends.

use crate::ears::Ears;
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Between a panic and the next start of its loop: a loop that panics at once must not eat the machine.
const AFTER_A_PANIC: Duration = Duration::from_millis(200);

/// A task that is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Owned(JoinHandle<()>);

/// Starts a task that ends with its owner.
pub(crate) fn own(future: impl Future<Output = ()> + Send + 'static) -> Owned {
    Owned(tokio::spawn(future))
}

impl Owned {
    /// Waits for its end.
    pub(crate) async fn ended(&mut self) {
        // A panic or an abort is an end.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a loop; each time it panics that is counted and it is made and started anew. Ends when the loop does.
pub(crate) async fn again_after_panics<F: Future<Output = ()>>(
    name: &str,
    ears: &Arc<dyn Ears>,
    mut make: impl FnMut() -> F,
) {
    while AssertUnwindSafe(make()).catch_unwind().await.is_err() {
        tracing::error!(reason = name, "a loop panicked and is started again");
        ears.panicked(name);
        rest(AFTER_A_PANIC).await;
    }
}

/// What came of it, or none if it panicked.
pub(crate) async fn unless_it_panics<F: Future>(future: F) -> Option<F::Output> {
    AssertUnwindSafe(future).catch_unwind().await.ok()
}

/// A pause between two attempts.
pub(crate) async fn rest(length: Duration) {
    tokio::time::sleep_until(Instant::now() + length).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ears::Deaf;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// K-24: a loop is started again as often as it panics.
    #[tokio::test]
    async fn a_loop_that_panics_is_started_again_until_it_ends_by_itself() {
        let starts = Arc::new(AtomicU32::new(0));
        let ears: Arc<dyn Ears> = Arc::new(Deaf);
        again_after_panics("test", &ears, || {
            let starts = Arc::clone(&starts);
            async move { assert!(starts.fetch_add(1, Ordering::SeqCst) >= 2, "not yet") }
        })
        .await;
        assert_eq!(starts.load(Ordering::SeqCst), 3);
    }
}
