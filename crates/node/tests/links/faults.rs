//! Everything at once, from a seed: frames are lost, doubled and overtake each other, paths come and go,
//! epochs change. What arrives is what was said, in order, each once.

use shoal_node::link::*;
use shoal_protocol::Epoch;
use shoal_sim::Clockwork;

use crate::world::{Road, World, message};

/// Seeds of every run; more by hand when something smells.
const SEEDS: u64 = 40;

struct Said {
    /// Messages each end said in the present epoch, in order.
    by: [Vec<(u16, Vec<u8>)>; 2],
}

fn faulty(seed: u64) -> World {
    let pick = |shift: u32, most: u64| (seed.wrapping_mul(0x9e37_79b9) >> shift) % most;
    let relay = Road::new(pick(3, 60), 5_000_000 + pick(5, 40) * 1_000_000);
    let direct = Road::new(pick(7, 20), 1_000_000 + pick(9, 60) * 1_000_000);
    let relay = relay.faulty(pick(11, 120), pick(13, 100), pick(15, 30));
    let direct = direct.faulty(pick(17, 120), pick(19, 100), pick(21, 30));
    World::new(seed, relay, direct)
}

/// One random thing.
fn disturb(world: &mut World, direct: &mut bool) {
    match world.chance() % 12 {
        0 => {
            *direct = !*direct;
            if *direct { world.up(Path::Direct) } else { world.down(Path::Direct) }
        }
        1 => {
            world.down(Path::Relay);
            world.up(Path::Relay);
        }
        2 => world.direct.dead = !world.direct.dead,
        3 => {
            let hold = world.chance().is_multiple_of(2);
            world.give(1, LinkInput::Hold(hold));
        }
        _ => {}
    }
}

fn talk(world: &mut World, said: &mut Said, count: u64) {
    let size = [10, 1_000, 70_000, 400_000][(world.chance() % 4) as usize];
    let length = (world.chance() % size) as usize;
    let (end, channel) = ((world.chance() % 2) as usize, (world.chance() % 3) as u16);
    let bytes = message(count, length);
    said.by[end].push((channel, bytes.clone()));
    world.send(end, channel, bytes);
}

fn calm(world: &mut World) {
    world.direct.dead = false;
    world.give(1, LinkInput::Hold(false));
    world.settle(120_000);
    world.run(1_000);
}

/// Each channel has its own order.
fn of_channel(messages: &[(u16, Vec<u8>)], channel: u16) -> Vec<&Vec<u8>> {
    messages.iter().filter(|(on, _)| *on == channel).map(|(_, bytes)| bytes).collect()
}

fn assert_heard(world: &World, said: &Said, seed: u64) {
    for (end, said) in said.by.iter().enumerate() {
        assert_eq!(world.broken(end), None, "seed {seed}");
        for channel in 0..3 {
            let heard = of_channel(&world.got[1 - end], channel);
            let said = of_channel(said, channel);
            assert_eq!(heard.len(), said.len(), "seed {seed}, end {end}, channel {channel}");
            assert!(heard == said, "seed {seed}, end {end}, channel {channel}");
        }
    }
}

fn one_run(seed: u64) -> World {
    let mut world = faulty(seed);
    let mut said = Said { by: Default::default() };
    let mut direct = false;
    for count in 0..60 {
        disturb(&mut world, &mut direct);
        talk(&mut world, &mut said, count);
        let pause = world.chance() % 150;
        world.run(pause);
    }
    calm(&mut world);
    assert_heard(&world, &said, seed);
    world
}

#[test]
fn whatever_the_network_does_all_arrives_once_and_in_order() {
    for seed in 0..SEEDS {
        one_run(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 14] {
        let (one, two) = (one_run(seed), one_run(seed));
        assert_eq!(
            (one.clock.now, one.clock.trace.finish()),
            (two.clock.now, two.clock.trace.finish())
        );
    }
}

#[test]
fn after_a_change_of_epoch_nothing_old_is_heard() {
    for seed in 0..SEEDS {
        let mut world = faulty(seed);
        let mut said = Said { by: Default::default() };
        for epoch in 2..6 {
            for count in 0..10 {
                talk(&mut world, &mut said, epoch * 100 + count);
                let pause = world.chance() % 30;
                world.run(pause);
            }
            // The two hear of it at different moments, and one speaks before the other has heard.
            let first = (world.chance() % 2) as usize;
            world.epoch(first, epoch as u32);
            said = Said { by: Default::default() };
            world.got = Default::default();
            let bytes = message(epoch, 200_000);
            said.by[first].push((0, bytes.clone()));
            world.send(first, 0, bytes);
            let pause = world.chance() % 300;
            world.run(pause);
            world.got[1 - first].clear();
            world.epoch(1 - first, epoch as u32);
        }
        calm(&mut world);
        assert_heard(&world, &said, seed);
    }
}

#[test]
fn frames_of_a_later_epoch_are_kept_for_the_moment_it_begins() {
    let mut world = World::usual();
    world.run(100);
    world.epoch(0, 2);
    world.send(0, 1, message(1, 50_000));
    world.run(60);
    assert!(world.got[1].is_empty(), "not heard before this end knows of the epoch");
    world.epoch(1, 2);
    assert!(world.got[1] == [(1, message(1, 50_000))], "and then at once");
}

#[test]
fn a_peer_far_ahead_is_not_kept_without_end_and_still_heard() {
    let mut world = World::usual();
    world.run(100);
    world.epoch(0, 2);
    for n in 0..60 {
        world.send(0, 1, message(n, 60_000));
    }
    world.run(20_000);
    assert!(world.ends[1].dropped().early > 0);
    world.epoch(1, 2);
    let took = world.settle(10_000);
    assert_eq!(world.got[1].len(), 60);
    assert!(took.as_millis() < 1_000, "{took:?}");
}

#[test]
fn old_epochs_are_dropped_and_counted() {
    let mut world = World::usual();
    world.send(0, 1, message(1, 500_000));
    world.run(10);
    world.give(1, LinkInput::Epoch(Epoch(5)));
    world.run(200);
    assert!(world.got[1].is_empty());
    assert!(world.ends[1].dropped().stale > 3);
    world.give(1, LinkInput::Epoch(Epoch(4)));
    world.epoch(0, 5);
    world.send(0, 1, message(2, 10));
    world.settle(1_000);
    assert_eq!(world.got[1], [(1, message(2, 10))], "an epoch never goes back");
}
