//! Server-sent events: first everything, then what changes.

use std::time::Duration;

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::crew::{Player, cells, rows, sim};
use crate::node::{Node, nothing};
use crate::world::{World, noop, problem};

struct Events {
    response: Response,
    buffer: String,
}

impl Events {
    async fn open(world: &World, path: &str) -> Events {
        let response = world.api.get(path).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, buffer: String::new() }
    }

    /// The next event, or `None` at the stream's end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.buffer = rest;
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim().to_owned()
                };
                if field("event:").is_empty() {
                    continue;
                }
                let data = serde_json::from_str(&field("data:")).unwrap();
                return Some((field("event:"), data));
            }
            let chunk = tokio::time::timeout(Duration::from_secs(5), self.response.chunk());
            let chunk = chunk.await.expect("no event within five seconds").unwrap()?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn wait_for(&mut self, name: &str, like: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (found, data) = self.next().await.expect("the stream ended");
            if found == name && like(&data) {
                return data;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_and_nodes_are_told_as_they_change() {
    let world = World::start();
    let first = world.api.submit(noop(10)).await;
    let mut events = Events::open(&world, "/api/v1/events").await;
    let (name, jobs) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &jobs[0]["id"]), ("jobs", &json!(first)));
    assert_eq!(events.next().await.unwrap(), ("nodes".into(), json!([])));
    let _node = Node::join(&world, "one").await.work(nothing);
    events.wait_for("jobs", |jobs| jobs[0]["state"] == "done").await;
    events.wait_for("nodes", |nodes| nodes[0]["name"] == "one").await;
    let second = world.api.submit(noop(10)).await;
    let jobs = events.wait_for("jobs", |jobs| jobs[0]["id"] == second).await;
    assert_eq!(jobs.as_array().unwrap().len(), 1, "only what changed: {jobs}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_jobs_events_end_with_the_job() {
    let world = World::start();
    let id = world.api.submit(noop(1000)).await;
    let mut events = Events::open(&world, &format!("/api/v1/jobs/{id}/events")).await;
    let (name, job) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &job["state"]), ("job", &json!("running")));
    let _node = Node::join(&world, "one").await.work(nothing);
    let job = events.wait_for("job", |job| job["state"] == "done").await;
    assert_eq!(job["itemsDone"], 1000);
    assert!(events.next().await.is_none());
    let missing = world.api.get("/api/v1/jobs/77/events").await;
    assert_eq!(problem(missing).await.1, "no_such_job");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiles_are_told_once_each() {
    let world = World::start();
    let job =
        json!({"kind": "render", "wgsl": "x", "width": 64, "height": 64, "tile": 8, "unit": 4});
    let id = world.api.submit(job).await;
    let mut events = Events::open(&world, &format!("/api/v1/jobs/{id}/events")).await;
    let _node = Node::join(&world, "one").await.work(|_, span| vec![0; 256 * span.len as usize]);
    let mut tiles = Vec::new();
    while let Some((name, data)) = events.next().await {
        if name == "tiles" {
            tiles.extend(data["tiles"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap()));
        }
    }
    tiles.sort_unstable();
    assert_eq!(tiles, (0..64).collect::<Vec<_>>());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_the_coordinator_stops() {
    let world = World::start();
    let mut events = Events::open(&world, "/api/v1/events").await;
    events.next().await.unwrap();
    let stopping = tokio::time::timeout(Duration::from_secs(4), world.stop());
    stopping.await.expect("stopping waits for an open stream");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simulation_is_told_step_by_step() {
    let world = World::start();
    let mut one = Player::join(&world, "one").await;
    let job = world.api.submit(sim(1)).await;
    let call = one.enlisted().await;
    let mut events = Events::open(&world, &format!("/api/v1/jobs/{job}/events")).await;
    for step in [1, 5] {
        one.step(&call, step);
        let told = events.wait_for("job", |job| job["sim"]["step"] == step).await;
        assert_eq!((&told["sim"]["steps"], &told["state"]), (&json!(6), &json!("running")));
    }
    let explained = world.api.json(&format!("/api/v1/jobs/{job}/explain")).await;
    assert_eq!(explained["lines"][0], format!("job {job} (sim) is running: 5 of 6 steps are done"));
    one.finish(&call, cells(rows(&call), 6));
    events.wait_for("job", |job| job["state"] == "done" && job["sim"]["step"] == 6).await;
    assert!(events.next().await.is_none());
    world.stop().await;
}
