//! `shoal model` and `models`: models that nodes keep ready.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::Url;
use serde_json::{Value, json};
use shoal_api::{
    LimitsJson, ModelJson, OnnxRequest, PortJson, ServiceCommon, ServiceJson, ServiceRequest,
    WorkRequest,
};
use shoal_engine::intake;
use shoal_kinds::onnx::{ModelPlan, Port};

use super::devices::{self, Loading};
use super::wires::{self, Between};
use super::{Context, language, owner, quantize, refused};
use crate::args::{Model, ModelAdd, ModelRm, ModelVerb, Models};
use crate::client::{Client, Source};
use crate::fail::Fail;
use crate::fetch;
use crate::interrupt::Interrupts;
use crate::show;

/// How often a new model is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a model may be on no node after one could not load it: another one is tried at once.
const NOBODY_FOR: Duration = Duration::from_secs(2);
/// What an answer may have: as much as a request.
const ANSWER_MIB: u64 = 64;
/// Operators that are named; the rest is counted.
const MOST_NAMED: usize = 8;

pub(super) async fn run(context: &Context, args: Model) -> Result<(), Fail> {
    match args.what {
        ModelVerb::Add(add) => start(context, *add).await,
        ModelVerb::Rm(rm) => end(context, rm).await,
        ModelVerb::Quantize(quantize) => quantize::run(context, *quantize),
    }
}

/// Adds a file, or one from the web, which is fetched first.
async fn start(context: &Context, args: ModelAdd) -> Result<(), Fail> {
    if let Some(url) = fetch::address(&args.file)? {
        let interrupts = Interrupts::listen();
        return interrupts.guard(start_from_web(context, args, &url, &interrupts)).await;
    }
    if let Some(wanted) = args.sha256 {
        fetch::check(&args.file, &args.file.display().to_string(), wanted)?;
    }
    add(context, args).await
}

async fn start_from_web(
    context: &Context,
    args: ModelAdd,
    url: &Url,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    // What is wrong for certain is said before anything is fetched.
    let between = Between::of(&args)?;
    let client = context.client(&args.server)?;
    if let Some(name) = &args.name
        && client.services().await?.services.iter().any(|service| service.name == *name)
    {
        let message = format!("there is a model or service named {name} already");
        return Err(Fail::Input { code: "taken".into(), message });
    }
    let folder = context.data_folder()?;
    interrupts.advise("the same command goes on from there".into());
    let fetched = fetch::fetch(url, &folder, args.sha256, context.json).await?;
    interrupts.advise(String::new());
    let only_compared = !args.between.calibrate.is_empty() && between.wire.is_none();
    let name = args.name.clone().unwrap_or_else(|| fetched.name.clone());
    add(context, ModelAdd { file: fetched.path.clone(), name: Some(name), ..args }).await?;
    if !only_compared {
        fetched.remove();
    }
    Ok(())
}

