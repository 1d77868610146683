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
        let first = self.rows.start as i64 - self.program.0.halo() as i64;
        Moment { first, rows: self.whole.rows, step: self.step, poke: None }
    }

    /// Parameters for the whole and the slabs.
    pub(super) fn write_blocks(&self, step: u64, poke: Option<Poke>) -> Result<(), Failure> {
        let it = &*self.program.0;
        let whole = Moment { step, poke, ..self.moment() };
        let rows = SLAB * it.halo();
        let top = Moment { rows, ..whole };
        let bottom = Moment { first: whole.first + (whole.rows - rows) as i64, ..top };
        let bytes = self.blocks.fill(&it.work, &[whole, top, bottom])?;
        it.core.queue.write_buffer(&self.params.buffer, 0, &bytes);
        Ok(())
    }

    /// The edges' own rows with all they depend on, copied out, stepped, and read from there.
    pub(super) fn step_slabs(
        &self,
        it: &Program,
        slabs: &[Field; 2],
        target: &Target,
        encoder: &mut CommandEncoder,
    ) -> Result<(), Failure> {
        let each = it.work.halo_bytes();
        let state = &self.whole.buffer(self.now).buffer;
        let [top, bottom] = slabs;
        let last = self.whole.rows * it.row_bytes() - SLAB * each;
        for (slab, at) in [(top, 0), (bottom, last)] {
            encoder.copy_buffer_to_buffer(state, at, &slab.buffer(0).buffer, 0, SLAB * each);
        }
        for (slab, at) in [(top, 0), (bottom, each)] {
            let to = slab.step(it, self.flag.as_ref(), 0, encoder)?;
            let made = &slab.buffer(to).buffer;
            encoder.copy_buffer_to_buffer(made, each, target.buffer(), at, each);
        }
        Ok(())
    }

    pub(super) fn copy_edges(&self, from: usize, target: &Target, encoder: &mut CommandEncoder) {
        let each = self.program.0.work.halo_bytes();
        let state = &self.whole.buffer(from).buffer;
        let bottom = self.rows.len * self.program.0.row_bytes();
        encoder.copy_buffer_to_buffer(state, each, target.buffer(), 0, each);
        encoder.copy_buffer_to_buffer(state, bottom, target.buffer(), each, each);
    }
}
