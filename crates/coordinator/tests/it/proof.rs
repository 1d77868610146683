//! Who is who: nodes prove their keys, operators their own nodes, submitters their code.

use ed25519_dalek::{Signer, Verifier, VerifyingKey};
use serde_json::{Value, json};
use shoal_kinds::Kind;
use shoal_protocol::codec::Wire;
use shoal_protocol::sign::code_statement;
use shoal_protocol::{FromNode, Hash, Refusal, ToNode};

use crate::node::{Node, connect, hello, key, nothing, numbers, proven, receive, send};
use crate::world::{World, eventually};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greeting_without_the_right_proof_is_refused() {
    let world = World::start();
    let unproven = FromNode::Hello(Box::new(hello("one", &world.token)));
    let (mut socket, statement) = connect(&world.api).await;
    send(&mut socket, &unproven).await;
    assert_eq!(receive(&mut socket).await, Some(ToNode::Refused(Refusal::Identity)));
    // A proof for one connection is of no use on another.
    let (mut socket, _) = connect(&world.api).await;
    let replayed = proven(hello("one", &world.token), &statement);
    send(&mut socket, &FromNode::Hello(Box::new(replayed))).await;
    assert_eq!(receive(&mut socket).await, Some(ToNode::Refused(Refusal::Identity)));
    // Nor is one's own key for somebody else's name.
    let (mut socket, statement) = connect(&world.api).await;
    let mut thief = proven(hello("thief", &world.token), &statement);
    thief.identity = hello("one", &world.token).identity;
    assert!(FromNode::decode(&FromNode::Hello(Box::new(thief.clone())).encode()).is_ok());
    send(&mut socket, &FromNode::Hello(Box::new(thief))).await;
    assert_eq!(receive(&mut socket).await, Some(ToNode::Refused(Refusal::Identity)));
    assert_eq!(world.api.json("/api/v1/nodes").await["nodes"], json!([]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_the_key_is_the_operators_own() {
    let world = World::start();
    let _own = Node::join_with(&world.api, hello("own", &world.api.key)).await.work(numbers);
    let _stranger = Node::join(&world, "stranger").await.work(nothing);
    let nodes = world.api.json("/api/v1/nodes").await;
    let shown = |name: &str| {
        let nodes = nodes["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (&shown("own")["trusted"], &shown("stranger")["trusted"]),
        (&json!(true), &json!(false))
    );
    let identity = hex(key("own").verifying_key().as_bytes());
    assert_eq!(shown("own")["identity"], json!(identity));
    assert_eq!(shown("own")["condition"]["visible"], true);
    let trust = json!({"streak": 0, "wrong": 0, "barred": false, "veteran": false});
    assert_eq!(shown("stranger")["trust"], json!({"gpu": trust, "cpu": trust}));
    let lines = world.api.json(&format!("/api/v1/nodes/{}/explain", shown("own")["id"])).await;
    assert!(lines["lines"].to_string().contains("your own device"), "{lines}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_a_node_and_back_is_measured() {
    let world = World::start();
    let _node = Node::join(&world, "one").await.work(nothing);
    eventually(async || {
        let nodes = world.api.json("/api/v1/nodes").await;
        nodes["nodes"][0]["roundTripMs"].as_f64()
    })
    .await;
    assert!(world.api.metric("shoal_round_trips_total").await >= 1.0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_is_signed_by_its_submitter_or_by_the_coordinator() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let wgsl = "some kernel";
    let hash = Hash(*blake3::hash(wgsl.as_bytes()).as_bytes());
    let mine = key("submitter");
    let signature = mine.sign(&code_statement(&hash)).to_bytes();
    let job = |signature: Option<Value>| {
        let mut job = json!({"kind": "map", "wgsl": wgsl, "items": 1});
        if let Some(signature) = signature {
            job["signature"] = signature;
        }
        job
    };
    let by = hex(mine.verifying_key().as_bytes());
    let good = json!({"key": by, "signature": hex(&signature)});
    let id = world.api.submit(job(Some(good))).await;
    let shown = world.api.json(&format!("/api/v1/jobs/{id}")).await;
    assert_eq!((&shown["signedBy"], &shown["signedHere"]), (&json!(by), &json!(false)));
    let lease = node.lent().await;
    let told = &node.jobs[&lease.job];
    let Kind::Map(map) = &told.work else { panic!("expected a map") };
    assert_eq!(map.kernel.source, wgsl);
    assert_eq!(hex(&told.signed.unwrap().by.0), by);
    node.inline(lease.attempt, [0; 4]).await;

    let ours = world.api.json("/api/v1/pool").await["key"].clone();
    let id = world.api.submit(job(None)).await;
    let shown = world.api.json(&format!("/api/v1/jobs/{id}")).await;
    assert_eq!((&shown["signedBy"], &shown["signedHere"]), (&ours, &json!(true)));
    let lease = node.lent().await;
    let signed = node.jobs[&lease.job].signed.unwrap();
    let ours = VerifyingKey::from_bytes(&signed.by.0).unwrap();
    let signature = ed25519_dalek::Signature::from_bytes(&signed.signature.bytes());
    assert!(ours.verify(&code_statement(&hash), &signature).is_ok());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_that_does_not_fit_is_refused() {
    let world = World::start();
    let mine = key("submitter");
    let by = hex(mine.verifying_key().as_bytes());
    let other = Hash(*blake3::hash(b"another kernel").as_bytes());
    let wrong = hex(&mine.sign(&code_statement(&other)).to_bytes());
    for (signature, part) in [
        (json!({"key": by, "signature": wrong}), "did not sign"),
        (json!({"key": "ab", "signature": wrong}), "64 hexadecimal"),
        (json!({"key": by, "signature": "ab"}), "128 hexadecimal"),
    ] {
        let job = json!({"kind": "map", "wgsl": "some kernel", "items": 1, "signature": signature});
        let (status, code, message) = world.api.refused(job).await;
        assert_eq!((status.as_u16(), code.as_str()), (422, "bad_signature"), "{message}");
        assert!(message.contains(part), "{message}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_that_was_damaged_is_dropped_and_asked_for_again() {
    let world = World::start();
    let module = world.api.blob(b"\0asm and more".to_vec()).await;
    let path = world.dir.path().join("blobs").join(&module[..2]).join(&module);
    std::fs::write(path, b"\0asm and less").unwrap();
    let job = json!({"kind": "exec", "module": module});
    let (_, code, message) = world.api.refused(job.clone()).await;
    assert_eq!(code, "blob_missing");
    assert!(message.contains("damaged") && message.contains("upload it again"), "{message}");
    assert_eq!(world.api.blob(b"\0asm and more".to_vec()).await, module);
    world.api.submit(job).await;
    world.stop().await;
}
