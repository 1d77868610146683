//! Which pieces of a blob are on the shelf, and the hash of each: a file of 32 bytes a piece, zeros where there is
//! none. A piece is marked after its bytes were written; what a power cut left of it fails its hash when it is read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use shoal_protocol::{Hash, PieceSet};

const NONE: [u8; 32] = [0; 32];

/// The hashes of the pieces that are there; `None` for the others.
pub(super) fn read(path: &Path, count: u32) -> Vec<Option<Hash>> {
    let most = u64::from(count) * 32;
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What cannot be read is not there.
        let _ = file.take(most).read_to_end(&mut bytes);
    }
    bytes.resize(most as usize, 0);
    let hashes = bytes.as_chunks::<32>().0.iter();
    hashes.map(|hash| (*hash != NONE).then_some(Hash(*hash))).collect()
}

/// The pieces that are there.
pub(super) fn set(path: &Path, count: u32) -> PieceSet {
    let mut set = PieceSet::new(count);
    let marks = read(path, count).into_iter().enumerate();
    for (piece, _) in marks.filter(|(_, hash)| hash.is_some()) {
        set.insert(piece as u32);
    }
    set
}

/// The hash of one piece, if it is there.
pub(super) fn get(path: &Path, piece: u32) -> Option<Hash> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(u64::from(piece) * 32)).ok()?;
    let mut hash = NONE;
    file.read_exact(&mut hash).ok()?;
    (hash != NONE).then_some(Hash(hash))
}

pub(super) fn put(path: &Path, piece: u32, hash: Option<Hash>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(false).open(path)?;
    file.seek(SeekFrom::Start(u64::from(piece) * 32))?;
    file.write_all(&hash.map_or(NONE, |hash| hash.0))
}

pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}
