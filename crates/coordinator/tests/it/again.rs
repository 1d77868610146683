//! Requests that are sent again with the same key, because their answers were lost.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::crash::Process;
use crate::node::{Node, nothing};
use crate::world::{Api, TempDir, World, noop, problem};

async fn post(api: &Api, path: &str, key: &str, body: &Value) -> Response {
    let request = api.request(Method::POST, path).header("Idempotency-Key", key);
    request.json(body).send().await.unwrap()
}

async fn number(response: Response) -> u64 {
    let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
    assert_eq!(status, StatusCode::CREATED, "{body}");
    body["id"].as_u64().or(body["jobId"].as_u64()).unwrap()
}

async fn count(api: &Api) -> usize {
    api.json("/api/v1/jobs").await["jobs"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_key_gives_the_same_job() {
    let world = World::start();
    let first = number(post(&world.api, "/api/v1/jobs", "a", &noop(3)).await).await;
    assert_eq!(number(post(&world.api, "/api/v1/jobs", "a", &noop(3)).await).await, first);
    assert_ne!(number(post(&world.api, "/api/v1/jobs", "b", &noop(3)).await).await, first);
    assert_ne!(number(world.api.post("/api/v1/jobs", noop(3)).await).await, first);
    assert_eq!(count(&world.api).await, 3);

    // Its end can be waited for the second time as well, also when it is over.
    let _node = Node::join(&world, "one").await.work(nothing);
    for _ in 0..2 {
        let again = post(&world.api, "/api/v1/jobs?wait=20", "a", &noop(3)).await;
        let again: Value = again.json().await.unwrap();
        assert_eq!((&again["id"], &again["state"]), (&json!(first), &json!("done")), "{again}");
    }

    // The one-line job knows keys too.
    let matmul = json!({"computeType": "matmul", "iterations": 1, "tensorSize": 8});
    let small = number(post(&world.api, "/submit-job", "small", &matmul).await).await;
    assert_eq!(number(post(&world.api, "/submit-job", "small", &matmul).await).await, small);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_with_one_key_make_one_job() {
    let world = World::start();
    let asked = (0..16).map(|_| {
        let api = world.api.clone();
        tokio::spawn(async move { number(post(&api, "/api/v1/jobs", "k", &noop(5)).await).await })
    });
    let mut jobs = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        jobs.push(asked.await.unwrap());
    }
    assert!(jobs.iter().all(|job| *job == jobs[0]), "{jobs:?}");
    assert_eq!(count(&world.api).await, 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_with_another_request_is_refused_and_a_wrong_key_too() {
    let world = World::start();
    let job = number(post(&world.api, "/api/v1/jobs", "a", &noop(3)).await).await;
    let answer = post(&world.api, "/api/v1/jobs", "a", &noop(4)).await;
    let (status, code, message) = problem(answer).await;
    assert_eq!((status.as_u16(), code.as_str()), (422, "key_taken"), "{message}");
    assert!(message.contains(&format!("job {job}")), "{message}");
    for wrong in ["", &"x".repeat(256)] {
        let answer = post(&world.api, "/api/v1/jobs", wrong, &noop(4)).await;
        let (status, code, message) = problem(answer).await;
        assert_eq!((status.as_u16(), code.as_str()), (400, "bad_request"), "{message}");
        assert!(message.contains("Idempotency-Key"), "{message}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_free_again_when_its_job_is_removed() {
    let world = World::start();
    let first = number(post(&world.api, "/api/v1/jobs", "a", &noop(3)).await).await;
    // The first time it is cancelled, the second time removed.
    for _ in 0..2 {
        let path = format!("/api/v1/jobs/{first}");
        world.api.request(Method::DELETE, &path).send().await.unwrap();
    }
    let second = number(post(&world.api, "/api/v1/jobs", "a", &noop(4)).await).await;
    assert_ne!(second, first);
    let world = world.restart().await;
    assert_eq!(number(post(&world.api, "/api/v1/jobs", "a", &noop(4)).await).await, second);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_outlive_kill_9() {
    let dir = TempDir::new();
    let process = Process::start(dir.path());
    let first = number(post(&process.api, "/api/v1/jobs", "a", &noop(3)).await).await;
    process.kill();
    let process = Process::start(dir.path());
    assert_eq!(number(post(&process.api, "/api/v1/jobs", "a", &noop(3)).await).await, first);
    assert_eq!(count(&process.api).await, 1);
}
