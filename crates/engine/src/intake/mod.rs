//! The check of kernels and programs before anything is stored, and what must be known to run them.

use shoal_protocol::{Kernel, Needs, Pixel};

/// What a map kernel turned out to be. `needs.buffer_bytes` is 0: the caller knows the inputs' sizes.
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
    /// The scalar it is made of: `f32`, `i32` or `u32`; a struct's is `struct`.
    pub scalar: String,
    /// Scalars in one element; 0 for a struct.
    pub lanes: u32,
}

/// A value of the user for a member of the parameter block.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    List(Vec<ParamValue>),
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

pub fn map_kernel(
    _wgsl: &str,
    _entry: Option<&str>,
    _params: &[(String, ParamValue)],
) -> Result<MapPlan, IntakeError> {
    todo!()
}

pub fn render_kernel(
    _wgsl: &str,
    _entry: Option<&str>,
    _params: &[(String, ParamValue)],
) -> Result<RenderPlan, IntakeError> {
    todo!()
}

/// Checks a WASI program and lowers its memory maximum to `memory_limit` bytes, so that engines without a limit of
/// their own (a browser's) keep it too.
pub fn wasi_module(_wasm: &[u8], _memory_limit: u64) -> Result<Vec<u8>, IntakeError> {
    todo!()
}
