//! Crews: called together by speed, mended from the last checkpoint, ended whole.
#![allow(clippy::unwrap_used)]

use shoal_protocol::*;
use shoal_scheduler::*;

use crate::crew_world::{sim, three};
use crate::world::World;

#[test]
fn a_crew_is_called_when_all_have_shown_their_speed_and_ends_whole() {
    let (mut world, nodes, id) = three();
    assert_eq!(world.rows(nodes[0]), Span::new(0, 40));
    assert_eq!(world.crews.routes.last().unwrap().1.len(), 3);
    world.run_to(100);
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(world.scheduler.merged(id).len(), 3);
    assert_eq!(world.crews.dismissed.len(), 3);
    assert!(world.crews.routes.last().unwrap().1.is_empty(), "nobody may send frames any more");
}

#[test]
fn a_faster_node_has_more_rows_and_a_weak_one_none() {
    let mut world = World::new();
    let id = world.submit(sim(0));
    let (fast, slow) = (world.able(1, 3_000_000), world.able(2, 1_000_000));
    let weak = world.able(3, 1_000);
    world.wait(1_000);
    // Each computes the rows around its band as well, whether that is large or small.
    assert_eq!(world.rows(fast).len, 92);
    assert_eq!(world.rows(slow).len, 28);
    assert!(!world.crews.enlisted.contains_key(&weak));
    let crew = world.view(id).crew.unwrap();
    assert_eq!(crew.spares, 1);
    assert!(crew.predicted < crew.alone.unwrap());
}

#[test]
fn those_who_stay_go_on_from_the_last_whole_checkpoint() {
    let (mut world, nodes, id) = three();
    world.keep_all(10);
    world.keep(nodes[0], 20);
    world.leave(nodes[1]);
    world.crews.enlisted.remove(&nodes[1]);
    let task = world.task(nodes[0]).clone();
    assert_eq!((task.from, task.kept.len()), (10, 3));
    assert_eq!(world.place(nodes[0]).epoch, Epoch(2));
    assert_eq!(task.bands, [Span::new(0, 60), Span::new(60, 60)]);
    assert_eq!(world.crews.dropped.len(), 1, "a part of a checkpoint that will never be whole");
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(world.crews.dropped.len(), 4, "checkpoints end with their job");
}

#[test]
fn what_an_older_epoch_says_changes_nothing() {
    let (mut world, nodes, id) = three();
    let old = world.task(nodes[0]).attempt;
    world.leave(nodes[2]);
    world.crews.enlisted.remove(&nodes[2]);
    world.answer_attempt(nodes[0], old, 1);
    world.say_crew(nodes[0], Epoch(1), CrewSay::Bad { node: NodeId(2), why: "x".into() });
    assert_eq!(world.place(nodes[0]).epoch, Epoch(2));
    assert_eq!(world.view(id).crew.unwrap().members.len(), 2);
}

