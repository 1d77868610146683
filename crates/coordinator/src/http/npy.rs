//! Results as files that NumPy and its kin read.

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use shoal_protocol::Work;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::jobs::parse;
use super::range::{self, Asked};
use super::result::{done, extents, open};
use crate::error::{ApiError, JobError};
use crate::json::{ErrorJson, OutputJson};
use crate::store::send;

/// What an array's bytes begin at a multiple of, so that they can be mapped into memory.
const ALIGN: usize = 64;
/// Before the header's text: magic, version, length.
const PREFIX: usize = 10;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_npy))
}

/// The whole result as a .npy file
///
/// Map: one element for each item, or a row of them. Simulation: height, width and, if a cell has several,
/// its numbers.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/result.npy", tag = "results", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "Not done, or its result is no array of one type", body = ErrorJson),
    )
)]
async fn get_npy(State(app): State<App>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let job = app.driver.job(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let merged = done(&app, id).await?;
    let no_array = || JobError::NoArray { job: id.0 };
    let (dtype, per_item) = job.output.as_ref().and_then(dtype).ok_or_else(no_array)?;
    let shape = match &merged.spec.work {
        Work::Map(_) if per_item == 1 => vec![merged.spec.items],
        Work::Map(_) => vec![merged.spec.items, per_item],
        Work::Sim(sim) if sim.lanes == 1 => vec![sim.height.into(), sim.width.into()],
        Work::Sim(sim) => vec![sim.height.into(), sim.width.into(), sim.lanes.into()],
        Work::Noop | Work::Render(_) | Work::Exec(_) => return Err(no_array().into()),
    };
    let head = head(dtype, &shape);
    let extents = extents(&merged);
    let size = head.len() as u64 + extents.iter().map(|extent| extent.len).sum::<u64>();
    let rest = send::body(open(&app, id)?, extents).map_err(JobError::Disk)?;
    let head = stream::once(async { Ok(Bytes::from(head)) });
    let body = Body::from_stream(head.chain(rest.into_data_stream()));
    let mut response = range::response(Asked::All, size, "application/octet-stream", body);
    response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
    Ok(response)
}

/// NumPy's word for a type, and how many of it an item has.
fn dtype(output: &OutputJson) -> Option<(&'static str, u64)> {
    let word = match output.scalar.as_str() {
        "f32" => "<f4",
        "f16" => "<f2",
        "i32" => "<i4",
        "u32" => "<u4",
        _ => return None,
    };
    Some((word, output.per_item.into()))
}

/// Magic, version 1.0, the length of the text, the text, and spaces up to the bytes.
fn head(dtype: &str, shape: &[u64]) -> Vec<u8> {
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let sides = if shape.len() == 1 { sides.trim_end() } else { sides.trim_end_matches(", ") };
    let text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({sides}), }}");
    let whole = (PREFIX + text.len() + 1).next_multiple_of(ALIGN);
    let length = whole - PREFIX;
    let mut head = b"\x93NUMPY\x01\0".to_vec();
    head.extend((length as u16).to_le_bytes());
    head.extend(text.as_bytes());
    head.resize(whole - 1, b' ');
    head.push(b'\n');
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_type_and_shape_and_ends_at_a_multiple() {
        for (shape, words) in
            [(vec![3], "(3,)"), (vec![2, 3, 4], "(2, 3, 4)"), (vec![5, 6], "(5, 6)")]
        {
            let head = head("<f4", &shape);
            assert_eq!(head.len() % ALIGN, 0);
            let text = String::from_utf8_lossy(&head[PREFIX..]).into_owned();
            assert!(text.contains(&format!("'shape': {words}, }}")), "{text}");
            assert!(text.ends_with('\n'));
            assert_eq!(usize::from(u16::from_le_bytes([head[8], head[9]])), head.len() - PREFIX);
        }
    }
}
