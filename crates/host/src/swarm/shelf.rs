//! Blobs this node keeps in a folder: whole ones under their hash, those of which only some pieces are here beside
//! them (`.part`, with holes), and which pieces those are (`.pieces`). What is there of one survives `kill -9`: each
//! piece is checked by its hash when it is read. The longest unused are dropped first, by what they really take.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use shoal_protocol::swarm::{bytes_in, is_shared, piece_span, pieces_in, pieces_of};
use shoal_protocol::{BlobRef, Hash, PieceSet, hash};

use super::marks;

/// What all of it may take: a few models of the size that devices compute with.
const MAX_SHELF_BYTES: u64 = 8 << 30;
/// What is begun and has no piece after this long is dropped: it takes no room that would make it go.
const EMPTY_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Behind the hash of a blob of which some pieces are here.
const PART: &str = "part";
/// Behind the hash: which pieces are here, of a whole one too.
const PIECES: &str = "pieces";

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

    /// Those of which some pieces are here.
    pub(super) fn parts(&self) -> Vec<(BlobRef, PieceSet)> {
        let parts = self.list().into_iter().filter(|kept| !kept.whole && is_shared(&kept.blob));
        parts.map(|kept| (kept.blob, self.pieces(kept.blob))).collect()
    }

    /// Whether these pieces are here, as far as can be told without reading them.
    pub(super) fn holds(&self, blob: BlobRef, needs: &PieceSet) -> bool {
        let is_whole = self.find(blob).is_some();
        match needs.is_full() {
            true => is_whole,
            false => {
                let part =
                    || fs::metadata(self.part(blob.hash)).is_ok_and(|at| at.len() == blob.size);
                (is_whole || part()) && self.pieces(blob).covers(needs)
            }
        }
    }

    /// Some bytes of a blob, if the pieces they lie in are here and are what they should be. It counts as used.
    pub(crate) fn range(&self, blob: BlobRef, range: Range<u64>) -> Option<Bytes> {
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        for piece in pieces_in(&blob, [range.clone()]).iter() {
            let read = self.load(blob, piece).ok()?;
            let (start, size) = piece_span(&blob, piece);
            let from = range.start.max(start) - start;
            let to = range.end.min(start + size) - start;
            bytes.extend_from_slice(&read[from as usize..to as usize]);
        }
        let file = File::open(self.path(blob.hash)).or_else(|_| File::open(self.part(blob.hash)));
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes.into())
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
            marks::remove(&self.marks(blob.hash));
        }
        right
    }

    /// Which pieces of a blob are here. Those that are needed are read and must have these hashes; of the others that
    /// is seen when somebody asks for them.
    pub(super) fn check(&self, blob: BlobRef, hashes: &[Hash], needs: &PieceSet) -> PieceSet {
        let mut has = PieceSet::new(hashes.len() as u32);
        let marks = marks::read(&self.marks(blob.hash), pieces_of(&blob));
        for (piece, (mark, expected)) in (0..).zip(marks.iter().zip(hashes)) {
            let marked = mark.as_ref() == Some(expected);
            if marked && (!needs.has(piece) || self.load(blob, piece).is_ok()) {
                has.insert(piece);
            }
        }
        has
    }

    pub(super) fn store(&self, blob: BlobRef, piece: u32, bytes: &[u8]) -> io::Result<()> {
        if self.find(blob).is_some() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let mut file = options.open(self.part(blob.hash))?;
        if file.metadata()?.len() != blob.size {
            file.set_len(blob.size)?;
        }
        file.seek(SeekFrom::Start(piece_span(&blob, piece).0))?;
        file.write_all(bytes)?;
        marks::put(&self.marks(blob.hash), piece, Some(hash(bytes)))
    }

    /// A piece that is here. One that is not what it was is not here any more.
    pub(super) fn load(&self, blob: BlobRef, piece: u32) -> io::Result<Vec<u8>> {
        let marks = self.marks(blob.hash);
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        let expected = marks::get(&marks, piece).ok_or_else(absent)?;
        let whole = File::open(self.path(blob.hash));
        let is_whole = whole.is_ok();
        let mut file = whole.or_else(|_| File::open(self.part(blob.hash)))?;
        let (start, size) = piece_span(&blob, piece);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![0; size as usize];
        if file.read_exact(&mut bytes).is_ok() && hash(&bytes) == expected {
            return Ok(bytes);
        }
        tracing::warn!("piece {piece} of blob {} was changed on the disk", blob.hash);
        if is_whole {
            fs::rename(self.path(blob.hash), self.part(blob.hash))?;
        }
        marks::put(&marks, piece, None)?;
        Err(io::Error::from(io::ErrorKind::InvalidData))
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
            self.forget(blob.hash);
            return Err(io::Error::other("every piece matches, but the whole does not"));
        }
        fs::rename(part, self.path(blob.hash))?;
        Ok(self.settle(blob.hash))
    }

    /// Pieces that were needed are here. Gives the blobs that had to go for them.
    pub(super) fn settle(&self, hash: Hash) -> Vec<Hash> {
        self.trim(hash, MAX_SHELF_BYTES)
    }

    pub(super) fn forget(&self, hash: Hash) {
        let _ = fs::remove_file(self.part(hash));
        marks::remove(&self.marks(hash));
    }

    /// Drops what is too old or too much, but for one blob.
    pub(super) fn trim(&self, keep: Hash, most: u64) -> Vec<Hash> {
        let mut all = self.list();
        all.sort_by_key(|kept| std::cmp::Reverse(kept.used));
        let (mut total, mut dropped) = (0, Vec::new());
        for kept in all {
            let stale = kept.used.elapsed().is_ok_and(|age| age > EMPTY_KEPT) && kept.bytes == 0;
            total += kept.bytes;
            if kept.blob.hash == keep || !stale && total <= most {
                continue;
            }
            let hash = kept.blob.hash;
            let path = if kept.whole { self.path(hash) } else { self.part(hash) };
            if fs::remove_file(path).is_ok() {
                marks::remove(&self.marks(hash));
                total -= kept.bytes;
                dropped.push(hash);
            }
        }
        dropped
    }

    fn list(&self) -> Vec<Shelved> {
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
            let bytes = if whole { blob.size } else { bytes_in(&blob, &self.pieces(blob)) };
            Some(Shelved { blob, whole, bytes, used: meta.modified().ok()? })
        });
        kept.collect()
    }

    fn pieces(&self, blob: BlobRef) -> PieceSet {
        marks::set(&self.marks(blob.hash), pieces_of(&blob))
    }

    fn marks(&self, hash: Hash) -> PathBuf {
        self.path(hash).with_extension(PIECES)
    }

    fn path(&self, hash: Hash) -> PathBuf {
        self.0.join(hash.to_string())
    }

    fn part(&self, hash: Hash) -> PathBuf {
        self.path(hash).with_extension(PART)
    }
}

