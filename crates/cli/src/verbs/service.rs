//! `shoal service`, `services` and `ask`: programs that nodes keep ready for requests.

use std::io::{Read, Write};
use std::path::Path;

use serde_json::json;
use shoal_api::{
    ExecRequest, LimitsJson, ServiceCommon, ServiceJson, ServiceRequest, SplitJson, StageJson,
    WorkRequest,
};

use super::{Context, owner, refused};
use crate::args::{Ask, Service, ServiceAdd, ServiceRm, ServiceVerb, Services};
use crate::client::Source;
use crate::fail::Fail;
use crate::show;

/// What a program may use unless somebody says otherwise, as for `exec`.
const MEMORY: u64 = 256 << 20;

pub(super) async fn run(context: &Context, args: Service) -> Result<(), Fail> {
    match args.what {
        ServiceVerb::Add(add) => start(context, *add).await,
        ServiceVerb::Rm(rm) => end(context, rm).await,
    }
}

async fn start(context: &Context, args: ServiceAdd) -> Result<(), Fail> {
    let wasm = std::fs::read(&args.module).map_err(|error| Fail::reading(&args.module, &error))?;
    shoal_engine::intake::wasi_program(&wasm, MEMORY)
        .map_err(|error| refused(&args.module, error))?;
    let client = context.client(&args.server)?;
    let module = client.upload(&Source::Memory(wasm.into()), &show::Bytes::hidden()).await?;
    let common = ServiceCommon {
        name: args.name,
        owner: Some(owner(args.owner.as_deref())),
        limits: LimitsJson { seconds: Some(args.limit_seconds), ..LimitsJson::default() },
        least: Some(args.least),
        most: Some(args.most.max(args.least)),
        idle_seconds: Some(args.idle),
        strangers: args.strangers,
        ..ServiceCommon::default()
    };
    let work = WorkRequest::Exec(ExecRequest {
        module: module.hash,
        args: args.args,
        env: args.env.into_iter().collect(),
        clock: args.clock,
        ..ExecRequest::default()
    });
    let request = ServiceRequest { common, work };
    let service = client.serve(&request).await?;
    if context.json {
        return show::json(&service);
    }
    show::line(&format!(
        "{} is a service now; ask it with: shoal ask {}",
        service.name, service.name
    ))
}

async fn end(context: &Context, args: ServiceRm) -> Result<(), Fail> {
    context.client(&args.server)?.unserve(&args.name).await?;
    if context.json {
        return show::json(&json!({"removed": args.name}));
    }
    show::line(&format!("{} is no longer a service", args.name))
}

pub(super) async fn list(context: &Context, args: Services) -> Result<(), Fail> {
    let list = context.client(&args.server)?.services().await?;
    if context.json {
        return show::json(&list);
    }
    if list.services.is_empty() {
        return show::line("no services; start one with: shoal service add NAME MODULE.wasm");
    }
    for service in &list.services {
        show::line(&line(service))?;
        service.crew.iter().flat_map(stages).try_for_each(|line| show::line(&line))?;
    }
    Ok(())
}

/// Who keeps which parts, each in a line.
pub(super) fn stages(crew: &SplitJson) -> Vec<String> {
    let all: u64 = crew.stages.iter().map(|stage| stage.parts).sum();
    let line = |(rank, stage): (usize, &StageJson)| {
        let StageJson { name, first_part, parts, memory, .. } = stage;
        let (last, mib) = (first_part + parts - 1, memory.div_ceil(1 << 20));
        let which = match parts {
            _ if crew.side_by_side => format!("{parts} of {all} parts of every matrix"),
            1 => format!("part {first_part}"),
            _ => format!("parts {first_part} to {last}"),
        };
        let ready = if stage.ready { "" } else { ", loading" };
        let took = stage.compute_ms.map(|took| format!(", {took:.1} ms a request"));
        let on = stage.hand_on_bytes.zip(stage.travel_ms).map(|(bytes, took)| {
            let via = stage.via.as_deref().unwrap_or("relay");
            format!(", hands on {} KB in {took:.1} ms ({via})", bytes.div_ceil(1_000))
        });
        let (took, on) = (took.unwrap_or_default(), on.unwrap_or_default());
        format!("  {}. {name}: {which}, {mib} MiB{ready}{took}{on}", rank + 1)
    };
    crew.stages.iter().enumerate().map(line).collect()
}

pub(super) fn line(service: &ServiceJson) -> String {
    let ready = service.replicas.iter().filter(|replica| replica.ready);
    let names: Vec<_> = ready.map(|replica| replica.name.as_str()).collect();
    let together = service.crew.as_ref().filter(|crew| crew.ready);
    let on = match (names.is_empty(), &service.trouble) {
        _ if together.is_some() => {
            let stages = together.map_or(0, |crew| crew.stages.len());
            format!("ready on {stages} devices together")
        }
        (false, _) => format!("ready on {}", names.join(", ")),
        (true, Some(trouble)) => format!("not ready: {trouble}"),
        (true, None) => "not ready: no node of yours that can run it is connected".into(),
    };
    let ServiceJson { name, waiting, running, answered, failed, .. } = service;
    format!(
        "{name}: {on}; {answered} answered, {failed} failed, {running} running, {waiting} waiting"
    )
}

pub(super) async fn ask(context: &Context, args: Ask) -> Result<(), Fail> {
    if !(args.deadline > 0.0 && args.deadline <= 3600.0) {
        return Err(Fail::input("--deadline must be more than 0 and at most 3600 seconds"));
    }
    let body = match &args.file {
        Some(file) => std::fs::read(file).map_err(|error| Fail::reading(file, &error))?,
        None => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Fail::reading(Path::new("stdin"), &error))?;
            bytes
        }
    };
    let millis = (args.deadline * 1e3).ceil() as u64;
    let client = context.client(&args.server)?;
    if context.json {
        let mut answer = Vec::new();
        let keep = |part: &[u8]| {
            answer.extend_from_slice(part);
            Ok(())
        };
        client.ask(&args.name, (body, millis), keep).await?;
        return show::json(&json!({"answer": String::from_utf8_lossy(&answer)}));
    }
    // Each part is shown when it comes: the program may take long for the next.
    let print = |part: &[u8]| {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(part).and_then(|()| out.flush());
        written.map_err(|error| Fail::writing(Path::new("stdout"), &error))
    };
    client.ask(&args.name, (body, millis), print).await
}
