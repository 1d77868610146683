//! Nothing that changes state is open.

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::node::Node;
use crate::world::{World, eventually, noop, problem};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_or_wrong_key_is_refused_everywhere() {
    let world = World::start();
    for (method, path) in [
        (Method::GET, "/api/v1/jobs"),
        (Method::POST, "/api/v1/jobs"),
        (Method::POST, "/api/v1/blobs"),
        (Method::POST, "/api/v1/kernels/check"),
        (Method::GET, "/api/v1/nodes"),
        (Method::GET, "/api/v1/pool"),
        (Method::GET, "/api/v1/join.svg"),
        (Method::GET, "/api/v1/events"),
        (Method::GET, "/api/v1/jobs/1/picture.png"),
        (Method::DELETE, "/api/v1/jobs/1"),
        (Method::POST, "/submit-job"),
    ] {
        let without = world.api.open(method.clone(), path).send().await.unwrap();
        let (status, code, message) = problem(without).await;
        assert_eq!((status, code.as_str()), (StatusCode::UNAUTHORIZED, "bad_key"), "{path}");
        assert!(message.contains("Authorization: Bearer"));
        let wrong = world.api.open(method, path).bearer_auth("wrong").send().await.unwrap();
        assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_s_clients_are_refused_in_their_own_words() {
    let world = World::start();
    for (method, path) in [(Method::GET, "/v1/models"), (Method::POST, "/v1/chat/completions")] {
        let refused = world.api.open(method, path).bearer_auth("wrong").send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        let body: Value = refused.json().await.unwrap();
        let error = &body["error"];
        assert_eq!(error["type"], "invalid_request_error", "{path}: {body}");
        assert_eq!((&error["code"], &error["param"]), (&"bad_key".into(), &Value::Null));
        assert!(error["message"].as_str().unwrap().contains("API key is wrong"), "{body}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_join_token_and_the_session_open_no_other_doors() {
    let world = World::start();
    let node = Node::join(&world, "one").await;
    for word in [&world.token, &node.session] {
        let request = world.api.open(Method::GET, "/api/v1/jobs").bearer_auth(word);
        assert_eq!(request.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    let hash = world.api.blob("x").await;
    let path = format!("/node/blobs/{hash}");
    for word in [&world.token, &world.api.key] {
        let request = world.api.open(Method::GET, &path).bearer_auth(word);
        assert_eq!(problem(request.send().await.unwrap()).await.1, "bad_session");
    }
    let request = world.api.open(Method::GET, &path).bearer_auth(&node.session);
    assert_eq!(request.send().await.unwrap().text().await.unwrap(), "x");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_kept_and_readable_by_their_owner_only() {
    let world = World::start();
    let (key, token) = (world.api.key.clone(), world.token.clone());
    assert!(key.len() >= 32 && token.len() >= 32 && key != token);
    let dir = world.dir.path().to_owned();
    let running: Value = eventually(async || {
        serde_json::from_slice(&std::fs::read(dir.join("running.json")).ok()?).ok()
    })
    .await;
    assert_eq!(running["key"], key.as_str());
    assert_eq!(running["url"], world.api.url.as_str());
    assert_eq!(running["join"], format!("{}/join#{token}", world.api.url));
    assert_eq!(running["pid"], std::process::id());
    #[cfg(unix)]
    for name in ["key", "token", "running.json", "cert.key"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let world = world.restart().await;
    assert_eq!((&world.api.key, &world.token), (&key, &token));
    let dir = world.stop().await;
    assert!(!dir.path().join("running.json").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_other_sites_may_call_with_a_key() {
    let world = World::start();
    let asked = world
        .api
        .open(Method::OPTIONS, "/api/v1/jobs")
        .header("origin", "https://example.org")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,upload-offset")
        .send()
        .await
        .unwrap();
    assert_eq!(asked.status(), StatusCode::OK);
    assert_eq!(asked.headers()["access-control-allow-origin"], "*");
    let allowed = asked.headers()["access-control-allow-headers"].to_str().unwrap().to_lowercase();
    assert!(allowed.contains("authorization") && allowed.contains("upload-offset"));
    let posted = world.api.request(Method::POST, "/api/v1/jobs").json(&noop(1));
    let posted = posted.header("origin", "https://example.org").send().await.unwrap();
    assert_eq!(posted.headers()["access-control-allow-origin"], "*");
    world.stop().await;
}
