//! An intake that knows a few words.

use serde_json::{Map, Value};
use shoal_kinds::map::fold::How;
use shoal_kinds::plan::Intake;
use shoal_kinds::sim::{SimAsked, SimPlan};
use shoal_kinds::{
    Binding, ElementType, FoldPlan, IntakeError, Kernel, MapAsk, MapPlan, MapReading, Pass, Pixel,
    ProgramForm, Reading, RenderPlan, SimSlots, SimWork, Slot, Space,
};
use shoal_protocol::{Lane, Needs};

/// Takes any kernel but those with the word "wrong"; inputs are as many `f32` arrays as `input` is written.
pub(crate) struct FewWords;

impl Intake for FewWords {
    fn map_kernel(
        &self,
        wgsl: &str,
        _entry: Option<&str>,
        _params: &Map<String, Value>,
    ) -> Result<MapPlan, IntakeError> {
        let kernel = kernel(wgsl)?;
        let inputs = wgsl.matches("input").map(|_| float()).collect();
        Ok(MapPlan { kernel, inputs, output: float(), needs: gpu() })
    }

    fn map_reading(
        &self,
        _wgsl: &str,
        _entry: Option<&str>,
        _params: &Map<String, Value>,
        ask: &MapAsk,
    ) -> Result<MapReading, IntakeError> {
        let inputs = vec![Reading::Own; ask.inputs.len()];
        Ok(MapReading { windows: None, inputs, whole_groups: false })
    }

    fn fold(
        &self,
        _how: &How,
        _output: &ElementType,
        _out_per_item: u32,
        _items: u64,
    ) -> Result<FoldPlan, IntakeError> {
        Err(IntakeError::plain("bad_reduce", "this intake reduces nothing"))
    }

    fn render_kernel(
        &self,
        wgsl: &str,
        _entry: Option<&str>,
        _params: &Map<String, Value>,
    ) -> Result<RenderPlan, IntakeError> {
        let pixel = if wgsl.contains("vec4") { Pixel::Rgba32Float } else { Pixel::Rgba8 };
        Ok(RenderPlan { kernel: kernel(wgsl)?, pixel, needs: gpu() })
    }

    fn sim(&self, asked: &SimAsked<'_>) -> Result<SimPlan, IntakeError> {
        kernel(asked.source)?;
        let lanes = if asked.source.contains("vec4") { 4 } else { 1 };
        let pass = |entry: &str, times| Pass { entry: entry.into(), workgroup: [8, 8, 1], times };
        let work = SimWork {
            source: asked.source.into(),
            width: asked.width,
            height: asked.height,
            steps: asked.steps,
            halo: asked.halo.unwrap_or(1),
            passes: vec![pass("step", 1), pass("again", 10)],
            init: None,
            show: None,
            first: None,
            members: 0,
            keep_every: None,
            speculate: false,
            cell_bytes: 4 * lanes,
            lanes,
            scalar: "f32".into(),
            slots: SimSlots { params: 0, state: 1, next: 2, picture: None },
            params: Vec::new(),
            fields: Vec::new(),
            reduce: None,
        };
        Ok(SimPlan { work, needs: gpu() })
    }

    fn module(&self, wasm: &[u8], _memory_limit: u64) -> Result<ProgramForm, IntakeError> {
        if wasm.starts_with(b"\0asm") {
            return Ok(ProgramForm::Module);
        }
        let message = "the module is no WebAssembly".into();
        Err(IntakeError { code: "bad_module", message, line: None, column: None })
    }
}

fn kernel(wgsl: &str) -> Result<Kernel, IntakeError> {
    if wgsl.contains("wrong") {
        let message = "line 1, column 5: expected something else\n  wrong\n  ^".into();
        return Err(IntakeError { code: "bad_kernel", message, line: Some(1), column: Some(5) });
    }
    let bindings = vec![Binding { index: 0, space: Space::StorageReadWrite, slot: Slot::Output }];
    let (source, entry) = (wgsl.to_owned(), "main".to_owned());
    Ok(Kernel { source, entry, workgroup: [64, 1, 1], bindings, params: None, windows: None })
}

fn float() -> ElementType {
    ElementType { name: "f32".into(), stride: 4, scalar: "f32".into(), lanes: 1 }
}

fn gpu() -> Needs {
    Needs { workgroup_invocations: 64, storage_buffers: 2, ..Needs::lane(Lane::Gpu) }
}
