//! A group's secrets, read again every 30 s and after a refused login; at first, whenever something changed.
//!
//! In: the world's secrets. Out: the last ones that were complete, and word of a change. Must not: forget what it knew
//! because a reading failed, or the key that was in force before the present one.

use super::{Common, STORE_BOUND, Shared};
use crate::servers::Servers;
use crate::tasks::rest;
use crate::world::{MissingSecret, Secrets, World};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Without a reason.
const AGAIN: Duration = Duration::from_secs(30);

/// With a reason: many logins may be refused at once.
const SOON: Duration = Duration::from_secs(1);

/// Runs as long as the group is attended to.
pub(super) async fn keep<W: World, S: Servers>(common: Arc<Common<W, S>>, shared: Arc<Shared>) {
    let mut changes = common.world.changes_of(&shared.id);
    let mut missing: Option<MissingSecret> = None;
    loop {
        let read = match timeout(STORE_BOUND, common.world.secrets(&shared.id)).await {
            Ok(read) => read,
            Err(_) => Err(MissingSecret::Unread { because: "no answer within 5 s".to_owned() }),
        };
        let now_missing = match read {
            Ok(secrets) => {
                take(&shared, secrets);
                None
            }
            Err(because) => Some(because),
        };
        if now_missing != missing && common.leadership.holds() {
            let events = common.ears.secrets_missing(&shared.id, common.world.now(), now_missing.as_ref());
            shared.write(events);
            missing = now_missing;
        }
        let known = shared.secrets.borrow().is_some();
        tokio::select! {
            // A closed channel never wakes: the timer does.
            Ok(()) = changes.changed(), if !known => {}
            () = shared.reread.notified() => {}
            () = rest(if known { AGAIN } else { SOON }) => continue,
        }
        rest(if known { SOON } else { Duration::from_millis(50) }).await;
    }
}

fn take(shared: &Shared, mut read: Secrets) {
    shared.secrets.send_if_modified(|known| {
        if let Some(known) = known {
            // Others may still sign with the key that was in force until now.
            if read.keys.previous.is_none() && known.keys.current != read.keys.current {
                read.keys.previous = Some(known.keys.current.clone());
            } else if read.keys.previous.is_none() {
                read.keys.previous.clone_from(&known.keys.previous);
            }
        }
        if known.as_deref() == Some(&read) {
            return false;
        }
        *known = Some(Arc::new(read));
        true
    });
}
