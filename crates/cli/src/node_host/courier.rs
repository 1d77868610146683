//! Moves a unit's bytes: inputs from the coordinator's blobs, results back to it. Waits out a
//! coordinator's restart.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use shoal_protocol::limit::MAX_INLINE_BYTES;
use shoal_protocol::{BlobRef, Failure, Hash, Lease, UnitOutput};

use super::session::Session;
use super::wire::{Origin, Request, Wire};

/// A coordinator that restarts may take this long before a unit's transfer is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Tries of one transfer on connections that break without the session changing.
const MAX_TRIES: u32 = 4;
/// Blobs up to this size are fetched whole and kept: the next unit most likely needs them too.
pub(super) const WHOLE_BYTES: u64 = 4 << 20;
/// What the kept blobs may take together.
const CACHE_BYTES: u64 = 256 << 20;

/// One connection's worth of moving. Each working thread has its own; the kept blobs are shared.
pub(super) struct Courier {
    wire: Wire,
    session: Session,
    kept: Cache,
}

impl Courier {
    pub(super) fn new(origin: Origin, session: Session, kept: Cache) -> Courier {
        Courier { wire: Wire::new(origin), session, kept }
    }

    /// All bytes of a blob, checked against its name.
    pub(super) fn whole(&mut self, blob: BlobRef) -> Result<Bytes, Failure> {
        if let Some(bytes) = self.kept.take(&blob.hash) {
            return Ok(bytes);
        }
        let bytes = self.once(blob)?;
        self.kept.put(blob.hash, bytes.clone());
        Ok(bytes)
    }

    /// The same for a blob that no other unit will need: it is not kept.
    pub(super) fn once(&mut self, blob: BlobRef) -> Result<Bytes, Failure> {
        let bytes = self.gather(blob, 0..blob.size)?;
        if blake3::hash(&bytes).as_bytes() != &blob.hash.0 {
            let message = format!("blob {} arrived with other content", blob.hash);
            return Err(Failure::Fetch { message });
        }
        Ok(bytes)
    }

    /// Part of a blob: from the kept ones if it is small, else just these bytes.
    pub(super) fn part(&mut self, blob: BlobRef, range: Range<u64>) -> Result<Bytes, Failure> {
        if range.start > range.end || range.end > blob.size {
            let message = format!(
                "bytes {}..{} were asked of blob {}, which has {}",
                range.start, range.end, blob.hash, blob.size
            );
            return Err(Failure::Fetch { message });
        }
        if blob.size <= WHOLE_BYTES {
            return Ok(self.whole(blob)?.slice(range.start as usize..range.end as usize));
        }
        if range.start == 0 && range.end == blob.size {
            return self.once(blob);
        }
        self.gather(blob, range)
    }

