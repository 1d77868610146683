//! A member of a crew for JavaScript: like the brain, each call is one input and answers with all outputs in
//! order. Loaded when a node is first asked into a crew.

mod answer;
mod output;
mod stage;
mod swarm;
mod talk;
mod words;

use std::sync::Arc;

use shoal_kinds::Kind;
use shoal_node::session::{Member, MemberConfig, MemberInput};
use shoal_protocol::{CrewTask, Enlist, Epoch, NodeId, PublicKey, Span, Time};
use shoal_seal::Keys;
use wasm_bindgen::prelude::*;

use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Whose part it is, and of what. */
export interface CrewConfig {
  /** The node's number. */
  me: number;
  /** The coordinator's key, 64 hex digits. */
  coordinator: string;
  /** The secret half of the key of this node's links: 32 bytes. */
  secret: Uint8Array;
  /** Fresh randomness: 32 bytes. */
  seed: Uint8Array;
  /** `performance.timeOrigin`: whether tokens are still good. */
  timeOrigin: number;
  /** Whether there is a radio. */
  triesDirect: boolean;
  /** What the brain's `job` gives as bytes; not needed for talk. */
  work?: Uint8Array;
}
/** This node's place in the present epoch. */
export interface CrewPlace {
  epoch: number;
  rank: number;
  members: number[];
  ice: string[];
  /** Its rows, in a simulation; its parts, of a service. */
  rows?: { start: number; len: number };
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "CrewConfig")]
    pub type CrewConfig;
    #[wasm_bindgen(method, getter)]
    fn me(this: &CrewConfig) -> f64;
    #[wasm_bindgen(method, getter)]
    fn coordinator(this: &CrewConfig) -> String;
    #[wasm_bindgen(method, getter)]
    fn secret(this: &CrewConfig) -> Vec<u8>;
    #[wasm_bindgen(method, getter)]
    fn seed(this: &CrewConfig) -> Vec<u8>;
    #[wasm_bindgen(method, getter, js_name = timeOrigin)]
    fn time_origin(this: &CrewConfig) -> f64;
    #[wasm_bindgen(method, getter, js_name = triesDirect)]
    fn tries_direct(this: &CrewConfig) -> bool;
    #[wasm_bindgen(method, getter)]
    fn work(this: &CrewConfig) -> Option<Vec<u8>>;

    #[wasm_bindgen(typescript_type = "CrewOutput[]")]
    pub type CrewOutputs;
    #[wasm_bindgen(typescript_type = "CrewPlace")]
    pub type CrewPlace;
}

/// Times are milliseconds as `performance.now()` gives them.
#[wasm_bindgen]
pub struct Crew {
    member: Member,
    place: Option<Place>,
}

/// What a page shows of an `Enlist`.
struct Place {
    epoch: Epoch,
    rank: u8,
    members: Vec<NodeId>,
    ice: Vec<String>,
    rows: Option<Span>,
}

#[wasm_bindgen]
impl Crew {
    #[wasm_bindgen(constructor)]
    pub fn new(now: f64, config: &CrewConfig) -> Result<Crew, JsError> {
        let coordinator: PublicKey = config
            .coordinator()
            .parse()
            .map_err(|error| JsError::new(&format!("the coordinator's key: {error}")))?;
        let work = match config.work() {
            Some(bytes) => {
                let work: Kind = words::read(&bytes, "a job")?;
                let no_sim = || JsError::new("a crew for a job that is no simulation");
                Some(work.sim().ok_or_else(no_sim)?.clone())
            }
            None => None,
        };
        let config = MemberConfig {
            me: NodeId(config.me() as u64),
            coordinator,
            secret: words::bytes32(&config.secret(), "a secret")?,
            seed: words::bytes32(&config.seed(), "a seed")?,
            unix_at_zero: (config.time_origin() * 1_000.0) as u64,
            tries_direct: config.tries_direct(),
            work,
        };
        Ok(Crew { member: Member::new(at(now), config), place: None })
    }

    /// The public half of a key for this node's links, made anew at each start from 32 random bytes.
    #[wasm_bindgen(js_name = linkKey)]
    pub fn link_key(secret: &[u8]) -> Result<Vec<u8>, JsError> {
        let keys = Keys::new(words::bytes32(secret, "a secret")?);
        Ok(keys.public().0.to_vec())
    }

