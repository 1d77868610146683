//! After a start: which of the bytes that facts speak of are really there. A killed process loses
//! nothing it wrote, a machine that lost power may lose its last minute; what is missing is computed
//! again. Older bytes are trusted, so that a start does not read everything there is.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime};

use shoal_protocol::{JobId, Span};
use shoal_scheduler::Place;

use super::results;

/// Read at a time: large enough for the disk, small enough for the cache.
const CHUNK: usize = 256 << 10;
/// Systems write what is in memory to the disk after half a minute; this leaves room for a slow disk.
const UNSURE_FOR: Duration = Duration::from_secs(120);

/// Bytes written after this moment may not have reached the disk: shortly before the last thing the
/// database knows of. To be asked before the database is opened, because that touches it.
pub(crate) fn horizon(database: &Path) -> SystemTime {
    let log = database.with_extension("db-wal");
    let touched = [database, &log].into_iter().filter_map(|path| fs::metadata(path).ok());
    let last = touched.filter_map(|meta| meta.modified().ok()).max();
    last.and_then(|last| last.checked_sub(UNSURE_FOR)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The spans of a job whose bytes are missing or not those that were merged.
pub(crate) fn torn(
    dir: &Path,
    job: JobId,
    merged: &[(Span, Option<Place>)],
    since: SystemTime,
) -> Vec<Span> {
    let places = merged.iter().filter_map(|(span, place)| place.map(|place| (*span, place)));
    let mut places = places.peekable();
    if places.peek().is_none() {
        return Vec::new();
    }
    let Ok((mut file, len, modified)) = open(&results::path(dir, job)) else {
        return places.map(|(span, _)| span).collect();
    };
    let recent = modified >= since;
    let mut buffer = vec![0; CHUNK];
    let mut is_torn = |place: &Place| {
        place.offset.saturating_add(place.size) > len
            || recent && !holds(&mut file, place, &mut buffer).unwrap_or(false)
    };
    places.filter(|(_, place)| is_torn(place)).map(|(span, _)| span).collect()
}

fn open(path: &Path) -> io::Result<(File, u64, SystemTime)> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    Ok((file, meta.len(), meta.modified()?))
}

/// Whether the bytes at a place are the right ones.
fn holds(file: &mut File, place: &Place, buffer: &mut [u8]) -> io::Result<bool> {
    file.seek(SeekFrom::Start(place.offset))?;
    let mut hasher = blake3::Hasher::new();
    let mut left = place.size;
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = file.read(&mut buffer[..most])?;
        if read == 0 {
            return Ok(false);
        }
        hasher.update(&buffer[..read]);
        left -= read as u64;
    }
    Ok(hasher.finalize().as_bytes() == &place.hash.0)
}

/// Whether a stored result that was never merged is still whole.
pub(crate) fn is_whole(dir: &Path, job: JobId, place: &Place) -> bool {
    let Ok(mut file) = File::open(results::path(dir, job)) else { return false };
    holds(&mut file, place, &mut vec![0; CHUNK]).unwrap_or(false)
}
