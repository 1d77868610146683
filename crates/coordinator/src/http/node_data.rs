//! The data plane of nodes: inputs out, results in.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;
use shoal_protocol::{Attempt, Hash, JobId};
use shoal_scheduler::{Failed, Place};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::Path;
use super::guard::SHOAL_HASH;
use super::jobs::number;
use super::{App, blobs};
use crate::driver::event::{Event, ReserveError, Reserved, Writer};
use crate::error::{ApiError, AuthError, BlobError, RequestError, ResultError};
use crate::store::facts::Stored;
use crate::store::place::{Window, is_full, read_exact_at};
use crate::store::receive::{ReceiveError, Received, Target, discard, receive};
use crate::store::results::Region;
use shoal_api::{BlobJson, ErrorJson};
use shoal_kinds::form::{LENGTH_BYTES, Runs, runs_fault, short};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_input))
        .routes(routes!(get_pieces))
        .routes(routes!(put_result))
}

/// An input or a part of a checkpoint, or some bytes of it
#[utoipa::path(
    get, path = "/node/blobs/{hash}", tag = "node", security(("session" = [])),
    params(
        ("hash" = String, Path, description = "BLAKE3, 64 hexadecimal digits"),
        ("range" = Option<String>, Header, description = "bytes=FIRST-LAST"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 416, body = ErrorJson),
    )
)]
async fn get_input(
    State(app): State<App>,
    Path(hash): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (parts, body) = blobs::serve(&[&app.blobs, &app.kept], &hash, &headers)?.into_parts();
    let served = app.pieces.counter();
    let counted = body.into_data_stream().inspect_ok(move |bytes| {
        served.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    });
    Ok(Response::from_parts(parts, Body::from_stream(counted)))
}

/// The hashes of an input's pieces of 1 MiB, 32 bytes each: what nodes check by what they get from each other
#[utoipa::path(
    get, path = "/node/blobs/{hash}/pieces", tag = "node", security(("session" = [])),
    params(("hash" = String, Path, description = "BLAKE3, 64 hexadecimal digits")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_pieces(
    State(app): State<App>,
    Path(hash): Path<String>,
) -> Result<Response, ApiError> {
    let hash = blobs::parse(&hash)?;
    let found = app.blobs.open_blob(hash).map_err(BlobError::Disk)?;
    let (file, _) = found.ok_or_else(|| BlobError::Missing { hash: hash.to_string() })?;
    let list = app.pieces.of(hash, file).await.map_err(BlobError::Disk)?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], list).into_response())
}

/// A unit's result, stored before it is announced
#[utoipa::path(
    put, path = "/node/results/{job}/{attempt}", tag = "node", security(("session" = [])),
    params(
        ("job" = u64, Path),
        ("attempt" = u64, Path),
        ("x-shoal-hash" = Option<String>, Header, description = "BLAKE3 the bytes must have"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = BlobJson),
        (status = 401, body = ErrorJson),
        (status = 409, description = "The attempt is not lent any more, or has another result", body = ErrorJson),
        (status = 411, description = "No Content-Length", body = ErrorJson),
        (status = 413, description = "Larger than this unit's result may be", body = ErrorJson),
        (status = 422, description = "Wrong size, shape or hash", body = ErrorJson),
        (status = 507, description = "The disk is full", body = ErrorJson),
    )
)]
async fn put_result(
    State(app): State<App>,
    Path((job, attempt)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<BlobJson>, ApiError> {
    let job = JobId(number("the job's number", &job)?);
    let attempt = Attempt(number("the attempt", &attempt)?);
    let conn = app.auth.session(&headers).ok_or(AuthError::Session)?;
    let size = length(&headers)?;
    let Reserved { region, runs } =
        match app.driver.reserve(conn, job, attempt, size, Writer::Here).await? {
            Ok(reserved) => reserved,
            // Its sender did not hear that it came the first time.
            Err(ReserveError::Stored(Place { size: stored, hash, .. })) if stored == size => {
                discard(body).await;
                check_hash(&headers, hash)?;
                return Ok(Json(BlobJson { hash: hash.to_string(), size }));
            }
            Err(error) => {
                discard(body).await;
                return Err(ResultError::Reserve(error).into());
            }
        };
    let (offset, file) = (region.offset, Arc::clone(&region.file));
    let target = Target { file, offset, most: size };
    let Received { written, hash, end } = receive(body, target).await;
    if matches!(&end, Err(ReceiveError::Disk(error)) if is_full(error)) {
        app.driver.tell(Event::Unkept { conn, attempt }).await?;
    }
    end.map_err(|error| match error {
        ReceiveError::TooLong => ResultError::Length { expected: size, found: size + 1 },
        ReceiveError::Client(message) => ResultError::Client(message),
        ReceiveError::Disk(error) => ResultError::Disk(error),
    })?;
    if written != size {
        return Err(ResultError::Length { expected: size, found: written }.into());
    }
    let hash = Hash(*hash.as_bytes());
    check_hash(&headers, hash)?;
    if let Some(runs) = runs {
        check_runs(&region, runs, size).await?;
    }
    // How many failed is counted once its node announces it.
    let place = Place { offset, size, hash, failed: Failed::default() };
    app.driver.stored(Stored { attempt, job, place }).await?;
    Ok(Json(BlobJson { hash: hash.to_string(), size }))
}

pub(super) fn length(headers: &HeaderMap) -> Result<u64, ApiError> {
    let value = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    value.and_then(|text| text.parse().ok()).ok_or_else(|| RequestError::LengthMissing.into())
}

fn check_hash(headers: &HeaderMap, found: Hash) -> Result<(), ResultError> {
    let Some(value) = headers.get(SHOAL_HASH) else { return Ok(()) };
    let said = value.to_str().unwrap_or_default();
    if said.parse() == Ok(found) {
        return Ok(());
    }
    Err(ResultError::Mismatch { expected: said.into(), found: found.to_string() })
}

/// The lengths at the start of an exec result, and what it says of failed runs, must add up to its size, and what its runs
/// left must be files.
pub(super) async fn check_runs(
    region: &Region,
    runs: (u64, u64),
    size: u64,
) -> Result<(), ResultError> {
    let region = region.clone();
    let checked = tokio::task::spawn_blocking(move || look_at_runs(&region, runs, size)).await;
    checked.unwrap_or_else(|error| Err(ResultError::Disk(io::Error::other(error))))
}

fn look_at_runs(region: &Region, (runs, most): (u64, u64), size: u64) -> Result<(), ResultError> {
    let head = runs.saturating_mul(LENGTH_BYTES);
    if head > size {
        return Err(ResultError::Shape(short(runs)));
    }
    let read = |range: Range<u64>| {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
        let read = read_exact_at(&region.file, &mut bytes, region.offset + range.start);
        read.map(|()| bytes).map_err(ResultError::Disk)
    };
    let lengths = read(0..head)?;
    let records = match Runs(&lengths).records() {
        range if range.end <= size => read(range)?,
        _ => Vec::new(),
    };
    let mut window = Window::new(&region.file, region.offset..region.offset + size);
    let read = |at: u64, into: &mut [u8]| window.read(region.offset + at, into);
    let fault = runs_fault(&lengths, &records, (size, most), read).map_err(ResultError::Disk)?;
    fault.map_or(Ok(()), |fault| Err(ResultError::Shape(fault)))
}
