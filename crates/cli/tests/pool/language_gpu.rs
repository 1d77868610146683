//! A language model on a node's GPU: within a tolerance of the processor, and in a process that may be lost.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::material::outside;
use crate::onnx_file::negative_part;
#[cfg(target_os = "linux")]
use crate::process::signal;
#[cfg(target_os = "linux")]
use crate::world::answer;
use crate::world::{Pool, Process};

/// What such models know by heart.
const BEGIN: &str = "Once upon a time, there was a little girl named Lily. She loved to";
/// Between the logarithms of a token's chances: the processor takes activations as eight bits, the GPU as floats.
const NEAR: f64 = 0.3;

/// Small stories; none where nobody fetched them and nobody asks for them.
fn file() -> Option<String> {
    let path: PathBuf = outside()?.join("stories15m/stories15M-q8_0.gguf");
    Some(path.display().to_string())
}

fn with_gpu(pool: &Pool, name: &str) -> Process {
    pool.node(name, &["--cpus", "1", "--memory", "2G", "--key", &pool.key])
}

fn add(pool: &Pool, file: &str, name: &str, flags: &[&str]) -> String {
    let words = ["model", "add", file, "--name", name, "--context", "256", "--conversations", "2"];
    let told = pool.run(&[&words, flags].concat()).ok().stdout;
    String::from_utf8_lossy(&told).into_owned()
}

fn asked(model: &str, most: u32) -> Value {
    json!({"model": model, "prompt": BEGIN, "max_tokens": most, "temperature": 0, "logprobs": 2})
}

/// What a model says, token by token, and the logarithms of their chances.
fn said(pool: &Pool, model: &str, most: u32) -> (Vec<String>, Vec<f64>) {
    let said = pool.ask("POST /v1/completions", &asked(model, most).to_string());
    let chances = &said["choices"][0]["logprobs"];
    let read = |what: &str| chances[what].as_array().cloned().unwrap_or_default();
    let texts = read("tokens").iter().filter_map(Value::as_str).map(String::from).collect();
    (texts, read("token_logprobs").iter().filter_map(Value::as_f64).collect())
}

#[test]
fn a_gpu_says_what_the_processor_says_within_a_tolerance() {
    let Some(file) = file() else { return };
    let pool = Pool::start();
    let _node = with_gpu(&pool, "a");
    add(&pool, &file, "plain", &["--split", "never"]);
    let told = add(&pool, &file, "graphic", &["--gpu", "--wait", "120"]);
    assert!(told.contains("computed by a GPU: some words may differ"), "{told}");
    assert!(told.contains("a can run it with llm-gpu") && told.contains("ready on a"), "{told}");
    let [plain, graphic] = ["plain", "graphic"].map(|model| said(&pool, model, 24));
    assert_eq!(plain.0, graphic.0, "a prompt with one likely answer");
    assert_eq!(plain.1.len(), 24);
    for (at, (plain, graphic)) in plain.1.iter().zip(&graphic.1).enumerate() {
        let off = (plain - graphic).abs();
        assert!(off < NEAR, "token {at}: {plain} by the processor, {graphic} by the GPU");
    }
    // It is no processor that answered: not one number of so many would differ.
    assert_ne!(plain.1, graphic.1);
    let models = pool.ask("GET /v1/models", "");
    let on = |name: &str| {
        let all = models["data"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|it| it["id"] == name).map(|it| it["shoal"]["on"].clone())
    };
    assert_eq!((on("plain"), on("graphic")), (Some(json!("processor")), Some(json!("gpu"))));
}

