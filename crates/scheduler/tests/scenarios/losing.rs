//! Nodes that vanish, stall or fail, messages that get lost, a coordinator that is killed.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, job, trap};

fn alive(attempt: Attempt) -> FromNode {
    FromNode::Alive { running: vec![attempt], queued: Vec::new() }
}

#[test]
fn a_vanished_nodes_units_go_to_others_at_once() {
    let mut world = World::new();
    let (gone, stays) = (world.join(1), world.join(2));
    let id = world.submit(job(40));
    world.leave(gone);
    world.finish(&[(stays, 10)]);
    assert_eq!(world.state(id), JobState::Done);
    assert!(world.view(id).retries > 0);
}

#[test]
fn a_silent_nodes_units_go_to_others_and_its_late_answer_changes_nothing() {
    let mut world = World::new();
    let (silent, other) = (world.join(1), world.join(2));
    let id = world.submit(job(40));
    let late = world.held_by(silent)[0];
    for _ in 0..5 {
        world.wait(500);
        let held = world.held_by(other).iter().map(|lease| lease.attempt).collect();
        world.say(other, FromNode::Alive { running: Vec::new(), queued: held });
    }
    assert!(world.revoked.contains(&late.attempt));
    world.finish(&[(other, 10)]);
    let facts = world.facts.len();
    world.answer_attempt(silent, late.attempt, 1);
    assert_eq!(world.facts.len(), facts, "nothing merged twice");
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn heartbeats_keep_leases() {
    let mut world = World::new();
    let node = world.join(1);
    world.submit(job(10));
    let lease = world.held_by(node)[0];
    for _ in 0..20 {
        world.wait(500);
        world.say(node, alive(lease.attempt));
    }
    assert!(world.revoked.is_empty());
}

#[test]
fn a_unit_far_over_its_time_has_failed_whatever_the_node_says() {
    let mut world = World::new();
    let node = world.join(1);
    let limits = Limits { time: Micros::from_secs(1), ..Limits::default() };
    let id = world.submit(JobSpec { limits, sizing: Sizing::fixed(1), ..job(1) });
    let lease = world.held_by(node)[0];
    for _ in 0..14 {
        world.wait(500);
        world.say(node, alive(lease.attempt));
    }
    assert_eq!(world.revoked, [lease.attempt]);
    assert_eq!(world.state(id), JobState::Failed);
}

#[test]
fn mere_talk_does_not_extend_a_lease() {
    let mut world = World::new();
    let (talker, worker) = (world.join(1), world.join(2));
    let id = world.submit(job(40));
    for _ in 0..6 {
        world.wait(500);
        world.say(talker, FromNode::Pause(false));
        world.finish(&[(worker, 10)]);
    }
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn a_unit_that_fails_on_two_nodes_fails_the_job_with_their_words() {
    let mut world = World::new();
    let (a, b) = (world.join(1), world.join(2));
    let id = world.submit(job(10));
    let holder = if world.held_by(a).is_empty() { b } else { a };
    world.fail(holder, trap());
    assert_eq!(world.state(id), JobState::Running, "one node may be at fault itself");
    let other = if holder == a { b } else { a };
    world.fail(other, trap());
    assert_eq!(world.state(id), JobState::Failed);
    let failure = world.view(id).failure.unwrap();
    assert_eq!((failure.nodes.len(), failure.failure), (2, trap()));
}

#[test]
fn a_unit_that_fails_on_the_only_node_fails_the_job() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(10));
    world.fail(node, trap());
    assert_eq!(world.state(id), JobState::Failed);
}

#[test]
fn after_a_restart_whoever_comes_first_does_not_fail_a_job_alone() {
    let mut world = World::new().restarted();
    let (first, id) = (world.join(1), world.submit(job(10)));
    world.fail(first, trap());
    assert_eq!(world.state(id), JobState::Running, "others may be on their way back");
    let other = world.join(2);
    while world.answer(other, 1).is_some() {}
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn a_lost_device_is_forgiven_twice() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(10));
    let lost = || Failure::DeviceLost { message: "gone".into() };
    world.fail(node, lost());
    world.fail(node, lost());
    assert_eq!(world.state(id), JobState::Running);
    world.fail(node, lost());
    assert_eq!(world.state(id), JobState::Failed);
}

#[test]
fn a_large_unit_out_of_time_is_cut_smaller_before_anybody_is_blamed() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(JobSpec { sizing: Sizing::loose(10, 10_000), ..job(10_000) });
    world.answer(node, 1);
    world.answer(node, 1);
    let large = world.held_by(node)[0].span.len;
    let out_of_time =
        Failure::Limit { item: None, which: LimitKind::Time, allowed: 1, stderr: String::new() };
    world.fail(node, out_of_time);
    assert_eq!(world.state(id), JobState::Running);
    world.answer(node, 1);
    let next = world.held_by(node).iter().map(|lease| lease.span.len).min().unwrap();
    assert!(next < large, "{next} after {large}");
}

#[test]
fn after_a_restart_nothing_is_lost_and_nothing_merged_twice() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(100));
    world.answer(node, 1);
    let done = world.view(id).items_done;
    let held = world.held_by(node);
    let mut world = world.restarted();
    assert_eq!(world.view(id).items_done, done);
    let kept = held.iter().map(|l| Held { attempt: l.attempt, job: l.job, span: l.span });
    let node = world.join_as(1, 1, caps(100), kept.collect());
    assert!(world.revoked.is_empty(), "it keeps what it was at");
    world.answer_attempt(node, held[0].attempt, 1);
    world.answer_attempt(node, held[0].attempt, 1);
    assert_eq!(world.view(id).items_done, done + held[0].span.len);
    world.answer_attempt(node, held[1].attempt, 1);
    world.finish(&[(node, 10)]);
    assert_eq!(world.state(id), JobState::Done);
    let items: u64 = world.view(id).shares.iter().map(|share| share.items).sum();
    assert_eq!(items, 100);
}

