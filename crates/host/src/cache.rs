//! What is kept in memory, because the next unit most likely needs it too: blobs, and what was made of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use shoal_protocol::{Failure, Hash};

/// What they may take together.
const CACHE_BYTES: u64 = 256 << 20;

/// The least recently used are dropped first. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Cache(Arc<Mutex<Cached>>);

#[derive(Default)]
struct Cached {
    blobs: BTreeMap<Hash, (Bytes, u64)>,
    size: u64,
    uses: u64,
}

impl Cache {
    pub(super) fn take(&self, hash: &Hash) -> Option<Bytes> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let (bytes, used) = kept.blobs.get_mut(hash)?;
        *used = now;
        Some(bytes.clone())
    }

    pub(super) fn put(&self, hash: Hash, bytes: Bytes) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        kept.size += bytes.len() as u64;
        if let Some((old, _)) = kept.blobs.insert(hash, (bytes, now)) {
            kept.size -= old.len() as u64;
        }
        while kept.size > CACHE_BYTES {
            let oldest =
                kept.blobs.iter().min_by_key(|(_, (_, used))| *used).map(|(hash, _)| *hash);
            let Some((bytes, _)) = oldest.and_then(|hash| kept.blobs.remove(&hash)) else { break };
            kept.size -= bytes.len() as u64;
        }
    }
}

type Slot<V> = Arc<Mutex<Option<V>>>;

/// Things that are costly to make and needed by several units at once: made by the first that asks, shared by the
/// others, dropped when newer ones need the room.
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
        self.get_sound(key, |_| true, make)
    }

    /// The same where what was made may have broken since: then it is dropped, and made again.
    pub(super) fn get_sound(
        &self,
        key: Hash,
        is_sound: impl FnOnce(&V) -> bool,
        make: impl FnOnce() -> Result<V, Failure>,
    ) -> Result<V, Failure> {
        let slot = self.slot(key);
        let mut value = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match value.take().filter(is_sound) {
            Some(kept) => kept,
            None => make()?,
        };
        Ok(value.insert(kept).clone())
    }

    pub(super) fn remove(&self, key: &Hash) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|(other, _)| other != key);
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
        assert_eq!(keep.get_sound(key(2), |it| *it == 21, || panic!("kept")), Ok(21));
        assert_eq!(keep.get_sound(key(2), |it| *it != 21, || Ok(22)), Ok(22), "it broke");
        assert_eq!(keep.get(key(2), || panic!("kept")), Ok(22));
    }

    #[test]
    fn the_least_recently_used_blob_goes_first() {
        let cache = Cache::default();
        let blob = |n: u8| (Hash([n; 32]), Bytes::from(vec![n; (CACHE_BYTES / 3) as usize]));
        for n in 1..=3 {
            let (hash, bytes) = blob(n);
            cache.put(hash, bytes);
        }
        assert!(cache.take(&Hash([1; 32])).is_some());
        let (hash, bytes) = blob(4);
        cache.put(hash, bytes);
        assert!(cache.take(&Hash([2; 32])).is_none());
        assert!(cache.take(&Hash([1; 32])).is_some() && cache.take(&Hash([4; 32])).is_some());
    }
}
