//! Exec cases: a program, run once for each of the case's runs.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use shoal_engine::intake;
use shoal_engine::wasi::{self, Answer, Ended, Module, Run, Told, Wasi};
use shoal_kinds::exec::left;
use shoal_kinds::form::End;
use shoal_protocol::{Failure, LimitKind, Limits, Micros};

use crate::case::Case;
use crate::prepared;

pub(crate) fn run(wasi: &Wasi, case: &Case) -> Result<(), String> {
    let limits = limits(&case.json["limits"]);
    let wasm = binary(case);
    let checked = intake::wasi_program(&wasm, limits.memory);
    if case.judge_intake(checked)?.is_none() {
        return Ok(());
    }
    prepared::write_program(case, &wasm);
    let module = wasi.compile(&wasm).map_err(|failure| failure.to_string())?;
    let folder = Folder::new(case);
    for (item, run) in case.json["runs"].as_array().unwrap().iter().enumerate() {
        let item = run["item"].as_u64().unwrap_or(item as u64);
        one(wasi, case, &module, limits, &folder, item, run)
            .map_err(|problem| format!("run {item}: {problem}"))?;
    }
    Ok(())
}

/// Programs are text beside the case or binaries from outside.
fn binary(case: &Case) -> Vec<u8> {
    let program = &case.json["program"];
    let bytes = case.file(program);
    match program.as_str() {
        Some(name) if name.ends_with(".wat") => wat::parse_bytes(&bytes).unwrap().into_owned(),
        _ => bytes,
    }
}

fn one(
    wasi: &Wasi,
    case: &Case,
    module: &Module,
    limits: Limits,
    folder: &Folder,
    item: u64,
    run: &Value,
) -> Result<(), String> {
    let env = case.json["env"].as_object().into_iter().flatten();
    let outcome = wasi.run(
        module,
        Run {
            item,
            again: 0,
            ok: case.json["ok"].as_array().map_or(vec![0], |codes| {
                codes.iter().map(|code| code.as_i64().unwrap() as i32).collect()
            }),
            args: strings(&case.json["args"]),
            env: env.map(|(key, it)| (key.clone(), it.as_str().unwrap().to_owned())).collect(),
            input: run["input"].as_str().map(str::to_owned),
            stdin: content(case, &run["stdin"]).into(),
            folder: folder.found.clone(),
            leaves: case.json["leaves"].as_bool().unwrap_or(false),
            limits,
            clock: case.json["clock"].as_bool().unwrap_or(false),
            cancel: Arc::default(),
            give: None,
        },
    );
    if let Err(Ended { failure, told }) = &outcome {
        told_alike(failure, told.as_ref())?;
    }
    judge(case, item, &run["expect"], outcome.map_err(|ended| ended.failure))
}

/// What fails by itself everywhere is told alike everywhere; other ends are not told at all.
fn told_alike(failure: &Failure, told: Option<&Told>) -> Result<(), String> {
    let fits = match (failure, told) {
        (Failure::Exit { code, stderr, .. }, Some(told)) => {
            told.end == End::Exit(*code) && told.stderr == stderr.as_bytes()
        }
        (Failure::Trap { message, .. }, told) => match told.map(|told| told.end) {
            Some(end) => end == End::Trap && !message.contains("call stack"),
            None => message.contains("call stack"),
        },
        (Failure::Limit { which: LimitKind::Time, .. }, told) => told.is_none(),
        (Failure::Limit { which, .. }, told) => {
            told.is_some_and(|told| told.end == End::Limit(*which))
        }
        (_, told) => told.is_none(),
    };
    fits.then_some(()).ok_or_else(|| format!("{failure:?} is told as {told:?}"))
}

