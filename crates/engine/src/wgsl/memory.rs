//! Bytes on their way in and out: filled by the shell, read by kernels, read back by the shell.

use std::ops::Deref;
use std::sync::Arc;

use shoal_protocol::Failure;
use wgpu::{
    AdapterInfo, BufferBinding, BufferView, CommandEncoder, CommandEncoderDescriptor, DeviceType,
    Features,
};

use super::fault::internal;
use super::gpu::{Core, aligned};
use super::pool::{Lease, Role};

/// How bytes reach a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Processor and GPU share memory: kernels use the mapped buffers themselves.
    InPlace,
    /// Through mapped buffers beside the GPU's own, with one copy each way.
    Copied,
    /// In by the queue, out by a copy: all a browser has.
    Queued,
}

impl Route {
    pub(super) fn of(info: &AdapterInfo, features: Features) -> Route {
        let shared = matches!(info.device_type, DeviceType::Cpu | DeviceType::IntegratedGpu);
        if cfg!(target_arch = "wasm32") {
            Route::Queued
        } else if shared && features.contains(Features::MAPPABLE_PRIMARY_BUFFERS) {
            Route::InPlace
        } else {
            Route::Copied
        }
    }
}

/// Input memory being filled. `Send` natively, so that it can be filled while another unit
/// computes. What is left unwritten is not defined: fill all of it.
pub struct Stage {
    lease: Lease,
    size: u64,
    #[cfg(not(target_arch = "wasm32"))]
    view: wgpu::BufferViewMut,
    #[cfg(target_arch = "wasm32")]
    queue: wgpu::Queue,
}

impl Stage {
    pub fn len(&self) -> u64 {
        self.size
    }

    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    fn check(&self, at: u64, len: usize) -> Result<(), Failure> {
        if at.checked_add(len as u64).is_none_or(|end| end > self.size) {
            let size = self.size;
            return Err(internal(format!("{len} bytes at {at} do not fit an input of {size}")));
        }
        Ok(())
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Stage {
    pub(super) async fn new(core: &Core, size: u64) -> Result<Stage, Failure> {
        let lease = core.pool.take(Role::Upload, aligned(size, 4)).await?;
        let view = lease
            .buffer
            .get_mapped_range_mut(0..aligned(size.max(1), 4))
            .map_err(|error| internal(error.to_string()))?;
        Ok(Stage { lease, size, view })
    }

    /// Copies bytes to a position.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.check(at, bytes.len())?;
        let at = at as usize;
        self.view.slice(at..at + bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    fn seal(self) -> Sealed {
        let Stage { mut lease, size, view } = self;
        drop(view);
        lease.unmap();
        Sealed { lease, size }
    }
}

#[cfg(target_arch = "wasm32")]
impl Stage {
    pub(super) async fn new(core: &Core, size: u64) -> Result<Stage, Failure> {
        let lease = core.pool.take(Role::Input, aligned(size, 4)).await?;
        Ok(Stage { lease, size, queue: core.queue.clone() })
    }

    /// Copies bytes to a position that is a multiple of 4; only the last piece may have another
    /// length.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.check(at, bytes.len())?;
        let (head, tail) = bytes.split_at(bytes.len() & !3);
        self.queue.write_buffer(&self.lease.buffer, at, head);
        self.write_tail(at + head.len() as u64, tail);
        Ok(())
    }

    /// The same from JavaScript's memory, without passing through Rust's.
    pub fn write_js(&mut self, at: u64, bytes: &js_sys::Uint8Array) -> Result<(), Failure> {
        self.check(at, bytes.length() as usize)?;
        let (Some(queue), Some(buffer)) = (self.queue.as_webgpu(), self.lease.buffer.as_webgpu())
        else {
            return Err(internal("this is no WebGPU device"));
        };
        let whole = bytes.length() & !3;
        let head = bytes.subarray(0, whole);
        queue
            .write_buffer_with_f64_and_u8_array(buffer, at as f64, &head)
            .map_err(|error| internal(format!("the browser refused the input: {error:?}")))?;
        self.write_tail(at + u64::from(whole), &bytes.subarray(whole, bytes.length()).to_vec());
        Ok(())
    }

    /// WebGPU writes words only; the last one is filled up with zeros.
    fn write_tail(&self, at: u64, tail: &[u8]) {
        if !tail.is_empty() {
            let mut word = [0; 4];
            word[..tail.len()].copy_from_slice(tail);
            self.queue.write_buffer(&self.lease.buffer, at, &word);
        }
    }

    fn seal(self) -> Sealed {
        Sealed { lease: self.lease, size: self.size }
    }
}

/// Filled memory the GPU may have.
pub(super) struct Sealed {
    lease: Lease,
    size: u64,
}

impl Sealed {
    pub(super) fn binding(&self) -> BufferBinding<'_> {
        self.lease.binding(aligned(self.size.max(1), 4))
    }
}

/// An input kept on the device. Cheap to clone.
#[derive(Clone)]
pub struct Shared(pub(super) Arc<Sealed>);

impl Shared {
    pub(super) async fn new(core: &Core, stage: Stage) -> Result<Shared, Failure> {
        let ready = Ready::new(core, Input::Own(stage)).await?;
        let (sealed, caught) = {
            let scopes = core.scopes();
            let mut encoder =
                core.device.create_command_encoder(&CommandEncoderDescriptor::default());
            let mut spent = Vec::new();
            let sealed = ready.place(&mut encoder, &mut spent);
            core.queue.submit([encoder.finish()]);
            (sealed, scopes.close())
        };
        caught.await?;
        Ok(Shared(sealed))
    }

