//! The ladder: direct channels that come, die, fall silent, and lie.

use shoal_node::mesh::*;
use shoal_node::session::RadioDo;
use shoal_protocol::*;
use shoal_sim::Clockwork;

use crate::crew::CREW;
use crate::world::World;

fn climbed(seed: u64, count: u64) -> World {
    let mut world = World::new(seed, count);
    world.ice = true;
    world.enlist();
    world.until(5_000, |world| world.using(1, 2) == Some(Path::Direct));
    world.until(5_000, |world| world.using(2, 1) == Some(Path::Direct));
    world
}

#[test]
fn a_link_climbs_to_a_direct_channel_and_the_relay_is_spared() {
    let mut world = climbed(1, 2);
    world.run(2_000);
    let before = world.relayed;
    world.send(1, 2, 1, &[1; 1_000_000]);
    world.run(5_000);
    assert_eq!(world.got(2, 1, 1), [vec![1; 1_000_000]]);
    assert!(world.relayed - before < 10_000, "only what measures it goes there");
    let report = world.nodes[&NodeId(1)].said.iter().rev().find_map(|said| match said {
        MeshOutput::Report(report) => Some(*report),
        _ => None,
    });
    let report = report.unwrap();
    assert!(report.via == Path::Direct && report.direct > 1_000_000, "{report:?}");
    assert_eq!((world.dials(1), world.dials(2)), (1, 0), "the lower number dials");
    world.nobody_is_bad();
}

#[test]
fn death_of_the_direct_channel_loses_no_message_and_it_is_dialled_again() {
    let mut world = climbed(1, 2);
    world.send(1, 2, 1, &[2; 3_000_000]);
    world.run(20);
    world.cut();
    world.run(20_000);
    assert_eq!(world.got(2, 1, 1), [vec![2; 3_000_000]]);
    assert_eq!(world.dials(1), 2);
    assert_eq!(world.using(1, 2), Some(Path::Direct));
    world.nobody_is_bad();
}

#[test]
fn silence_of_the_direct_channel_is_left_for_the_relay() {
    // A page that is frozen while its Worker lives: its radio passes nothing, and tells nobody.
    let mut world = climbed(1, 2);
    world.mute();
    world.send(1, 2, 1, &[3; 1_000_000]);
    world.run(30_000);
    assert_eq!(world.got(2, 1, 1), [vec![3; 1_000_000]]);
    assert_eq!(world.using(1, 2), Some(Path::Relay));
    world.nobody_is_bad();
}

#[test]
fn a_channel_that_dies_every_ten_seconds_is_no_worse_than_none() {
    let run = |ice: bool| {
        let mut world = World::new(4, 2);
        world.ice = ice;
        world.enlist();
        world.until(1_000, World::all_open);
        let mut slowest = Micros(0);
        for round in 0..1_200u64 {
            // 2 minutes: a message each 100 ms, to be there in time for the next.
            let (heard, begun) = (world.got(2, 1, 1).len(), world.clock.now);
            world.send(1, 2, 1, &[round as u8; 1_000]);
            if round % 100 == 99 {
                world.cut();
            }
            world.until(5_000, |world| world.got(2, 1, 1).len() > heard);
            slowest = slowest.max(world.clock.now - begun);
            world.run(100);
        }
        world.nobody_is_bad();
        (slowest, world.dials(1))
    };
    let (alone, _) = run(false);
    let (flapping, dials) = run(true);
    assert!(flapping.0 <= 3 * alone.0, "{flapping:?} against {alone:?} by relay alone");
    assert!((2..=8).contains(&dials), "{dials} dials in two minutes");
}

#[test]
fn radios_that_never_find_each_other_try_ever_more_rarely_and_for_ever() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.run(600_000);
    assert!((8..=16).contains(&world.dials(1)), "{} dials in ten minutes", world.dials(1));
    let before = world.dials(1);
    world.run(100_000);
    assert!(world.dials(1) > before, "failure is never final");
    world.ice = true;
    world.until(100_000, |world| world.using(1, 2) == Some(Path::Direct));
    world.nobody_is_bad();
}

#[test]
fn the_relay_may_vanish_while_the_direct_channel_lives() {
    let mut world = climbed(1, 2);
    (1..=2).for_each(|node| world.online(node, false));
    world.send(1, 2, 1, &[4; 500_000]);
    world.run(10_000);
    assert_eq!(world.got(2, 1, 1), [vec![4; 500_000]]);
    (1..=2).for_each(|node| world.online(node, true));
    world.run(2_000);
    world.cut();
    world.send(2, 1, 1, b"by relay again");
    world.run(2_000);
    assert_eq!(world.got(1, 2, 1), [b"by relay again"]);
    world.nobody_is_bad();
}

