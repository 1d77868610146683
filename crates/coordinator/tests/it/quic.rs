//! Frames by QUIC: the same rules as on sockets, and sockets where there is no QUIC.

use std::time::Duration;

use futures_util::SinkExt;
use shoal_protocol::codec::Wire;
use shoal_protocol::frame::{HEADER_BYTES, Header};
use shoal_protocol::limit::{LINK_WINDOW, MAX_LINK_FRAME};
use shoal_protocol::quic::greeting;
use shoal_protocol::{Epoch, FromNode, QuicOffer, Refusal, ToNode};
use shoal_scheduler::Conn;
use tokio::time::timeout;

use crate::node::{Node, connect, hello, proven, receive};
use crate::quic_way::{Line, QuicWay, dial, offer};
use crate::relay::{CREW, EPOCH, counted, crew, frame, header, payload, take};
use crate::world::{World, eventually};

/// Longer than anything takes but a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

async fn pair(world: &World) -> (Node, Node) {
    let mut nodes = crew(world, &["one", "two"]).await;
    let two = nodes.pop().unwrap();
    (nodes.pop().unwrap(), two)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_quic_and_one_without_talk_to_each_other() {
    let world = World::start_quic();
    let (mut one, mut two) = pair(&world).await;
    let mut way = QuicWay::of(&mut one).await;
    let offered = offer(&mut two).await;
    let sizes = [0, 1, 4 << 10, MAX_LINK_FRAME - HEADER_BYTES, 1 << 20];
    let mut bytes = 0;
    for size in sizes {
        let words: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
        way.post(header(&one, &two, size), &words).await;
        assert!(payload(&take(&mut two).await) == words, "{size} bytes");
        two.socket.send(frame(header(&two, &one, size), &words)).await.unwrap();
        assert!(payload(&way.take().await.unwrap()) == words, "{size} bytes back");
        bytes += (HEADER_BYTES + size) as u64;
    }
    let counts = world.relay.counts();
    assert_eq!((counts.frames, counts.bytes), (2 * sizes.len() as u64, 2 * bytes));
    assert_eq!((counts.quic_in, counts.quic_out, counts.quic_opened), (bytes, bytes, 1));
    // And both by QUIC.
    let mut other = QuicWay::open(&two, &offered).await;
    way.post(header(&one, &two, 5), b"hello").await;
    assert_eq!(payload(&other.take().await.unwrap()), b"hello");
    let pool = world.api.json("/api/v1/pool").await;
    assert_eq!(pool["relay"]["quic"]["in"], bytes + 53);
    assert_eq!(pool["relay"]["socket"]["out"], bytes);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_pass_by_socket_does_not_pass_by_quic() {
    let world = World::start_quic();
    let mut nodes = crew(&world, &["one", "two", "three"]).await;
    let (three, mut two) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let mut one = nodes.pop().unwrap();
    world.relay.route(CREW, EPOCH, &[(one.id, Conn(1)), (two.id, Conn(2))]);
    let mut way = QuicWay::of(&mut one).await;
    let good = header(&one, &two, 3);
    for header in [
        Header { destination: three.id, ..good },
        Header { epoch: Epoch(2), ..good },
        Header { epoch: Epoch(4), ..good },
        Header { source: two.id, destination: one.id, ..good },
    ] {
        way.post(header, b"bad").await;
    }
    way.post(good, b"yes").await;
    assert_eq!(payload(&take(&mut two).await), b"yes");
    let counts = world.relay.counts();
    assert_eq!((counts.stranger, counts.stale, counts.forged, counts.frames), (1, 2, 1, 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_ends_the_way_and_a_forger_is_refused_altogether() {
    let world = World::start_quic();
    let (mut one, mut two) = pair(&world).await;
    let offered = offer(&mut one).await;
    let mut oversized = header(&one, &two, 3).encode();
    oversized[4..8].fill(0xff);
    for garbage in [vec![0x80; 100], oversized.to_vec()] {
        let mut way = QuicWay::open(&one, &offered).await;
        way.send.write_all(&garbage).await.unwrap();
        timeout(PATIENCE, way.connection.closed()).await.expect("closed");
    }
    assert_eq!(world.relay.counts().malformed, 2);
    // The socket goes on.
    one.socket.send(frame(header(&one, &two, 2), b"ws")).await.unwrap();
    assert_eq!(payload(&take(&mut two).await), b"ws");
    let mut way = QuicWay::open(&one, &offered).await;
    let forged = Header { source: two.id, destination: one.id, ..header(&one, &two, 3) };
    for _ in 0..15 {
        way.post(forged, b"lie").await;
    }
    assert_eq!(receive(&mut one.socket).await, Some(ToNode::Refused(Refusal::Garbled)));
    assert_eq!(receive(&mut one.socket).await, None);
    timeout(PATIENCE, way.connection.closed()).await.expect("closed with its socket");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_session_of_an_open_socket_opens_a_way() {
    let world = World::start_quic();
    let (mut one, two) = pair(&world).await;
    let offered = offer(&mut one).await;
    let session = one.session.clone();
    let wrong = ["", "nobody", &session[1..], &world.token, &"x".repeat(64)];
    for word in wrong {
        let connection = dial(&offered).await.unwrap();
        assert!(QuicWay::greet(connection, &greeting(word)).await.is_none(), "{word:?}");
    }
    let connection = dial(&offered).await.unwrap();
    assert!(QuicWay::greet(connection, &[200; 201]).await.is_none(), "a session that is too long");
    counted(&world, |counts| counts.quic_refused == wrong.len() as u64 + 1).await;
    // Another certificate than the one that was told of is not the coordinator's.
    let other = QuicOffer { hashes: vec![[7; 32]], ..offered.clone() };
    assert!(dial(&other).await.is_none());
    drop((one, two));
    let gone = async || {
        let nodes = world.api.json("/api/v1/nodes").await;
        nodes["nodes"].as_array().unwrap().is_empty().then_some(())
    };
    eventually(gone).await;
    let connection = dial(&offered).await.unwrap();
    assert!(
        QuicWay::greet(connection, &greeting(&session)).await.is_none(),
        "its socket is closed"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_say_nothing_are_few_and_gone_soon() {
    let world = World::start_quic();
    let (mut one, mut two) = pair(&world).await;
    let offered = offer(&mut one).await;
    let mut silent = Vec::new();
    for _ in 0..80 {
        let offered = offered.clone();
        // They keep what they get.
        silent.push(tokio::spawn(async move {
            (dial(&offered).await, std::future::pending::<()>().await)
        }));
    }
    counted(&world, |counts| counts.quic_refused > 0).await;
    // Those who are there go on, and when the others had their time there is room again.
    one.socket.send(frame(header(&one, &two, 2), b"ws")).await.unwrap();
    assert_eq!(payload(&take(&mut two).await), b"ws");
    let opened = async {
        loop {
            if let Some(connection) = dial(&offered).await
                && let Some(way) = QuicWay::greet(connection, &greeting(&one.session)).await
            {
                return way;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let mut way = timeout(PATIENCE, opened).await.expect("room again");
    way.post(header(&one, &two, 4), b"quic").await;
    assert_eq!(payload(&take(&mut two).await), b"quic");
    silent.iter().for_each(|task| task.abort());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_takes_nothing_by_quic_stalls_nobody_and_holds_a_window() {
    const FRAMES: usize = 400;
    let world = World::start_quic();
    let mut nodes = crew(&world, &["source", "stalled", "one"]).await;
    let (mut one, mut stalled) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let mut source = nodes.pop().unwrap();
    let mut from = QuicWay::of(&mut source).await;
    let _stalls = QuicWay::of(&mut stalled).await;
    let mut hears = QuicWay::of(&mut one).await;
    let words = vec![9; MAX_LINK_FRAME - HEADER_BYTES];
    for _ in 0..FRAMES {
        from.post(header(&source, &stalled, words.len()), &words).await;
        from.post(header(&source, &one, words.len()), &words).await;
        let heard = timeout(PATIENCE, hears.take()).await.expect("it is not stalled");
        assert_eq!(heard.unwrap().len(), MAX_LINK_FRAME);
    }
    let counts = counted(&world, |counts| counts.frames + counts.full == 2 * FRAMES as u64).await;
    let kept = (FRAMES as u64 - counts.full) * MAX_LINK_FRAME as u64;
    // A pair's share in the queue, a window on its way, and what the other end took in before anybody read.
    assert!((LINK_WINDOW..4 * LINK_WINDOW).contains(&kept), "{kept} {counts:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_cut_brings_frames_back_to_the_socket() {
    let world = World::start_quic();
    let (mut one, mut two) = pair(&world).await;
    let offered = offer(&mut one).await;
    let line = Line::to(offered.port).await;
    let mut way = QuicWay::open(&one, &QuicOffer { port: line.port, ..offered.clone() }).await;
    two.socket.send(frame(header(&two, &one, 5), b"first")).await.unwrap();
    assert_eq!(payload(&way.take().await.unwrap()), b"first");
    line.cut();
    // Said again until it arrives, as links do.
    let second = frame(header(&two, &one, 6), b"second");
    let again = async {
        loop {
            two.socket.send(second.clone()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let heard = tokio::select! {
        heard = take(&mut one) => heard,
        () = again => unreachable!(),
    };
    assert_eq!(payload(&heard), b"second");
    assert_eq!(timeout(PATIENCE, way.take()).await.expect("it is over here too"), None);
    // A new way takes their place.
    let mut way = QuicWay::open(&one, &offered).await;
    two.socket.send(frame(header(&two, &one, 5), b"third")).await.unwrap();
    loop {
        let heard = timeout(PATIENCE, way.take()).await.expect("a frame").expect("a frame");
        if payload(&heard) == b"third" {
            break;
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_way_takes_the_place_of_an_older_one() {
    let world = World::start_quic();
    let (mut one, mut two) = pair(&world).await;
    let offered = offer(&mut one).await;
    let old = QuicWay::open(&one, &offered).await;
    let mut new = QuicWay::open(&one, &offered).await;
    timeout(PATIENCE, old.connection.closed()).await.expect("closed");
    two.socket.send(frame(header(&two, &one, 5), b"hello")).await.unwrap();
    assert_eq!(payload(&new.take().await.unwrap()), b"hello");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_without_quic_offers_none() {
    let world = World::start();
    let (mut socket, statement) = connect(&world.api).await;
    let hello = FromNode::Hello(Box::new(proven(hello("one", &world.token), &statement)));
    crate::node::send(&mut socket, &hello).await;
    assert!(matches!(receive(&mut socket).await, Some(ToNode::Welcome { .. })));
    // The next word is what it is asked for.
    world.api.submit(crate::world::noop(1)).await;
    let next = receive(&mut socket).await.unwrap();
    assert!(matches!(next, ToNode::Job { .. }), "{:?}", next.encode());
    world.stop().await;
}
