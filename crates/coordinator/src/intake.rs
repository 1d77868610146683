//! What is checked before anything is stored. The coordinator does not know how work is computed, so
//! whoever starts it passes an implementation that does.

use serde_json::{Map, Value};
use shoal_protocol::fold::How;
use shoal_protocol::{
    ElementType, FoldPlan, IntakeError, Kernel, MapAsk, MapPlan, MapReading, Needs, RenderPlan,
    SimWork, Slot,
};

/// Checks user code and says how it must be fed.
pub trait Intake: Send + Sync + 'static {
    /// A compute shader over arrays. `params` are the user's values for its parameter block.
    fn map_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<MapPlan, IntakeError>;

    /// Where the items of a checked compute shader look in their arrays.
    fn map_reading(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
        ask: &MapAsk,
    ) -> Result<MapReading, IntakeError>;

    /// What a checked kernel calls its input arrays, in binding order.
    fn input_names(&self, _wgsl: &str, kernel: &Kernel) -> Vec<String> {
        let inputs = kernel.bindings.iter().filter(|it| matches!(it.slot, Slot::Input(_)));
        (0..inputs.count()).map(|position| format!("input {position}")).collect()
    }

    /// A way to bring the outputs of a map's items together.
    fn fold(
        &self,
        how: &How,
        output: &ElementType,
        out_per_item: u32,
        items: u64,
    ) -> Result<FoldPlan, IntakeError>;

    /// A compute shader over a picture's tiles.
    fn render_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<RenderPlan, IntakeError>;

    /// A file of compute shaders over a grid, step by step.
    fn sim(&self, asked: &SimAsked<'_>) -> Result<SimPlan, IntakeError>;

    /// A WASI program that gets `memory_limit` bytes. Nodes get its bytes as they are, because those are
    /// what is signed.
    fn module(&self, wasm: &[u8], memory_limit: u64) -> Result<(), IntakeError>;
}

/// A simulation as it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct SimAsked<'a> {
    pub source: &'a str,
    pub width: u32,
    pub height: u32,
    pub steps: u64,
    /// Rows of the neighbours that a step needs; as the file says if left out.
    pub halo: Option<u32>,
    /// One step, as `advect,jacobi*10,project`; as the file says if left out.
    pub passes: Option<&'a str>,
    /// The user's values for its parameter block.
    pub params: &'a Map<String, Value>,
}

/// A checked simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct SimPlan {
    /// Without what the kernel does not say: who computes it, where it starts, how it is kept.
    pub work: SimWork,
    /// What a node must have; `buffer_bytes` is 0, because the sizes come with the bands.
    pub needs: Needs,
}