async fn add(context: &Context, args: ModelAdd) -> Result<(), Fail> {
    let between = Between::of(&args)?;
    if language::is_language(&args.file)? {
        if let Some(flag) = wires::first_onnx_flag(&args) {
            return Err(Fail::input(format!("{flag} is for ONNX models")));
        }
        return language::start(context, args, between.wire).await;
    }
    let language_flags = [(args.between.by.is_some(), "--by"), (args.gpu, "--gpu")];
    if let Some((_, flag)) = language_flags.into_iter().find(|(is_given, _)| *is_given) {
        return Err(Fail::input(format!("{flag} is for language models")));
    }
    let file = std::fs::read(&args.file).map_err(|error| Fail::reading(&args.file, &error))?;
    let file = Bytes::from(file);
    let plan = intake::model(&file).map_err(|error| refused(&args.file, error))?;
    let about = About::of(&file, &plan, &args.file)?;
    let forms = wires::calibrate(&args, &file, &between.shapes)?;
    if let Some(forms) = forms.as_ref().filter(|_| !context.json) {
        show::line(&forms.table())?;
    }
    let forms = forms.map(|forms| forms.json());
    if forms.is_some() && between.wire.is_none() {
        if context.json {
            return show::json(&json!({"calibration": forms}));
        }
        return show::line("the model is not added yet: choose a form with --wire");
    }
    let name = match &args.name {
        Some(name) => name.clone(),
        None => stem(&args.file)?,
    };
    let client = context.client(&args.server)?;
    let bar = show::Bytes::new("sending the model", if context.json { 0 } else { about.bytes });
    let model = client.upload(&Source::Memory(file), &bar).await;
    bar.clear();
    client.serve(&request(&args, &name, between, model?.hash)).await?;
    if !context.json {
        show::line(&about.told(&name))?;
    }
    let devices = devices::able(context, &client, &name).await?;
    let ready = ready(context, &client, &name, Duration::from_secs(args.wait)).await?;
    if context.json {
        let model = about.json();
        let told = json!({
            "name": name, "ready": ready, "model": model, "calibration": forms, "devices": devices,
        });
        return show::json(&told);
    }
    if ready.is_empty() {
        return show::line(
            "no node has it ready yet; it stays, and is loaded when a node of yours can run it \
             (look with: shoal models)",
        );
    }
    let inputs = plan.inputs.iter().map(|port| format!(" --input {}=FILE.npy", port.name));
    let inputs: String = inputs.collect();
    show::line(&format!("ready on {}; run it with: shoal infer {name}{inputs}", ready.join(", ")))
}

fn request(args: &ModelAdd, name: &str, between: Between, model: String) -> ServiceRequest {
    let common = ServiceCommon {
        name: name.to_owned(),
        owner: Some(owner(args.owner.as_deref())),
        least: Some(args.least),
        most: Some(args.most.max(args.least)),
        idle_seconds: Some(args.idle),
        limits: LimitsJson { output_mib: Some(ANSWER_MIB), ..LimitsJson::default() },
        strangers: args.strangers,
        split: args.split.clone(),
        ..ServiceCommon::default()
    };
    let Between { shapes, wire } = between;
    let wire = wire.map(|wire| wire.name().to_owned());
    let work = WorkRequest::Onnx(OnnxRequest { shapes, wire, ..OnnxRequest::new(model) });
    ServiceRequest { common, work }
}

pub(super) fn stem(file: &Path) -> Result<String, Fail> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.map(str::to_owned)
        .ok_or_else(|| Fail::input(format!("{} has no name: give one with --name", file.display())))
}

