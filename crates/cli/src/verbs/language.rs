//! `shoal model add` of a GGUF file: a language model that nodes keep ready.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use shoal_api::{LlmRequest, NodeJson, ServiceCommon, ServiceRequest, WorkRequest};
use shoal_engine::intake;
use shoal_kinds::llm::{By, LlmPlan, On, Summary};
use shoal_kinds::{LlmWork, Wire};
use shoal_protocol::{BlobRef, Hash};

use super::model::{ready, stem};
use super::{Context, devices, owner, refused, wires};
use crate::args::{ByArg, ModelAdd};
use crate::client::{Client, Source};
use crate::fail::Fail;
use crate::show;

/// How such files begin.
const MAGIC: &[u8; 4] = b"GGUF";
/// Read at first; files with many words say that they need more.
const FIRST_BYTES: u64 = 1 << 20;
/// Requests that may wait: a chat of a hundred people is no error.
const QUEUE: u32 = 256;

/// Whether it is a GGUF file, by its first letters. One that is called so and is none is refused here: as an ONNX file
/// it would be refused for a reason that helps nobody.
pub(super) fn is_language(path: &Path) -> Result<bool, Fail> {
    let mut first = [0; 4];
    let mut file = File::open(path).map_err(|error| Fail::reading(path, &error))?;
    let is = file.read_exact(&mut first).is_ok() && &first == MAGIC;
    if !is && path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf")) {
        let shown = path.display();
        return Err(Fail::input(format!(
            "{shown}: this is not a GGUF file: it does not begin with \"GGUF\""
        )));
    }
    Ok(is)
}

pub(super) async fn start(
    context: &Context,
    args: ModelAdd,
    wire: Option<Wire>,
) -> Result<(), Fail> {
    if let Some(flag) = first_for_several(&args).filter(|_| args.gpu) {
        let message = format!("with --gpu one device has all of the model: leave {flag} away");
        return Err(Fail::input(message));
    }
    if by(&args) == By::Tensors && wire.is_some_and(|wire| wire != Wire::F32) {
        return Err(Fail::input("--by tensors sends numbers as f32: leave --wire away"));
    }
    let (about, size) = read(&args.file)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => stem(&args.file)?,
    };
    let client = context.client(&args.server)?;
    let work = planned(&args, &about, size, wire);
    enough_memory(&client, &work).await?;
    let bar = show::Bytes::new("sending the model", if context.json { 0 } else { size });
    let source = Source::File { path: args.file.clone(), start: 0, size };
    let model = client.upload(&source, &bar).await;
    bar.clear();
    client.serve(&request(&args, &name, &work, model?.hash)).await?;
    if !context.json {
        show::line(&told(&name, &work))?;
    }
    let devices = devices::able(context, &client, &name).await?;
    let ready = ready(context, &client, &name, Duration::from_secs(args.wait)).await?;
    if context.json {
        let about = json!({
            "architecture": about.architecture, "layers": about.layers,
            "parameters": about.parameters, "quantisation": about.quantisation,
            "context": work.context, "memory": work.memory(), "chats": about.chats,
        });
        let told = json!({"name": name, "ready": ready, "model": about, "devices": devices});
        return show::json(&told);
    }
    if ready.is_empty() {
        return show::line(
            "no node has it ready yet; it stays, and is loaded when a node of yours can run it \
             (look with: shoal models)",
        );
    }
    let next = if about.chats {
        format!("talk to it with: shoal chat {name}")
    } else {
        "it can only continue texts, with POST /v1/completions".into()
    };
    show::line(&format!("ready on {}; {next}", ready.join(", ")))
}

/// What the coordinator is asked for. What nobody chose it chooses.
fn request(args: &ModelAdd, name: &str, work: &LlmWork, model: String) -> ServiceRequest {
    let common = ServiceCommon {
        name: name.to_owned(),
        owner: Some(owner(args.owner.as_deref())),
        least: Some(args.least),
        most: Some(args.most.max(args.least)),
        idle_seconds: Some(args.idle),
        queue: Some(QUEUE),
        strangers: args.strangers,
        split: args.split.clone(),
        ..ServiceCommon::default()
    };
    let request = LlmRequest {
        model,
        context: args.context,
        conversations: args.conversations,
        wire: args.between.wire.map(|_| work.wire.name().to_owned()),
        by: args.between.by.map(|_| work.by.name().to_owned()),
        on: args.gpu.then(|| work.on.name().to_owned()),
    };
    ServiceRequest { common, work: WorkRequest::Llm(request) }
}

