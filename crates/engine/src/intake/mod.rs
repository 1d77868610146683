//! The check of kernels and programs before anything is stored, and what must be known to run them.
//!
//! A kernel's bindings are all in group 0: `var<storage, read>` arrays are the inputs in binding
//! order, the one `var<storage, read_write>` array is the output, and at most one `var<uniform>`
//! (or read-only storage struct) holds parameters, filled by name. Whatever comes in, the answer is
//! a plan or an [`IntakeError`], never a panic.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the compilers' own enums grow with every version"
)]

mod bind;
mod element;
mod kernel;
mod module;
mod params;
mod portable;
mod source;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};

use shoal_protocol::{Kernel, Needs, Pixel};

pub use params::ParamValue;

/// What a map kernel turned out to be. `needs.buffer_bytes` is 0: the caller knows the inputs'
/// sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct MapPlan {
    pub kernel: Kernel,
    /// Elements of the input arrays, in binding order.
    pub inputs: Vec<ElementType>,
    pub output: ElementType,
    pub needs: Needs,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RenderPlan {
    pub kernel: Kernel,
    pub pixel: Pixel,
    pub needs: Needs,
}

/// The element of an array in a storage buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementType {
    /// As WGSL writes it: `f32`, `vec2<f32>`, or a struct's name.
    pub name: String,
    /// Bytes from one element to the next: a `vec3<f32>` takes 16.
    pub stride: u32,
    /// The scalar it is made of: `f32`, `i32` or `u32`; `mixed` for a struct of several kinds.
    pub scalar: String,
    /// Scalars from one element to the next, padding included: 4 for a `vec3<f32>`.
    pub lanes: u32,
}

/// Why something was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IntakeError {
    /// `bad_kernel`, `bad_params` or `bad_module`.
    pub code: &'static str,
    /// Whole sentences; for kernels with line, column and a caret under the spot.
    pub message: String,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

impl IntakeError {
    fn plain(code: &'static str, message: impl Into<String>) -> IntakeError {
        IntakeError { code, message: message.into(), line: None, column: None }
    }
}

/// Checks a kernel over arrays. `entry` may be left out if there is only one compute entry point.
pub fn map_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &[(String, ParamValue)],
) -> Result<MapPlan, IntakeError> {
    unpanicking("bad_kernel", || kernel::map(wgsl, entry, params))
}

/// Checks a kernel over the tiles of a picture. It has no inputs, and its output is `array<u32>`
/// (packed by `pack4x8unorm`) or `array<vec4<f32>>` (linear light).
pub fn render_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &[(String, ParamValue)],
) -> Result<RenderPlan, IntakeError> {
    unpanicking("bad_kernel", || kernel::render(wgsl, entry, params))
}

/// Checks a WASI program and lowers its memory maximum to `memory_limit` bytes, so that engines
/// without a limit of their own (a browser's) keep it too.
pub fn wasi_module(wasm: &[u8], memory_limit: u64) -> Result<Vec<u8>, IntakeError> {
    unpanicking("bad_module", || module::check(wasm, memory_limit))
}

/// Compilers are large and input is hostile: a fault of theirs must stay an error of one request.
fn unpanicking<T>(
    code: &'static str,
    check: impl FnOnce() -> Result<T, IntakeError>,
) -> Result<T, IntakeError> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| {
        Err(IntakeError::plain(code, "the check itself failed on this input; please report it"))
    })
}
