//! ONNX's own cases, one operator each, through a coordinator and a node: uploaded, served, asked, removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use shoal_kinds::onnx::{Element, Head, Tensor as Given, asking};
use shoal_onnx::{Model, Tensor};

use crate::material::outside;
use crate::world::Pool;

/// Models whose operators count: detectors, and readers of text.
const MODELS: [&str; 3] = ["blazeface", "yolov8n", "ppocr"];
/// What other vision models have beside them.
const MORE: [&str; 16] = [
    "ArgMax",
    "BatchNormalization",
    "Exp",
    "Expand",
    "Floor",
    "Gather",
    "Gemm",
    "GlobalMaxPool",
    "HardSwish",
    "InstanceNormalization",
    "LeakyRelu",
    "PRelu",
    "Pad",
    "Sqrt",
    "Tanh",
    "Where",
];
/// Cases that the built-in engine gets right; more may come, none may go.
const RIGHT_BUILT_IN: usize = 219;
/// The same, where ONNX Runtime is asked first.
#[cfg(target_os = "linux")]
const RIGHT_WITH_RUNTIME: usize = 354;
/// ONNX Runtime aligns corners to other sizes than ONNX does, where scales make them no whole numbers.
#[cfg(target_os = "linux")]
const OTHERWISE_BY_RUNTIME: [&str; 2] = [
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
];
/// What became of a case.
enum Told {
    Right,
    /// Refused, in these words.
    Refused(String),
    Wrong(String),
    /// Sequences and the like, which no request carries.
    NoTensors,
}

#[test]
fn vision_operators_compute_what_their_cases_say() {
    let Some(folder) = outside() else { return };
    check(&folder, &["--onnxruntime", "none"], RIGHT_BUILT_IN, &[]);
}

#[test]
#[cfg(target_os = "linux")]
fn vision_operators_compute_the_same_with_onnx_runtime() {
    let Some(folder) = outside() else { return };
    let Some(library) = crate::accelerator::library() else { return };
    let flags = ["--onnxruntime", &library, "--prefer-onnxruntime"];
    check(&folder, &flags, RIGHT_WITH_RUNTIME, &OTHERWISE_BY_RUNTIME);
}

/// Asks all cases of a node with these flags.
fn check(folder: &Path, flags: &[&str], least: usize, differ: &[&str]) {
    let known = operators(folder);
    eprintln!("{} operators", known.len());
    let nodes = folder.join("onnx/onnx/backend/test/data/node");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(nodes)
        .expect("cases")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    cases.sort();
    shoal_host::tls::install_provider();
    let pool = Pool::start();
    let key = pool.key.clone();
    let _node = pool.node("own", &[&["--no-gpu", "--key", &key], flags].concat());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let told = runtime.expect("a runtime").block_on(async {
        let asker = Asker { http: Client::new(), url: pool.url.clone(), key: pool.key.clone() };
        let mut told = Vec::new();
        for case in &cases {
            let model = Model::read(read(&case.join("model.onnx"))).expect("a model");
            if model.operators().keys().all(|operator| known.contains(operator)) {
                told.push((case, asker.case(case, &model).await));
            }
        }
        told
    });
    let (mut right, mut strange, mut otherwise, mut wrong) = (0, 0, 0, Vec::new());
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (case, told) in &told {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        match told {
            Told::Right => right += 1,
            Told::NoTensors => strange += 1,
            Told::Wrong(_) if differ.contains(&name.as_str()) => otherwise += 1,
            Told::Wrong(what) => wrong.push(format!("{name}: {what}")),
            Told::Refused(why) => refused.entry(why.clone()).or_default().push(name),
        }
    }
    for (why, cases) in &refused {
        eprintln!("{} refused: {why} ({})", cases.len(), cases.join(" "));
    }
    let (all, refused) = (told.len(), refused.values().map(Vec::len).sum::<usize>());
    eprintln!(
        "{right} of {all} right, {refused} refused, {strange} without tensors, {} wrong",
        wrong.len()
    );
    assert_eq!(otherwise, differ.len(), "some that were known to differ are right now");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(right >= least, "only {right} of {all} are right");
}

/// Everything that vision models are made of.
fn operators(folder: &Path) -> BTreeSet<String> {
    let mut waiting: Vec<PathBuf> = MODELS.iter().map(|name| folder.join(name)).collect();
    let mut found = BTreeSet::from(MORE.map(String::from));
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let inside = std::fs::read_dir(&path).expect("a folder");
            waiting.extend(inside.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|end| end == "onnx") {
            found.extend(Model::read(read(&path)).expect("a model").operators().into_keys());
        }
    }
    found
}

struct Asker {
    http: Client,
    url: String,
    key: String,
}

