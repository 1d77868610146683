//! Hashes of blobs' pieces, by which nodes check what they get from each other. Made once for each blob, when it is
//! first asked for, and kept in memory: a thirty-thousandth of the blob.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use shoal_protocol::Hash;
use shoal_protocol::limit::PIECE_BYTES;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// Blobs whose hashes are kept: as many as a pool works with at a time.
const KEPT: usize = 256;

#[derive(Clone, Default)]
pub(crate) struct Pieces {
    kept: Arc<Mutex<Lists>>,
    /// Bytes of blobs given to nodes, in pieces or whole.
    served: Arc<AtomicU64>,
}

#[derive(Default)]
struct Lists {
    lists: BTreeMap<Hash, (Arc<OnceCell<Bytes>>, u64)>,
    uses: u64,
}

impl Pieces {
    /// The hashes of all pieces of a blob, 32 bytes each, in order.
    pub(crate) async fn of(&self, hash: Hash, file: File) -> io::Result<Bytes> {
        let cell = self.cell(hash);
        // A task of its own: what one asker does not wait for any more is there for the next.
        let making = tokio::spawn(async move {
            let list = cell.get_or_try_init(|| async {
                spawn_blocking(move || hashes(file)).await.map_err(io::Error::other)?
            });
            list.await.cloned()
        });
        making.await.map_err(io::Error::other)?
    }

    /// The counter of bytes given, for whoever gives them.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.served)
    }

    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Whoever asks while the hashes are made waits for the same ones.
    fn cell(&self, hash: Hash) -> Arc<OnceCell<Bytes>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        if kept.lists.len() >= KEPT && !kept.lists.contains_key(&hash) {
            let oldest = kept.lists.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
                kept.lists.remove(&oldest);
            }
        }
        let (cell, used) = kept.lists.entry(hash).or_default();
        *used = now;
        Arc::clone(cell)
    }
}

fn hashes(file: File) -> io::Result<Bytes> {
    let mut file = file;
    let mut list = Vec::new();
    let mut piece = Vec::with_capacity(PIECE_BYTES as usize);
    loop {
        piece.clear();
        if Read::by_ref(&mut file).take(PIECE_BYTES).read_to_end(&mut piece)? == 0 {
            return Ok(list.into());
        }
        list.extend_from_slice(blake3::hash(&piece).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_piece_has_its_own_hash_and_the_last_is_shorter() {
        let path = std::env::temp_dir().join(format!("shoal-pieces-{}", std::process::id()));
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 7).map(|at| (at / 1000) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let (pieces, hash) = (Pieces::default(), Hash([1; 32]));
        let list = pieces.of(hash, File::open(&path).unwrap()).await.unwrap();
        let expected: Vec<u8> = bytes
            .chunks(PIECE_BYTES as usize)
            .flat_map(|piece| *blake3::hash(piece).as_bytes())
            .collect();
        assert_eq!(list, expected);
        std::fs::remove_file(path).unwrap();
    }
}
