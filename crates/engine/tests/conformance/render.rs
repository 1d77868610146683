//! Render cases: tiles in units, put together to a picture in rows.

use pollster::block_on;
use shoal_engine::intake;
use shoal_engine::wgsl::Gpu;
use shoal_kinds::{Kind, RenderWork};

use crate::case::Case;
use crate::data::compare;
use crate::prepared;
use crate::unit::compute;

pub(crate) fn run(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let source = case.text(&case.json["wgsl"]);
    let plan = intake::render_kernel(&source, case.entry(), &case.params());
    let Some(plan) = case.judge_intake(plan)? else {
        return Ok(());
    };
    let number = |name, default| case.number(name, default) as u32;
    let work = RenderWork {
        kernel: plan.kernel,
        width: number("width", 0),
        height: number("height", 0),
        tile: number("tile", 64),
        samples: number("samples", 1),
        pixel: plan.pixel,
    };
    let tiles = u64::from(work.columns() * work.rows());
    let kind = Kind::Render(work.clone());
    prepared::write_work(case, tiles, &kind, &[]);
    let found = block_on(compute(gpu, &kind, tiles, case.number("unit", tiles), &[]));
    match found {
        Ok(found) => compare(case, &case.json["expect"], &rows(&work, &found)),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Tiles one after the other become a picture row by row.
fn rows(work: &RenderWork, tiles: &[u8]) -> Vec<u8> {
    let (pixel, tile) = (work.pixel.bytes() as usize, work.tile as usize);
    let mut picture = Vec::new();
    for y in 0..work.height as usize {
        for x in 0..work.width as usize {
            let number = y / tile * work.columns() as usize + x / tile;
            let at = (number * tile * tile + y % tile * tile + x % tile) * pixel;
            picture.extend_from_slice(&tiles[at..at + pixel]);
        }
    }
    picture
}
