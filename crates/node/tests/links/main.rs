//! Two ends of a link in virtual time: each test is one sentence about how they talk.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod faults;
mod liars;
mod paths;
mod road;
mod world;

use shoal_node::link::*;
use shoal_protocol::limit::*;
use shoal_sim::Clockwork;
use world::{Road, World, message};

#[test]
fn messages_arrive_whole_and_in_order() {
    let mut world = World::usual();
    let sizes = [0, 1, 5, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 1_000_000];
    let sent: Vec<_> = sizes.iter().map(|size| (3, message(*size as u64, *size))).collect();
    for (channel, bytes) in &sent {
        world.send(0, *channel, bytes.clone());
    }
    world.settle(2_000);
    assert!(world.got[1] == sent);
    assert!(world.got[0].is_empty());
}

#[test]
fn a_short_message_waits_one_way_and_no_more() {
    let mut world = World::usual();
    world.run(500);
    let begun = world.clock.now;
    world.send(0, 1, message(1, 100));
    world.run(100);
    assert_eq!((world.got_at[1][0] - begun).as_millis(), 20);
}

#[test]
fn a_large_tensor_does_not_stand_before_a_barrier() {
    for (rate, most) in [(10_000_000, 50), (2_000_000, 120), (200_000, 250), (50_000, 500)] {
        let mut world = World::new(1, Road::new(10, rate), Road::new(1, 1));
        world.send(0, 1, message(1, 40 << 20));
        // Time to learn how narrow the path is.
        world.run(3_000);
        let begun = world.clock.now;
        world.send(0, 2, message(2, 8));
        world.run(1_000);
        let barrier = world.got[1].iter().position(|(channel, _)| *channel == 2).unwrap();
        let waited = (world.got_at[1][barrier] - begun).as_millis();
        assert!(waited < most, "{waited} ms behind 40 MiB at {rate} bytes/s");
    }
}

#[test]
fn channels_take_turns() {
    let mut world = World::new(1, Road::new(10, 10_000_000), Road::new(1, 1));
    for channel in 0..4 {
        world.send(0, channel, message(channel.into(), 2 << 20));
    }
    world.settle(5_000);
    let first = world.got_at[1][0];
    let last = world.got_at[1][3];
    assert!((last - first).as_millis() < 100, "of 840 ms, all end together: {:?}", world.got_at[1]);
}

#[test]
fn a_path_is_filled_whatever_its_length_and_width() {
    let wires = [
        (0, 200_000_000),
        (1, 100_000_000),
        (10, 50_000_000),
        (25, 50_000_000),
        (100, 2_000_000),
        (30, 50_000),
        (30, 10_000),
    ];
    for (delay, rate) in wires {
        let mut world = World::new(1, Road::new(delay, rate), Road::new(1, 1));
        world.run(500);
        // As much as three seconds carry, but no more than a message may have.
        let size = (rate * 3).clamp(1 << 20, 48 << 20);
        world.send(0, 1, message(1, size as usize));
        let took = world.settle(300_000);
        assert_eq!(world.got[1].len(), 1);
        let share = size * 100_000_000 / rate / took.0;
        assert!(share >= 80, "{share} % of {rate} bytes/s at {delay} ms one way");
        let sent = world.relay.bytes[0] * 100 / size;
        assert!(sent < 115, "{sent} % of the bytes were sent at {rate} bytes/s");
    }
}

#[test]
fn both_ends_talk_at_once() {
    let mut world = World::usual();
    let sent: Vec<_> = (0..50).map(|n| (1, message(n, 10_000 * n as usize))).collect();
    for (channel, bytes) in &sent {
        world.send(0, *channel, bytes.clone());
        world.send(1, *channel, bytes.clone());
    }
    world.settle(10_000);
    assert!(world.got[0] == sent && world.got[1] == sent);
}

#[test]
fn what_cannot_be_taken_is_given_back() {
    let mut world = World::usual();
    world.send(0, 1, vec![0; MAX_MESSAGE_BYTES as usize + 1]);
    assert!(matches!(world.said[0].last(), Some(LinkOutput::Refused { channel: 1, .. })));
    for channel in 0..MAX_CHANNELS as u16 {
        world.send(0, channel, Vec::new());
    }
    world.send(0, 999, Vec::new());
    assert!(matches!(world.said[0].last(), Some(LinkOutput::Refused { channel: 999, .. })));
    world.settle(1_000);
    assert_eq!(world.got[1].len(), MAX_CHANNELS);
}

#[test]
fn an_owner_that_does_not_keep_up_slows_the_sender_down() {
    let mut world = World::usual();
    world.give(1, LinkInput::Hold(true));
    for n in 0..40 {
        world.send(0, 1, message(n, 1 << 20));
    }
    world.run(3_000);
    assert!(world.got[1].len() as u64 <= LINK_WINDOW >> 20, "{} came", world.got[1].len());
    assert!(world.relay.bytes[0] < LINK_WINDOW + 100_000, "no more than the window was sent");
    world.run(3_000);
    assert!(world.said[0].iter().any(|said| matches!(said, LinkOutput::Stalled { .. })));
    world.give(1, LinkInput::Hold(false));
    world.settle(5_000);
    assert_eq!(world.got[1].len(), 40);
    assert!(world.said[0].iter().any(|said| matches!(said, LinkOutput::Flowing)));
}

#[test]
fn measurements_are_told() {
    let mut world = World::usual();
    world.send(0, 1, message(1, 32 << 20));
    world.settle(5_000);
    world.run(2_000);
    let told = world.said[0].iter().rev().find_map(|said| match said {
        LinkOutput::Measured { path: Path::Relay, round_trip, bytes_per_second, loss } => {
            Some((*round_trip, *bytes_per_second, *loss))
        }
        _ => None,
    });
    let (round_trip, rate, loss) = told.unwrap();
    assert!((40..120).contains(&round_trip.as_millis()), "{round_trip:?}");
    assert!(rate.is_some_and(|rate| (40_000_000..55_000_000).contains(&rate)), "{rate:?}");
    assert_eq!(loss, 0);
}
