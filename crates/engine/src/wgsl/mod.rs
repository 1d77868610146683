//! Kernels on a GPU, through wgpu: Vulkan, Metal and DirectX natively, WebGPU in a browser.
//!
//! A unit's way: [`Gpu::stage`] gives memory, the shell fills it, [`Gpu::map`] or [`Gpu::render`]
//! computes, and the [`Readback`] is the result in place. Where the processor and the GPU share
//! their memory the kernel reads and writes those very bytes; elsewhere they are copied once each
//! way. Two units may be under way at a time, one computing while the other's bytes travel; all
//! calls are safe from several threads.
//!
//! A kernel that never ends cannot be stopped from here: the shell runs this engine where it can be
//! ended from outside, in a process or a Worker of its own.
#![cfg_attr(
    target_arch = "wasm32",
    allow(clippy::arc_with_non_send_sync, reason = "a browser's objects stay in their Worker")
)]

pub(crate) mod adapter;
#[cfg(feature = "count")]
mod count;
pub(crate) mod fault;
mod fold;
mod gpu;
#[cfg_attr(target_arch = "wasm32", path = "unguarded.rs")]
mod guard;
mod map;
mod memory;
pub(crate) mod oneshot;
mod params;
mod pipeline;
#[cfg(not(target_arch = "wasm32"))]
mod poller;
mod pool;
mod probe;
mod render;
mod report;
mod sim;
mod work;

pub use gpu::Gpu;
pub use memory::{Input, Readback, Shared, Stage};
pub use pipeline::Pipeline;
pub use probe::probe;
pub use sim::{Edges, SimBand, SimProgram, View};

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
