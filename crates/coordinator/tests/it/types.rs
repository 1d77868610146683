//! What a kernel reads is told before anything is sent, and held against what an input is said to be.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{World, problem};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_is_described_without_being_run() {
    let world = World::start();
    let answer = world.api.post("/api/v1/kernels/check", json!({"wgsl": "input input"})).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let kernel: Value = answer.json().await.unwrap();
    let types = kernel["inputs"].as_array().unwrap().iter().map(|input| input["type"].clone());
    assert_eq!(types.collect::<Vec<_>>(), [json!("f32"), json!("f32")]);
    assert_eq!(kernel["output"]["scalar"], "f32");
    assert_eq!(kernel["output"]["stride"], 4);
    assert!(world.api.json("/api/v1/jobs").await["jobs"].as_array().unwrap().is_empty());

    let wrong = world.api.post("/api/v1/kernels/check", json!({"wgsl": "wrong"})).await;
    let (status, code, _) = problem(wrong).await;
    assert_eq!((status, code.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "bad_kernel"));
    let strange = world.api.post("/api/v1/kernels/check", json!({"wgls": ""})).await;
    let (status, _, message) = problem(strange).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(message.contains("wgls"), "{message}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_of_another_type_than_the_kernel_reads_is_refused() {
    let world = World::start();
    let blob = world.api.blob(vec![0; 64]).await;
    let job = |kind: Value| json!({"kind": "map", "wgsl": "input", "inputs": [{"blob": blob, "type": kind}]});
    for kind in ["f64", "u32", "float32", ""] {
        let (status, code, message) = world.api.refused(job(json!(kind))).await;
        assert_eq!((status, code.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "wrong_type"));
        let both =
            format!("the request says that input 0 holds {kind}, but the kernel reads array<f32>");
        assert!(message.starts_with(&both), "{message}");
    }
    for kind in [json!("f32"), Value::Null] {
        let taken = world.api.post("/api/v1/jobs", job(kind)).await;
        assert_eq!(taken.status(), StatusCode::CREATED);
    }
    world.stop().await;
}
