//! Crews among those who lie, come back too soon, or cannot make up their minds.
#![allow(clippy::unwrap_used)]

use shoal_protocol::*;
use shoal_scheduler::*;

use crate::crew_world::{sim, three};
use crate::world::World;

#[test]
fn a_node_that_comes_back_before_it_is_missed_has_lost_its_seat() {
    let (mut world, nodes, id) = three();
    world.keep_all(10);
    let again = world.join_as(9, 2, crate::world::caps(100), Vec::new());
    assert!(!world.crews.enlisted.contains_key(&again), "it has forgotten its part");
    assert_eq!(world.view(id).crew.unwrap().members.len(), 2, "the others go on at once");
    assert_eq!(world.task(nodes[0]).from, 10);
}

#[test]
fn who_was_not_asked_has_no_say_about_a_kernel() {
    let (mut world, nodes, id) = three();
    let strangers = [7, 8].map(|n| world.join(n));
    for conn in [nodes[0], strangers[0], strangers[1]] {
        world.crews.auditions.retain(|asked| *asked != conn);
    }
    for conn in [nodes[0], nodes[1]] {
        let failure = Failure::Kernel { message: "no".into() };
        world.say_crew(conn, Epoch(0), CrewSay::Failed { failure });
    }
    assert_eq!(world.state(id), JobState::Running);
    assert_eq!(world.view(id).crew.unwrap().members.len(), 3);
}

#[test]
fn announcements_of_the_far_future_keep_nobody_from_a_checkpoint() {
    let (mut world, nodes, _) = three();
    for step in [50, 60, 70, 80, 90, 100, 1000, 2000] {
        world.keep(nodes[0], step);
    }
    assert_eq!(world.crews.dropped.len(), 5, "three of one member are enough");
    for conn in [nodes[1], nodes[2]] {
        world.keep(conn, 50);
    }
    world.leave(nodes[2]);
    assert_eq!(world.task(nodes[1]).from, 50);
}

#[test]
fn a_part_that_is_announced_twice_is_kept_once() {
    let (mut world, nodes, _) = three();
    world.keep(nodes[0], 10);
    let rows = world.rows(nodes[0]);
    let blob = BlobRef { hash: Hash([99; 32]), size: rows.len * 4000 };
    let say = CrewSay::Checkpoint { step: 10, part: CheckpointPart { rows, blob } };
    world.say_crew(nodes[0], Epoch(1), say);
    assert_eq!(world.crews.dropped, [blob]);
}

#[test]
fn donors_who_change_their_mind_do_not_fail_a_simulation() {
    let mut world = World::new();
    let id = world.submit(sim(2));
    let steady = world.able(1, 1_000_000);
    for n in 2..14 {
        let shy = world.able(n, 1_000_000);
        let epoch = world.place(shy).epoch;
        let failure = Failure::Unable { message: "no".into() };
        world.say_crew(shy, epoch, CrewSay::Failed { failure });
        assert!(!world.view(id).crew.unwrap().works, "it waits for a second one");
        world.leave(shy);
        world.crews.enlisted.clear();
        world.say(steady, FromNode::Alive { running: Vec::new(), queued: Vec::new() });
    }
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn a_node_that_does_not_talk_is_not_met() {
    let mut world = World::new();
    let [a, b] = [1, 2].map(|n| world.able(n, 1));
    let say = CrewSay::Meet { with: NodeId(2) };
    world.say(a, FromNode::Crew { crew: CrewId(0), epoch: Epoch(0), say: say.clone() });
    let crew = world.place(b).crew;
    let failure = Failure::Unable { message: "no".into() };
    let refuses = CrewSay::Failed { failure };
    world.say(b, FromNode::Crew { crew, epoch: Epoch(1), say: refuses });
    assert_eq!(world.crews.told, [(a, CrewTold::NotMet { with: NodeId(2) })]);
    assert!(world.crews.routes.last().unwrap().1.is_empty());
    world.wait(2_000);
    world.say(a, FromNode::Crew { crew: CrewId(0), epoch: Epoch(0), say });
    let crew = world.place(a).crew;
    world.say(a, FromNode::Crew { crew, epoch: Epoch(1), say: CrewSay::Leave });
    assert_eq!(world.crews.dismissed, [a, b, a, b]);
}

#[test]
fn what_no_device_here_can_compute_fails_with_their_words() {
    let mut world = World::new();
    let id = world.submit(sim(0));
    let nodes = [1, 2].map(|n| world.join(n));
    for conn in nodes {
        assert_eq!(world.state(id), JobState::Running, "another may be able");
        let failure = Failure::Unable { message: "loops end early".into() };
        world.say_crew(conn, Epoch(0), CrewSay::Failed { failure });
    }
    assert_eq!(world.state(id), JobState::Failed);
}

#[test]
fn rows_of_the_last_step_that_were_merged_in_part_are_computed_again() {
    let (mut world, _, id) = three();
    world.run_to(100);
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
    let merged = world.facts.iter().position(|fact| matches!(fact, Fact::Merged { .. }));
    // The coordinator was killed after the first of three.
    world.facts.truncate(merged.unwrap() + 1);
    let mut world = world.restarted();
    let nodes = [1, 2].map(|n| world.able(n, 1_000_000));
    world.wait(4_000);
    nodes.iter().for_each(|conn| world.audition(*conn, 1_000_000));
    world.wait(1_000);
    assert_eq!(world.crews.enlisted.len(), 2, "others than before");
    world.run_to(100);
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
}
