//! Strangers' rows of a simulation are computed again by somebody whose word counts.
#![allow(clippy::unwrap_used)]

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::crew_world::sim;
use crate::world::World;

fn checked() -> JobSpec {
    let mut spec = sim(1);
    spec.policy.verify = Verify::Adaptive;
    spec
}

impl World {
    /// A node of the operator's own that can take part.
    fn own(&mut self, n: u64, rate: u64) -> Conn {
        let conn = self.join_trusted(n);
        let (key, proof) = (LinkKey([n as u8; 32]), Signature([0; 32], [0; 32]));
        self.say(conn, FromNode::Links { key, proof });
        self.audition(conn, rate);
        conn
    }

    /// Stores all rows as these bytes would be.
    fn store(&mut self, conn: Conn, step: u64, mark: u8) {
        let rows = self.rows(conn);
        let blob = BlobRef { hash: Hash([mark; 32]), size: rows.len * 4000 };
        let say = CrewSay::Checkpoint { step, part: CheckpointPart { rows, blob } };
        self.say_crew(conn, self.place(conn).epoch, say);
    }

    fn hand_in(&mut self, conn: Conn, mark: u8) {
        let attempt = self.task(conn).attempt;
        let place = Some(Place {
            offset: 0,
            size: 480_000,
            hash: Hash([mark; 32]),
            failed: Failed::default(),
        });
        let results = vec![Arrived { attempt, took: Micros(1), place }];
        self.give(Input::Done { conn, results });
    }
}

/// A stranger that says it is very fast, and a node of the operator's own.
fn boaster() -> (World, Conn, Conn, JobId) {
    boaster_in(checked())
}

fn boaster_in(spec: JobSpec) -> (World, Conn, Conn, JobId) {
    let mut world = World::new();
    let (own, stranger) = (world.own(1, 0), world.able(2, 0));
    let id = world.submit(spec);
    world.audition(stranger, 1_000_000_000);
    world.audition(own, 1_000_000);
    assert!(world.crews.enlisted.keys().eq([&stranger]));
    (world, own, stranger, id)
}

#[test]
fn a_stranger_whose_rows_are_wrong_goes_and_they_are_computed_again() {
    let (mut world, own, stranger, id) = boaster();
    world.run_to(10);
    world.store(stranger, 10, 7);
    let task = world.task(own).clone();
    assert_eq!((task.from, task.check, task.bands.len()), (0, Some(10), 1));
    world.store(own, 10, 1);
    let rejected = |fact: &Fact| matches!(fact, Fact::Rejected { node: NodeId(2), .. });
    assert!(world.facts.iter().any(rejected));
    assert_eq!(world.view(id).crew.unwrap().kept, 0, "it goes back to where it is sure");
    let why = world.scheduler.explain_job(id).iter().map(|why| why.to_string()).collect::<String>();
    assert!(why.contains("came to other rows"), "{why}");
    let task = world.task(own).clone();
    assert_eq!((task.from, task.check), (0, None), "who checked computes now");
    world.hand_in(own, 1);
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(world.view(id).unchecked_steps, 0);
}

#[test]
fn an_honest_stranger_goes_on_and_its_last_rows_are_looked_at_before_they_count() {
    let (mut world, own, stranger, id) = boaster();
    world.run_to(10);
    world.store(stranger, 10, 1);
    world.store(own, 10, 1);
    assert_eq!(world.view(id).crew.unwrap().kept, 10);
    assert!(!world.crews.enlisted.contains_key(&own), "its check is over");
    world.hand_in(stranger, 9);
    assert_eq!(world.state(id), JobState::Running, "its last rows are not believed yet");
    let task = world.task(own).clone();
    assert_eq!((task.from, task.check), (10, Some(100)));
    world.leave(stranger);
    world.crews.enlisted.remove(&stranger);
    world.wait(1_000);
    world.store(own, 100, 9);
    assert_eq!((world.state(id), world.view(id).unchecked_steps), (JobState::Done, 0));
}

