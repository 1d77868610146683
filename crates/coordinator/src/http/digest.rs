//! Hashing what a job's user gets, for its receipt. Each unit is held against the hash it was merged with
//! on the way: nothing is signed that was not checked.

use std::fs::File;
use std::io;

use shoal_kinds::Form;
use shoal_protocol::{Hash, JobId, Span};
use shoal_scheduler::Place;

use super::App;
use super::picture;
use super::result::open;
use crate::driver::event::{Merged, Proven, Segment};
use crate::error::JobError;
use crate::store::place::read_exact_at;
use shoal_api::{ReceiptOutputJson, ReceiptWhatJson};

/// Read at a time when a result is hashed.
const CHUNK: u64 = 256 << 10;

pub(super) fn output(app: &App, proven: &Proven) -> Result<Option<ReceiptOutputJson>, JobError> {
    let Proven { receipt, merged: Merged { spec, segments, .. }, .. } = proven;
    let job = receipt.job;
    let mut hasher = blake3::Hasher::new();
    let form = spec.work.form();
    let what = match form {
        Form::Nothing => return Ok(None),
        Form::Tiles(render) => {
            let file = open(app, job)?;
            // Bands take tiles of many units, so units are looked at before.
            for (span, place) in placed(segments) {
                check(&file, job, span, place, |_, _| {})?;
            }
            for band in picture::bands(render, segments, Some(&file)) {
                hasher.update(&band.map_err(JobError::Disk)?);
            }
            ReceiptWhatJson::Pixels
        }
        Form::Items { .. } | Form::Answers | Form::Rows(_) => {
            hash_units(app, job, segments, |span| form.head_bytes(span), &mut hasher)?;
            ReceiptWhatJson::Bytes
        }
    };
    let hash = Hash(*hasher.finalize().as_bytes()).to_string();
    Ok(Some(ReceiptOutputJson { hash, size: hasher.count(), what }))
}

fn placed(segments: &[Segment]) -> impl Iterator<Item = (Span, Place)> {
    segments.iter().filter_map(|(span, place)| place.map(|place| (*span, place)))
}

/// All units in order, each without its head and without what says how its failed runs ended.
fn hash_units(
    app: &App,
    job: JobId,
    segments: &[Segment],
    head: impl Fn(Span) -> u64,
    hasher: &mut blake3::Hasher,
) -> Result<(), JobError> {
    let mut units = placed(segments).peekable();
    if units.peek().is_none() {
        return Ok(());
    }
    let file = open(app, job)?;
    for (span, place) in units {
        let head = head(span);
        check(&file, job, span, place, |at, part| {
            let end = place.size.saturating_sub(place.failed.bytes);
            let within = |edge: u64| usize::try_from(edge.saturating_sub(at)).unwrap_or(usize::MAX);
            let (from, until) = (within(head), within(end).min(part.len()));
            hasher.update(part.get(from..until).unwrap_or_default());
        })?;
    }
    Ok(())
}

/// Reads a unit, gives its bytes with their position in it, and says whether they are those merged.
fn check(
    file: &File,
    job: JobId,
    span: Span,
    place: Place,
    mut take: impl FnMut(u64, &[u8]),
) -> Result<(), JobError> {
    let damaged = || JobError::Damaged { job: job.0, start: span.start, end: span.end() };
    let mut buffer = vec![0; CHUNK.min(place.size) as usize];
    let mut unit = blake3::Hasher::new();
    let mut done = 0;
    while done < place.size {
        let part = &mut buffer[..CHUNK.min(place.size - done) as usize];
        read_exact_at(file, part, place.offset + done).map_err(|error| {
            let is_cut = error.kind() == io::ErrorKind::UnexpectedEof;
            if is_cut { damaged() } else { JobError::Disk(error) }
        })?;
        unit.update(part);
        take(done, part);
        done += part.len() as u64;
    }
    if unit.finalize().as_bytes() == &place.hash.0 { Ok(()) } else { Err(damaged()) }
}
