//! The coordinator dies at every point around every batch of facts of a checked job: what it acknowledged
//! is there afterwards, and the job ends with the right bytes. And it waits, well and clearly, for a
//! database that cannot be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shoal_coordinator::{Fault, Faults, Point};

use crate::crash::Process;
use crate::node::{Node, Working, hello, nothing, numbers};
use crate::world::{Api, TempDir, World, eventually, noop, problem};

const ITEMS: u64 = 800;
const UNIT: u64 = 100;
/// More points than the job has.
const MOST_POINTS: u64 = 500;
/// Runs in a row that were over before the point came.
const SURVIVALS: u32 = 3;

/// What a client was told before the coordinator died.
#[derive(Default)]
struct Told {
    job: Option<u64>,
    items_done: u64,
    done: bool,
}

async fn workers(api: &Api, token: &str) -> Vec<Working> {
    let mut workers = Vec::new();
    for name in ["one", "two", "three"] {
        if let Some(mut node) = Node::try_join(api, hello(name, token)).await {
            // One by one, so that every answer is a batch of its own.
            (node.together, node.rest) = (1, Duration::from_millis(5));
            workers.push(node.work(numbers));
        }
    }
    workers
}

async fn ask(api: &Api, method: Method, path: &str, body: Option<&Value>) -> Option<Value> {
    let request = api.request(method, path);
    let request = body.into_iter().fold(request, |request, body| request.json(body));
    let response = request.send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    response.json().await.ok()
}

/// With a key, so that the job is never taken twice.
async fn submit(api: &Api) -> Option<Value> {
    let request = api.request(Method::POST, "/api/v1/jobs").header("Idempotency-Key", "the job");
    let response = request.json(&job()).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    response.json().await.ok()
}

fn job() -> Value {
    json!({"kind": "map", "wgsl": "x", "items": ITEMS, "unit": UNIT, "verify": "quorum:2"})
}

/// Works with the coordinator until the job is done or the coordinator dead.
async fn drive(process: &mut Process) -> Told {
    let mut told = Told::default();
    let (api, token) = (process.api.clone(), process.token.clone());
    let _workers = workers(&api, &token).await;
    let Some(taken) = submit(&api).await else {
        return told;
    };
    let id = taken["id"].as_u64().unwrap();
    told.job = Some(id);
    while let Some(job) =
        ask(&api, Method::GET, &format!("/api/v1/jobs/{id}?wait=0.02"), None).await
    {
        told.items_done = job["itemsDone"].as_u64().unwrap();
        told.done = job["state"] == "done";
        if told.done {
            break;
        }
    }
    told
}

