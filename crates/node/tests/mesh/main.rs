//! Meshes: keys, seals, tokens and the ladder between the members of a crew, with every fault a network and a
//! liar can have.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod chaos;
mod crew;
mod epochs;
mod faults;
mod forged;
mod liar;
mod liars;
mod paths;
mod radio;
mod world;

use shoal_node::mesh::*;
use shoal_protocol::{NodeId, Path};
use shoal_sim::Clockwork;
use world::World;

#[test]
fn two_members_talk_by_relay() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.send(1, 2, 1, b"from one");
    world.send(2, 1, 2, b"from two");
    let took = world.until(1_000, World::all_open);
    assert!(took.as_millis() < 150, "call, answer, token, token: {took:?}");
    world.run(1_000);
    assert_eq!(world.got(2, 1, 1), [b"from one"]);
    assert_eq!(world.got(1, 2, 2), [b"from two"]);
    assert_eq!(world.using(1, 2), Some(Path::Relay));
    world.nobody_is_bad();
}

#[test]
fn all_pairs_of_a_small_crew_have_links() {
    let mut world = World::new(1, 5);
    world.enlist();
    world.until(2_000, World::all_open);
    for from in 1..=5 {
        for to in (1..=5).filter(|to| *to != from) {
            world.send(from, to, 3, &[from as u8, to as u8]);
        }
    }
    world.run(500);
    for from in 1..=5 {
        for to in (1..=5).filter(|to| *to != from) {
            assert_eq!(world.got(to, from, 3), [[from as u8, to as u8]]);
        }
    }
    world.nobody_is_bad();
}

#[test]
fn in_a_large_crew_neighbours_have_links_and_others_get_one_when_asked_for() {
    let mut world = World::new(1, 10);
    world.enlist();
    world.run(2_000);
    let open = |world: &World, one: u64, two: u64| world.mesh(one).is_open(NodeId(two));
    assert!(open(&world, 1, 2) && open(&world, 1, 10) && open(&world, 6, 5));
    assert!(!open(&world, 1, 5) && !open(&world, 9, 3));
    world.send(1, 5, 1, b"down");
    world.send(9, 3, 1, b"up");
    world.run(500);
    assert_eq!(world.got(5, 1, 1), [b"down"]);
    assert_eq!(world.got(3, 9, 1), [b"up"]);
    world.nobody_is_bad();
}

#[test]
fn what_goes_through_the_relay_is_sealed() {
    let mut world = World::new(1, 2);
    let marker = b"marker of a tensor, never to be seen";
    world.enlist();
    world.send(1, 2, 1, &marker.repeat(10_000));
    world.send(2, 1, 1, marker);
    world.run(5_000);
    assert_eq!((world.got(2, 1, 1).len(), world.got(1, 2, 1).len()), (1, 1));
    let shows = |bytes: &Vec<u8>| bytes.windows(marker.len()).any(|window| window == marker);
    assert!(!world.seen.iter().any(shows));
}

#[test]
fn links_are_reported_with_what_they_carried() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.send(1, 2, 1, &[1; 100_000]);
    world.run(5_000);
    let report = world.nodes[&NodeId(1)].said.iter().rev().find_map(|said| match said {
        MeshOutput::Report(report) => Some(*report),
        _ => None,
    });
    let report = report.unwrap();
    assert_eq!((report.with, report.via), (NodeId(2), Path::Relay));
    assert!(report.relayed > 100_000 && report.direct == 0, "{report:?}");
    assert!(report.round_trip.as_millis() >= 40, "{report:?}");
}

#[test]
fn what_cannot_be_said_is_refused() {
    let mut world = World::new(1, 2);
    world.send(1, 2, 1, b"before there is a crew");
    world.enlist();
    world.send(1, 1, 1, b"to itself");
    world.send(1, 9, 1, b"to nobody");
    world.send(1, 2, CONTROL, b"on the mesh's own channel");
    let refused = |to: u64, channel| MeshOutput::Refused { to: NodeId(to), channel };
    let said = &world.nodes[&NodeId(1)].said;
    assert_eq!(*said, [refused(2, 1), refused(1, 1), refused(9, 1), refused(2, CONTROL)]);
    for _ in 0..1_025 {
        world.send(1, 2, 1, b"too much for somebody who never answered");
    }
    assert_eq!(world.nodes[&NodeId(1)].said[4..], [refused(2, 1)]);
}
