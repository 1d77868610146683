//! ONNX models for JavaScript. What is thrown is a `UnitFailure`, but for a panic and for memory that ran out: the
//! browser throws its own error then, and the module is of no more use.

use std::time::Duration;

use shoal_engine::onnx::{self, Choice, Memory, Threads, Which};
use shoal_kinds::onnx::{Batch, Unit};
use shoal_kinds::{Kind, OnnxWork};
use shoal_protocol::Span;
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};

/// The memory that the donor lends: models and parts of models that are loaded, and their runs, keep to it together.
#[wasm_bindgen]
pub struct Lent(pub(crate) Memory);

#[wasm_bindgen]
impl Lent {
    /// `bytes`: infinite where a page runs models for itself.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: f64) -> Lent {
        Lent(Memory::of(bytes as u64))
    }

    /// So many bytes are lent from now on.
    pub fn set(&self, bytes: f64) {
        self.0.lend(bytes as u64);
    }
}

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
    pub fn load(file: Vec<u8>, work: &[u8], lent: &Lent) -> Result<Model, JsValue> {
        let work = match work {
            [] => onnx::work_of(&file).map_err(|failure| to_js(&failure))?,
            work => read(work)?,
        };
        let means = (&Threads::new(1), &lent.0);
        let model = onnx::Model::load_beside(file, &work, means, |_| None);
        let model = model.map_err(|failure| to_js(&failure))?;
        Ok(Model { work, model })
    }

    /// Answers a request: packed tensors in, packed tensors out.
    pub fn run(&self, request: &[u8]) -> Result<Vec<u8>, JsValue> {
        self.model.run(&self.work, request).map_err(|failure| to_js(&failure))
    }

    /// Runs the next items of a unit.
    pub fn step(&self, many: &mut Many) -> Result<(), JsValue> {
        let batch = self.batch()?;
        let stepped = many.begun(batch).step(batch, |request| self.model.run(&self.work, request));
        stepped.map_err(|failure| to_js(&failure))
    }

    /// The request for the next items of a unit, if another engine is to answer it.
    pub fn next(&self, many: &mut Many) -> Result<Vec<u8>, JsValue> {
        let batch = self.batch()?;
        many.begun(batch).next(batch).map_err(|failure| to_js(&failure))
    }

    /// What it answered, after `told`.
    pub fn took(&self, many: &mut Many, answer: Vec<u8>) -> Result<(), JsValue> {
        let batch = self.batch()?;
        many.begun(batch).took(batch, Ok(answer)).map_err(|failure| to_js(&failure))
    }

    /// Checks a request for another engine.
    pub fn ask(&self, request: &[u8]) -> Result<Asked, JsValue> {
        self.model.ask(&self.work, request).map(Asked).map_err(|failure| to_js(&failure))
    }

    /// What the other engine answered, checked, and as it was asked for.
    pub fn told(&self, asked: &Asked, answer: Vec<u8>) -> Result<Vec<u8>, JsValue> {
        self.model.told(&self.work, &asked.0, answer).map_err(|failure| to_js(&failure))
    }

    /// Gives the built-in engine's memory back until it is asked again.
    pub fn rest(&self) {
        self.model.rest();
    }

    fn batch(&self) -> Result<&Batch, JsValue> {
        let no_batch = || internal("a unit of a model, which answers requests".into());
        self.work.batch.as_ref().ok_or_else(no_batch)
    }

    /// Why the module stopped, if it panicked. If it did not, it ran out of memory.
    pub fn panicked() -> Option<String> {
        crate::panicked::words()
    }
}

/// A request that another engine is asked.
#[wasm_bindgen]
pub struct Asked(onnx::Asked);

#[wasm_bindgen]
impl Asked {
    /// The packed tensors it is asked, once; nothing if they are the request itself.
    #[wasm_bindgen(js_name = takeMade)]
    pub fn take_made(&mut self) -> Option<Vec<u8>> {
        self.0.take_made()
    }
}

/// Which of two engines is faster for a model.
#[wasm_bindgen]
#[derive(Default)]
pub struct Trial(Choice);

#[wasm_bindgen]
impl Trial {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Trial {
        Trial::default()
    }

    /// What a run took in milliseconds; nothing if it gave no answer.
    pub fn took(&mut self, second: bool, millis: Option<f64>) {
        let which = if second { Which::Second } else { Which::BuiltIn };
        self.0.took(which, millis.map(|millis| (millis * 1000.0) as u64));
    }

    /// Whether an engine is to be timed once more.
    pub fn wants(&self, second: bool) -> bool {
        let which = if second { Which::Second } else { Which::BuiltIn };
        self.0.chosen().is_none() && !self.0.is_timed(which)
    }

    /// Whether the second one is kept to; nothing as long as that is not decided.
    #[wasm_bindgen(getter, js_name = isSecond)]
    pub fn is_second(&self) -> Option<bool> {
        self.0.chosen().map(|which| which == Which::Second)
    }

    /// Milliseconds of the best run of the built-in engine and of the other, for people.
    pub fn words(&self) -> String {
        let words = |micros: Option<u64>| match micros {
            Some(micros) => format!("{:.1} ms", micros as f64 / 1000.0),
            None => "no answer".into(),
        };
        let (built_in, second) = self.0.best();
        format!("{} by the built-in engine, {} by the other", words(built_in), words(second))
    }
}

/// How long the second engine is waited for, and how often it may break.
#[wasm_bindgen]
#[derive(Default)]
pub struct Reliance(onnx::Reliance);

#[wasm_bindgen]
impl Reliance {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Reliance {
        Reliance::default()
    }

    /// Milliseconds that a run of so many bytes may take, at most `most`.
    pub fn limit(&self, bytes: u32, most: f64) -> f64 {
        self.0.limit(bytes as usize, millis(most)).as_secs_f64() * 1000.0
    }

    /// A run of so many bytes took so many milliseconds.
    pub fn took(&mut self, took: f64, bytes: u32) {
        self.0.took(millis(took), bytes as usize);
    }

    /// It ended, or did not answer in time and was ended.
    pub fn broke(&mut self) {
        self.0.broke();
    }

    /// Whether it may be started once more.
    #[wasm_bindgen(getter, js_name = goesOn)]
    pub fn goes_on(&self) -> bool {
        self.0.goes_on()
    }
}

fn millis(millis: f64) -> Duration {
    Duration::from_micros((millis * 1000.0) as u64)
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

impl Many {
    fn begun(&mut self, batch: &Batch) -> &mut Unit<Vec<u8>> {
        let Many { span, inputs, unit } = self;
        unit.get_or_insert_with(|| Unit::new(batch, *span, std::mem::take(inputs)))
    }
}

fn read(work: &[u8]) -> Result<OnnxWork, JsValue> {
    let work: Kind = postcard::from_bytes(work)
        .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
    let no_model = || internal("a job that is no model".into());
    onnx::model(&work).cloned().ok_or_else(no_model)
}
