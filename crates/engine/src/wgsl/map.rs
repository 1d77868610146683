//! One unit of a map: one dispatch, one invocation for each item.

use shoal_protocol::{Failure, InputSplit, MapWork, Span};
use wgpu::{BufferBinding, BufferSize, CommandEncoderDescriptor, ComputePassDescriptor};

use super::fault::internal;
use super::gpu::{Core, aligned};
use super::memory::{Input, Readback, Ready, Route};
use super::params::map_block;
use super::pipeline::Pipeline;
use super::pool::Role;

pub(super) async fn run(
    core: &Core,
    pipeline: &Pipeline,
    work: &MapWork,
    items: u64,
    span: Span,
    inputs: Vec<Input>,
) -> Result<Readback, Failure> {
    let compiled = &*pipeline.0;
    check(work, items, span, &inputs)?;
    let groups = span.len.div_ceil(u64::from(compiled.workgroup[0]));
    let most = core.limits.max_compute_workgroups_per_dimension;
    let groups = u32::try_from(groups).ok().filter(|groups| *groups <= most).ok_or_else(|| {
        internal(format!("{} items need {groups} workgroups; this GPU allows {most}", span.len))
    })?;

    let size = span.len * u64::from(work.output_bytes);
    let output = core.output(aligned(size, 4)).await?;
    let readback = match core.route {
        Route::InPlace => None,
        Route::Copied | Route::Queued => {
            Some(core.pool.take(Role::Readback, aligned(size, 4)).await?)
        }
    };
    let block = match &compiled.params {
        Some(params) => Some(map_block(params, items, span)?),
        None => None,
    };
    let params = match &block {
        Some(block) => Some(core.pool.take(Role::Params, block_size(block)).await?),
        None => None,
    };
    let mut ready = Vec::with_capacity(inputs.len());
    for input in inputs {
        ready.push(Ready::new(core, input).await?);
    }

    // From here to `finish` nothing waits: the scopes belong to this thread.
    let finished = {
        let scopes = core.scopes();
        let mut encoder = core.device.create_command_encoder(&CommandEncoderDescriptor::default());
        let inputs: Vec<_> = ready.into_iter().map(|input| input.place(&mut encoder)).collect();
        let inputs: Vec<_> = inputs.iter().map(|input| input.binding()).collect();
        // Buffers are used again: what a kernel leaves unwritten must be zero, not another unit's result.
        encoder.clear_buffer(&output.buffer, 0, Some(aligned(size, 4)));
        let bound = BufferBinding {
            buffer: &output.buffer,
            offset: 0,
            size: BufferSize::new(aligned(size, 4)),
        };
        let block = params.as_ref().zip(block.as_ref()).map(|(lease, block)| {
            core.queue.write_buffer(&lease.buffer, 0, &padded(block));
            BufferBinding {
                buffer: &lease.buffer,
                offset: 0,
                size: BufferSize::new(block_size(block)),
            }
        });
        let group = compiled.bind(&core.device, &inputs, &bound, block.as_ref())?;
        {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
            pass.set_pipeline(&compiled.pipeline);
            pass.set_bind_group(0, &group, &compiled.offsets(0, 0));
            pass.dispatch_workgroups(groups, 1, 1);
        }
        let result = match readback {
            None => output,
            Some(readback) => {
                let size = aligned(size, 4);
                encoder.copy_buffer_to_buffer(&output.buffer, 0, &readback.buffer, 0, size);
                readback
            }
        };
        core.finish(scopes, encoder, result, size)
    };
    finished.await
}

/// Uniform blocks are bound in steps of 16 bytes.
pub(super) fn block_size(block: &[u8]) -> u64 {
    aligned((block.len() as u64).max(16), 16)
}

pub(super) fn padded(block: &[u8]) -> Vec<u8> {
    let mut bytes = block.to_vec();
    bytes.resize(block_size(block) as usize, 0);
    bytes
}

fn check(work: &MapWork, items: u64, span: Span, inputs: &[Input]) -> Result<(), Failure> {
    if span.len == 0 || span.end() > items {
        return Err(internal(format!("items {span} are not within the job's {items}")));
    }
    if inputs.len() != work.inputs.len() {
        let (given, wanted) = (inputs.len(), work.inputs.len());
        return Err(internal(format!("{given} inputs for a kernel of {wanted}")));
    }
    for (at, (input, given)) in work.inputs.iter().zip(inputs).enumerate() {
        let wanted = match input.split {
            InputSplit::PerItem { bytes } => span.len.saturating_mul(u64::from(bytes)),
            InputSplit::Whole => input.blob.size,
        };
        if given.len() != wanted {
            let given = given.len();
            return Err(internal(format!("input {at} has {given} bytes instead of {wanted}")));
        }
    }
    Ok(())
}
