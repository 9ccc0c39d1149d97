//! What the sidecar's tests share: a site with a real keeper and a real server, and everyone else played by the test.
//!
//! In: what the operator and the peers shall say. Out: a sidecar in this process beside a real server, and looks at both.
//! Must not: reach into the sidecar; everything goes over its socket, its port and its server.

pub(crate) mod bed;
pub(crate) mod holding;
pub(crate) mod played;

use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long anything may take that is not itself measured: machines are slow, and tests run beside each other.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// Looks every 20 ms until there is something to see; fails the test when `limit` has passed.
pub(crate) async fn until<T>(limit: Duration, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut beat = interval(Duration::from_millis(20));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = Instant::now() + limit;
    loop {
        beat.tick().await;
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
    }
}
