//! ONNX Runtime beside the built-in engine: it answers, and whatever happens to it, somebody answers rightly.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::material::{npy, outside};
use crate::onnx_file::{Graph, negative_part};
use crate::process::signal;
use crate::world::{Pool, Process};

/// The library, as others published it; none if nobody fetched it and it is not required.
pub(crate) fn library() -> Option<String> {
    let path = outside()?.join("onnxruntime/onnxruntime/capi/libonnxruntime.so.1.31.1");
    let is_here = path.is_file();
    assert!(is_here || !cfg!(target_arch = "x86_64"), "{} is missing", path.display());
    is_here.then(|| path.display().to_string())
}

/// A pool with a model, and its only node, which has this library.
fn with_model(library: &str, flags: &[&str]) -> (Pool, Process, Value) {
    let pool = Pool::start();
    let data = pool.folder.path("own").display().to_string();
    let fixed = ["join", &pool.join, "--json", "--data", &data, "--node-name", "own", "--no-gpu"];
    let with = ["--key", &pool.key, "--onnxruntime", library];
    let node = Process::start(&[&fixed[..], &with, flags].concat());
    let offers = node.line(|line| line["event"] == "offers");
    node.line(|line| line["event"] == "joined");
    pool.run(&["model", "add", &pool.folder.file("part.onnx", negative_part())]).ok();
    (pool, node, offers)
}

/// Asks it once, which must go well.
fn is_right(pool: &Pool) {
    let x = pool.folder.file("x.npy", npy("(1, 3)", &[-1.0, 2.0, -3.5]));
    let said = pool.run(&["infer", "part", "--input", &format!("x={x}"), "--json"]).ok().json();
    let data: Vec<f64> = serde_json::from_value(said["outputs"][0]["data"].clone()).expect("data");
    assert_eq!(data, [1.0, 0.0, 3.5], "{said}");
}

#[test]
fn it_answers_and_the_pool_knows_of_it() {
    let Some(library) = library() else { return };
    let (pool, node, offers) = with_model(&library, &["--prefer-onnxruntime"]);
    assert_eq!(offers["onnxruntime"], "ONNX Runtime 1.31.1");
    assert_eq!(node.children().len(), 1, "the model has one process");
    is_right(&pool);
    let seen = pool.seen("own").expect("the node");
    let engines = seen["engines"].as_array().expect("engines");
    let found = engines.iter().find(|engine| engine["name"] == "onnxruntime");
    assert_eq!(found.expect("it is named")["version"], "1.31.1");
}

/// The built-in engine has no such operator. Without the library nobody can run it, and the error says so.
#[test]
fn a_model_that_only_the_library_can_run_goes_to_the_node_that_has_it() {
    let Some(library) = library() else { return };
    let pool = Pool::start();
    let key = pool.key.clone();
    let node = |name: &str, library: &str| {
        pool.node(name, &["--no-gpu", "--key", &key, "--onnxruntime", library])
    };
    let _without = node("without", "none");
    let nodes: &[_] = &[("Hardmax", &["x"][..], "y")];
    let graph = Graph { nodes, inputs: &[("x", &[1, 3])], outputs: &[("y", &[1, 3])] };
    let file = pool.folder.file("hardmax.onnx", graph.file());
    pool.run(&["model", "add", &file]).fails(1, &["no node can run the model", "Hardmax"]);
    let _with = node("with", &library);
    let told = pool.run(&["model", "add", &file]).ok().stdout;
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("ready on with;"), "{told}");
    let x = pool.folder.file("x.npy", npy("(1, 3)", &[-1.0, 2.0, -3.5]));
    let said = pool.run(&["infer", "hardmax", "--input", &format!("x={x}"), "--json"]).ok().json();
    assert_eq!(said["outputs"][0]["data"], serde_json::json!([0.0, 1.0, 0.0]), "{said}");
}

