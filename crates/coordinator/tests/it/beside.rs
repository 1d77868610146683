//! Who shares the data folder moves bytes itself: only where the coordinator says, and only who proves it.

use std::io::{Seek, SeekFrom, Write};

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use shoal_kinds::{Kind, NoopWork};
use shoal_protocol::{Hash, Lease, UnitOutput};

use crate::node::{Node, hello, lies, numbers};
use crate::world::{World, eventually, problem};

const ITEMS: u64 = 2000;

fn unit() -> Value {
    json!({"kind": "map", "wgsl": "x", "items": ITEMS, "unit": ITEMS, "verify": "none"})
}

/// What a program reads that shares the folder.
async fn word(world: &World) -> String {
    let path = world.dir.path().join("running.json");
    let running: Value =
        eventually(async || serde_json::from_slice(&std::fs::read(&path).ok()?).ok()).await;
    running["beside"].as_str().unwrap().to_owned()
}

async fn ask(world: &World, word: &str, method: Method, path: &str, body: Value) -> Response {
    let request = world.api.request(method, path).header("x-shoal-beside", word);
    request.json(&body).send().await.unwrap()
}

/// The same in a node's name.
async fn node_asks(
    (world, node): (&World, &Node),
    word: &str,
    (method, path): (Method, &str),
    body: &Value,
) -> Response {
    let request = world.api.open(method, path).bearer_auth(&node.session);
    request.header("x-shoal-beside", word).json(body).send().await.unwrap()
}

async fn own(world: &World, name: &str) -> Node {
    Node::join_with(&world.api, hello(name, &world.api.key)).await
}

fn place_of(lease: Lease) -> String {
    format!("/node/results/{}/{}/place", lease.job, lease.attempt)
}

async fn is_refused(response: Response) {
    let (status, code, _) = problem(response).await;
    assert_eq!((status, code.as_str()), (StatusCode::FORBIDDEN, "not_beside"));
}

/// Asks for a place and writes there.
async fn write(world: &World, node: &Node, lease: Lease, bytes: &[u8]) -> Value {
    let (word, size) = (word(world).await, bytes.len());
    let asked = (Method::POST, place_of(lease));
    let said = node_asks((world, node), &word, (asked.0, &asked.1), &json!({ "size": size })).await;
    assert_eq!(said.status(), StatusCode::OK);
    let said: Value = said.json().await.unwrap();
    let offset = said["parts"][0]["offset"].as_u64().unwrap();
    write_at(world, said["file"].as_str().unwrap(), offset, bytes);
    let hash = blake3::hash(bytes).to_hex();
    json!({"offset": offset, "size": size, "hash": hash.as_str(), "file": said["file"]})
}

