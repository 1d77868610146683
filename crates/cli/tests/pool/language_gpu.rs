//! A language model on a node's GPU: within a tolerance of the processor, and in a process that may be lost.

#[cfg(target_os = "linux")]
use std::io::{Read, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::material::outside;
use crate::onnx_file::negative_part;
#[cfg(target_os = "linux")]
use crate::process::signal;
#[cfg(target_os = "linux")]
use crate::world::PATIENCE;
use crate::world::{Pool, Process};

/// What such models know by heart.
const BEGIN: &str = "Once upon a time, there was a little girl named Lily. She loved to";
/// Between the logarithms of a token's chances: the processor takes activations as eight bits, the GPU as floats.
const NEAR: f64 = 0.3;
/// The same on one GPU, which computes several tokens at once by other kernels than one.
#[cfg(target_os = "linux")]
const SAME: f64 = 0.01;

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

/// The same words, of a prompt with one likely answer; their chances are near.
fn assert_near(found: &(Vec<String>, Vec<f64>), wanted: &(Vec<String>, Vec<f64>), near: f64) {
    assert_eq!(found.0, wanted.0);
    for (at, (found, wanted)) in found.1.iter().zip(&wanted.1).enumerate() {
        let off = (found - wanted).abs();
        assert!(off < near, "token {at}: {found}, where {wanted} is wanted");
    }
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
    assert_eq!(plain.1.len(), 24);
    assert_near(&graphic, &plain, NEAR);
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
        let (head, body) = pool.answer("POST /api/v1/services", "", &service.to_string());
        assert!(head.starts_with("HTTP/1.1 422"), "{head}");
        let wanted = format!("remove \\\"{what}\\\"");
        assert!(body.contains(&wanted), "{body}");
    }
    let ask = json!({"model": "graphic", "input": "A fish."}).to_string();
    let (head, body) = pool.answer("POST /v1/embeddings", "", &ask);
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
    let expected = said(&pool, "graphic", 12);
    let worker = || node.children().into_iter().find(|id| is_worker(*id));
    // While it reads the question or speaks, and while nobody asks.
    for parts in [0, 6] {
        let killed = worker().expect("its process");
        let mut answer = Told::begin(&pool, "graphic", MOST);
        pool.wait("it is asked", || service(&pool)["replicas"][0]["running"] == 1);
        answer.hear(|text| text.matches("data: ").count() >= parts);
        signal("-KILL", killed);
        answer.hear(|text| text.contains("data: [DONE]"));
        let (text, end) = answer.whole();
        assert!(text.starts_with(&expected.0[..4].concat()), "{text}");
        // The story may have come to its own end before.
        let is_whole = end["usage"]["completion_tokens"] == MOST || answer.says("\"stop\"");
        assert!(is_whole, "{end}: {text}");
        let before = end["timings"]["taken_over_n"].as_u64().expect("a count");
        assert!(
            parts == 0 || (4..MOST.into()).contains(&before),
            "it does not say {before}: {text}"
        );
        assert!(worker().is_some_and(|other| other != killed), "another one has the model");
    }
    assert_eq!(service(&pool)["repeated"], 2);
    assert_near(&said(&pool, "graphic", 12), &expected, SAME);
    signal("-KILL", worker().expect("its process"));
    assert_near(&said(&pool, "graphic", 12), &expected, SAME);
    pool.run(&["model", "rm", "graphic"]).ok();
    pool.wait("nothing is left of it", || worker().is_none());
    assert!(node.is_alive());
}

/// Tokens of an answer that is interrupted. More take minutes on a GPU of software that shares its cores.
#[cfg(target_os = "linux")]
const MOST: u32 = 40;

/// An answer that comes in parts, and what was heard of it.
#[cfg(target_os = "linux")]
struct Told {
    socket: std::net::TcpStream,
    heard: String,
}

#[cfg(target_os = "linux")]
impl Told {
    fn begin(pool: &Pool, model: &str, most: u32) -> Told {
        let mut ask = asked(model, most);
        (ask["stream"], ask["logprobs"]) = (true.into(), Value::Null);
        ask["stream_options"] = json!({"include_usage": true});
        let (body, place, key) =
            (ask.to_string(), pool.url.trim_start_matches("http://"), &pool.key);
        let mut socket = std::net::TcpStream::connect(place).expect("the coordinator");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let length = body.len();
        let request = format!(
            "POST /v1/completions HTTP/1.1\r\nhost: {place}\r\nauthorization: Bearer {key}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).expect("sent");
        Told { socket, heard: String::new() }
    }

    /// Listens until it is enough.
    fn hear(&mut self, is_enough: impl Fn(&str) -> bool) {
        let Told { socket, heard } = self;
        let mut bytes = [0; 1 << 10];
        while !is_enough(heard) {
            let count = socket.read(&mut bytes).expect("it goes on in time");
            assert!(count > 0, "it broke off: {heard}");
            *heard += &String::from_utf8_lossy(&bytes[..count]);
        }
    }

    fn says(&self, what: &str) -> bool {
        self.heard.contains(what)
    }

    /// Its text, and its last part.
    fn whole(&self) -> (String, Value) {
        let parts = self.heard.lines().filter_map(|line| line.strip_prefix("data: "));
        let parts: Vec<Value> = parts.filter_map(|part| serde_json::from_str(part).ok()).collect();
        let text = parts.iter().filter_map(|part| part["choices"][0]["text"].as_str()).collect();
        (text, parts.last().cloned().unwrap_or_default())
    }
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