fn judge(
    case: &Case,
    item: u64,
    expect: &Value,
    outcome: Result<Answer, Failure>,
) -> Result<(), String> {
    let found = match (&outcome, expect["stdout"].as_str()) {
        (Ok(Answer { stdout, .. }), Some(wanted))
            if *stdout != content(case, &expect["stdout"]) =>
        {
            first_difference(&String::from_utf8_lossy(stdout), wanted)
        }
        (outcome, _) => format!("{outcome:?} instead of {expect}"),
    };
    let fits = match &outcome {
        Ok(Answer { files, .. }) if !same_files(case, files, &expect["files"]) => false,
        Ok(Answer { stdout, .. }) if !expect["stdout"].is_null() => {
            *stdout == content(case, &expect["stdout"])
        }
        Ok(Answer { stdout, .. }) if !expect["contains"].is_null() => {
            let text = String::from_utf8_lossy(stdout);
            strings(&expect["contains"]).iter().all(|part| text.contains(part))
        }
        Ok(_) => false,
        Err(Failure::Exit { code, .. }) => expect["exit"].as_i64() == Some(i64::from(*code)),
        Err(Failure::Trap { message, .. }) => {
            expect["trap"].as_str().is_some_and(|part| message.contains(part))
        }
        Err(Failure::Limit { which, .. }) => {
            expect["limit"]
                == match which {
                    LimitKind::Time => "time",
                    LimitKind::Memory => "memory",
                    LimitKind::Output => "output",
                }
        }
        Err(_) => false,
    };
    let stderr = match &outcome {
        Ok(answer) => String::from_utf8_lossy(&answer.stderr),
        Err(failure) => failure.stderr().into(),
    };
    let says = expect["stderr"].as_str().is_none_or(|part| stderr.contains(part));
    let failure = outcome.err();
    let named = failure.as_ref().is_none_or(|failure| failure.item() == Some(item));
    if fits && says && named {
        return Ok(());
    }
    Err(found.chars().take(2000).collect())
}

/// Whether a run left these files, of path and content.
fn same_files(case: &Case, packed: &[u8], expect: &Value) -> bool {
    let wanted = expect.as_object().into_iter().flatten();
    let wanted: Vec<(&str, Vec<u8>)> =
        wanted.map(|(path, json)| (path.as_str(), content(case, json))).collect();
    let found = left::unpack(packed).unwrap();
    found.iter().copied().eq(wanted.iter().map(|(path, bytes)| (*path, bytes.as_slice())))
}

fn first_difference(found: &str, wanted: &str) -> String {
    let mut lines = found.lines().zip(wanted.lines().chain([""]));
    match lines.find(|(found, wanted)| found != wanted) {
        Some((found, wanted)) => format!("{found:?} instead of {wanted:?}"),
        None => format!("{} bytes instead of {}", found.len(), wanted.len()),
    }
}

fn limits(json: &Value) -> Limits {
    let default = Limits::default();
    let bytes = |name: &str, default| json[name].as_u64().map_or(default, |it| it << 20);
    Limits {
        time: json["seconds"].as_f64().map_or(default.time, |it| Micros((it * 1e6) as u64)),
        memory: bytes("memoryMiB", default.memory),
        output: bytes("outputMiB", default.output),
    }
}

/// Bytes written as text, `{"hex"}`, `{"repeat", "count"}` or `{"file"}`.
fn content(case: &Case, json: &Value) -> Vec<u8> {
    match json {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        json if !json["file"].is_null() => case.file(&json["file"]),
        json if !json["hex"].is_null() => {
            let digits = json["hex"].as_str().unwrap();
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            (0..digits.len()).step_by(2).map(byte).collect()
        }
        json => {
            json["repeat"].as_str().unwrap().repeat(json["count"].as_u64().unwrap() as usize).into()
        }
    }
}

fn strings(json: &Value) -> Vec<String> {
    let items = json.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// The case's shared folder on disk, removed at the end.
struct Folder {
    place: PathBuf,
    found: Option<Arc<wasi::Folder>>,
}

impl Folder {
    fn new(case: &Case) -> Folder {
        let name = format!("shoal-{}-{}", std::process::id(), case.name.replace('/', "-"));
        let place = std::env::temp_dir().join(name);
        let found = case.json["folder"].as_array().map(|files| {
            let files = files.iter().map(|file| {
                let (name, bytes) =
                    (file["name"].as_str().unwrap(), content(case, &file["content"]));
                let path = place.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, &bytes).unwrap();
                (name.to_owned(), bytes.len() as u64)
            });
            Arc::new(wasi::Folder::new(&place, files.collect()))
        });
        Folder { place, found }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}
