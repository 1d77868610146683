//! Everything at once, from a seed: after it, the crew is whole and talks.

use std::sync::Arc;

use shoal_node::mesh::MeshInput;
use shoal_protocol::{Micros, NodeId};
use shoal_sim::{Clockwork, Wire};

use crate::world::{CALM, World};

/// Seeds tried on every commit; `SHOAL_MESH_SEEDS` tries more.
const SEEDS: u64 = 40;

fn fault(world: &mut World) {
    let count = world.members.len() as u64;
    let node = 1 + world.chance() % count;
    match world.chance() % 8 {
        0 => world.online(node, false),
        1 => world.online(node, true),
        2 => {
            let radio = !world.chance().is_multiple_of(4);
            let key = world.nodes[&NodeId(node)].key_seed;
            world.start(NodeId(node), key, radio);
            world.enlist_one(NodeId(node));
        }
        3 => {
            // A new key is known to the others in the next epoch only.
            let key = world.chance() as u8;
            world.start(NodeId(node), key, true);
            world.enlist();
        }
        4 => world.enlist(),
        5 => world.cut(),
        6 => world.mute(),
        _ => world.ice = !world.ice,
    }
}

fn chatter(world: &mut World) {
    let count = world.members.len() as u64;
    for _ in 0..3 {
        let (one, two) = (1 + world.chance() % count, 1 + world.chance() % count);
        let size = world.chance() as usize % 100_000;
        world.send(one, two, 1, &vec![7; size]);
    }
}

fn live_through(seed: u64) -> shoal_protocol::Hash {
    let mut world = World::new(seed, 2 + seed % 4);
    let per_million = |world: &mut World| world.chance() % 120_000;
    world.relay = Wire {
        lost: per_million(&mut world),
        doubled: per_million(&mut world),
        jitter: Micros(world.chance() % 50_000),
        ..CALM
    };
    world.replayed = per_million(&mut world);
    world.enlist();
    for _ in 0..25 {
        chatter(&mut world);
        let wait = world.chance() % 3_000;
        world.run(wait);
        fault(&mut world);
    }
    let members: Vec<u64> = world.members.iter().map(|node| node.0).collect();
    members.iter().for_each(|node| world.online(*node, true));
    world.enlist();
    world.until(60_000, World::all_open);
    for one in &members {
        for two in members.iter().filter(|two| *two != one) {
            world.send(*one, *two, 2, &[*one as u8, *two as u8]);
        }
    }
    world.until(60_000, |world| world.nodes.values().all(|node| !node.mesh.is_busy()));
    world.run(1_000);
    for one in &members {
        for two in members.iter().filter(|two| *two != one) {
            assert_eq!(world.got(*two, *one, 2), [[*one as u8, *two as u8]], "{one} to {two}");
        }
    }
    world.nobody_is_bad();
    world.clock.trace.finish()
}

#[test]
fn whatever_happens_the_crew_comes_back() {
    let seeds = std::env::var("SHOAL_MESH_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 1..=seeds.unwrap_or(SEEDS) {
        let lived = std::panic::catch_unwind(|| live_through(seed));
        assert!(lived.is_ok(), "seed {seed}");
    }
}

/// Inputs that no sane shell gives, in any order.
fn nonsense(world: &mut World, frames: &[Vec<u8>]) {
    let (me, other) = (NodeId(1 + world.chance() % 3), NodeId(world.chance() % 5));
    let at = world.chance() as usize % frames.len();
    let input = match world.chance() % 12 {
        0 => MeshInput::DirectUp(other),
        1 => MeshInput::DirectDown(other),
        2 => MeshInput::Direct(other, &frames[at]),
        3 => MeshInput::Radio(other, b"answer 1".to_vec()),
        4 => MeshInput::RelayUp,
        5 => MeshInput::RelayDown,
        6 => MeshInput::Hold(other, at.is_multiple_of(2)),
        7 => return world.enlist_one(me),
        8 => MeshInput::Tick,
        9 => MeshInput::Send { to: other, channel: at as u16 % 40, message: Arc::default() },
        _ => MeshInput::Relay(&frames[at]),
    };
    world.give(me, input);
}

#[test]
fn whatever_a_shell_says_nothing_breaks() {
    for seed in 1..=SEEDS {
        let mut world = World::new(seed, 3);
        world.ice = true;
        world.enlist();
        world.run(3_000);
        let frames = world.seen.clone();
        for _ in 0..1_000 {
            nonsense(&mut world, &frames);
            let wait = world.chance() % 20;
            world.run(wait);
        }
        (1..=3).for_each(|node| world.online(node, true));
        world.enlist();
        world.until(60_000, World::all_open);
    }
}

#[test]
fn what_happens_is_decided_by_the_seed() {
    assert_eq!(live_through(3), live_through(3));
}
