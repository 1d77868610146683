//! What is checked before anything is stored. The coordinator does not know how work is computed, so
//! whoever starts it passes an implementation that does.

use serde_json::{Map, Value};
use shoal_protocol::{Kernel, Needs, Pixel};

/// Checks user code and says how it must be fed.
pub trait Intake: Send + Sync + 'static {
    /// A compute shader over arrays. `params` are the user's values for its parameter block.
    fn map_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<MapPlan, IntakeError>;

    /// A compute shader over a picture's tiles.
    fn render_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<RenderPlan, IntakeError>;

    /// A WASI program; answers the module with its memory maximum lowered to `memory_limit` bytes.
    fn module(&self, wasm: &[u8], memory_limit: u64) -> Result<Vec<u8>, IntakeError>;
}

/// A checked map kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct MapPlan {
    pub kernel: Kernel,
    /// Element types of the inputs in binding order.
    pub inputs: Vec<ElementType>,
    pub output: ElementType,
    /// What a node must have; `buffer_bytes` is 0, because only the coordinator knows the sizes.
    pub needs: Needs,
}

/// A checked render kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderPlan {
    pub kernel: Kernel,
    pub pixel: Pixel,
    /// What a node must have; `buffer_bytes` is 0, because only the coordinator knows the sizes.
    pub needs: Needs,
}

/// An element of an array in a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementType {
    /// As WGSL writes it: `f32`, `vec2<f32>`.
    pub name: String,
    /// Bytes from one element to the next.
    pub stride: u32,
    /// The type of one lane: `f32`.
    pub scalar: String,
    /// Scalars in one element.
    pub lanes: u32,
}

/// Why user code is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IntakeError {
    /// For machines: `bad_kernel`, `bad_module`, …
    pub code: &'static str,
    /// For people, with line, column and a caret where there are any.
    pub message: String,
    pub line: Option<u32>,
    pub column: Option<u32>,
}
