//! What a member wants done, as plain objects: `CrewOutput` in TypeScript.

use js_sys::{Array, Uint8Array};
use shoal_node::session::{MemberOutput, RadioDo, SimCommand};
use shoal_protocol::{CheckpointPart, CrewSay, LinkReport, Path, Poke, Span};
use wasm_bindgen::prelude::*;

use super::{stage, words};
use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** One thing for the Worker to do. */
export type CrewOutput =
  /** For the socket. */
  | { type: "frame"; bytes: Uint8Array<ArrayBuffer> }
  | { type: "direct"; peer: number; bytes: Uint8Array<ArrayBuffer> }
  | { type: "radio"; peer: number; do: "dial" | "listen" | "hang" }
  | { type: "radio"; peer: number; do: "hear"; words: Uint8Array }
  | { type: "engine"; command: SimCommand }
  | { type: "stage"; command: StageCommand }
  /** For the brain's `crewAnswers`. */
  | { type: "answer"; call: number; result: Uint8Array }
  /** For the brain's `crewPart`. */
  | { type: "part"; call: number; at: number; bytes: Uint8Array; last: boolean }
  /** For the brain's `crewSays`. */
  | { type: "says"; epoch: number; bytes: Uint8Array; progress?: CrewProgress; staged?: StageProgress }
  /** A message for the socket: this member's rows are handed in. */
  | { type: "deliver"; bytes: Uint8Array }
  | { type: "app"; from: number; channel: number; bytes: Uint8Array }
  | { type: "refused"; to: number; channel: number }
  | { type: "notBegun"; why: string }
  | { type: "done"; op: number; bytes: Uint8Array }
  | { type: "using"; peer: number; via: "relay" | "direct" };
export interface CrewProgress { step: number; links: CrewLink[] }
export interface CrewLink {
  peer: number;
  via: "relay" | "direct";
  roundTripMs: number;
  /** Megabytes a second, known while the link was full lately. */
  mbps?: number;
}
export interface SimPoke { at: [number, number]; by: [number, number]; radius: number; strength: number }
export type SimCommand =
  | { do: "open"; epoch: number; job: number; start: number; len: number; step: number; kept: SimKept[]; apart: boolean }
  | { do: "step"; epoch: number; step: number; above: Uint8Array<ArrayBuffer>; below: Uint8Array<ArrayBuffer>; poke?: SimPoke }
  | { do: "back"; epoch: number }
  | { do: "keep"; epoch: number; step: number }
  | { do: "finish"; epoch: number; step: number; attempt: number }
  | { do: "show"; epoch: number; step: number };
/** Rows of a checkpoint. */
export interface SimKept { start: number; len: number; hash: string; size: number }
"#;

pub(super) fn plain(output: MemberOutput) -> JsValue {
    match output {
        MemberOutput::Frame(frame) => Fields::of("frame").with("bytes", bytes(&frame)),
        MemberOutput::Direct(peer, frame) => {
            Fields::of("direct").with("peer", peer.0 as f64).with("bytes", bytes(&frame))
        }
        MemberOutput::Radio(peer, what) => radio(&what).with("peer", peer.0 as f64),
        MemberOutput::Engine(command) => Fields::of("engine").with("command", sim(&command)),
        MemberOutput::Stage(command) => {
            Fields::of("stage").with("command", stage::command(&command))
        }
        MemberOutput::Answer { call, result } => stage::answer(call, &result),
        MemberOutput::Part { call, at, bytes: part, last } => Fields::of("part")
            .with("call", call.0 as f64)
            .with("at", at as f64)
            .with("bytes", bytes(&part))
            .with("last", last),
        MemberOutput::Says { epoch, say } => Fields::of("says")
            .with("epoch", epoch.0)
            .with("bytes", bytes(&words::say(&say)))
            .with("progress", progress(&say))
            .with("staged", stage::progress(&say)),
        MemberOutput::Deliver { attempt, output } => {
            Fields::of("deliver").with("bytes", bytes(&words::done(attempt, output)))
        }
        MemberOutput::App { from, channel, bytes: said } => Fields::of("app")
            .with("from", from.0 as f64)
            .with("channel", channel)
            .with("bytes", bytes(&said)),
        MemberOutput::Refused { to, channel } => {
            Fields::of("refused").with("to", to.0 as f64).with("channel", channel)
        }
        MemberOutput::NotBegun(why) => Fields::of("notBegun").with("why", format!("{why:?}")),
        MemberOutput::Done { op, data } => {
            Fields::of("done").with("op", op.0).with("bytes", bytes(&data))
        }
        MemberOutput::Using(peer, path) => {
            let via = match path {
                Path::Relay => "relay",
                Path::Direct => "direct",
            };
            Fields::of("using").with("peer", peer.0 as f64).with("via", via)
        }
    }
    .done()
}

