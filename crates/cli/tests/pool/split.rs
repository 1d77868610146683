//! A model that several nodes keep ready together, each some of its parts.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::material::{npy, read_npy};
use crate::world::{Pool, Process};

/// Seconds: a busy machine loads a model anew, and runs it, in far less.
const DEADLINE: &str = "120";

fn own(pool: &Pool, name: &str) -> Process {
    let key = pool.key.clone();
    pool.node(name, &["--no-gpu", "--key", &key])
}

/// The classifier of the examples as it is, and in parts for three nodes.
fn add(pool: &Pool) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cifar10");
    let file = examples.join("cifar10.onnx");
    pool.run(&["model", "add", &file.display().to_string(), "--name", "whole"]).ok();
    let hash = shoal_protocol::hash(&std::fs::read(file).expect("the model")).to_string();
    let request = json!({
        "name": "parts", "kind": "onnx", "model": hash, "split": "3",
        "shapes": {"image": [1, 3, 32, 32]}, "limits": {"outputMiB": 64},
    });
    pool.ask("POST /api/v1/services", &request.to_string());
}

fn parts(pool: &Pool) -> Value {
    let all = pool.run(&["services", "--json"]).ok().json();
    let all = all["services"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|service| service["name"] == "parts").expect("the service")
}

fn are_ready(pool: &Pool) -> bool {
    parts(pool)["crew"]["ready"] == true
}

/// What the model makes of a picture without a pattern.
fn infer(pool: &Pool, model: &str, picture: u32) -> Vec<f32> {
    let out = pool.folder.path(&format!("{model}-{picture}")).display().to_string();
    let input = input(pool, picture);
    pool.run(&["infer", model, "--input", &input, "-o", &out, "--deadline", DEADLINE]).ok();
    answer(pool, model, picture)
}

fn values(picture: u32) -> Vec<f32> {
    let value = |at: u32| (at.wrapping_mul(2_654_435_761) ^ (picture * 97)) % 256;
    (0..3 * 32 * 32).map(|at| value(at) as f32 / 255.0).collect()
}

fn input(pool: &Pool, picture: u32) -> String {
    let values = values(picture);
    let file = pool.folder.file(&format!("{picture}.npy"), npy("(1, 3, 32, 32)", &values));
    format!("image={file}")
}

fn answer(pool: &Pool, model: &str, picture: u32) -> Vec<f32> {
    read_npy(&pool.folder.read(&format!("{model}-{picture}/logits.npy"))).1
}

#[track_caller]
fn are_near(a: &[f32], b: &[f32]) {
    let near = a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
    assert!(a.len() == 10 && b.len() == 10 && near, "{a:?} {b:?}");
}

