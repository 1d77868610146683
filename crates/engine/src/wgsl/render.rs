//! Some tiles of a picture: one dispatch for each, all in one submission.

use shoal_kinds::RenderWork;
use shoal_protocol::{Failure, Span};
use wgpu::{CommandEncoder, CommandEncoderDescriptor, ComputePassDescriptor};

use super::fault::internal;
use super::gpu::{Core, aligned};
use super::guard::Flag;
use super::map::{block_size, padded};
use super::memory::{Readback, Route};
use super::params::tile_block;
use super::pipeline::Pipeline;
use super::pool::{Lease, Role};

pub(super) async fn run(
    core: &Core,
    pipeline: &Pipeline,
    work: &RenderWork,
    span: Span,
) -> Result<Readback, Failure> {
    let layout = Layout::new(core, pipeline, work, span)?;
    let output = core.output(layout.tiles * layout.output_step).await?;
    let readback = if core.route == Route::InPlace && layout.is_dense() {
        None
    } else {
        Some(core.pool.take(Role::Readback, layout.result_bytes()).await?)
    };
    let blocks = layout.blocks(pipeline, work, span)?;
    let params = match blocks.is_empty() {
        true => None,
        false => Some(core.pool.take(Role::Params, blocks.len() as u64).await?),
    };
    if let Some(params) = &params {
        core.queue.write_buffer(&params.buffer, 0, &blocks);
    }

    let flag = Flag::of(core, &pipeline.0).await?;

    // From here to `finish` nothing waits: the scopes belong to this thread.
    let finished = {
        let scopes = core.scopes();
        let mut encoder = core.device.create_command_encoder(&CommandEncoderDescriptor::default());
        encoder.clear_buffer(&output.buffer, 0, Some(layout.tiles * layout.output_step));
        if let Some(flag) = &flag {
            flag.lower(&mut encoder);
        }
        let bound = (&output, params.as_ref(), flag.as_ref());
        layout.record(core, pipeline, work, bound, &mut encoder)?;
        let result = match readback {
            None => output,
            Some(readback) => {
                layout.gather(&output, &readback, &mut encoder);
                readback
            }
        };
        core.finish(scopes, encoder, result, layout.result_bytes(), (flag, None))
    };
    finished.await
}

/// Where each tile's pixels and parameters lie. Devices want dynamic offsets at multiples of some
/// power of two.
struct Layout {
    tiles: u64,
    tile_bytes: u64,
    output_step: u64,
    params_step: u64,
    block: u64,
}

impl Layout {
    fn new(
        core: &Core,
        pipeline: &Pipeline,
        work: &RenderWork,
        span: Span,
    ) -> Result<Layout, Failure> {
        let all = u64::from(work.columns()) * u64::from(work.rows());
        if span.len == 0 || span.end() > all {
            return Err(internal(format!("tiles {span} are not within the picture's {all}")));
        }
        let limits = &core.limits;
        let storage = u64::from(limits.min_storage_buffer_offset_alignment);
        let uniform = u64::from(limits.min_uniform_buffer_offset_alignment);
        let block = pipeline.0.params.as_ref().map_or(0, |params| block_size(&params.bytes));
        let layout = Layout {
            tiles: span.len,
            tile_bytes: work.tile_bytes(),
            output_step: aligned(work.tile_bytes(), storage),
            params_step: aligned(block, storage.max(uniform)),
            block,
        };
        if u32::try_from(layout.tiles.saturating_mul(layout.output_step)).is_err() {
            return Err(internal(format!("{} tiles are too many for one unit", span.len)));
        }
        Ok(layout)
    }

    /// Whether tiles follow each other without gaps, as in a result.
    fn is_dense(&self) -> bool {
        self.output_step == self.tile_bytes
    }

    fn result_bytes(&self) -> u64 {
        self.tiles * self.tile_bytes
    }

    /// The parameter blocks of all tiles, each at its step; empty if the kernel has none.
    fn blocks(
        &self,
        pipeline: &Pipeline,
        work: &RenderWork,
        span: Span,
    ) -> Result<Vec<u8>, Failure> {
        let mut blocks = Vec::new();
        let Some(params) = &pipeline.0.params else {
            return Ok(blocks);
        };
        for tile in span.start..span.end() {
            blocks.extend(padded(&tile_block(params, work, tile)?));
            blocks.resize(aligned(blocks.len() as u64, self.params_step) as usize, 0);
        }
        Ok(blocks)
    }

    fn record(
        &self,
        core: &Core,
        pipeline: &Pipeline,
        work: &RenderWork,
        (output, params, flag): (&Lease, Option<&Lease>, Option<&Flag>),
        encoder: &mut CommandEncoder,
    ) -> Result<(), Failure> {
        let compiled = &*pipeline.0;
        let output = output.binding(self.tile_bytes);
        let params = params.map(|lease| lease.binding(self.block));
        let group = compiled.bind(&core.device, &[], &output, params.as_ref())?;
        let [x, y, _] = compiled.workgroup;
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        pass.set_pipeline(&compiled.pipeline);
        if let Some(flag) = flag {
            flag.bind(&mut pass);
        }
        for tile in 0..self.tiles {
            let (output, params) = (tile * self.output_step, tile * self.params_step);
            pass.set_bind_group(0, &group, &compiled.offsets(output as u32, params as u32));
            pass.dispatch_workgroups(work.tile.div_ceil(x), work.tile.div_ceil(y), 1);
        }
        Ok(())
    }

    /// Brings the tiles together where they are read.
    fn gather(&self, from: &Lease, to: &Lease, encoder: &mut CommandEncoder) {
        if self.is_dense() {
            encoder.copy_buffer_to_buffer(&from.buffer, 0, &to.buffer, 0, self.result_bytes());
            return;
        }
        for tile in 0..self.tiles {
            let (source, target) = (tile * self.output_step, tile * self.tile_bytes);
            encoder.copy_buffer_to_buffer(
                &from.buffer,
                source,
                &to.buffer,
                target,
                self.tile_bytes,
            );
        }
    }
}
