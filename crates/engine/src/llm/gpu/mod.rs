//! Language models on a GPU, through wgpu: natively and in a browser. Weights stay quantised as the file has them, in words
//! of four bytes; activations are floats; a token is one submission of few kernels, and only its logits come back.
//!
//! A GPU does not give the same bits as the processor, nor as another GPU: nothing here may be used where another device
//! has to go on with the very same words.
#![cfg_attr(
    target_arch = "wasm32",
    allow(clippy::arc_with_non_send_sync, reason = "a browser's objects stay in their Worker")
)]

mod card;
mod form;
mod layer;
mod product;
mod rooms;
mod slots;
mod stage;
mod tensors;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
mod whole;

pub use card::Card;
pub use stage::{GpuLoading, GpuStage};
pub use whole::GpuWhole;
#[cfg(not(target_arch = "wasm32"))]
pub use whole::waited;
