//! Blobs this node keeps in a folder: whole ones under their hash, those that are still coming beside them. What
//! is there of one survives `kill -9`: its pieces are checked when it is needed again. The oldest are dropped first.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use shoal_protocol::limit::PIECE_BYTES;
use shoal_protocol::share::{is_shared, piece_span};
use shoal_protocol::{BlobRef, Hash, PieceSet};

/// What all of it may take: a few models of the size that devices compute with.
const MAX_SHELF_BYTES: u64 = 8 << 30;
/// What is begun and not gone on with for this long is dropped.
const PART_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Behind the hash of a blob that is still coming.
const PART: &str = "part";

#[derive(Clone)]
pub(crate) struct Shelf(PathBuf);

impl Shelf {
    pub(crate) fn open(folder: PathBuf) -> io::Result<Shelf> {
        fs::create_dir_all(&folder)?;
        Ok(Shelf(folder))
    }

    pub(crate) fn at(folder: PathBuf) -> Shelf {
        Shelf(folder)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// The whole blobs, the most recently used first.
    pub(super) fn held(&self) -> Vec<BlobRef> {
        let mut held = self.list().into_iter().filter(|kept| kept.whole).collect::<Vec<_>>();
        held.sort_by_key(|kept| std::cmp::Reverse(kept.used));
        held.into_iter().map(|kept| kept.blob).filter(is_shared).collect()
    }

    /// Where a whole blob lies, if it does. It counts as used.
    pub(crate) fn find(&self, blob: BlobRef) -> Option<PathBuf> {
        let path = self.path(blob.hash);
        let file = File::open(&path).ok()?;
        let right = file.metadata().ok()?.len() == blob.size;
        let _ = file.set_modified(SystemTime::now());
        right.then_some(path)
    }

    /// All bytes of a whole blob, if it is here and is what its name says.
    pub(crate) fn read(&self, blob: BlobRef) -> Option<Bytes> {
        let bytes = fs::read(self.find(blob)?).ok()?;
        self.is_right(blob, blake3::hash(&bytes)).then(|| bytes.into())
    }

    /// The same as a file.
    pub(crate) fn file(&self, blob: BlobRef) -> Option<PathBuf> {
        let path = self.find(blob)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(&path).ok()?).ok()?;
        self.is_right(blob, hasher.finalize()).then_some(path)
    }

    /// A disk may forget: what is not what its name says goes.
    fn is_right(&self, blob: BlobRef, found: blake3::Hash) -> bool {
        let right = found.as_bytes() == &blob.hash.0;
        if !right {
            tracing::warn!("blob {} was changed on the disk: dropping it", blob.hash);
            let _ = fs::remove_file(self.path(blob.hash));
        }
        right
    }

    /// Which pieces are here of a blob that is still coming.
    pub(super) fn check(&self, blob: BlobRef, hashes: &[Hash]) -> PieceSet {
        let mut has = PieceSet::new(hashes.len() as u32);
        let Ok(mut file) = File::open(self.part(blob.hash)) else { return has };
        let mut bytes = Vec::with_capacity(PIECE_BYTES as usize);
        for (piece, expected) in hashes.iter().enumerate() {
            bytes.clear();
            let (_, size) = piece_span(&blob, piece as u32);
            match Read::by_ref(&mut file).take(size).read_to_end(&mut bytes) {
                Ok(read) if read as u64 == size => {}
                Ok(_) | Err(_) => return has,
            }
            if blake3::hash(&bytes).as_bytes() == &expected.0 {
                has.insert(piece as u32);
            }
        }
        has
    }

    pub(super) fn store(&self, blob: BlobRef, piece: u32, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let mut file = options.open(self.part(blob.hash))?;
        if file.metadata()?.len() != blob.size {
            file.set_len(blob.size)?;
        }
        file.seek(SeekFrom::Start(piece_span(&blob, piece).0))?;
        file.write_all(bytes)
    }

    /// A piece of a blob that is here or still coming.
    pub(super) fn load(&self, blob: BlobRef, piece: u32) -> io::Result<Vec<u8>> {
        let whole = File::open(self.path(blob.hash));
        let mut file = whole.or_else(|_| File::open(self.part(blob.hash)))?;
        let (start, size) = piece_span(&blob, piece);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![0; size as usize];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// All pieces are here: the whole is checked and gets its name. Gives the blobs that had to go for it.
    pub(super) fn finish(&self, blob: BlobRef) -> io::Result<Vec<Hash>> {
        if self.find(blob).is_some() {
            return Ok(Vec::new());
        }
        let part = self.part(blob.hash);
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(&part)?)?;
        if hasher.finalize().as_bytes() != &blob.hash.0 {
            fs::remove_file(&part)?;
            return Err(io::Error::other("its pieces are right and the whole is not"));
        }
        fs::rename(part, self.path(blob.hash))?;
        Ok(self.trim(blob.hash, MAX_SHELF_BYTES))
    }

