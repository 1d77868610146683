//! Devices that round differently, and those that only say so.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, job};

fn floats(dtype: Dtype) -> JobSpec {
    let tolerance = Tolerance::usual(dtype);
    let policy = Policy { tolerance, ..Policy::checked(Verify::Adaptive) };
    JobSpec { policy, sizing: Sizing::fixed(10), ..job(200) }
}

/// One of the operator's own and a stranger of another class whose answers differ, until the job is done.
fn apart(dtype: Dtype) -> (World, JobId) {
    let mut world = World::new();
    let own = world.join_trusted(1);
    let other = world.join_as(2, 2, Caps { class: 7, ..caps(100) }, Vec::new());
    let id = world.submit(floats(dtype));
    for _ in 0..100 {
        world.work(&[(other, 9), (own, 0)]);
    }
    assert_eq!(world.state(id), JobState::Done);
    (world, id)
}

#[test]
fn whoever_rounds_differently_is_not_barred_but_gets_no_more_of_the_job() {
    let (world, id) = apart(Dtype::F32);
    let trust = world.scheduler.trust_of(NodeId(2), Lane::Gpu);
    assert_eq!((trust.wrong, trust.streak), (0, 0));
    let odd = world.facts.iter().filter(|f| matches!(f, Fact::Rejected { rounds: true, .. }));
    assert!((1..20).contains(&odd.count()), "it computed all of the units");
    for (_, place) in world.scheduler.merged(id) {
        assert_eq!(place.unwrap().offset, 0, "the operator's own answers stand");
    }
    let replayed = Scheduler::replay(world.facts.clone());
    assert_eq!(replayed.trust_of(NodeId(2), Lane::Gpu), trust);
}

#[test]
fn with_whole_numbers_there_is_no_such_excuse() {
    let (world, _) = apart(Dtype::Bytes);
    assert!(world.scheduler.trust_of(NodeId(2), Lane::Gpu).is_barred());
}

#[test]
fn one_of_the_same_class_proves_a_lie() {
    let mut world = World::new();
    let own = world.join_trusted(1);
    let liar = world.join_as(2, 2, caps(100), Vec::new());
    let id = world.submit(floats(Dtype::F32));
    for _ in 0..100 {
        world.work(&[(liar, 9), (own, 0)]);
    }
    assert_eq!(world.state(id), JobState::Done);
    assert!(world.scheduler.trust_of(NodeId(2), Lane::Gpu).is_barred());
}

#[test]
fn whoever_claims_anothers_class_and_is_a_little_off_convicts_nobody() {
    let mut world = World::new();
    world.near = true;
    let of_class = |class| Caps { class, ..caps(100) };
    let (own, liar) = (world.join_trusted(1), world.join_as(2, 2, of_class(7), Vec::new()));
    let victim = world.join_as(3, 3, of_class(7), Vec::new());
    let id = world.submit(floats(Dtype::F32));
    for _ in 0..100 {
        world.work(&[(liar, 9), (own, 0), (victim, 0)]);
    }
    assert_eq!(world.state(id), JobState::Done);
    let rejected = world.facts.iter().filter(|fact| matches!(fact, Fact::Rejected { .. }));
    assert_eq!(rejected.count(), 0);
}
