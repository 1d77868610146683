//! Devices that left: they keep their numbers and names, and are shown to whoever asks.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::crash::Process;
use crate::node::{Node, hello, nothing};
use crate::world::{Api, TempDir, World, eventually, noop, problem};

async fn all(api: &Api) -> (Vec<u64>, Vec<Value>) {
    let list = api.json("/api/v1/nodes?all=1").await;
    let here = list["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_u64().unwrap());
    (here.collect(), list["left"].as_array().unwrap().clone())
}

async fn left(api: &Api, count: usize) -> Vec<Value> {
    eventually(async || {
        let (_, left) = all(api).await;
        (left.len() == count).then_some(left)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_left_is_known_by_name_and_number_also_after_kill_9() {
    let dir = TempDir::new();
    let process = Process::start(dir.path());
    let api = &process.api;
    let one = Node::join_with(api, hello("one", &process.token)).await;
    let number = one.id.0;
    let working = one.work(nothing);
    let job = api.submit(json!({"kind": "noop", "items": 6, "unit": 2, "verify": "none"})).await;
    api.ended(job).await;
    // Nothing is asked for, nothing is told.
    assert_eq!(api.json("/api/v1/nodes").await["left"], json!([]));
    drop(working);
    let seen = left(api, 1).await.remove(0);
    assert_eq!((&seen["id"], &seen["name"]), (&json!(number), &json!("one")), "{seen}");
    assert_eq!((&seen["unitsDone"], &seen["trusted"]), (&json!(3), &json!(false)), "{seen}");
    assert!(seen["lastSeen"].as_u64() > Some(1_600_000_000_000), "{seen}");
    // A stranger that never did anything is not remembered, but its number is not given again.
    let idle = Node::join_with(api, hello("idle", &process.token)).await.id;
    process.kill();

    let process = Process::start(dir.path());
    let api = &process.api;
    assert_eq!(left(api, 1).await, [seen]);
    let lines = api.json(&format!("/api/v1/nodes/{number}/explain")).await["lines"].to_string();
    assert!(lines.contains("is one") && lines.contains("not connected"), "{lines}");
    assert!(lines.contains("3 units"), "{lines}");
    let other = Node::join_with(api, hello("other", &process.token)).await;
    assert!(other.id > idle, "{} was given before", other.id.0);
    let again = Node::join_with(api, hello("one", &process.token)).await;
    assert_eq!(again.id.0, number);
    let (here, left) = all(api).await;
    assert!(here.contains(&number) && left.is_empty(), "{here:?} {left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_of_ones_own_keeps_its_number_though_it_never_computed() {
    let dir = TempDir::new();
    let process = Process::start(dir.path());
    let _stranger = Node::join_with(&process.api, hello("stranger", &process.token)).await;
    let own = Node::join_with(&process.api, hello("own", &process.api.key)).await.id;
    process.kill();
    let process = Process::start(dir.path());
    let left = left(&process.api, 1).await.remove(0);
    assert_eq!((&left["name"], &left["trusted"]), (&json!("own"), &json!(true)), "{left}");
    let _first = Node::join_with(&process.api, hello("new", &process.token)).await;
    let again = Node::join_with(&process.api, hello("own", &process.api.key)).await;
    assert_eq!(again.id, own);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_nobody_remembers_is_not_explained() {
    let world = World::start();
    world.api.submit(noop(1)).await;
    let (status, ..) = problem(world.api.get("/api/v1/nodes/7/explain").await).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _, message) = problem(world.api.get("/api/v1/nodes?all=maybe").await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{message}");
    assert!(message.contains("maybe"), "{message}");
    world.stop().await;
}
