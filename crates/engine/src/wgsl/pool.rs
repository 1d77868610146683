//! Buffers kept for the next unit: making one costs more than a small unit's computing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_protocol::Failure;
use wgpu::{Buffer, BufferBinding, BufferDescriptor, BufferSize, BufferUsages, Device, MapMode};

use super::fault::{Lost, Scopes};
use super::memory::Route;

/// Free buffers kept, in bytes: two units of the largest size with input and output, and as much
/// again for a change of sizes.
const KEPT_BYTES: u64 = 128 << 20;
/// Smallest buffer made; smaller wishes share it.
const SMALLEST: u64 = 4 << 10;
/// Up to this size buffers are powers of two, so that units of nearly the same size share them;
/// larger ones (shared inputs) are made to measure.
const LARGEST_CLASS: u64 = 32 << 20;

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Filled by the processor. Free ones are kept mapped.
    Upload,
    /// Read by kernels, filled by copies or the queue.
    Input,
    /// Written by kernels.
    Output,
    /// Read by the processor.
    Readback,
    /// Parameter blocks, filled by the queue.
    Params,
}

impl Role {
    fn usage(self, route: Route) -> BufferUsages {
        let in_place = route == Route::InPlace;
        match self {
            Role::Upload if in_place => BufferUsages::MAP_WRITE | BufferUsages::STORAGE,
            Role::Upload => BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC,
            Role::Input => BufferUsages::STORAGE | BufferUsages::COPY_DST,
            Role::Output if in_place => {
                BufferUsages::MAP_READ
                    | BufferUsages::STORAGE
                    | BufferUsages::COPY_SRC
                    | BufferUsages::COPY_DST
            }
            Role::Output => BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
            Role::Readback => BufferUsages::MAP_READ | BufferUsages::COPY_DST,
            Role::Params => BufferUsages::UNIFORM | BufferUsages::STORAGE | BufferUsages::COPY_DST,
        }
    }
}

#[derive(Clone)]
pub(super) struct Pool {
    device: Device,
    lost: Lost,
    largest: u64,
    route: Route,
    free: Arc<Free>,
}

impl Pool {
    pub(super) fn new(device: Device, lost: Lost, largest: u64, route: Route) -> Pool {
        Pool { device, lost, largest, route, free: Arc::default() }
    }

    /// A buffer of at least `size` bytes with stale content; uploads are mapped.
    pub(super) async fn take(&self, role: Role, size: u64) -> Result<Lease, Failure> {
        self.lost.check()?;
        if size > self.largest {
            let message =
                format!("a buffer of {size} bytes; this GPU allows at most {}", self.largest);
            return Err(Failure::OutOfMemory { message });
        }
        let size = class(size).min(self.largest);
        if let Some(buffer) = self.reuse(role, size) {
            return Ok(Lease {
                buffer,
                role,
                mapped: role == Role::Upload,
                free: self.free.clone(),
            });
        }
        let (buffer, caught) = {
            let scopes = Scopes::open(&self.device, &self.lost);
            let buffer = self.device.create_buffer(&BufferDescriptor {
                label: None,
                size,
                usage: role.usage(self.route),
                mapped_at_creation: role == Role::Upload,
            });
            (buffer, scopes.close())
        };
        caught.await?;
        Ok(Lease { buffer, role, mapped: role == Role::Upload, free: self.free.clone() })
    }

    fn reuse(&self, role: Role, size: u64) -> Option<Buffer> {
        self.free.take(role, size).or_else(|| {
            // Uploads come back when the GPU is done with them, which somebody has to notice.
            if role == Role::Upload {
                let _ = self.device.poll(wgpu::PollType::Poll);
            }
            self.free.take(role, size)
        })
    }
}

/// A buffer out of the pool; goes back when dropped. The GPU may still be using it then: what is
/// recorded later runs later.
pub(super) struct Lease {
    pub(super) buffer: Buffer,
    role: Role,
    mapped: bool,
    free: Arc<Free>,
}

impl Lease {
    /// The first `size` bytes, as a kernel sees them.
    pub(super) fn binding(&self, size: u64) -> BufferBinding<'_> {
        BufferBinding { buffer: &self.buffer, offset: 0, size: BufferSize::new(size) }
    }

    /// Gives a filled upload to the GPU.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn unmap(&mut self) {
        self.buffer.unmap();
        self.mapped = false;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (free, role, buffer) = (self.free.clone(), self.role, self.buffer.clone());
        if role != Role::Upload || self.mapped {
            return free.put(role, buffer);
        }
        self.buffer.map_async(MapMode::Write, .., move |outcome| {
            if outcome.is_ok() {
                free.put(role, buffer);
            }
        });
    }
}

/// Oldest first.
#[derive(Default)]
struct Free(Mutex<Vec<(Role, Buffer)>>);

impl Free {
    fn take(&self, role: Role, size: u64) -> Option<Buffer> {
        let mut free = self.lock();
        let at = free.iter().rposition(|(r, buffer)| *r == role && buffer.size() == size)?;
        Some(free.remove(at).1)
    }

    fn put(&self, role: Role, buffer: Buffer) {
        let mut free = self.lock();
        free.push((role, buffer));
        let mut kept: u64 = free.iter().map(|(_, buffer)| buffer.size()).sum();
        while kept > KEPT_BYTES {
            kept -= free.remove(0).1.size();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Role, Buffer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn class(size: u64) -> u64 {
    if size > LARGEST_CLASS {
        return size.next_multiple_of(SMALLEST);
    }
    size.next_power_of_two().max(SMALLEST)
}