#[test]
fn a_new_life_calls_the_crew_again_from_its_checkpoint() {
    let (mut world, nodes, id) = three();
    world.keep_all(10);
    let before = world.place(nodes[0]).crew;
    let mut world = world.restarted();
    assert_eq!(world.state(id), JobState::Running);
    let nodes = [1, 2].map(|n| world.able(n, 1_000_000));
    world.wait(3_000);
    assert_eq!(world.task(nodes[1]).from, 10);
    assert_eq!(world.place(nodes[1]).epoch, Epoch(2));
    assert_ne!(world.place(nodes[1]).crew, before, "a new crew, whose epochs go on");
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn crews_of_two_jobs_have_numbers_of_their_own() {
    let mut world = World::new();
    let nodes = [1, 2].map(|n| world.able(n, 1_000_000));
    for _ in 0..2 {
        let job = world.submit(sim(2));
        nodes.iter().for_each(|conn| world.audition(*conn, 1_000_000));
        let crew = world.place(nodes[0]).crew;
        assert_eq!(world.scheduler.job_of(crew), Some(job));
        assert_ne!(crew.0, job.0);
    }
}

#[test]
fn a_crew_of_a_wanted_size_waits_for_it() {
    let mut world = World::new();
    let id = world.submit(sim(2));
    let first = world.able(1, 1_000_000);
    world.wait(5_000);
    assert!(!world.view(id).crew.unwrap().works);
    let why = world.scheduler.explain_job(id).iter().map(|why| why.to_string()).collect::<String>();
    assert!(why.contains("needs 2 members"), "{why}");
    world.say(first, FromNode::Alive { running: Vec::new(), queued: Vec::new() });
    world.able(2, 1_000);
    assert_eq!(world.crews.enlisted.len(), 2, "also a weak one, if it is asked for");
}

#[test]
fn a_silent_member_and_one_that_stalls_are_left_behind() {
    let (mut world, nodes, id) = three();
    for _ in 0..10 {
        world.wait(500);
        world.crews.enlisted.remove(&nodes[2]);
        world.run_to(5);
    }
    assert_eq!(world.view(id).crew.unwrap().members.len(), 2, "one fell silent");
    for step in 0..20 {
        world.wait(500);
        world.run_to(5);
        if step > 4 {
            let slow = CrewSay::Slow { node: NodeId(2) };
            world.say_crew(nodes[0], world.place(nodes[0]).epoch, slow);
        }
    }
    let members = world.view(id).crew.unwrap().members;
    assert_eq!(members.iter().map(|m| m.node).collect::<Vec<_>>(), [NodeId(1)], "one stalled");
}

#[test]
fn a_kernel_that_an_own_node_and_another_refuse_fails_its_job_with_their_words() {
    let mut world = World::new();
    let nodes = [world.join(1), world.join_trusted(2), world.join(3)];
    let id = world.submit(sim(0));
    for conn in &nodes[..2] {
        assert_eq!(world.state(id), JobState::Running, "one node may be at fault itself");
        let failure = Failure::Kernel { message: "no".into() };
        world.say_crew(*conn, Epoch(0), CrewSay::Failed { failure });
    }
    assert_eq!(world.state(id), JobState::Failed);
    assert_eq!(world.view(id).failure.unwrap().nodes, [NodeId(1), NodeId(2)]);
}

#[test]
fn strangers_who_refuse_a_kernel_do_not_end_a_simulation_while_an_own_node_can_try() {
    let mut world = World::new();
    let strangers: Vec<_> = (1..=6).map(|n| world.join(n)).collect();
    world.join_trusted(9);
    let id = world.submit(sim(0));
    for conn in strangers {
        let failure = Failure::Kernel { message: "no".into() };
        world.say_crew(conn, Epoch(0), CrewSay::Failed { failure });
    }
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn an_accused_member_goes_and_so_does_whoever_accuses_all() {
    let (mut world, nodes, id) = three();
    let bad = |node| CrewSay::Bad { node: NodeId(node), why: "a forged frame".into() };
    world.say_crew(nodes[0], Epoch(1), bad(2));
    assert_eq!(world.view(id).crew.unwrap().members.len(), 2);
    world.crews.enlisted.remove(&nodes[1]);
    world.say_crew(nodes[0], Epoch(2), bad(3));
    assert!(world.view(id).crew.unwrap().members.is_empty(), "nobody is left");
}

#[test]
fn a_better_crew_is_called_at_a_checkpoint() {
    let (mut world, nodes, id) = three();
    world.crews.enlisted.clone().keys().for_each(|conn| assert!(nodes.contains(conn)));
    let strong = world.able(4, 50_000_000);
    for step in 1..=2 {
        for _ in 0..14 {
            world.wait(500);
            world.run_to(10 * step);
        }
        world.keep_all(10 * step);
    }
    assert!(world.crews.enlisted.contains_key(&strong));
    assert_eq!(world.task(strong).from, 20);
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn two_applications_meet_and_part() {
    let mut world = World::new();
    let [a, b] = [1, 2].map(|n| world.able(n, 1));
    let meet = |with| FromNode::Crew {
        crew: CrewId(0),
        epoch: Epoch(0),
        say: CrewSay::Meet { with: NodeId(with) },
    };
    world.say(a, meet(9));
    assert_eq!(world.crews.told, [(a, CrewTold::NotMet { with: NodeId(9) })]);
    world.say(a, meet(2));
    assert_eq!(world.place(a).members, world.place(b).members);
    assert_eq!(world.place(b).task, CrewTask::Talk);
    world.leave(a);
    assert_eq!(world.crews.dismissed, [b]);
    assert!(world.crews.routes.last().unwrap().1.is_empty());
}

#[test]
fn a_cancelled_simulation_leaves_nothing_behind() {
    let (mut world, _, id) = three();
    world.keep_all(10);
    world.give(Input::Cancel { job: id });
    assert_eq!(world.state(id), JobState::Cancelled);
    assert_eq!((world.crews.dismissed.len(), world.crews.dropped.len()), (3, 3));
}
