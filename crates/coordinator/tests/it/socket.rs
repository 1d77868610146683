//! How a node's socket opens, and why it closes.

use std::time::Duration;

use futures_util::SinkExt;
use serde_json::json;
use shoal_protocol::codec::Wire;
use shoal_protocol::limit::{MAX_FRAME_BYTES, PROTOCOL_VERSION};
use shoal_protocol::{FromNode, Held, Hello, Refusal, ToNode};
use tokio_tungstenite::tungstenite::Message;

use crate::node::{Node, connect, hello, nothing, numbers, receive, refusal};
use crate::world::{World, eventually, noop};

fn greeting(hello: Hello) -> Message {
    Message::Binary(FromNode::Hello(Box::new(hello)).encode().into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_and_nonsense_are_refused_with_the_reason() {
    let world = World::start();
    let refused = async |first| refusal(&world.api, first).await;
    assert_eq!(refused(greeting(hello("one", "wrong"))).await, Some(Refusal::Token));
    let old = Hello { version: 0, ..hello("one", &world.token) };
    assert!(matches!(refused(greeting(old)).await, Some(Refusal::Version { yours: 0, .. })));
    let newer = Message::Binary(vec![0, 200, 1, 255].into());
    assert!(matches!(refused(newer).await, Some(Refusal::Version { yours: 200, .. })));
    let nonsense = Message::Binary(vec![0, PROTOCOL_VERSION as u8, 255, 255].into());
    assert_eq!(refused(nonsense).await, Some(Refusal::Garbled));
    assert_eq!(refused(Message::Text("hello".into())).await, Some(Refusal::Garbled));
    let early = Message::Binary(FromNode::Pause(true).encode().into());
    assert_eq!(refused(early).await, Some(Refusal::Garbled));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oversized_frame_ends_the_socket_and_nothing_else() {
    let world = World::start();
    let mut bad = Node::join(&world, "bad").await;
    let _good = Node::join(&world, "good").await.work(nothing);
    let huge = Message::Binary(vec![0; MAX_FRAME_BYTES + 1].into());
    // The coordinator may hang up before it has all of it.
    let _ = bad.socket.send(huge).await;
    assert!(!matches!(receive(&mut bad.socket).await, Some(ToNode::Lend(_))));
    let id = world.api.submit(noop(10)).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_after_the_greeting_ends_the_socket() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    node.socket.send(Message::Binary(vec![1, 255, 255].into())).await.unwrap();
    assert_eq!(receive(&mut node.socket).await, Some(ToNode::Refused(Refusal::Garbled)));
    assert_eq!(receive(&mut node.socket).await, None);
    let gone = async || (world.api.json("/api/v1/nodes").await["nodes"] == json!([])).then_some(());
    eventually(gone).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_newer_kind_are_skipped() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    node.socket.send(Message::Binary(vec![99, 1, 2].into())).await.unwrap();
    let id = world.api.submit(noop(1)).await;
    let lease = node.lent().await;
    assert_eq!(lease.job.0, id);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_says_nothing_is_no_node() {
    let world = World::start();
    let _silent = connect(&world.api).await;
    assert_eq!(world.api.json("/api/v1/nodes").await["nodes"], json!([]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_node_joining_again_replaces_itself() {
    let world = World::start();
    let mut first = Node::join(&world, "one").await;
    let _second = Node::join(&world, "one").await;
    assert_eq!(receive(&mut first.socket).await, Some(ToNode::Refused(Refusal::Replaced)));
    assert_eq!(world.api.json("/api/v1/nodes").await["nodes"].as_array().unwrap().len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_is_said_to_nodes() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let dir = world.stop().await;
    assert_eq!(receive(&mut node.socket).await, Some(ToNode::Refused(Refusal::Closing)));
    drop(dir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_of_a_node_that_leaves_go_to_others_at_once() {
    let world = World::start();
    let mut leaver = Node::join(&world, "leaver").await;
    let id = world
        .api
        .submit(json!({"kind": "map", "wgsl": "x", "items": 50, "unit": 10, "verify": "none"}))
        .await;
    leaver.lent().await;
    let _stayer = Node::join(&world, "stayer").await.work(numbers);
    drop(leaver);
    let ended = tokio::time::timeout(Duration::from_secs(2), world.api.ended(id)).await.unwrap();
    assert_eq!((&ended["state"], &ended["itemsDone"]), (&json!("done"), &json!(50)));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_stored_before_a_restart_counts_after_it() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let id = world
        .api
        .submit(
            json!({"kind": "map", "wgsl": "x", "items": 10_000, "unit": 10_000, "verify": "none"}),
        )
        .await;
    let lease = node.lent().await;
    assert_eq!(lease.span.len, 10_000);
    let bytes = numbers(&node.jobs[&lease.job].work, lease.span);
    assert_eq!(node.put(lease, bytes.clone()).await.status(), 200);
    let world = world.restart().await;
    let held = Held { attempt: lease.attempt, job: lease.job, span: lease.span };
    let mut node = Node::rejoin(&world, "one", vec![held]).await;
    let hash = shoal_protocol::Hash(*blake3::hash(&bytes).as_bytes());
    let size = bytes.len() as u64;
    node.done(lease.attempt, shoal_protocol::UnitOutput::Stored { hash, size }).await;
    let job = world.api.ended(id).await;
    assert_eq!((&job["state"], &job["retries"]), (&json!("done"), &json!(0)), "{job}");
    assert!(world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await == bytes);
    world.stop().await;
}
