//! Frames and handshakes of strangers, and of members in others' names.

use shoal_node::mesh::*;
use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::*;
use shoal_seal::{Handshake, Keys, Parties};
use shoal_sim::Clockwork;

use crate::liar::{LIAR, Liar, VICTIM, header, parties, world};
use crate::world::World;

#[test]
fn a_key_that_its_identity_did_not_sign_is_never_talked_to() {
    let mut world = World::new(1, 2);
    world.epoch = 1;
    let mut enlist = world.enlistment(NodeId(1));
    let other = Keys::new([99; 32]).public();
    enlist.members[1].key = other;
    world.give(NodeId(1), MeshInput::Enlist(&enlist));
    world.enlist_one(NodeId(2));
    world.send(1, 2, 1, b"words");
    world.run(10_000);
    assert_eq!(world.bad(1, 2), ["its links' key is not signed by its identity"]);
    let said_by_one = |bytes: &&Vec<u8>| bytes[8] == 1;
    assert_eq!(world.seen.iter().filter(said_by_one).count(), 0, "not a word");
    world.enlist();
    world.until(1_000, World::all_open);
}

#[test]
fn a_handshake_of_another_key_is_reported_once_and_changes_nothing() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.until(1_000, World::all_open);
    let (keys, called) = (Keys::new([66; 32]), Keys::new([2; 32]).public());
    for seed in 0..20 {
        let call = Handshake::initiate(&keys, &called, &parties(), [seed; 32], &[0; 8]);
        let payload = [&[1], call.unwrap().1.as_slice()].concat();
        let header = Header {
            source: NodeId(1),
            destination: NodeId(2),
            ..header(FrameKind::Handshake, payload.len())
        };
        world.give(NodeId(2), MeshInput::Relay(&[header.encode().as_slice(), &payload].concat()));
        world.run(200);
    }
    assert_eq!(world.bad(2, 1), ["its handshake is not of its key"]);
    assert_eq!(world.mesh(2).dropped().forged, 20);
    world.send(1, 2, 1, b"still here");
    world.run(500);
    assert_eq!(world.got(2, 1, 1), [b"still here"]);
}

#[test]
fn a_call_in_another_crews_name_is_none() {
    let mut world = World::new(1, 2);
    world.enlist();
    let (keys, called) = (Keys::new([1; 32]), Keys::new([2; 32]).public());
    let other = Parties { crew: CrewId(8), ..parties() };
    let (_, call) = Handshake::initiate(&keys, &called, &other, [3; 32], &[0; 8]).unwrap();
    let payload = [&[1], call.as_slice()].concat();
    let header = Header {
        source: NodeId(1),
        destination: NodeId(2),
        ..header(FrameKind::Handshake, payload.len())
    };
    world.give(NodeId(2), MeshInput::Relay(&[header.encode().as_slice(), &payload].concat()));
    assert_eq!(world.mesh(2).dropped().forged, 1);
}

#[test]
fn a_flood_of_calls_is_answered_slowly_and_breaks_nothing() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.until(1_000, World::all_open);
    let (keys, called) = (Keys::new([1; 32]), Keys::new([2; 32]).public());
    let before = world.seen.len();
    for seed in 0..100 {
        let call = Handshake::initiate(&keys, &called, &parties(), [seed; 32], &[0; 8]);
        let payload = [&[1], call.unwrap().1.as_slice()].concat();
        let header = Header {
            source: NodeId(1),
            destination: NodeId(2),
            ..header(FrameKind::Handshake, payload.len())
        };
        world.give(NodeId(2), MeshInput::Relay(&[header.encode().as_slice(), &payload].concat()));
    }
    assert!(world.seen.len() - before <= 8, "each answer costs a key agreement");
    assert!(world.mesh(2).dropped().flood >= 92);
    world.send(1, 2, 1, b"still here");
    world.send(2, 1, 1, b"here too");
    world.run(500);
    assert_eq!(world.got(2, 1, 1), [b"still here"]);
    assert_eq!(world.got(1, 2, 1), [b"here too"]);
    world.nobody_is_bad();
}

#[test]
fn a_flood_of_wishes_to_be_called_is_answered_slowly() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.until(1_000, World::all_open);
    let before = world.seen.len();
    let ask = [header(FrameKind::Handshake, 1).encode().as_slice(), &[3]].concat();
    for _ in 0..100 {
        world.give(NodeId(1), MeshInput::Relay(&ask));
    }
    assert!(world.seen.len() - before <= 8);
    assert!(world.mesh(1).dropped().flood >= 92);
    world.send(1, 2, 1, b"still here");
    world.run(500);
    assert_eq!(world.got(2, 1, 1), [b"still here"]);
    world.nobody_is_bad();
}

#[test]
fn frames_in_anothers_name_do_not_open() {
    let mut world = World::new(1, 3);
    world.enlist();
    world.until(1_000, World::all_open);
    // What 3 said to 1, as if 2 had said it.
    let theirs =
        world.seen.iter().rev().find(|bytes| bytes[1] == 2 && bytes[8] == 3 && bytes[16] == 1);
    let mut forged = theirs.unwrap().clone();
    forged[8] = 2;
    world.give(NodeId(1), MeshInput::Relay(&forged));
    assert_eq!(world.mesh(1).dropped().closed, 1);
    world.nobody_is_bad();
}

#[test]
fn what_is_no_frame_of_this_crew_for_this_node_is_stray() {
    let mut world = world();
    let liar = Liar::trusted(&mut world);
    let good = header(FrameKind::Sealed, 5 + 16);
    let strays = [
        Header { crew: CrewId(8), ..good },
        Header { destination: NodeId(3), ..good },
        Header { source: NodeId(9), ..good },
        Header { source: NodeId(VICTIM), ..good },
        Header { kind: FrameKind::Plain, ..good },
    ];
    for (count, stray) in (1..).zip(strays) {
        world.give(NodeId(VICTIM), MeshInput::Relay(&liar.seal(stray, b"words")));
        assert_eq!(world.mesh(VICTIM).dropped().stray, count, "{stray:?}");
    }
    let mut long = liar.seal(good, b"words");
    long.push(0);
    let garbage = [&long[..], &long[..HEADER_BYTES], &[0xff; 100], &[]];
    for (count, bytes) in (6..).zip(garbage) {
        world.give(NodeId(VICTIM), MeshInput::Relay(bytes));
        assert_eq!(world.mesh(VICTIM).dropped().stray, count);
    }
    for payload in [&[][..], &[9], &[3, 1], &[2, 1]] {
        let header = header(FrameKind::Handshake, payload.len());
        world.give(NodeId(VICTIM), MeshInput::Relay(&[&header.encode()[..], payload].concat()));
    }
    world.nobody_is_bad();
    assert!(world.mesh(VICTIM).is_open(NodeId(LIAR)), "the link is as it was");
}

#[test]
fn every_kind_of_garbage_is_survived() {
    let mut world = World::new(5, 2);
    world.enlist();
    world.until(1_000, World::all_open);
    for round in 0..3_000u64 {
        let at = world.chance() as usize % world.seen.len();
        let mut bytes = world.seen[at].clone();
        for _ in 0..=round % 3 {
            let place = world.chance() as usize % bytes.len();
            bytes[place] ^= 1 << (world.chance() % 8);
        }
        world.give(NodeId(1), MeshInput::Relay(&bytes));
        world.give(NodeId(2), MeshInput::Relay(&bytes));
        world.run(1);
    }
    world.run(5_000);
    world.send(1, 2, 1, b"still here");
    world.run(2_000);
    assert_eq!(world.got(2, 1, 1), [b"still here"]);
}
