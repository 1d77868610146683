//! What relays do: lose, double, mix up, say old things again, vanish and come back.

use shoal_node::mesh::*;
use shoal_protocol::{Micros, NodeId};
use shoal_sim::{Clockwork, Wire};

use crate::world::{CALM, World};

const TERRIBLE: Wire =
    Wire { lost: 100_000, doubled: 100_000, jitter: Micros::from_millis(60), ..CALM };

/// Everybody says so many things to everybody, each its own.
fn chatter(world: &mut World, count: u64, from: u64) {
    let members: Vec<u64> = world.members.iter().map(|node| node.0).collect();
    for number in from..from + count {
        for one in &members {
            for two in members.iter().filter(|two| *two != one) {
                let size = 1 + (number as usize * 997) % 40_000;
                let mut bytes = vec![(one * 16 + two) as u8; size];
                bytes[0] = number as u8;
                world.send(*one, *two, 1 + number as u16 % 2, &bytes);
            }
        }
    }
}

fn all_heard_in_order(world: &World, count: u64) {
    for one in &world.members {
        for two in world.members.iter().filter(|two| *two != one) {
            for channel in 1..=2 {
                let got = world.got(two.0, one.0, channel);
                let numbers: Vec<u64> = got.iter().map(|bytes| u64::from(bytes[0])).collect();
                let expected: Vec<u64> =
                    (0..count).filter(|number| 1 + number % 2 == u64::from(channel)).collect();
                assert_eq!(numbers, expected, "from {one} to {two}");
                let right =
                    |bytes: &Vec<u8>| bytes[1..].iter().all(|b| *b == (one.0 * 16 + two.0) as u8);
                assert!(got.iter().all(right));
            }
        }
    }
}

fn quiet(world: &World) -> bool {
    world.nodes.values().all(|node| !node.mesh.is_busy())
}

#[test]
fn a_terrible_relay_loses_nothing_and_doubles_nothing() {
    for seed in 1..=20 {
        let mut world = World::new(seed, 2 + seed % 4);
        (world.relay, world.replayed) = (TERRIBLE, 100_000);
        world.enlist();
        chatter(&mut world, 10, 0);
        world.until(60_000, quiet);
        chatter(&mut world, 10, 10);
        world.until(60_000, quiet);
        world.run(5_000);
        all_heard_in_order(&world, 20);
        world.nobody_is_bad();
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let run = || {
        let mut world = World::new(9, 4);
        (world.relay, world.replayed) = (TERRIBLE, 100_000);
        world.ice = true;
        world.enlist();
        chatter(&mut world, 6, 0);
        world.run(20_000);
        (world.clock.trace.finish(), world.relayed)
    };
    assert_eq!(run(), run());
}

#[test]
fn half_of_all_handshakes_may_be_lost() {
    for seed in 1..=20 {
        let mut world = World::new(seed, 3);
        world.relay.lost = 500_000;
        world.enlist();
        world.until(60_000, World::all_open);
        world.nobody_is_bad();
    }
}

#[test]
fn a_restarted_relay_loses_no_message() {
    let mut world = World::new(1, 3);
    world.enlist();
    world.until(1_000, World::all_open);
    chatter(&mut world, 10, 0);
    world.run(30);
    (1..=3).for_each(|node| world.online(node, false));
    chatter(&mut world, 10, 10);
    world.run(20_000);
    (1..=3).for_each(|node| world.online(node, true));
    world.until(30_000, quiet);
    world.run(1_000);
    all_heard_in_order(&world, 20);
    world.nobody_is_bad();
}

#[test]
fn a_relay_that_is_away_at_first_is_waited_for() {
    let mut world = World::new(1, 2);
    (1..=2).for_each(|node| world.online(node, false));
    world.enlist();
    chatter(&mut world, 4, 0);
    world.run(10_000);
    assert_eq!(world.relayed, 0);
    (1..=2).for_each(|node| world.online(node, true));
    world.until(5_000, quiet);
    world.run(1_000);
    all_heard_in_order(&world, 4);
}

#[test]
fn a_replayed_crew_brings_no_link_down() {
    let mut world = World::new(3, 2);
    world.enlist();
    chatter(&mut world, 6, 0);
    world.run(5_000);
    let all = world.seen.clone();
    for (at, frame) in all.iter().enumerate() {
        let to = NodeId(u64::from(frame[16]));
        world.give(to, MeshInput::Relay(frame));
        if at % 8 == 0 {
            world.run(100);
        }
    }
    all_heard_in_order(&world, 6);
    world.send(1, 2, 1, &[6, 18]);
    world.send(2, 1, 1, &[6, 33]);
    world.run(200);
    assert_eq!((world.got(2, 1, 1).len(), world.got(1, 2, 1).len()), (4, 4), "at once");
    world.nobody_is_bad();
}

#[test]
fn a_member_that_never_answers_is_named() {
    let mut world = World::new(1, 2);
    world.online(2, false);
    world.enlist();
    world.run(10_000);
    let slow = MeshOutput::Slow(NodeId(2));
    let named = |world: &World| {
        let said = &world.nodes[&NodeId(1)].said;
        said.iter().filter(|said| **said == slow).count()
    };
    assert_eq!(named(&world), 0, "nobody has anything to say to it");
    world.send(1, 2, 1, b"where are you");
    world.run(3_900);
    assert_eq!(named(&world), 0);
    world.run(200);
    assert_eq!(named(&world), 1);
    world.run(20_000);
    assert_eq!(named(&world), 1, "once");
    world.online(2, true);
    world.run(6_000);
    assert_eq!(world.got(2, 1, 1), [b"where are you"]);
}

#[test]
fn a_member_that_stalls_without_leaving_is_named_and_stalls_nobody_else() {
    let mut world = World::new(1, 3);
    world.enlist();
    world.until(1_000, World::all_open);
    world.give(NodeId(2), MeshInput::Hold(NodeId(1), true));
    for _ in 0..80 {
        world.send(1, 2, 1, &[1; 100_000]);
    }
    for number in 0..10 {
        world.send(1, 3, 1, &[number]);
    }
    world.run(10_000);
    assert_eq!(world.got(3, 1, 1).len(), 10);
    assert!(world.got(2, 1, 1).len() < 80, "it takes no more than its window");
    assert!(world.nodes[&NodeId(1)].said.contains(&MeshOutput::Slow(NodeId(2))));
    world.give(NodeId(2), MeshInput::Hold(NodeId(1), false));
    world.until(60_000, quiet);
    world.run(1_000);
    assert_eq!(world.got(2, 1, 1).len(), 80);
    world.nobody_is_bad();
}
