//! Who is served first, and how much.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, job};

fn prefer(priority: Priority, weight: u16) -> JobSpec {
    JobSpec { policy: Policy { priority, weight, ..Policy::default() }, ..job(100_000) }
}

/// Items done of two jobs after a while on one node.
fn race(first: JobSpec, second: JobSpec) -> (u64, u64) {
    let mut world = World::new();
    let node = world.join(1);
    let (a, b) = (world.submit(first), world.submit(second));
    for _ in 0..90 {
        let items = world.held_by(node)[0].span.len;
        world.answer(node, items / 10);
    }
    (world.view(a).items_done, world.view(b).items_done)
}

#[test]
fn two_jobs_share_a_node_fairly() {
    let (a, b) = race(job(100_000), job(100_000));
    assert!(a.abs_diff(b) <= 3_000, "{a} and {b}");
}

#[test]
fn three_times_the_weight_is_three_times_the_share() {
    let (a, b) = race(prefer(Priority::Normal, 300), prefer(Priority::Normal, 100));
    assert!((b * 5 / 2..b * 7 / 2).contains(&a), "{a} and {b}");
}

#[test]
fn what_somebody_waits_for_goes_first() {
    let (batch, interactive) =
        race(prefer(Priority::Batch, 1_000), prefer(Priority::Interactive, 1));
    assert!(batch <= 20 && interactive > 40_000, "{batch} and {interactive}");
}

#[test]
fn a_newcomer_starts_level_and_not_with_all_the_past_to_its_credit() {
    let mut world = World::new();
    let node = world.join(1);
    let old = world.submit(job(100_000));
    let step = |world: &mut World| {
        let items = world.held_by(node)[0].span.len;
        world.answer(node, items / 10);
    };
    (0..40).for_each(|_| step(&mut world));
    let before = world.view(old).items_done;
    world.submit(job(100_000));
    (0..60).for_each(|_| step(&mut world));
    assert!(world.view(old).items_done > before + 20_000);
}

#[test]
fn an_interactive_job_goes_home_first_and_then_to_the_nearest() {
    let mut world = World::new();
    let (far, near, home) = (world.join(1), world.join(2), world.join(3));
    for (conn, millis) in [(far, 80), (near, 2), (home, 40)] {
        world.give(Input::RoundTrip { conn, took: Micros::from_millis(millis) });
    }
    let small = |home| {
        let policy = Policy { priority: Priority::Interactive, home, ..Policy::default() };
        JobSpec { policy, ..job(10) }
    };
    world.submit(small(Some(NodeId(3))));
    assert_eq!(world.held_by(home).len(), 1);
    world.submit(small(None));
    assert_eq!(world.held_by(near).len(), 1);
    assert!(world.held_by(far).is_empty());
}

#[test]
fn a_declined_job_goes_to_others_and_comes_back_when_it_is_taken_again() {
    let mut world = World::new();
    let node = world.join(1);
    let id = world.submit(job(40));
    world.say(node, FromNode::Declined { job: id, declined: true });
    assert_eq!(world.view(id).items_leased, 0);
    assert_eq!(world.view(id).able_nodes, 0);
    let why = world.scheduler.explain_job(id);
    assert!(why.contains(&WhyJob::Declined { nodes: 1 }), "{why:?}");
    let other = world.join(2);
    assert!(!world.held_by(other).is_empty());
    world.leave(other);
    world.say(node, FromNode::Declined { job: id, declined: false });
    assert!(world.view(id).items_leased > 0);
}
