//! The computing: WGSL kernels on a GPU, WASI programs in a sandbox, ONNX models, and the check of all before
//! they are stored. Knows no network, no leases and nobody who asked; the shells (`cli`, `browser`)
//! feed it bytes.
//!
//! - [`wgsl`] (feature `gpu`, native and wasm32): runs checked kernels
//! - [`wasi`] (feature `wasi`, native): runs programs; a browser runs them in TypeScript
//! - [`files`] (feature `files`, native and wasm32): the files that a program sees, in memory
//! - [`onnx`] (feature `onnx`, native and wasm32): runs models
//! - [`llm`] (feature `llm`, native and wasm32): runs language models
//! - [`intake`] (feature `intake`, native): checks kernels and programs, and reads from them how to
//!   run them

#[cfg(any(feature = "wasi", feature = "intake"))]
mod bounds;
#[cfg(feature = "files")]
pub mod files;
#[cfg(any(feature = "gpu", feature = "intake"))]
mod fold;
#[cfg(feature = "intake")]
pub mod intake;
#[cfg(feature = "llm")]
pub mod llm;
#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(any(feature = "onnx", feature = "intake"))]
mod ports;
#[cfg(feature = "wasi")]
pub mod wasi;
#[cfg(feature = "gpu")]
pub mod wgsl;
#[cfg(any(feature = "gpu", feature = "intake"))]
mod window;
