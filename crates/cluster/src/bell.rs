//! Bells: they ring when something may have changed.
//!
//! In: whom news concern. Out: a bell for all groups, and two for each: whatever is of it, and its objects alone. Must not:
//! keep bells that nobody listens to.

use crate::shelf::{Key, Touched};
use bloodraven_operator::world::GroupId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What news are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// Groups themselves.
    Groups,
    /// What an operator made for them, and keeps as it is wanted.
    Objects,
    /// What only tells how they are: pods, nodes.
    Facts,
}

/// See above.
#[derive(Debug)]
pub(crate) struct Bell {
    groups: watch::Sender<u64>,
    each: Mutex<BTreeMap<GroupId, OfGroup>>,
}

#[derive(Debug)]
struct OfGroup {
    all: watch::Sender<u64>,
    objects: watch::Sender<u64>,
}

impl OfGroup {
    fn ring(&self, about: About) {
        self.all.send_modify(|count| *count += 1);
        if about == About::Objects {
            self.objects.send_modify(|count| *count += 1);
        }
    }

    fn is_heard(&self) -> bool {
        self.all.receiver_count() + self.objects.receiver_count() > 0
    }
}

impl Bell {
    pub(crate) fn new() -> Self {
        Self { groups: watch::Sender::new(0), each: Mutex::default() }
    }

    pub(crate) fn ring(&self, touched: &Touched, about: About) {
        // A list that is whole is news to everyone, also one that is empty.
        if about == About::Groups || *touched == Touched::All {
            self.groups.send_modify(|count| *count += 1);
        }
        let each = self.lock();
        match touched {
            Touched::All => each.values().for_each(|bells| bells.ring(about)),
            Touched::One(Key { namespace, group, .. }) => {
                if let Some(bells) = each.get(&GroupId::new(namespace, group)) {
                    bells.ring(about);
                }
            }
            Touched::Nobody => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, OfGroup>> {
        self.each.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rings when a group comes, goes or changes.
    pub(crate) fn of_groups(&self) -> watch::Receiver<u64> {
        self.groups.subscribe()
    }

    /// Rings when something of that group changes.
    pub(crate) fn of(&self, group: &GroupId) -> watch::Receiver<u64> {
        self.hang(group, |bells| bells.all.subscribe())
    }

    /// Rings when one of that group's objects changes.
    pub(crate) fn of_objects(&self, group: &GroupId) -> watch::Receiver<u64> {
        self.hang(group, |bells| bells.objects.subscribe())
    }

    /// Bells that nobody listens to any more are taken down.
    fn hang(&self, group: &GroupId, which: fn(&OfGroup) -> watch::Receiver<u64>) -> watch::Receiver<u64> {
        let mut each = self.lock();
        each.retain(|id, bells| bells.is_heard() || id == group);
        let new = || OfGroup { all: watch::Sender::new(0), objects: watch::Sender::new(0) };
        which(each.entry(group.clone()).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bells_of_that_group_ring() {
        let bell = Bell::new();
        let heard = |bell: &mut watch::Receiver<u64>| {
            let changed = bell.has_changed().expect("open");
            bell.mark_unchanged();
            changed
        };
        let orders = GroupId::new("shop", "orders");
        let (mut all, mut objects, mut groups) = (bell.of(&orders), bell.of_objects(&orders), bell.of_groups());
        let mut other = bell.of(&GroupId::new("shop", "other"));
        let of_orders = Touched::One(Key { namespace: "shop".into(), group: "orders".into(), name: "a".into() });
        let mut ring = |touched: &Touched, about| {
            bell.ring(touched, about);
            [heard(&mut all), heard(&mut objects), heard(&mut groups), heard(&mut other)]
        };
        assert_eq!(ring(&of_orders, About::Facts), [true, false, false, false]);
        assert_eq!(ring(&of_orders, About::Objects), [true, true, false, false]);
        assert_eq!(ring(&of_orders, About::Groups), [true, false, true, false]);
        assert_eq!(ring(&Touched::Nobody, About::Facts), [false; 4]);
        assert_eq!(ring(&Touched::All, About::Facts), [true, false, true, true]);
        drop(other);
        let _again = bell.of(&orders);
        assert_eq!(bell.lock().len(), 1, "nobody listens to the other");
    }
}
