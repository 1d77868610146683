//! Scenarios: each is one sentence about what the scheduler promises.
#![allow(clippy::unwrap_used)]

mod claims;
mod crew;
mod crew_checks;
mod crew_faults;
mod crew_world;
mod deadly;
mod disputes;
mod explain;
mod hostile;
mod late;
mod lookers;
mod losing;
mod means;
mod pokes;
mod prove;
mod race;
mod room;
mod rounding;
mod rounds;
mod service;
mod share;
mod skip;
mod split;
mod swarm;
mod verify;
mod world;

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;
use world::{World, caps, hello, job};

#[test]
fn one_node_finishes_a_job() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(1_000));
    world.finish(&[(node, 100)]);
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(world.ended, [id]);
}

#[test]
fn a_job_waits_for_the_first_node() {
    let mut world = World::new();
    let id = world.submit(job(100));
    let node = world.join(1);
    world.finish(&[(node, 100)]);
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn a_node_is_told_of_a_job_once_and_lent_ahead() {
    let mut world = World::new();
    let node = world.join(1);
    world.submit(job(1_000));
    assert_eq!(world.held_by(node).len(), 2, "one to compute, one ahead");
    world.answer(node, 1);
    assert_eq!(world.told.len(), 1);
}

#[test]
fn units_start_small_and_grow_to_the_target_time() {
    let mut world = World::new();
    let node = world.join(1);
    world.submit(job(100_000));
    let first = world.answer(node, 1).unwrap();
    world.answer(node, 1);
    for _ in 0..10 {
        let items = world.held_by(node)[0].span.len;
        world.answer(node, items / 10);
    }
    let later = world.held_by(node)[0];
    assert_eq!(first.span.len, 10);
    assert_eq!(later.span.len, 1_000, "the most a unit may hold: 100 ms of work, under the target");
}

#[test]
fn tiny_units_are_lent_by_the_hundred() {
    let mut world = World::new();
    let node = world.join(1);
    let spec = JobSpec { sizing: Sizing::fixed(1), needs: Needs::lane(Lane::Inline), ..job(5_000) };
    world.submit(spec);
    world.answer(node, 0);
    assert!(world.held_by(node).len() > 500);
}

#[test]
fn a_slow_and_a_fast_node_finish_together() {
    let mut world = World::new();
    let (slow, fast) = (world.join(1), world.join(2));
    let spec = JobSpec { sizing: Sizing::loose(1, 10_000), ..job(20_000) };
    let id = world.submit(spec);
    // The world answers one unit each in turn, so time is what each unit says it took.
    world.finish(&[(slow, 1_000), (fast, 100)]);
    let shares = world.view(id).shares;
    assert!(shares[1].items > shares[0].items * 3, "{shares:?}");
}

#[test]
fn the_same_node_gets_its_number_back_and_its_old_connection_is_closed() {
    let mut world = World::new();
    world.join_as(1, 9, caps(100), Vec::new());
    world.join_as(2, 9, caps(100), Vec::new());
    assert_eq!(world.refused, [(Conn(1), Refusal::Replaced)]);
    assert_eq!(world.scheduler.nodes(world.now).len(), 1);
}

#[test]
fn an_old_node_is_told_to_update() {
    let mut world = World::new();
    let hello = Hello { version: 0, ..hello(1, caps(100), Vec::new()) };
    let (conn, session) = (Conn(1), String::new());
    world.give(Input::Connected { conn, hello, session, trusted: false, network: 0 });
    let (_, refusal) = &world.refused[0];
    assert!(refusal.to_string().contains("update this node"), "{refusal}");
}

#[test]
fn a_job_no_node_can_run_is_refused_with_what_the_pool_offers() {
    let mut world = World::new();
    world.join(1);
    let needs = Needs { workgroup_invocations: 1024, ..Needs::lane(Lane::Gpu) };
    world.give(Input::Submit { request: RequestId(1), spec: JobSpec { needs, ..job(10) } });
    let error = world.replies[0].clone().unwrap_err().to_string();
    assert!(
        error.contains("1024 invocations") && error.contains("at most 128 MiB, 256"),
        "{error}"
    );
}

#[test]
fn an_empty_job_is_refused() {
    let mut world = World::new();
    world.give(Input::Submit { request: RequestId(1), spec: job(0) });
    assert_eq!(world.replies, [Err(SubmitError::Empty)]);
    assert_eq!(world.facts, [Fact::Life { life: 1 }], "nothing stored");
}

#[test]
fn a_cancelled_job_is_taken_from_its_nodes() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(100));
    world.give(Input::Cancel { job: id });
    assert_eq!(world.state(id), JobState::Cancelled);
    assert!(world.held_by(node).is_empty());
}

