//! What the engine answers to a member.

use shoal_node::session::{MemberInput, SimAnswer};
use shoal_protocol::{BlobRef, Epoch, Hash, Micros, UnitOutput};
use wasm_bindgen::prelude::*;

use super::{Crew, CrewOutputs, words};
use crate::failure::{self, UnitFailure};

#[wasm_bindgen]
impl Crew {
    /// The engine's answer to `open` and `step`. `took` in milliseconds.
    pub fn edges(
        &mut self,
        now: f64,
        epoch: u32,
        step: f64,
        top: Vec<u8>,
        bottom: Vec<u8>,
        took: f64,
    ) -> CrewOutputs {
        let (epoch, step) = (Epoch(epoch), step as u64);
        let took = Micros((took * 1_000.0) as u64);
        self.answer(now, SimAnswer::Edges { epoch, step, top, bottom, took })
    }

    /// The rows asked for are stored.
    pub fn kept(
        &mut self,
        now: f64,
        epoch: u32,
        step: f64,
        hash: &str,
        size: f64,
    ) -> Result<CrewOutputs, JsError> {
        let blob = BlobRef { hash: words::hash(hash)?, size: size as u64 };
        let (epoch, step) = (Epoch(epoch), step as u64);
        Ok(self.answer(now, SimAnswer::Kept { epoch, step, blob }))
    }

    /// The result's rows, small enough to ride along.
    #[wasm_bindgen(js_name = finalInline)]
    pub fn final_inline(&mut self, now: f64, epoch: u32, bytes: Vec<u8>) -> CrewOutputs {
        let output = UnitOutput::Inline(bytes);
        self.answer(now, SimAnswer::Final { epoch: Epoch(epoch), output })
    }

    /// The result's rows were stored by HTTP.
    #[wasm_bindgen(js_name = finalStored)]
    pub fn final_stored(
        &mut self,
        now: f64,
        epoch: u32,
        hash: &str,
        size: f64,
    ) -> Result<CrewOutputs, JsError> {
        let hash: Hash = words::hash(hash)?;
        let output = UnitOutput::Stored { hash, size: size as u64 };
        Ok(self.answer(now, SimAnswer::Final { epoch: Epoch(epoch), output }))
    }

    pub fn shown(&mut self, now: f64, epoch: u32) -> CrewOutputs {
        self.answer(now, SimAnswer::Shown { epoch: Epoch(epoch) })
    }

    /// What this band's rows come to, where the job asks for that.
    pub fn reduced(&mut self, now: f64, epoch: u32, step: f64, rows: Vec<f64>) -> CrewOutputs {
        let (epoch, step) = (Epoch(epoch), step as u64);
        self.answer(now, SimAnswer::Reduced { epoch, step, rows })
    }

    pub fn failed(&mut self, now: f64, epoch: u32, failure: &UnitFailure) -> CrewOutputs {
        let failure = failure::from_js(failure);
        self.answer(now, SimAnswer::Failed { epoch: Epoch(epoch), failure })
    }
}

impl Crew {
    fn answer(&mut self, now: f64, answer: SimAnswer) -> CrewOutputs {
        self.handle(now, MemberInput::Engine(answer))
    }
}
