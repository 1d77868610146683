//! `shoal join`: lends this machine to a coordinator; and how a node talks to its donor.

use serde_json::json;
use shoal_host::{Asker, JoinLink, Note, Notice, Options};
use shoal_protocol::Refusal;

use super::Context;
use super::serve::stop_on_signal;
use crate::args::Join;
use crate::fail::Fail;
use crate::{keys, place, show};

const LLVMPIPE: &str = "note: this software GPU (llvmpipe) ends loops after 65,535 iterations in \
    total; units that need more fail here with an error and are tried on other nodes";

pub(super) async fn run(context: &Context, args: Join) -> Result<(), Fail> {
    let (link, is_own) = match own_key(&args)? {
        Some(key) => (JoinLink::with_key(&args.url, key)?, true),
        None => (JoinLink::parse(&args.url)?, false),
    };
    let base = link.base.clone();
    let (data, first_seen) = (context.data_folder()?, show::first_seen);
    let beside = is_own.then(|| place::beside(&data, &base));
    let lend = args.lend.into();
    let options = Options { link, data, lend, talks: None, first_seen, beside };
    let json = context.json;
    let ran = shoal_host::run(options, stop_on_signal(), move |notice| tell(json, &base, &notice));
    ran.await.map_err(|fail| refused(fail.into(), is_own))?;
    if !context.json {
        show::line("stopped lending")?;
    }
    Ok(())
}

/// A coordinator sees only that what was sent opens nothing: here it is known what it was meant to be.
fn refused(fail: Fail, is_own: bool) -> Fail {
    let token = Refusal::Token.to_string();
    if let Fail::Input { code, message } = &fail
        && is_own
        && *message == token
    {
        let place =
            "it is in the file `key` of the coordinator's data folder, and in the dashboard link";
        let message = format!("the API key is wrong: {place}");
        return Fail::Input { code: code.clone(), message };
    }
    fail
}

/// The API key, if this machine is the operator's own.
fn own_key(args: &Join) -> Result<Option<String>, Fail> {
    if args.key.is_some() {
        return Ok(args.key.clone());
    }
    let (key, place) = match &args.key_file {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| Fail::reading(path, &error))?;
            (text.trim().to_owned(), path.display().to_string())
        }
        None if args.own => {
            let key = std::env::var("SHOAL_KEY").unwrap_or_default();
            (key.trim().to_owned(), "SHOAL_KEY".into())
        }
        None => return Ok(None),
    };
    if key.is_empty() {
        return Err(Fail::input(format!(
            "{place} contains no API key: set SHOAL_KEY or pass --key-file FILE (`shoal up` prints the key in \
             the dashboard link)"
        )));
    }
    Ok(Some(key))
}

/// One line per notice. A donor who closed the pipe is not told.
fn tell(json: bool, base: &str, notice: &Notice) {
    caution(json, notice);
    let _ = if json { show::json(&as_json(notice)) } else { show::line(&as_text(base, notice)) };
}

/// What a donor should know about this GPU. Programs read its name in the notice itself.
pub(super) fn caution(json: bool, notice: &Notice) {
    if let Notice::Offers { gpu: Some(gpu), .. } = notice
        && gpu.starts_with("llvmpipe")
        && !json
    {
        eprintln!("{LLVMPIPE}");
    }
}

pub(super) fn as_text(base: &str, notice: &Notice) -> String {
    match notice {
        Notice::Offers { name, cpus, memory, gpu, why_no_gpu, accelerator, why_no_accelerator } => {
            let gpu = match (gpu, why_no_gpu) {
                (Some(gpu), _) => gpu.clone(),
                (None, Some(reason)) => format!("no GPU ({reason})"),
                (None, None) => "no GPU".into(),
            };
            let memory = show::size(*memory);
            let with = match (accelerator, why_no_accelerator) {
                (Some(accelerator), _) => format!(", {accelerator}"),
                (None, Some(why)) => format!("; ONNX Runtime is not used: {why}"),
                (None, None) => String::new(),
            };
            format!("lending {name}: {cpus} programs at a time, {memory} of memory, {gpu}{with}")
        }
        Notice::Joined { node } => format!("joined {base} as node {node}; Ctrl-C stops lending"),
        Notice::Away { reason } => format!("{base}: {reason}; trying again"),
        Notice::Works(asker) => format!("running {}", of(asker)),
        Notice::Serves { asker, memory } => {
            format!("ready to serve {}; it may use {} of memory", of(asker), show::size(*memory))
        }
        Notice::Engine { asker, note } => format!("{}: {}", of(asker), engine(note)),
        Notice::InCrew { job, others, rows, from } => {
            let with = match others {
                0 => "alone".into(),
                1 => "with 1 other".into(),
                others => format!("with {others} others"),
            };
            let from = if *from == 0 { String::new() } else { format!(", from step {from}") };
            format!("taking part in job {job} {with}: rows {rows}{from}")
        }
        Notice::InService { asker, others, parts, of: all, memory } => {
            let with = if *others == 1 { "1 other".into() } else { format!("{others} others") };
            let (asker, memory) = (of(asker), show::size(*memory));
            let parts = match parts.len {
                1 => format!("part {}", parts.start),
                _ => format!("parts {} to {}", parts.start, parts.end() - 1),
            };
            format!("serving {asker} with {with}: {parts} of {all}, up to {memory} of memory")
        }
        Notice::Refuses { asker, reason } => format!("not run: {}: {reason}", of(asker)),
        Notice::Declines(asker) => format!("refused by your rules: {}", of(asker)),
        Notice::Fetches { bytes, here: 0 } => format!("fetching {}", show::size(*bytes)),
        Notice::Fetches { bytes, here } => {
            format!("fetching {}, {} of it already here", show::size(*bytes), show::size(*here))
        }
        Notice::Gave { bytes } => format!("sent {} to other devices", show::size(*bytes)),
        Notice::Paused => "battery low: paused until it is charged".into(),
        Notice::Resumed => "battery charged: lending again".into(),
        Notice::GpuRestarted { reason } => format!("GPU restarted: {reason}"),
        Notice::GpuGone { reason } => format!("GPU not lent until it answers again: {reason}"),
    }
}

