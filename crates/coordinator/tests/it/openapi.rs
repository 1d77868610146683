//! The document is served, complete, and true: every route is in it and everything in it is a route.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Map, Value};
use shoal_api::schema::{answers, requests};

use crate::world::World;

/// All that the coordinator serves. A new route belongs here, so that forgetting its description shows.
const ROUTES: [(&str, &str); 63] = [
    ("get", "/api/v1/services"),
    ("post", "/api/v1/services"),
    ("post", "/api/v1/services/{name}"),
    ("delete", "/api/v1/services/{name}"),
    ("get", "/"),
    ("get", "/api/v1/blobs/{hash}"),
    ("head", "/api/v1/blobs/{hash}"),
    ("put", "/api/v1/blobs/{hash}"),
    ("post", "/api/v1/blobs"),
    ("get", "/api/v1/events"),
    ("get", "/api/v1/jobs"),
    ("post", "/api/v1/jobs"),
    ("delete", "/api/v1/jobs/{id}"),
    ("get", "/api/v1/jobs/{id}"),
    ("post", "/api/v1/jobs/{id}/cancel"),
    ("get", "/api/v1/jobs/{id}/ends"),
    ("get", "/api/v1/jobs/{id}/events"),
    ("get", "/api/v1/jobs/{id}/explain"),
    ("get", "/api/v1/jobs/{id}/field"),
    ("get", "/api/v1/jobs/{id}/inputs"),
    ("get", "/api/v1/jobs/{id}/picture.png"),
    ("post", "/api/v1/jobs/{id}/poke"),
    ("get", "/api/v1/jobs/{id}/receipt"),
    ("get", "/api/v1/jobs/{id}/result"),
    ("get", "/api/v1/jobs/{id}/result.npy"),
    ("get", "/api/v1/jobs/{id}/result/items/{item}"),
    ("get", "/api/v1/jobs/{id}/tiles/{tile}"),
    ("get", "/api/v1/jobs/{id}/units"),
    ("post", "/api/v1/kernels/check"),
    ("get", "/api/v1/join.svg"),
    ("get", "/api/v1/nodes"),
    ("get", "/api/v1/nodes/{id}/explain"),
    ("get", "/api/v1/openapi.json"),
    ("get", "/api/v1/pool"),
    ("get", "/assets/{name}"),
    ("get", "/healthz"),
    ("get", "/jobs/{id}"),
    ("get", "/join"),
    ("get", "/metrics"),
    ("get", "/node/blobs/{hash}"),
    ("get", "/node/blobs/{hash}/pieces"),
    ("get", "/node/socket"),
    ("get", "/playground"),
    ("get", "/chat"),
    ("get", "/classify"),
    ("get", "/detect"),
    ("post", "/v1/chat/completions"),
    ("post", "/v1/completions"),
    ("get", "/v1/models"),
    ("get", "/v1/models/{name}"),
    ("post", "/submit-job"),
    ("get", "/v2"),
    ("get", "/v2/health/live"),
    ("get", "/v2/health/ready"),
    ("get", "/v2/models/{name}"),
    ("get", "/v2/models/{name}/ready"),
    ("get", "/v2/models/{name}/versions/{version}"),
    ("get", "/v2/models/{name}/versions/{version}/ready"),
    ("post", "/v2/models/{name}/infer"),
    ("post", "/v2/models/{name}/versions/{version}/infer"),
    ("put", "/node/kept/{crew}/{epoch}"),
    ("put", "/node/results/{job}/{attempt}"),
    ("put", "/node/view/{crew}"),
];

async fn document(world: &World) -> Value {
    let response = world.api.open(Method::GET, "/api/v1/openapi.json").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

fn described(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(|method| (method.clone(), path.clone()))
    });
    all.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_is_described_and_every_description_is_a_route() {
    let world = World::start();
    let described = described(&document(&world).await);
    let expected: BTreeSet<_> =
        ROUTES.iter().map(|(method, path)| (method.to_string(), path.to_string())).collect();
    assert_eq!(described, expected);
    for (method, path) in &described {
        let method: Method = method.to_uppercase().parse().unwrap();
        // With values that exist nowhere: whatever comes back must be that route's own words.
        let url = path
            .replace("{hash}", &"0".repeat(64))
            .replace("{id}", "77")
            .replace("{name}", "none.js")
            .replace(['{', '}'], "")
            .replace("item/item", "items/1");
        let response = world.api.request(method.clone(), &url).send().await.unwrap();
        let status = response.status();
        assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        let text =
            if path.ends_with("events") { String::new() } else { response.text().await.unwrap() };
        let nowhere = text.contains("no_such_path") && !path.starts_with("/assets");
        assert!(!nowhere, "{method} {path} is described, but is no route");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_description_says_what_comes_back_and_who_may_ask() {
    let world = World::start();
    let document = document(&world).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    for (method, path) in described(&document) {
        let operation = &document["paths"][&path][&method];
        assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{method} {path}");
        assert!(!operation["responses"].as_object().unwrap().is_empty(), "{method} {path}");
        let guarded = path.starts_with("/api/v1/") && !path.ends_with("openapi.json")
            || path == "/submit-job";
        if guarded {
            assert!(operation["security"][0]["key"].is_array(), "{method} {path}");
            assert!(operation["responses"]["401"].is_object(), "{method} {path}");
        }
    }
    for schema in ["JobJson", "JobRequest", "NodeJson", "ErrorJson", "BlobJson"] {
        assert!(document["components"]["schemas"][schema].is_object(), "{schema}");
    }
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"][name].is_object(), "{name} is not described");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_types_of_the_sdk_are_made_from_all_that_is_described() {
    let world = World::start();
    let document = document(&world).await;
    let described = document["components"]["schemas"].as_object().unwrap();
    let mut made = serde_json::to_value(requests().schemas).unwrap();
    let answers = serde_json::to_value(answers().schemas).unwrap();
    made.as_object_mut().unwrap().extend(answers.as_object().unwrap().clone());
    let made = made.as_object().unwrap();
    let names = |schemas: &Map<String, Value>| schemas.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(described), names(made), "crates/api/src/schema.rs lists them");
    for (name, schema) in described {
        assert_eq!(schema, &made[name], "{name}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strange_paths_and_methods_are_told_apart() {
    let world = World::start();
    let strange = world.api.get("/api/v1/nothing").await;
    assert_eq!(crate::world::problem(strange).await.1, "no_such_path");
    let method = world.api.request(Method::PATCH, "/api/v1/jobs").send().await.unwrap();
    assert_eq!(method.status(), StatusCode::METHOD_NOT_ALLOWED);
    world.stop().await;
}
