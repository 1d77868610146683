//! Bytes in and out.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use shoal_protocol::Hash;
use shoal_protocol::id::clip;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::Path;
use super::guard::UPLOAD_LENGTH;
use super::range::{self, Asked};
use crate::error::{ApiError, BlobError, RequestError, UPLOAD_OFFSET, disk_full};
use crate::health::Trouble;
use crate::store::blobs::{Blobs, Upload};
use crate::store::receive::discard;
use crate::store::send;
use shoal_api::{BlobJson, ErrorJson, PartialJson};

pub(super) const BYTES: &str = "application/octet-stream";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(post_blob)).routes(routes!(get_blob, head_blob, put_blob))
}

/// Stores a body under its hash
#[utoipa::path(
    post, path = "/api/v1/blobs", tag = "blobs", security(("key" = [])),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, body = BlobJson),
        (status = 400, description = "The body did not arrive whole", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 507, description = "The disk is full", body = ErrorJson),
    )
)]
async fn post_blob(State(app): State<App>, body: Body) -> Result<Response, ApiError> {
    if app.driver.trouble() == Some(Trouble::DiskFull) {
        discard(body).await;
        return Err(disk_full());
    }
    let blob = app.blobs.post(body, u64::MAX).await?;
    Ok(created(blob.hash, blob.size))
}

/// Whether a blob is stored, or how much of its upload is held
#[utoipa::path(
    head, path = "/api/v1/blobs/{hash}", tag = "blobs", security(("key" = [])),
    params(("hash" = String, Path, description = "BLAKE3, 64 hexadecimal digits")),
    responses(
        (status = 200, description = "Stored; Content-Length is its size"),
        (status = 401, description = "Wrong key"),
        (status = 404, description = "Not stored; Upload-Offset is how much of an upload is held"),
    )
)]
async fn head_blob(State(app): State<App>, Path(hash): Path<String>) -> Result<Response, ApiError> {
    let hash = parse(&hash)?;
    let mut response = StatusCode::OK.into_response();
    match app.blobs.find(hash).map_err(BlobError::Disk)? {
        Some(blob) => {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_LENGTH, blob.size.into());
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(BYTES));
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        None => {
            *response.status_mut() = StatusCode::NOT_FOUND;
            let held = app.blobs.held(hash).map_err(BlobError::Disk)?;
            response.headers_mut().insert(UPLOAD_OFFSET, held.into());
        }
    }
    Ok(response)
}

/// Sends a blob, or goes on with an upload that broke off
///
/// The body is appended at `Upload-Offset`. With `Upload-Length` the blob is complete, and its hash
/// checked, once that many bytes are held.
#[utoipa::path(
    put, path = "/api/v1/blobs/{hash}", tag = "blobs", security(("key" = [])),
    params(
        ("hash" = String, Path, description = "BLAKE3, 64 hexadecimal digits"),
        ("upload-offset" = Option<u64>, Header, description = "Where the body belongs; 0 if left out"),
        ("upload-length" = Option<u64>, Header, description = "Size of the whole blob"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "Complete", body = BlobJson),
        (status = 202, description = "Held so far; go on at Upload-Offset", body = PartialJson),
        (status = 400, description = "Malformed, or the body broke off: what came is held", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 409, description = "Another offset is held, or somebody else is uploading", body = ErrorJson),
        (status = 413, description = "Longer than Upload-Length", body = ErrorJson),
        (status = 422, description = "The hash is wrong; the upload is dropped", body = ErrorJson),
        (status = 507, description = "The disk is full; what came is held", body = ErrorJson),
    )
)]
async fn put_blob(
    State(app): State<App>,
    Path(hash): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let hash = parse(&hash)?;
    let offset = number(&headers, &UPLOAD_OFFSET, "Upload-Offset")?.unwrap_or(0);
    let length = number(&headers, &UPLOAD_LENGTH, "Upload-Length")?;
    if app.driver.trouble() == Some(Trouble::DiskFull) {
        discard(body).await;
        return Err(disk_full());
    }
    match app.blobs.upload(hash, offset, length, body).await? {
        Upload::Complete(blob) => Ok(created(blob.hash, blob.size)),
        Upload::Partial { held } => {
            let body = Json(PartialJson { offset: held });
            Ok((StatusCode::ACCEPTED, [(UPLOAD_OFFSET, HeaderValue::from(held))], body)
                .into_response())
        }
    }
}

/// A blob, or a part of it
#[utoipa::path(
    get, path = "/api/v1/blobs/{hash}", tag = "blobs", security(("key" = [])),
    params(
        ("hash" = String, Path, description = "BLAKE3, 64 hexadecimal digits"),
        ("range" = Option<String>, Header, description = "bytes=FIRST-LAST"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 416, description = "The range lies outside the blob", body = ErrorJson),
    )
)]
async fn get_blob(
    State(app): State<App>,
    Path(hash): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    serve(&[&app.blobs], &hash, &headers)
}

/// A blob of the first store that has it.
pub(super) fn serve(
    stores: &[&Blobs],
    hash: &str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let hash = parse(hash)?;
    let mut found = None;
    for store in stores {
        found = found.or(store.open_blob(hash).map_err(BlobError::Disk)?);
    }
    let (file, size) = found.ok_or_else(|| BlobError::Missing { hash: hash.to_string() })?;
    let asked = Asked::of(headers, size);
    if asked == Asked::Nothing {
        return Err(crate::error::range(size));
    }
    let body = send::body(file, [asked.extent(size)]).map_err(BlobError::Disk)?;
    Ok(range::response(asked, size, BYTES, body))
}

pub(super) fn parse(hash: &str) -> Result<Hash, ApiError> {
    hash.parse().map_err(|_| {
        let value = clip(hash.into(), 80);
        let expected = "a BLAKE3 hash: 64 hexadecimal digits";
        RequestError::Malformed { what: "the hash", value, expected }.into()
    })
}

fn number(
    headers: &HeaderMap,
    name: &HeaderName,
    what: &'static str,
) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let parsed = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    parsed.map(Some).ok_or_else(|| {
        let value = clip(String::from_utf8_lossy(value.as_bytes()).into_owned(), 80);
        RequestError::Malformed { what, value, expected: "a number of bytes" }.into()
    })
}

fn created(hash: Hash, size: u64) -> Response {
    let body = Json(BlobJson { hash: hash.to_string(), size });
    (StatusCode::CREATED, body).into_response()
}
