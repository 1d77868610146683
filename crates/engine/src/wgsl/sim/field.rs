//! Some rows of the grid on the device, and the passes run over them.

use shoal_protocol::Failure;
use wgpu::{BindGroup, CommandEncoder, ComputePassDescriptor};

use super::Program;
use super::block::Blocks;
use crate::wgsl::fault::internal;
use crate::wgsl::guard::Flag;
use crate::wgsl::pipeline::Pipeline;
use crate::wgsl::pool::Lease;

/// Rows in two or three buffers: one holds the state, the others take turns in what comes of it.
pub(super) struct Field {
    pub(super) rows: u64,
    buffers: Vec<Lease>,
    /// From one buffer to another.
    groups: Vec<(usize, usize, BindGroup)>,
    /// Where its parameter block lies.
    block: u64,
}

impl Field {
    /// Memory with stale content. `params` holds the block of number `block`.
    pub(super) async fn new(
        program: &Program,
        rows: u64,
        buffers: usize,
        (params, blocks, block): (&Lease, Blocks, u64),
    ) -> Result<Field, Failure> {
        let core = &program.core;
        let size = rows * program.row_bytes();
        let mut leases = Vec::with_capacity(buffers);
        for _ in 0..buffers {
            leases.push(core.output(size).await?);
        }
        let Some((pipeline, _)) = program.passes.first() else {
            return Err(internal("a simulation without a pass"));
        };
        let scopes = core.scopes();
        let mut groups = Vec::new();
        for (from, state) in leases.iter().enumerate() {
            for (to, next) in leases.iter().enumerate().filter(|(to, _)| *to != from) {
                // All passes see the same bindings.
                let group = pipeline.0.bind(
                    &core.device,
                    &[state.binding(size)],
                    &next.binding(size),
                    Some(&params.binding(blocks.size)),
                )?;
                groups.push((from, to, group));
            }
        }
        scopes.close().await?;
        Ok(Field { rows, buffers: leases, groups, block: blocks.at(block) })
    }

    pub(super) fn buffers(&self) -> &[Lease] {
        &self.buffers
    }

    pub(super) fn buffer(&self, index: usize) -> &Lease {
        &self.buffers[index]
    }

    /// Records one step from the state in buffer `from`; says where the new state is. With three buffers, or one
    /// pass, `from` keeps its state.
    pub(super) fn step(
        &self,
        program: &Program,
        flag: Option<&Flag>,
        from: usize,
        encoder: &mut CommandEncoder,
    ) -> Result<usize, Failure> {
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        if let Some(flag) = flag {
            flag.bind(&mut pass);
        }
        let mut others = (0..self.buffers.len()).filter(|it| *it != from);
        let first = others.next().unwrap_or(from);
        let turns = [first, others.next().unwrap_or(from)];
        let (mut at, mut run) = (from, 0);
        for (pipeline, times) in &program.passes {
            pass.set_pipeline(&pipeline.0.pipeline);
            let [x, y] = self.workgroups(program, pipeline);
            for _ in 0..*times {
                let to = turns[run % 2];
                pass.set_bind_group(0, self.group(at, to)?, &self.offsets(pipeline));
                pass.dispatch_workgroups(x, y, 1);
                (at, run) = (to, run + 1);
            }
        }
        Ok(at)
    }

    /// Records one entry point that writes buffer `to` and reads no state.
    pub(super) fn make(
        &self,
        program: &Program,
        pipeline: &Pipeline,
        flag: Option<&Flag>,
        to: usize,
        encoder: &mut CommandEncoder,
    ) -> Result<(), Failure> {
        let other = usize::from(to == 0);
        let [x, y] = self.workgroups(program, pipeline);
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline.0.pipeline);
        if let Some(flag) = flag {
            flag.bind(&mut pass);
        }
        pass.set_bind_group(0, self.group(other, to)?, &self.offsets(pipeline));
        pass.dispatch_workgroups(x, y, 1);
        Ok(())
    }

    pub(super) fn offsets(&self, pipeline: &Pipeline) -> Vec<u32> {
        pipeline.0.offsets(0, self.block as u32)
    }

    /// One invocation for each cell.
    pub(super) fn workgroups(&self, program: &Program, pipeline: &Pipeline) -> [u32; 2] {
        let [x, y, _] = pipeline.0.workgroup;
        [program.work.width.div_ceil(x), (self.rows as u32).div_ceil(y)]
    }

    fn group(&self, from: usize, to: usize) -> Result<&BindGroup, Failure> {
        let found = self.groups.iter().find(|(f, t, _)| (*f, *t) == (from, to));
        found
            .map(|(_, _, group)| group)
            .ok_or_else(|| internal(format!("no way from buffer {from} to {to}")))
    }
}