/// What the coordinator will make of it.
fn planned(args: &ModelAdd, about: &Summary, size: u64, wire: Option<Wire>) -> LlmWork {
    LlmWork {
        model: BlobRef { hash: Hash([0; 32]), size },
        about: about.clone(),
        context: args.context.unwrap_or(about.context.min(shoal_kinds::llm::USUAL_CONTEXT)),
        conversations: args.conversations.unwrap_or(shoal_kinds::llm::USUAL_CONVERSATIONS),
        split: !args.gpu && args.split.as_deref() != Some("never"),
        wire: wire.unwrap_or_default(),
        by: by(args),
        on: if args.gpu { On::Gpu } else { On::Processor },
    }
}

/// The first flag for a model on several devices that is given.
fn first_for_several(args: &ModelAdd) -> Option<&'static str> {
    let is_split = args.split.as_deref().is_some_and(|split| split != "never");
    if is_split { Some("--split") } else { wires::first_flag(args) }
}

fn by(args: &ModelAdd) -> By {
    match args.between.by {
        None | Some(ByArg::Layers) => By::Layers,
        Some(ByArg::Tensors) => By::Tensors,
    }
}

/// What is in a file, and its size.
fn read(path: &Path) -> Result<(Summary, u64), Fail> {
    let failed = |error: std::io::Error| Fail::reading(path, &error);
    let size = path.metadata().map_err(failed)?.len();
    let mut wanted = FIRST_BYTES.min(size);
    loop {
        let mut head = Vec::new();
        File::open(path).map_err(failed)?.take(wanted).read_to_end(&mut head).map_err(failed)?;
        let plan = intake::language_model(head, size).map_err(|error| refused(path, error))?;
        match plan {
            LlmPlan::Model(summary) => return Ok((summary, size)),
            LlmPlan::More(needed) if wanted < size => {
                wanted = needed.max(wanted * 2).min(size);
            }
            LlmPlan::More(_) => {
                let message = format!("{} ends within its own description", path.display());
                return Err(Fail::input(message));
            }
        }
    }
}

/// A model that the nodes of today cannot hold, each alone or all together if it may be split, is not sent.
async fn enough_memory(client: &Client, work: &LlmWork) -> Result<(), Fail> {
    let nodes = client.nodes(false).await?;
    let lent: Vec<u64> = nodes.nodes.iter().filter_map(|node| lends(node, work.on)).collect();
    let most = lent.iter().copied().max().unwrap_or(0);
    let all = lent.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let takes = work.footprint();
    let needed = takes.memory.saturating_add(takes.gpu_memory);
    if lent.is_empty() || needed <= if work.split { all } else { most } {
        return Ok(());
    }
    let lend = match (work.split, work.on) {
        (true, _) => format!("all nodes together lend only {}", show::size(all)),
        (false, On::Processor) => format!("no node lends more than {}", show::size(most)),
        (false, On::Gpu) => format!("no node with a GPU lends more than {}", show::size(most)),
    };
    let message = format!(
        "the model needs {} of memory ({} of weights, {} for {} conversations of {} tokens), but {lend}: lend more \
         with shoal join --memory, or ask for less with --context and --conversations",
        show::size(needed),
        show::size(work.about.weights),
        show::size(work.about.cache * u64::from(work.context) * u64::from(work.conversations)),
        work.conversations,
        work.context,
    );
    Err(Fail::Input { code: "too_large".into(), message })
}

/// What a device has for a model, if that is known.
fn lends(node: &NodeJson, on: On) -> Option<u64> {
    match (on, &node.gpu) {
        (On::Processor, _) => Some(node.memory),
        (On::Gpu, None) => None,
        (On::Gpu, Some(gpu)) if gpu.software => Some(node.memory),
        (On::Gpu, Some(gpu)) => gpu.memory,
    }
}

fn told(name: &str, work: &LlmWork) -> String {
    let Summary { title, .. } = &work.about;
    let title = if title.is_empty() { String::new() } else { format!(" ({title})") };
    let on = match work.on {
        On::Processor => "",
        On::Gpu => "; computed by a GPU: some words may differ from device to device",
    };
    format!(
        "{name}{title}: {}\n  {} of weights; up to {} conversations of {} tokens; {} of memory in all{on}",
        work.about,
        show::size(work.about.weights),
        work.conversations,
        work.context,
        show::size(work.memory()),
    )
}

/// What a coordinator says of a language model, in a line.
pub(super) fn line(model: &serde_json::Value) -> String {
    let about = &model["shoal"];
    let word = |name: &str| about[name].as_str().unwrap_or("?").to_owned();
    let number = |name: &str| about[name].as_u64().unwrap_or(0);
    let on = if about["on"] == On::Gpu.name() { ", on a GPU" } else { "" };
    format!(
        "  {}, {} layers, {} million parameters in {}; conversations of {} tokens; {} of memory{on}",
        word("architecture"),
        number("layers"),
        number("parameters") / 1_000_000,
        word("quantisation"),
        number("context"),
        show::size(number("memory")),
    )
}
