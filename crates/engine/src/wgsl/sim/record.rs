//! What a step has the device do.

use shoal_protocol::{Failure, Poke};
use wgpu::CommandEncoder;

use super::Program;
use super::band::{SLAB, SimBand};
use super::block::Moment;
use super::field::Field;
use super::tape::Target;

impl SimBand {
    /// The whole buffer, in the present step.
    pub(super) fn moment(&self) -> Moment {
        let first = self.rows.start as i64 - self.pad as i64;
        Moment { first, rows: self.whole.rows, step: self.step, poke: None }
    }

    /// Parameters for the whole and the slabs.
    pub(super) fn write_blocks(&self, step: u64, poke: Option<Poke>) -> Result<(), Failure> {
        let it = &*self.program.0;
        let whole = Moment { step, poke, ..self.moment() };
        let halo = it.halo();
        let (start, end) = (self.rows.start as i64, self.rows.end() as i64);
        let rows = SLAB * halo;
        let top = Moment { first: start - halo as i64, rows, ..whole };
        let bottom = Moment { first: end + halo as i64 - rows as i64, ..top };
        let bytes = self.blocks.fill(&it.work, &[whole, top, bottom])?;
        it.core.queue.write_buffer(&self.params.buffer, 0, &bytes);
        Ok(())
    }

    /// Puts the neighbours' rows where the next step looks for them.
    pub(super) fn write_halos(&self, above: &[u8], below: &[u8]) {
        let each = self.program.0.work.halo_bytes();
        let (upper, lower, under) = match &self.slabs {
            Some([top, bottom]) => (top.buffer(0), bottom.buffer(0), (SLAB - 1) * each),
            None => {
                let state = self.whole.buffer(self.now);
                (state, state, each + self.rows.len * self.program.0.row_bytes())
            }
        };
        let queue = &self.program.0.core.queue;
        queue.write_buffer(&upper.buffer, 0, above);
        queue.write_buffer(&lower.buffer, under, below);
    }

    /// The edges with all they depend on, beside the halos that are there already: stepped, and read from there. Says
    /// in which buffer of each slab they are.
    pub(super) fn step_slabs(
        &self,
        it: &Program,
        slabs: &[Field; 2],
        target: &Target,
        encoder: &mut CommandEncoder,
    ) -> Result<[usize; 2], Failure> {
        let each = it.work.halo_bytes();
        let own = (SLAB - 1) * each;
        let state = &self.whole.buffer(self.now).buffer;
        let [top, bottom] = slabs;
        let last = self.rows.len * it.row_bytes() - own;
        for (slab, from, to) in [(top, 0, each), (bottom, last, 0)] {
            encoder.copy_buffer_to_buffer(state, from, &slab.buffer(0).buffer, to, own);
        }
        let mut made = [0; 2];
        for (at, slab) in slabs.iter().enumerate() {
            made[at] = slab.step(it, self.flag.as_ref(), 0, encoder)?;
            let edge = &slab.buffer(made[at]).buffer;
            encoder.copy_buffer_to_buffer(edge, each, target.buffer(), at as u64 * each, each);
        }
        Ok(made)
    }

    /// The slabs' edges into the state in buffer `to`, whose ends were computed without halos.
    pub(super) fn put_edges(&self, made: [usize; 2], to: usize, encoder: &mut CommandEncoder) {
        let Some(slabs) = &self.slabs else { return };
        let each = self.program.0.work.halo_bytes();
        let state = &self.whole.buffer(to).buffer;
        let last = self.rows.len * self.program.0.row_bytes() - each;
        for ((slab, made), at) in slabs.iter().zip(made).zip([0, last]) {
            encoder.copy_buffer_to_buffer(&slab.buffer(made).buffer, each, state, at, each);
        }
    }

    pub(super) fn copy_edges(&self, from: usize, target: &Target, encoder: &mut CommandEncoder) {
        let each = self.program.0.work.halo_bytes();
        let state = &self.whole.buffer(from).buffer;
        let top = self.pad * self.program.0.row_bytes();
        let bottom = top + self.rows.len * self.program.0.row_bytes() - each;
        encoder.copy_buffer_to_buffer(state, top, target.buffer(), 0, each);
        encoder.copy_buffer_to_buffer(state, bottom, target.buffer(), each, each);
    }
}
