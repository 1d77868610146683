//! Things that are costly to make and needed by several units at once: made by the first that asks,
//! shared by the others, dropped when newer ones need the room.

use std::sync::{Arc, Mutex, PoisonError};

use shoal_protocol::{Failure, Hash};

type Slot<V> = Arc<Mutex<Option<V>>>;

pub(super) struct Keep<V> {
    most: usize,
    /// The most recently used last.
    slots: Mutex<Vec<(Hash, Slot<V>)>>,
}

impl<V: Clone> Keep<V> {
    pub(super) fn new(most: usize) -> Keep<V> {
        Keep { most, slots: Mutex::new(Vec::new()) }
    }

    /// What belongs to `key`. Threads that ask for the same at once wait for one to make it; a
    /// failure is not kept.
    pub(super) fn get(
        &self,
        key: Hash,
        make: impl FnOnce() -> Result<V, Failure>,
    ) -> Result<V, Failure> {
        let slot = self.slot(key);
        let mut value = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*value {
            return Ok(value.clone());
        }
        Ok(value.insert(make()?).clone())
    }

    fn slot(&self, key: Hash) -> Slot<V> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match slots.iter().position(|(other, _)| *other == key) {
            Some(at) => slots.remove(at).1,
            None => Slot::default(),
        };
        slots.push((key, slot.clone()));
        if slots.len() > self.most {
            slots.remove(0);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_once_kept_while_used_and_made_again_after_a_failure() {
        let keep = Keep::new(2);
        let key = |n| Hash([n; 32]);
        let failed = keep.get(key(1), || Err(Failure::Internal { message: "no".into() }));
        assert!(failed.is_err());
        assert_eq!(keep.get(key(1), || Ok(10)), Ok(10));
        assert_eq!(keep.get(key(1), || panic!("kept")), Ok(10));
        assert_eq!(keep.get(key(2), || Ok(20)), Ok(20));
        assert_eq!(keep.get(key(1), || panic!("kept")), Ok(10));
        assert_eq!(keep.get(key(3), || Ok(30)), Ok(30));
        assert_eq!(keep.get(key(2), || Ok(21)), Ok(21), "the least recently used was dropped");
    }
}
