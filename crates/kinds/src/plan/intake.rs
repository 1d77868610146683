//! What is checked of user code before anything is stored. Planning does not know how work is computed, so
//! whoever plans passes an implementation that does.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::{Map, Value};

use crate::exec::ProgramForm;
use crate::intake::IntakeError;
use crate::kernel::{ElementType, Kernel, Slot};
use crate::llm::LlmPlan;
use crate::map::{FoldPlan, How, MapAsk, MapPlan, MapReading};
use crate::onnx::{BatchPlan, CutAsk, CutPlan, Head, ModelPlan};
use crate::render::RenderPlan;
use crate::sim::{SimAsked, SimPlan};

/// Checks user code and says how it must be fed. What an implementation leaves out is refused.
pub trait Intake: Send + Sync + 'static {
    /// A compute shader over arrays. `params` are the user's values for its parameter block.
    fn map_kernel(
        &self,
        _wgsl: &str,
        _entry: Option<&str>,
        _params: &Map<String, Value>,
    ) -> Result<MapPlan, IntakeError> {
        refuse()
    }

    /// Where the items of a checked compute shader look in their arrays.
    fn map_reading(
        &self,
        _wgsl: &str,
        _entry: Option<&str>,
        _params: &Map<String, Value>,
        _ask: &MapAsk,
    ) -> Result<MapReading, IntakeError> {
        refuse()
    }

    /// What a checked kernel calls its input arrays, in binding order.
    fn input_names(&self, _wgsl: &str, kernel: &Kernel) -> Vec<String> {
        let inputs = kernel.bindings.iter().filter(|it| matches!(it.slot, Slot::Input(_)));
        (0..inputs.count()).map(|position| format!("input {position}")).collect()
    }

    /// A way to bring the outputs of a map's items together.
    fn fold(
        &self,
        _how: &How,
        _output: &ElementType,
        _out_per_item: u32,
        _items: u64,
    ) -> Result<FoldPlan, IntakeError> {
        refuse()
    }

    /// A compute shader over a picture's tiles.
    fn render_kernel(
        &self,
        _wgsl: &str,
        _entry: Option<&str>,
        _params: &Map<String, Value>,
    ) -> Result<RenderPlan, IntakeError> {
        refuse()
    }

    /// A file of compute shaders over a grid, step by step.
    fn sim(&self, _asked: &SimAsked<'_>) -> Result<SimPlan, IntakeError> {
        refuse()
    }

    /// A WASI program that gets `memory_limit` bytes, and what it is. Nodes get its bytes as they are, because those
    /// are what is signed.
    fn module(&self, _wasm: &[u8], _memory_limit: u64) -> Result<ProgramForm, IntakeError> {
        refuse()
    }

    /// Whether such a program asks for anything by a path: one that does not makes no files.
    fn knows_paths(&self, _wasm: &[u8]) -> bool {
        true
    }

    /// An ONNX model that nodes can run.
    fn model(&self, _file: &[u8]) -> Result<ModelPlan, IntakeError> {
        refuse()
    }

    /// The same model as a row of parts that follow each other, each a file of its own.
    fn parts(&self, _file: &[u8], _ask: &CutAsk<'_>) -> Result<CutPlan, IntakeError> {
        refuse()
    }

    /// What a checked model gives for these inputs, which are an item's. `grows` says that all of them begin with an
    /// axis that may count several.
    fn batch(&self, _file: &[u8], _item: &[Head], _grows: bool) -> Result<BatchPlan, IntakeError> {
        refuse()
    }

    /// A language model that nodes can run. `head` are the first bytes of a file that has `size`.
    fn language_model(&self, _head: Vec<u8>, _size: u64) -> Result<LlmPlan, IntakeError> {
        refuse()
    }
}

fn refuse<T>() -> Result<T, IntakeError> {
    Err(IntakeError::plain(
        "no_intake",
        "this coordinator cannot check such code, so it refuses it",
    ))
}
