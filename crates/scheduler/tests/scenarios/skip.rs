//! Items that fail everywhere, in jobs whose other items go on without them.

use shoal_kinds::form::{End, Record};
use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, job};

/// A program that runs over so many inputs in one unit, and goes on where some fail.
fn runs(items: u64, verify: Verify) -> JobSpec {
    let failing = Failing { stop: false, ..Failing::default() };
    let nothing = BlobRef { hash: Hash([0; 32]), size: 0 };
    let work = ExecWork {
        module: nothing,
        args: Vec::new(),
        env: Vec::new(),
        items: ExecItems::Files { manifest: nothing },
        folder: None,
        clock: false,
        failing,
        leaves: false,
    };
    let (needs, policy) = (Needs::lane(Lane::Cpu), Policy::checked(verify));
    JobSpec { work: work.into(), needs, sizing: Sizing::fixed(items), policy, ..job(items) }
}

fn late(item: u64) -> Failure {
    let which = LimitKind::Time;
    Failure::Limit { item: Some(item), which, allowed: 1, stderr: "still at it".into() }
}

/// All compute what they have, but fail on these items, until the job ends.
fn work_but(world: &mut World, nodes: &[Conn], bad: &[u64]) {
    work_for(world, nodes, bad);
    assert!(!world.ended.is_empty(), "the job does not end");
}

/// The same for as long as anything could come of it.
fn work_for(world: &mut World, nodes: &[Conn], bad: &[u64]) {
    for _ in 0..1_000 {
        let mut quiet = true;
        for conn in nodes {
            let Some(lease) = world.held_by(*conn).first().copied() else { continue };
            quiet = false;
            let of = |item: &&u64| lease.span.start <= **item && **item < lease.span.end();
            match bad.iter().find(of) {
                Some(item) => drop(world.fail(*conn, late(*item))),
                None => drop(world.answer_with(*conn, 0)),
            }
        }
        match quiet {
            true if world.ended.is_empty() => world.wait(200),
            true => return,
            false => {}
        }
    }
}

#[test]
fn an_item_that_nobody_can_end_in_time_fails_alone_and_all_others_are_done() {
    for verify in [Verify::None, Verify::Adaptive, Verify::Quorum { votes: 2 }] {
        let mut world = World::new();
        let nodes: Vec<_> = (1..=3).map(|n| world.join(n)).collect();
        let id = world.submit(runs(10, verify));
        work_but(&mut world, &nodes, &[4, 9]);
        let view = world.view(id);
        assert_eq!((view.state, view.items_done, view.items_failed), (JobState::Done, 10, 2));
        let alone = world.scheduler.merged(id).into_iter().find(|(span, _)| span.start == 4);
        let (span, place) = alone.expect("the fifth item");
        let bytes = Record::alone(End::Limit(LimitKind::Time), b"still at it");
        assert_eq!((span.len, place.map(|place| place.hash)), (1, Some(hash(&bytes))));
        let restarted = Scheduler::replay(world.facts.clone());
        let failed = restarted.job(Time(0), id).map(|view| view.items_failed);
        assert_eq!(failed, Some(2));
        // Strangers have the last word, and earn nothing by it.
        let earned = world.facts.iter().any(|fact| {
            matches!(fact, Fact::Checked { span: Span { start: 4 | 9, .. }, proof, .. } if proof.sure)
        });
        assert!(!earned);
    }
}

#[test]
fn one_devices_word_leaves_nothing_out_while_another_can_try() {
    let mut world = World::new();
    let (slow, fast) = (world.join(1), world.join(2));
    let id = world.submit(runs(10, Verify::None));
    let holder = if world.held_by(slow).is_empty() { fast } else { slow };
    let other = if holder == slow { fast } else { slow };
    world.fail(holder, late(3));
    for _ in 0..100 {
        while world.held_by(holder).first().is_some_and(|lease| lease.span.start != 3) {
            world.answer_with(holder, 0);
        }
        world.answer_with(other, 0);
        world.wait(200);
    }
    let view = world.view(id);
    assert_eq!((view.state, view.items_failed), (JobState::Done, 0));
}

#[test]
fn under_a_quorum_an_item_fails_by_as_many_votes_as_any_other() {
    let mut world = World::new();
    let own = world.join_trusted(1);
    let id = world.submit(runs(3, Verify::Quorum { votes: 3 }));
    work_for(&mut world, &[own], &[1]);
    assert_eq!((world.state(id), world.view(id).items_failed), (JobState::Running, 0));
    let all = [own, world.join(2), world.join(3)];
    work_but(&mut world, &all, &[1]);
    let view = world.view(id);
    assert_eq!((view.state, view.items_done, view.items_failed), (JobState::Done, 3, 1));
}

#[test]
fn a_limit_that_names_no_item_is_found_by_halves() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=3).map(|n| world.join(n)).collect();
    let id = world.submit(runs(8, Verify::None));
    for _ in 0..1_000 {
        for conn in &nodes {
            let Some(lease) = world.held_by(*conn).first().copied() else { continue };
            if lease.span.start <= 5 && 5 < lease.span.end() {
                let which = LimitKind::Time;
                let stderr = String::new();
                let late = Failure::Limit { item: None, which, allowed: 1, stderr };
                world.fail(*conn, late);
            } else {
                world.answer_with(*conn, 0);
            }
        }
        if world.state(id) != JobState::Running {
            break;
        }
        world.wait(200);
    }
    let view = world.view(id);
    assert_eq!((view.state, view.items_done, view.items_failed), (JobState::Done, 8, 1));
}

#[test]
fn what_cannot_be_written_is_tried_again() {
    let mut world = World::new();
    let node = world.join_trusted(1);
    world.full = true;
    let id = world.submit(runs(3, Verify::None));
    world.fail(node, late(1));
    while world.answer_with(node, 0).is_some() {}
    world.wait(1_000);
    assert_eq!((world.state(id), world.view(id).items_done), (JobState::Running, 2));
    world.full = false;
    world.wait(1_000);
    let view = world.view(id);
    assert_eq!((view.state, view.items_failed), (JobState::Done, 1));
}

#[test]
fn a_job_that_stops_at_the_first_failure_still_does() {
    let mut world = World::new();
    let node = world.join(1);
    let spec = runs(3, Verify::None);
    let Kind::Exec(work) = spec.work.clone() else { panic!("a program") };
    let id = world
        .submit(JobSpec { work: ExecWork { failing: Failing::default(), ..work }.into(), ..spec });
    world.fail(node, late(1));
    assert_eq!(world.state(id), JobState::Failed);
}
