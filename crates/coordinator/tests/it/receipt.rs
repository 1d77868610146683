//! What jobs can show for themselves: receipts that verify, and reasons in words.

use ed25519_dalek::{Signature, Verifier, VerifyingKey};
use serde_json::{Value, json};
use shoal_kinds::{Kind, Pixel};
use shoal_protocol::Hash;
use shoal_protocol::Span;
use shoal_protocol::sign::receipt_statement;

use crate::node::{Node, answers, hello, nothing, numbers};
use crate::world::{World, noop, problem};

fn unhex<const N: usize>(text: &Value) -> [u8; N] {
    let text = text.as_str().unwrap();
    assert_eq!(text.len(), 2 * N);
    std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
}

/// The text that is signed, as anybody would make it from the JSON.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            let field = |(name, value): &(&String, &Value)| {
                format!("{}:{}", Value::from(name.as_str()), canonical(value))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn verifies(signed: &Value) -> bool {
    let key = VerifyingKey::from_bytes(&unhex(&signed["key"])).unwrap();
    let hash = Hash(*blake3::hash(canonical(&signed["receipt"]).as_bytes()).as_bytes());
    let signature = Signature::from_bytes(&unhex(&signed["signature"]));
    key.verify(&receipt_statement(&hash), &signature).is_ok()
}

fn hash(bytes: &[u8]) -> Value {
    json!(blake3::hash(bytes).to_hex().as_str())
}

/// The receipt of a job that is run to its end, checked.
async fn receipt(world: &World, job: Value) -> (u64, Value) {
    let id = world.api.submit(job).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    let signed = world.api.json(&format!("/api/v1/jobs/{id}/receipt")).await;
    assert!(verifies(&signed), "{signed}");
    assert_eq!(signed["key"], world.api.json("/api/v1/pool").await["key"]);
    let receipt = signed["receipt"].clone();
    assert_eq!((&receipt["format"], &receipt["job"]), (&json!("shoal receipt 1"), &json!(id)));
    (id, receipt)
}

fn shade(work: &Kind, span: Span) -> Vec<u8> {
    let Kind::Render(render) = work else { panic!("expected a render") };
    assert_eq!(render.pixel, Pixel::Rgba8);
    (span.start..span.end())
        .flat_map(|tile| vec![tile as u8; render.tile_bytes() as usize])
        .collect()
}