struct Shelved {
    blob: BlobRef,
    whole: bool,
    /// What it takes: of a part, the pieces that are here.
    bytes: u64,
    used: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::limit::PIECE_BYTES;

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

    fn piece(bytes: &[u8], at: usize) -> &[u8] {
        bytes.chunks(PIECE_BYTES as usize).nth(at).expect("a piece")
    }

    fn all() -> PieceSet {
        PieceSet::full(9)
    }

    #[test]
    fn pieces_survive_and_are_checked() {
        let shelf = shelf("pieces");
        let (blob, bytes, hashes) = blob(1);
        shelf.store(blob, 3, piece(&bytes, 3)).expect("stored");
        shelf.store(blob, 1, piece(&bytes, 2)).expect("stored");
        let has = shelf.check(blob, &hashes, &all());
        assert!(has.has(3) && has.len() == 1, "the other one is not what it should be");
        assert_eq!(shelf.load(blob, 3).expect("a piece"), piece(&bytes, 3));
        assert!(shelf.load(blob, 4).is_err(), "a hole is no piece");
        assert!(shelf.finish(blob).is_err() && shelf.find(blob).is_none());
        fs::remove_dir_all(shelf.folder()).expect("gone");
    }

    #[test]
    fn a_part_is_there_after_a_restart_and_can_be_extended_to_the_whole() {
        let shelf = shelf("restart");
        let (blob, bytes, hashes) = blob(6);
        for at in [2, 3, 8] {
            shelf.store(blob, at as u32, piece(&bytes, at)).expect("stored");
        }
        let again = Shelf::open(shelf.folder().to_owned()).expect("the same folder");
        let part = pieces_in(&blob, [2 * PIECE_BYTES..4 * PIECE_BYTES, blob.size - 1..blob.size]);
        assert_eq!(again.parts(), [(blob, part.clone())]);
        assert!(again.holds(blob, &part) && !again.holds(blob, &all()) && again.held().is_empty());
        let (from, to) = (3 * PIECE_BYTES - 7, 3 * PIECE_BYTES + 9);
        let range = again.range(blob, from..to).expect("both pieces");
        assert_eq!(range, bytes[from as usize..to as usize]);
        assert!(again.range(blob, 4 * PIECE_BYTES - 1..4 * PIECE_BYTES + 1).is_none());
        for at in all().without(&again.check(blob, &hashes, &all())).iter() {
            again.store(blob, at, piece(&bytes, at as usize)).expect("stored");
        }
        again.finish(blob).expect("whole");
        assert_eq!((again.held(), again.parts()), (vec![blob], vec![]));
        assert_eq!(again.range(blob, 5..blob.size).expect("all"), bytes[5..]);
        fs::remove_dir_all(shelf.folder()).expect("gone");
    }

    #[test]
    fn a_torn_piece_is_not_here_whether_of_a_part_or_of_a_whole() {
        let shelf = shelf("torn");
        let (part, bytes, hashes) = blob(7);
        shelf.store(part, 0, piece(&bytes, 0)).expect("stored");
        shelf.store(part, 1, piece(&bytes, 1)).expect("stored");
        let whole = fill(&shelf, 8);
        for path in [shelf.part(part.hash), shelf.path(whole.hash)] {
            let mut file = OpenOptions::new().write(true).open(path).expect("a file");
            file.seek(SeekFrom::Start(PIECE_BYTES + 5)).expect("a place");
            file.write_all(b"torn").expect("written");
        }
        assert_eq!(shelf.check(part, &hashes, &all()).iter().collect::<Vec<_>>(), [0]);
        assert!(shelf.load(whole, 1).is_err() && shelf.load(whole, 2).is_ok());
        assert!(shelf.find(whole).is_none(), "it is a part now, to be made whole again");
        let (_, bytes, _) = blob(8);
        shelf.store(whole, 1, piece(&bytes, 1)).expect("stored");
        shelf.finish(whole).expect("whole again");
        fs::remove_dir_all(shelf.folder()).expect("gone");
    }

    #[test]
    fn a_part_counts_with_what_is_here_of_it() {
        let shelf = shelf("held");
        let whole = fill(&shelf, 9);
        let (part, bytes, _) = blob(10);
        shelf.store(part, 8, piece(&bytes, 8)).expect("stored");
        assert!(shelf.trim(part.hash, whole.size + 99).is_empty());
        assert_eq!(shelf.trim(part.hash, whole.size + 98), [whole.hash]);
        assert_eq!(shelf.trim(whole.hash, 50), [part.hash]);
        let left = fs::read_dir(shelf.folder()).expect("a folder").count();
        assert_eq!(left, 0, "nothing stays behind");
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
