//! Frames between nodes: who may send them to whom, and what happens to those that may not pass.

use futures_util::{SinkExt, StreamExt};
use shoal_coordinator::RelayCounts;
use shoal_protocol::codec::Wire;
use shoal_protocol::frame::{FrameKind, HEADER_BYTES, Header, is_frame, split};
use shoal_protocol::limit::{MAX_FRAME_BYTES, MAX_LINK_FRAME};
use shoal_protocol::{CrewId, Epoch, NodeId, Refusal, ToNode};
use shoal_scheduler::Conn;
use tokio_tungstenite::tungstenite::Message;

use crate::node::{Node, Socket, hello, proven, receive};
use crate::world::{World, eventually};

pub(crate) const CREW: CrewId = CrewId(7);
pub(crate) const EPOCH: Epoch = Epoch(3);

/// Nodes of a fresh world, all in one crew.
pub(crate) async fn crew(world: &World, names: &[&str]) -> Vec<Node> {
    let mut nodes = Vec::new();
    for name in names {
        nodes.push(Node::join(world, name).await);
    }
    // Connections are numbered as they come.
    let members: Vec<_> = nodes.iter().map(|node| node.id).zip((1..).map(Conn)).collect();
    world.relay.route(CREW, EPOCH, &members);
    nodes
}

pub(crate) fn header(from: &Node, to: &Node, length: usize) -> Header {
    Header {
        kind: FrameKind::Sealed,
        channel: 1,
        length: length as u32,
        source: from.id,
        destination: to.id,
        crew: CREW,
        epoch: EPOCH,
        sequence: 1,
    }
}

pub(crate) fn frame(header: Header, payload: &[u8]) -> Message {
    Message::Binary([&header.encode(), payload].concat().into())
}

async fn post(from: &mut Node, to: &Node, payload: &[u8]) {
    let frame = frame(header(from, to, payload.len()), payload);
    from.socket.send(frame).await.unwrap();
}

/// The next frame; the coordinator's words pass by.
pub(crate) async fn take(node: &mut Node) -> Vec<u8> {
    take_from(&mut node.socket).await
}

pub(crate) async fn take_from(socket: &mut Socket) -> Vec<u8> {
    loop {
        let message = socket.next().await.expect("a frame").expect("a frame");
        if let Message::Binary(bytes) = message
            && is_frame(&bytes)
        {
            return bytes.into();
        }
    }
}

pub(crate) fn payload(frame: &[u8]) -> &[u8] {
    &frame[HEADER_BYTES..]
}