fn compute(work: &Kind, span: Span) -> Vec<u8> {
    match work.name() {
        "map" => numbers(work, span),
        "render" => shade(work, span),
        "exec" => answers(work, span),
        _ => nothing(work, span),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_says_who_computed_and_who_checked_what() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(numbers);
    let _two = Node::join(&world, "two").await.work(numbers);
    let input = world.api.blob(vec![1; 4096]).await;
    let job = json!({"kind": "map", "wgsl": "input", "inputs": [{"blob": input}], "unit": 100,
        "verify": "quorum:2", "name": "a map", "owner": "me"});
    let (id, receipt) = receipt(&world, job).await;
    let result = world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await;
    assert_eq!(receipt["output"], json!({"what": "bytes", "hash": hash(&result), "size": 4096}));
    assert_eq!(receipt["inputs"], json!([{"role": "input", "hash": input, "size": 4096}]));
    assert_eq!(receipt["code"]["hash"], hash(b"input"));
    assert_eq!(receipt["policy"]["verify"], "quorum:2");
    let usual = json!({"dtype": "f32", "abs": "0.00001", "rel": "0.0001", "ulps": 16});
    assert_eq!(receipt["policy"]["tolerance"], usual);
    assert_eq!((&receipt["name"], &receipt["owner"]), (&json!("a map"), &json!("me")));
    let units = receipt["units"].as_array().unwrap();
    assert_eq!(units.len(), 11);
    for unit in units {
        let (start, len) = (unit["start"].as_u64().unwrap(), unit["len"].as_u64().unwrap());
        let bytes = &result[4 * start as usize..4 * (start + len) as usize];
        assert_eq!((&unit["hash"], &unit["sure"]), (&hash(bytes), &json!(true)), "{unit}");
        assert_eq!(unit["checkedBy"].as_array().unwrap().len(), 1, "{unit}");
    }
    assert_eq!(receipt["nodes"].as_array().unwrap().len(), 2);
    // It says the same after a restart, but for names, which are not facts.
    let world = world.restart().await;
    let again = world.api.json(&format!("/api/v1/jobs/{id}/receipt")).await;
    assert!(verifies(&again));
    assert_eq!(again["receipt"]["units"], receipt["units"]);
    assert_eq!(again["receipt"]["nodes"][0]["identity"], receipt["nodes"][0]["identity"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_receipt_does_not_verify() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(numbers);
    let id = world.api.submit(json!({"kind": "map", "wgsl": "x", "items": 3000})).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    let signed = world.api.json(&format!("/api/v1/jobs/{id}/receipt")).await;
    assert!(verifies(&signed));
    for (at, value) in [
        ("/receipt/items", json!(3001)),
        ("/receipt/units/0/sure", json!(true)),
        ("/receipt/nodes/0/name", json!("two")),
        ("/receipt/output/hash", json!("00")),
    ] {
        let mut changed = signed.clone();
        assert_ne!(changed.pointer(at), Some(&value), "{at}");
        *changed.pointer_mut(at).unwrap() = value;
        assert!(!verifies(&changed), "{at}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_job_has_a_receipt_and_reasons() {
    let world = World::start();
    let _own = Node::join_with(&world.api, hello("own", &world.api.key)).await.work(compute);
    let module = world.api.blob(b"\0asm".to_vec()).await;
    let lines = world.api.blob("a\nb\nc\n").await;
    let jobs = [
        noop(5),
        json!({"kind": "map", "wgsl": "x", "items": 10}),
        json!({"kind": "render", "wgsl": "x", "width": 100, "height": 70}),
        json!({"kind": "exec", "module": module, "lines": {"blob": lines}}),
        json!({"kind": "exec", "module": module, "files": [{"name": "a", "blob": lines}],
            "folder": [{"name": "b", "blob": module}], "clock": true, "args": ["-x"]}),
    ];
    for job in jobs {
        let (id, receipt) = receipt(&world, job.clone()).await;
        assert_eq!(receipt["kind"], job["kind"]);
        assert_eq!(receipt["work"].as_str().unwrap().len(), 64);
        assert_eq!(receipt["settings"], settings(&job));
        let why = world.api.json(&format!("/api/v1/jobs/{id}/explain")).await;
        assert!(why["lines"][0].as_str().unwrap().contains("is done"), "{why}");
        let why = world.api.json(&format!("/api/v1/jobs/{id}/explain?item=0")).await;
        assert!(why["lines"].to_string().contains("were computed by node 1"), "{why}");
        match job["kind"].as_str().unwrap() {
            "noop" => {
                assert_eq!((&receipt["output"], &receipt["code"]), (&Value::Null, &Value::Null))
            }
            "render" => check_picture(&world, id, &receipt).await,
            _ => {
                let result = world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await;
                assert_eq!(receipt["output"]["hash"], hash(&result));
                assert_eq!(receipt["units"][0]["own"], job["clock"] != true);
            }
        }
        if job["files"].is_array() {
            let inputs = json!([
                {"role": "file", "name": "a", "hash": lines, "size": 6},
                {"role": "folder", "name": "b", "hash": module, "size": 4},
            ]);
            assert_eq!(receipt["inputs"], inputs);
        }
    }
    world.stop().await;
}

/// What a receipt says of how a job was asked for.
fn settings(job: &Value) -> Value {
    match job["kind"].as_str().unwrap() {
        "noop" => json!({}),
        "map" => json!({"entry": "main", "itemBytes": 4}),
        "render" => json!({"entry": "main", "height": 70, "pixel": "rgba8", "samples": 1,
            "tile": 64, "width": 100}),
        _ if job["args"].is_array() => json!({"args": ["-x"], "clock": true, "env": [],
            "okExit": [0], "onError": "continue", "retry": 0}),
        _ => json!({"args": [], "clock": false, "env": [],
            "okExit": [0], "onError": "continue", "retry": 0}),
    }
}

async fn check_picture(world: &World, id: u64, receipt: &Value) {
    let png = world.api.bytes(&format!("/api/v1/jobs/{id}/picture.png")).await;
    let picture = image::load_from_memory(&png).unwrap().to_rgba8();
    let expected = json!({"what": "pixels", "hash": hash(picture.as_raw()), "size": 100 * 70 * 4});
    assert_eq!(receipt["output"], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_has_no_receipt_and_what_is_not_there_no_reasons() {
    let world = World::start();
    let id = world.api.submit(noop(5)).await;
    let early = world.api.get(&format!("/api/v1/jobs/{id}/receipt")).await;
    let (status, code, message) = problem(early).await;
    assert_eq!((status.as_u16(), code.as_str()), (409, "not_done"), "{message}");
    let why = world.api.json(&format!("/api/v1/jobs/{id}/explain")).await["lines"].to_string();
    assert!(why.contains("no connected node can compute it"), "{why}");
    let why = world.api.json(&format!("/api/v1/jobs/{id}/explain?item=4")).await;
    assert_eq!(why["lines"], json!(["it is waiting for a node"]));
    for (path, code) in [
        (format!("/api/v1/jobs/{id}/explain?item=5"), "no_such_item"),
        ("/api/v1/jobs/77/explain".into(), "no_such_job"),
        ("/api/v1/jobs/77/receipt".into(), "no_such_job"),
        ("/api/v1/nodes/77/explain".into(), "no_such_node"),
    ] {
        assert_eq!(problem(world.api.get(&path).await).await.1, code, "{path}");
    }
    let cancel = world.api.post(&format!("/api/v1/jobs/{id}/cancel"), Value::Null).await;
    assert_eq!(cancel.status(), 200);
    let signed = world.api.json(&format!("/api/v1/jobs/{id}/receipt")).await;
    assert!(verifies(&signed));
    assert_eq!(signed["receipt"]["state"], "cancelled");
    world.stop().await;
}