fn radio(what: &RadioDo) -> Fields {
    let fields = Fields::of("radio");
    match what {
        RadioDo::Dial => fields.with("do", "dial"),
        RadioDo::Listen => fields.with("do", "listen"),
        RadioDo::Hear(words) => fields.with("do", "hear").with("words", bytes(words)),
        RadioDo::Hang => fields.with("do", "hang"),
    }
}

fn sim(command: &SimCommand) -> JsValue {
    let of = |what: &str| Fields::new().with("do", what).with("epoch", command.epoch().0);
    match command {
        SimCommand::Open { job, rows, step, kept, apart, .. } => {
            let kept: Array = kept.iter().map(part).collect();
            let fields = span(of("open").with("job", job.0 as f64), rows);
            fields.with("step", *step as f64).with("kept", kept).with("apart", *apart)
        }
        SimCommand::Step { step, above, below, poke, .. } => of("step")
            .with("step", *step as f64)
            .with("above", bytes(above))
            .with("below", bytes(below))
            .with("poke", poke.as_ref().map(poked)),
        SimCommand::Back { .. } => of("back"),
        SimCommand::Keep { step, .. } => of("keep").with("step", *step as f64),
        SimCommand::Finish { step, attempt, .. } => {
            of("finish").with("step", *step as f64).with("attempt", attempt.0 as f64)
        }
        SimCommand::Show { step, .. } => of("show").with("step", *step as f64),
    }
    .done()
}

fn part(part: &CheckpointPart) -> JsValue {
    let fields = span(Fields::new(), &part.rows);
    fields.with("hash", part.blob.hash.to_string()).with("size", part.blob.size as f64).done()
}

fn span(fields: Fields, span: &Span) -> Fields {
    fields.with("start", span.start as f64).with("len", span.len as f64)
}

fn poked(poke: &Poke) -> JsValue {
    let pair = |[x, y]: [f32; 2]| Array::of2(&x.into(), &y.into());
    let fields = Fields::new().with("at", pair(poke.at)).with("by", pair(poke.by));
    fields.with("radius", poke.radius).with("strength", poke.strength).done()
}

/// What a page shows of it.
fn progress(say: &CrewSay) -> Option<JsValue> {
    let (step, links) = if let CrewSay::Progress { step, links, .. } = say {
        (*step, links)
    } else if let CrewSay::Staged(report) = say {
        (report.done, &report.links)
    } else {
        return None;
    };
    let links: Array = links.iter().map(link).collect();
    Some(Fields::new().with("step", step as f64).with("links", links).done())
}

fn link(report: &LinkReport) -> JsValue {
    let via = match report.via {
        Path::Relay => "relay",
        Path::Direct => "direct",
    };
    Fields::new()
        .with("peer", report.with.0 as f64)
        .with("via", via)
        .with("roundTripMs", report.round_trip.0 as f64 / 1_000.0)
        .with("mbps", report.bytes_per_second.map(|rate| rate as f64 / 1e6))
        .done()
}

fn bytes(bytes: &[u8]) -> Uint8Array {
    Uint8Array::from(bytes)
}
