//! After a start: which of the bytes that facts speak of are really there. A killed process loses
//! nothing it wrote, a machine that lost power may; what is missing is computed again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use shoal_protocol::{JobId, Span};
use shoal_scheduler::Place;

use super::results;

/// Read at a time: large enough for the disk, small enough for the cache.
const CHUNK: usize = 256 << 10;

/// The spans of a job whose bytes are missing or not those that were merged.
pub(crate) fn torn(dir: &Path, job: JobId, merged: &[(Span, Option<Place>)]) -> Vec<Span> {
    let places = merged.iter().filter_map(|(span, place)| place.map(|place| (*span, place)));
    let mut places = places.peekable();
    if places.peek().is_none() {
        return Vec::new();
    }
    let Ok(mut file) = File::open(results::path(dir, job)) else {
        return places.map(|(span, _)| span).collect();
    };
    let mut buffer = vec![0; CHUNK];
    places
        .filter(|(_, place)| !holds(&mut file, place, &mut buffer).unwrap_or(false))
        .map(|(span, _)| span)
        .collect()
}

/// Whether the bytes at a place are the right ones.
pub(crate) fn holds(file: &mut File, place: &Place, buffer: &mut [u8]) -> io::Result<bool> {
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
