//! One unit of a map: one dispatch, one invocation for each item.

use shoal_kinds::{MapWork, Slot};
use shoal_protocol::{Failure, Span};
use wgpu::{CommandEncoderDescriptor, ComputePassDescriptor};

use super::fault::internal;
use super::fold::Folding;
use super::gpu::{Core, aligned};
use super::guard::Flag;
use super::memory::{Input, Readback, Ready, Route};
use super::params::map_block;
use super::pipeline::{Bound, Pipeline};
use super::pool::{Lease, Role};
use super::report::Report;

pub(super) async fn run(
    core: &Core,
    pipeline: &Pipeline,
    work: &MapWork,
    items: u64,
    span: Span,
    inputs: Vec<Input>,
) -> Result<Readback, Failure> {
    check(work, items, span, &inputs)?;
    let blocks = span;
    let (items, span) = match &work.fold {
        Some(fold) => (fold.items, fold.items_of(span)),
        None => (items, span),
    };
    let groups = groups(core, pipeline, span)?;
    let block = match &pipeline.0.params {
        Some(params) => Some(map_block(params, items, span, pipeline.0.windows.is_some())?),
        None => None,
    };
    let each = work.fold.as_ref().map_or(work.output_bytes, |fold| fold.item_bytes);
    let size = span.len * u64::from(each);
    let report = Report::of(core, pipeline.0.windows.as_ref(), work, (items, blocks)).await?;
    let folding = Folding::of(core, pipeline, work, blocks).await?;
    let result = folding.as_ref().map_or(size, |folding| folding.size);
    let unit = Unit::new(core, pipeline, (size, result), block, inputs, (report, folding)).await?;
    // Nothing waits while the commands are recorded: error scopes belong to one thread.
    let finished = unit.record(core, pipeline, groups)?;
    finished.await
}

/// The memory of one unit.
struct Unit {
    /// Of the kernel's output, and of the result.
    size: (u64, u64),
    output: Lease,
    /// Where the result is read, if not in `output`.
    readback: Option<Lease>,
    params: Option<(Vec<u8>, Lease)>,
    inputs: Vec<Ready>,
    flag: Option<Flag>,
    report: Option<Report>,
    folding: Option<Folding>,
}

impl Unit {
    async fn new(
        core: &Core,
        pipeline: &Pipeline,
        size: (u64, u64),
        block: Option<Vec<u8>>,
        inputs: Vec<Input>,
        (report, folding): (Option<Report>, Option<Folding>),
    ) -> Result<Unit, Failure> {
        let output = core.output(bound_size(pipeline, size.0)).await?;
        let readback = match core.route {
            Route::InPlace => None,
            Route::Copied | Route::Queued => {
                Some(core.pool.take(Role::Readback, aligned(size.1, 4)).await?)
            }
        };
        let params = match block {
            Some(block) => {
                let lease = core.pool.take(Role::Params, block_size(&block)).await?;
                Some((block, lease))
            }
            None => None,
        };
        let mut ready = Vec::with_capacity(inputs.len());
        for input in inputs {
            ready.push(Ready::new(core, input).await?);
        }
        let flag = Flag::of(core, &pipeline.0).await?;
        Ok(Unit { size, output, readback, params, inputs: ready, flag, report, folding })
    }

    fn record<'a>(
        self,
        core: &'a Core,
        pipeline: &Pipeline,
        groups: u32,
    ) -> Result<impl Future<Output = Result<Readback, Failure>> + use<'a>, Failure> {
        let compiled = &*pipeline.0;
        let Unit { size, output, readback, params, inputs, flag, report, folding } = self;
        let (words, bound) = (aligned(size.1, 4), bound_size(pipeline, size.0));
        let scopes = core.scopes();
        let mut encoder = core.device.create_command_encoder(&CommandEncoderDescriptor::default());
        let mut spent = Vec::new();
        let inputs: Vec<_> =
            inputs.into_iter().map(|input| input.place(&mut encoder, &mut spent)).collect();
        let inputs: Vec<_> = inputs.iter().map(|input| input.binding()).collect();
        let params = params.as_ref().map(|(block, lease)| {
            core.queue.write_buffer(&lease.buffer, 0, &padded(block));
            lease.binding(block_size(block))
        });
        // Buffers are used again: what a kernel leaves unwritten must be zero, not another unit's
        // result.
        encoder.clear_buffer(&output.buffer, 0, Some(bound));
        if let Some(flag) = &flag {
            flag.lower(&mut encoder);
        }
        if let Some(report) = &report {
            report.ready(core, &mut encoder);
        }
        let bound = output.binding(bound);
        let (place, words_said) = report.as_ref().map(|it| (it.place(), it.words())).unzip();
        let group = compiled.bind_all(
            &core.device,
            &Bound {
                inputs: &inputs,
                output: &bound,
                params: params.as_ref(),
                place: place.as_ref(),
                report: words_said.as_ref(),
            },
        )?;
        {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
            pass.set_pipeline(&compiled.pipeline);
            pass.set_bind_group(0, &group, &compiled.offsets(0, 0));
            if let Some(flag) = &flag {
                flag.bind(&mut pass);
            }
            pass.dispatch_workgroups(groups, 1, 1);
        }
        let output = match folding {
            None => output,
            Some(folding) => folding.record(core, &output, size.0, &mut encoder)?,
        };
        let result = match readback {
            None => output,
            Some(readback) => {
                encoder.copy_buffer_to_buffer(&output.buffer, 0, &readback.buffer, 0, words);
                readback
            }
        };
        Ok(core.finish(scopes, encoder, result, size.1, (flag, report)))
    }
}

/// Workgroups for one invocation per item.
fn groups(core: &Core, pipeline: &Pipeline, span: Span) -> Result<u32, Failure> {
    let groups = span.len.div_ceil(u64::from(pipeline.0.workgroup[0]));
    let most = core.limits.max_compute_workgroups_per_dimension;
    u32::try_from(groups).ok().filter(|groups| *groups <= most).ok_or_else(|| {
        internal(format!("{} items need {groups} workgroups; this GPU allows {most}", span.len))
    })
}

/// What a kernel with windows writes outside of them goes to one element more.
fn bound_size(pipeline: &Pipeline, size: u64) -> u64 {
    let windows = pipeline.0.windows.iter().flat_map(|it| &it.arrays);
    let output = windows.into_iter().find(|window| window.slot == Slot::Output);
    aligned(size + output.map_or(0, |window| u64::from(window.stride)), 4)
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
        let (start, end) = input.range(span);
        let wanted = end - start;
        if given.len() != wanted {
            let given = given.len();
            return Err(internal(format!("input {at} has {given} bytes instead of {wanted}")));
        }
    }
    Ok(())
}
