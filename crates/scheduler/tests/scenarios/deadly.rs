//! Units that end the nodes that compute them, and nodes that just leave.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, job};

/// A node joins, begins the job's only unit and vanishes after this time.
fn dies(world: &mut World, n: u64, caps: Caps, millis: u64) {
    let node = world.join_as(n, n, caps, Vec::new());
    begins_and_dies(world, node, millis);
}

/// The same, of a node that has been here for a while.
fn settles_and_dies(world: &mut World, n: u64, caps: Caps) {
    let node = world.join_as(n, n, caps, Vec::new());
    let queued: Vec<_> = world.held_by(node).iter().map(|lease| lease.attempt).collect();
    for _ in 0..10 {
        world.say(node, FromNode::Alive { running: Vec::new(), queued: queued.clone() });
        world.wait(1_000);
    }
    begins_and_dies(world, node, 100);
}

fn begins_and_dies(world: &mut World, node: Conn, millis: u64) {
    let attempt = world.held_by(node)[0].attempt;
    for _ in 0..=millis / 1_000 {
        world.say(node, FromNode::Alive { running: vec![attempt], queued: Vec::new() });
        world.wait(millis.min(1_000));
    }
    world.leave(node);
}

#[test]
fn a_unit_that_ends_an_own_node_too_fails_its_job_and_says_what_they_had_in_common() {
    let mut world = World::new();
    let id = world.submit(job(10));
    (1..=2).for_each(|n| dies(&mut world, n, Caps { cpu_slots: n as u16, ..caps(100) }, 100));
    let own = world.join_trusted(3);
    begins_and_dies(&mut world, own, 100);
    world.wait(3_000);
    let failure = world.view(id).failure.unwrap().failure.to_string();
    assert!(failure.contains("3 nodes vanished soon after"), "{failure}");
    assert!(failure.contains("all were simulated nodes, all have the GPU test"), "{failure}");
}

#[test]
fn a_unit_that_ends_five_strangers_who_were_here_for_a_while_fails_its_job() {
    let mut world = World::new();
    let id = world.submit(job(10));
    (1..=4).for_each(|n| settles_and_dies(&mut world, n, caps(100)));
    assert_eq!(world.state(id), JobState::Running);
    settles_and_dies(&mut world, 5, caps(100));
    world.wait(6_000);
    assert_eq!(world.state(id), JobState::Failed);
}

#[test]
fn a_unit_that_ends_newcomers_only_fails_its_job_after_a_minute() {
    let mut world = World::new();
    let id = world.submit(job(10));
    (1..=20).for_each(|n| dies(&mut world, n, caps(100), 100));
    assert_eq!(world.state(id), JobState::Running, "others may come and do it");
    world.wait(60_000);
    assert_eq!(world.state(id), JobState::Failed, "but there is an end to it");
}

#[test]
fn a_unit_that_ends_strangers_waits_for_the_operators_own_node() {
    let mut world = World::new();
    let own = world.join_trusted(9);
    world.say(own, FromNode::Pause(true));
    let id = world.submit(job(10));
    (1..=2).for_each(|n| settles_and_dies(&mut world, n, caps(100)));
    world.say(own, FromNode::Pause(false));
    let late = world.join(8);
    assert!(world.held_by(late).is_empty(), "it is not for everybody any more");
    world.finish(&[(own, 1)]);
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn nodes_that_leave_late_do_not_make_a_unit_deadly() {
    let mut world = World::new();
    let limits = Limits { time: Micros::from_secs(100), ..Limits::default() };
    let id = world.submit(JobSpec { limits, ..job(10) });
    (1..=7).for_each(|n| dies(&mut world, n, caps(100), 12_000));
    assert_eq!(world.state(id), JobState::Running);
    dies(&mut world, 8, caps(100), 12_000);
    assert_eq!(world.state(id), JobState::Failed, "but there is an end to it");
}

#[test]
fn one_node_that_dies_again_and_again_is_one_node() {
    let mut world = World::new();
    let id = world.submit(job(10));
    let from = world.now;
    for conn in 1..=20 {
        let node = world.join_as(conn, 1, caps(100), Vec::new());
        if world.held_by(node).is_empty() {
            assert!(conn > 3, "only later it has to rest first");
            world.wait(8_000);
        }
        begins_and_dies(&mut world, node, 10);
        world.wait(1);
        if world.state(id) == JobState::Failed {
            break;
        }
    }
    assert!(world.now - from > Micros::from_secs(60), "others had time to come");
    let failure = world.view(id).failure.unwrap().failure.to_string();
    assert!(failure.contains("1 nodes vanished"), "{failure}");
}

#[test]
fn a_node_that_comes_back_with_the_unit_in_hand_was_not_ended_by_it() {
    let mut world = World::new();
    let id = world.submit(job(10));
    dies(&mut world, 1, caps(100), 100);
    let node = world.join(2);
    let Lease { attempt, job, span } = world.held_by(node)[0];
    world.say(node, FromNode::Alive { running: vec![attempt], queued: Vec::new() });
    world.leave(node);
    let back = world.join_as(12, 2, caps(100), vec![Held { attempt, job, span }]);
    world.say(back, FromNode::Returned(vec![attempt]));
    world.say(back, FromNode::Pause(true));
    world.leave(back);
    dies(&mut world, 3, caps(100), 100);
    assert_eq!(world.state(id), JobState::Running);
}