/// Waits until the relay has counted this.
pub(crate) async fn counted(world: &World, is_there: impl Fn(&RelayCounts) -> bool) -> RelayCounts {
    eventually(async || Some(world.relay.counts()).filter(&is_there)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_talk_to_each_other_unread() {
    let world = World::start();
    let mut nodes = crew(&world, &["one", "two"]).await;
    let (mut two, mut one) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    for size in [0, 1, 77, 78, 125 - HEADER_BYTES, 4 << 10, MAX_LINK_FRAME - HEADER_BYTES, 1 << 20]
    {
        let words: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
        post(&mut one, &two, &words).await;
        assert!(payload(&take(&mut two).await) == words, "{size} bytes");
        post(&mut two, &one, &words).await;
        assert!(payload(&take(&mut one).await) == words, "{size} bytes back");
    }
    let counts = world.relay.counts();
    assert_eq!((counts.frames, counts.dropped().map(|(_, count)| count)), (16, [0; 7]));
    // The largest that a socket carries; nodes themselves keep to less.
    let large = vec![5; MAX_FRAME_BYTES - HEADER_BYTES];
    post(&mut one, &two, &large).await;
    assert!(payload(&take(&mut two).await) == large);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_pieces_arrives_whole() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let world = World::start();
    let mut nodes = crew(&world, &["one", "two"]).await;
    let (mut two, mut one) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let words: Vec<u8> = (0..100_000_u32).map(|at| at as u8).collect();
    let whole = [&header(&one, &two, words.len()).encode(), &words[..]].concat();
    let pieces: Vec<&[u8]> = whole.chunks(33_000).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let kind = if at == 0 { Data::Binary } else { Data::Continue };
        let is_last = at + 1 == pieces.len();
        let piece = Frame::message(piece.to_vec(), OpCode::Data(kind), is_last);
        one.socket.send(Message::Frame(piece)).await.unwrap();
        // Allowed in between.
        one.socket.send(Message::Ping(vec![at as u8].into())).await.unwrap();
    }
    assert!(payload(&take(&mut two).await) == words);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_pass_is_dropped_and_counted() {
    let world = World::start();
    let mut nodes = crew(&world, &["one", "two", "three"]).await;
    let (three, mut two, mut one) =
        (nodes.pop().unwrap(), nodes.pop().unwrap(), nodes.pop().unwrap());
    world.relay.route(CREW, EPOCH, &[(one.id, Conn(1)), (two.id, Conn(2))]);
    let good = header(&one, &two, 3);
    let none = CrewId(99);
    for (header, bytes) in [
        (Header { crew: none, ..good }, 3),
        (Header { destination: three.id, ..good }, 3),
        (Header { epoch: Epoch(2), ..good }, 3),
        (Header { epoch: Epoch(4), ..good }, 3),
        (Header { source: two.id, destination: one.id, ..good }, 3),
        (Header { source: NodeId(12345), ..good }, 3),
        (good, 2),
        (good, 4),
    ] {
        one.socket.send(frame(header, &vec![1; bytes])).await.unwrap();
    }
    one.socket.send(Message::Binary(vec![0xf1, 2, 3].into())).await.unwrap();
    one.socket.send(Message::Binary(vec![0x80; 60].into())).await.unwrap();
    one.socket.send(frame(good, b"yes")).await.unwrap();
    assert_eq!(payload(&take(&mut two).await), b"yes");
    let expected = RelayCounts {
        frames: 1,
        bytes: 51,
        stranger: 2,
        stale: 2,
        forged: 2,
        malformed: 4,
        ..RelayCounts::default()
    };
    assert_eq!(world.relay.counts(), expected);
    // One that is in no crew is no member of this one.
    let mut three = three;
    post(&mut three, &two, b"let me in").await;
    counted(&world, |counts| counts.stranger == 3).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_epoch_leaves_the_old_one_and_whoever_is_not_in_it_behind() {
    let world = World::start();
    let mut nodes = crew(&world, &["one", "two"]).await;
    let (mut two, mut one) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    world.relay.route(CREW, Epoch(4), &[(one.id, Conn(1)), (two.id, Conn(2))]);
    post(&mut one, &two, b"old").await;
    let new = Header { epoch: Epoch(4), ..header(&one, &two, 3) };
    one.socket.send(frame(new, b"new")).await.unwrap();
    let (heard, _) =
        split(&take(&mut two).await).map(|(header, words)| (header, words.to_vec())).unwrap();
    assert_eq!(heard, new);
    // The crew has ended.
    world.relay.route(CREW, Epoch(5), &[]);
    one.socket.send(frame(new, b"new")).await.unwrap();
    let counts = counted(&world, |counts| counts.stranger == 1).await;
    assert_eq!((counts.stale, counts.frames), (1, 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_left_gets_nothing_and_who_comes_back_is_no_member_before_the_scheduler_says_so() {
    let world = World::start();
    let mut nodes = crew(&world, &["one", "two"]).await;
    let (two, mut one) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let id = two.id;
    drop(two);
    let only_one = async || {
        let nodes = world.api.json("/api/v1/nodes").await;
        (nodes["nodes"].as_array().unwrap().len() == 1).then_some(())
    };
    eventually(only_one).await;
    let mut two = Node::join(&world, "two").await;
    assert_eq!(two.id, id, "the same device has the same number");
    post(&mut one, &two, b"hello").await;
    counted(&world, |counts| counts.gone == 1).await;
    post(&mut two, &one, b"hello").await;
    // No forgery: it is who it says.
    let counts = counted(&world, |counts| counts.stranger == 1).await;
    assert_eq!(counts.forged, 0);
    world.relay.route(CREW, EPOCH, &[(one.id, Conn(1)), (two.id, Conn(3))]);
    post(&mut one, &two, b"hello").await;
    assert_eq!(payload(&take(&mut two).await), b"hello");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forger_is_refused_and_the_others_go_on() {
    let world = World::start();
    let mut nodes = crew(&world, &["forger", "one", "two"]).await;
    let (mut two, mut one) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let mut forger = nodes.pop().unwrap();
    let forged = frame(header(&one, &two, 3), b"lie");
    for _ in 0..17 {
        forger.socket.send(forged.clone()).await.unwrap();
    }
    assert_eq!(receive(&mut forger.socket).await, Some(ToNode::Refused(Refusal::Garbled)));
    assert_eq!(receive(&mut forger.socket).await, None);
    post(&mut one, &two, b"truth").await;
    assert_eq!(payload(&take(&mut two).await), b"truth");
    assert_eq!(world.relay.counts().forged, 17);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_before_the_welcome_are_no_greeting() {
    let world = World::start();
    let (mut socket, statement) = crate::node::connect(&world.api).await;
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[0] = 0xf1;
    socket.send(Message::Binary(bytes.into())).await.unwrap();
    let hello =
        shoal_protocol::FromNode::Hello(Box::new(proven(hello("one", &world.token), &statement)));
    socket.send(Message::Binary(hello.encode().into())).await.unwrap();
    assert_eq!(receive(&mut socket).await, Some(ToNode::Refused(Refusal::Garbled)));
    world.stop().await;
}
