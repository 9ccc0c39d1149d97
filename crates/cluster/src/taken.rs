//! The last spec that was taken: a `ConfigMap` that goes with its group.
//!
//! In: the spec, who the group is. Out: the object, written when it is not so, and what it says. Must not: touch an object
//! that is another's, or read one that is not this group's.

use crate::keep::{self, Drawing, Made, Unkept};
use crate::rest::{Fault, Rest};
use crate::watches::Watches;
use bloodraven_api::names;
use bloodraven_blueprint::objects::metadata::Identity;
use bloodraven_blueprint::objects::{self, Taken};
use bloodraven_operator::world::{GroupId, Refused, Unavailable};
use k8s_openapi::api::core::v1::ConfigMap;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was kept last, so that what is so already costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Specs(Mutex<BTreeMap<GroupId, Made>>);

/// One that somebody took away or changed is seen by its watch, and comes back.
pub(crate) async fn keep(
    rest: &Rest,
    watches: &Watches,
    specs: &Specs,
    group: &GroupId,
    uid: &str,
    taken: &Taken,
) -> Result<(), Refused> {
    let identity = identity(group, uid);
    let object = serde_json::to_value(objects::taken_spec(identity, taken))
        .map_err(|error| Refused::Denied { because: error.to_string() })?;
    let drawing = Drawing::new(path(group), object);
    let last = specs.lock().get(group).cloned();
    let name = names::taken_spec(&group.name);
    let seen = watches.config_maps.one(group, &name);
    if seen.is_some_and(|seen| drawing.made(last.as_ref()).is_some_and(|made| made.version() == &**seen)) {
        return Ok(());
    }
    let made = keep::keep(rest, identity, &drawing, last.as_ref()).await.map_err(|unkept| match unkept {
        Unkept::Taken { owner } => {
            Refused::Denied { because: format!("ConfigMap {name} belongs to {owner}; remove that object") }
        }
        Unkept::Fault(fault) => fault.refused(),
    })?;
    specs.lock().insert(group.clone(), made);
    Ok(())
}

/// None: there is none of this group, or none that can be read.
pub(crate) async fn read(rest: &Rest, group: &GroupId, uid: &str) -> Result<Option<Taken>, Unavailable> {
    let found = get(rest, group).await.map_err(|fault| fault.unavailable("the spec that was taken last"))?;
    Ok(found.and_then(|found| objects::taken(identity(group, uid), &found)))
}

async fn get(rest: &Rest, group: &GroupId) -> Result<Option<ConfigMap>, Fault> {
    let found = rest.get(&path(group)).await?;
    Ok(found.map(|found| serde_json::from_value(found).unwrap_or_default()))
}

fn path(group: &GroupId) -> String {
    format!("/api/v1/namespaces/{}/configmaps/{}", group.namespace, names::taken_spec(&group.name))
}

fn identity<'a>(group: &'a GroupId, uid: &'a str) -> Identity<'a> {
    Identity { name: &group.name, namespace: &group.namespace, uid }
}

impl Specs {
    pub(crate) fn forget(&self, group: &GroupId) {
        self.lock().remove(group);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, Made>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
