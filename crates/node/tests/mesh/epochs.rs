//! Members come, go and begin anew; tokens are for one epoch.

use shoal_node::mesh::*;
use shoal_protocol::{Micros, NodeId};
use shoal_sim::{Clockwork, Wire};

use crate::crew::UNIX;
use crate::world::{CALM, World};

fn talk(world: &mut World, one: u64, two: u64, word: &[u8]) {
    world.send(one, two, 1, word);
    world.send(two, one, 1, word);
    world.run(10_000);
    assert_eq!(world.got(two, one, 1).last().map(Vec::as_slice), Some(word), "{one} to {two}");
    assert_eq!(world.got(one, two, 1).last().map(Vec::as_slice), Some(word), "{two} to {one}");
}

#[test]
fn links_to_those_who_stay_are_kept() {
    let mut world = World::new(1, 3);
    world.enlist();
    world.until(1_000, World::all_open);
    let handshakes = |world: &World| world.seen.iter().filter(|bytes| bytes[1] == 1).count();
    let before = handshakes(&world);
    for _ in 0..3 {
        world.enlist();
        assert!(!world.all_open(), "new tokens must be shown");
        world.until(200, World::all_open);
    }
    assert_eq!(handshakes(&world), before, "nobody agreed on keys again");
    talk(&mut world, 1, 2, b"fourth epoch");
    world.nobody_is_bad();
}

#[test]
fn who_is_not_enlisted_again_is_revoked() {
    let mut world = World::new(1, 3);
    world.enlist();
    world.until(1_000, World::all_open);
    world.members.pop();
    world.enlist();
    // The third still believes in its crew and its link.
    world.epoch = 1;
    world.send(3, 1, 1, b"poison");
    world.send(1, 3, 1, b"nobody");
    world.run(5_000);
    assert!(world.got(1, 3, 1).is_empty());
    assert!(world.mesh(1).dropped().stray > 0);
    let refused = MeshOutput::Refused { to: NodeId(3), channel: 1 };
    assert!(world.nodes[&NodeId(1)].said.contains(&refused));
    assert!(!world.mesh(1).is_open(NodeId(3)));
}

#[test]
fn who_was_left_out_for_an_epoch_and_heard_nothing_of_it_is_heard_again() {
    for out in [1, 2] {
        let mut world = World::new(1, 3);
        world.enlist();
        world.until(1_000, World::all_open);
        let all = world.members.clone();
        world.members.retain(|node| *node != NodeId(out));
        world.enlist();
        world.run(2_000);
        world.members = all;
        world.enlist();
        world.send(out, 3, 1, b"back");
        world.send(3, out, 1, b"welcome");
        world.run(10_000);
        assert_eq!(world.got(3, out, 1), [b"back"]);
        assert_eq!(world.got(out, 3, 1), [b"welcome"]);
        assert!(world.all_open());
        world.nobody_is_bad();
    }
}

#[test]
fn the_news_of_an_epoch_may_come_to_one_much_later() {
    for first in [1, 2] {
        let mut world = World::new(1, 2);
        world.enlist();
        world.until(1_000, World::all_open);
        world.send(1, 2, 1, b"old");
        world.run(200);
        world.epoch = 2;
        world.enlist_one(NodeId(first));
        world.send(first, 3 - first, 1, b"new");
        world.run(3_000);
        assert!(!world.got(3 - first, first, 1).contains(&b"new".to_vec()));
        world.enlist_one(NodeId(3 - first));
        world.until(1_000, World::all_open);
        world.run(5_000);
        assert_eq!(world.got(3 - first, first, 1).last().unwrap(), b"new");
        world.nobody_is_bad();
    }
}

#[test]
fn what_was_being_said_in_an_old_epoch_is_not_heard_in_the_new_one() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.until(1_000, World::all_open);
    world.send(1, 2, 1, &[1; 1_000_000]);
    world.run(10);
    world.enlist();
    world.send(1, 2, 1, b"new");
    world.run(5_000);
    assert_eq!(world.got(2, 1, 1), [b"new"]);
    // The same for what waited for a link.
    let mut world = World::new(1, 2);
    world.online(2, false);
    world.enlist();
    world.send(1, 2, 1, b"old");
    world.run(1_000);
    world.online(2, true);
    world.enlist();
    world.send(1, 2, 1, b"new");
    world.run(5_000);
    assert_eq!(world.got(2, 1, 1), [b"new"]);
}

#[test]
fn a_device_whose_clock_is_wrong_accuses_nobody() {
    for wrong in [UNIX + 90_000_000_000 * 30, UNIX - 90_000_000_000 * 30] {
        let mut world = World::new(1, 3);
        world.start_at(NodeId(2), 2, true, wrong);
        world.enlist();
        world.until(1_000, World::all_open);
        talk(&mut world, 1, 2, b"words");
        world.enlist();
        talk(&mut world, 2, 3, b"more");
        world.nobody_is_bad();
    }
}

