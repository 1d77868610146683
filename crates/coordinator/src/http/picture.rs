//! Renders: single tiles, and the picture so far.

use std::fs::File;
use std::io::{self, Cursor};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use shoal_kinds::{Form, Pixel, RenderWork};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::Path;
use super::jobs::{number, parse};
use super::range::{self, Asked};
use super::result::{Asks, open, segment};
use crate::driver::event::Segment;
use crate::error::{ApiError, JobError};
use crate::store::place::read_exact_at;
use crate::store::send::{self, Extent};
use shoal_api::ErrorJson;

/// Larger pictures are put together by whoever asked for them, from the raw result.
const MAX_PICTURE_BYTES: u64 = 256 << 20;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_tile)).routes(routes!(get_picture))
}

/// One tile's pixels, row by row, full size
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/tiles/{tile}", tag = "results", security(("key" = [])),
    params(("id" = u64, Path), ("tile" = u64, Path, description = "Counted from 0, row by row")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "Not rendered yet, or no render", body = ErrorJson),
    )
)]
async fn get_tile(
    State(app): State<App>,
    Path((id, tile)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let (id, tile) = (parse(&id)?, number("the tile's number", &tile)?);
    let (spec, span, place) = segment(&app, id, tile, Asks::Tile).await?;
    let (Some(place), Form::Tiles(render)) = (place, spec.work.form()) else {
        return Err(JobError::ItemNotDone { job: id.0, item: tile }.into());
    };
    let len = render.tile_bytes();
    let offset = place.offset + (tile - span.start) * len;
    let body = send::body(open(&app, id)?, [Extent { offset, len }]).map_err(JobError::Disk)?;
    Ok(range::response(Asked::All, len, BYTES, body))
}

/// The picture so far; what is missing is transparent
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/picture.png", tag = "results", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = Vec<u8>, content_type = "image/png"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "No render", body = ErrorJson),
        (status = 413, description = "Too large to put together here", body = ErrorJson),
    )
)]
async fn get_picture(State(app): State<App>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let Form::Tiles(render) = merged.spec.work.form() else {
        return Err(JobError::WrongKind { job: id.0, expected: "render" }.into());
    };
    let bytes = u64::from(render.width) * u64::from(render.height) * 4;
    if bytes > MAX_PICTURE_BYTES {
        return Err(JobError::TooLarge { what: "the picture", most: MAX_PICTURE_BYTES }.into());
    }
    let file = if merged.segments.is_empty() { None } else { Some(open(&app, id)?) };
    let (render, segments) = (render.clone(), merged.segments.clone());
    let png = tokio::task::spawn_blocking(move || draw(&render, &segments, file.as_ref())).await;
    let png = png.map_err(io::Error::other).and_then(|png| png).map_err(JobError::Disk)?;
    let mut response = Response::new(Body::from(png));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn draw(render: &RenderWork, segments: &[Segment], file: Option<&File>) -> io::Result<Vec<u8>> {
    let mut pixels = Vec::with_capacity(render.width as usize * render.height as usize * 4);
    for band in bands(render, segments, file) {
        pixels.extend(band?);
    }
    let mut png = Cursor::new(Vec::new());
    PngEncoder::new_with_quality(&mut png, CompressionType::Fast, FilterType::Adaptive)
        .write_image(&pixels, render.width, render.height, ExtendedColorType::Rgba8)
        .map_err(io::Error::other)?;
    Ok(png.into_inner())
}

/// The picture's RGBA8 rows from top to bottom, as many at a time as a tile is high; what is missing is
/// transparent. Segments are in order.
pub(super) fn bands<'a>(
    render: &'a RenderWork,
    segments: &'a [Segment],
    file: Option<&'a File>,
) -> impl Iterator<Item = io::Result<Vec<u8>>> + 'a {
    let columns = u64::from(render.columns());
    (0..u64::from(render.rows())).map(move |row| {
        let (first, end) = (row * columns, (row + 1) * columns);
        let top = row as usize * render.tile as usize;
        let high = (render.tile as usize).min(render.height as usize - top);
        let mut pixels = vec![0; render.width as usize * high * 4];
        let mut tile = vec![0; usize::try_from(render.tile_bytes()).map_err(io::Error::other)?];
        let from = segments.partition_point(|(span, _)| span.end() <= first);
        for (span, place) in segments[from..].iter().take_while(|(span, _)| span.start < end) {
            let (Some(place), Some(file)) = (place, file) else { continue };
            for at in span.start.max(first)..span.end().min(end) {
                let offset = place.offset + (at - span.start) * render.tile_bytes();
                read_exact_at(file, &mut tile, offset)?;
                paste(render, &mut pixels, (at - first) as usize, high, &tile);
            }
        }
        Ok(pixels)
    })
}

/// Copies the part of a tile that lies in the picture to its column of a band.
fn paste(render: &RenderWork, pixels: &mut [u8], column: usize, high: usize, bytes: &[u8]) {
    let edge = render.tile as usize;
    let left = column * edge;
    let width = render.width as usize;
    let wide = edge.min(width.saturating_sub(left));
    let each = render.pixel.bytes() as usize;
    for row in 0..high {
        let from = &bytes[row * edge * each..][..wide * each];
        let to = &mut pixels[(row * width + left) * 4..][..wide * 4];
        match render.pixel {
            Pixel::Rgba8 => to.copy_from_slice(from),
            Pixel::Rgba32Float => {
                for (to, from) in to.chunks_exact_mut(4).zip(from.chunks_exact(16)) {
                    to.copy_from_slice(&displayed(from));
                }
            }
        }
    }
}

/// Linear light to what a screen wants: colours by the sRGB curve, opacity as it is.
fn displayed(pixel: &[u8]) -> [u8; 4] {
    std::array::from_fn(|lane| {
        let four = &pixel[lane * 4..lane * 4 + 4];
        let value = f32::from_le_bytes([four[0], four[1], four[2], four[3]]).clamp(0.0, 1.0);
        let shown = match (lane, value) {
            (3, value) => value,
            (_, value) if value <= 0.003_130_8 => value * 12.92,
            (_, value) => 1.055 * value.powf(1.0 / 2.4) - 0.055,
        };
        (shown * 255.0 + 0.5) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_light_is_shown_by_the_srgb_curve() {
        let pixel: Vec<u8> =
            [0.0_f32, 0.5, 1.0, 0.5].iter().flat_map(|lane| lane.to_le_bytes()).collect();
        assert_eq!(displayed(&pixel), [0, 188, 255, 128]);
        let bad: Vec<u8> = [f32::NAN; 4].iter().flat_map(|lane| lane.to_le_bytes()).collect();
        assert_eq!(displayed(&bad), [0; 4]);
    }
}
