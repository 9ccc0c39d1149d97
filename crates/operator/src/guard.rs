//! Leadership, checked at the last moment: right before every call that changes anything, and again whenever such a call
//! goes on.
//!
//! In: until when this process leads, from the election; a clock. Out: futures that stop when leadership is over. Must not:
//! prolong anything.

use bloodraven_brain::time::{Boot, Now};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// A clock that is handed in.
pub(crate) type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Until when this process leads. Copies are the same leadership.
#[derive(Clone)]
pub(crate) struct Leadership {
    /// On `CLOCK_BOOTTIME`; 0: it does not.
    until: Arc<AtomicU64>,
    clock: Clock,
}

/// Leadership was over before the call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotLeading;

impl Leadership {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { until: Arc::new(AtomicU64::new(0)), clock }
    }

    /// Only the election says so.
    pub(crate) fn set(&self, until: Option<Boot>) {
        self.until.store(until.map_or(0, |until| until.0), Ordering::SeqCst);
    }

    /// Whether this process leads at this very moment.
    pub(crate) fn holds(&self) -> bool {
        (self.clock)().boot.0 < self.until.load(Ordering::SeqCst)
    }

    pub(crate) fn now(&self) -> Now {
        (self.clock)()
    }

    /// Goes on only while this process leads: leadership is looked at before each time the future does anything, so before
    /// each thing that it sends. A process that stood still and lost it meanwhile sends nothing more.
    pub(crate) fn guard<F: Future>(&self, future: F) -> WhileLeading<F> {
        WhileLeading { leadership: self.clone(), future: Box::pin(future) }
    }
}

/// See [`Leadership::guard`].
pub(crate) struct WhileLeading<F> {
    leadership: Leadership,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for WhileLeading<F> {
    type Output = Result<F::Output, NotLeading>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.leadership.holds() { self.future.as_mut().poll(context).map(Ok) } else { Poll::Ready(Err(NotLeading)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_brain::time::Wall;

    #[tokio::test]
    async fn a_guarded_call_does_nothing_more_once_leadership_is_over() {
        let at = Arc::new(AtomicU64::new(100));
        let clock = Arc::clone(&at);
        let leadership =
            Leadership::new(Arc::new(move || Now { boot: Boot(clock.load(Ordering::SeqCst)), wall: Wall(0) }));
        assert_eq!(leadership.guard(async { 1 }).await, Err(NotLeading));
        leadership.set(Some(Boot(200)));
        assert_eq!(leadership.guard(async { 1 }).await, Ok(1));
        let sent = AtomicU64::new(0);
        let two_statements = leadership.guard(async {
            sent.fetch_add(1, Ordering::SeqCst);
            // The process stands still here, and its leadership runs out.
            at.store(200, Ordering::SeqCst);
            tokio::task::yield_now().await;
            sent.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(two_statements.await, Err(NotLeading));
        assert_eq!(sent.load(Ordering::SeqCst), 1);
    }
}