/// After a restart: everything that was told is so, and the job ends as it should.
async fn finish(process: &Process, told: &Told, point: u64) {
    let api = &process.api;
    let jobs = api.json("/api/v1/jobs").await["jobs"].as_array().unwrap().clone();
    let kept = jobs.first().and_then(|job| job["id"].as_u64());
    assert!(told.job.is_none() || kept == told.job, "point {point}: the job is lost");
    if let Some(job) = jobs.first() {
        let left = job["itemsDone"].as_u64().unwrap();
        assert!(left >= told.items_done, "point {point}: {left} of {}", told.items_done);
        assert!(!told.done || job["state"] == "done", "point {point}: it was done");
    }
    // Sent again, as a client does that got no answer.
    let id = submit(api).await.and_then(|job| job["id"].as_u64()).unwrap();
    assert!(kept.is_none() || kept == Some(id), "point {point}: taken twice");
    let _workers = workers(api, &process.token).await;
    let ended = api.ended(id).await;
    assert_eq!((&ended["state"], &ended["itemsDone"]), (&json!("done"), &json!(ITEMS)), "{ended}");
    let expected: Vec<u8> = (0..ITEMS).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert!(api.bytes(&format!("/api/v1/jobs/{id}/result")).await == expected, "point {point}");
    let receipt = api.json(&format!("/api/v1/jobs/{id}/receipt")).await;
    let units = receipt["receipt"]["units"].as_array().unwrap();
    assert_eq!(units.len() as u64, ITEMS / UNIT);
    for unit in units {
        assert_eq!((&unit["sure"], &unit["len"]), (&json!(true), &json!(UNIT)), "point {point}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_point_it_loses_nothing_it_said() {
    let (mut deaths, mut survivals) = (0, 0);
    for point in 0..MOST_POINTS {
        let dir = TempDir::new();
        let mut process = Process::start_dying(dir.path(), point);
        let told = drive(&mut process).await;
        let survived = told.done && process.is_alive();
        process.kill();
        let process = Process::start(dir.path());
        finish(&process, &told, point).await;
        if !survived {
            deaths += 1;
            survivals = 0;
            continue;
        }
        // How answers fall into batches differs from run to run: a longer one may follow.
        survivals += 1;
        if survivals == SURVIVALS {
            break;
        }
    }
    // Three points each for the start, the submission and at least some of the answers.
    assert!((12..MOST_POINTS).contains(&deaths), "died {deaths} times");
}

/// A test that fails must not leave the coordinator waiting for ever.
struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_busy_is_waited_for_and_told() {
    let busy = Busy(Arc::new(AtomicBool::new(false)));
    let is_busy = Arc::clone(&busy.0);
    let faults = Faults::new(move |point| match point {
        Point::Decided if is_busy.load(Ordering::Relaxed) => Fault::Busy,
        Point::Decided | Point::Written | Point::Told => Fault::None,
    });
    let world = World::start_with(TempDir::new(), faults);
    let _node = Node::join(&world, "one").await.work(nothing);
    busy.0.store(true, Ordering::Relaxed);
    let api = world.api.clone();
    let waiting = tokio::spawn(async move { api.post("/api/v1/jobs?wait=20", noop(3)).await });
    let words = eventually(async || {
        let health = world.api.open(Method::GET, "/healthz").send().await.unwrap();
        let is_bad = health.status() == StatusCode::SERVICE_UNAVAILABLE;
        let text = health.text().await.unwrap();
        is_bad.then_some(text)
    })
    .await;
    assert!(words.starts_with("degraded: ") && words.contains("database is locked"), "{words}");
    let (status, code, message) = world.api.refused(noop(1)).await;
    assert_eq!((status.as_u16(), code.as_str()), (503, "store_stuck"), "{message}");
    assert!(message.contains("what it has is kept"), "{message}");
    assert!(!waiting.is_finished(), "nothing is acknowledged that is not durable");
    busy.0.store(false, Ordering::Relaxed);
    let job: Value = waiting.await.unwrap().json().await.unwrap();
    assert_eq!(job["state"], "done", "{job}");
    let health = world.api.open(Method::GET, "/healthz").send().await.unwrap();
    assert_eq!(health.text().await.unwrap(), "ok");
    let again = world.api.post("/api/v1/jobs?wait=20", noop(1)).await;
    assert_eq!(again.status(), StatusCode::CREATED);
    let world = world.restart().await;
    assert_eq!(world.api.json("/api/v1/jobs").await["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(problem(world.api.get("/api/v1/jobs/3").await).await.1, "no_such_job");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stays_busy_keeps_nobody_from_stopping() {
    let busy = Arc::new(AtomicBool::new(false));
    let is_busy = Arc::clone(&busy);
    let faults = Faults::new(move |point| match point {
        Point::Decided if is_busy.load(Ordering::Relaxed) => Fault::Busy,
        Point::Decided | Point::Written | Point::Told => Fault::None,
    });
    let world = World::start_with(TempDir::new(), faults);
    world.api.submit(noop(1)).await;
    busy.store(true, Ordering::Relaxed);
    let api = world.api.clone();
    let waiting = tokio::spawn(async move { api.post("/api/v1/jobs", noop(2)).await.status() });
    eventually(async || {
        let health = world.api.open(Method::GET, "/healthz").send().await.unwrap();
        (health.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await;
    let (status, code, message) = problem(world.api.get("/metrics").await).await;
    assert_eq!((status.as_u16(), code.as_str()), (503, "busy"), "{message}");
    assert!(message.contains("database is locked"), "{message}");
    let dir = world.stop().await;
    // The driver's thread is over, so it holds the faults no more.
    assert_eq!(Arc::strong_count(&busy), 1);
    assert_ne!(waiting.await.unwrap(), StatusCode::CREATED);
    let world = World::start_in(dir);
    assert_eq!(world.api.json("/api/v1/jobs").await["jobs"].as_array().unwrap().len(), 1);
    world.stop().await;
}
