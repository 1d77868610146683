//! Parts of a service that a crew keeps ready: what its engine answers, and what the member wants of it.

use std::sync::Arc;

use js_sys::Uint8Array;
use shoal_kinds::crew::{Out, Way};
use shoal_node::session::{MemberInput, StageAnswer, StageCommand};
use shoal_protocol::{Attempt, CrewSay, Epoch, Failure, Micros};
use wasm_bindgen::prelude::*;

use super::{Crew, CrewOutputs};
use crate::failure::{self, UnitFailure};
use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export type StageCommand =
  /** Have these parts of the job's model ready, and no others; answer with `stageLoaded` or `stageFailed`. */
  | { do: "load"; epoch: number; job: number; start: number; len: number }
  /** Answer with `stageMade` or `stageNotMade`. */
  | { do: "run"; epoch: number; call: number; input: Uint8Array<ArrayBuffer> }
  /** Answer with `stageTurned`; `items` are for the engine to read. */
  | { do: "turn"; epoch: number; items: Uint8Array<ArrayBuffer> }
  | { do: "drop"; epoch: number; call: number };
/** How a member does that keeps parts of a service ready: sums over all requests of this epoch, times in milliseconds. */
export interface StageProgress {
  done: number;
  held: number;
  computed: number;
  waited: number;
  passed: number;
  bytes: number;
  travelled: number;
}
"#;

#[wasm_bindgen]
impl Crew {
    /// A request to the service, as the brain's `askCrew` gives it.
    pub fn ask(&mut self, now: f64, call: f64, body: Vec<u8>) -> CrewOutputs {
        let (call, body) = (Attempt(call as u64), Arc::new(body));
        self.handle(now, MemberInput::Ask { call, body })
    }

    #[wasm_bindgen(js_name = stageLoaded)]
    pub fn stage_loaded(&mut self, now: f64, epoch: u32) -> CrewOutputs {
        self.staged(now, StageAnswer::Loaded { epoch: Epoch(epoch) })
    }

    /// `took` in milliseconds.
    #[wasm_bindgen(js_name = stageMade)]
    pub fn stage_made(
        &mut self,
        now: f64,
        epoch: u32,
        call: f64,
        output: Vec<u8>,
        took: f64,
    ) -> CrewOutputs {
        let (epoch, call) = (Epoch(epoch), Attempt(call as u64));
        let took = Micros((took * 1_000.0) as u64);
        self.staged(now, StageAnswer::Made { epoch, call, output, took })
    }

    #[wasm_bindgen(js_name = stageNotMade)]
    pub fn stage_not_made(
        &mut self,
        now: f64,
        epoch: u32,
        call: f64,
        failure: &UnitFailure,
    ) -> CrewOutputs {
        let (epoch, call) = (Epoch(epoch), Attempt(call as u64));
        let failure = failure::from_js(failure);
        self.staged(now, StageAnswer::NotMade { epoch, call, failure })
    }

    /// What the engine made of a turn, as it writes it; `took` in milliseconds.
    #[wasm_bindgen(js_name = stageTurned)]
    pub fn stage_turned(
        &mut self,
        now: f64,
        epoch: u32,
        made: &[u8],
        took: f64,
        usual: bool,
    ) -> Result<CrewOutputs, JsError> {
        let made: Vec<(u64, Result<Vec<Out>, Failure>)> = postcard::from_bytes(made)
            .map_err(|error| JsError::new(&format!("a turn that cannot be read: {error}")))?;
        let made = made.into_iter().map(|(call, result)| (Attempt(call), result)).collect();
        let (epoch, took) = (Epoch(epoch), Micros((took * 1_000.0) as u64));
        Ok(self.staged(now, StageAnswer::Turned { epoch, made, took, usual }))
    }

    /// The parts cannot be loaded, or are lost.
    #[wasm_bindgen(js_name = stageFailed)]
    pub fn stage_failed(&mut self, now: f64, epoch: u32, failure: &UnitFailure) -> CrewOutputs {
        let failure = failure::from_js(failure);
        self.staged(now, StageAnswer::Failed { epoch: Epoch(epoch), failure })
    }
}

impl Crew {
    fn staged(&mut self, now: f64, answer: StageAnswer) -> CrewOutputs {
        self.handle(now, MemberInput::Stage(answer))
    }
}

/// `StageCommand` in TypeScript.
pub(super) fn command(command: &StageCommand) -> JsValue {
    let of = |what: &str, epoch: &Epoch| Fields::new().with("do", what).with("epoch", epoch.0);
    match command {
        StageCommand::Load { epoch, job, parts } => of("load", epoch)
            .with("job", job.0 as f64)
            .with("start", parts.start as f64)
            .with("len", parts.len as f64),
        StageCommand::Run { epoch, call, input } => of("run", epoch)
            .with("call", call.0 as f64)
            .with("input", Uint8Array::from(input.as_slice())),
        StageCommand::Turn { epoch, items } => {
            let items: Vec<(u64, Way, &[u8])> =
                items.iter().map(|item| (item.call.0, item.way, item.bytes.as_slice())).collect();
            // Writing to memory cannot fail.
            let items = postcard::to_allocvec(&items).unwrap_or_default();
            of("turn", epoch).with("items", Uint8Array::from(items.as_slice()))
        }
        StageCommand::Drop { epoch, call } => of("drop", epoch).with("call", call.0 as f64),
    }
    .done()
}

/// For the brain's `crewAnswers`.
pub(super) fn answer(call: Attempt, result: &Result<Vec<u8>, Failure>) -> Fields {
    // Writing to memory cannot fail.
    let result = postcard::to_allocvec(result).unwrap_or_default();
    Fields::of("answer")
        .with("call", call.0 as f64)
        .with("result", Uint8Array::from(result.as_slice()))
}

/// What a page shows of it.
pub(super) fn progress(say: &CrewSay) -> Option<JsValue> {
    let CrewSay::Staged(report) = say else { return None };
    let millis = |micros: Micros| micros.0 as f64 / 1_000.0;
    let fields = Fields::new()
        .with("done", report.done as f64)
        .with("held", report.held)
        .with("computed", millis(report.computed))
        .with("waited", millis(report.waited))
        .with("passed", report.passed as f64)
        .with("bytes", report.bytes as f64)
        .with("travelled", millis(report.travelled));
    Some(fields.done())
}
