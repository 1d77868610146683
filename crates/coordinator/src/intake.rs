//! What is checked before anything is stored. The coordinator does not know how work is computed, so
//! whoever starts it passes an implementation that does.

use serde_json::{Map, Value};
use shoal_protocol::{IntakeError, MapPlan, RenderPlan};

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

    /// A WASI program that gets `memory_limit` bytes. Nodes get its bytes as they are, because those are
    /// what is signed.
    fn module(&self, wasm: &[u8], memory_limit: u64) -> Result<(), IntakeError>;
}
