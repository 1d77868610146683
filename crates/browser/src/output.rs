//! What the brain wants done, as plain objects: `BrainOutput` in TypeScript.

use js_sys::{Array, Uint8Array};
use serde::Serialize;
use shoal_node::{JobInfo, Node, Output};
use shoal_protocol::codec::Wire;
use shoal_protocol::quic::{PATH, greeting};
use shoal_protocol::sign::code_statement;
use shoal_protocol::{CrewTask, JobId, Lane};
use wasm_bindgen::prelude::*;

use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** One thing for the Worker to do. */
export type BrainOutput =
  | { type: "connect" }
  | { type: "disconnect" }
  | { type: "send"; bytes: Uint8Array }
  /** Sign this with the node's key; answer with `signed`. */
  | { type: "sign"; statement: Uint8Array }
  /** See whether `signature` is the key's for `statement`, which names the job's code; answer with `checked`. Without
   * them nobody signed it. */
  | { type: "check"; job: number; statement?: Uint8Array; key?: Uint8Array; signature?: Uint8Array }
  /** A unit; with `body` a request to a service. */
  | { type: "run"; attempt: number; job: number; start: number; len: number; lane: "inline" | "gpu" | "cpu"; body?: Uint8Array }
  /** Have everything here that requests to a service need; answer with `warmed`. */
  | { type: "warm"; job: number }
  | { type: "abort"; attempt: number }
  | { type: "forget"; job: number }
  /** Measure what a step of the job takes here; answer with `crewSays`. */
  | { type: "audition"; crew: number; job: number }
  /** For the crew's `enlist`; without a job it is for talk, or to exchange blobs. */
  | { type: "enlist"; crew: number; job?: number; shares: boolean; bytes: Uint8Array }
  | { type: "dismiss"; crew: number }
  /** For the crew's `told`. */
  | { type: "toCrew"; crew: number; bytes: Uint8Array }
  /** For the crew's `ask`: a request to a service of which this node keeps the first part. */
  | { type: "askCrew"; crew: number; call: number; body: Uint8Array }
  /** Open a way for frames by QUIC, to this port of the coordinator's host; answer with `quicUp` or `quicDown`. Its
   * certificates have these hashes, and `greeting` comes first. */
  | { type: "openQuic"; port: number; path: string; hashes: Uint8Array[]; greeting: Uint8Array }
  | { type: "closeQuic" }
  /** For the swarm's `told`. */
  | { type: "swarm"; bytes: Uint8Array }
  /** Make a key for links: a crew may ask for this node. */
  | { type: "link" }
  | { type: "stopped"; reason?: string };
"#;

pub(crate) fn plain(node: &Node, output: Output) -> JsValue {
    match output {
        Output::Connect => Fields::of("connect"),
        Output::Disconnect => Fields::of("disconnect"),
        Output::Send(message) => Fields::of("send").with("bytes", bytes(&message.encode())),
        Output::Sign(statement) => Fields::of("sign").with("statement", bytes(&statement)),
        Output::Check(job) => check(job, node.job(job)),
        Output::Warm(job) => Fields::of("warm").with("job", job.0 as f64),
        Output::Run { lease, lane, body } => {
            let lane = match lane {
                Lane::Inline => "inline",
                Lane::Gpu => "gpu",
                Lane::Cpu => "cpu",
            };
            Fields::of("run")
                .with("attempt", lease.attempt.0 as f64)
                .with("job", lease.job.0 as f64)
                .with("start", lease.span.start as f64)
                .with("len", lease.span.len as f64)
                .with("lane", lane)
                .with("body", body.map(|body| bytes(&body)))
        }
        Output::Abort(attempt) => Fields::of("abort").with("attempt", attempt.0 as f64),
        Output::Forget(job) => Fields::of("forget").with("job", job.0 as f64),
        Output::Audition { crew, job } => {
            Fields::of("audition").with("crew", crew.0 as f64).with("job", job.0 as f64)
        }
        Output::Enlist(enlist) => {
            let job = match &enlist.task {
                CrewTask::Sim(task) => Some(task.job.0 as f64),
                CrewTask::Stage(task) => Some(task.job.0 as f64),
                CrewTask::Talk | CrewTask::Swarm => None,
            };
            let fields = Fields::of("enlist").with("crew", enlist.crew.0 as f64);
            let fields = fields.with("shares", enlist.task == CrewTask::Swarm);
            fields.with("job", job).with("bytes", packed(&*enlist))
        }
        Output::Dismiss(crew) => Fields::of("dismiss").with("crew", crew.0 as f64),
        Output::ToCrew { crew, say } => {
            Fields::of("toCrew").with("crew", crew.0 as f64).with("bytes", packed(&say))
        }
        Output::AskCrew { crew, call, body } => Fields::of("askCrew")
            .with("crew", crew.0 as f64)
            .with("call", call.0 as f64)
            .with("body", bytes(&body)),
        Output::OpenQuic(offer) => {
            let hashes = offer.hashes.iter().map(|hash| JsValue::from(bytes(hash)));
            Fields::of("openQuic")
                .with("port", f64::from(offer.port))
                .with("path", PATH)
                .with("hashes", hashes.collect::<Array>())
                .with("greeting", bytes(&greeting(node.session().unwrap_or_default())))
        }
        Output::CloseQuic => Fields::of("closeQuic"),
        Output::Swarm(told) => Fields::of("swarm").with("bytes", packed(&told)),
        Output::Link => Fields::of("link"),
        Output::Stopped(refusal) => {
            Fields::of("stopped").with("reason", refusal.map(|refusal| refusal.to_string()))
        }
    }
    .done()
}

fn check(job: JobId, info: Option<&JobInfo>) -> Fields {
    let fields = Fields::of("check").with("job", job.0 as f64);
    let signed = info.and_then(|info| Some((info.work.code()?.hash, info.signed?)));
    let Some((code, signed)) = signed else { return fields };
    fields
        .with("statement", bytes(&code_statement(&code)))
        .with("key", bytes(&signed.by.0))
        .with("signature", bytes(&signed.signature.bytes()))
}

/// For another module's memory.
fn packed(value: &impl Serialize) -> Uint8Array {
    // Writing to memory cannot fail.
    bytes(&postcard::to_allocvec(value).unwrap_or_default())
}

fn bytes(bytes: &[u8]) -> Uint8Array {
    Uint8Array::from(bytes)
}
