//! Paths come, die, fall silent and flap.

use shoal_node::link::*;
use shoal_protocol::Micros;
use shoal_sim::Clockwork;

use crate::world::{Road, World, message};

#[test]
fn a_direct_path_is_taken_live_and_the_relay_left_alone() {
    let mut world = World::usual();
    world.send(0, 1, message(1, 4 << 20));
    world.run(60);
    world.up(Path::Direct);
    world.settle(2_000);
    assert!(world.got[1] == [(1, message(1, 4 << 20))]);
    assert_eq!(world.using(0), Some(Path::Direct));
    let before = world.relay.bytes[0];
    world.send(0, 1, message(2, 8 << 20));
    world.settle(2_000);
    assert_eq!(world.got[1].len(), 2);
    assert!(world.relay.bytes[0] - before < 1_000, "only pings go by relay");
}

#[test]
fn a_path_that_one_end_has_first_is_taken_as_soon_as_both_have_it() {
    // A data channel opens at the end that dialled, whose first words come before the other end has it.
    for first in 0..2 {
        let mut world = World::usual();
        world.run(1_000);
        world.up_first_at(first, Path::Direct, 40);
        let begun = world.clock.now;
        world.until(10_000, |world| (0..2).all(|end| world.using(end) == Some(Path::Direct)));
        let took = world.clock.now - begun;
        assert!(took <= Micros::from_millis(20), "{took:?}; a round trip is 10 ms");
    }
}

#[test]
fn a_path_that_dies_in_the_middle_costs_almost_nothing() {
    let mut world = World::usual();
    world.up(Path::Direct);
    world.run(100);
    world.send(0, 1, message(1, 16 << 20));
    world.run(100);
    assert_eq!(world.using(0), Some(Path::Direct));
    world.down(Path::Direct);
    let took = world.settle(5_000);
    assert!(world.got[1] == [(1, message(1, 16 << 20))]);
    assert!(took.as_millis() < 500, "{took:?} for the rest of 16 MiB at 50 MB/s");
}

#[test]
fn a_path_that_falls_silent_is_left_without_being_told() {
    let mut world = World::usual();
    world.up(Path::Direct);
    world.run(100);
    world.direct.dead = true;
    world.send(0, 1, message(1, 1 << 20));
    let took = world.settle(10_000);
    assert_eq!(world.got[1].len(), 1);
    assert!(took.as_millis() < 1_500, "{took:?}");
    assert_eq!(world.using(0), Some(Path::Relay));
    world.direct.dead = false;
    world.run(6_000);
    assert_eq!(world.using(0), Some(Path::Direct), "it is taken again when it answers");
}

#[test]
fn an_idle_silent_path_is_found_out_before_it_is_needed() {
    let mut world = World::usual();
    world.up(Path::Direct);
    world.run(100);
    world.direct.dead = true;
    world.run(4_000);
    assert_eq!(world.using(0), Some(Path::Relay));
}

/// Megabytes carried in a minute, by relay alone or with a direct path that dies every ten seconds.
fn carried(flaps: bool) -> usize {
    let mut world = World::new(3, Road::new(30, 2_000_000), Road::new(10, 2_000_000));
    let mut sent = 0;
    for tenth in 0..600 {
        match tenth % 100 {
            20 if flaps => world.up(Path::Direct),
            // First nothing passes, later somebody says so.
            80 if flaps => world.direct.dead = true,
            99 if flaps => {
                world.down(Path::Direct);
                world.direct.dead = false;
            }
            _ => {}
        }
        while sent < world.got[1].len() + 8 {
            world.send(0, 1, message(sent as u64, 1_000_000));
            sent += 1;
        }
        world.run(100);
    }
    world.got[1].len()
}

#[test]
fn a_direct_path_that_dies_every_ten_seconds_is_no_slower_than_the_relay_alone() {
    let (alone, flapping) = (carried(false), carried(true));
    assert!(alone > 100, "{alone} MB by relay alone");
    assert!(flapping * 100 >= alone * 95, "{flapping} MB with flaps, {alone} MB without");
}

#[test]
fn a_worse_direct_path_is_not_kept() {
    let mut world = World::new(1, Road::new(20, 50_000_000), Road::new(15, 500_000));
    world.send(0, 1, message(1, 8 << 20));
    world.settle(2_000);
    world.up(Path::Direct);
    world.run(100);
    assert_eq!(world.using(0), Some(Path::Direct), "it looks shorter");
    world.send(0, 1, message(2, 8 << 20));
    let took = world.settle(20_000);
    assert_eq!(world.using(0), Some(Path::Relay), "it proves narrow");
    assert!(took.as_millis() < 3_000, "{took:?}; 17 s by the narrow path");
}

#[test]
fn without_any_path_words_wait_and_somebody_is_told() {
    let mut world = World::usual();
    world.down(Path::Relay);
    world.send(0, 1, message(1, 1_000));
    world.run(5_000);
    assert!(matches!(world.said[0].last(), Some(LinkOutput::Stalled { .. })));
    world.up(Path::Relay);
    let took = world.settle(1_000);
    assert_eq!(world.got[1].len(), 1);
    assert!(took <= Micros::from_millis(50), "{took:?}");
}

#[test]
fn the_relay_comes_back_after_a_restart_and_nothing_is_lost() {
    let mut world = World::usual();
    let sent: Vec<_> = (0..20).map(|n| (1, message(n, 500_000))).collect();
    for (channel, bytes) in &sent {
        world.send(0, *channel, bytes.clone());
    }
    for _ in 0..5 {
        world.run(30);
        world.down(Path::Relay);
        world.run(200);
        world.up(Path::Relay);
    }
    world.settle(5_000);
    assert!(world.got[1] == sent);
}
