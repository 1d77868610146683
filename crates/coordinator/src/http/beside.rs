//! For those beside the coordinator, who can read its data folder: they are told where bytes lie and move them themselves, once,
//! through no socket. They prove it by a word that stands in the folder, so no path is ever taken from a request:
//! whoever is somewhere else, or of another pool, is refused and takes the usual way.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use shoal_protocol::{Attempt, JobId};
use shoal_scheduler::{Failed, Place};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::Path;
use super::jobs::{collect, number, parse};
use super::result::{done, extents};
use super::{App, blobs, node_data};
use crate::data::{BLOBS, RESULTS};
use crate::driver::event::{ReserveError, Reserved, Writer};
use crate::error::{
    ApiError, AuthError, BlobError, JobError, RequestError, ResultError, disk_full,
};
use crate::health::Trouble;
use crate::store::facts::Stored;
use crate::store::send::Extent;
use shoal_api::{
    BlobJson, DraftJson, DraftRequest, ErrorJson, FileJson, PartJson, PlacedRequest, SizeRequest,
};

/// A few numbers and names.
const MAX_REQUEST_BYTES: usize = 4 << 10;
/// Parts named at most: reading more than these one by one is no quicker than having them sent.
const MAX_PARTS: u64 = 10_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(post_draft))
        .routes(routes!(put_draft))
        .routes(routes!(get_result_file))
}

pub(super) fn node_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_input_file)).routes(routes!(post_place, put_place))
}

/// Names a file of the data folder for a blob that is written there
///
/// For programs that can read the data folder.
#[utoipa::path(
    post, path = "/api/v1/drafts", tag = "blobs", security(("key" = [])),
    params(("x-shoal-beside" = String, Header, description = "The word `beside` of running.json")),
    request_body = SizeRequest,
    responses(
        (status = 200, body = DraftJson),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "Not beside the coordinator", body = ErrorJson),
        (status = 507, description = "The disk is full", body = ErrorJson),
    )
)]
async fn post_draft(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<DraftJson>, ApiError> {
    beside(&app, &headers)?;
    let SizeRequest { size } = read(body).await?;
    if app.driver.trouble() == Some(Trouble::DiskFull) {
        return Err(disk_full());
    }
    let (name, may_be_here) = app.blobs.draft(size).map_err(BlobError::Disk)?;
    Ok(Json(DraftJson { file: format!("{DRAFTS}{name}"), may_be_here }))
}

/// Where drafts are, in the data folder.
const DRAFTS: &str = "blobs/partial/";

/// Makes a blob of a draft that is complete
///
/// The hash is believed: who can write the draft could write the blob itself.
#[utoipa::path(
    put, path = "/api/v1/blobs/{hash}/draft", tag = "blobs", security(("key" = [])),
    params(
        ("hash" = String, Path, description = "BLAKE3, 64 hexadecimal digits"),
        ("x-shoal-beside" = String, Header, description = "The word `beside` of running.json"),
    ),
    request_body = DraftRequest,
    responses(
        (status = 201, body = BlobJson),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "Not beside the coordinator", body = ErrorJson),
        (status = 404, description = "There is no such draft", body = ErrorJson),
    )
)]
async fn put_draft(
    State(app): State<App>,
    Path(hash): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<BlobJson>), ApiError> {
    beside(&app, &headers)?;
    let hash = blobs::parse(&hash)?;
    let DraftRequest { file } = read(body).await?;
    let draft = file.strip_prefix(DRAFTS).unwrap_or_default();
    let blob = app.blobs.adopt(draft, hash).map_err(BlobError::Disk)?;
    let blob = blob.ok_or_else(|| BlobError::Missing { hash: hash.to_string() })?;
    Ok((StatusCode::CREATED, Json(BlobJson { hash: hash.to_string(), size: blob.size })))
}

