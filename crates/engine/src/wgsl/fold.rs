//! The second half of a unit whose outputs are brought together: blocks are folded before anything is read.

use std::sync::Arc;

use shoal_kinds::{Binding, Fold, Kernel, MapWork, Slot, Space};
use shoal_protocol::{Failure, Span};
use wgpu::{CommandEncoder, ComputePassDescriptor};

use super::fault::internal;
use super::gpu::{Core, aligned};
use super::pipeline::{Compiled, Pipeline};
use super::pool::{Lease, Role};
use crate::fold;

/// Bytes of its uniform block.
const BLOCK_BYTES: u64 = 16;

pub(super) fn kernel(fold: &Fold) -> Result<Kernel, Failure> {
    let source =
        fold::text(fold).ok_or_else(|| internal("a fold of nothing that can be folded"))?;
    let bindings = [
        (0, Space::StorageRead, Slot::Input(0)),
        (1, Space::StorageReadWrite, Slot::Output),
        (2, Space::Uniform, Slot::Params),
    ];
    Ok(Kernel {
        source,
        entry: fold::ENTRY.into(),
        workgroup: [fold::WORKGROUP, 1, 1],
        bindings: bindings.map(|(index, space, slot)| Binding { index, space, slot }).into(),
        params: None,
        windows: None,
    })
}

/// For one unit.
pub(super) struct Folding {
    compiled: Arc<Compiled>,
    /// Bytes of the result.
    pub(super) size: u64,
    items: u32,
    groups: u32,
    output: Lease,
    block: Lease,
}

impl Folding {
    /// None if outputs stay apart.
    pub(super) async fn of(
        core: &Core,
        pipeline: &Pipeline,
        work: &MapWork,
        blocks: Span,
    ) -> Result<Option<Folding>, Failure> {
        let (Some(fold), Some(compiled)) = (&work.fold, &pipeline.1) else { return Ok(None) };
        let size = blocks.len * u64::from(work.output_bytes);
        let groups = (blocks.len * u64::from(fold.columns)).div_ceil(fold::WORKGROUP.into());
        let most = core.limits.max_compute_workgroups_per_dimension;
        let few = u32::try_from(groups).ok().filter(|groups| *groups <= most);
        let groups =
            few.ok_or_else(|| internal(format!("{groups} workgroups are too many to fold")))?;
        let items = u32::try_from(fold.items_of(blocks).len);
        let items = items.map_err(|_| internal("a unit of too many items"))?;
        let output = core.output(aligned(size, 4)).await?;
        let block = core.pool.take(Role::Params, BLOCK_BYTES).await?;
        Ok(Some(Folding { compiled: compiled.clone(), size, items, groups, output, block }))
    }

    /// After the kernel: gives where the result will be.
    pub(super) fn record(
        self,
        core: &Core,
        outputs: &Lease,
        bytes: u64,
        encoder: &mut CommandEncoder,
    ) -> Result<Lease, Failure> {
        let Folding { compiled, size, items, groups, output, block } = self;
        let mut words = items.to_le_bytes().to_vec();
        words.resize(BLOCK_BYTES as usize, 0);
        core.queue.write_buffer(&block.buffer, 0, &words);
        let bound = output.binding(aligned(size, 4));
        let inputs = [outputs.binding(aligned(bytes, 4))];
        let params = block.binding(BLOCK_BYTES);
        let group = compiled.bind(&core.device, &inputs, &bound, Some(&params))?;
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        pass.set_pipeline(&compiled.pipeline);
        pass.set_bind_group(0, &group, &compiled.offsets(0, 0));
        pass.dispatch_workgroups(groups, 1, 1);
        drop(pass);
        Ok(output)
    }
}