    pub(super) fn forget(&self, hash: Hash) {
        let _ = fs::remove_file(self.part(hash));
    }

    /// Drops what is too old or too much, but for one blob.
    pub(super) fn trim(&self, keep: Hash, most: u64) -> Vec<Hash> {
        let mut all = self.list();
        all.sort_by_key(|kept| std::cmp::Reverse(kept.used));
        let (mut total, mut dropped) = (0, Vec::new());
        for kept in all {
            let stale = kept.used.elapsed().is_ok_and(|age| age > PART_KEPT) && !kept.whole;
            total += kept.blob.size;
            if kept.blob.hash == keep || !stale && total <= most {
                continue;
            }
            let hash = kept.blob.hash;
            let path = if kept.whole { self.path(hash) } else { self.part(hash) };
            if fs::remove_file(path).is_ok() {
                total -= kept.blob.size;
                dropped.push(hash);
            }
        }
        dropped
    }

    fn list(&self) -> Vec<Kept> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let kept = entries.filter_map(|entry| {
            let (path, meta) = (entry.path(), entry.metadata().ok()?);
            let hash = path.file_stem()?.to_str()?.parse().ok()?;
            let whole = match path.extension() {
                None => true,
                Some(extension) if extension == PART => false,
                Some(_) => return None,
            };
            let blob = BlobRef { hash, size: meta.len() };
            Some(Kept { blob, whole, used: meta.modified().ok()? })
        });
        kept.collect()
    }

    fn path(&self, hash: Hash) -> PathBuf {
        self.0.join(hash.to_string())
    }

    fn part(&self, hash: Hash) -> PathBuf {
        self.path(hash).with_extension(PART)
    }
}

struct Kept {
    blob: BlobRef,
    whole: bool,
    used: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(name: &str) -> Shelf {
        let folder =
            std::env::temp_dir().join(format!("shoal-shelf-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Shelf::open(folder).expect("a folder")
    }

    fn blob(mark: u8) -> (BlobRef, Vec<u8>, Vec<Hash>) {
        let byte = |at: u64| mark ^ (at >> 12) as u8 ^ (at / PIECE_BYTES) as u8;
        let bytes: Vec<u8> = (0..8 * PIECE_BYTES + 99).map(byte).collect();
        let blob = BlobRef { hash: shoal_protocol::hash(&bytes), size: bytes.len() as u64 };
        let hashes = bytes.chunks(PIECE_BYTES as usize).map(shoal_protocol::hash).collect();
        (blob, bytes, hashes)
    }

    fn fill(shelf: &Shelf, mark: u8) -> BlobRef {
        let (blob, bytes, _) = blob(mark);
        for (piece, bytes) in bytes.chunks(PIECE_BYTES as usize).enumerate() {
            shelf.store(blob, piece as u32, bytes).expect("stored");
        }
        shelf.finish(blob).expect("whole");
        blob
    }

    #[test]
    fn pieces_survive_and_are_checked() {
        let shelf = shelf("pieces");
        let (blob, bytes, hashes) = blob(1);
        let piece = |at: usize| &bytes[at * PIECE_BYTES as usize..][..PIECE_BYTES as usize];
        shelf.store(blob, 3, piece(3)).expect("stored");
        shelf.store(blob, 1, piece(2)).expect("stored");
        let has = shelf.check(blob, &hashes);
        assert!(has.has(3) && has.len() == 1, "the other one is not what it should be");
        assert_eq!(shelf.load(blob, 3).expect("a piece"), piece(3));
        assert!(shelf.finish(blob).is_err() && shelf.find(blob).is_none());
        fs::remove_dir_all(shelf.folder()).expect("gone");
    }

    #[test]
    fn a_whole_blob_is_read_back_and_a_changed_one_is_not() {
        let shelf = shelf("whole");
        let blob = fill(&shelf, 2);
        assert_eq!(shelf.held(), [blob]);
        assert!(shelf.read(blob).is_some());
        fs::write(shelf.path(blob.hash), vec![0; blob.size as usize]).expect("changed");
        assert!(shelf.read(blob).is_none() && shelf.held().is_empty());
        fs::remove_dir_all(shelf.folder()).expect("gone");
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let shelf = shelf("trim");
        let old = SystemTime::now() - Duration::from_secs(3600);
        let blobs: Vec<_> = (3..6).map(|mark| fill(&shelf, mark)).collect();
        for blob in &blobs[..2] {
            let file = File::open(shelf.path(blob.hash)).expect("a file");
            file.set_modified(old).expect("older");
        }
        assert!(shelf.find(blobs[0]).is_some());
        let dropped = shelf.trim(blobs[2].hash, 2 * blobs[0].size);
        assert_eq!(dropped, [blobs[1].hash]);
        fs::remove_dir_all(shelf.folder()).expect("gone");
    }
}