#[test]
fn a_returning_node_loses_units_that_others_have() {
    let mut world = World::new();
    let (a, _b) = (world.join(1), world.join(2));
    world.submit(job(20));
    let lease = world.held_by(a)[0];
    world.leave(a);
    let held = vec![Held { attempt: lease.attempt, job: lease.job, span: lease.span }];
    world.join_as(3, 1, caps(100), held);
    assert!(world.revoked.contains(&lease.attempt));
}

#[test]
fn torn_bytes_are_computed_again() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(10));
    world.finish(&[(node, 1)]);
    let mut scheduler = Scheduler::replay(world.facts.clone());
    scheduler.unmerge(id, Span::new(0, 10));
    let mut again = World::with(scheduler);
    assert_eq!(again.state(id), JobState::Running);
    let node = again.join(1);
    again.finish(&[(node, 1)]);
    let facts = world.facts.into_iter().chain(again.facts);
    assert_eq!(Scheduler::replay(facts).job(Time(0), id).unwrap().state, JobState::Done);
}

#[test]
fn items_that_failed_by_themselves_count_as_done_and_are_known_after_a_restart() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(10));
    assert!(world.answer_failed(node, 3).is_some_and(|lease| lease.span.len == 10));
    let failed = |scheduler: &Scheduler| {
        let view = scheduler.job(Time(0), id).expect("the job");
        (view.state, view.items_failed)
    };
    assert_eq!(failed(&world.scheduler), (JobState::Done, 3));
    let mut scheduler = Scheduler::replay(world.facts.clone());
    assert_eq!(failed(&scheduler), (JobState::Done, 3));
    assert_eq!(scheduler.merged(id)[0].1.map(|place| place.failed.bytes), Some(24));
    // What is computed again may end otherwise.
    scheduler.unmerge(id, Span::new(0, 10));
    assert_eq!(failed(&scheduler), (JobState::Running, 0));
}

#[test]
fn a_lease_that_never_arrived_is_lent_again() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(10));
    world.lent.clear();
    for _ in 0..6 {
        world.wait(500);
        world.say(node, FromNode::Alive { running: Vec::new(), queued: Vec::new() });
    }
    assert_eq!(world.told.len(), 2, "told again, because that may be what was lost");
    world.finish(&[(node, 10)]);
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn a_kernel_too_heavy_for_the_first_unit_is_tried_item_by_item() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(10));
    let out_of_time =
        || Failure::Limit { item: None, which: LimitKind::Time, allowed: 1, stderr: String::new() };
    world.fail(node, out_of_time());
    assert_eq!(world.held_by(node)[0].span.len, 1);
    world.fail(node, out_of_time());
    assert_eq!(world.state(id), JobState::Failed, "a single item says it all");
}

#[test]
fn nobody_appoints_itself_to_a_checked_unit() {
    let mut world = World::new();
    let policy = Policy::checked(Verify::Quorum { votes: 2 });
    let id = world.submit(JobSpec { policy, ..job(1_000) });
    let forged = |attempt| Held { attempt: Attempt(attempt), job: id, span: Span::new(990, 10) };
    let (a, b) = (forged(1), forged(2));
    let first = world.join_as(1, 1, caps(100), vec![a]);
    let second = world.join_as(2, 2, caps(100), vec![b]);
    assert_eq!(world.revoked, [a.attempt, b.attempt]);
    for conn in [first, second] {
        assert!(world.held_by(conn).iter().all(|lease| lease.span != a.span));
    }
}

#[test]
fn whoever_was_cut_off_keeps_a_checked_unit_that_was_really_lent_to_it() {
    let mut world = World::new();
    let node = world.join(1);
    let policy = Policy::checked(Verify::Adaptive);
    world.submit(JobSpec { policy, sizing: Sizing::fixed(10), ..job(10) });
    let lease = world.held_by(node)[0];
    world.leave(node);
    let held = vec![Held { attempt: lease.attempt, job: lease.job, span: lease.span }];
    world.join_as(2, 1, caps(100), held);
    assert!(world.revoked.is_empty());
}

#[test]
fn strangers_alone_do_not_fail_a_checked_job_while_the_operators_own_node_can_try() {
    let mut world = World::new();
    let (a, b) = (world.join_from(1, 5), world.join_from(2, 6));
    let policy = Policy::checked(Verify::Adaptive);
    let id = world.submit(JobSpec { policy, sizing: Sizing::fixed(10), ..job(10) });
    let own = world.join_trusted(3);
    for conn in [a, b, a, b] {
        if !world.held_by(conn).is_empty() {
            world.fail(conn, trap());
        }
    }
    assert_eq!(world.state(id), JobState::Running);
    world.finish(&[(own, 1)]);
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn a_device_that_cannot_do_a_job_gets_no_more_of_it() {
    let mut world = World::new();
    let unable = || Failure::Unable { message: "this GPU ends loops early".into() };
    let (a, b) = (world.join(1), world.join(2));
    let id = world.submit(job(10));
    let holder = if world.held_by(a).is_empty() { b } else { a };
    let other = if holder == a { b } else { a };
    world.fail(holder, unable());
    assert!(world.held_by(holder).is_empty() && !world.held_by(other).is_empty());
    world.fail(other, unable());
    assert_eq!(world.state(id), JobState::Failed);
}