fn as_json(notice: &Notice) -> serde_json::Value {
    match notice {
        Notice::Offers { name, cpus, memory, gpu, why_no_gpu, accelerator, why_no_accelerator } => {
            json!({
                "event": "offers", "name": name, "cpus": cpus, "memory": memory, "gpu": gpu,
                "whyNoGpu": why_no_gpu, "onnxruntime": accelerator,
                "whyNoOnnxruntime": why_no_accelerator,
            })
        }
        Notice::Joined { node } => json!({"event": "joined", "node": node}),
        Notice::Away { reason } => json!({"event": "away", "reason": reason}),
        Notice::Works(asker) => json!({"event": "works", "asker": asker_json(asker)}),
        Notice::Serves { asker, memory } => {
            json!({"event": "serves", "asker": asker_json(asker), "memory": memory})
        }
        Notice::Engine { asker, note: Note::Chose { name, built_in, second } } => json!({
            "event": "engine", "asker": asker_json(asker), "other": name,
            "builtInMicros": built_in, "otherMicros": second,
        }),
        Notice::Engine { asker, note: Note::Broke { name, why } } => json!({
            "event": "engineBroke", "asker": asker_json(asker), "engine": name, "reason": why,
        }),
        Notice::InCrew { job, others, rows, from } => {
            let rows = [rows.start, rows.len];
            json!({"event": "crew", "job": job.0, "others": others, "rows": rows, "from": from})
        }
        Notice::InService { asker, others, parts, of, memory } => json!({
            "event": "inService", "asker": asker_json(asker), "others": others,
            "parts": [parts.start, parts.len], "of": of, "memory": memory,
        }),
        Notice::Refuses { asker, reason } => {
            json!({"event": "refuses", "asker": asker_json(asker), "reason": reason})
        }
        Notice::Declines(asker) => json!({"event": "declines", "asker": asker_json(asker)}),
        Notice::Fetches { bytes, here } => {
            json!({"event": "fetches", "bytes": bytes, "here": here})
        }
        Notice::Gave { bytes } => json!({"event": "gave", "bytes": bytes}),
        Notice::Paused => json!({"event": "paused"}),
        Notice::Resumed => json!({"event": "resumed"}),
        Notice::GpuRestarted { reason } => json!({"event": "gpuRestarted", "reason": reason}),
        Notice::GpuGone { reason } => json!({"event": "gpuGone", "reason": reason}),
    }
}

fn engine(note: &Note) -> String {
    let millis = |micros: &u64| format!("{:.1} ms", *micros as f64 / 1000.0);
    match note {
        Note::Chose { name, built_in: Some(built_in), second: Some(second) } => {
            let (faster, slower) = (built_in.min(second), built_in.max(second));
            let (chosen, other) = match second < built_in {
                true => (name.as_str(), "the built-in engine"),
                false => ("the built-in engine", name.as_str()),
            };
            format!("runs with {chosen} ({}; {other}: {})", millis(faster), millis(slower))
        }
        Note::Chose { name, built_in: None, .. } => format!("runs with {name}"),
        Note::Chose { .. } => "runs with the built-in engine".into(),
        Note::Broke { name, why } => {
            let why = show::harmless(why).replace(['\n', '\t'], " ");
            format!("{name} failed, the built-in engine answers: {why}")
        }
    }
}

/// A job's name and owner are other people's words.
fn of(asker: &Asker) -> String {
    let Asker { name, owner, key } = asker;
    let key = key.map(|key| format!(" (key {})", keys::short(&key))).unwrap_or_default();
    show::harmless(&format!("{name} for {owner}{key}")).replace(['\n', '\t'], " ")
}

fn asker_json(asker: &Asker) -> serde_json::Value {
    let key = asker.key.map(|key| key.to_string());
    json!({"name": asker.name, "owner": asker.owner, "key": key})
}
