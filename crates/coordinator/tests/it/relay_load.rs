//! The relay under load: one that takes nothing, floods, large frames over TLS.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use shoal_protocol::ToNode;
use shoal_protocol::codec::Wire;
use shoal_protocol::frame::{HEADER_BYTES, Header, is_frame};
use shoal_protocol::limit::{LINK_WINDOW, MAX_LINK_FRAME};
use shoal_scheduler::Conn;
use tokio_tungstenite::Connector;
use tokio_tungstenite::tungstenite::Message;

use crate::node::{Node, hello, proven, receive};
use crate::relay::{CREW, EPOCH, counted, crew, frame, header, payload, take, take_from};
use crate::world::{World, noop};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_takes_nothing_stalls_nobody_and_fills_only_its_own_queue() {
    /// In one lap to each: well within what a pair may have on the way.
    const LAP: usize = 16;
    const LAPS: usize = 25;
    const FRAMES: usize = LAP * LAPS;
    let world = World::start();
    let mut nodes = crew(&world, &["source", "stalled", "one", "two", "three"]).await;
    let mut listeners = nodes.split_off(2);
    let (stalled, mut source) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let words = vec![9; MAX_LINK_FRAME - HEADER_BYTES];
    let frames: Vec<Message> = listeners
        .iter()
        .chain([&stalled])
        .map(|to| frame(header(&source, to, words.len()), &words))
        .collect();
    for _ in 0..LAPS {
        for frame in frames.iter().cycle().take(LAP * frames.len()) {
            source.socket.send(frame.clone()).await.unwrap();
        }
        for listener in &mut listeners {
            for _ in 0..LAP {
                assert_eq!(take(listener).await.len(), MAX_LINK_FRAME);
            }
        }
    }
    let counts = counted(&world, |counts| counts.frames + counts.full == 4 * FRAMES as u64).await;
    assert!(counts.full > 0, "{counts:?}");
    // What is on its way to the stalled one is a window and what the system keeps: far from all of it.
    let kept = FRAMES as u64 - counts.full;
    assert!(kept * MAX_LINK_FRAME as u64 >= LINK_WINDOW, "{counts:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_coordinators_words_pass_while_frames_flood() {
    let world = World::start();
    let mut nodes = crew(&world, &["source", "target"]).await;
    let (mut target, mut source) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let words = vec![9; MAX_LINK_FRAME - HEADER_BYTES];
    let flood = frame(header(&source, &target, words.len()), &words);
    let flooding = tokio::spawn(async move {
        // Never ends by itself; what cannot be taken is dropped.
        while source.socket.send(flood.clone()).await.is_ok() {}
    });
    // Full to the brim: the target has taken nothing yet.
    counted(&world, |counts| counts.full > 100).await;
    let id = world.api.submit(noop(1)).await;
    let lease = loop {
        let message = target.socket.next().await.unwrap().unwrap();
        if let Message::Binary(bytes) = message
            && !is_frame(&bytes)
            && let ToNode::Lend(leases) = ToNode::decode(&bytes).unwrap()
        {
            break leases[0];
        }
    };
    target.inline(lease.attempt, Vec::new()).await;
    // It must go on taking, or its answer's neighbours on the way would fill up again.
    let drained = tokio::spawn(async move { while target.socket.next().await.is_some() {} });
    assert_eq!(world.api.ended(id).await["state"], json!("done"));
    flooding.abort();
    drained.abort();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_pass_over_tls_as_well() {
    let world = World::start();
    let certificate = std::fs::read(world.dir.path().join("cert.pem")).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&certificate).unwrap()).unwrap();
    let config =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let url = format!("wss://localhost:{}/node/socket", world.api.addr().port());
    let mut one = Node::join(&world, "one").await;
    let connector = Connector::Rustls(Arc::new(config));
    let (mut socket, _) =
        tokio_tungstenite::connect_async_tls_with_config(url, None, true, Some(connector))
            .await
            .unwrap();
    let Some(ToNode::Challenge { nonce, coordinator }) = receive(&mut socket).await else {
        panic!("no challenge")
    };
    let statement = shoal_protocol::sign::join_statement(&coordinator, &nonce);
    let hello =
        shoal_protocol::FromNode::Hello(Box::new(proven(hello("two", &world.token), &statement)));
    socket.send(Message::Binary(hello.encode().into())).await.unwrap();
    let Some(ToNode::Welcome { node, .. }) = receive(&mut socket).await else {
        panic!("no welcome")
    };
    world.relay.route(CREW, EPOCH, &[(one.id, Conn(1)), (node, Conn(2))]);
    let words: Vec<u8> = (0..1_000_000_u32).map(|at| (at >> 3) as u8).collect();
    let there = Header { destination: node, ..header(&one, &one, words.len()) };
    for _ in 0..8 {
        // Two at a time: both together are less than a pair may have on the way.
        one.socket.send(frame(there, &words)).await.unwrap();
        one.socket.send(frame(there, &words)).await.unwrap();
        assert!(payload(&take_from(&mut socket).await) == words);
        assert!(payload(&take_from(&mut socket).await) == words);
    }
    let back = Header { source: node, destination: one.id, ..there };
    socket.send(frame(back, &words)).await.unwrap();
    assert!(payload(&take(&mut one).await) == words);
    world.stop().await;
}
