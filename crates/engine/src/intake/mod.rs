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

pub use params::ParamValue;
pub use shoal_protocol::{ElementType, IntakeError, MapPlan, RenderPlan};

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
