//! Parts of worlds, each kept once and named by a number: a world is then a handful of numbers, and what one part does
//! on one stimulus is computed once, however many worlds it occurs in.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash};
use std::rc::Rc;

/// A fixed seed: the same bounds give the same search, run after run.
pub(super) type Hasher = foldhash::fast::FixedState;

/// All different values of one kind.
pub(super) struct Table<T> {
    items: Vec<Rc<T>>,
    ids: HashMap<Rc<T>, u32, Hasher>,
}

impl<T: Eq + Hash> Table<T> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), ids: HashMap::with_hasher(Hasher::with_seed(1)) }
    }

    /// The number of that value.
    pub(super) fn put(&mut self, value: T) -> u32 {
        if let Some(id) = self.ids.get(&value) {
            return *id;
        }
        // Memory is full long before the numbers are.
        let id = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        let value = Rc::new(value);
        self.items.push(Rc::clone(&value));
        self.ids.insert(value, id);
        id
    }

    /// The value of that number.
    pub(super) fn get(&self, id: u32) -> Rc<T> {
        Rc::clone(&self.items[id as usize])
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

/// One number for a value, the same in every run.
pub(super) fn fingerprint(value: &impl Hash) -> u64 {
    foldhash::quality::FixedState::with_seed(1).hash_one(value)
}
