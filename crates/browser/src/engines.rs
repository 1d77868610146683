//! The supervisor of engines for JavaScript: the Workers of `web/sdk` do what it says. Each call is one input; it
//! answers with all outputs in order.

use shoal_node::supervise::{
    Answer, Ask, EngineId, EngineInput, EngineOutput, Fault, Kind, Supervisor,
};
use shoal_protocol::{Attempt, CrewId, Epoch, JobId, Micros, Time};
use wasm_bindgen::prelude::*;

use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Why a unit or a band ended: over its time (microseconds allowed), or with its engine. */
export type EngineFault = { kind: "time"; message: string; allowed: number } | { kind: "lost"; message: string };

/** One thing to do with an engine Worker. */
export type EngineOutput =
  /** Start one; answer with `ready`, `broken` or `died`. */
  | { type: "start"; engine: number }
  | { type: "kill"; engine: number }
  /** Have it compute this unit; answer with `computing`, `resting` and `ended`. */
  | { type: "give"; engine: number; attempt: number }
  /** Nobody wants this unit any more; answer with `resting` or `ended`. */
  | { type: "cancel"; engine: number; attempt: number }
  | { type: "failed"; attempt: number; took: number; fault: EngineFault }
  | { type: "crewLost"; crew: number; epoch: number; fault: EngineFault }
  | { type: "auditionLost"; crew: number; fault: EngineFault }
  /** A device does not open: it is offered again when an engine is ready. */
  | { type: "gone"; why: string };
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "EngineOutput[]")]
    pub type EngineOutputs;
}

/// Times are milliseconds as `performance.now()` gives them, so are limits.
#[wasm_bindgen]
pub struct Engines(Supervisor);

#[wasm_bindgen]
impl Engines {
    /// One that takes all units, such as a GPU's, or else one for each.
    #[wasm_bindgen(constructor)]
    pub fn new(shared: bool) -> Engines {
        Engines(Supervisor::new(if shared { Kind::Device } else { Kind::Programs }))
    }

    pub fn most(&mut self, now: f64, most: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Most(most as usize))
    }

    pub fn run(&mut self, now: f64, attempt: f64, job: f64, limit: f64) -> EngineOutputs {
        let (attempt, job, limit) = (Attempt(attempt as u64), JobId(job as u64), micros(limit));
        self.handle(now, EngineInput::Run { attempt, job, limit })
    }

    pub fn abort(&mut self, now: f64, attempt: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Abort(Attempt(attempt as u64)))
    }

    pub fn ready(&mut self, now: f64, engine: u32) -> EngineOutputs {
        self.handle(now, EngineInput::Ready(EngineId(engine)))
    }

    /// It says that it cannot be opened.
    pub fn broken(&mut self, now: f64, engine: u32, why: String) -> EngineOutputs {
        self.handle(now, EngineInput::Broken { engine: EngineId(engine), why })
    }

    /// It ended by itself, or is of no more use and was ended.
    pub fn died(&mut self, now: f64, engine: u32, why: String) -> EngineOutputs {
        self.handle(now, EngineInput::Died { engine: EngineId(engine), why })
    }

    pub fn computing(&mut self, now: f64, attempt: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Computing(Attempt(attempt as u64)))
    }

    pub fn resting(&mut self, now: f64, attempt: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Resting(Attempt(attempt as u64)))
    }

    pub fn ended(&mut self, now: f64, attempt: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Ended(Attempt(attempt as u64)))
    }

    /// A band is to open, or else to make a step; without an epoch a step is to be timed.
    pub fn asked(
        &mut self,
        now: f64,
        crew: f64,
        limit: f64,
        epoch: Option<u32>,
        opens: bool,
    ) -> EngineOutputs {
        let ask = match epoch.map(Epoch) {
            None => Ask::Audition,
            Some(epoch) if opens => Ask::Open(epoch),
            Some(epoch) => Ask::Step(epoch),
        };
        let (crew, limit) = (CrewId(crew as u64), micros(limit));
        self.handle(now, EngineInput::Asked { crew, ask, limit })
    }

    /// The answer to it: edges, or that it is no band any more.
    pub fn answered(
        &mut self,
        now: f64,
        crew: f64,
        epoch: Option<u32>,
        failed: bool,
    ) -> EngineOutputs {
        let answer = match epoch.map(Epoch) {
            None => Answer::Auditioned,
            Some(epoch) if failed => Answer::Failed(epoch),
            Some(epoch) => Answer::Edges(epoch),
        };
        self.handle(now, EngineInput::Answered { crew: CrewId(crew as u64), answer })
    }

    pub fn left(&mut self, now: f64, crew: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Left(CrewId(crew as u64)))
    }

    pub fn close(&mut self, now: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Close)
    }

    pub fn tick(&mut self, now: f64) -> EngineOutputs {
        self.handle(now, EngineInput::Tick)
    }

    /// When `tick` is due, if at all.
    #[wasm_bindgen(js_name = nextTimeout)]
    pub fn next_timeout(&self) -> Option<f64> {
        self.0.next_timeout().map(|time| time.0 as f64 / 1_000.0)
    }
}

impl Engines {
    fn handle(&mut self, now: f64, input: EngineInput) -> EngineOutputs {
        self.0.handle(Time((now * 1_000.0) as u64), input);
        let outputs = js_sys::Array::new();
        while let Some(output) = self.0.poll_output() {
            if let Some(output) = plain(output) {
                outputs.push(&output.done());
            }
        }
        JsValue::from(outputs).unchecked_into()
    }
}

fn plain(output: EngineOutput) -> Option<Fields> {
    let of_engine = |tag, engine: EngineId| Fields::of(tag).with("engine", engine.0);
    Some(match output {
        EngineOutput::Start(engine) => of_engine("start", engine),
        EngineOutput::Kill(engine) => of_engine("kill", engine),
        EngineOutput::Give { engine, attempt } => {
            of_engine("give", engine).with("attempt", attempt.0 as f64)
        }
        EngineOutput::Cancel { engine, attempt } => {
            of_engine("cancel", engine).with("attempt", attempt.0 as f64)
        }
        EngineOutput::Failed { attempt, took, fault } => Fields::of("failed")
            .with("attempt", attempt.0 as f64)
            .with("took", took.0 as f64 / 1_000.0)
            .with("fault", plain_fault(fault)),
        EngineOutput::CrewLost { crew, epoch, fault } => Fields::of("crewLost")
            .with("crew", crew.0 as f64)
            .with("epoch", epoch.0)
            .with("fault", plain_fault(fault)),
        EngineOutput::AuditionLost { crew, fault } => {
            Fields::of("auditionLost").with("crew", crew.0 as f64).with("fault", plain_fault(fault))
        }
        // A page shows nothing of it.
        EngineOutput::Restarted(_) => return None,
        EngineOutput::Gone(why) => Fields::of("gone").with("why", why),
    })
}

fn plain_fault(fault: Fault) -> JsValue {
    let fields = match fault {
        Fault::Time { allowed } => {
            Fields::new().with("kind", "time").with("message", "").with("allowed", allowed.0 as f64)
        }
        Fault::Lost { why } => Fields::new().with("kind", "lost").with("message", why),
    };
    fields.done()
}

fn micros(millis: f64) -> Micros {
    Micros((millis * 1_000.0) as u64)
}
