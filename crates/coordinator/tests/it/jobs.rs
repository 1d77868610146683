//! Jobs from submission to result, and what is refused on the way.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shoal_protocol::{Failure, UnitOutput};

use crate::node::{Node, nothing, numbers};
use crate::world::{World, eventually, noop, problem};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_job_is_answered_when_it_has_ended() {
    let world = World::start();
    let _node = Node::join(&world, "one").await.work(nothing);
    let response = world.api.post("/api/v1/jobs?wait=10", noop(100)).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let job: Value = response.json().await.unwrap();
    assert_eq!((&job["state"], &job["itemsDone"]), (&json!("done"), &json!(100)), "{job}");
    assert_eq!(job["kind"], "noop");
    assert_eq!(job["shares"], json!([{"node": 1, "name": "one", "items": 100, "units": 100}]));
    assert!(job["ended"].as_u64() >= job["submitted"].as_u64());
    assert_eq!(world.api.bytes("/api/v1/jobs/1/result").await, b"");
    let listed = world.api.json("/api/v1/jobs").await;
    assert_eq!(listed["jobs"][0]["id"], 1);
    let units = world.api.json("/api/v1/jobs/1/units").await;
    let all = json!({"units": [{"start": 0, "len": 100, "state": "done", "node": 1}], "truncated": false});
    assert_eq!(units, all);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_when_its_time_is_over() {
    let world = World::start();
    let response = world.api.post("/api/v1/jobs?wait=0.1", noop(1)).await;
    let job: Value = response.json().await.unwrap();
    assert_eq!((&job["id"], &job["state"]), (&json!(1), &json!("running")));
    assert_eq!(job["ableNodes"], 0);
    let job = world.api.json("/api/v1/jobs/1?wait=0.1").await;
    assert_eq!(job["state"], "running");
    let odd = world.api.get("/api/v1/jobs/1?wait=long").await;
    assert_eq!(problem(odd).await.0, StatusCode::BAD_REQUEST);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_comes_back_in_order_from_two_nodes() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(numbers);
    let _two = Node::join(&world, "two").await.work(numbers);
    // Units of 3000 floats ride inline, of 10000 by HTTP; the last is smaller.
    for (unit, items) in [(3_000, 100_000_u64), (10_000, 1_000_007)] {
        let input = world.api.blob(vec![0; items as usize * 4]).await;
        let job =
            json!({"kind": "map", "wgsl": "input", "inputs": [{"blob": input}], "unit": unit});
        let id = world.api.submit(job).await;
        let job = world.api.ended(id).await;
        assert_eq!(job["state"], "done", "{job}");
        assert_eq!(
            job["result"],
            json!({"form": "items", "bytes": items * 4, "itemBytes": 4, "bytesLeft": 0})
        );
        assert_eq!(job["output"], json!({"type": "f32", "perItem": 1}));
        let expected: Vec<u8> = (0..items).flat_map(|i| (i as f32).to_le_bytes()).collect();
        assert!(world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await == expected);
        let part = world.api.request(Method::GET, &format!("/api/v1/jobs/{id}/result"));
        let part = part.header("range", "bytes=11998-12005").send().await.unwrap();
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(part.bytes().await.unwrap(), expected[11_998..12_006]);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_stops_and_a_removed_one_is_gone() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let items = 8_u64;
    let job = json!({"kind": "map", "wgsl": "x", "items": items, "unit": 1});
    let id = world.api.submit(job).await;
    let lease = node.lent().await;
    node.inline(lease.attempt, [1, 2, 3, 4]).await;
    let path = format!("/api/v1/jobs/{id}");
    eventually(async || (world.api.json(&path).await["itemsDone"] == 1).then_some(())).await;
    let early = world.api.get(&format!("{path}/result")).await;
    assert_eq!(
        problem(early).await,
        (
            StatusCode::CONFLICT,
            "not_done".into(),
            format!("job {id} is running: only a job that is done has a result"),
        )
    );
    let response = world.api.request(Method::POST, &format!("{path}/cancel")).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["state"], "cancelled");
    assert!(world.dir.path().join(format!("results/{id}.log")).exists());
    let removed = world.api.request(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(removed.status(), StatusCode::OK);
    assert_eq!(problem(world.api.get(&path).await).await.1, "no_such_job");
    assert!(!world.dir.path().join(format!("results/{id}.log")).exists());
    let id = world.api.submit(noop(1_000_000)).await;
    let response = world.api.request(Method::DELETE, &format!("/api/v1/jobs/{id}")).send().await;
    assert_eq!(response.unwrap().json::<Value>().await.unwrap()["state"], "cancelled");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_computed_is_refused_with_the_reason() {
    let world = World::start();
    let ten = world.api.blob(vec![0; 10]).await;
    let eight = world.api.blob(vec![0; 8]).await;
    let four = world.api.blob(vec![0; 4]).await;
    let empty = world.api.blob(Vec::new()).await;
    let missing = "ab".repeat(32);
    let map = |inputs: Value| json!({"kind": "map", "wgsl": "input", "inputs": inputs});
    let cases = [
        (json!({"kind": "map", "wgsl": "wrong"}), "bad_kernel", "column 5"),
        (json!({"kind": "map", "wgsl": "x".repeat(300_000)}), "bad_kernel", "262144"),
        (map(json!([{"blob": ten}])), "not_divisible", "2 bytes are left over"),
        (map(json!([{"blob": eight, "perItem": 3}])), "not_divisible", "not a multiple of 12"),
        (map(json!([{"blob": empty}])), "empty_input", "empty"),
        (map(json!([{"blob": missing}])), "blob_missing", "upload it first"),
        (map(json!([{"blob": "abc"}])), "bad_request", "not a BLAKE3 hash"),
        (map(json!([])), "input_count", "reads 1 arrays (f32), but the job has 0 inputs"),
        (map(json!([{"blob": eight, "whole": true}])), "items_missing", "\"items\""),
        (
            json!({"kind": "map", "wgsl": "input input", "inputs": [{"blob": eight}, {"blob": four}]}),
            "items_differ",
            "input 0 has 2 items, but input 1 has 1",
        ),
        (json!({"kind": "noop", "items": 0}), "empty_input", "empty"),
        (json!({"kind": "noop", "items": 3_000_000}), "too_many_units", "3000000"),
        (json!({"kind": "noop"}), "bad_request", "items"),
        (json!({"kind": "noop", "items": 1, "unit": 0}), "bad_request", "unit"),
        (json!({"kind": "fly"}), "bad_request", "fly"),
        (json!({"kind": "noop", "items": 1, "limits": {"seconds": -1}}), "bad_request", "seconds"),
        (json!({"kind": "render", "wgsl": "x", "width": 0, "height": 1}), "bad_request", "0 x 1"),
        (
            json!({"kind": "render", "wgsl": "x", "width": 9, "height": 9, "tile": 5000}),
            "bad_request",
            "5000",
        ),
        (json!({"kind": "exec", "module": four}), "bad_module", "WebAssembly"),
        (json!({"kind": "exec", "module": missing}), "blob_missing", "module"),
    ];
    for (job, code, part) in cases {
        let (status, found, message) = world.api.refused(job.clone()).await;
        assert_eq!(found, code, "{job}: {message}");
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(message.contains(part), "{job}: {message}");
    }
    let garbled = world.api.request(Method::POST, "/api/v1/jobs").body("{").send().await.unwrap();
    assert_eq!(problem(garbled).await.1, "bad_json");
    let jobs = world.api.json("/api/v1/jobs").await;
    assert_eq!(jobs["jobs"], json!([]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_no_node_can_run_is_told_what_the_pool_offers() {
    let world = World::start();
    let _node = Node::join(&world, "one").await;
    let whole = world.api.blob(vec![0; 4 << 20]).await;
    let inputs = json!([{"blob": whole, "perItem": 1 << 20}]);
    let fine = json!({"kind": "map", "wgsl": "input", "inputs": inputs});
    world.api.submit(fine).await;
    let huge = world.api.blob(vec![0; 129 << 20]).await;
    let inputs = json!([{"blob": huge, "whole": true}]);
    let job = json!({"kind": "map", "wgsl": "input", "inputs": inputs, "items": 5});
    let (status, code, message) = world.api.refused(job).await;
    assert_eq!((status, code.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "no_node_can"));
    assert!(message.contains("129 MiB") && message.contains("128 MiB"), "{message}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_fails_tells_the_nodes_words() {
    let world = World::start();
    let mut one = Node::join(&world, "one").await;
    let mut two = Node::join(&world, "two").await;
    let job = json!({"kind": "map", "wgsl": "x", "items": 1});
    let id = world.api.submit(job).await;
    let failure = Failure::Kernel { message: "no such thing".into() };
    let working = async |node: &mut Node| loop {
        let lease = node.lent().await;
        node.fail(lease.attempt, failure.clone()).await;
    };
    let job = tokio::select! {
        job = world.api.ended(id) => job,
        () = working(&mut one) => unreachable!(),
        () = working(&mut two) => unreachable!(),
    };
    assert_eq!(job["state"], "failed");
    let message = job["error"]["message"].as_str().unwrap();
    assert!(message.contains("the kernel was refused: no such thing"), "{message}");
    assert!(message.contains("one") && message.contains("two"), "{message}");
    let result = world.api.get(&format!("/api/v1/jobs/{id}/result")).await;
    assert!(problem(result).await.2.contains("failed"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_the_wrong_size_or_hash_are_not_taken() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let job = json!({"kind": "map", "wgsl": "x", "items": 40_000, "unit": 10_000});
    let id = world.api.submit(job).await;
    let lease = node.lent().await;
    let short = node.put(lease, vec![0; 39_999]).await;
    assert_eq!(problem(short).await.1, "wrong_size");
    let stale = shoal_protocol::Lease { attempt: shoal_protocol::Attempt(7), ..lease };
    let stale = node.put(stale, vec![0; 40_000]).await;
    assert_eq!(
        problem(stale).await,
        (
            StatusCode::CONFLICT,
            "not_lent".into(),
            "this unit went to another device: its result is no longer needed".into(),
        )
    );
    let path = format!("/node/results/{}/{}", lease.job, lease.attempt);
    let put = world.api.open(Method::PUT, &path).bearer_auth(&node.session);
    let put = put.header("x-shoal-hash", "00".repeat(32)).body(vec![0; 40_000]);
    assert_eq!(problem(put.send().await.unwrap()).await.1, "hash_mismatch");
    // A wrong inline answer counts as a failure, and the unit is lent again.
    node.inline(lease.attempt, [1, 2, 3]).await;
    let path = format!("/api/v1/jobs/{id}");
    eventually(async || (world.api.json(&path).await["retries"] == 1).then_some(())).await;
    let mut two = Node::join(&world, "two").await;
    drop(node);
    for _ in 0..4 {
        let lease = two.lent().await;
        two.store(lease, numbers(&two.jobs[&lease.job].work, lease.span)).await;
    }
    assert_eq!(world.api.ended(id).await["state"], "done");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_answers_only_for_what_it_was_lent() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let id = world
        .api
        .submit(json!({"kind": "map", "wgsl": "x", "items": 1000, "unit": 1000, "verify": "none"}))
        .await;
    let lease = node.lent().await;
    let mut thief = Node::join(&world, "two").await;
    let (right, wrong) = (numbers(&node.jobs[&lease.job].work, lease.span), vec![7; 4000]);
    assert_eq!(problem(thief.put(lease, wrong.clone()).await).await.1, "bad_session");
    assert_eq!(node.put(lease, right.clone()).await.status(), StatusCode::OK);
    // The first result stays, whoever says what; a sender that did not hear so may ask again.
    assert_eq!(problem(thief.put(lease, wrong.clone()).await).await.1, "bad_session");
    let hash = shoal_protocol::Hash(*blake3::hash(&wrong).as_bytes());
    thief.done(lease.attempt, UnitOutput::Stored { hash, size: 4000 }).await;
    thief.inline(lease.attempt, wrong).await;
    assert_eq!(problem(node.put(lease, vec![7; 400]).await).await.1, "already_stored");
    node.store(lease, right.clone()).await;
    let job = world.api.ended(id).await;
    assert_eq!((&job["state"], &job["retries"]), (&json!("done"), &json!(0)), "{job}");
    assert!(world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await == right);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newcomers_job_runs_with_one_line() {
    let world = World::start();
    let body = json!({"computeType": "matmul", "iterations": 4, "tensorSize": 16});
    let response = world.api.post("/submit-job", body.clone()).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer, json!({"jobId": 1, "status": "submitted"}));
    let _node = Node::join(&world, "one").await.work(numbers);
    let answer: Value = world.api.post("/submit-job?wait=10", body).await.json().await.unwrap();
    assert_eq!(answer, json!({"jobId": 2, "status": "done"}));
    let strange = world.api.post("/submit-job", json!({"computeType": "dance"})).await;
    assert!(problem(strange).await.2.contains("matmul"));
    let large = world.api.post("/submit-job", json!({"tensorSize": 100_000})).await;
    assert!(problem(large).await.2.contains("4096"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_and_what_they_offer_are_shown() {
    let world = World::start();
    let node = Node::join(&world, "one").await;
    let nodes = world.api.json("/api/v1/nodes").await;
    let shown = &nodes["nodes"][0];
    assert_eq!((&shown["name"], &shown["kind"]), (&json!("one"), &json!("native")));
    assert_eq!(shown["gpu"]["name"], "Test GPU");
    let pool = world.api.json("/api/v1/pool").await;
    assert_eq!(pool["offers"]["largestBuffer"], 128 << 20);
    assert_eq!(pool["offers"]["cpuSlots"], 2);
    assert!(pool["join"].as_str().unwrap().contains("/join#"));
    drop(node);
    let gone = async || (world.api.json("/api/v1/pool").await["nodes"] == 0).then_some(());
    tokio::time::timeout(Duration::from_secs(2), eventually(gone)).await.unwrap();
    world.stop().await;
}
