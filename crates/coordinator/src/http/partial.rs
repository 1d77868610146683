//! What is done of a job that failed or was cancelled: its result with holes, and which items they are.

use std::fs::File;
use std::io;
use std::iter::once;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::{StreamExt, stream};
use shoal_api::{ErrorJson, MissingJson, OutputJson, SpanJson};
use shoal_kinds::Form;
use shoal_kinds::onnx::{Batch, Column, Element};
use shoal_protocol::{JobId, Span};
use shoal_scheduler::JobState;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::Path;
use super::jobs::parse;
use super::range::{self, Asked};
use crate::driver::event::Merged;
use crate::error::{ApiError, JobError, RequestError};
use crate::store::results;
use crate::store::send::{self, Extent};

/// What `partial` is in a request for a result with holes.
pub(super) const FILLED: &str = "filled";
/// What it is in a request for the list of tiles that are done.
pub(super) const TILES: &str = "1";
/// Bytes of a hole that are made at a time, or as many as an item has.
const PIECE: usize = 64 << 10;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_missing))
}

/// The items that are not computed
///
/// Of a job that failed or was cancelled: where its result has holes, if it is asked for with `partial=filled`. Of a running job: what is yet to come.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/missing", tag = "results", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = MissingJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_missing(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<MissingJson>, ApiError> {
    let id = parse(&id)?;
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let items = merged.spec.items;
    let missing: Vec<SpanJson> =
        holes(&merged).map(|Span { start, len }| SpanJson { start, len }).collect();
    let done = items - missing.iter().map(|span| span.len).sum::<u64>();
    Ok(Json(MissingJson { items, done, missing }))
}

/// Items between the merged ones, in order.
fn holes(merged: &Merged) -> impl Iterator<Item = Span> {
    let end = Span::new(merged.spec.items, 0);
    let ends = merged.segments.iter().map(|(span, _)| *span).chain(once(end));
    let mut at = 0;
    ends.filter_map(move |span| {
        let before = std::mem::replace(&mut at, span.end());
        (before < span.start).then(|| Span::new(before, span.start - before))
    })
}

/// The whole result with what stands before it, of an ended job: holes are filled with numbers that are none, with zeros
/// where there is no such number, and in pictures with nothing.
pub(super) async fn filled(
    app: &App,
    id: JobId,
    headers: &HeaderMap,
    head: Vec<u8>,
) -> Result<Response, ApiError> {
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    if merged.state == JobState::Running {
        return Err(JobError::NotDone { job: id.0, state: "running" }.into());
    }
    let form = merged.spec.work.form();
    let Some(each) = form.item_bytes() else { return Err(JobError::NoArray { job: id.0 }.into()) };
    let filling = match form {
        Form::Items { .. } => {
            let job = app.driver.job(id).await?.ok_or(JobError::Missing { job: id.0 })?;
            no_number(job.output.as_ref()).to_vec()
        }
        Form::Rows(batch) => empty_row(batch),
        Form::Nothing | Form::Tiles(_) | Form::Answers => vec![0],
    };
    let filling = whole_pieces(&filling);
    let before = head.len() as u64;
    let size = before + merged.spec.items * each;
    let asked = Asked::of(headers, size);
    if asked == Asked::Nothing {
        return Err(JobError::Range { size }.into());
    }
    // The part of the head that is asked for, and the part of what follows it.
    let Extent { offset, len } = asked.extent(size);
    let (first, last) = (offset.min(before), (offset + len).min(before));
    let head = Bytes::from(head).slice(first as usize..last as usize);
    let rest = Extent { offset: offset - first, len: len - (last - first) };
    let file = results::path(&app.results, id);
    // Each is opened when its turn has come: there may be thousands.
    let body = stream::iter(pieces(&merged, each, rest)).flat_map(move |piece| {
        let body = match piece {
            Piece::Done(extents) => File::open(&file).and_then(|file| send::body(file, extents)),
            Piece::Hole(hole) => Ok(hole_body(hole, filling.clone())),
        };
        let broken =
            |error| Body::from_stream(stream::once(async { Err::<Bytes, io::Error>(error) }));
        body.unwrap_or_else(broken).into_data_stream()
    });
    let head = stream::once(async { Ok(head) });
    Ok(range::response(asked, size, BYTES, Body::from_stream(head.chain(body))))
}

/// What `partial` says that nobody knows. Ignored, it would look as if it had been done.
pub(super) fn unknown(word: &str, expected: &'static str) -> ApiError {
    RequestError::Malformed { what: "partial", value: word.into(), expected }.into()
}

/// Consecutive bytes of a result with holes.
enum Piece {
    /// Where they lie in the results file.
    Done(Vec<Extent>),
    /// Where they lie in the whole result.
    Hole(Extent),
}

