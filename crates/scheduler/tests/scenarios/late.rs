//! Nodes that are slow, grow slow, or are about to.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, job};

/// A fast and a slow node that know their pace; the slow one holds the job's last unit.
fn tail() -> (World, JobId, Conn, Conn) {
    let mut world = World::new();
    let (fast, slow) = (world.join(1), world.join(2));
    let id = world.submit(JobSpec { sizing: Sizing::fixed(10), ..job(120) });
    for _ in 0..3 {
        world.answer(slow, 100);
    }
    while world.view(id).speculated == 0 && world.answer(fast, 1).is_some() {}
    (world, id, fast, slow)
}

fn keep_alive(world: &mut World, slow: Conn, millis: u64) {
    for _ in 0..millis / 100 {
        world.wait(100);
        let running = world.held_by(slow).iter().map(|lease| lease.attempt).collect();
        world.say(slow, FromNode::Alive { running, queued: Vec::new() });
    }
}

#[test]
fn a_late_unit_is_lent_again_to_a_fast_idle_node_and_the_first_answer_wins() {
    let (mut world, id, fast, slow) = tail();
    let copy = world.held_by(fast)[0];
    let late = world.held_by(slow).into_iter().find(|late| late.span == copy.span).unwrap();
    while world.answer(fast, 1).is_some() {}
    assert_eq!(world.state(id), JobState::Done);
    assert!(world.revoked.contains(&late.attempt));
    let merged = world.view(id).units_done;
    world.answer_attempt(slow, late.attempt, 1);
    assert_eq!(world.view(id).units_done, merged);
}

#[test]
fn nobody_gets_a_second_copy_that_would_not_be_sooner() {
    let mut world = World::new();
    let (a, b) = (world.join(1), world.join(2));
    let id = world.submit(JobSpec { sizing: Sizing::fixed(10), ..job(40) });
    world.answer(b, 100);
    for lease in world.held_by(a) {
        world.answer_attempt(a, lease.attempt, 100);
    }
    assert_eq!((world.view(id).units_leased, world.view(id).speculated), (1, 0));
}

#[test]
fn a_unit_has_at_most_two_copies_too_many() {
    let (mut world, id, fast, slow) = tail();
    let others: Vec<_> = (3..9).map(|n| world.join(n)).collect();
    for _ in 0..4 {
        for node in others.iter().chain([&fast]) {
            world.say(*node, FromNode::Pause(false));
        }
        keep_alive(&mut world, slow, 500);
    }
    let spans = world.held_by(slow).into_iter().map(|lease| lease.span);
    let copies = |span| world.lent.iter().filter(|(_, lease)| lease.span == span).count();
    assert_eq!(spans.map(copies).max(), Some(3));
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn a_page_that_hides_is_thought_slower_at_once_and_measured_anew() {
    let mut world = World::new();
    let node = world.join(1);
    world.submit(job(100_000));
    for _ in 0..8 {
        let items = world.held_by(node)[0].span.len;
        world.answer(node, items / 10);
    }
    let rate = |world: &World| world.scheduler.nodes(world.now)[0].milli_rate;
    let before = rate(&world);
    world.say(node, FromNode::Condition(Condition { visible: false, ..Condition::default() }));
    assert!(rate(&world) < before / 2, "{} after {before}", rate(&world));
    let hidden = world.held_by(node)[0].span.len;
    world.answer(node, hidden / 2);
    let view = &world.scheduler.nodes(world.now)[0];
    assert_eq!(view.milli_rate, 2_000_000, "the first measurement counts alone");
    assert!(view.pace_percent < 50 && !view.condition.visible, "{view:?}");
}

/// Half a minute in which strangers answer with these values and the operator's own node is at what it was lent.
fn beside_a_slow_own_node(world: &mut World, own: Conn, strangers: &[(Conn, u8)]) {
    for _ in 0..300 {
        for (stranger, value) in strangers {
            world.answer_with(*stranger, *value);
            let queued = world.held_by(*stranger).iter().map(|lease| lease.attempt).collect();
            world.say(*stranger, FromNode::Alive { running: Vec::new(), queued });
        }
        keep_alive(world, own, 100);
    }
}

fn checked() -> JobSpec {
    let policy = Policy::checked(Verify::Adaptive);
    JobSpec { sizing: Sizing::fixed(10), policy, ..job(60) }
}

#[test]
fn a_slow_node_of_the_operators_own_that_checks_what_is_merged_keeps_no_job_from_its_end() {
    let mut world = World::new();
    let (stranger, id) = (world.join(1), world.submit(checked()));
    world.answer_with(stranger, 0);
    let own = world.join_trusted(9);
    beside_a_slow_own_node(&mut world, own, &[(stranger, 0)]);
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn where_strangers_disagree_a_slow_node_of_the_operators_own_is_waited_for() {
    let mut world = World::new();
    let (one, two, own) = (world.join(1), world.join(2), world.join_trusted(9));
    let id = world.submit(checked());
    beside_a_slow_own_node(&mut world, own, &[(one, 0), (two, 7)]);
    assert_eq!(world.state(id), JobState::Running);
    world.work(&[(own, 0), (one, 0)]);
    assert_eq!(world.state(id), JobState::Done);
    assert!(world.scheduler.merged(id).iter().all(|(_, place)| place.unwrap().offset == 0));
}
