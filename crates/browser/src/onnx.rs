//! ONNX models for JavaScript. What is thrown is a `UnitFailure`, but for a panic and for memory that ran out: the
//! browser throws its own error then, and the module is of no more use.

use std::sync::OnceLock;

use shoal_engine::onnx::{self, Threads};
use shoal_kinds::{Kind, OnnxWork};
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};

/// The first panic's words. There is no second one, since the module is not used again.
static PANICKED: OnceLock<String> = OnceLock::new();

pub(crate) fn note_panic(text: String) {
    let _ = PANICKED.set(text);
}

/// A model that can run at once.
#[wasm_bindgen]
pub struct Model {
    work: OnnxWork,
    model: onnx::Model,
}

#[wasm_bindgen]
impl Model {
    /// `file` is the model's; `work` is what the brain's `job` gives as bytes.
    pub fn load(file: Vec<u8>, work: &[u8]) -> Result<Model, JsValue> {
        let work: Kind = postcard::from_bytes(work)
            .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
        let no_model = || internal("a job that is no model".into());
        let work = onnx::model(&work).ok_or_else(no_model)?.clone();
        let model = onnx::Model::load(file, &work, &Threads::new(1));
        let model = model.map_err(|failure| to_js(&failure))?;
        Ok(Model { work, model })
    }

    /// Answers a request: packed tensors in, packed tensors out.
    pub fn run(&self, request: &[u8]) -> Result<Vec<u8>, JsValue> {
        self.model.run(&self.work, request).map_err(|failure| to_js(&failure))
    }

    /// Why the module stopped, if it panicked. If it did not, it ran out of memory.
    pub fn panicked() -> Option<String> {
        PANICKED.get().cloned()
    }
}
