//! What a job gave: its merged units in order, straight from the results file.

use std::fs::File;
use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use shoal_kinds::form::{LENGTH_BYTES, Runs};
use shoal_kinds::{Form, JobSpec};
use shoal_protocol::{JobId, Span};
use shoal_scheduler::{JobState, Place};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::{Path, Query};
use super::jobs::{number, parse};
use super::partial;
use super::range::{self, Asked};
use crate::driver::event::{Found, Merged, Segment};
use crate::error::{ApiError, JobError};
use crate::store::place::read_exact_at;
use crate::store::results;
use crate::store::send::{self, Extent};
use shoal_api::{ErrorJson, TilesJson};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_result))
        .routes(routes!(get_item))
        .routes(routes!(get_ends))
}

/// The whole result, or a part of it
///
/// Map: the array's bytes. Simulation: the cells of all rows. Render: the tiles in order, each full size. Exec: all answers, one after the other. Model: a row for each item, which holds its outputs one after the other.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/result", tag = "results", security(("key" = [])),
    params(
        ("id" = u64, Path),
        ("partial" = Option<String>, Query, description = "`filled`: of a job that failed or was cancelled, what is done; the rest is filled with NaN, or 0 for integers and pictures. Render only: 1 lists the tiles that are done"),
        ("range" = Option<String>, Header, description = "bytes=FIRST-LAST"),
    ),
    responses(
        (status = 200, content(
            (Vec<u8> = "application/octet-stream"),
            (TilesJson = "application/json"),
        )),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "`partial` is another word", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "The job is not done", body = ErrorJson),
        (status = 416, description = "The range lies outside the result", body = ErrorJson),
    )
)]
async fn get_result(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(Partial { partial }): Query<Partial>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    match partial.as_deref() {
        None => {}
        Some(partial::FILLED) => return partial::filled(&app, id, &headers, Vec::new()).await,
        Some(partial::TILES) => {
            return Ok(Json(TilesJson { tiles: tiles_done(&app, id).await? }).into_response());
        }
        Some(word) => return Err(partial::unknown(word, "`filled`, or 1 for the tiles")),
    }
    let merged = done(&app, id).await?;
    let extents = extents(&merged);
    let size = extents.iter().map(|extent| extent.len).sum();
    let asked = Asked::of(&headers, size);
    if asked == Asked::Nothing {
        return Err(JobError::Range { size }.into());
    }
    let body = match size {
        0 => Body::empty(),
        _ => {
            let file = open(&app, id)?;
            let part = cut(&extents, asked.extent(size));
            send::body(file, part).map_err(JobError::Disk)?
        }
    };
    Ok(range::response(asked, size, BYTES, body))
}

/// The answer of one run
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/result/items/{item}", tag = "results", security(("key" = [])),
    params(("id" = u64, Path), ("item" = u64, Path, description = "Counted from 0")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "Not computed yet, or no exec", body = ErrorJson),
    )
)]
async fn get_item(
    State(app): State<App>,
    Path((id, item)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let (id, item) = (parse(&id)?, number("the item's number", &item)?);
    let (_, span, place) = segment(&app, id, item, Asks::Answer).await?;
    let Some(place) = place else {
        return Ok(range::response(Asked::All, 0, BYTES, Body::empty()));
    };
    let file = open(&app, id)?;
    let extent = run_extent(&file, span, place, item).map_err(JobError::Disk)?;
    let body = send::body(file, [extent]).map_err(JobError::Disk)?;
    Ok(range::response(Asked::All, extent.len, BYTES, body))
}

/// Where each answer ends in the whole result
///
/// Little-endian u64, one for each item.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/ends", tag = "results", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "Not done, or no exec", body = ErrorJson),
    )
)]
async fn get_ends(State(app): State<App>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let merged = done(&app, id).await?;
    if merged.spec.work.form() != Form::Answers {
        return Err(JobError::WrongKind { job: id.0, expected: "exec" }.into());
    }
    let file = open(&app, id)?;
    let ends = tokio::task::spawn_blocking(move || read_ends(&file, &merged.segments)).await;
    let ends = ends.map_err(io::Error::other).and_then(|ends| ends).map_err(JobError::Disk)?;
    Ok(range::response(Asked::All, ends.len() as u64, BYTES, Body::from(ends)))
}

#[derive(Deserialize)]
pub(super) struct Partial {
    pub(super) partial: Option<String>,
}

async fn tiles_done(app: &App, id: JobId) -> Result<Vec<u64>, JobError> {
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    if !matches!(merged.spec.work.form(), Form::Tiles(_)) {
        return Err(JobError::WrongKind { job: id.0, expected: "render" });
    }
    Ok(merged.segments.iter().flat_map(|(span, _)| span.start..span.end()).collect())
}