#[test]
fn what_a_gpu_cannot_do_is_refused_before_anything_is_computed() {
    let Some(file) = file() else { return };
    let pool = Pool::start();
    let whole = "with --gpu one device has all of the model: leave --";
    for flags in [&["--split", "2"][..], &["--split", "2", "--by", "tensors"], &["--split", "auto"]]
    {
        let words = ["model", "add", &file, "--gpu"];
        pool.run(&[&words, flags].concat()).fails(2, &[whole]);
    }
    let onnx = pool.folder.file("part.onnx", negative_part());
    pool.run(&["model", "add", &onnx, "--gpu"]).fails(2, &["--gpu is for language models"]);
    let _without = pool.node("without", &["--no-gpu", "--cpus", "1", "--key", &pool.key]);
    let told = add(&pool, &file, "graphic", &["--gpu", "--wait", "1"]);
    assert!(told.contains("without cannot run it: it has no engine llm-gpu"), "{told}");
    let _small = pool.node("small", &["--cpus", "1", "--memory", "80M", "--key", &pool.key]);
    let again = ["model", "add", &file, "--name", "second", "--gpu"];
    pool.run(&again).fails(2, &["no node with a GPU lends more than"]);
    for (what, more) in [("by", json!({"by": "layers"})), ("split", json!({"split": "2"}))] {
        let mut service = json!({"name": "third", "kind": "llm", "on": "gpu"});
        let models = pool.ask("GET /v1/models/graphic", "");
        service["model"] = models["shoal"]["file"]["hash"].clone();
        let all = service.as_object_mut().expect("an object");
        all.extend(more.as_object().expect("an object").clone());
        let (head, body) = pool.answer("POST /api/v1/services", &service.to_string());
        assert!(head.starts_with("HTTP/1.1 422"), "{head}");
        let wanted = format!("leave \\\"{what}\\\" away");
        assert!(body.contains(&wanted), "{body}");
    }
    let ask = json!({"model": "graphic", "input": "A fish."}).to_string();
    let (head, body) = pool.answer("POST /v1/embeddings", &ask);
    assert!(head.starts_with("HTTP/1.1 400") && body.contains("model_on_gpu"), "{head} {body}");
}

/// Drivers crash. What computes is a process of its own: the node goes on, loads the model again, and so does the answer.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_goes_on_when_the_process_on_the_gpu_is_killed() {
    let Some(file) = file() else { return };
    let pool = Pool::start();
    let mut node = with_gpu(&pool, "a");
    add(&pool, &file, "graphic", &["--gpu", "--wait", "120"]);
    let expected = said(&pool, "graphic", 40);
    let worker = || node.children().into_iter().find(|id| is_worker(*id));
    let first = worker().expect("its process");
    let (url, key) = (pool.url.clone(), pool.key.clone());
    let asked = std::thread::spawn(move || {
        answer(&url, &key, "POST /v1/completions", &asked("graphic", 200).to_string())
    });
    pool.wait("it is asked", || service(&pool)["replicas"][0]["running"] == 1);
    signal("-KILL", first);
    let (head, body) = asked.join().expect("an answer");
    let whole: Value = serde_json::from_str(&body).expect("JSON");
    // The story may have come to its end before.
    let (choice, count) = (&whole["choices"][0], &whole["usage"]["completion_tokens"]);
    assert!(head.starts_with("HTTP/1.1 200") && count.as_u64() > Some(40), "{body}");
    let is_whole = choice["finish_reason"] == "stop" || count.as_u64() == Some(200);
    assert!(is_whole, "{body}");
    let known = expected.0[..24].concat();
    assert!(choice["text"].as_str().is_some_and(|text| text.starts_with(&known)), "{body}");
    assert!(service(&pool)["repeated"].as_u64() >= Some(1));
    assert!(worker().is_some_and(|second| second != first), "another one has the model");
    assert_eq!(said(&pool, "graphic", 40), expected);
    pool.run(&["model", "rm", "graphic"]).ok();
    pool.wait("nothing is left of it", || worker().is_none());
    assert!(node.is_alive());
}

#[cfg(target_os = "linux")]
fn is_worker(process: u32) -> bool {
    let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == b"llm-worker")
}

#[cfg(target_os = "linux")]
fn service(pool: &Pool) -> Value {
    pool.ask("GET /api/v1/services", "")["services"][0].take()
}
