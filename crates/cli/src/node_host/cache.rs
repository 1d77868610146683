//! Blobs kept in memory, because the next unit most likely needs them too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use shoal_protocol::Hash;

/// What they may take together.
const CACHE_BYTES: u64 = 256 << 20;

/// The least recently used are dropped first. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Cache(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
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

#[cfg(test)]
mod tests {
    use super::*;

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
