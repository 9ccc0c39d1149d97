//! The last spec that was taken, kept in the world: it stays in force for an operator that comes later, too, and cannot take
//! the one that it finds.
//!
//! In: the spec in force; what the world kept. Out: the same the other way round. Must not: keep anything up; a spec that is
//! not kept is kept later, and until then the group is led all the same.

use super::spec::{self, Valid};
use super::{Common, PATIENT_BOUND, STORE_BOUND, Shared};
use crate::object::Object;
use crate::servers::Servers;
use crate::tasks::rest;
use crate::world::{Refused, World};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Without a word of a change it is kept again after so long.
const AGAIN: Duration = Duration::from_secs(30);

/// Changes come in swarms.
const SWARM: Duration = Duration::from_secs(1);

/// After a reading that failed, while nobody leads.
const UNREAD: Duration = Duration::from_secs(2);

/// Runs for one reign.
pub(super) async fn keep<W: World, S: Servers>(common: Arc<Common<W, S>>, shared: Arc<Shared>) {
    let (mut specs, mut objects) = (shared.valid.subscribe(), common.world.changes_of_objects(&shared.id));
    let mut trouble: Option<Refused> = None;
    loop {
        objects.borrow_and_update();
        let deleting = shared.told.borrow().deleting;
        let valid = specs.borrow_and_update().clone().filter(|_| !deleting);
        if let Some(valid) = valid {
            let taken = valid.taken();
            let call = common.leadership.guard(common.world.keep_spec(&shared.id, &taken));
            let unknown = || Refused::Unknown { because: format!("no answer within {PATIENT_BOUND:?}") };
            let found = match timeout(PATIENT_BOUND, call).await {
                Ok(Ok(done)) => done.err(),
                Ok(Err(_)) => None,
                Err(_) => Some(unknown()),
            };
            if let Some(refused) = &found {
                common.ears.write_failed("spec");
                if found != trouble {
                    tracing::warn!(fg = %shared.id, error = %refused, "the spec in force cannot be kept for operators to come");
                }
            }
            trouble = found;
        }
        tokio::select! {
            Ok(()) = specs.changed() => {}
            Ok(()) = objects.changed() => rest(SWARM).await,
            () = rest(AGAIN) => {}
        }
    }
}

/// The spec that an operator before has taken, in force from now on. Beside none: whether it may be there and was not read.
pub(super) async fn recover<W: World, S: Servers>(
    common: &Common<W, S>,
    shared: &Shared,
    object: &Object,
) -> (Option<Arc<Valid>>, bool) {
    let Ok(Ok(kept)) = timeout(STORE_BOUND, common.world.kept_spec(&shared.id)).await else { return (None, true) };
    let Some(kept) = kept else { return (None, false) };
    match spec::again(object, kept, common.world.now().wall, shared.has_replication()) {
        Ok(valid) => {
            tracing::warn!(fg = %shared.id, "the spec is refused; the last one that was taken stays in force");
            let valid = Arc::new(valid);
            shared.valid.send_replace(Some(Arc::clone(&valid)));
            (Some(valid), false)
        }
        Err(because) => {
            tracing::warn!(fg = %shared.id, error = because, "the spec is refused, and so is the last one that was taken");
            (None, false)
        }
    }
}

/// Until what was not read is worth another try.
pub(super) async fn again() {
    rest(UNREAD).await;
}
