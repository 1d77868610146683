//! Kernels on a GPU, through wgpu: Vulkan, Metal and DirectX natively, WebGPU in a browser.

use std::ops::Deref;

use shoal_protocol::{Failure, GpuCaps, Kernel, MapWork, RenderWork, Span};

/// An open device. Cheap to clone. Once [`Gpu::is_lost`], drop it with all it made and open another.
#[derive(Clone)]
pub struct Gpu {}

impl Gpu {
    /// Opens the best adapter: a real GPU if there is one, else software, which [`GpuCaps::software`] says.
    pub async fn open() -> Result<Gpu, String> {
        todo!()
    }

    pub fn caps(&self) -> GpuCaps {
        todo!()
    }

    pub fn is_lost(&self) -> bool {
        todo!()
    }

    /// Compiles a kernel for this device.
    pub async fn prepare(&self, _kernel: &Kernel) -> Result<Pipeline, Failure> {
        todo!()
    }

    /// Memory for `bytes` of input, which the shell fills.
    pub async fn stage(&self, _bytes: u64) -> Result<Stage, Failure> {
        todo!()
    }

    /// Keeps a filled stage on the device, to be used by many units.
    pub async fn share(&self, _stage: Stage) -> Result<Shared, Failure> {
        todo!()
    }

    /// Computes `span` of a map job of `items` items. One input for each of [`MapWork::inputs`], in order.
    pub async fn map(
        &self,
        _pipeline: &Pipeline,
        _work: &MapWork,
        _items: u64,
        _span: Span,
        _inputs: Vec<Input>,
    ) -> Result<Readback, Failure> {
        todo!()
    }

    /// Computes the tiles of `span`.
    pub async fn render(
        &self,
        _pipeline: &Pipeline,
        _work: &RenderWork,
        _span: Span,
    ) -> Result<Readback, Failure> {
        todo!()
    }
}

/// A compiled kernel. Cheap to clone; keep one per job.
#[derive(Clone)]
pub struct Pipeline {}

/// Input memory being filled. `Send`, so that it can be filled while another unit computes.
pub struct Stage {}

impl Stage {
    pub fn len(&self) -> u64 {
        todo!()
    }

    pub fn is_empty(&self) -> bool {
        todo!()
    }

    /// Copies bytes to a position that is a multiple of 4 (in a browser the length is too, but for the last).
    pub fn write(&mut self, _at: u64, _bytes: &[u8]) -> Result<(), Failure> {
        todo!()
    }

    /// The same from JavaScript's memory, without passing through Rust's.
    #[cfg(target_arch = "wasm32")]
    pub fn write_js(&mut self, _at: u64, _bytes: &js_sys::Uint8Array) -> Result<(), Failure> {
        todo!()
    }
}

/// An input kept on the device. Cheap to clone.
#[derive(Clone)]
pub struct Shared {}

/// What a unit reads: its own part, or what all units share.
pub enum Input {
    Own(Stage),
    Shared(Shared),
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

/// A unit's result in mapped memory, which goes back to the pool when dropped. It is `Send + 'static` natively, so
/// `Bytes::from_owner(readback)` sends it without a copy.
pub struct Readback {}

impl Deref for Readback {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        todo!()
    }
}

impl AsRef<[u8]> for Readback {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(target_arch = "wasm32")]
impl Readback {
    /// The bytes as JavaScript sees them, without a copy into Rust's memory. Valid until `self` is dropped.
    pub fn as_js(&self) -> js_sys::Uint8Array {
        todo!()
    }
}
