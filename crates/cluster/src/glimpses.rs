//! Groups as JSON, made once of each version that a watch shows: with a thousand groups somebody changes all the time, and
//! the others are not made anew for that.

use bloodraven_operator::world::{Glimpse, GroupId};
use kube::api::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// See above.
#[derive(Default)]
pub(crate) struct Glimpses(Mutex<BTreeMap<GroupId, Made>>);

/// An object as a watch showed it, and what was made of it.
type Made = (Arc<DynamicObject>, Arc<Value>);

impl Glimpses {
    /// All of these; what is not among them is forgotten.
    pub(crate) fn of(&self, objects: Vec<Arc<DynamicObject>>) -> Vec<Glimpse> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = BTreeMap::new();
        for object in objects {
            let meta = &object.metadata;
            let Some(name) = meta.name.as_deref() else { continue };
            let id = GroupId::new(meta.namespace.as_deref().unwrap_or_default(), name);
            let same = known.remove(&id).filter(|(was, _)| Arc::ptr_eq(was, &object)).map(|(_, json)| json);
            let Some(json) = same.or_else(|| serde_json::to_value(&*object).ok().map(Arc::new)) else { continue };
            next.insert(id, (object, json));
        }
        let glimpses =
            next.iter().map(|(id, (_, json))| Glimpse { id: id.clone(), object: Arc::clone(json) }).collect();
        *known = next;
        glimpses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::ObjectMeta;

    fn object(name: &str) -> Arc<DynamicObject> {
        let metadata =
            ObjectMeta { name: Some(name.to_owned()), namespace: Some("shop".to_owned()), ..ObjectMeta::default() };
        Arc::new(DynamicObject { types: None, metadata, data: Value::Null })
    }

    #[test]
    fn only_what_changed_is_made_anew() {
        let glimpses = Glimpses::default();
        let (orders, stock) = (object("orders"), object("stock"));
        let first = glimpses.of(vec![Arc::clone(&stock), Arc::clone(&orders)]);
        let names: Vec<String> = first.iter().map(|glimpse| glimpse.id.to_string()).collect();
        assert_eq!(names, ["shop/orders", "shop/stock"]);
        let second = glimpses.of(vec![orders, object("stock")]);
        assert!(Arc::ptr_eq(&first[0].object, &second[0].object));
        assert!(!Arc::ptr_eq(&first[1].object, &second[1].object));
        assert_eq!(glimpses.of(Vec::new()), []);
        assert!(glimpses.0.lock().unwrap().is_empty(), "what is gone is forgotten");
    }
}
