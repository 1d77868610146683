//! ONNX models for JavaScript. What is thrown is a `UnitFailure`, but for a panic and for memory that ran out: the
//! browser throws its own error then, and the module is of no more use.

use shoal_engine::onnx::{self, Threads};
use shoal_kinds::onnx::Unit;
use shoal_kinds::{Kind, OnnxWork};
use shoal_protocol::Span;
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};

/// A model that can run at once.
#[wasm_bindgen]
pub struct Model {
    work: OnnxWork,
    model: onnx::Model,
}

#[wasm_bindgen]
impl Model {
    /// `file` is the model's; `work` is what the brain's `job` gives as bytes, or nothing where a page runs the model for
    /// itself: then the file says what it takes and gives.
    pub fn load(file: Vec<u8>, work: &[u8]) -> Result<Model, JsValue> {
        let work = match work {
            [] => onnx::work_of(&file).map_err(|failure| to_js(&failure))?,
            work => read(work)?,
        };
        let model = onnx::Model::load(file, &work, &Threads::new(1));
        let model = model.map_err(|failure| to_js(&failure))?;
        Ok(Model { work, model })
    }

    /// Answers a request: packed tensors in, packed tensors out.
    pub fn run(&self, request: &[u8]) -> Result<Vec<u8>, JsValue> {
        self.model.run(&self.work, request).map_err(|failure| to_js(&failure))
    }

    /// Runs the next items of a unit.
    pub fn step(&self, many: &mut Many) -> Result<(), JsValue> {
        let no_batch = || internal("a unit of a model, which answers requests".into());
        let batch = self.work.batch.as_ref().ok_or_else(no_batch)?;
        let Many { span, inputs, unit } = many;
        let unit = unit.get_or_insert_with(|| Unit::new(batch, *span, std::mem::take(inputs)));
        let stepped = unit.step(batch, |request| self.model.run(&self.work, request));
        stepped.map_err(|failure| to_js(&failure))
    }

    /// Why the module stopped, if it panicked. If it did not, it ran out of memory.
    pub fn panicked() -> Option<String> {
        crate::panicked::words()
    }
}

/// A unit of many items.
#[wasm_bindgen]
pub struct Many {
    span: Span,
    /// Until it begins.
    inputs: Vec<Vec<u8>>,
    unit: Option<Unit<Vec<u8>>>,
}

#[wasm_bindgen]
impl Many {
    #[wasm_bindgen(constructor)]
    pub fn new(start: f64, len: f64) -> Many {
        Many { span: Span::new(start as u64, len as u64), inputs: Vec::new(), unit: None }
    }

    /// What its items have of the next input.
    pub fn add(&mut self, input: Vec<u8>) {
        self.inputs.push(input);
    }

    #[wasm_bindgen(getter, js_name = goesOn)]
    pub fn goes_on(&self) -> bool {
        self.unit.as_ref().map_or(self.span.len > 0, Unit::goes_on)
    }

    /// The rows of all items. It is of no more use then.
    #[wasm_bindgen(js_name = intoRows)]
    pub fn into_rows(self) -> Vec<u8> {
        self.unit.map(Unit::into_rows).unwrap_or_default()
    }
}

fn read(work: &[u8]) -> Result<OnnxWork, JsValue> {
    let work: Kind = postcard::from_bytes(work)
        .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
    let no_model = || internal("a job that is no model".into());
    onnx::model(&work).cloned().ok_or_else(no_model)
}