#[test]
fn a_paused_node_gets_nothing_and_hands_back() {
    let mut world = World::new();
    let (a, b) = (world.join(1), world.join(2));
    let id = world.submit(job(60));
    world.say(a, FromNode::Pause(true));
    let attempts = world.held_by(a).iter().map(|lease| lease.attempt).collect();
    world.lent.retain(|(conn, _)| *conn != a);
    world.say(a, FromNode::Returned(attempts));
    world.finish(&[(b, 10)]);
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(world.view(id).shares.len(), 1);
}

#[test]
fn round_robin_gives_everybody_the_same_number_of_units() {
    let mut world = World::new();
    let (slow, fast) = (world.join(1), world.join(2));
    let id = world.submit(JobSpec { strategy: Strategy::RoundRobin, ..job(1_600) });
    for _ in 0..40 {
        world.answer(fast, 1);
    }
    let before = world.view(id).shares;
    assert!(before[0].units <= 4, "the fast one waits for its turn: {before:?}");
    world.finish(&[(slow, 10), (fast, 10)]);
    let shares = world.view(id).shares;
    assert_eq!(shares[0].units, shares[1].units);
}

#[test]
fn weights_follow_declared_speed() {
    let mut world = World::new();
    let slow = world.join_as(1, 1, caps(50), Vec::new());
    let fast = world.join_as(2, 2, caps(150), Vec::new());
    world.submit(JobSpec { strategy: Strategy::Weight, ..job(1_600) });
    let (slow, fast) = (world.held_by(slow), world.held_by(fast));
    // The first to be asked is sized when it is the whole pool's work, in proportion to its weight.
    assert_eq!(fast[0].span.len, slow[0].span.len * 3);
}

#[test]
fn old_ended_jobs_are_forgotten() {
    let mut world = World::new();
    let node = world.join(1);
    for _ in 0..limit::MAX_ENDED_JOBS + 5 {
        world.submit(job(1));
        world.finish(&[(node, 0)]);
    }
    assert_eq!(world.scheduler.jobs(world.now).len(), limit::MAX_ENDED_JOBS);
}

#[test]
fn a_long_job_is_not_forgotten_the_moment_it_is_done() {
    let mut world = World::new();
    let (slow, quick) = (world.join(1), world.join(2));
    let long = world.submit(JobSpec { sizing: Sizing::fixed(1), ..job(1) });
    let holder = if world.held_by(slow).is_empty() { quick } else { slow };
    let other = if holder == slow { quick } else { slow };
    for _ in 0..limit::MAX_ENDED_JOBS + 5 {
        world.submit(JobSpec { sizing: Sizing::fixed(1), ..job(1) });
        world.say(holder, FromNode::Pause(true));
        world.wait(1);
        while world.answer(other, 1).is_some() {}
    }
    let lease = world.held_by(holder)[0];
    world.answer_attempt(holder, lease.attempt, 1);
    assert_eq!(world.state(long), JobState::Done);
}

#[test]
fn strangers_that_did_nothing_leave_no_trace_but_their_numbers() {
    let mut world = World::new();
    let before = world.facts.len();
    for n in 1..5_000 {
        let conn = world.join(n);
        world.leave(conn);
    }
    let facts = &world.facts[before..];
    assert!(facts.len() < 60, "{} facts for nothing", facts.len());
    assert!(facts.iter().all(|fact| matches!(fact, Fact::Numbered { .. })));
}

#[test]
fn a_huge_text_of_a_node_is_cut() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(10));
    world.fail(node, Failure::Kernel { message: "x".repeat(1 << 20) });
    let failure = world.view(id).failure.unwrap().failure;
    assert!(failure.to_string().len() < 2 * limit::MAX_TEXT_BYTES);
}
