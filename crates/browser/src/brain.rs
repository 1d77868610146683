//! The node brain for JavaScript. Each call is one input; it answers with all outputs in order.

use shoal_node::{Config, Input, Node, Phase};
use shoal_protocol::codec::{DecodeError, Wire};
use shoal_protocol::{
    Attempt, CrewId, CrewSay, Epoch, Hash, Identity, JobId, LinkKey, Micros, PublicKey, Signature,
    Time, ToNode, UnitOutput,
};
use wasm_bindgen::prelude::*;

use crate::describe;
use crate::failure::{self, UnitFailure};
use crate::object::Fields;
use crate::offer::{self, DeviceCondition, DonorRules, Offer};
use crate::output::plain;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface BrainStatus {
  phase: "idle" | "connecting" | "greeting" | "joined" | "waiting" | "stopped";
  node?: number;
  running: number;
  queued: number;
  unitsDone: number;
  unitsFailed: number;
  job?: number;
  /** What is kept ready for requests, and how many bytes it may take. */
  services: { job: number; name: string; owner: string; memory: number }[];
  /** The coordinator's key, 64 hex digits: it stands for code that came to it unsigned. */
  coordinator?: string;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "BrainOutput[]")]
    pub type Outputs;
    #[wasm_bindgen(typescript_type = "BrainStatus")]
    pub type BrainStatus;
}

/// Times are milliseconds as `performance.now()` gives them.
#[wasm_bindgen]
pub struct Brain {
    node: Node,
    /// As its challenge names it.
    coordinator: Option<PublicKey>,
}

#[wasm_bindgen]
impl Brain {
    /// `identity`: the public half of the key this device made once and keeps. `talks`: whether applications
    /// of other nodes may talk to this one. `shares`: whether it exchanges blobs with others.
    #[wasm_bindgen(constructor)]
    pub fn new(
        token: String,
        identity: &[u8],
        offer: &Offer,
        rules: &DonorRules,
        seed: f64,
        talks: Option<bool>,
        shares: Option<bool>,
    ) -> Result<Brain, JsError> {
        let identity = identity.try_into().map_err(|_| {
            JsError::new(&format!("an identity of {} bytes; expected 32", identity.len()))
        })?;
        let config = Config {
            token,
            identity: Identity(identity),
            caps: offer::caps(offer)?,
            rules: offer::rules(rules)?,
            talks: talks == Some(true),
            shares: shares == Some(true),
            seed: seed as u64,
        };
        Ok(Brain { node: Node::new(config), coordinator: None })
    }