    /// Bytes of a blob in memory, if there is room: the size came over the network.
    fn gather(&mut self, blob: BlobRef, range: Range<u64>) -> Result<Bytes, Failure> {
        let mut bytes = room(range.end - range.start)?;
        self.fetch(blob, range, &mut |at, piece| {
            // A transfer that broke starts again.
            bytes.truncate(at as usize);
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes.into())
    }

    /// Hands bytes of a blob to `each` as they come, with their position in the range.
    pub(super) fn fetch(
        &mut self,
        blob: BlobRef,
        range: Range<u64>,
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if range.is_empty() {
            return Ok(());
        }
        let path = format!("/node/blobs/{}", blob.hash);
        let wanted = range.end - range.start;
        let whole = range.start == 0 && range.end == blob.size;
        let range = (!whole).then_some((range.start, range.end - 1));
        let mut got = 0;
        let mut said = Vec::new();
        let status = self.ask("GET", &path, range, &[], &mut |at, piece| {
            if at + piece.len() as u64 <= wanted {
                each(at, piece)?;
            }
            got = at + piece.len() as u64;
            keep_start(&mut said, piece);
            Ok(())
        })?;
        match status {
            200 | 206 if got == wanted => Ok(()),
            200 | 206 => {
                let message = format!("{got} bytes of blob {} came instead of {wanted}", blob.hash);
                Err(Failure::Fetch { message })
            }
            _ => Err(refused(&format!("blob {}", blob.hash), status, &said)),
        }
    }

    /// Hands a unit's result over: small ones ride in the message itself, others are stored first.
    pub(super) fn deliver(&mut self, lease: &Lease, result: &[u8]) -> Result<UnitOutput, Failure> {
        if result.len() <= MAX_INLINE_BYTES {
            return Ok(UnitOutput::Inline(result.to_vec()));
        }
        let path = format!("/node/results/{}/{}", lease.job, lease.attempt);
        let BlobRef { hash, size } = self.store("the result", &path, result)?;
        Ok(UnitOutput::Stored { hash, size })
    }

    /// Stores rows of a checkpoint.
    pub(super) fn keep(&mut self, path: &str, rows: &[u8]) -> Result<BlobRef, Failure> {
        self.store("a checkpoint", path, rows)
    }

    /// Shows a picture.
    pub(super) fn show(&mut self, path: &str, pixels: &[u8]) -> Result<(), Failure> {
        self.put("a picture", path, pixels).map(drop)
    }

    fn store(&mut self, what: &str, path: &str, bytes: &[u8]) -> Result<BlobRef, Failure> {
        let said = self.put(what, path, bytes)?;
        #[derive(serde::Deserialize)]
        struct Stored {
            hash: String,
            size: u64,
        }
        let stored: Option<Stored> = serde_json::from_slice(&said).ok();
        let hash = stored.as_ref().and_then(|stored| stored.hash.parse::<Hash>().ok());
        match (stored, hash) {
            (Some(stored), Some(hash)) => Ok(BlobRef { hash, size: stored.size }),
            _ => {
                Err(Failure::Fetch { message: "the coordinator did not say what it stored".into() })
            }
        }
    }

    /// The start of the answer.
    fn put(&mut self, what: &str, path: &str, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut said = Vec::new();
        let status = self.ask("PUT", path, None, bytes, &mut |_, piece| {
            keep_start(&mut said, piece);
            Ok(())
        })?;
        match status {
            200..300 => Ok(said),
            _ => Err(refused(what, status, &said)),
        }
    }

    /// One exchange, repeated over broken connections and new sessions.
    fn ask(
        &mut self,
        method: &str,
        path: &str,
        range: Option<(u64, u64)>,
        body: &[u8],
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<u16, Failure> {
        let gone = || Failure::Fetch { message: "the coordinator is away".into() };
        let mut token = self.session.current(PATIENCE).ok_or_else(gone)?;
        let mut tries = 0;
        loop {
            let request = Request { method, path, token: &token, range, body };
            match self.wire.exchange(&request, each) {
                // The session ended: a restart, or another connection. The next one continues the
                // unit.
                Ok(401) => {
                    let next = self.session.other_than(Some(&token), PATIENCE);
                    token = next.ok_or_else(gone)?;
                }
                Ok(status) => return Ok(status),
                Err(error) => {
                    tries += 1;
                    if tries >= MAX_TRIES {
                        let message = crate::fail::plain(&error);
                        return Err(Failure::Fetch { message });
                    }
                    let pause = Duration::from_millis(250) * 2_u32.pow(tries);
                    if let Some(next) = self.session.other_than(Some(&token), pause) {
                        token = next;
                    }
                }
            }
        }
    }
}

/// Blobs kept in memory, the least recently used dropped first. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Cache(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    blobs: BTreeMap<Hash, (Bytes, u64)>,
    size: u64,
    uses: u64,
}

impl Cache {
    fn take(&self, hash: &Hash) -> Option<Bytes> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let (bytes, used) = kept.blobs.get_mut(hash)?;
        *used = now;
        Some(bytes.clone())
    }

    fn put(&self, hash: Hash, bytes: Bytes) {
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

/// Keeps the start of an answer, in case it is a message.
fn keep_start(said: &mut Vec<u8>, piece: &[u8]) {
    const MOST: usize = 1024;
    let room = MOST.saturating_sub(said.len());
    said.extend_from_slice(&piece[..piece.len().min(room)]);
}

fn refused(what: &str, status: u16, said: &[u8]) -> Failure {
    let said = String::from_utf8_lossy(said);
    Failure::Fetch { message: format!("{what}: the coordinator answered {status} {said}") }
}

/// An empty list that takes `size` bytes without growing.
fn room(size: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(size).map(|size| bytes.try_reserve_exact(size));
    match reserved {
        Ok(Ok(())) => Ok(bytes),
        Ok(Err(_)) | Err(_) => {
            Err(Failure::OutOfMemory { message: format!("an input of {size} bytes does not fit") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_larger_than_memory_is_a_failure() {
        assert!(room(1 << 20).is_ok_and(|bytes| bytes.capacity() == 1 << 20));
        assert!(matches!(room(1 << 60), Err(Failure::OutOfMemory { .. })));
        assert!(matches!(room(u64::MAX), Err(Failure::OutOfMemory { .. })));
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