/// The same with a stranger that was right often with other work.
#[test]
fn trust_earned_with_other_work_is_none_in_a_crew() {
    let mut world = World::new();
    world.join(2);
    let small = JobSpec { sizing: Sizing::fixed(1), ..crate::world::job(40) };
    let policy = Policy::checked(Verify::Adaptive);
    let own = world.own(1, 0);
    world.submit(JobSpec { policy, ..small });
    world.work(&[(Conn(2), 0), (own, 0)]);
    assert!(world.scheduler.trust_of(NodeId(1), Lane::Gpu).is_veteran());
    let stranger = Conn(2);
    let (key, proof) = (LinkKey([2; 32]), Signature([0; 32], [0; 32]));
    world.say(stranger, FromNode::Links { key, proof });
    let id = world.submit(checked());
    world.audition(stranger, 1_000_000_000);
    world.audition(own, 1_000_000);
    assert!(world.crews.enlisted.keys().eq([&stranger]));
    for step in [10, 20, 30] {
        world.run_to_of(stranger, step);
        world.store(stranger, step, 1);
        assert_eq!(world.task(own).check, Some(step), "each of its checkpoints is looked at");
        world.store(own, step, 1);
    }
    assert_eq!(world.view(id).unchecked_steps, 0);
}

#[test]
fn steps_that_are_believed_because_their_author_was_right_are_counted_as_not_checked() {
    let mut spec = checked();
    if let Kind::Sim(work) = &mut spec.work {
        work.keep_every = Some(1);
    }
    let (mut world, own, stranger, id) = boaster_in(spec);
    let mut looked = 0;
    for step in 1..50 {
        world.run_to_of(stranger, step);
        world.store(stranger, step, step as u8);
        if world.crews.enlisted.contains_key(&own) {
            assert_eq!(world.task(own).check, Some(step));
            world.store(own, step, step as u8);
            looked += 1;
        }
    }
    assert!((10..25).contains(&looked), "{looked} were looked at");
    assert_eq!(world.view(id).unchecked_steps, 49 - looked);
    let why = world.scheduler.explain_job(id).iter().map(|why| why.to_string()).collect::<String>();
    assert!(why.contains("was right so far, and is looked at now and then"), "{why}");
}

#[test]
fn last_rows_that_are_wrong_are_no_result() {
    let (mut world, own, stranger, id) = boaster();
    world.hand_in(stranger, 9);
    world.store(own, 100, 1);
    assert_eq!(world.state(id), JobState::Running);
    assert_eq!(world.task(own).check, None);
    world.hand_in(own, 1);
    assert_eq!(world.state(id), JobState::Done);
}

fn merged_hashes(world: &World) -> Vec<Hash> {
    let places = world.facts.iter().filter_map(|fact| {
        let Fact::Merged { place, .. } = fact else { return None };
        *place
    });
    places.map(|place| place.hash).collect()
}

#[test]
fn rows_that_are_being_checked_are_not_swapped_for_others() {
    let (mut world, own, stranger, id) = boaster();
    world.hand_in(stranger, 9);
    world.hand_in(stranger, 66);
    world.store(own, 100, 9);
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(merged_hashes(&world), [Hash([9; 32])]);
}

#[test]
fn a_checkpoint_after_the_last_step_vouches_for_no_result() {
    let (mut world, own, stranger, id) = boaster();
    world.run_to(100);
    world.store(stranger, 100, 1);
    world.hand_in(stranger, 66);
    world.store(own, 100, 1);
    assert_eq!((world.state(id), merged_hashes(&world)), (JobState::Running, vec![]));
}

#[test]
fn rows_that_a_check_begins_with_are_needed_until_it_ends() {
    let (mut world, own, stranger, _) = boaster();
    for (step, mark) in [(10, 1), (20, 2)] {
        world.run_to_of(stranger, step);
        world.store(stranger, step, mark);
        let proven = world.scheduler.needs_part(Hash([1; 32]));
        assert!(proven, "step 10 is looked at, or looked from");
        world.store(own, step, mark);
    }
    assert!(!world.scheduler.needs_part(Hash([1; 32])));
}

/// Two strangers hand in their last rows, which the operator's own node computes again.
fn two_hand_in() -> (World, [Conn; 3], JobId) {
    let mut spec = sim(2);
    spec.policy.verify = Verify::Adaptive;
    let mut world = World::new();
    let (own, one, two) = (world.own(1, 0), world.able(2, 0), world.able(3, 0));
    let id = world.submit(spec);
    for stranger in [one, two] {
        world.audition(stranger, 1_000_000_000);
    }
    world.audition(own, 1_000_000);
    assert!(world.crews.enlisted.keys().eq([&one, &two]));
    world.hand_in(one, 9);
    world.hand_in(two, 9);
    assert_eq!(world.task(own).check, Some(100));
    (world, [own, one, two], id)
}