/// Waits until nodes have the model ready, and tells which. None are there if no node that could has come in time.
pub(super) async fn ready(
    context: &Context,
    client: &Client,
    name: &str,
    wait: Duration,
) -> Result<Vec<String>, Fail> {
    let began = Instant::now();
    let mut loading = Loading::new(context);
    let mut nobody_since = Instant::now();
    loop {
        let list = client.services().await?;
        let Some(service) = list.services.iter().find(|service| service.name == name) else {
            let message = format!("somebody removed the model {name} meanwhile");
            return Err(Fail::world("no_model", message));
        };
        let ready: Vec<String> = ready_on(service);
        loading.show(service)?;
        if !ready.is_empty() || began.elapsed() > wait {
            return Ok(ready);
        }
        if !service.replicas.is_empty() || service.crew.is_some() {
            nobody_since = Instant::now();
        }
        if let Some(trouble) = &service.trouble
            && nobody_since.elapsed() > NOBODY_FOR
        {
            client.unserve(name).await?;
            let message = format!("no node can run the model: {trouble}; it is not added");
            return Err(Fail::world("cannot_run", message));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn ready_on(service: &ServiceJson) -> Vec<String> {
    let together = service.crew.iter().filter(|crew| crew.ready).flat_map(|crew| &crew.stages);
    let together = together.map(|stage| stage.name.clone());
    let ready = service.replicas.iter().filter(|replica| replica.ready);
    together.chain(ready.map(|replica| replica.name.clone())).collect()
}

async fn end(context: &Context, args: ModelRm) -> Result<(), Fail> {
    context.client(&args.server)?.unserve(&args.name).await?;
    if context.json {
        return show::json(&json!({"removed": args.name}));
    }
    show::line(&format!("{} is removed", args.name))
}

pub(super) async fn list(context: &Context, args: Models) -> Result<(), Fail> {
    let client = context.client(&args.server)?;
    let services = client.services().await?;
    let mut all = Vec::new();
    for service in services.services.iter().filter(|service| service.kind == "llm") {
        let model = client.language(&service.name).await?;
        if !context.json {
            show::line(&super::service::line(service))?;
            show::line(&language::line(&model))?;
        }
        all.push(json!({"service": service, "language": model["shoal"]}));
    }
    for service in services.services.iter().filter(|service| service.kind == "onnx") {
        let model = client.model(&service.name).await?;
        if !context.json {
            show::line(&super::service::line(service))?;
            show::line(&ports(&model))?;
        }
        all.push(json!({"service": service, "model": model}));
    }
    if context.json {
        return show::json(&json!({"models": all}));
    }
    if all.is_empty() {
        return show::line("no models; add one with: shoal model add FILE");
    }
    Ok(())
}

fn ports(model: &ModelJson) -> String {
    let shape = |port: &PortJson| {
        let side = |side: &i64| if *side < 0 { "?".into() } else { side.to_string() };
        port.shape.iter().map(side).collect::<Vec<_>>().join("x")
    };
    let row = |word: &str, port: &PortJson| {
        format!("  {word} {} {}[{}]", port.name, port.datatype, shape(port))
    };
    let takes = model.inputs.iter().map(|port| row("takes", port));
    let gives = model.outputs.iter().map(|port| row("gives", port));
    takes.chain(gives).collect::<Vec<_>>().join("\n")
}

/// What is in a file.
struct About<'a> {
    bytes: u64,
    opset: Option<u64>,
    /// The most frequent first.
    operators: Vec<(String, usize)>,
    plan: &'a ModelPlan,
}

impl<'a> About<'a> {
    fn of(file: &Bytes, plan: &'a ModelPlan, path: &Path) -> Result<About<'a>, Fail> {
        let model = shoal_onnx::Model::read(file.clone())
            .map_err(|error| Fail::input(format!("{}: {error}", path.display())))?;
        let mut operators: Vec<_> = model.operators().into_iter().collect();
        operators.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(About { bytes: file.len() as u64, opset: model.opset(""), operators, plan })
    }

    fn told(&self, name: &str) -> String {
        let mut text = format!("{name}: {}", show::size(self.bytes));
        if let Some(opset) = self.opset {
            let _ = write!(text, ", opset {opset}");
        }
        let row = |word: &str, port: &Port| format!("\n  {word} {} {port}", port.name);
        self.plan.inputs.iter().for_each(|port| text += &row("takes", port));
        self.plan.outputs.iter().for_each(|port| text += &row("gives", port));
        let all: usize = self.operators.iter().map(|(_, count)| count).sum();
        let named = self.operators.iter().take(MOST_NAMED);
        let named: Vec<_> = named.map(|(op, count)| format!("{op} {count}")).collect();
        let more = self.operators.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and {more} more kinds") } else { String::new() };
        let _ = write!(text, "\n  {all} operators: {}{more}", named.join(", "));
        text
    }

    fn json(&self) -> Value {
        let port = |port: &Port| json!({"name": port.name, "type": port.to_string()});
        let operators: serde_json::Map<String, Value> =
            self.operators.iter().map(|(op, count)| (op.clone(), (*count).into())).collect();
        json!({
            "bytes": self.bytes,
            "opset": self.opset,
            "inputs": self.plan.inputs.iter().map(port).collect::<Vec<_>>(),
            "outputs": self.plan.outputs.iter().map(port).collect::<Vec<_>>(),
            "operators": operators,
        })
    }
}
