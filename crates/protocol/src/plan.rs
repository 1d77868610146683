//! What a check of user code finds out: how a kernel must be fed and what it needs. Made by the engine's
//! intake, used by whoever turns a request into a job.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::job::Needs;
use crate::work::{Kernel, Pixel};

/// A checked map kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct MapPlan {
    pub kernel: Kernel,
    /// Elements of the input arrays, in binding order.
    pub inputs: Vec<ElementType>,
    pub output: ElementType,
    /// What a node must have; `buffer_bytes` is 0, because the sizes come with the inputs.
    pub needs: Needs,
}

/// A checked render kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderPlan {
    pub kernel: Kernel,
    pub pixel: Pixel,
    /// What a node must have; `buffer_bytes` is 0, because the sizes come with the picture.
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

/// Why user code is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeError {
    /// For machines: `bad_kernel`, `bad_params` or `bad_module`.
    pub code: &'static str,
    /// For people, in whole sentences; for kernels with line, column and a caret under the spot.
    pub message: String,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

impl IntakeError {
    /// One that names no spot.
    pub fn plain(code: &'static str, message: impl Into<String>) -> IntakeError {
        IntakeError { code, message: message.into(), line: None, column: None }
    }
}

impl fmt::Display for IntakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for IntakeError {}
