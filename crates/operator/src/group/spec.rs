//! A group's spec, read when it changed; one that is refused leaves the last valid one in force.
//!
//! In: the object, the last spec that was taken. Out: the brain's spec, or every field that is wrong. Must not: read the
//! same text twice, or take half of it.

use crate::object::Object;
use bloodraven_api::MysqlFailoverGroup;
use bloodraven_api::admission::Violation;
use bloodraven_blueprint::spec;
use bloodraven_brain::group::Spec;
use bloodraven_brain::time::Wall;
use serde_json::Value;

/// A spec that was taken.
#[derive(Debug)]
pub(crate) struct Valid {
    pub(crate) spec: Spec,
    /// The generation that it is of.
    pub(crate) generation: i64,
    object: MysqlFailoverGroup,
    text: Value,
}

impl Valid {
    /// The object that it was read of, typed.
    pub(super) fn object(&self) -> &MysqlFailoverGroup {
        &self.object
    }

    /// An admin wants nothing to change for now.
    pub(super) fn is_paused(&self, now: Wall) -> bool {
        self.spec.pause(now).is_some()
    }
}

/// None: it is what was taken already.
pub(super) fn read(
    object: &Object,
    before: Option<&Valid>,
    now: Wall,
    replication: bool,
) -> Result<Option<Valid>, String> {
    let text = object.spec().cloned().unwrap_or_default();
    let same = |valid: &Valid| {
        valid.text == text && valid.generation == object.generation && valid.spec.replication_account == replication
    };
    if before.is_some_and(same) {
        return Ok(None);
    }
    let typed = spec::object(Value::clone(&object.raw)).map_err(in_words)?;
    let before = before.map(|valid| &valid.object);
    let mut taken = spec::group(&typed, before, now, replication).map_err(in_words)?;
    // Nobody looks after caches yet. The world says so when it is asked for one; a leader that waited for it would hold a
    // planned failover up.
    taken.cache = None;
    Ok(Some(Valid { spec: taken, generation: object.generation, object: typed, text }))
}

fn in_words(violations: Vec<Violation>) -> String {
    let each: Vec<String> = violations.into_iter().map(|one| format!("{}: {}", one.path, one.message)).collect();
    each.join("; ")
}