#[test]
fn an_older_epoch_and_another_crew_change_nothing() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.enlist();
    world.until(1_000, World::all_open);
    let mut old = world.enlistment(NodeId(1));
    old.epoch.0 = 1;
    old.members.pop();
    world.give(NodeId(1), MeshInput::Enlist(&old));
    let mut other = world.enlistment(NodeId(1));
    (other.crew.0, other.epoch.0) = (8, 9);
    world.give(NodeId(1), MeshInput::Enlist(&other));
    assert!(world.all_open());
}

#[test]
fn a_member_that_begins_anew_with_its_key_gets_its_links_back() {
    for seed in 1..=10 {
        for restarted in [1, 2] {
            let mut world = World::new(seed, 2);
            if seed > 5 {
                world.relay = Wire { lost: 200_000, jitter: Micros(30_000), ..CALM };
            }
            world.enlist();
            world.until(20_000, World::all_open);
            talk(&mut world, 1, 2, b"before");
            world.start(NodeId(restarted), restarted as u8, true);
            world.enlist_one(NodeId(restarted));
            let took =
                world.until(20_000, |world| world.mesh(restarted).is_open(NodeId(3 - restarted)));
            assert!(seed > 5 || took.as_millis() < 500, "it asks to be called: {took:?}");
            talk(&mut world, 1, 2, b"after");
            world.nobody_is_bad();
        }
    }
}

#[test]
fn what_was_said_before_the_other_was_heard_is_not_lost_when_it_begins_anew() {
    for millis in (0..300).step_by(3) {
        let mut world = World::new(1, 2);
        world.enlist();
        world.send(1, 2, 1, b"words");
        world.run(millis);
        let before = world.got(2, 1, 1).len();
        world.start(NodeId(2), 2, true);
        world.enlist_one(NodeId(2));
        world.run(10_000);
        let lives = (before, world.got(2, 1, 1).len());
        assert!([(1, 0), (0, 1), (1, 1)].contains(&lives), "{millis} ms: {lives:?}");
        talk(&mut world, 1, 2, b"more");
        world.nobody_is_bad();
    }
}

#[test]
fn a_member_that_lost_its_seal_and_cannot_say_so_is_found_out_by_its_silence() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.until(1_000, World::all_open);
    world.loses_asks = true;
    world.start(NodeId(2), 2, true);
    world.enlist_one(NodeId(2));
    let took = world.until(10_000, |world| world.mesh(2).is_open(NodeId(1)));
    assert!(took.as_millis() > 2_000, "{took:?}");
    talk(&mut world, 1, 2, b"after");
    world.nobody_is_bad();
}

#[test]
fn late_frames_of_an_earlier_life_do_not_bring_it_back() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.run(35);
    // The first life hears the answer, and what it says then is held back.
    world.relay.lost = 1_000_000;
    let before = world.seen.len();
    world.run(10);
    let sealed = |bytes: &&Vec<u8>| bytes[1] == 2 && bytes[8] == 1;
    let late: Vec<_> = world.seen[before..].iter().filter(sealed).cloned().collect();
    assert!(!late.is_empty());
    world.relay.lost = 0;
    world.start(NodeId(1), 1, true);
    world.enlist_one(NodeId(1));
    world.until(5_000, World::all_open);
    let closed = world.mesh(2).dropped().closed;
    late.iter().for_each(|bytes| world.give(NodeId(2), MeshInput::Relay(bytes)));
    assert_eq!(world.mesh(2).dropped().closed - closed, late.len() as u64);
    assert!(world.all_open());
}

#[test]
fn a_member_with_a_new_key_comes_back_in_the_next_epoch() {
    for restarted in [1, 2] {
        let mut world = World::new(1, 2);
        world.enlist();
        talk(&mut world, 1, 2, b"before");
        world.start(NodeId(restarted), 50, true);
        world.run(5_000);
        world.enlist();
        world.until(1_000, World::all_open);
        talk(&mut world, 1, 2, b"after");
        world.nobody_is_bad();
    }
}

#[test]
fn members_that_begin_anew_at_the_same_time_find_each_other() {
    for seed in 1..=10 {
        let mut world = World::new(seed, 4);
        world.relay = Wire { jitter: Micros(40_000), doubled: 100_000, ..CALM };
        world.enlist();
        world.until(10_000, World::all_open);
        for node in 1..=4 {
            world.start(NodeId(node), node as u8, true);
            world.enlist_one(NodeId(node));
            let wait = world.chance() % 100;
            world.run(wait);
        }
        world.until(20_000, World::all_open);
        talk(&mut world, 1, 4, b"after");
        world.nobody_is_bad();
    }
}