/// What that part of the whole result is made of, in order.
fn pieces(merged: &Merged, each: u64, part: Extent) -> Vec<Piece> {
    let within = |from: u64, to: u64| {
        let (from, to) = (part.offset.max(from), (part.offset + part.len).min(to));
        (from < to).then(|| Extent { offset: from, len: to - from })
    };
    let mut pieces = Vec::new();
    let mut at = 0;
    for (span, place) in merged.segments.iter() {
        let (start, end) = (span.start * each, span.end() * each);
        pieces.extend(within(at, start).map(Piece::Hole));
        at = end;
        let Some((place, Extent { offset, len })) = place.zip(within(start, end)) else { continue };
        let in_file = Extent { offset: place.offset + (offset - start), len };
        match pieces.last_mut() {
            Some(Piece::Done(extents)) => extents.push(in_file),
            Some(Piece::Hole(_)) | None => pieces.push(Piece::Done(vec![in_file])),
        }
    }
    pieces.extend(within(at, merged.spec.items * each).map(Piece::Hole));
    pieces
}

/// The filling again and again: about a piece of it, and no part of it.
fn whole_pieces(filling: &[u8]) -> Bytes {
    let filling: &[u8] = if filling.is_empty() { &[0] } else { filling };
    Bytes::from(filling.repeat((PIECE / filling.len()).max(1)))
}

/// Filling from a place in the whole on: a request may begin in the middle of a number.
fn hole_body(Extent { offset, mut len }: Extent, filling: Bytes) -> Body {
    let mut at = (offset % filling.len() as u64) as usize;
    let pieces = std::iter::from_fn(move || {
        let end = at + usize::try_from(len).unwrap_or(usize::MAX).min(filling.len() - at);
        let piece = filling.slice(std::mem::take(&mut at)..end);
        len -= piece.len() as u64;
        (!piece.is_empty()).then_some(Ok::<_, std::convert::Infallible>(piece))
    });
    Body::from_stream(stream::iter(pieces))
}

/// What an item of a batch has where nothing was computed: its tensors one after the other.
fn empty_row(batch: &Batch) -> Vec<u8> {
    let columns = batch.outputs.iter().flat_map(|Column { element, dims, .. }| {
        let number: &[u8] = match element {
            Element::F32 => &[0, 0, 0xc0, 0x7f],
            Element::F16 => &[0, 0x7e],
            Element::F64 => &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
            Element::I8 | Element::U8 | Element::Bool => &[0],
            Element::I16 | Element::U16 => &[0; 2],
            Element::I32 | Element::U32 => &[0; 4],
            Element::I64 | Element::U64 => &[0; 8],
        };
        number.repeat(dims.iter().product::<u64>() as usize)
    });
    columns.collect()
}

fn no_number(output: Option<&OutputJson>) -> &'static [u8] {
    match output.map(|output| output.scalar.as_str()) {
        Some("f32") => &[0, 0, 0xc0, 0x7f],
        Some("f16") => &[0, 0x7e],
        Some(_) | None => &[0],
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_hole_is_full_of_what_is_no_number_wherever_it_is_cut() {
        for filling in [&[1, 2, 3, 4][..], &[1, 2, 3, 4, 5], &[7; 100_000]] {
            let pieces = whole_pieces(filling);
            let whole = hole_body(Extent { offset: 0, len: 200_001 }, pieces.clone());
            let whole = whole.collect().await.expect("bytes").to_bytes();
            assert_eq!(whole.len(), 200_001);
            let is_right = |(at, byte): (usize, &u8)| *byte == filling[at % filling.len()];
            assert!(whole.iter().enumerate().all(is_right));
            let part = hole_body(Extent { offset: 65_538, len: 70_000 }, pieces);
            let part = part.collect().await.expect("bytes").to_bytes();
            assert_eq!(part, whole.slice(65_538..135_538));
        }
    }

    #[test]
    fn a_row_of_a_batch_that_is_missing_has_floats_that_are_no_numbers() {
        let column = |element, dims: &[u64]| Column {
            name: "y".into(),
            element,
            dims: dims.into(),
            leads: true,
        };
        let outputs = vec![
            column(Element::F32, &[2]),
            column(Element::I64, &[]),
            column(Element::F16, &[1, 1]),
            column(Element::U8, &[3]),
        ];
        let batch = Batch { feeds: Vec::new(), inputs: Vec::new(), outputs, at_once: 1 };
        let row = empty_row(&batch);
        assert_eq!(row.len() as u64, batch.row_bytes());
        let (floats, rest) = row.split_at(8);
        let (floats, _) = floats.as_chunks::<4>();
        assert!(floats.iter().all(|number| f32::from_le_bytes(*number).is_nan()));
        assert_eq!(rest, [&[0; 8][..], &[0, 0x7e], &[0; 3]].concat());
    }
}