fn write_at(world: &World, file: &str, offset: u64, bytes: &[u8]) {
    let path = world.dir.path().join(file);
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_becomes_a_blob_for_those_who_share_the_folder() {
    let world = World::start();
    let word = word(&world).await;
    let size = json!({ "size": 5 });
    for wrong in ["", "guess", &world.api.key] {
        is_refused(ask(&world, wrong, Method::POST, "/api/v1/drafts", size.clone()).await).await;
    }
    let draft = ask(&world, &word, Method::POST, "/api/v1/drafts", size.clone()).await;
    let draft: Value = draft.json().await.unwrap();
    assert_eq!(draft["mayBeHere"], false);
    let hash = blake3::hash(b"bytes").to_hex();
    let path = format!("/api/v1/blobs/{hash}/draft");
    let taken = |file: &Value| ask(&world, &word, Method::PUT, &path, json!({ "file": file }));
    // What is no draft is never touched, whoever asks.
    for other in ["key", "blobs/partial/../../key", "/etc/passwd", "blobs/partial/post-"] {
        let status = taken(&json!(other)).await.status();
        assert_eq!(status, StatusCode::NOT_FOUND, "{other}");
    }
    assert_eq!(taken(&draft["file"]).await.status(), StatusCode::NOT_FOUND, "nobody wrote it");
    std::fs::write(world.dir.path().join(draft["file"].as_str().unwrap()), "bytes").unwrap();
    is_refused(ask(&world, "guess", Method::PUT, &path, draft.clone()).await).await;
    assert_eq!(taken(&draft["file"]).await.status(), StatusCode::CREATED);
    assert_eq!(world.api.bytes(&format!("/api/v1/blobs/{hash}")).await, b"bytes");
    let again = ask(&world, &word, Method::POST, "/api/v1/drafts", size).await;
    assert_eq!(again.json::<Value>().await.unwrap()["mayBeHere"], true);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_own_node_writes_its_result_where_it_belongs() {
    let world = World::start();
    let word = word(&world).await;
    let mut node = own(&world, "one").await;
    let id = world.api.submit(unit()).await;
    let lease = node.lent().await;
    let bytes = numbers(&Kind::Noop(NoopWork), lease.span);
    let (path, size) = (place_of(lease), json!({ "size": bytes.len() }));
    is_refused(node_asks((&world, &node), "guess", (Method::POST, &path), &size).await).await;
    let file = format!("/api/v1/jobs/{id}/result/file");
    let said = problem(ask(&world, &word, Method::GET, &file, json!(null)).await).await;
    assert_eq!((said.0, said.1.as_str()), (StatusCode::CONFLICT, "not_done"));
    let placed = write(&world, &node, lease, &bytes).await;
    for (name, value) in [("offset", json!(1)), ("size", json!(bytes.len() - 1))] {
        let mut wrong = placed.clone();
        wrong[name] = value;
        let said = node_asks((&world, &node), &word, (Method::PUT, &path), &wrong).await;
        let code = problem(said).await.1;
        assert!(["not_placed", "wrong_size"].contains(&code.as_str()), "{code}");
    }
    // Said twice, because an answer may be lost.
    for _ in 0..2 {
        let said = node_asks((&world, &node), &word, (Method::PUT, &path), &placed).await;
        assert_eq!(said.status(), StatusCode::OK);
    }
    let hash = Hash(*blake3::hash(&bytes).as_bytes());
    node.done(lease.attempt, UnitOutput::Stored { hash, size: bytes.len() as u64 }).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    assert!(world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await == bytes);
    let signed = world.api.json(&format!("/api/v1/jobs/{id}/receipt")).await;
    assert_eq!(signed["receipt"]["output"]["hash"], json!(hash.to_string()));

    is_refused(ask(&world, "guess", Method::GET, &file, json!(null)).await).await;
    let told: Value =
        ask(&world, &word, Method::GET, &file, json!(null)).await.json().await.unwrap();
    let whole = std::fs::read(world.dir.path().join(told["file"].as_str().unwrap())).unwrap();
    let at = |name: &str| told["parts"][0][name].as_u64().unwrap() as usize;
    assert!(whole[at("offset")..][..at("size")] == bytes);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_gets_no_place_even_if_it_knows_the_word() {
    let world = World::start();
    let word = word(&world).await;
    let mut node = Node::join(&world, "stranger").await;
    let blob = world.api.blob(vec![1; 100]).await;
    world.api.submit(unit()).await;
    let lease = node.lent().await;
    let size = json!({ "size": ITEMS * 4 });
    let (place, input) = (place_of(lease), format!("/node/blobs/{blob}/file"));
    is_refused(node_asks((&world, &node), &word, (Method::POST, &place), &size).await).await;
    is_refused(node_asks((&world, &node), &word, (Method::PUT, &place), &size).await).await;
    is_refused(node_asks((&world, &node), &word, (Method::GET, &input), &size).await).await;
    let trusted = own(&world, "own").await;
    let said = node_asks((&world, &trusted), &word, (Method::GET, &input), &size).await;
    let said: Value = said.json().await.unwrap();
    let path = world.dir.path().join(said["file"].as_str().unwrap());
    assert_eq!(std::fs::read(path).unwrap(), [1; 100]);
    world.stop().await;
}

/// It goes on writing after its coordinator is gone; the next one must not have given the place away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_writer_spoils_nothing_after_a_restart() {
    let world = World::start();
    let mut slow = own(&world, "slow").await;
    let id = world.api.submit(unit()).await;
    let lease = slow.lent().await;
    let (right, wrong) =
        (numbers(&Kind::Noop(NoopWork), lease.span), lies(&Kind::Noop(NoopWork), lease.span));
    let asked = (Method::POST, place_of(lease));
    let size = json!({ "size": right.len() });
    let said = node_asks((&world, &slow), &word(&world).await, (asked.0, &asked.1), &size).await;
    let said: Value = said.json().await.unwrap();
    let before = word(&world).await;
    drop(slow);
    let world = world.restart().await;
    assert_ne!(word(&world).await, before, "each start has a word of its own");
    let mut quick = own(&world, "quick").await;
    let lease = quick.lent().await;
    quick.store(lease, right.clone()).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    let offset = said["parts"][0]["offset"].as_u64().unwrap();
    write_at(&world, said["file"].as_str().unwrap(), offset, &wrong);
    assert!(world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await == right);
    world.stop().await;
}