    pub fn start(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Start)
    }

    pub fn opened(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Opened)
    }

    pub fn closed(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Closed)
    }

    /// A frame from the coordinator. Fails if it is no message: close the socket then.
    pub fn received(&mut self, now: f64, frame: &[u8]) -> Result<Outputs, JsError> {
        match ToNode::decode(frame) {
            Ok(message) => {
                if let ToNode::Challenge { coordinator, .. } = &message {
                    self.coordinator = Some(*coordinator);
                }
                Ok(self.handle(now, Input::Received(message)))
            }
            Err(DecodeError::UnknownKind(_)) => Ok(self.handle(now, Input::Tick)),
            Err(error @ (DecodeError::TooLarge(_) | DecodeError::Garbled)) => {
                Err(JsError::new(&format!("the coordinator sent {error}")))
            }
        }
    }

    /// The answer to `sign`: the signature's 64 bytes.
    pub fn signed(&mut self, now: f64, statement: &[u8], proof: &[u8]) -> Result<Outputs, JsError> {
        let proof = proof.try_into().map_err(|_| {
            JsError::new(&format!("a signature of {} bytes; expected 64", proof.len()))
        })?;
        let (statement, proof) = (statement.into(), Signature::new(proof));
        Ok(self.handle(now, Input::Signed { statement, proof }))
    }

    /// The answer to `check`: nothing if the code is what was signed, else what is wrong with it.
    pub fn checked(&mut self, now: f64, job: f64, problem: Option<String>) -> Outputs {
        let result = problem.map_or(Ok(()), Err);
        self.handle(now, Input::Checked { job: JobId(job as u64), result })
    }

    /// A unit finished; its result is small enough to ride along. `took` in milliseconds.
    #[wasm_bindgen(js_name = ranInline)]
    pub fn ran_inline(&mut self, now: f64, attempt: f64, took: f64, result: Vec<u8>) -> Outputs {
        self.ran(now, attempt, took, Ok(UnitOutput::Inline(result)))
    }

    /// A part of the answer to a request, before the whole is there.
    pub fn part(&mut self, now: f64, attempt: f64, bytes: Vec<u8>) -> Outputs {
        self.handle(now, Input::Part { attempt: Attempt(attempt as u64), bytes })
    }

    /// A unit finished and its result was stored by HTTP.
    #[wasm_bindgen(js_name = ranStored)]
    pub fn ran_stored(
        &mut self,
        now: f64,
        attempt: f64,
        took: f64,
        hash: &str,
        size: f64,
    ) -> Result<Outputs, JsError> {
        let hash: Hash = hash.parse().map_err(|error| JsError::new(&format!("{error}")))?;
        Ok(self.ran(now, attempt, took, Ok(UnitOutput::Stored { hash, size: size as u64 })))
    }

    #[wasm_bindgen(js_name = ranFailed)]
    pub fn ran_failed(
        &mut self,
        now: f64,
        attempt: f64,
        took: f64,
        failure: &UnitFailure,
    ) -> Outputs {
        self.ran(now, attempt, took, Err(failure::from_js(failure)))
    }

    /// The answer to `warm`: nothing if requests may come, else why not.
    pub fn warmed(&mut self, now: f64, job: f64, failure: Option<UnitFailure>) -> Outputs {
        let result = failure.map_or(Ok(()), |failure| Err(failure::from_js(&failure)));
        self.handle(now, Input::Warmed { job: JobId(job as u64), result })
    }

    /// The donor changed what is lent.
    pub fn offer(&mut self, now: f64, offer: &Offer) -> Result<Outputs, JsError> {
        Ok(self.handle(now, Input::Offer(offer::caps(offer)?)))
    }

    /// The donor chose for whom this device works.
    pub fn rules(&mut self, now: f64, rules: &DonorRules) -> Result<Outputs, JsError> {
        Ok(self.handle(now, Input::Rules(offer::rules(rules)?)))
    }

    pub fn condition(&mut self, now: f64, condition: &DeviceCondition) -> Outputs {
        self.handle(now, Input::Condition(offer::condition(condition)))
    }

    pub fn pause(&mut self, now: f64, paused: bool) -> Outputs {
        self.handle(now, Input::Pause(paused))
    }

    /// The public half of the key this node's links are sealed with.
    #[wasm_bindgen(js_name = linkKey)]
    pub fn link_key(&mut self, now: f64, key: &[u8]) -> Result<Outputs, JsError> {
        let key = key.try_into().map_err(|_| {
            JsError::new(&format!("a link's key of {} bytes; expected 32", key.len()))
        })?;
        Ok(self.handle(now, Input::LinkKey(LinkKey(key))))
    }

    /// A member of a crew has something to say, as the crew's `says` gives it.
    #[wasm_bindgen(js_name = crewSays)]
    pub fn crew_says(
        &mut self,
        now: f64,
        crew: f64,
        epoch: u32,
        say: &[u8],
    ) -> Result<Outputs, JsError> {
        let say = postcard::from_bytes(say).map_err(|error| {
            JsError::new(&format!("a crew's word that cannot be read: {error}"))
        })?;
        Ok(self.say(now, crew, epoch, say))
    }

    /// A member of a crew answers a request to a service, as the crew's `answer` gives it.
    #[wasm_bindgen(js_name = crewAnswers)]
    pub fn crew_answers(
        &mut self,
        now: f64,
        crew: f64,
        call: f64,
        result: &[u8],
    ) -> Result<Outputs, JsError> {
        let result = postcard::from_bytes(result).map_err(|error| {
            JsError::new(&format!("a crew's answer that cannot be read: {error}"))
        })?;
        let (crew, call) = (CrewId(crew as u64), Attempt(call as u64));
        Ok(self.handle(now, Input::CrewAnswers { crew, call, result }))
    }

    /// The last member of a crew has more of an answer, as the crew's `part` gives it.
    #[wasm_bindgen(js_name = crewPart)]
    pub fn crew_part(
        &mut self,
        now: f64,
        crew: f64,
        call: f64,
        at: f64,
        bytes: Vec<u8>,
        last: bool,
    ) -> Outputs {
        let (crew, call, at) = (CrewId(crew as u64), Attempt(call as u64), at as u64);
        self.handle(now, Input::CrewPart { crew, call, at, bytes, last })
    }

    /// What the exchange of blobs has to say, as the swarm's `say` gives it.
    #[wasm_bindgen(js_name = swarmSays)]
    pub fn swarm_says(&mut self, now: f64, say: &[u8]) -> Result<Outputs, JsError> {
        let say = postcard::from_bytes(say).map_err(|error| {
            JsError::new(&format!("a word about blobs that cannot be read: {error}"))
        })?;
        Ok(self.handle(now, Input::SwarmSays(say)))
    }

    /// The answer to `audition`: what a step of so many cells took, in milliseconds.
    pub fn auditioned(&mut self, now: f64, crew: f64, cells: f64, took: f64) -> Outputs {
        let took = Micros((took * 1_000.0) as u64);
        self.say(now, crew, 0, CrewSay::Auditioned { cells: cells as u64, took })
    }

    /// This node cannot take part in the crew; epoch 0 at an audition.
    #[wasm_bindgen(js_name = crewFailed)]
    pub fn crew_failed(
        &mut self,
        now: f64,
        crew: f64,
        epoch: u32,
        failure: &UnitFailure,
    ) -> Outputs {
        self.say(now, crew, epoch, CrewSay::Failed { failure: failure::from_js(failure) })
    }

    /// The way by QUIC is open.
    #[wasm_bindgen(js_name = quicUp)]
    pub fn quic_up(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::QuicUp)
    }

    /// It could not be opened, or is gone.
    #[wasm_bindgen(js_name = quicDown)]
    pub fn quic_down(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::QuicDown)
    }

    pub fn stop(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Stop)
    }

    pub fn tick(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Tick)
    }

    /// When `tick` is due, if at all.
    #[wasm_bindgen(js_name = nextTimeout)]
    pub fn next_timeout(&self) -> Option<f64> {
        self.node.next_timeout().map(|time| time.0 as f64 / 1_000.0)
    }

    /// Bearer token for HTTP requests of the present connection.
    pub fn session(&self) -> Option<String> {
        self.node.session().map(Into::into)
    }

    pub fn job(&self, job: f64) -> Option<describe::BrainJob> {
        self.node.job(JobId(job as u64)).map(describe::job)
    }

    pub fn status(&self) -> BrainStatus {
        let status = self.node.status();
        let (phase, node) = match status.phase {
            Phase::Idle => ("idle", None),
            Phase::Connecting => ("connecting", None),
            Phase::Greeting { .. } => ("greeting", None),
            Phase::Joined(node) => ("joined", Some(node.0 as f64)),
            Phase::Waiting { .. } => ("waiting", None),
            Phase::Stopped => ("stopped", None),
        };
        let services = js_sys::Array::new();
        for (job, info) in self.node.services() {
            let service = Fields::new()
                .with("job", job.0 as f64)
                .with("name", info.name.as_str())
                .with("owner", info.owner.as_str())
                .with("memory", info.takes.memory as f64);
            services.push(&service.done());
        }
        Fields::new()
            .with("phase", phase)
            .with("node", node)
            .with("running", status.running as f64)
            .with("queued", status.queued as f64)
            .with("unitsDone", status.units_done as f64)
            .with("unitsFailed", status.units_failed as f64)
            .with("job", status.job.map(|job| job.0 as f64))
            .with("services", JsValue::from(services))
            .with("coordinator", self.coordinator.map(|key| key.to_string()))
            .done()
            .unchecked_into()
    }
}

impl Brain {
    fn ran(
        &mut self,
        now: f64,
        attempt: f64,
        took: f64,
        result: Result<UnitOutput, shoal_protocol::Failure>,
    ) -> Outputs {
        let took = Micros((took * 1_000.0) as u64);
        self.handle(now, Input::Ran { attempt: Attempt(attempt as u64), took, result })
    }

    fn say(&mut self, now: f64, crew: f64, epoch: u32, say: CrewSay) -> Outputs {
        let (crew, epoch) = (CrewId(crew as u64), Epoch(epoch));
        self.handle(now, Input::CrewSays { crew, epoch, say })
    }

    fn handle(&mut self, now: f64, input: Input) -> Outputs {
        self.node.handle(Time((now * 1_000.0) as u64), input);
        let outputs = js_sys::Array::new();
        while let Some(output) = self.node.poll_output() {
            outputs.push(&plain(&self.node, output));
        }
        JsValue::from(outputs).unchecked_into()
    }
}
