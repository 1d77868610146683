//! What the runs of a program left beside their answers: files in `/out`, and the ends of their stderr.

use std::fs::File;
use std::io;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use shoal_kinds::JobSpec;
use shoal_kinds::exec::left;
use shoal_kinds::form::{Record, Runs, records};
use shoal_protocol::{JobId, Span};
use shoal_scheduler::Place;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::{Path, Query};
use super::failures::{self, Names};
use super::jobs::{number, parse};
use super::range::{self, Asked};
use super::result::{Asks, open, read_lengths, segment};
use crate::driver::event::{Found, Merged};
use crate::error::{ApiError, JobError};
use crate::store::place::{Window, read_exact_at};
use crate::store::send::Extent;
use shoal_api::{ErrorJson, LeftFileJson, LeftJson, LeftListJson};

/// Runs told at once: with the ends of stderr at most two MiB.
const MOST: usize = 1000;
/// Bytes of files' paths told at once, with some for their sizes, but for those of the last run.
const MOST_PATHS: usize = 4 << 20;
const SIZE_BYTES: usize = 32;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_left)).routes(routes!(get_files))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Since {
    /// Leave out the items before this one. An answer lists 1000 runs at most, and `next` says where the rest begin.
    #[param(value_type = Option<u64>)]
    from: Option<String>,
}

/// What runs left beside their answers
///
/// Exec: of all runs so far that did not fail, those that left files in `/out` or wrote to stderr. `result.bytesLeft` of a job is 0 if there are none, and no run failed.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/left", tag = "results", security(("key" = [])),
    params(("id" = u64, Path), Since),
    responses(
        (status = 200, body = LeftListJson),
        (status = 400, description = "`from` is no number", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_left(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(which): Query<Since>,
) -> Result<Json<LeftListJson>, ApiError> {
    let id = parse(&id)?;
    let from = which.from.map(|from| number("from", &from)).transpose()?.unwrap_or(0);
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let listed = tokio::task::spawn_blocking(move || list(&app, id, &merged, from)).await;
    let listed = listed.map_err(|error| JobError::Disk(io::Error::other(error)))?;
    Ok(Json(listed?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Only this file, by its path in `/out`.
    path: Option<String>,
}

/// The files that a run left
///
/// Exec: the files that the run of item `item` left in `/out`; while the job runs, only once its answer is checked. For each the lengths of its path and of the file (little-endian u32 each),
/// then the path, with `/` between folders, then the file, in the order of their paths' bytes. With `path`, the file alone.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/result/items/{item}/files", tag = "results", security(("key" = [])),
    params(("id" = u64, Path), ("item" = u64, Path), Which),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, description = "There is no such job, item or file", body = ErrorJson),
        (status = 409, description = "Its answer is not computed or not checked yet, or the job is no exec", body = ErrorJson),
    )
)]
async fn get_files(
    State(app): State<App>,
    Path((id, item)): Path<(String, String)>,
    Query(which): Query<Which>,
) -> Result<Response, ApiError> {
    let (id, item) = (parse(&id)?, number("the item's number", &item)?);
    let (_, span, place) = segment(&app, id, item, Asks::Answer).await?;
    let read = tokio::task::spawn_blocking(move || {
        let Some(place) = place.filter(|place| place.failed.bytes > 0) else {
            return Ok(Vec::new());
        };
        let file = open(&app, id)?;
        let noted = noted(&file, span, place).map_err(JobError::Disk)?;
        let own = noted.into_iter().find(|noted| noted.item == item);
        own.map_or(Ok(Vec::new()), |own| own.files(&file)).map_err(JobError::Disk)
    });
    let packed = read.await.map_err(|error| JobError::Disk(io::Error::other(error)))??;
    let bytes = match which.path {
        None => packed,
        Some(path) => {
            let files = left::unpack(&packed).unwrap_or_default();
            let found = files.into_iter().find(|(name, _)| *name == path);
            found.ok_or(JobError::NoFile { job: id.0, item, path })?.1.to_vec()
        }
    };
    Ok(range::response(Asked::All, bytes.len() as u64, BYTES, Body::from(bytes)))
}

/// What is to be said of an item's run beside its answer, in sentences.
pub(super) async fn of_item(app: &App, job: JobId, item: u64) -> Result<Vec<String>, JobError> {
    let found = app.driver.segment(job, item).await?;
    let Some(Found { segment: Some((span, Some(place))), spec, .. }) = found else {
        return Ok(Vec::new());
    };
    if place.failed.bytes == 0 {
        return Ok(Vec::new());
    }
    let file = open(app, job)?;
    let said = tokio::task::spawn_blocking(move || sentences(&file, (span, place), item, &spec));
    let said = said.await.map_err(|error| JobError::Disk(io::Error::other(error)))?;
    said.map_err(JobError::Disk)
}