#[test]
fn a_node_without_a_radio_says_so_and_is_not_called_again() {
    for without in [1, 2] {
        let mut world = World::new(1, 2);
        world.ice = true;
        world.start(NodeId(without), without as u8, false);
        world.enlist();
        world.run(300_000);
        assert_eq!(world.dials(1), usize::from(without == 2));
        assert_eq!(world.using(1, 2), Some(Path::Relay));
        world.nobody_is_bad();
    }
}

#[test]
fn direct_channels_live_on_in_the_next_epoch() {
    let mut world = climbed(1, 3);
    world.run(1_000);
    let dials = world.dials(1);
    world.enlist();
    world.send(1, 2, 1, b"new");
    world.run(5_000);
    assert_eq!((world.dials(1), world.got(2, 1, 1)), (dials, vec![b"new".to_vec()]));
    assert_eq!(world.using(1, 2), Some(Path::Direct));
    // An epoch that begins while radios look for each other: the words on their way are lost.
    let mut world = World::new(1, 2);
    world.ice = true;
    world.enlist();
    world.until(5_000, |world| world.dials(1) == 1);
    world.enlist();
    world.until(5_000, |world| world.using(1, 2) == Some(Path::Direct));
    world.nobody_is_bad();
}

#[test]
fn the_end_of_a_channel_that_only_one_notices_is_told_to_the_other() {
    for noticed in [1, 2] {
        let mut world = climbed(1, 2);
        world.mute();
        let (noticed, other) = (NodeId(noticed), NodeId(3 - noticed));
        world.give(noticed, MeshInput::DirectDown(other));
        world.run(1_000);
        let hang = MeshOutput::Radio(noticed, RadioDo::Hang);
        assert!(world.nodes[&other].said.contains(&hang));
        world.until(20_000, |world| world.dials(1) == 2);
        world.until(20_000, |world| world.using(1, 2) == Some(Path::Direct));
        world.nobody_is_bad();
    }
}

#[test]
fn who_leaves_the_crew_is_hung_up_on() {
    let mut world = climbed(1, 2);
    world.members.pop();
    world.enlist();
    let hang = MeshOutput::Radio(NodeId(2), RadioDo::Hang);
    assert_eq!(world.nodes[&NodeId(1)].said.last(), Some(&hang));
}

#[test]
fn a_member_that_begins_anew_is_dialled_anew() {
    for restarted in [1, 2] {
        let mut world = climbed(1, 2);
        world.start(NodeId(restarted), restarted as u8, true);
        world.enlist_one(NodeId(restarted));
        world.run(1_000);
        world
            .nodes
            .values_mut()
            .for_each(|node| node.said.retain(|said| !matches!(said, MeshOutput::Using(..))));
        world.run(10_000);
        world.send(1, 2, 1, b"after");
        world.run(1_000);
        assert_eq!(world.got(2, 1, 1).last().unwrap(), b"after");
        world.nobody_is_bad();
    }
}

#[test]
fn lies_on_a_direct_channel_are_its_owners() {
    let header = Header {
        kind: FrameKind::Plain,
        channel: 0,
        length: 5,
        source: NodeId(2),
        destination: NodeId(1),
        crew: CREW,
        epoch: Epoch(1),
        sequence: 9_000,
    };
    let forged = Header { source: NodeId(3), ..header };
    let long = Header { length: 6, ..header };
    let lies = [
        (forged, "it spoke in another's name, or to another"),
        (long, "on its direct channel came a payload of 5 bytes whose header says 6"),
        (header, "it sent words that are none, or about what never was"),
    ];
    for (header, why) in lies {
        let mut world = climbed(1, 2);
        let frame = [header.encode().as_slice(), b"words"].concat();
        world.give(NodeId(1), MeshInput::Direct(NodeId(2), &frame));
        assert_eq!(world.bad(1, 2), [why]);
        let hang = MeshOutput::Radio(NodeId(2), RadioDo::Hang);
        assert!(world.nodes[&NodeId(1)].said.contains(&hang));
    }
}

#[test]
fn what_comes_from_a_channel_nobody_asked_for_is_dropped() {
    let mut world = World::new(1, 2);
    world.start(NodeId(1), 1, false);
    world.enlist();
    world.until(1_000, World::all_open);
    world.give(NodeId(1), MeshInput::DirectUp(NodeId(2)));
    world.give(NodeId(1), MeshInput::Direct(NodeId(2), b"anything"));
    assert_eq!(world.mesh(1).dropped().stray, 1);
    world.give(NodeId(1), MeshInput::DirectDown(NodeId(2)));
    world.give(NodeId(1), MeshInput::Radio(NodeId(2), b"words".to_vec()));
    world.nobody_is_bad();
}
