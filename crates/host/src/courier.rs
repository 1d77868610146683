//! Moves a unit's bytes: inputs from the coordinator's blobs, results back to it: by HTTP or, where this node shares the
//! coordinator's folder, from file to file. Waits out a coordinator's restart.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use shoal_protocol::limit::MAX_INLINE_BYTES;
use shoal_protocol::swarm::{piece_span, pieces_of};
use shoal_protocol::{BlobRef, Failure, Hash, Lease, UnitOutput};

use super::beside::{self, Files, Neighbour};
use super::cache::Cache;
use super::session::Session;
use super::swarm::Library;
use super::wire::{Origin, Request, Wire};

/// A coordinator that restarts may take this long before a unit's transfer is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Tries of one transfer on connections that break without the session changing.
const MAX_TRIES: u32 = 4;
/// Blobs up to this size are fetched whole and kept: the next unit most likely needs them too.
pub(super) const WHOLE_BYTES: u64 = 4 << 20;

/// One connection's worth of moving. Each working thread has its own; the kept blobs are shared.
pub(super) struct Courier {
    wire: Wire,
    session: Session,
    kept: Cache,
    library: Option<Library>,
    /// Somebody waits in the middle of something: ranges that are not here come from the coordinator at once.
    hurries: bool,
    files: Files,
    /// Whose these are.
    last: Option<Arc<Neighbour>>,
    /// The neighbour who turned out to be none: the folder is not what the coordinator speaks of, or it tells this node nothing.
    strange: Option<Arc<Neighbour>>,
}

/// One exchange.
struct Asked<'a> {
    method: &'static str,
    path: &'a str,
    range: Option<(u64, u64)>,
    /// Whether it is about the coordinator's folder.
    beside: bool,
    body: &'a [u8],
}

impl<'a> Asked<'a> {
    fn get(path: &'a str) -> Asked<'a> {
        Asked { method: "GET", path, range: None, beside: false, body: &[] }
    }
}

impl Courier {
    pub(super) fn new(origin: Origin, session: Session, kept: Cache) -> Courier {
        let (wire, files) = (Wire::new(origin), Files::default());
        let (library, last, strange) = Default::default();
        Courier { wire, session, kept, library, hurries: false, files, last, strange }
    }

    pub(super) fn with_library(self, library: Option<Library>) -> Courier {
        Courier { library, ..self }
    }

    /// Other nodes may take their time to give what they have. Where an answer was broken off nobody waits for them.
    pub(super) fn hurry(&mut self, hurries: bool) {
        self.hurries = hurries;
    }

    /// All bytes of a blob that other nodes need too: programs, files they share, inputs of every unit. What is
    /// worth it comes from other nodes and stays on the disk.
    pub(super) fn shared(&mut self, blob: BlobRef) -> Result<Bytes, Failure> {
        match self.shelved(blob) {
            Some(bytes) => Ok(bytes),
            None => self.whole(blob),
        }
    }

    /// The same if it can be had without asking the coordinator for all of it.
    pub(super) fn shelved(&self, blob: BlobRef) -> Option<Bytes> {
        self.library.as_ref()?.read(blob)
    }

    /// The same as a file, for what is too large for memory. It may go when others need the room: use it at once.
    pub(super) fn shelved_file(&self, blob: BlobRef) -> Option<PathBuf> {
        self.library.as_ref()?.file(blob)
    }

    /// Sees to it that these bytes of a blob are on the disk, if it is one that nodes share.
    pub(super) fn gather_ranges(&self, blob: BlobRef, ranges: &[Range<u64>]) {
        if let Some(library) = self.library.as_ref().filter(|_| !self.hurries) {
            library.gather(blob, ranges);
        }
    }

    /// Some bytes of a blob that other nodes need too: from the disk, from them, or from the coordinator.
    pub(super) fn range(&mut self, blob: BlobRef, range: Range<u64>) -> Result<Bytes, Failure> {
        let shelved = self.library.as_ref().and_then(|library| match self.hurries {
            true => library.range_here(blob, range.clone()),
            false => library.range(blob, range.clone()),
        });
        shelved.map_or_else(|| self.part(blob, range), Ok)
    }

    /// The hashes of a blob's pieces.
    pub(super) fn piece_hashes(&mut self, blob: BlobRef) -> Result<Vec<Hash>, Failure> {
        let (mut list, path) = (Vec::new(), format!("/node/blobs/{}/pieces", blob.hash));
        let most = pieces_of(&blob) as usize * 32;
        let status = self.ask(&Asked::get(&path), &mut |at, piece| {
            list.truncate(at as usize);
            let room = most.saturating_sub(list.len());
            list.extend_from_slice(&piece[..piece.len().min(room)]);
            Ok(())
        })?;
        match status {
            200 => Ok(list.as_chunks::<32>().0.iter().map(|hash| Hash(*hash)).collect()),
            _ => Err(refused(&format!("pieces of blob {}", blob.hash), status, &list)),
        }
    }

