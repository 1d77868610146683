//! More of everything than can be served at once: what waits is bounded, and nobody is forgotten.

use std::time::Instant;

use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::json;
use shoal_kinds::Kind;
use shoal_protocol::Span;
use shoal_protocol::limit::MAX_OPEN_JOBS;

use crate::node::{Node, nothing, numbers};
use crate::world::{World, eventually, noop, problem};

fn either(work: &Kind, span: Span) -> Vec<u8> {
    if matches!(work, Kind::Noop(_)) { nothing(work, span) } else { numbers(work, span) }
}

async fn crowd(world: &World, count: usize) -> Vec<Node> {
    let names: Vec<String> = (0..count).map(|number| format!("node {number}")).collect();
    join_all(names.iter().map(|name| Node::join(world, name))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_nodes_join_at_once_and_all_get_work() {
    let world = World::start();
    let mut nodes = crowd(&world, 300).await;
    assert_eq!(world.api.json("/api/v1/pool").await["nodes"], 300);
    let job = json!({"kind": "map", "wgsl": "x", "items": 3000, "unit": 1, "verify": "none"});
    world.api.submit(job).await;
    for node in &mut nodes {
        node.lent().await;
    }
    drop(nodes);
    let gone = async || (world.api.json("/api/v1/pool").await["nodes"] == 0).then_some(());
    eventually(gone).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn joins_per_second() {
    let world = World::start();
    let began = Instant::now();
    let nodes = crowd(&world, 5_000).await;
    eprintln!("{:.0} joins/s", nodes.len() as f64 / began.elapsed().as_secs_f64());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submitter_faster_than_the_pool_is_told_to_wait() {
    let world = World::start();
    let submit = async || world.api.post("/api/v1/jobs", noop(1)).await;
    for _ in 0..MAX_OPEN_JOBS / 50 {
        for response in join_all((0..50).map(|_| submit())).await {
            assert_eq!(response.status(), StatusCode::CREATED);
        }
    }
    let refused = submit().await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let (status, code, _) = problem(refused).await;
    assert_eq!((status, code.as_str()), (StatusCode::TOO_MANY_REQUESTS, "too_many_jobs"));
    let _node = Node::join(&world, "one").await.work(nothing);
    eventually(async || (submit().await.status() == StatusCode::CREATED).then_some(())).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_holds_up_nobody_and_gets_everything() {
    let world = World::start();
    let _node = Node::join(&world, "one").await.work(either);
    let items = 4_000_000_u64;
    let big =
        json!({"kind": "map", "wgsl": "x", "items": items, "unit": 1 << 20, "verify": "none"});
    let id = world.api.submit(big).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    // Opened and not read: the kernel's buffers fill, and nothing is read ahead of them.
    let mut slow = world.api.get(&format!("/api/v1/jobs/{id}/result")).await;
    let mut events = world.api.get("/api/v1/events").await;
    for _ in 0..20 {
        let job = world.api.submit(noop(100)).await;
        assert_eq!(world.api.ended(job).await["state"], "done");
    }
    let mut read = 0;
    while let Some(chunk) = slow.chunk().await.unwrap() {
        read += chunk.len() as u64;
    }
    assert_eq!(read, items * 4);
    assert!(events.chunk().await.unwrap().is_some());
    world.stop().await;
}
