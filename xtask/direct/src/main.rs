//! The peer of `bench map`: a kernel over an array with wgpu alone, in one process.
//!
//!     xtask-direct KERNEL.wgsl ITEMS ROUNDS [INPUT OUTPUT]
//!
//! Written as one would by hand for speed: buffers made once, two pieces in flight, so that one is
//! computed while another is copied. Prints the seconds of each round, array to array, or file to file where files are named.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on stdout")]

use std::fs::File;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use wgpu::{BufferUsages, PollType, SubmissionIndex};

/// The most one dispatch in one dimension computes with 64 invocations in a group.
const PIECE: usize = 65_535 * 64;
const IN_FLIGHT: usize = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (kernel, items, rounds, files) = match &args[..] {
        [kernel, items, rounds] => (kernel, items, rounds, None),
        [kernel, items, rounds, input, output] => (kernel, items, rounds, Some((input, output))),
        _ => return Err("usage: xtask-direct KERNEL.wgsl ITEMS ROUNDS [INPUT OUTPUT]".into()),
    };
    let (items, rounds): (usize, usize) = (items.parse()?, rounds.parse()?);
    let mut input: Vec<f32> = (0..items).map(|i| i as f32 * 1e-3 % 1_000.0).collect();
    let mut output = vec![0_f32; items];
    let mut gpu = pollster::block_on(Gpu::open(&std::fs::read_to_string(kernel)?))?;
    for _ in 0..rounds {
        let start = Instant::now();
        if let Some((from, _)) = files {
            File::open(from)?.read_exact(bytemuck::cast_slice_mut(&mut input))?;
        }
        gpu.map(&input, &mut output)?;
        if let Some((_, to)) = files {
            File::create(to)?.write_all(bytemuck::cast_slice(&output))?;
        }
        println!("{:.6}", start.elapsed().as_secs_f64());
    }
    Ok(())
}

struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    slots: Vec<Slot>,
}

/// Buffers of one piece, and the piece they hold.
struct Slot {
    input: wgpu::Buffer,
    output: wgpu::Buffer,
    readback: wgpu::Buffer,
    busy: Option<Busy>,
}

/// A piece at work: its place in the array, and word that it can be read.
struct Busy {
    first: usize,
    items: usize,
    submission: SubmissionIndex,
    ready: Receiver<Result<(), wgpu::BufferAsyncError>>,
}

impl Gpu {
    async fn open(kernel: &str) -> Result<Gpu, Box<dyn std::error::Error>> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::PRIMARY,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await?;
        let descriptor =
            wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
        let (device, queue) = adapter.request_device(&descriptor).await?;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(kernel.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let slots = (0..IN_FLIGHT).map(|_| Slot::new(&device)).collect();
        Ok(Gpu { device, queue, pipeline, slots })
    }

    fn map(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), Box<dyn std::error::Error>> {
        for (number, piece) in input.chunks(PIECE).enumerate() {
            let at = number % IN_FLIGHT;
            self.collect(at, output)?;
            self.queue.write_buffer(&self.slots[at].input, 0, bytemuck::cast_slice(piece));
            self.start(at, number * PIECE, piece.len());
        }
        for at in 0..IN_FLIGHT {
            self.collect(at, output)?;
        }
        Ok(())
    }

    fn start(&mut self, at: usize, first: usize, items: usize) {
        let slot = &mut self.slots[at];
        let bytes = (items * 4) as u64;
        let whole =
            |buffer| wgpu::BufferBinding { buffer, offset: 0, size: wgpu::BufferSize::new(bytes) };
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry {
                    binding: 0,
                    resource: wgpu::BindingResource::Buffer(whole(&slot.input)),
                },
                wgpu::BindGroupEntry {
                    binding: 1,
                    resource: wgpu::BindingResource::Buffer(whole(&slot.output)),
                },
            ],
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(items.div_ceil(64) as u32, 1, 1);
        }
        encoder.copy_buffer_to_buffer(&slot.output, 0, &slot.readback, 0, bytes);
        let submission = self.queue.submit([encoder.finish()]);
        let (sender, ready) = channel();
        slot.readback.map_async(wgpu::MapMode::Read, 0..bytes, move |outcome| {
            // The receiver is gone only if `map` already failed.
            let _ = sender.send(outcome);
        });
        slot.busy = Some(Busy { first, items, submission, ready });
    }

    /// Waits for the piece in a slot, if any, and copies it to its place.
    fn collect(&mut self, at: usize, output: &mut [f32]) -> Result<(), Box<dyn std::error::Error>> {
        let slot = &mut self.slots[at];
        let Some(Busy { first, items, submission, ready }) = slot.busy.take() else {
            return Ok(());
        };
        self.device.poll(PollType::Wait { submission_index: Some(submission), timeout: None })?;
        ready.recv()??;
        let view = slot.readback.get_mapped_range(0..(items * 4) as u64)?;
        output[first..first + items].copy_from_slice(bytemuck::cast_slice(&view));
        drop(view);
        slot.readback.unmap();
        Ok(())
    }
}

impl Slot {
    fn new(device: &wgpu::Device) -> Slot {
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: (PIECE * 4) as u64,
                usage,
                mapped_at_creation: false,
            })
        };
        Slot {
            input: buffer(BufferUsages::STORAGE | BufferUsages::COPY_DST),
            output: buffer(BufferUsages::STORAGE | BufferUsages::COPY_SRC),
            readback: buffer(BufferUsages::MAP_READ | BufferUsages::COPY_DST),
            busy: None,
        }
    }
}
