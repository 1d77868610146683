//! Who is called wrong, and what comes of a dispute that nobody can decide.
#![allow(clippy::unwrap_used)]

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, job};

const POLICIES: [Verify; 3] =
    [Verify::Adaptive, Verify::Quorum { votes: 2 }, Verify::Spot { per_million: 1_000_000 }];

fn checked(items: u64, verify: Verify) -> JobSpec {
    JobSpec { policy: Policy::checked(verify), sizing: Sizing::fixed(10), ..job(items) }
}

fn called_wrong(world: &World) -> Vec<NodeId> {
    let rejected = world.facts.iter().filter_map(|fact| {
        let Fact::Rejected { node, .. } = fact else { return None };
        Some(*node)
    });
    rejected.collect()
}

fn assert_right(world: &World, id: JobId, what: &str) {
    assert_eq!(world.state(id), JobState::Done, "{what}: {:?}", world.view(id).failure);
    let merged = world.scheduler.merged(id);
    assert!(merged.iter().all(|(_, place)| place.unwrap().offset == 0), "{what}: a lie is merged");
}

/// An honest node and three liars that agree are free; six honest ones are busy with something else.
#[test]
fn three_liars_that_are_asked_first_do_not_call_an_honest_node_wrong() {
    for verify in POLICIES {
        let mut world = World::new();
        let busy: Vec<_> = (1..=6).map(|n| (world.join(n), 0)).collect();
        world.submit(checked(10 * 2 * 6, Verify::None));
        let honest = world.join(7);
        let id = world.submit(checked(10, verify));
        let liars: Vec<_> = (8..=10).map(|n| (world.join(n), 9)).collect();
        world.work(&[(honest, 0)]);
        world.work(&liars);
        assert_eq!(called_wrong(&world), [], "{verify:?}: nobody asked the others");
        world.work(&busy);
        world.wait(60_000);
        assert_right(&world, id, &format!("{verify:?}"));
        assert!(called_wrong(&world).iter().all(|node| node.0 >= 8), "{verify:?}");
    }
}

#[test]
fn where_votes_are_counted_nobody_is_called_wrong_with_the_operators_own_node() {
    let mut world = World::new();
    let (own, honest) = (world.join_trusted(1), world.join(2));
    let id = world.submit(checked(10, Verify::Quorum { votes: 2 }));
    world.work(&[(own, 0), (honest, 0)]);
    assert_eq!(world.state(id), JobState::Done);
    let id = world.submit(checked(10, Verify::Quorum { votes: 3 }));
    let liars: Vec<_> = (3..=14).map(|n| (world.join(n), 9)).collect();
    world.work(&[(own, 0), (honest, 0)]);
    world.work(&liars);
    world.wait(60_000);
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(called_wrong(&world), [], "outvoted, but no liar");
}

/// Three honest strangers of these classes, and somebody who comes with new keys as long as there is something to do:
/// as many as that at a time, each with another answer.
fn besieged(verify: Verify, classes: [u64; 3], near: bool, at_a_time: u64) -> (World, JobId) {
    let mut world = World::new();
    world.near = near;
    let of_class = |class| Caps { class, ..caps(100) };
    let honest = [1, 2, 3].map(|n| {
        let class = classes[n as usize - 1];
        (world.join_as(n, n, of_class(class), Vec::new()), 0)
    });
    world.wait(11_000);
    let tolerance = Tolerance::usual(Dtype::F32);
    let policy = Policy { tolerance, ..Policy::checked(verify) };
    let id = world.submit(JobSpec { policy, ..checked(60, verify) });
    for round in 0..200 {
        let keys = (0..at_a_time).map(|n| 1_000 + round * at_a_time + n);
        let liars = keys.map(|key| {
            let conn = world.join_as(key, key, of_class(1), Vec::new());
            (conn, 1 + (key % 250) as u8)
        });
        let liars: Vec<_> = liars.collect();
        for _ in 0..4 {
            liars
                .iter()
                .for_each(|(conn, value)| while world.answer_with(*conn, *value).is_some() {});
            for (conn, value) in honest {
                world.answer_with(conn, value);
            }
        }
        liars.into_iter().for_each(|(conn, _)| world.leave(conn));
        for (conn, _) in honest {
            let held = world.held_by(conn).iter().map(|lease| lease.attempt).collect();
            world.say(conn, FromNode::Alive { running: Vec::new(), queued: held });
        }
        world.wait(500);
        if world.state(id) != JobState::Running {
            break;
        }
    }
    (world, id)
}

#[test]
fn whoever_claims_the_class_of_an_honest_node_and_has_ever_new_keys_fails_no_job() {
    for verify in POLICIES {
        for classes in [[1, 2, 3], [1, 1, 2], [2, 1, 2]] {
            let (world, id) = besieged(verify, classes, true, 1);
            let failure = world.view(id).failure;
            assert_eq!(world.state(id), JobState::Done, "{verify:?} {classes:?}: {failure:?}");
            assert_eq!(called_wrong(&world), [], "{verify:?} {classes:?}");
        }
    }
}

#[test]
fn lies_of_ever_new_keys_fail_no_job_where_those_who_were_there_before_agree() {
    for verify in POLICIES {
        for at_a_time in [1, 4, 8] {
            let what = format!("{verify:?}, {at_a_time} at a time");
            let (world, id) = besieged(verify, [1, 2, 3], false, at_a_time);
            let failure = world.view(id).failure;
            assert_eq!(world.state(id), JobState::Done, "{what}: {failure:?}");
            assert!(called_wrong(&world).iter().all(|node| node.0 > 3), "{what}");
        }
    }
}

#[test]
fn a_program_that_gives_everybody_something_else_still_fails() {
    for verify in POLICIES {
        let mut world = World::new();
        let nodes: Vec<_> = (1..=20).map(|n| (world.join(n), n as u8)).collect();
        world.wait(11_000);
        let id = world.submit(checked(10, verify));
        for _ in 0..100 {
            world.work(&nodes);
            world.wait(1_000);
        }
        assert_eq!(world.state(id), JobState::Failed, "{verify:?}");
        assert_eq!(called_wrong(&world), [], "{verify:?}");
    }
}
