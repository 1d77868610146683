//! The data plane of crews: checkpoints and pictures in.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::Deserialize;
use shoal_protocol::id::clip;
use shoal_protocol::{BlobRef, CrewId, Epoch, Hash, Span};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::{Path, Query};
use super::jobs::{collect, number};
use super::node_data::length;
use crate::driver::event::{CrewEvent, Event, GridSeat};
use crate::error::{ApiError, AuthError, CrewError, RequestError};
use crate::fields::Band;
use crate::health::Trouble;
use crate::store::blobs::UploadError;
use crate::store::place::is_full;
use crate::store::receive::discard;
use shoal_api::{BlobJson, ErrorJson};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(put_kept)).routes(routes!(put_view))
}

/// A member's rows of a checkpoint, stored before they are announced
///
/// While the disk is full they are not kept; announcing them then changes nothing.
#[utoipa::path(
    put, path = "/node/kept/{crew}/{epoch}", tag = "node", security(("session" = [])),
    params(("crew" = u64, Path), ("epoch" = u32, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = BlobJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "No member of this crew in this epoch", body = ErrorJson),
        (status = 411, description = "No Content-Length", body = ErrorJson),
        (status = 422, description = "Not the size of this member's rows", body = ErrorJson),
        (status = 507, description = "The disk is full", body = ErrorJson),
    )
)]
async fn put_kept(
    State(app): State<App>,
    Path((crew, epoch)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<BlobJson>, ApiError> {
    let conn = app.auth.session(&headers).ok_or(AuthError::Session)?;
    let (crew, epoch) = (CrewId(number("the crew's number", &crew)?), epoch_of(&epoch)?);
    let size = length(&headers)?;
    let seat = app.driver.seat(crew, Some(epoch), conn).await?;
    let expected = seat.as_ref().map(|seat| seat.rows.len.saturating_mul(seat.row_bytes));
    let refused = match expected {
        None => Some(CrewError::NotMember { crew: crew.0, epoch: Some(epoch.0) }),
        Some(expected) if expected != size => Some(CrewError::Size { expected, found: size }),
        Some(_) => None,
    };
    if let Some(error) = refused {
        discard(body).await;
        return Err(error.into());
    }
    let is_full = app.driver.trouble() == Some(Trouble::DiskFull);
    let blob = if is_full { passed_by(body, size).await? } else { keep(&app, body, size).await? };
    if !is_full && !app.driver.kept(crew, epoch, conn, blob).await? {
        return Err(CrewError::NotMember { crew: crew.0, epoch: Some(epoch.0) }.into());
    }
    Ok(Json(BlobJson { hash: blob.hash.to_string(), size }))
}

async fn keep(app: &App, body: Body, size: u64) -> Result<BlobRef, CrewError> {
    let blob = match app.kept.post(body, size).await {
        Err(UploadError::Disk(error)) if is_full(&error) => {
            app.driver.tell(Event::Crew(CrewEvent::NoRoom)).await?;
            return Err(CrewError::Full);
        }
        kept => kept.map_err(|error| CrewError::upload(error, size))?,
    };
    if blob.size != size {
        app.kept.remove(blob.hash);
        return Err(CrewError::Size { expected: size, found: blob.size });
    }
    Ok(blob)
}

/// While the disk is full nothing is kept, and nobody is to blame: the member goes on, its crew without a
/// checkpoint.
async fn passed_by(mut body: Body, size: u64) -> Result<BlobRef, CrewError> {
    let mut hasher = blake3::Hasher::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| CrewError::Client(error.to_string()))?;
        hasher.update(frame.data_ref().map_or(&[], |bytes| bytes.as_ref()));
        if hasher.count() > size {
            break;
        }
    }
    let found = hasher.count();
    if found != size {
        return Err(CrewError::Size { expected: size, found });
    }
    Ok(BlobRef { hash: Hash(*hasher.finalize().as_bytes()), size })
}

/// Numbers are read as text, so that the errors are ours.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct Shown {
    /// First row of the grid that is shown.
    #[param(value_type = u64)]
    first_row: Option<String>,
    /// Rows of the grid that are shown.
    #[param(value_type = u64)]
    rows: Option<String>,
    /// Steps done.
    #[param(value_type = u64)]
    step: Option<String>,
    /// Cells from one pixel to the next, in both directions; 1 if left out.
    #[param(value_type = Option<u32>)]
    stride: Option<String>,
}

/// A picture of a member's rows: RGBA8, the cells whose column and row are multiples of `stride`
#[utoipa::path(
    put, path = "/node/view/{crew}", tag = "node", security(("session" = [])),
    params(("crew" = u64, Path), Shown),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 204, description = "Taken"),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 403, description = "No member of this crew", body = ErrorJson),
        (status = 413, description = "Larger than a picture can be", body = ErrorJson),
        (status = 422, description = "Not the picture of this member's rows", body = ErrorJson),
    )
)]
async fn put_view(
    State(app): State<App>,
    Path(crew): Path<String>,
    Query(shown): Query<Shown>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let conn = app.auth.session(&headers).ok_or(AuthError::Session)?;
    let crew = CrewId(number("the crew's number", &crew)?);
    let Some(seat) = app.driver.seat(crew, None, conn).await? else {
        discard(body).await;
        return Err(CrewError::NotMember { crew: crew.0, epoch: None }.into());
    };
    let band = match band(&shown, &seat) {
        Ok(band) => band,
        Err(error) => {
            discard(body).await;
            return Err(error);
        }
    };
    let expected = band.bytes();
    let pixels = collect(body, expected).await?;
    if pixels.len() != expected {
        let (found, Band { rows, stride, .. }) = (pixels.len(), band);
        let message = format!(
            "{found} bytes are no picture of rows {rows} at a stride of {stride}: expected {expected}"
        );
        return Err(CrewError::Picture(message).into());
    }
    app.fields.paint(seat.job, &band, &pixels);
    Ok(StatusCode::NO_CONTENT)
}

fn band(shown: &Shown, seat: &GridSeat) -> Result<Band, ApiError> {
    let read = |what: &'static str, text: &Option<String>| match text {
        Some(text) => number(what, text),
        None => number(what, ""),
    };
    let rows = Span::new(read("firstRow", &shown.first_row)?, read("rows", &shown.rows)?);
    let step = read("step", &shown.step)?;
    let (width, height) = (seat.width, seat.height);
    let finest = Band::finest(width, height);
    let stride = shown.stride.as_ref().map_or(Ok(1), |text| number("stride", text))?;
    let stride =
        u32::try_from(stride).ok().filter(|stride| (finest..=width.max(height)).contains(stride));
    let Some(stride) = stride else {
        let message =
            format!("\"stride\" must be at least {finest} for a grid of {width} x {height}");
        return Err(CrewError::Picture(message).into());
    };
    let mine = seat.rows;
    if rows.len == 0 || rows.start < mine.start || rows.end() > mine.end() {
        let message = format!("rows {rows} are not this member's: it has {mine}");
        return Err(CrewError::Picture(message).into());
    }
    Ok(Band { width, height, rows, stride, step })
}

fn epoch_of(text: &str) -> Result<Epoch, ApiError> {
    text.parse().map(Epoch).map_err(|_| {
        let value = clip(text.into(), 80);
        RequestError::Malformed { what: "the epoch", value, expected: "a number" }.into()
    })
}
