//! A group's spec, read when it changed; one that is refused leaves the last valid one in force.
//!
//! In: the object, the last spec that was taken, here or by an operator before. Out: the brain's spec, or every field that is wrong. Must not: read the
//! same text twice, or take half of it.

use crate::object::Object;
use crate::told::Text;
use bloodraven_api::MysqlFailoverGroup;
use bloodraven_api::admission::Violation;
use bloodraven_blueprint::objects::Taken;
use bloodraven_blueprint::spec;
use bloodraven_brain::group::Spec;
use bloodraven_brain::time::Wall;
use serde_json::Value;
use std::sync::Arc;

/// A spec that was taken.
#[derive(Clone, Debug)]
pub(crate) struct Valid {
    pub(crate) spec: Spec,
    /// The generation that it is of.
    pub(crate) generation: i64,
    /// Of its metadata only who it is.
    object: MysqlFailoverGroup,
    /// The spec, word for word.
    text: Text,
}

impl Valid {
    /// The object that it was read of, typed.
    pub(super) fn object(&self) -> &MysqlFailoverGroup {
        &self.object
    }

    /// As it is kept for operators to come.
    pub(super) fn taken(&self) -> Taken {
        Taken { generation: self.generation, spec: self.text.read() }
    }

    /// The same under other Secrets; none: those make no difference.
    pub(super) fn under(&self, replication: bool) -> Option<Self> {
        let differs = self.spec.replication_account != replication;
        differs.then(|| {
            let mut other = self.clone();
            other.spec.replication_account = replication;
            other
        })
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
    let text = Text::of(&object.spec());
    let same = |valid: &Valid| {
        valid.text == text && valid.generation == object.generation && valid.spec.replication_account == replication
    };
    if before.is_some_and(same) {
        return Ok(None);
    }
    let before = before.map(|valid| &valid.object);
    take(Value::clone(&object.raw), before, now, replication).map(Some)
}

/// A spec that was taken before, checked as if it were new: this release may know rules that the one before did not.
pub(super) fn again(object: &Object, taken: Taken, now: Wall, replication: bool) -> Result<Valid, String> {
    let mut raw = Value::clone(&object.raw);
    raw["spec"] = taken.spec;
    raw["metadata"]["generation"] = taken.generation.into();
    take(raw, None, now, replication)
}

/// The object, typed, as far as its spec goes.
pub(super) fn typed(object: Object) -> Result<MysqlFailoverGroup, String> {
    spec::object(Arc::unwrap_or_clone(object.raw)).map_err(in_words)
}

fn take(raw: Value, before: Option<&MysqlFailoverGroup>, now: Wall, replication: bool) -> Result<Valid, String> {
    let text = Text::of(&raw.get("spec"));
    let generation = raw["metadata"]["generation"].as_i64().unwrap_or(0);
    let mut typed = spec::object(raw).map_err(in_words)?;
    let mut taken = spec::group(&typed, before, now, replication).map_err(in_words)?;
    // Nobody looks after caches yet. The world says so when it is asked for one; a leader that waited for it would hold a
    // planned failover up.
    taken.cache = None;
    // The record is in there, and perhaps all that somebody applied: nobody looks for it here.
    (typed.metadata.annotations, typed.metadata.managed_fields) = (None, None);
    Ok(Valid { spec: taken, generation, object: typed, text })
}

fn in_words(violations: Vec<Violation>) -> String {
    let each: Vec<String> = violations.into_iter().map(|one| format!("{}: {}", one.path, one.message)).collect();
    each.join("; ")
}