#[test]
fn whoever_accuses_another_after_the_last_step_gets_no_second_go_at_it() {
    let (mut world, [own, one, _], id) = two_hand_in();
    let say = CrewSay::Bad { node: NodeId(3), why: "made up".into() };
    world.say_crew(one, world.place(one).epoch, say);
    world.wait(1_000);
    world.hand_in(one, 66);
    world.store(own, 100, 9);
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(merged_hashes(&world), [Hash([9; 32]); 2]);
}

#[test]
fn a_member_that_fails_after_the_last_step_costs_nothing() {
    let (mut world, [own, one, _], id) = two_hand_in();
    let say = CrewSay::Failed { failure: Failure::DeviceLost { message: "gone".into() } };
    world.say_crew(one, world.place(one).epoch, say);
    world.wait(1_000);
    world.store(own, 100, 9);
    assert_eq!((world.state(id), world.view(id).unchecked_steps), (JobState::Done, 0));
    assert_eq!(merged_hashes(&world), [Hash([9; 32]); 2]);
}

#[test]
fn where_nobody_can_check_the_job_says_so() {
    let mut world = World::new();
    let id = world.submit(checked());
    let stranger = world.able(2, 1_000_000);
    world.run_to(10);
    world.store(stranger, 10, 7);
    assert_eq!(world.view(id).unchecked_steps, 10);
    world.hand_in(stranger, 7);
    assert_eq!((world.state(id), world.view(id).unchecked_steps), (JobState::Done, 100));
    let why = world.scheduler.explain_job(id).iter().map(|why| why.to_string()).collect::<String>();
    assert!(why.contains("nobody here can compute it again"), "{why}");
    assert!(
        why.contains("100 steps were computed by other people's devices and not checked"),
        "{why}"
    );
}

#[test]
fn a_checker_that_falls_silent_is_replaced_or_missed_and_nobody_is_blamed() {
    let (mut world, own, stranger, id) = boaster();
    world.run_to(10);
    world.store(stranger, 10, 7);
    assert_eq!(world.task(own).check, Some(10));
    for _ in 0..8 {
        world.wait(500);
        world.run_to_of(stranger, 12);
    }
    assert!(!world.crews.enlisted.contains_key(&own), "it is not waited for");
    world.hand_in(stranger, 7);
    assert_eq!((world.state(id), world.view(id).unchecked_steps), (JobState::Done, 100));
    assert!(!world.facts.iter().any(|fact| matches!(fact, Fact::Rejected { .. })));
}

#[test]
fn whoever_claims_to_be_fast_and_is_not_is_held_to_the_clock() {
    let mut world = World::new();
    let (own, stranger) = (world.own(1, 0), world.able(2, 0));
    let mut spec = sim(0);
    if let Kind::Sim(work) = &mut spec.work {
        (work.steps, work.keep_every) = (1_000_000, None);
    }
    let id = world.submit(spec);
    world.audition(stranger, 1_000_000_000_000);
    world.audition(own, 1_000_000);
    world.wait(1_000);
    assert!(world.crews.enlisted.keys().eq([&stranger]));
    for step in 1..25 {
        world.wait(500);
        if world.crews.enlisted.contains_key(&stranger) {
            world.run_to_of(stranger, step);
        }
    }
    assert!(world.rows(own).len > 80, "a step in half a second is no speed");
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn whoever_claims_an_absurd_speed_does_not_get_all_rows() {
    let mut world = World::new();
    let (own, stranger) = (world.own(1, 0), world.able(2, 0));
    let id = world.submit(sim(0));
    world.audition(own, 1_000_000);
    // Asked the second time, when all is compiled, it takes as long as its steps take.
    world.audition_once(stranger, 1_000_000_000_000);
    world.wait(2_500);
    world.audition_once(stranger, 1_000_000_000_000);
    world.wait(1_000);
    assert!(world.rows(own).len > 30, "{} rows for the own node", world.rows(own).len);
    assert!(world.rows(stranger).len > 60, "it may well be faster");
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn the_operators_own_nodes_are_asked_once_and_strangers_twice() {
    let mut world = World::new();
    let (own, stranger) = (world.own(1, 0), world.able(2, 0));
    world.submit(sim(0));
    for conn in [own, stranger] {
        world.audition_once(conn, 1_000_000);
    }
    assert_eq!(world.crews.auditions, [stranger]);
    world.audition_once(stranger, 1_000_000);
    assert!(world.crews.auditions.is_empty());
}
