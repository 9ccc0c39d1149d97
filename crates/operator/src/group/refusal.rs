//! A group of which no spec could be taken yet: nobody leads it, and people are told why.
//!
//! In: why. Out: its condition and its Event. Must not: touch what is kept in the object, or anything else of the group.

use super::report::Status;
use super::{Common, STORE_BOUND, Shared};
use crate::object::Object;
use crate::servers::Servers;
use crate::tasks::rest;
use crate::world::{Refused, World};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// After a write that failed, and between two looks.
const AGAIN: Duration = Duration::from_secs(5);

/// As long as nobody leads; what was told goes with it.
pub(super) struct Unled<W, S> {
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    /// What people were told already.
    told: Option<String>,
    /// What is shown in the status already.
    shown: Option<String>,
}

impl<W: World, S: Servers> Unled<W, S> {
    pub(super) fn new(common: &Arc<Common<W, S>>, shared: &Arc<Shared>) -> Self {
        Self { common: Arc::clone(common), shared: Arc::clone(shared), told: None, shown: None }
    }

    /// Never ends by itself: the caller waits for something better. What is shown already is looked at again after a
    /// while only: each write is a change of the object, too.
    pub(super) async fn tell(&mut self, because: &str) {
        if self.told.as_deref() != Some(because) {
            let now = self.common.world.now();
            self.shared.write(self.common.ears.unled(&self.shared.id, now, because));
            self.told = Some(because.to_owned());
        }
        if self.shown.as_deref() == Some(because) {
            rest(AGAIN).await;
        }
        loop {
            if self.show(because).await.is_some() {
                self.shown = Some(because.to_owned());
            }
            rest(AGAIN).await;
        }
    }

    /// None: it is not known to be shown.
    async fn show(&self, because: &str) -> Option<()> {
        let read = timeout(STORE_BOUND, self.common.world.read(&self.shared.id)).await.ok()?.ok()??;
        let object = Object::read(Arc::new(read)).ok().filter(|object| object.uid == self.shared.uid)?;
        let before = Status::read(object.status());
        let status = before.refusing(self.common.world.now(), object.generation, because).to_json();
        if object.status() == Some(&status) {
            return Some(());
        }
        let call = self.common.world.save_status(&self.shared.id, &object.version, &status);
        let wrote = timeout(STORE_BOUND, self.common.leadership.guard(call)).await.ok()?.ok()?;
        if let Err(refused @ (Refused::Denied { .. } | Refused::Unknown { .. })) = &wrote {
            tracing::warn!(fg = %self.shared.id, error = %refused, "a refused spec cannot be shown in the status");
            self.common.ears.write_failed("status");
        }
        wrote.ok().map(drop)
    }
}

impl<W, S> Drop for Unled<W, S> {
    fn drop(&mut self) {
        self.common.ears.forget(&self.shared.id);
    }
}
