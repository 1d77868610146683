//! The answers of a program while its job runs: what is done from an item on, in order, as far as nothing is missing.

use std::fs::File;
use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use serde::Deserialize;
use shoal_kinds::Form;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::{Path, Query};
use super::jobs::{number, parse, truth};
use super::left::from_item;
use super::range::{self, Asked};
use super::result::open;
use crate::driver::event::{Prefix, Segment};
use crate::error::{ApiError, JobError};
use crate::store::send::{self, Extent};
use shoal_api::ErrorJson;

/// Units in one answer: their lengths stand in a header, which clients take up to some kilobytes.
const MOST_UNITS: usize = 256;
/// No more units after so many bytes: whoever asks has something to do with them first.
const ENOUGH_BYTES: u64 = 16 << 20;

/// How many runs each unit of the body has.
const RUNS: &str = "x-shoal-runs";
/// How many units of the job were taken back so far, because somebody who computed or checked them is not believed any more.
const TAKEN_BACK: &str = "x-shoal-taken-back";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_answers))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// The first item, counted from 0.
    #[param(value_type = Option<u64>)]
    from: Option<String>,
    /// Also what the runs left beside their answers. Default: false.
    #[param(value_type = Option<bool>)]
    left: Option<String>,
}

/// The answers so far, in order
///
/// Exec only, also while the job runs: the answers from item `from` on, up to the first one that is not there yet. They come in groups: the header
/// `x-shoal-runs` says how many answers each group has, separated by commas. A group is the length of each of its answers (little-endian u32;
/// the highest bit is set if the program failed, the next one if it did not and left files in `/out` or wrote to stderr), then the answers. With `left=true`,
/// for each answer with one of these bits there follow 8 bytes: an i32 and a u32, whose lowest 29 bits are the length of the end of its stderr; for a program that
/// did not fail, the i32 is the length of its files. After all of these, for each such answer come the end of its stderr and its files (as in `result/items/{item}/files`). One response does not hold all there is: ask again from the item after the
/// last one. Nothing in the body means that the next answer is not there yet. Later checks may take an answer back, and the header `x-shoal-taken-back`
/// counts how often that happened.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/answers", tag = "results", security(("key" = [])),
    params(("id" = u64, Path), Which),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "`from` is no number, or `left` neither true nor false", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 404, description = "There is no such job, or no such item", body = ErrorJson),
        (status = 409, description = "The job is no exec", body = ErrorJson),
    )
)]
async fn get_answers(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let from = which.from.map(|from| number("from", &from)).transpose()?.unwrap_or(0);
    let with_left = which.left.map(|left| truth("left", &left)).transpose()?.unwrap_or(false);
    let prefix = app.driver.prefix(id, from, MOST_UNITS).await?;
    let Prefix { spec, segments, taken_back } = prefix.ok_or(JobError::Missing { job: id.0 })?;
    if spec.work.form() != Form::Answers {
        return Err(JobError::WrongKind { job: id.0, expected: "exec" }.into());
    }
    if from > spec.items {
        return Err(JobError::NoItem { job: id.0, item: from, items: spec.items }.into());
    }
    let (runs, size, body) = match segments.is_empty() {
        true => (Vec::new(), 0, Body::empty()),
        false => {
            let file = open(&app, id)?;
            let found = tokio::task::spawn_blocking(move || {
                groups(&file, from, with_left, &segments)
                    .map(|(runs, extents)| (file, runs, extents))
            });
            let found = found.await.map_err(io::Error::other).and_then(|found| found);
            let (file, runs, extents) = found.map_err(JobError::Disk)?;
            let size = extents.iter().map(|extent| extent.len).sum();
            (runs, size, send::body(file, extents).map_err(JobError::Disk)?)
        }
    };
    let mut response = range::response(Asked::All, size, BYTES, body);
    let runs: Vec<String> = runs.iter().map(u64::to_string).collect();
    let headers = response.headers_mut();
    if let Ok(runs) = HeaderValue::from_str(&runs.join(",")) {
        headers.insert(RUNS, runs);
    }
    headers.insert(TAKEN_BACK, taken_back.into());
    Ok(response)
}

/// How many runs each unit has from an item on, and where what belongs to them is.
fn groups(
    file: &File,
    from: u64,
    with_left: bool,
    units: &[Segment],
) -> io::Result<(Vec<u64>, Vec<Extent>)> {
    let (mut runs, mut extents, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (span, place) in units {
        let Some(place) = place else { break };
        let skip = from.saturating_sub(span.start);
        let left_out = if with_left { 0 } else { place.failed.bytes };
        let all = place.size.saturating_sub(left_out);
        if skip == 0 {
            extents.push(Extent { offset: place.offset, len: all });
        } else {
            let parts = from_item(file, (*span, *place), skip)?;
            extents.extend(&parts[..if with_left { 4 } else { 2 }]);
        }
        runs.push(span.len - skip);
        bytes += all;
        if bytes >= ENOUGH_BYTES {
            break;
        }
    }
    Ok((runs, extents))
}
