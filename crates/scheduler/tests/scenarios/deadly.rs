//! Units that end the nodes that compute them, and nodes that just leave.

use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, job};

/// A node joins, begins the job's only unit and vanishes after this time.
fn dies(world: &mut World, n: u64, caps: Caps, millis: u64) {
    let node = world.join_as(n, n, caps, Vec::new());
    let attempt = world.held_by(node)[0].attempt;
    for _ in 0..=millis / 1_000 {
        world.say(node, FromNode::Alive { running: vec![attempt], queued: Vec::new() });
        world.wait(millis.min(1_000));
    }
    world.leave(node);
}

#[test]
fn a_unit_that_ends_three_nodes_fails_its_job_and_says_what_they_had_in_common() {
    let mut world = World::new();
    let id = world.submit(job(10));
    (1..=3).for_each(|n| dies(&mut world, n, Caps { cpu_slots: n as u16, ..caps(100) }, 100));
    let failure = world.view(id).failure.unwrap().failure.to_string();
    assert!(failure.contains("3 nodes vanished soon after"), "{failure}");
    assert!(failure.contains("all were simulated nodes, all have the GPU test"), "{failure}");
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
    for conn in 1..=4 {
        let node = world.join_as(conn, 1, caps(100), Vec::new());
        let attempt = world.held_by(node)[0].attempt;
        world.say(node, FromNode::Alive { running: vec![attempt], queued: Vec::new() });
        world.leave(node);
    }
    assert_eq!(world.state(id), JobState::Running);
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
