//! What a band has the device do, from the first command to the answer.

use shoal_protocol::Failure;
use wgpu::{Buffer, CommandEncoder, CommandEncoderDescriptor};

use crate::wgsl::fault::Scopes;
use crate::wgsl::gpu::Core;
use crate::wgsl::guard::Flag;
use crate::wgsl::memory::Readback;
use crate::wgsl::pool::{Lease, Role};

/// What the flag takes behind the bytes that are read.
const FLAG: u64 = 4;

/// Commands being recorded. Nothing may wait until they are submitted: error scopes belong to one thread.
pub(super) struct Tape<'a> {
    core: &'a Core,
    scopes: Scopes,
    pub(super) encoder: CommandEncoder,
}

/// Memory to read `size` bytes in.
pub(super) struct Target {
    lease: Lease,
    size: u64,
}

impl Target {
    pub(super) async fn new(core: &Core, size: u64) -> Result<Target, Failure> {
        Ok(Target { lease: core.pool.take(Role::Readback, size + FLAG).await?, size })
    }

    pub(super) fn buffer(&self) -> &Buffer {
        &self.lease.buffer
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

impl<'a> Tape<'a> {
    pub(super) fn new(core: &'a Core) -> Tape<'a> {
        let scopes = core.scopes();
        let encoder = core.device.create_command_encoder(&CommandEncoderDescriptor::default());
        Tape { core, scopes, encoder }
    }

    /// Has it done. The answer says that it was taken, not that it is through.
    pub(super) fn submit(self) -> impl Future<Output = Result<(), Failure>> + use<> {
        let Tape { core, scopes, encoder } = self;
        core.queue.submit([encoder.finish()]);
        scopes.close()
    }

    /// Has it done and waits for what was copied into `target`. An error if loops were cut short, now or before.
    pub(super) fn read(
        self,
        target: Target,
        flag: Option<&'a Flag>,
    ) -> impl Future<Output = Result<Readback, Failure>> + use<'a> {
        let Tape { core, scopes, mut encoder } = self;
        let Target { lease, size } = target;
        if let Some(flag) = flag {
            flag.peek(&mut encoder, &lease.buffer, size);
        }
        let index = core.queue.submit([encoder.finish()]);
        let answer = core.read(&index, lease, size + FLAG);
        let caught = scopes.close();
        async move {
            let answer = answer.await;
            caught.await?;
            let mut answer = answer?;
            let word = answer.take_word();
            match flag {
                Some(flag) if word != 0 => Err(flag.failure()),
                Some(_) | None => Ok(answer),
            }
        }
    }
}