    /// Its place in a new epoch, as the brain's `enlist` gives it.
    pub fn enlist(&mut self, now: f64, bytes: &[u8]) -> Result<CrewOutputs, JsError> {
        let enlist: Enlist = words::read(bytes, "a place in a crew")?;
        let rank = usize::from(enlist.rank);
        let rows = match &enlist.task {
            CrewTask::Sim(task) => task.bands.get(rank).copied(),
            CrewTask::Stage(task) => task.parts.get(rank).copied(),
            CrewTask::Talk | CrewTask::Swarm => None,
        };
        self.place = Some(Place {
            epoch: enlist.epoch,
            rank: enlist.rank,
            members: enlist.members.iter().map(|member| member.node).collect(),
            ice: enlist.ice.clone(),
            rows,
        });
        Ok(self.handle(now, MemberInput::Enlist(Box::new(enlist))))
    }

    /// Its place, once there is one.
    pub fn place(&self) -> Option<CrewPlace> {
        let place = self.place.as_ref()?;
        let rows = place.rows.map(|rows| {
            let (start, len) = (rows.start as f64, rows.len as f64);
            Fields::new().with("start", start).with("len", len).done()
        });
        let members: js_sys::Array =
            place.members.iter().map(|node| JsValue::from(node.0 as f64)).collect();
        let ice: js_sys::Array = place.ice.iter().map(|server| JsValue::from_str(server)).collect();
        let fields = Fields::new()
            .with("epoch", place.epoch.0)
            .with("rank", place.rank)
            .with("members", members)
            .with("ice", ice)
            .with("rows", rows);
        Some(fields.done().unchecked_into())
    }

    /// What the brain's `toCrew` gives.
    pub fn told(&mut self, now: f64, bytes: &[u8]) -> Result<CrewOutputs, JsError> {
        let told = words::read(bytes, "a word for a crew")?;
        Ok(self.handle(now, MemberInput::Told(told)))
    }

    /// The socket is open and greeted, or lost.
    pub fn relay(&mut self, now: f64, up: bool) -> CrewOutputs {
        self.handle(now, MemberInput::Relay(up))
    }

    /// A frame of this crew from the socket.
    pub fn frame(&mut self, now: f64, frame: &[u8]) -> CrewOutputs {
        self.handle(now, MemberInput::Frame(frame))
    }

    #[wasm_bindgen(js_name = directUp)]
    pub fn direct_up(&mut self, now: f64, peer: f64) -> CrewOutputs {
        self.handle(now, MemberInput::DirectUp(node(peer)))
    }

    #[wasm_bindgen(js_name = directDown)]
    pub fn direct_down(&mut self, now: f64, peer: f64) -> CrewOutputs {
        self.handle(now, MemberInput::DirectDown(node(peer)))
    }

    /// A frame from the direct channel to that node.
    pub fn direct(&mut self, now: f64, peer: f64, frame: &[u8]) -> CrewOutputs {
        self.handle(now, MemberInput::Direct(node(peer), frame))
    }

    /// Words of this radio for that node's.
    pub fn radio(&mut self, now: f64, peer: f64, words: Vec<u8>) -> CrewOutputs {
        self.handle(now, MemberInput::Radio(node(peer), words))
    }

    /// Talk only: says this to that member.
    pub fn app(&mut self, now: f64, to: f64, channel: u16, message: Vec<u8>) -> CrewOutputs {
        let message = Arc::new(message);
        self.handle(now, MemberInput::App { to: node(to), channel, message })
    }

    /// Talk only: takes nothing more of that member for now, or again.
    pub fn hold(&mut self, now: f64, peer: f64, hold: bool) -> CrewOutputs {
        self.handle(now, MemberInput::Hold(node(peer), hold))
    }

    pub fn tick(&mut self, now: f64) -> CrewOutputs {
        self.handle(now, MemberInput::Tick)
    }

    /// When `tick` is due, if at all.
    #[wasm_bindgen(js_name = nextTimeout)]
    pub fn next_timeout(&self) -> Option<f64> {
        self.member.next_timeout().map(|time| time.0 as f64 / 1_000.0)
    }
}

impl Crew {
    fn handle(&mut self, now: f64, input: MemberInput<'_>) -> CrewOutputs {
        self.member.handle(at(now), input);
        let outputs = js_sys::Array::new();
        while let Some(output) = self.member.poll_output() {
            outputs.push(&output::plain(output));
        }
        JsValue::from(outputs).unchecked_into()
    }
}

fn at(now: f64) -> Time {
    Time((now * 1_000.0) as u64)
}

fn node(number: f64) -> NodeId {
    NodeId(number as u64)
}