fn sentences(
    file: &File,
    (span, place): (Span, Place),
    item: u64,
    spec: &JobSpec,
) -> io::Result<Vec<String>> {
    let Some(own) = noted(file, span, place)?.into_iter().find(|noted| noted.item == item) else {
        return Ok(Vec::new());
    };
    let stderr = own.stderr(file)?;
    if let Some(end) = own.record.end {
        return Ok(vec![failures::why(end, &stderr, &spec.limits)]);
    }
    let files = own.listed(file)?;
    let count = (!files.is_empty()).then(|| match files.len() {
        1 => format!("it left a file in /out: {}", files[0].path),
        count => format!("it left {count} files in /out"),
    });
    let said = Some(stderr.trim()).filter(|stderr| !stderr.is_empty());
    Ok(count.into_iter().chain(said.map(|it| format!("the end of its stderr: {it}"))).collect())
}

fn list(app: &App, id: JobId, merged: &Merged, from: u64) -> Result<LeftListJson, JobError> {
    let mut told = LeftListJson::default();
    let placed = merged.segments.iter().filter_map(|(span, place)| place.map(|it| (*span, it)));
    let mut units = placed.filter(|(span, it)| it.failed.bytes > 0 && span.end() > from).peekable();
    if units.peek().is_none() {
        return Ok(told);
    }
    let (file, names, mut paths) = (open(app, id)?, Names::of(app, merged), 0);
    for (span, place) in units {
        for own in noted(&file, span, place).map_err(JobError::Disk)? {
            let item = own.item;
            if item < from || own.record.end.is_some() {
                continue;
            }
            if told.left.len() == MOST || paths >= MOST_PATHS {
                told.next = Some(item);
                return Ok(told);
            }
            let listed = own.listed(&file).map_err(JobError::Disk)?;
            paths += listed.iter().map(|file| file.path.len() + SIZE_BYTES).sum::<usize>();
            told.left.push(LeftJson {
                item,
                input: names.name(app, merged, item),
                stderr: own.stderr(&file).map_err(JobError::Disk)?,
                files: listed,
            });
        }
    }
    Ok(told)
}

/// A run of which a result says more than its answer.
pub(super) struct Noted {
    pub(super) item: u64,
    pub(super) record: Record,
    /// Where the end of its stderr lies in the results file; its files lie behind it.
    offset: u64,
}

impl Noted {
    pub(super) fn stderr(&self, file: &File) -> io::Result<String> {
        read(file, self.offset, u64::from(self.record.stderr)).map(|bytes| text(&bytes))
    }

    /// As they are packed.
    fn files(&self, file: &File) -> io::Result<Vec<u8>> {
        let behind = self.offset + u64::from(self.record.stderr);
        read(file, behind, u64::from(self.record.files))
    }

    /// Their paths and sizes, without a look at the files themselves; as far as the bytes make sense.
    fn listed(&self, file: &File) -> io::Result<Vec<LeftFileJson>> {
        let (start, size) =
            (self.offset + u64::from(self.record.stderr), u64::from(self.record.files));
        let mut window = Window::new(file, start..start + size);
        let mut files = Vec::new();
        let read = |at: u64, into: &mut [u8]| window.read(start + at, into);
        left::walk(size, read, |path, _, size| {
            files.push(LeftFileJson { path: path.to_owned(), size });
        })?;
        Ok(files)
    }
}

/// The runs of a unit that failed or left more than their answers.
pub(super) fn noted(file: &File, span: Span, place: Place) -> io::Result<Vec<Noted>> {
    let lengths = read_lengths(file, span, place)?;
    let runs = Runs(&lengths);
    let range = runs.records();
    let known = read(file, place.offset + range.start, range.end - range.start)?;
    let mut offset = place.offset + range.end;
    let noted = runs.noted().zip(records(&known)).map(|((index, _), record)| {
        let own = Noted { item: span.start + index, record, offset };
        offset += record.bytes_behind();
        own
    });
    Ok(noted.collect())
}

/// The parts of a unit that belong to its items from a place on: their lengths, their answers, their records and what is
/// behind these.
pub(super) fn from_item(
    file: &File,
    (span, place): (Span, Place),
    skip: u64,
) -> io::Result<[Extent; 4]> {
    let lengths = read_lengths(file, span, place)?;
    let (all, first) = (Runs(&lengths), usize::try_from(skip).map_err(io::Error::other)? * 4);
    let before = Runs(&lengths[..first]);
    let (answers, records) = (all.answers(), all.records());
    let noted = noted(file, span, place)?;
    let count = before.noted().count();
    let behind = noted.get(count).map_or(place.offset + place.size, |own| own.offset);
    let skipped: u64 = before.lengths().sum();
    let record = records.start + count as u64 * shoal_kinds::form::RECORD_BYTES;
    let extent = |from: u64, to: u64| Extent { offset: place.offset + from, len: to - from };
    let end = place.offset + place.size;
    Ok([
        extent(first as u64, lengths.len() as u64),
        extent(answers.start + skipped, answers.end),
        extent(record, records.end),
        Extent { offset: behind, len: end.saturating_sub(behind) },
    ])
}

fn read(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    read_exact_at(file, &mut bytes, offset).map(|()| bytes)
}

/// Without half a character at its start.
fn text(bytes: &[u8]) -> String {
    let half = bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
    String::from_utf8_lossy(&bytes[half..]).into_owned()
}
