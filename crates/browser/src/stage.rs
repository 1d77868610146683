//! Parts of ONNX models for JavaScript: one member's share of a chain of devices.

use js_sys::Uint8Array;
use shoal_engine::onnx::{self, Threads};
use shoal_kinds::Kind;
use shoal_protocol::Span;
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};
use crate::onnx::Lent;

/// Parts of a model that stand side by side and can run at once.
#[wasm_bindgen]
pub struct Stage(onnx::Stage);

#[wasm_bindgen]
impl Stage {
    /// `files` are those of `len` parts from `start` on; `work` is what the brain's `job` gives as bytes.
    pub fn load(
        files: Vec<Uint8Array>,
        work: &[u8],
        start: f64,
        len: f64,
        lent: &Lent,
    ) -> Result<Stage, JsValue> {
        let work: Kind = postcard::from_bytes(work)
            .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
        let no_model = || internal("a job that is no model".into());
        let work = onnx::model(&work).ok_or_else(no_model)?;
        let files = files.iter().map(Uint8Array::to_vec).collect();
        let span = Span::new(start as u64, len as u64);
        let stage = onnx::Stage::load_within(files, work, span, (&Threads::new(1), &lent.0));
        stage.map(Stage).map_err(|failure| to_js(&failure))
    }

    /// From what enters to what leaves.
    pub fn run(&self, entered: &[u8]) -> Result<Vec<u8>, JsValue> {
        self.0.run(entered).map_err(|failure| to_js(&failure))
    }
}