    /// One piece, not checked.
    pub(super) fn piece(&mut self, blob: BlobRef, piece: u32) -> Result<Vec<u8>, Failure> {
        let (start, size) = piece_span(&blob, piece);
        self.gather(blob, start..start + size).map(Into::into)
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
        if self.read_beside(blob, &range, each)? {
            return Ok(());
        }
        let path = format!("/node/blobs/{}", blob.hash);
        let wanted = range.end - range.start;
        let whole = range.start == 0 && range.end == blob.size;
        let range = (!whole).then_some((range.start, range.end - 1));
        let mut got = 0;
        let mut said = Vec::new();
        let asked = Asked { range, ..Asked::get(&path) };
        let status = self.ask(&asked, &mut |at, piece| {
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
        let stored = match self.write_beside(&path, result)? {
            Some(stored) => stored,
            None => self.store("the result", &path, result)?,
        };
        let BlobRef { hash, size } = stored;
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
        stored(&said).ok_or_else(|| Failure::Fetch {
            message: "the coordinator did not say what it stored".into(),
        })
    }

    /// The coordinator's folder, where bytes of that size are worth the question.
    fn neighbour(&mut self, size: u64) -> Option<Arc<Neighbour>> {
        let found = self.session.beside().filter(|_| size >= beside::LARGE)?;
        let is = |other: &Option<Arc<Neighbour>>| {
            other.as_ref().is_some_and(|other| Arc::ptr_eq(other, &found))
        };
        if is(&self.strange) {
            return None;
        }
        if !is(&self.last) {
            // Another session, perhaps with another folder.
            (self.files, self.last) = (Files::default(), Some(found.clone()));
        }
        Some(found)
    }

    /// Reads a range from the blob's own file. Says whether it did.
    fn read_beside(
        &mut self,
        blob: BlobRef,
        range: &Range<u64>,
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<bool, Failure> {
        let Some(neighbour) = self.neighbour(range.end - range.start) else { return Ok(false) };
        if !self.files.has(&blob.hash) {
            let path = format!("/node/blobs/{}/file", blob.hash);
            let asked = Asked { beside: true, ..Asked::get(&path) };
            let Some(said) = self.said_beside(&asked, &neighbour)? else { return Ok(false) };
            if let Err(error) = self.files.open(blob, &neighbour, &said) {
                self.distrust(neighbour, &error);
                return Ok(false);
            }
        }
        // Whatever breaks there may go well on the usual way, which says so if not.
        Ok(self.files.read(&blob.hash, (range.start, range.end), each).is_ok())
    }

    /// Writes a result into its job's log. Says what, if it did.
    fn write_beside(&mut self, path: &str, result: &[u8]) -> Result<Option<BlobRef>, Failure> {
        let size = result.len() as u64;
        let Some(neighbour) = self.neighbour(size) else { return Ok(None) };
        let (path, body) = (format!("{path}/place"), format!("{{\"size\":{size}}}"));
        let asked =
            Asked { method: "POST", beside: true, body: body.as_bytes(), ..Asked::get(&path) };
        let Some(said) = self.said_beside(&asked, &neighbour)? else { return Ok(None) };
        let (offset, hash) = match beside::write(&neighbour, &said, result) {
            Ok(written) => written,
            // A full disk is the coordinator's to find out, on the usual way.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(None),
            Err(error) => {
                self.distrust(neighbour, &error);
                return Ok(None);
            }
        };
        let body = format!("{{\"offset\":{offset},\"size\":{size},\"hash\":\"{hash}\"}}");
        let asked = Asked { method: "PUT", body: body.as_bytes(), ..asked };
        let said: Option<Stored> = self.said_beside(&asked, &neighbour)?;
        Ok(said.and_then(|said| said.blob()).filter(|said| (said.hash, said.size) == (hash, size)))
    }

    /// What the coordinator answers to a question about its folder; nothing if it is of no help there.
    fn said_beside<T: DeserializeOwned>(
        &mut self,
        asked: &Asked<'_>,
        neighbour: &Arc<Neighbour>,
    ) -> Result<Option<T>, Failure> {
        let mut said = Vec::new();
        let status = self.ask(asked, &mut |_, piece| {
            keep_start(&mut said, piece);
            Ok(())
        })?;
        if status == 403 {
            self.strange = Some(neighbour.clone());
        }
        Ok(if status == 200 { serde_json::from_slice(&said).ok() } else { None })
    }

    fn distrust(&mut self, neighbour: Arc<Neighbour>, error: &io::Error) {
        tracing::debug!("bytes go by HTTP: {error}");
        self.strange = Some(neighbour);
    }

    /// The start of the answer.
    fn put(&mut self, what: &str, path: &str, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut said = Vec::new();
        let asked = Asked { method: "PUT", body: bytes, ..Asked::get(path) };
        let status = self.ask(&asked, &mut |_, piece| {
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
        asked: &Asked<'_>,
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<u16, Failure> {
        let gone = || Failure::Fetch { message: "cannot reach the coordinator".into() };
        let mut token = self.session.current(PATIENCE).ok_or_else(gone)?;
        let mut tries = 0;
        loop {
            let &Asked { method, path, range, beside, body } = asked;
            let neighbour = self.session.beside().filter(|_| beside);
            let beside = neighbour.as_ref().map(|neighbour| neighbour.word.as_str());
            let request = Request { method, path, token: &token, range, beside, body };
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

/// What the coordinator stored.
#[derive(serde::Deserialize)]
struct Stored {
    hash: String,
    size: u64,
}

impl Stored {
    fn blob(&self) -> Option<BlobRef> {
        Some(BlobRef { hash: self.hash.parse::<Hash>().ok()?, size: self.size })
    }
}

fn stored(said: &[u8]) -> Option<BlobRef> {
    serde_json::from_slice::<Stored>(said).ok()?.blob()
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
}