/// What a question is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Answer,
    Tile,
}

/// The merged unit that holds an item.
pub(super) async fn segment(
    app: &App,
    id: JobId,
    item: u64,
    asks: Asks,
) -> Result<(Arc<JobSpec>, Span, Option<Place>), JobError> {
    let found = app.driver.segment(id, item).await?;
    let Found { spec, segment, unsure } = found.ok_or(JobError::Missing { job: id.0 })?;
    let (right, expected) = match asks {
        Asks::Answer => (spec.work.form() == Form::Answers, "exec"),
        Asks::Tile => (matches!(spec.work.form(), Form::Tiles(_)), "render"),
    };
    if !right {
        return Err(JobError::WrongKind { job: id.0, expected });
    }
    if item >= spec.items {
        return Err(JobError::NoItem { job: id.0, item, items: spec.items });
    }
    let (span, place) = segment.ok_or(JobError::ItemNotDone { job: id.0, item })?;
    // A picture that grows is only looked at; an answer is taken for what it is.
    if unsure && asks == Asks::Answer {
        return Err(JobError::ItemUnsure { job: id.0, item });
    }
    Ok((spec, span, place))
}

pub(super) fn open(app: &App, job: JobId) -> Result<File, JobError> {
    File::open(results::path(&app.results, job)).map_err(JobError::Disk)
}

pub(super) async fn done(app: &App, id: JobId) -> Result<Merged, JobError> {
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let state = match merged.state {
        JobState::Done => return Ok(merged),
        JobState::Running => "running",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    };
    Err(JobError::NotDone { job: id.0, state })
}

/// The parts of the results file that make up the result, in order.
pub(super) fn extents(merged: &Merged) -> Vec<Extent> {
    let form = merged.spec.work.form();
    let placed = merged.segments.iter().filter_map(|(span, place)| place.map(|p| (span, p)));
    let extent = |(span, place): (&Span, Place)| {
        let head = form.head_bytes(*span);
        let len = place.size.saturating_sub(head + place.failed.bytes);
        Extent { offset: place.offset + head, len }
    };
    placed.map(extent).collect()
}

/// The part of a sequence of extents that a range of the whole covers.
pub(super) fn cut(extents: &[Extent], asked: Extent) -> Vec<Extent> {
    let (first, end) = (asked.offset, asked.offset + asked.len);
    let mut at = 0;
    let mut part = Vec::new();
    for extent in extents {
        let (from, to) = (first.max(at), end.min(at + extent.len));
        if from < to {
            part.push(Extent { offset: extent.offset + (from - at), len: to - from });
        }
        at += extent.len;
        if at >= end {
            break;
        }
    }
    part
}

fn run_extent(file: &File, span: Span, place: Place, item: u64) -> io::Result<Extent> {
    let lengths = read_lengths(file, span, place)?;
    let before = usize::try_from(item - span.start).map_err(io::Error::other)?;
    let skip: u64 = Runs(&lengths).lengths().take(before).sum();
    let len = Runs(&lengths).lengths().nth(before).unwrap_or(0);
    Ok(Extent { offset: place.offset + span.len * LENGTH_BYTES + skip, len })
}

fn read_ends(file: &File, segments: &[Segment]) -> io::Result<Vec<u8>> {
    let items: u64 = segments.iter().map(|(span, _)| span.len).sum();
    let mut ends = Vec::with_capacity(usize::try_from(items).map_err(io::Error::other)? * 8);
    let mut end = 0_u64;
    for (span, place) in segments {
        let Some(place) = place else { continue };
        for len in Runs(&read_lengths(file, *span, *place)?).lengths() {
            end += len;
            ends.extend(end.to_le_bytes());
        }
    }
    Ok(ends)
}

pub(super) fn read_lengths(file: &File, span: Span, place: Place) -> io::Result<Vec<u8>> {
    let mut lengths = vec![0; usize::try_from(span.len * LENGTH_BYTES).map_err(io::Error::other)?];
    read_exact_at(file, &mut lengths, place.offset)?;
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, len: u64) -> Extent {
        Extent { offset, len }
    }

    #[test]
    fn a_range_takes_its_share_of_each_extent() {
        let whole = [extent(100, 10), extent(50, 5), extent(200, 10)];
        assert_eq!(cut(&whole, extent(0, 25)), whole);
        assert_eq!(cut(&whole, extent(8, 4)), [extent(108, 2), extent(50, 2)]);
        assert_eq!(cut(&whole, extent(15, 1)), [extent(200, 1)]);
        assert_eq!(cut(&whole, extent(24, 1)), [extent(209, 1)]);
    }
}