/// Where the result lies
///
/// For programs that can read the data folder. Bytes that were named once stay as they are while the job is kept.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/result/file", tag = "results", security(("key" = [])),
    params(
        ("id" = u64, Path),
        ("x-shoal-beside" = String, Header, description = "The word `beside` of running.json"),
    ),
    responses(
        (status = 200, body = FileJson),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "Not beside the coordinator, or in too many parts", body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "The job is not done", body = ErrorJson),
    )
)]
async fn get_result_file(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<FileJson>, ApiError> {
    beside(&app, &headers)?;
    let id = parse(&id)?;
    // Counted before anything is listed: whoever asks for too much must not keep the driver from its other work.
    let job = app.driver.job(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    if job.units_done > MAX_PARTS {
        return Err(AuthError::NotBeside.into());
    }
    let parts = extents(&done(&app, id).await?).iter().map(part).collect();
    Ok(Json(FileJson { file: result_file(id), parts }))
}

/// Where an input lies
#[utoipa::path(
    get, path = "/node/blobs/{hash}/file", tag = "node", security(("session" = [])),
    params(
        ("hash" = String, Path, description = "BLAKE3, 64 hexadecimal digits"),
        ("x-shoal-beside" = String, Header, description = "The word `beside` of running.json"),
    ),
    responses(
        (status = 200, body = FileJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "Not the operator's own node, or not beside", body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_input_file(
    State(app): State<App>,
    Path(hash): Path<String>,
    headers: HeaderMap,
) -> Result<Json<FileJson>, ApiError> {
    app.auth.session_beside(&headers).ok_or(AuthError::NotBeside)?;
    let hash = blobs::parse(&hash)?;
    let found = app.blobs.find(hash).map_err(BlobError::Disk)?;
    let blob = found.ok_or_else(|| BlobError::Missing { hash: hash.to_string() })?;
    let name = hash.to_string();
    let file = format!("{BLOBS}/{}/{name}", &name[..2]);
    Ok(Json(FileJson { file, parts: vec![PartJson { offset: 0, size: blob.size }] }))
}

/// Where a unit's result belongs
#[utoipa::path(
    post, path = "/node/results/{job}/{attempt}/place", tag = "node", security(("session" = [])),
    params(
        ("job" = u64, Path),
        ("attempt" = u64, Path),
        ("x-shoal-beside" = String, Header, description = "The word `beside` of running.json"),
    ),
    request_body = SizeRequest,
    responses(
        (status = 200, body = FileJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "Not the operator's own node, or not beside", body = ErrorJson),
        (status = 409, description = "The attempt is not lent any more, or has a result", body = ErrorJson),
        (status = 413, description = "Larger than this unit's result may be", body = ErrorJson),
        (status = 422, description = "Wrong size", body = ErrorJson),
        (status = 507, description = "The disk is full", body = ErrorJson),
    )
)]
async fn post_place(
    State(app): State<App>,
    Path((job, attempt)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<FileJson>, ApiError> {
    let (job, attempt) = unit(&job, &attempt)?;
    let conn = app.auth.session_beside(&headers).ok_or(AuthError::NotBeside)?;
    let SizeRequest { size } = read(body).await?;
    let reserved = app.driver.reserve(conn, job, attempt, size, Writer::Beside).await?;
    let Reserved { region, .. } = reserved.map_err(ResultError::Reserve)?;
    let parts = vec![PartJson { offset: region.offset, size }];
    Ok(Json(FileJson { file: result_file(job), parts }))
}

/// A unit's result is where it belongs
#[utoipa::path(
    put, path = "/node/results/{job}/{attempt}/place", tag = "node", security(("session" = [])),
    params(
        ("job" = u64, Path),
        ("attempt" = u64, Path),
        ("x-shoal-beside" = String, Header, description = "The word `beside` of running.json"),
    ),
    request_body = PlacedRequest,
    responses(
        (status = 200, body = BlobJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "Not the operator's own node, or not beside", body = ErrorJson),
        (status = 409, description = "The attempt is not lent any more, has another result, or another place", body = ErrorJson),
        (status = 422, description = "Wrong size or shape", body = ErrorJson),
    )
)]
async fn put_place(
    State(app): State<App>,
    Path((job, attempt)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<BlobJson>, ApiError> {
    let (job, attempt) = unit(&job, &attempt)?;
    let conn = app.auth.session_beside(&headers).ok_or(AuthError::NotBeside)?;
    let PlacedRequest { offset, size, hash } = read(body).await?;
    let hash = blobs::parse(&hash)?;
    let stored = BlobJson { hash: hash.to_string(), size };
    let part = Extent { offset, len: size };
    let Reserved { region, runs } = match app.driver.placed(conn, job, attempt, part).await? {
        Ok(reserved) => reserved,
        // Its writer did not hear that it counts.
        Err(ReserveError::Stored(place)) if (place.hash, place.size) == (hash, size) => {
            return Ok(Json(stored));
        }
        Err(error) => return Err(ResultError::Reserve(error).into()),
    };
    if let Some(runs) = runs {
        node_data::check_runs(&region, runs, size).await?;
    }
    let place = Place { offset, size, hash, failed: Failed::default() };
    app.driver.stored(Stored { attempt, job, place }).await?;
    Ok(Json(stored))
}

fn beside(app: &App, headers: &HeaderMap) -> Result<(), AuthError> {
    if app.auth.is_beside(headers) { Ok(()) } else { Err(AuthError::NotBeside) }
}

async fn read<T: DeserializeOwned>(body: Body) -> Result<T, ApiError> {
    let body = collect(body, MAX_REQUEST_BYTES).await?;
    serde_json::from_slice(&body)
        .map_err(|error| RequestError::Unreadable { what: "body", why: error.to_string() }.into())
}

fn unit(job: &str, attempt: &str) -> Result<(JobId, Attempt), ApiError> {
    Ok((JobId(number("the job's number", job)?), Attempt(number("the attempt", attempt)?)))
}

fn result_file(job: JobId) -> String {
    format!("{RESULTS}/{}", crate::store::results::name(job))
}

fn part(extent: &Extent) -> PartJson {
    PartJson { offset: extent.offset, size: extent.len }
}
