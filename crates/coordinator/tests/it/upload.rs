//! Results that come by HTTP: what was stored is what stays.

use serde_json::json;
use shoal_kinds::{Kind, NoopWork};
use shoal_protocol::Lease;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::node::{Node, lies, numbers};
use crate::world::{World, problem};

const UNIT: &str =
    "{\"kind\": \"map\", \"wgsl\": \"x\", \"items\": 2000, \"unit\": 2000, \"verify\": \"none\"}";

/// Begins a result and holds most of it back; gives the connection once the coordinator wants the bytes.
async fn begin(world: &World, node: &Node, lease: Lease, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(world.api.addr()).await.unwrap();
    let (job, attempt, session) = (lease.job, lease.attempt, &node.session);
    let head = format!(
        "PUT /node/results/{job}/{attempt} HTTP/1.1\r\nhost: shoal\r\nauthorization: Bearer {session}\r\n\
         content-length: {}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n",
        bytes.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&bytes[..100]).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_transfer_of_an_attempt_cannot_change_what_the_first_stored() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let id = world.api.submit(serde_json::from_str(UNIT).unwrap()).await;
    let lease = node.lent().await;
    let (right, wrong) =
        (numbers(&Kind::Noop(NoopWork), lease.span), lies(&Kind::Noop(NoopWork), lease.span));
    let mut slow = begin(&world, &node, lease, &wrong).await;
    node.store(lease, right.clone()).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    slow.write_all(&wrong[100..]).await.unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    assert!(world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await == right);
    let signed = world.api.json(&format!("/api/v1/jobs/{id}/receipt")).await;
    let hash = blake3::hash(&right).to_hex();
    assert_eq!(signed["receipt"]["output"]["hash"], json!(hash.as_str()));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_that_break_begin_again_but_not_for_ever() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let id = world.api.submit(serde_json::from_str(UNIT).unwrap()).await;
    let lease = node.lent().await;
    let bytes = numbers(&Kind::Noop(NoopWork), lease.span);
    let mut begun = Vec::new();
    for _ in 0..7 {
        begun.push(begin(&world, &node, lease, &bytes).await);
    }
    node.store(lease, bytes.clone()).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    let id = world.api.submit(serde_json::from_str(UNIT).unwrap()).await;
    let lease = node.lent().await;
    for _ in 0..8 {
        begun.push(begin(&world, &node, lease, &bytes).await);
    }
    assert_eq!(problem(node.put(lease, bytes.clone()).await).await.1, "too_often");
    node.inline(lease.attempt, bytes).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    drop(begun);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_not_what_was_merged_gets_no_receipt() {
    let world = World::start();
    let _node = Node::join(&world, "one").await.work(numbers);
    let id = world.api.submit(serde_json::from_str(UNIT).unwrap()).await;
    assert_eq!(world.api.ended(id).await["state"], "done");
    let path = world.dir.path().join(format!("results/{id}.log"));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_321] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let damaged = || async { world.api.get(&format!("/api/v1/jobs/{id}/receipt")).await };
    let (status, code, message) = problem(damaged().await).await;
    assert_eq!((status.as_u16(), code.as_str()), (500, "damaged"), "{message}");
    assert!(message.contains("items 0 to 1999"), "{message}");
    std::fs::write(&path, &bytes[..5_000]).unwrap();
    assert_eq!(problem(damaged().await).await.1, "damaged");
    world.stop().await;
}
