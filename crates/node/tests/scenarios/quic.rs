//! When a node opens its way by QUIC.

use shoal_node::*;
use shoal_protocol::*;

use crate::world::World;

fn offer(port: u16) -> ToNode {
    ToNode::Quic(QuicOffer { port, hashes: vec![[1; 32], [2; 32]] })
}

fn enlist(world: &mut World) {
    world.hear(ToNode::Enlist(Box::new(Enlist {
        crew: CrewId(3),
        epoch: Epoch(1),
        rank: 0,
        members: Vec::new(),
        token: Vec::new(),
        ice: Vec::new(),
        task: CrewTask::Talk,
    })));
}

fn in_crew() -> World {
    let mut world = World::talking();
    world.hear(offer(7));
    enlist(&mut world);
    world
}

fn opened(world: &World) -> usize {
    world.crew.iter().filter(|output| matches!(output, Output::OpenQuic(_))).count()
}

fn closed(world: &World) -> usize {
    world.crew.iter().filter(|output| matches!(output, Output::CloseQuic)).count()
}

#[test]
fn it_is_opened_when_a_crew_needs_it_and_not_before() {
    let mut world = World::talking();
    world.hear(offer(7));
    world.wait(60_000);
    assert_eq!(opened(&world), 0);
    enlist(&mut world);
    let offered = QuicOffer { port: 7, hashes: vec![[1; 32], [2; 32]] };
    let open = |output: &Output| matches!(output, Output::OpenQuic(offer) if *offer == offered);
    assert!(world.crew.iter().any(open), "{:?}", world.crew);
    world.wait(60_000);
    assert_eq!(opened(&world), 1, "one at a time");
}

#[test]
fn a_coordinator_that_offers_none_is_not_asked() {
    let mut world = World::talking();
    enlist(&mut world);
    world.wait(60_000);
    assert_eq!(opened(&world), 0);
    world.hear(offer(7));
    assert_eq!(opened(&world), 1, "the offer may come later");
}

#[test]
fn where_udp_is_closed_it_is_tried_ever_more_seldom() {
    let mut world = in_crew();
    let mut waits = Vec::new();
    for tries in 1..12 {
        assert_eq!(opened(&world), tries);
        world.give(Input::QuicDown);
        let before = world.now;
        while opened(&world) == tries {
            let due = world.node.next_timeout().unwrap();
            world.wait((due - world.now).as_millis().max(1));
        }
        waits.push((world.now - before).as_millis() / 1_000);
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    world.give(Input::QuicDown);
    world.hear(ToNode::Quic(QuicOffer { port: 7, hashes: vec![[2; 32], [3; 32]] }));
    assert_eq!(opened(&world), 13, "other certificates are another chance");
}

#[test]
fn one_that_lasted_is_opened_again_soon() {
    let mut world = in_crew();
    for _ in 0..5 {
        let before = opened(&world);
        world.give(Input::QuicUp);
        world.wait(31_000);
        world.give(Input::QuicDown);
        world.give(Input::QuicDown);
        world.wait(2_000);
        assert_eq!(opened(&world), before + 1);
    }
}

#[test]
fn it_is_closed_a_while_after_the_last_crew() {
    let mut world = in_crew();
    world.give(Input::QuicUp);
    world.hear(ToNode::Dismiss { crew: CrewId(3) });
    world.wait(29_000);
    enlist(&mut world);
    world.hear(ToNode::Dismiss { crew: CrewId(3) });
    world.wait(29_000);
    assert_eq!(closed(&world), 0, "jobs follow each other");
    let due = world.node.next_timeout().unwrap();
    assert!(due <= world.now + Micros::from_secs(1));
    world.wait(1_000);
    assert_eq!(closed(&world), 1);
    enlist(&mut world);
    assert_eq!(opened(&world), 2);
}

#[test]
fn it_ends_with_its_connection_and_the_next_one_has_its_own() {
    let mut world = in_crew();
    world.give(Input::QuicUp);
    world.give(Input::Closed);
    assert_eq!(closed(&world), 1);
    world.wait(10_000);
    world.open();
    world.welcome();
    enlist(&mut world);
    world.wait(1_000);
    assert_eq!(opened(&world), 1, "the old offer is not this coordinator's");
    world.hear(offer(8));
    assert_eq!(opened(&world), 2);
    world.give(Input::Stop);
    assert_eq!(closed(&world), 2);
}
