//! Whether a step reaches no farther than the halo. Otherwise what lies beyond it would get into the band, in
//! another way on each member, and nobody would see: a wrong result is worse than none.
//!
//! The edges are computed again with rubbish where nothing should be looked at, twice, each time another kind. All
//! three must be the same.

use shoal_protocol::Failure;

use super::Program;
use super::band::{Edges, LOOK_BLOCK, SLAB, SimBand};
use super::block::Moment;
use super::field::Field;
use super::tape::{Tape, Target};

/// How large rubbish is, where cells are floats.
const KINDS: [f32; 2] = [1.0, 1000.0];
/// A slab with a halo of rubbish on either side.
const LONG: u64 = SLAB + 2;

/// Looks at the step from the present state with these halos, which made these edges.
pub(super) async fn look(
    band: &SimBand,
    moment: Moment,
    halos: [&[u8]; 2],
    edges: &Edges,
) -> Result<(), Failure> {
    let it = &*band.program.0;
    let halo = it.halo();
    let slab = (&band.params, band.blocks, LOOK_BLOCK);
    let slab = Field::new(it, LONG * halo, 2, slab).await?;
    let ends = [(End::Top, edges.top()), (End::Bottom, edges.bottom())];
    let mut farthest = 0;
    let [small, large] = [0, 1].map(|number: u8| {
        let size = slab.rows * it.row_bytes();
        rubbish(it, number.into(), KINDS[usize::from(number)], size)
    });
    for rubbish in [&small, &large] {
        for (end, edge) in ends {
            let found = again(band, moment, halos, &slab, [rubbish, rubbish], end).await?;
            farthest = farthest.max(reach(&found, edge, halo, it.row_bytes()));
        }
    }
    if farthest == 0 {
        return Ok(());
    }
    for (end, _) in ends {
        let one = again(band, moment, halos, &slab, [&small, &small], end).await?;
        if one != again(band, moment, halos, &slab, [&small, &large], end).await? {
            let message = format!(
                "step {} leaves cells of `next` unwritten: each pass must write every cell, if only with what \
                 `state` holds there",
                moment.step
            );
            return Err(Failure::Kernel { message });
        }
    }
    Err(Failure::Kernel {
        message: format!(
            "the passes of step {} together reach at least {farthest} rows, but the halo has {halo}: ask for \
             a halo of {farthest} rows or more",
            moment.step
        ),
    })
}

/// Of a band.
#[derive(Clone, Copy)]
enum End {
    Top,
    Bottom,
}

/// An edge computed from the halo above or below and two halos of rows of the band, with rubbish beyond them, and
/// rubbish where the first pass is to write.
async fn again(
    band: &SimBand,
    moment: Moment,
    [above, below]: [&[u8]; 2],
    slab: &Field,
    [beyond, unwritten]: [&[u8]; 2],
    end: End,
) -> Result<Vec<u8>, Failure> {
    let it = &*band.program.0;
    let (each, halo) = (it.work.halo_bytes(), it.halo());
    // In a band of less than two halos some of these rows are the other halo's.
    let own = 2 * halo;
    // The first of them in the band; then, in halos, where both lie in the slab.
    let (first, told, told_at, own_at) = match end {
        End::Top => (0, above, 1, 2),
        End::Bottom => (band.rows.len as i64 - own as i64, below, SLAB, 1),
    };
    let in_grid = band.rows.start as i64 + first - (own_at * halo) as i64;
    let moment = Moment { first: in_grid, rows: slab.rows, ..moment };
    let target = Target::new(&it.core, each).await?;
    let block = band.blocks.fill(&it.work, &[moment])?;
    it.core.queue.write_buffer(&band.params.buffer, band.blocks.at(LOOK_BLOCK), &block);
    let (from, to) = (&band.whole.buffer(band.now).buffer, &slab.buffer(0).buffer);
    it.core.queue.write_buffer(to, 0, beyond);
    it.core.queue.write_buffer(to, told_at * each, told);
    it.core.queue.write_buffer(&slab.buffer(1).buffer, 0, unwritten);
    let mut tape = Tape::new(&it.core);
    let start = (band.pad as i64 + first) as u64 * it.row_bytes();
    tape.encoder.copy_buffer_to_buffer(from, start, to, own_at * each, 2 * each);
    let made = slab.step(it, band.flag.as_ref(), 0, &mut tape.encoder)?;
    let made = &slab.buffer(made).buffer;
    tape.encoder.copy_buffer_to_buffer(made, 2 * each, target.buffer(), 0, each);
    Ok(tape.read(target, band.flag.as_ref()).await?.to_vec())
}

/// How far the rubbish was seen, at least; 0 if both are the same. The rubbish begins a halo above the edge's
/// first row and a halo below its last one.
fn reach(found: &[u8], edge: &[u8], halo: u64, row_bytes: u64) -> u64 {
    let rows = found.chunks(row_bytes as usize).zip(edge.chunks(row_bytes as usize));
    let differ =
        rows.enumerate().filter(|(_, (found, edge))| found != edge).map(|(row, _)| row as u64);
    // A row in the middle may have seen either side: the nearer one is sure.
    differ.map(|row| halo + 1 + row.min(halo - 1 - row)).max().unwrap_or(0)
}

/// Numbers of no meaning, the same each time.
fn rubbish(it: &Program, seed: u64, size: f32, bytes: u64) -> Vec<u8> {
    let is_float = it.work.scalar == "f32";
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed + 1);
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let bits = (state >> 32) as u32;
        if is_float {
            // From -size to size, in 24 bits.
            ((bits >> 8) as f32 / (1 << 23) as f32 - 1.0).mul_add(size, 0.0).to_le_bytes()
        } else {
            bits.to_le_bytes()
        }
    };
    (0..bytes / 4).flat_map(|_| word()).collect()
}

#[cfg(test)]
mod tests {
    use super::reach;

    #[test]
    fn the_reach_is_told_from_the_rows_that_differ() {
        let edge = [0u8; 12];
        let other = |rows: &[usize]| {
            let mut found = edge;
            rows.iter().for_each(|row| found[row * 4] = 1);
            found
        };
        assert_eq!(reach(&edge, &edge, 3, 4), 0);
        assert_eq!(reach(&other(&[0]), &edge, 3, 4), 4);
        assert_eq!(reach(&other(&[0, 1]), &edge, 3, 4), 5);
        assert_eq!(reach(&other(&[2]), &edge, 3, 4), 4);
    }
}