#[test]
fn three_nodes_answer_as_one_and_each_request_once_when_one_of_them_is_killed() {
    let pool = Pool::start();
    let mut nodes: Vec<_> = ["a", "b", "c"].map(|name| own(&pool, name)).into();
    add(&pool);
    pool.wait("three nodes have it ready", || are_ready(&pool));
    for picture in 0..3 {
        are_near(&infer(&pool, "parts", picture), &infer(&pool, "whole", picture));
    }
    let service = parts(&pool);
    let stages = service["crew"]["stages"].as_array().expect("stages");
    let sum = |what: &str| stages.iter().filter_map(|stage| stage[what].as_u64()).sum::<u64>();
    assert_eq!((stages.len(), service["replicas"].as_array().map(Vec::len)), (3, Some(0)));
    assert!(sum("parts") >= 3 && stages.iter().all(|stage| stage["memory"].as_u64() > Some(0)));
    let told = pool.run(&["services"]).ok().stdout;
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("parts: ready on 3 devices together; 3 answered, 0 failed"), "{told}");

    // Requests stream while the one in the middle is killed.
    let ask = |picture: u32| {
        let out = pool.folder.path(&format!("parts-{picture}")).display().to_string();
        let input = input(&pool, picture);
        pool.begin(&["infer", "parts", "--input", &input, "-o", &out, "--deadline", DEADLINE], b"")
    };
    let before: Vec<_> = (10..14).map(ask).collect();
    let middle = stages[1]["name"].as_str().expect("a name").to_owned();
    let at = ["a", "b", "c"].iter().position(|name| *name == middle).expect("one of them");
    nodes[at].kill();
    let after: Vec<_> = (14..18).map(ask).collect();
    before.into_iter().chain(after).for_each(|asked| drop(asked.end().ok()));
    for picture in 10..18 {
        are_near(&answer(&pool, "parts", picture), &infer(&pool, "whole", picture));
    }
    let service = parts(&pool);
    assert_eq!((service["answered"].as_u64(), service["failed"].as_u64()), (Some(11), Some(0)));

    // One of the others had all of it meanwhile; with a third they share it again.
    nodes.push(own(&pool, "d"));
    pool.wait("three nodes have it ready again", || {
        let service = parts(&pool);
        service["crew"]["ready"] == true && service["replicas"].as_array().map(Vec::len) == Some(0)
    });
    are_near(&infer(&pool, "parts", 20), &infer(&pool, "whole", 20));
}

/// Milliseconds that clients in a hurry wait. A lost slice takes longer to come back.
const BUDGET: u64 = 3_000;

/// Asked over HTTP with a budget: the answer, and how many devices it went through.
fn hurried(pool: &Pool, model: &str, picture: u32) -> (Vec<f32>, u64) {
    let input = json!({"name": "image", "shape": [1, 3, 32, 32], "datatype": "FP32", "data": values(picture)});
    let (what, asked) = (format!("POST /v2/models/{model}/infer"), json!({"inputs": [input]}));
    let budget = format!("x-shoal-budget-ms: {BUDGET}\r\n");
    let (head, said) = pool.ask_with(&what, &budget, &asked.to_string());
    let answer = serde_json::from_value(said["outputs"][0]["data"].clone()).expect("numbers");
    let stages = head.lines().find_map(|line| line.strip_prefix("x-shoal-stages: "));
    (answer, stages.map_or(1, |stages| stages.parse().expect("a number")))
}

/// Whoever is in a hurry does not wait until a lost slice is on another device: one that has all of the model answers.
#[test]
fn each_request_with_a_budget_is_answered_by_one_node_when_a_slice_is_killed() {
    let pool = Pool::start();
    let mut nodes = ["a", "b", "c", "d"].map(|name| own(&pool, name));
    add(&pool);
    pool.wait("three nodes have it ready", || are_ready(&pool));
    hurried(&pool, "parts", 0);
    let stands_in = || parts(&pool)["replicas"][0]["ready"] == true;
    pool.wait("one node has all of it as well", stands_in);
    let stages = parts(&pool)["crew"]["stages"].as_array().cloned().expect("stages");
    let middle = stages[1]["name"].as_str().expect("a name").to_owned();
    let at = ["a", "b", "c", "d"].iter().position(|name| *name == middle).expect("one of them");

    // Two clients ask without a pause; the slice goes in the middle of it.
    let counted = AtomicU32::new(0);
    let stream = |first: u32| {
        let ask = |picture| {
            let (answer, stages) = hurried(&pool, "parts", picture);
            counted.fetch_add(1, Ordering::Relaxed);
            (picture, answer, stages)
        };
        (first..first + 20).map(ask).collect::<Vec<_>>()
    };
    let stream = &stream;
    let told = std::thread::scope(|scope| {
        let clients = [100, 200].map(|first| scope.spawn(move || stream(first)));
        pool.wait("some are answered", || counted.load(Ordering::Relaxed) >= 10);
        nodes[at].kill();
        clients.map(|client| client.join().expect("all are answered")).concat()
    });
    for (picture, answer, _) in &told {
        are_near(answer, &hurried(&pool, "whole", *picture).0);
    }
    let through = |devices: u64| told.iter().filter(|(_, _, stages)| *stages == devices).count();
    assert!(through(3) > 0, "first the slices answer");
    assert!(through(1) > 0, "then one node alone");
    assert_eq!(parts(&pool)["failed"], 0);
}