#[test]
fn the_faster_engine_is_found_by_timing_both() {
    let (Some(library), Some(outside)) = (library(), outside()) else { return };
    let (pool, node, _) = with_model(&library, &[]);
    let yolo = outside.join("yolov8n/package/lib/model/yolov8n.onnx").display().to_string();
    pool.run(&["model", "add", &yolo]).ok();
    let timed = node.line(|line| line["event"] == "engine" && line["asker"]["name"] == "yolov8n");
    assert!(timed["builtInMicros"].as_u64() > Some(0), "{timed}");
    assert!(timed["otherMicros"].as_u64() > Some(0), "{timed}");
    let bus = outside.join("pictures/ultralytics/assets/bus.jpg").display().to_string();
    let args = ["infer", "yolov8n", "--image", &bus, "--task", "detect", "--json"];
    let found = pool.run(&args).ok().json();
    let boxes = found["boxes"].as_array().expect("a list");
    let names: Vec<_> = boxes.iter().map(|one| one["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["person", "person", "person", "bus", "person"], "{found}");
}

#[test]
fn files_that_are_no_library_are_named_and_the_built_in_engine_answers() {
    let folder = crate::world::Folder::new();
    let text = folder.file("text.so", "not a library");
    let crashing = compiled(&folder, "crashing", "std::process::abort()");
    let empty = compiled(&folder, "empty", "std::ptr::null()");
    let other = other_library(&folder);
    for (library, words) in [
        ("/nowhere/libonnxruntime.so", "no such file"),
        (text.as_str(), "text.so"),
        (&crashing, "the process ended: signal: 6"),
        (&empty, "the process ended"),
        (&other, "OrtGetApiBase"),
    ] {
        let (pool, node, offers) = with_model(library, &[]);
        let why = offers["whyNoOnnxruntime"].as_str().expect("a reason");
        assert!(why.contains(words) && why.contains(library), "{words}: {why}");
        assert_eq!(node.children().len(), 0);
        is_right(&pool);
    }
}

#[test]
fn one_that_is_killed_is_replaced_and_no_answer_is_lost() {
    let Some(library) = library() else { return };
    let (pool, node, _) = with_model(&library, &["--prefer-onnxruntime"]);
    is_right(&pool);
    let first = node.children()[0];
    signal("-KILL", first);
    is_right(&pool);
    let broke = node.line(|line| line["event"] == "engineBroke");
    assert!(broke["reason"].as_str().expect("a reason").contains("signal: 9"), "{broke}");
    assert_eq!(broke["engine"], "ONNX Runtime 1.31.1");
    pool.wait("another process", || node.children().iter().any(|id| *id != first));
    is_right(&pool);
}

#[test]
fn one_that_is_killed_in_the_middle_of_a_request_loses_no_answer() {
    let Some(library) = library() else { return };
    let (pool, node, _) = with_model(&library, &["--prefer-onnxruntime"]);
    is_right(&pool);
    // It takes the request and does not get on with it.
    let process = node.children()[0];
    signal("-STOP", process);
    let x = pool.folder.file("x.npy", npy("(1, 3)", &[-1.0, 2.0, -3.5]));
    let asked = pool.begin(&["infer", "part", "--input", &format!("x={x}")], b"");
    let running = || pool.ask("GET /api/v1/services", "")["services"][0]["running"].as_u64();
    pool.wait("the request", || running() > Some(0));
    signal("-KILL", process);
    let done = asked.end().ok();
    assert!(String::from_utf8_lossy(&done.stdout).contains("1, 0, 3.5"), "{done:?}");
    let broke = node.line(|line| line["event"] == "engineBroke");
    assert!(broke["reason"].as_str().expect("a reason").contains("signal: 9"), "{broke}");
}

#[test]
fn one_that_hangs_is_ended_and_the_built_in_engine_answers() {
    let Some(library) = library() else { return };
    let (pool, node, _) = with_model(&library, &["--prefer-onnxruntime"]);
    is_right(&pool);
    signal("-STOP", node.children()[0]);
    is_right(&pool);
    let broke = node.line(|line| line["event"] == "engineBroke");
    assert!(broke["reason"].as_str().expect("a reason").contains("did not answer"), "{broke}");
    is_right(&pool);
}

/// A library that does this when it is asked what it is.
fn compiled(folder: &crate::world::Folder, name: &str, does: &str) -> String {
    let code = format!(
        "#[unsafe(no_mangle)]\npub extern \"C\" fn OrtGetApiBase() -> *const u8 {{ {does} }}\n"
    );
    build(folder, name, &code)
}

/// A library of something else.
fn other_library(folder: &crate::world::Folder) -> String {
    build(folder, "other", "#[unsafe(no_mangle)]\npub extern \"C\" fn other() {}\n")
}

fn build(folder: &crate::world::Folder, name: &str, code: &str) -> String {
    let source = folder.file(&format!("{name}.rs"), code);
    let library = folder.path(&format!("lib{name}.so")).display().to_string();
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let words = ["--edition", "2024", "--crate-type", "cdylib", "-o", &library, &source];
    let status = Command::new(compiler).args(words).status().expect("a Rust compiler");
    assert!(status.success() && Path::new(&library).is_file(), "{name} builds");
    library
}
