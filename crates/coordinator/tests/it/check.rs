//! Answers are checked: liars are found out, honest devices that round differently are not.

use serde_json::{Value, json};
use shoal_kinds::{Kind, NoopWork};
use shoal_protocol::Span;

use crate::node::{Node, Working, answers, hello, lies, numbers};
use crate::world::{World, eventually};

const ITEMS: u64 = 64 * 1024;

fn map(verify: &str) -> Value {
    json!({"kind": "map", "wgsl": "x", "items": ITEMS, "unit": 1024, "verify": verify})
}

fn expected() -> Vec<u8> {
    (0..ITEMS).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

/// The operator's own node.
async fn own(world: &World, name: &str) -> Node {
    Node::join_with(&world.api, hello(name, &world.api.key)).await
}

async fn honest(world: &World, names: &[&str]) -> Vec<Working> {
    let mut nodes = Vec::new();
    for name in names {
        nodes.push(Node::join(world, name).await.work(numbers));
    }
    nodes
}

/// Runs a job to its end; gives it and its result.
async fn run(world: &World, job: Value) -> (Value, Vec<u8>) {
    let id = world.api.submit(job).await;
    let job = world.api.ended(id).await;
    assert_eq!(job["state"], "done", "{job}");
    let bytes = world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await;
    (job, bytes)
}

async fn trust(world: &World, name: &str) -> Value {
    let nodes = world.api.json("/api/v1/nodes").await;
    let nodes = nodes["nodes"].as_array().unwrap().clone();
    nodes.into_iter().find(|node| node["name"] == name).unwrap()["trust"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_outvotes_a_liar_and_bars_it() {
    let world = World::start();
    // It answers first, so that the others have something to disagree with.
    let mut liar = Node::join(&world, "liar").await;
    let id = world.api.submit(map("quorum:2")).await;
    let lease = liar.lent().await;
    liar.inline(lease.attempt, lies(&Kind::Noop(NoopWork), lease.span)).await;
    let _liar = liar.work(lies);
    let _honest = honest(&world, &["one", "two", "three", "four"]).await;
    let job = world.api.ended(id).await;
    assert_eq!(job["state"], "done", "{job}");
    let bytes = world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await;
    assert!(bytes == expected());
    assert_eq!((&job["verify"], &job["unitsChecked"]), (&json!("quorum:2"), &job["unitsDone"]));
    assert!(world.api.metric("shoal_answers_rejected_total").await >= 1.0);
    assert!(world.api.metric("shoal_units_checked_total").await >= 64.0);
    let liar = trust(&world, "liar").await;
    assert!(liar["gpu"]["wrong"].as_u64().unwrap() >= 1, "{liar}");
    assert_eq!(trust(&world, "one").await["gpu"]["wrong"], 0);
    // Trust is durable, and so is the lack of it.
    let world = world.restart().await;
    let _liar = Node::join(&world, "liar").await;
    assert_eq!(trust(&world, "liar").await, liar);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_own_node_decides_under_adaptive() {
    let world = World::start();
    let _liars = [
        Node::join(&world, "liar").await.work(lies),
        Node::join(&world, "friend").await.work(lies),
    ];
    let _stranger = honest(&world, &["one"]).await;
    let _own = own(&world, "own").await.work(numbers);
    let (job, bytes) = run(&world, map("adaptive")).await;
    assert!(bytes == expected(), "two liars agree, but the operator's own node does not");
    assert_eq!(job["verify"], "adaptive");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spot_checks_that_hit_everything_let_nothing_through() {
    let world = World::start();
    let _liar = Node::join(&world, "liar").await.work(lies);
    let _honest = honest(&world, &["one", "two", "three", "four"]).await;
    let (job, bytes) = run(&world, map("spot:1")).await;
    assert!(bytes == expected());
    assert_eq!(job["verify"], "spot:1");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchecked_is_unchecked() {
    let world = World::start();
    let _liar = Node::join(&world, "liar").await.work(lies);
    let (job, bytes) = run(&world, map("none")).await;
    assert!(bytes != expected());
    assert_eq!((&job["unitsChecked"], &job["speculated"]), (&json!(0), &json!(0)));
    assert_eq!((&job["unitsOwn"], &job["unitsUnchecked"]), (&json!(0), &job["unitsDone"]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_your_own_device_computed_is_not_called_checked() {
    let world = World::start();
    let _own = own(&world, "own").await.work(numbers);
    let (job, bytes) = run(&world, map("adaptive")).await;
    assert!(bytes == expected());
    assert_eq!((&job["unitsChecked"], &job["unitsUnchecked"]), (&json!(0), &json!(0)));
    assert_eq!(job["unitsOwn"], job["unitsDone"]);
    assert!(job["unitsDone"].as_u64().unwrap() > 0);
    assert_eq!(world.api.metric("shoal_units_checked_total").await, 0.0);
    let receipt = world.api.json(&format!("/api/v1/jobs/{}/receipt", job["id"])).await;
    let unit = &receipt["receipt"]["units"][0];
    assert_eq!((&unit["checkedBy"], &unit["own"]), (&json!([]), &json!(true)), "{unit}");
    world.stop().await;
}

/// Honest, with other low bits.
fn rounded(work: &Kind, span: Span) -> Vec<u8> {
    let numbers = numbers(work, span);
    let floats = numbers.chunks_exact(4).map(|f| u32::from_le_bytes(f.try_into().unwrap()));
    floats.flat_map(|bits| (bits ^ 1).to_le_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_of_another_class_are_compared_by_tolerance() {
    let world = World::start();
    let class = |name: &str, class: u64| {
        let mut hello = hello(name, &world.token);
        hello.caps.class = class;
        hello
    };
    let _one = Node::join_with(&world.api, class("one", 1)).await.work(numbers);
    let _two = Node::join_with(&world.api, class("two", 2)).await.work(rounded);
    let nodes = world.api.json("/api/v1/nodes").await;
    assert_eq!(nodes["nodes"][0]["class"], "0000000000000001");
    let (_, bytes) = run(&world, map("quorum:2")).await;
    let float = |four: &[u8]| f32::from_le_bytes(four.try_into().unwrap());
    let mut floats = bytes.chunks_exact(4).map(float).enumerate();
    assert!(floats.all(|(at, found)| (found - at as f32).abs() <= 0.01));
    assert!(world.api.metric("shoal_comparisons_total").await >= 1.0);
    assert_eq!(world.api.metric("shoal_answers_rejected_total").await, 0.0);
    // Bit for bit, they never agree.
    let mut exact = map("quorum:2");
    exact["tolerance"] = json!({"abs": 0, "rel": 0, "ulps": 0});
    let id = world.api.submit(exact).await;
    let job = world.api.ended(id).await;
    let words = job["error"]["message"].as_str().unwrap();
    assert!(job["state"] == "failed" && words.contains("do not agree"), "{job}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_not_handed_out_while_it_may_be_taken_back() {
    let world = World::start();
    let mut one = Node::join(&world, "one").await;
    let module = world.api.blob(b"\0asm".to_vec()).await;
    let lines = world.api.blob("a\nb\nc\nd\n").await;
    let job = json!({"kind": "exec", "module": module, "lines": {"blob": lines}, "unit": 1});
    let id = world.api.submit(job.clone()).await;
    for _ in 0..2 {
        let lease = one.lent().await;
        one.inline(lease.attempt, answers(&Kind::Noop(NoopWork), lease.span)).await;
    }
    let path = format!("/api/v1/jobs/{id}");
    let done = async || (world.api.json(&path).await["itemsDone"].as_u64() > Some(0)).then_some(());
    eventually(done).await;
    let early = world.api.get(&format!("{path}/result/items/0")).await;
    let (status, _, message) = crate::world::problem(early).await;
    assert_eq!(status, 409, "{message}");
    drop(one);
    let _one = Node::join(&world, "one").await.work(answers);
    assert_eq!(world.api.ended(id).await["state"], "done");
    assert_eq!(world.api.bytes(&format!("{path}/result/items/0")).await, b"answer 0\n");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_that_make_no_sense_are_refused_with_the_reason() {
    let world = World::start();
    let module = world.api.blob(b"\0asm".to_vec()).await;
    let with = |mut job: Value, field: &str, value: Value| {
        job[field] = value;
        job
    };
    let noop = || json!({"kind": "noop", "items": 1});
    let exec = || json!({"kind": "exec", "module": module});
    for (job, part) in [
        (with(noop(), "verify", json!("often")), "quorum:3"),
        (with(noop(), "verify", json!("quorum:99")), "2 to 15"),
        (with(noop(), "weight", json!(0)), "1 to 10000"),
        (with(noop(), "priority", json!("urgent")), "urgent"),
        (with(noop(), "tolerance", json!({"abs": 1})), "bit for bit"),
        (with(exec(), "tolerance", json!({"abs": 1})), "bit for bit"),
        (with(with(exec(), "clock", json!(true)), "verify", json!("adaptive")), "real time"),
        (with(map("none"), "tolerance", json!({"rel": -1})), "0 or more"),
    ] {
        let (status, code, message) = world.api.refused(job).await;
        assert_eq!((status.as_u16(), code.as_str()), (422, "bad_request"), "{message}");
        assert!(message.contains(part), "{message}");
    }
    let job = with(with(noop(), "priority", json!("interactive")), "weight", json!(7));
    let id = world.api.submit(job).await;
    let job = world.api.json(&format!("/api/v1/jobs/{id}")).await;
    assert_eq!((&job["priority"], &job["weight"]), (&json!("interactive"), &json!(7)));
    assert_eq!((&job["verify"], &job["signedBy"]), (&json!("none"), &Value::Null));
    world.stop().await;
}
