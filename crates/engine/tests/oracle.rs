//! What calls on files must come to: the cases `programs/file-*` under wasmtime's own WASI, on real folders of this
//! machine, as its command line runs them. The same output is what `tests/conformance.rs` and the browsers' tests want of ours.
//!
//! `SHOAL_ORACLE_WRITE=1` writes what wasmtime answers into the cases. See `conformance/files.py`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

/// Cases there must at least be.
const CASES: usize = 20;

#[test]
fn our_cases_say_what_wasmtime_says_of_real_folders() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/programs");
    let mut cases: Vec<PathBuf> =
        fs::read_dir(programs).unwrap().map(|it| it.unwrap().path()).collect();
    cases.retain(|case| case.file_name().unwrap().to_str().unwrap().starts_with("file-"));
    cases.sort();
    assert!(cases.len() >= CASES, "only {} cases", cases.len());
    let rewrite = std::env::var_os("SHOAL_ORACLE_WRITE").is_some();
    let mut wrong = Vec::new();
    for case in &cases {
        let path = case.join("case.json");
        let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        if json["oracle"] == false {
            continue;
        }
        let found = String::from_utf8(run(case, &json)).unwrap();
        let expected = json["runs"][0]["expect"]["stdout"].as_str().unwrap().to_owned();
        if found != expected && rewrite {
            json["runs"][0]["expect"] = json!({ "stdout": found });
            fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&json).unwrap()))
                .unwrap();
        } else if let Some(difference) = difference(&found, &expected) {
            wrong.push(format!("{}: {difference}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where two texts part, if they do; one of them may be the other's beginning.
fn difference(found: &str, wanted: &str) -> Option<String> {
    if found == wanted {
        return None;
    }
    let (lines, wanted_lines) = (found.lines().chain([""]), wanted.lines().chain([""]));
    let parts = lines.zip(wanted_lines).find(|(found, wanted)| found != wanted);
    Some(match parts {
        Some((found, wanted)) => format!("{found:?}\n  instead of {wanted:?}"),
        None => format!("{} bytes instead of {}", found.len(), wanted.len()),
    })
}

#[test]
fn a_text_that_ends_early_or_late_differs() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    assert_eq!(difference("a\n", "a\nb\n"), Some("\"\"\n  instead of \"b\"".into()));
    assert_eq!(difference("a\nb\n", "a\n"), Some("\"b\"\n  instead of \"\"".into()));
    assert_eq!(difference("a\nc\n", "a\nb\n"), Some("\"c\"\n  instead of \"b\"".into()));
    assert_eq!(difference("a\n", "a"), Some("2 bytes instead of 1".into()));
}

/// Runs a program as `wasmtime run --dir` would, with the folders that ours has.
fn run(case: &Path, json: &Value) -> Vec<u8> {
    let name = format!("shoal-oracle-{}", std::process::id());
    let place = std::env::temp_dir().join(name).join(case.file_name().unwrap());
    let folder = |name: &str| {
        let folder = place.join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let stdout = MemoryOutputPipe::new(1 << 20);
    let mut wasi = WasiCtxBuilder::new();
    wasi.allow_blocking_current_thread(true).arg("program").stdout(stdout.clone());
    if let Some(files) = json["folder"].as_array() {
        let data = folder("data");
        for file in files {
            let path = data.join(file["name"].as_str().unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file["content"].as_str().unwrap()).unwrap();
        }
        wasi.preopened_dir(data, "/data", FsPerms::ReadOnly).unwrap();
    }
    let tmp = folder("tmp");
    wasi.preopened_dir(&tmp, "/tmp", FsPerms::ReadWrite).unwrap();
    wasi.preopened_dir(&tmp, ".", FsPerms::ReadWrite).unwrap();

    let engine = Engine::default();
    let wasm = wat::parse_file(case.join("program.wat")).unwrap();
    let module = Module::from_binary(&engine, &wasm).unwrap();
    let mut linker: Linker<WasiP1Ctx> = Linker::new(&engine);
    p1::add_to_linker_sync(&mut linker, |wasi| wasi).unwrap();
    let mut store = Store::new(&engine, wasi.build_p1());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap();
    start.call(&mut store, ()).unwrap_or_else(|error| panic!("{}: {error:?}", case.display()));
    drop(store);
    fs::remove_dir_all(place).unwrap();
    stdout.contents().into()
}
