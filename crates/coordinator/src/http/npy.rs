//! Results as files that NumPy and its kin read.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::{StreamExt, stream};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::{Path, Query};
use super::jobs::parse;
use super::partial;
use super::range::{self, Asked};
use super::result::{Partial, cut, done, extents, open};
use crate::error::{ApiError, JobError};
use crate::store::send::{self, Extent};
use shoal_api::{ErrorJson, OutputJson};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_npy))
}

/// The whole result as a .npy file
///
/// Map: one element for each item, or a row of them. Simulation: height, width and, if a cell has several,
/// its numbers. Model: what its only output holds for each item.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/result.npy", tag = "results", security(("key" = [])),
    params(
        ("id" = u64, Path),
        ("partial" = Option<String>, Query, description = "`filled`: of a job that failed or was cancelled, what is done; the rest is filled with NaN, or 0 for integers"),
        ("range" = Option<String>, Header, description = "bytes=FIRST-LAST"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "`partial` is another word", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "Not done, or its result is not an array of one type", body = ErrorJson),
        (status = 416, description = "The range lies outside the file", body = ErrorJson),
    )
)]
async fn get_npy(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(Partial { partial }): Query<Partial>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let job = app.driver.job(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let is_filled = match partial.as_deref() {
        None => false,
        Some(partial::FILLED) => true,
        Some(word) => return Err(partial::unknown(word, "`filled`")),
    };
    let merged = match is_filled {
        true => app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?,
        false => done(&app, id).await?,
    };
    let no_array = || JobError::NoArray { job: id.0 };
    let (dtype, per_item) = job.output.as_ref().and_then(dtype).ok_or_else(no_array)?;
    let sides = merged.spec.work.sides(merged.spec.items, per_item);
    let shape = sides.ok_or_else(no_array)?;
    let head = shoal_kinds::npy::head(dtype, &shape);
    if is_filled {
        return partial::filled(&app, id, &headers, head).await;
    }
    let extents = extents(&merged);
    let before = head.len() as u64;
    let size = before + extents.iter().map(|extent| extent.len).sum::<u64>();
    let asked = Asked::of(&headers, size);
    if asked == Asked::Nothing {
        return Err(JobError::Range { size }.into());
    }
    // The part of the head that is asked for, and the part of what follows it.
    let Extent { offset, len } = asked.extent(size);
    let (first, last) = (offset.min(before), (offset + len).min(before));
    let head = Bytes::from(head).slice(first as usize..last as usize);
    let rest = Extent { offset: offset - first, len: len - (last - first) };
    let rest = send::body(open(&app, id)?, cut(&extents, rest)).map_err(JobError::Disk)?;
    let head = stream::once(async { Ok(head) });
    let body = Body::from_stream(head.chain(rest.into_data_stream()));
    Ok(range::response(asked, size, BYTES, body))
}

/// NumPy's word for a type, and how many of it an item has.
fn dtype(output: &OutputJson) -> Option<(&'static str, u64)> {
    let word = match output.scalar.as_str() {
        "f32" => "<f4",
        "f16" => "<f2",
        "i32" => "<i4",
        "u32" => "<u4",
        "i64" => "<i8",
        "u8" => "|u1",
        "i8" => "|i1",
        "bool" => "|b1",
        _ => return None,
    };
    Some((word, output.per_item.into()))
}
