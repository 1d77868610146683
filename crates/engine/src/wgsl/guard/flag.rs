//! The word a watched kernel sets when loops were cut short.

use shoal_protocol::Failure;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingResource, BindingType, Buffer, BufferBindingType, CommandEncoder,
    ComputePass, Device, ShaderStages,
};

use super::Guard;
use super::rewrite::GROUP;
use crate::wgsl::gpu::Core;
use crate::wgsl::memory::Route;
use crate::wgsl::pipeline::Compiled;
use crate::wgsl::pool::{Lease, Role};

/// The flag's bytes.
const SIZE: u64 = 4;

/// How a watched kernel sees its flag.
pub(super) fn layout(device: &Device) -> BindGroupLayout {
    let entry = BindGroupLayoutEntry {
        binding: 0,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty: BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    device.create_bind_group_layout(&BindGroupLayoutDescriptor { label: None, entries: &[entry] })
}

/// The flag of one unit.
pub(in crate::wgsl) struct Flag {
    guard: Guard,
    group: BindGroup,
    word: Lease,
    /// Where it is read, if not in `word`.
    readback: Option<Lease>,
}

impl Flag {
    /// None if the kernel is not watched.
    pub(in crate::wgsl) async fn of(
        core: &Core,
        compiled: &Compiled,
    ) -> Result<Option<Flag>, Failure> {
        let (Some(guard), Some(layout)) = (&core.guard, &compiled.watch) else {
            return Ok(None);
        };
        let word = core.output(SIZE).await?;
        let readback = match core.route {
            Route::InPlace => None,
            Route::Copied | Route::Queued => Some(core.pool.take(Role::Readback, SIZE).await?),
        };
        let resource = BindingResource::Buffer(word.binding(SIZE));
        let group = core.device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout,
            entries: &[BindGroupEntry { binding: 0, resource }],
        });
        Ok(Some(Flag { guard: guard.clone(), group, word, readback }))
    }

    /// Before the kernel runs.
    pub(in crate::wgsl) fn lower(&self, encoder: &mut CommandEncoder) {
        encoder.clear_buffer(&self.word.buffer, 0, Some(SIZE));
    }

    pub(in crate::wgsl) fn bind(&self, pass: &mut ComputePass<'_>) {
        pass.set_bind_group(GROUP, &self.group, &[]);
    }

    /// Copies the word, which stays as it is, to where it is read with other bytes.
    pub(in crate::wgsl) fn peek(&self, encoder: &mut CommandEncoder, to: &Buffer, at: u64) {
        encoder.copy_buffer_to_buffer(&self.word.buffer, 0, to, at, SIZE);
    }

    /// What it means if the word is not zero.
    pub(in crate::wgsl) fn failure(&self) -> Failure {
        self.guard.failure()
    }

    /// After the kernel ran: brings the word to where it is read, and says what it means unless it
    /// is zero.
    pub(in crate::wgsl) fn gather(self, encoder: &mut CommandEncoder) -> (Lease, Guard) {
        let Flag { guard, group: _, word, readback } = self;
        let lease = match readback {
            None => word,
            Some(readback) => {
                encoder.copy_buffer_to_buffer(&word.buffer, 0, &readback.buffer, 0, SIZE);
                readback
            }
        };
        (lease, guard)
    }
}
