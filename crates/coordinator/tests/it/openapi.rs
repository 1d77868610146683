//! The document is served, complete, and true: every route is in it and everything in it is a route.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use shoal_api::schema::{answers, requests};

use crate::world::World;

/// All that the coordinator serves. A new route belongs here, so that forgetting its description shows.
const ROUTES: [(&str, &str); 76] = [
    ("get", "/api/v1/services"),
    ("get", "/api/v1/services/{name}/explain"),
    ("post", "/api/v1/services"),
    ("post", "/api/v1/services/{name}"),
    ("delete", "/api/v1/services/{name}"),
    ("get", "/"),
    ("get", "/api/v1/blobs/{hash}"),
    ("head", "/api/v1/blobs/{hash}"),
    ("put", "/api/v1/blobs/{hash}"),
    ("post", "/api/v1/blobs"),
    ("put", "/api/v1/blobs/{hash}/draft"),
    ("post", "/api/v1/drafts"),
    ("get", "/api/v1/events"),
    ("get", "/api/v1/jobs"),
    ("post", "/api/v1/jobs"),
    ("delete", "/api/v1/jobs/{id}"),
    ("get", "/api/v1/jobs/{id}"),
    ("post", "/api/v1/jobs/{id}/cancel"),
    ("get", "/api/v1/jobs/{id}/ends"),
    ("get", "/api/v1/jobs/{id}/events"),
    ("get", "/api/v1/jobs/{id}/explain"),
    ("get", "/api/v1/jobs/{id}/failures"),
    ("get", "/api/v1/jobs/{id}/left"),
    ("get", "/api/v1/jobs/{id}/result/items/{item}/files"),
    ("get", "/api/v1/jobs/{id}/missing"),
    ("get", "/api/v1/jobs/{id}/field"),
    ("get", "/api/v1/jobs/{id}/inputs"),
    ("get", "/api/v1/jobs/{id}/picture.png"),
    ("post", "/api/v1/jobs/{id}/poke"),
    ("get", "/api/v1/jobs/{id}/receipt"),
    ("get", "/api/v1/jobs/{id}/result"),
    ("get", "/api/v1/jobs/{id}/result/file"),
    ("get", "/api/v1/jobs/{id}/result.npy"),
    ("get", "/api/v1/jobs/{id}/answers"),
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
    ("get", "/node/blobs/{hash}/file"),
    ("get", "/node/blobs/{hash}/pieces"),
    ("get", "/node/socket"),
    ("get", "/playground"),
    ("get", "/chat"),
    ("get", "/classify"),
    ("get", "/detect"),
    ("post", "/v1/chat/completions"),
    ("post", "/v1/completions"),
    ("post", "/v1/embeddings"),
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
    ("post", "/node/results/{job}/{attempt}/place"),
    ("put", "/node/results/{job}/{attempt}/place"),
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
            let takes = !operation["parameters"].is_null() || !operation["requestBody"].is_null();
            let says = operation["responses"]["400"]["content"]["application/json"].is_object();
            assert!(!takes || says, "{method} {path} takes something and does not say 400");
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
        // Put together for the document only: TypeScript says it in parts.
        if !["JobRequest", "ServiceRequest", "WorkRequest"].contains(&name.as_str()) {
            assert_eq!(schema, &made[name], "{name}");
        }
    }
    world.stop().await;
}

/// Whether an object has the fields of a schema and no others; deeper down is not looked.
fn fits(schema: &Value, object: &Map<String, Value>) -> bool {
    let (properties, required) = (&schema["properties"], schema["required"].as_array());
    let kind = &properties["kind"]["enum"][0];
    schema["additionalProperties"] == false
        && object.keys().all(|field| properties[field].is_object())
        && required.into_iter().flatten().all(|field| object.contains_key(field.as_str().unwrap()))
        && object.get("kind") == Some(kind)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_a_request_of_exactly_one_kind() {
    let world = World::start();
    let document = document(&world).await;
    let kinds = document["components"]["schemas"]["JobRequest"]["oneOf"].as_array().unwrap();
    let body = &document["paths"]["/api/v1/jobs"]["post"]["requestBody"];
    let examples = body["content"]["application/json"]["examples"].as_object().unwrap();
    assert!(examples.len() >= 3, "{examples:?}");
    let mut requests: Vec<Value> = examples.values().map(|it| it["value"].clone()).collect();
    let owned = json!({"kind": "noop", "items": 1, "owner": "Ada", "unit": 1, "verify": "none"});
    requests.push(owned);
    for request in &requests {
        let request = request.as_object().unwrap();
        let fitting = kinds.iter().filter(|kind| fits(kind, request)).count();
        assert_eq!(fitting, 1, "{request:?}");
    }
    let strange = json!({"kind": "noop", "items": 1, "colour": "red"});
    assert!(!kinds.iter().any(|kind| fits(kind, strange.as_object().unwrap())));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_error_is_json_and_says_what_is_wrong() {
    let world = World::start();
    for (path, status, words) in [
        ("/api/v1/jobs/x", 400, "number"),
        ("/api/v1/jobs/%ff", 400, "path"),
        ("/api/v1/jobs/1?wait=soon", 400, "wait"),
        ("/api/v1/jobs/1?wait=1&wait=2", 400, "query"),
        ("/api/v1/jobs/1/explain?item=%ff", 400, "item"),
        ("/api/v1/jobs/%ff/failures", 400, "path"),
        ("/api/v1/jobs/1/failures?from=1&from=2", 400, "query"),
        ("/api/v1/jobs/1/answers?from=1&from=2", 400, "query"),
        ("/api/v1/jobs/1/answers?left=maybe", 400, "left"),
        ("/api/v1/jobs/1/left?from=x", 400, "from"),
        ("/node/socket", 400, ""),
        ("/api/v1/nothing", 404, ""),
    ] {
        let answer = world.api.get(path).await;
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(
            (answer.status().as_u16(), kind.as_str()),
            (status, "application/json"),
            "{path}"
        );
        let (_, code, message) = crate::world::problem(answer).await;
        assert!(!code.is_empty() && message.contains(words), "{path}: {code} {message}");
    }
    let wrong = world.api.open(Method::GET, "/api/v1/jobs").bearer_auth("x").send().await.unwrap();
    assert!(crate::world::problem(wrong).await.2.contains("is wrong"));
    let none = world.api.open(Method::GET, "/api/v1/jobs").send().await.unwrap();
    assert!(crate::world::problem(none).await.2.contains("is missing"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_get_a_page_where_there_is_nothing() {
    let world = World::start();
    let request = world.api.open(Method::GET, "/nosuch");
    let page = request.header("accept", "text/html,*/*;q=0.8").send().await.unwrap();
    assert_eq!(page.status(), StatusCode::NOT_FOUND);
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let program = world.api.open(Method::GET, "/nosuch").send().await.unwrap();
    assert_eq!(crate::world::problem(program).await.1, "no_such_path");
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