    pub fn len(&self) -> u64 {
        self.0.size
    }

    pub fn is_empty(&self) -> bool {
        self.0.size == 0
    }
}

/// What a unit reads: its own part, or what all units share.
pub enum Input {
    Own(Stage),
    Shared(Shared),
}

impl Input {
    pub(super) fn len(&self) -> u64 {
        match self {
            Input::Own(stage) => stage.len(),
            Input::Shared(shared) => shared.len(),
        }
    }
}

impl From<Stage> for Input {
    fn from(stage: Stage) -> Input {
        Input::Own(stage)
    }
}

impl From<Shared> for Input {
    fn from(shared: Shared) -> Input {
        Input::Shared(shared)
    }
}

/// An input with the memory it still needs, so that recording does not have to wait.
pub(super) enum Ready {
    Own { sealed: Sealed, copy: Option<Lease> },
    Shared(Shared),
}

impl Ready {
    pub(super) async fn new(core: &Core, input: Input) -> Result<Ready, Failure> {
        let stage = match input {
            Input::Shared(shared) => return Ok(Ready::Shared(shared)),
            Input::Own(stage) => stage,
        };
        let copy = match core.route {
            Route::InPlace | Route::Queued => None,
            Route::Copied => Some(core.pool.take(Role::Input, aligned(stage.size, 4)).await?),
        };
        Ok(Ready::Own { sealed: stage.seal(), copy })
    }

    /// Records what brings the bytes to the kernel. What lands in `spent` must live until that is
    /// submitted.
    pub(super) fn place(self, encoder: &mut CommandEncoder, spent: &mut Vec<Lease>) -> Arc<Sealed> {
        let (sealed, copy) = match self {
            Ready::Shared(shared) => return shared.0,
            Ready::Own { sealed, copy: None } => return Arc::new(sealed),
            Ready::Own { sealed, copy: Some(copy) } => (sealed, copy),
        };
        let Sealed { lease, size } = sealed;
        encoder.copy_buffer_to_buffer(&lease.buffer, 0, &copy.buffer, 0, aligned(size, 4));
        spent.push(lease);
        Arc::new(Sealed { lease: copy, size })
    }
}

/// A unit's result in mapped memory, which goes back to the pool when dropped. It is `Send +
/// 'static` natively, so `Bytes::from_owner(readback)` sends it without a copy.
pub struct Readback {
    /// Always there until dropped: a buffer is unmapped only after its views are gone.
    view: Option<BufferView>,
    lease: Lease,
    size: usize,
}

impl Readback {
    pub(super) fn new(lease: Lease, size: u64) -> Result<Readback, Failure> {
        let view = lease
            .buffer
            .get_mapped_range(0..aligned(size, 4))
            .map_err(|error| internal(error.to_string()))?;
        Ok(Readback { view: Some(view), lease, size: size as usize })
    }

    /// Takes off the last word.
    pub(super) fn take_word(&mut self) -> u32 {
        let word = self.last_chunk().copied().unwrap_or_default();
        self.size = self.size.saturating_sub(word.len());
        u32::from_le_bytes(word)
    }

    /// The bytes as JavaScript sees them, without a copy into Rust's memory. Valid until `self` is
    /// dropped.
    #[cfg(target_arch = "wasm32")]
    pub fn as_js(&self) -> js_sys::Uint8Array {
        match &self.view {
            Some(view) => view.as_uint8array().subarray(0, self.size as u32),
            None => js_sys::Uint8Array::new_with_length(0),
        }
    }
}

impl Deref for Readback {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.view.as_deref().map_or(&[], |bytes| &bytes[..self.size])
    }
}

impl AsRef<[u8]> for Readback {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Readback {
    fn drop(&mut self) {
        self.view = None;
        self.lease.buffer.unmap();
    }
}