#[test]
fn what_each_form_between_devices_changes_is_shown_before_one_is_chosen() {
    let pool = Pool::start();
    let _nodes: Vec<_> = ["a", "b"].map(|name| own(&pool, name)).into();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cifar10");
    let model = examples.join("cifar10.onnx").display().to_string();
    let value = |at: u32| (at.wrapping_mul(2_654_435_761) >> 7) % 256;
    let values: Vec<f32> = (0..8 * 3 * 32 * 32).map(|at| value(at) as f32 / 255.0).collect();
    let data = pool.folder.file("typical.npy", npy("(8, 3, 32, 32)", &values));
    let add = ["model", "add", &model, "--split", "2"];
    let shape = ["--shape", "image=1x3x32x32"];
    let with = |more: &[&str]| pool.run(&[&add[..], &shape, more].concat());

    let said = with(&["--calibrate", &data, "--json"]).ok().json();
    let forms = said["calibration"]["forms"].as_array().expect("forms").clone();
    let number = |at: usize, what: &str| forms[at][what].as_f64().expect("a number");
    let wires: Vec<_> = forms.iter().map(|form| form["wire"].as_str().expect("a name")).collect();
    assert_eq!(wires, ["f32", "f16", "int8"]);
    assert_eq!(
        (&said["calibration"]["slices"], &said["calibration"]["items"]),
        (&json!(2), &json!(8))
    );
    assert!(number(0, "difference") < 1e-3 && number(0, "agreement") == 1.0, "{said}");
    assert!(number(1, "difference") > 0.0 && number(1, "difference") < number(2, "difference"));
    assert!(number(1, "bytesPerItem") < 0.6 * number(0, "bytesPerItem"), "{said}");
    assert!(number(2, "bytesPerItem") < 0.6 * number(1, "bytesPerItem"), "{said}");
    let all = pool.run(&["services", "--json"]).ok().json();
    assert_eq!(all["services"], json!([]), "nothing is added before a form is chosen");

    let told = with(&["--calibrate", &data, "--wire", "f16", "--name", "parts"]).ok().stdout;
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("int8") && told.contains("ready on"), "{told}");
    pool.wait("two nodes have it ready", || are_ready(&pool));
    pool.run(&["model", "add", &model, "--name", "whole"]).ok();
    let (parts, whole) = (infer(&pool, "parts", 0), infer(&pool, "whole", 0));
    let apart = parts.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart > 0.0 && apart < 0.1, "halves travel: {apart}");
}

#[test]
fn what_is_between_devices_needs_several_of_them() {
    let pool = Pool::start();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cifar10");
    let model = examples.join("cifar10.onnx").display().to_string();
    let add = |more: &[&str]| pool.run(&[&["model", "add", model.as_str()][..], more].concat());
    add(&["--wire", "f16"]).fails(2, &["--wire is for a model on several devices", "--split"]);
    add(&["--split", "2", "--wire", "int4"]).fails(2, &["int4", "f32, f16, int8"]);
    add(&["--split", "2", "--shape", "image=1x?"]).fails(2, &["image=1x3x224x224"]);
    let data = pool.folder.file("typical.npy", npy("(1, 3, 8, 8)", &[0.0; 192]));
    let open = add(&["--split", "2", "--calibrate", &data]);
    open.fails(2, &["its shapes must be known", "--shape image=1x3x224x224"]);
    let small = add(&["--split", "2", "--shape", "image=1x3x32x32", "--calibrate", &data]);
    small.fails(2, &["\"image\" has the shape", "expected float32[1x3x32x32]"]);
}
