//! An open GPU, and what is made on it: buffers, compiled kernels, and the one way back for numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use shoal_protocol::GpuCaps;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingType, Buffer, BufferAsyncError, BufferBindingType,
    BufferDescriptor, BufferUsages, ComputePipeline, ComputePipelineDescriptor, Device, Limits,
    MapMode, PipelineCompilationOptions, PipelineLayoutDescriptor, Queue, ShaderModuleDescriptor,
    ShaderSource, ShaderStages, SubmissionIndex,
};

use crate::wgsl::adapter::{self, Opened};
use crate::wgsl::fault::{Lost, Scopes};
use crate::wgsl::oneshot::oneshot;

/// An open GPU. Cheap to clone. Once it is lost, drop it with all that is on it.
#[derive(Clone)]
pub struct Card {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    queue: Queue,
    limits: Limits,
    lost: Lost,
    caps: GpuCaps,
    layouts: [BindGroupLayout; 3],
    /// By their text.
    compiled: Mutex<BTreeMap<String, ComputePipeline>>,
}

/// What a kernel's buffers are, in the order of their bindings: read, written, or settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Weights and norms.
    Matrix,
    Place,
    Attend,
}

const LAYOUTS: [&str; 3] = ["rrrwuu", "wrrruww", "rrrwur"];

/// A kernel with its buffers, for any number of rows.
pub(super) struct Dispatch {
    pub(super) pipeline: ComputePipeline,
    pub(super) group: BindGroup,
    /// Workgroups for each row, or for as many rows as one workgroup takes.
    pub(super) groups: u32,
    pub(super) rows: u32,
}

impl Card {
    /// Opens the best adapter: a real GPU if there is one. [`Card::caps`] says whether it is software.
    pub async fn open() -> Result<Card, String> {
        let Opened { device, queue, limits, caps, .. } = adapter::open_copied().await?;
        let lost = Lost::default();
        lost.watch(&device);
        let layouts = LAYOUTS.map(|kinds| layout(&device, kinds));
        let compiled = Mutex::default();
        Ok(Card { inner: Arc::new(Inner { device, queue, limits, lost, caps, layouts, compiled }) })
    }

    pub fn caps(&self) -> GpuCaps {
        self.inner.caps.clone()
    }

    pub fn is_lost(&self) -> bool {
        self.inner.lost.is_lost()
    }

    pub(super) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// Bytes of a buffer that a kernel sees, at most.
    pub(super) fn most_bytes(&self) -> u64 {
        let limits = &self.inner.limits;
        limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
    }

    pub(super) fn most_groups(&self) -> u32 {
        self.inner.limits.max_compute_workgroups_per_dimension
    }

    /// Catches errors of the calls until it is closed.
    pub(super) fn scopes(&self) -> Scopes {
        Scopes::open(&self.inner.device, &self.inner.lost)
    }

    /// Numbers between kernels.
    pub(super) fn room(&self, bytes: u64) -> Buffer {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
        self.buffer(bytes, usage)
    }

    /// Where numbers are read.
    pub(super) fn readback(&self, bytes: u64) -> Buffer {
        self.buffer(bytes, BufferUsages::MAP_READ | BufferUsages::COPY_DST)
    }

    pub(super) fn settings(&self, words: &[u32]) -> Buffer {
        let buffer =
            self.buffer(words.len() as u64 * 4, BufferUsages::UNIFORM | BufferUsages::COPY_DST);
        self.write(&buffer, words);
        buffer
    }

    /// Numbers that stay as they are.
    pub(super) fn kept(&self, words: &[u32]) -> Buffer {
        let buffer = self.room(words.len() as u64 * 4);
        self.write(&buffer, words);
        // What was written is held until then.
        self.queue().submit([]);
        buffer
    }

    pub(super) fn write(&self, buffer: &Buffer, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.queue().write_buffer(buffer, 0, &bytes);
    }

    fn buffer(&self, bytes: u64, usage: BufferUsages) -> Buffer {
        let size = bytes.max(16).next_multiple_of(16);
        let descriptor = BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        self.device().create_buffer(&descriptor)
    }

    /// A kernel's text, compiled once.
    pub(super) fn pipeline(&self, layout: Layout, text: &str) -> ComputePipeline {
        let mut compiled = self.inner.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = compiled.get(text) {
            return pipeline.clone();
        }
        let source = ShaderSource::Wgsl(text.into());
        let module =
            self.device().create_shader_module(ShaderModuleDescriptor { label: None, source });
        let whole = self.device().create_pipeline_layout(&PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&self.inner.layouts[layout as usize])],
            immediate_size: 0,
        });
        let pipeline = self.device().create_compute_pipeline(&ComputePipelineDescriptor {
            label: None,
            layout: Some(&whole),
            module: &module,
            entry_point: Some("main"),
            compilation_options: PipelineCompilationOptions::default(),
            cache: None,
        });
        compiled.insert(text.to_owned(), pipeline.clone());
        pipeline
    }

    pub(super) fn bind(&self, layout: Layout, buffers: &[&Buffer]) -> BindGroup {
        let entries: Vec<BindGroupEntry<'_>> = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        self.device().create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &self.inner.layouts[layout as usize],
            entries: &entries,
        })
    }

    /// The first bytes of a buffer, once a submission is through.
    pub(super) async fn read(
        &self,
        index: &SubmissionIndex,
        buffer: &Buffer,
        bytes: u64,
    ) -> Result<Vec<f32>, String> {
        let (answer, mapped) = oneshot::<Result<(), BufferAsyncError>>();
        let callback = answer.clone();
        buffer.map_async(MapMode::Read, 0..bytes, move |outcome| callback.send(outcome));
        self.see_to(index, answer);
        if !matches!(mapped.await, Some(Ok(()))) {
            self.inner.lost.check().map_err(|failure| failure.to_string())?;
            return Err("what it computed could not be read".into());
        }
        let view = buffer.get_mapped_range(0..bytes).map_err(|error| error.to_string())?;
        let number = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        let numbers = view.chunks_exact(4).map(number).collect();
        drop(view);
        buffer.unmap();
        Ok(numbers)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn see_to(
        &self,
        index: &SubmissionIndex,
        answer: crate::wgsl::oneshot::Sender<Result<(), BufferAsyncError>>,
    ) {
        if self.finish(index).is_err() {
            answer.send(Err(BufferAsyncError));
        }
    }

    /// Waits until a submission is through.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn finish(&self, index: &SubmissionIndex) -> Result<(), String> {
        let wait = wgpu::PollType::Wait { submission_index: Some(index.clone()), timeout: None };
        self.device().poll(wait).map(drop).map_err(|error| error.to_string())
    }

    /// A browser calls back by itself.
    #[cfg(target_arch = "wasm32")]
    fn see_to(
        &self,
        _index: &SubmissionIndex,
        _answer: crate::wgsl::oneshot::Sender<Result<(), BufferAsyncError>>,
    ) {
    }

    /// A browser waits for nothing but what is read.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn finish(&self, _index: &SubmissionIndex) -> Result<(), String> {
        Ok(())
    }
}

fn layout(device: &Device, kinds: &str) -> BindGroupLayout {
    let entry = |(binding, kind): (u32, char)| BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty: match kind {
                'u' => BufferBindingType::Uniform,
                kind => BufferBindingType::Storage { read_only: kind == 'r' },
            },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<BindGroupLayoutEntry> = (0..).zip(kinds.chars()).map(entry).collect();
    device.create_bind_group_layout(&BindGroupLayoutDescriptor { label: None, entries: &entries })
}