impl Asker {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    async fn case(&self, case: &Path, model: &Model) -> Told {
        let Some((inputs, outputs)) = tensors(case, model) else { return Told::NoTensors };
        let hash = self.upload(model.bytes()).await;
        let body = json!({"name": "case", "kind": "onnx", "model": hash});
        let served = self.request(Method::POST, "/api/v1/services").json(&body).send().await;
        let served = served.expect("an answer");
        if served.status() != StatusCode::CREATED {
            return Told::Refused(said(served).await);
        }
        let told = match self.ready().await {
            Ok(()) => self.ask(&inputs, &outputs).await,
            Err(trouble) => Told::Refused(trouble),
        };
        let gone = self.request(Method::DELETE, "/api/v1/services/case").send().await;
        assert!(gone.expect("an answer").status().is_success());
        told
    }

    async fn upload(&self, bytes: &[u8]) -> String {
        let stored = self.request(Method::POST, "/api/v1/blobs").body(bytes.to_vec()).send().await;
        let stored: Value = stored.expect("an answer").json().await.expect("JSON");
        stored["hash"].as_str().expect("a hash").to_owned()
    }

    /// Waits for the only node to have it ready, or to say why it cannot.
    async fn ready(&self) -> Result<(), String> {
        loop {
            let list = self.request(Method::GET, "/api/v1/services").send().await;
            let list: Value = list.expect("an answer").json().await.expect("JSON");
            let service = &list["services"][0];
            if service["replicas"][0]["ready"] == true {
                return Ok(());
            }
            if let Some(trouble) = service["trouble"].as_str() {
                return Err(trouble.to_owned());
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }

    async fn ask(&self, inputs: &Tensors, outputs: &Tensors) -> Told {
        let tensors: Vec<Given<'_>> =
            inputs.iter().map(|(head, bytes)| Given { head: head.clone(), bytes }).collect();
        let (body, length) = asking::write(&tensors);
        let asked = self
            .request(Method::POST, "/v2/models/case/infer")
            .header("inference-header-content-length", length)
            .body(body);
        let answer = asked.send().await.expect("an answer");
        if !answer.status().is_success() {
            return Told::Refused(said(answer).await);
        }
        let length = answer.headers().get("inference-header-content-length").cloned();
        let length = length.and_then(|text| text.to_str().ok()?.parse().ok());
        let body = answer.bytes().await.expect("a body");
        let found = asking::read(&body, length).expect("tensors");
        if found.len() != outputs.len() {
            return Told::Wrong(format!("{} outputs of {}", found.len(), outputs.len()));
        }
        let differs = found.iter().zip(outputs).find_map(|(found, right)| differs(found, right));
        differs.map_or(Told::Right, Told::Wrong)
    }
}

/// Why something was refused.
async fn said(answer: reqwest::Response) -> String {
    let body: Value = answer.json().await.unwrap_or_default();
    let error = &body["error"];
    error.as_str().or(error["message"].as_str()).unwrap_or("no words").to_owned()
}

type Tensors = Vec<(Head, Vec<u8>)>;

/// What a case gives and expects; none if some of it is no tensor.
fn tensors(case: &Path, model: &Model) -> Option<(Tensors, Tensors)> {
    let data = case.join("test_data_set_0");
    let tensor = |kind: &str, at: usize, name: &str| {
        let file = std::fs::read(data.join(format!("{kind}_{at}.pb"))).ok()?;
        let tensor = Tensor::read_alone(file).ok()?;
        let dtype = tensor.ty().dtype.name();
        let element = *Element::ALL.iter().find(|element| element.name() == dtype)?;
        let head = Head { name: name.into(), element, dims: tensor.ty().dims.clone() };
        Some((head, tensor.bytes()?.to_vec()))
    };
    let inputs = model.inputs().enumerate().map(|(at, input)| tensor("input", at, input.name()));
    let outputs = model.outputs().iter().enumerate();
    let outputs = outputs.map(|(at, output)| tensor("output", at, output.name()));
    Some((inputs.collect::<Option<_>>()?, outputs.collect::<Option<_>>()?))
}

/// As ONNX compares: one in a thousand for floats, nothing for whole numbers.
fn differs(found: &(Head, Vec<u8>), right: &(Head, Vec<u8>)) -> Option<String> {
    let ((head, bytes), (right_head, right_bytes)) = (found, right);
    if (&head.dims, head.element) != (&right_head.dims, right_head.element) {
        let Head { element, dims, .. } = right_head;
        return Some(format!("{} {:?}, not {element} {dims:?}", head.element, head.dims));
    }
    if head.element != Element::F32 {
        return (bytes != right_bytes).then(|| format!("other {} numbers", head.element));
    }
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
    };
    let near = |(a, b): (&f32, &f32)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 + 1e-3 * b.abs()
    };
    let (found, right) = (floats(bytes), floats(right_bytes));
    let at = found.iter().zip(&right).position(|pair| !near(pair))?;
    Some(format!("number {at} is {}, not {}", found[at], right[at]))
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
