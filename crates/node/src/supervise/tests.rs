//! Each rule in a few lines.

use alloc::string::ToString;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, CrewId, Epoch, JobId, Micros, Time};

use super::EngineOutput::*;
use super::*;

const LIMIT: Micros = Micros::from_secs(4);
const CREW: CrewId = CrewId(7);
const EPOCH: Epoch = Epoch(2);

/// A supervisor and its time.
struct World {
    supervisor: Supervisor,
    now: Time,
}

impl World {
    /// A device that is lent and open.
    fn device() -> World {
        let mut world = World::new(Kind::Device);
        assert_eq!(world.tell(EngineInput::Most(1)), [Start(EngineId(1))]);
        assert_eq!(world.ready(1), []);
        world
    }

    fn programs() -> World {
        let mut world = World::new(Kind::Programs);
        assert_eq!(world.tell(EngineInput::Most(2)), []);
        world
    }

    fn new(kind: Kind) -> World {
        World { supervisor: Supervisor::new(kind), now: Time(1_000) }
    }

    fn tell(&mut self, input: EngineInput) -> Vec<EngineOutput> {
        self.supervisor.handle(self.now, input);
        let outputs = core::iter::from_fn(|| self.supervisor.poll_output()).collect();
        self.supervisor.check();
        outputs
    }

    fn ready(&mut self, engine: u32) -> Vec<EngineOutput> {
        self.tell(EngineInput::Ready(EngineId(engine)))
    }

    fn died(&mut self, engine: u32) -> Vec<EngineOutput> {
        self.tell(EngineInput::Died { engine: EngineId(engine), why: "it crashed".to_string() })
    }

    /// A unit of the job with the same number.
    fn run(&mut self, attempt: u64) -> Vec<EngineOutput> {
        let (attempt, job) = (Attempt(attempt), JobId(attempt));
        self.tell(EngineInput::Run { attempt, job, limit: LIMIT })
    }

    fn computes(&mut self, attempt: u64) {
        assert_eq!(self.tell(EngineInput::Computing(Attempt(attempt))), []);
    }

    fn asked(&mut self, ask: Ask) -> Vec<EngineOutput> {
        self.tell(EngineInput::Asked { crew: CREW, ask, limit: LIMIT })
    }

    /// What is due then, and what comes of it; nothing is due before.
    fn after(&mut self, wait: Micros) -> Vec<EngineOutput> {
        let due = self.now + wait;
        assert_eq!(self.supervisor.next_timeout(), Some(due));
        self.now = Time(due.0 - 1);
        assert_eq!(self.tell(EngineInput::Tick), [], "too early");
        self.now = due;
        self.tell(EngineInput::Tick)
    }
}

fn give(engine: u32, attempt: u64) -> EngineOutput {
    Give { engine: EngineId(engine), attempt: Attempt(attempt) }
}

fn kill(engine: u32) -> EngineOutput {
    Kill(EngineId(engine))
}

fn start(engine: u32) -> EngineOutput {
    Start(EngineId(engine))
}

fn lost(attempt: u64, why: &str) -> EngineOutput {
    let fault = Fault::Lost { why: why.to_string() };
    Failed { attempt: Attempt(attempt), took: Micros(0), fault }
}

fn over_time(attempt: u64, took: Micros) -> EngineOutput {
    Failed { attempt: Attempt(attempt), took, fault: Fault::Time { allowed: LIMIT } }
}

const LATE: &str = "a kernel did not end in time";

#[test]
fn a_device_is_opened_before_it_is_needed_and_has_one_engine() {
    let mut world = World::device();
    assert_eq!(world.run(1), [give(1, 1)]);
    assert_eq!(world.run(2), [give(1, 2)]);
}

#[test]
fn programs_have_an_engine_each_which_is_used_again() {
    let mut world = World::programs();
    assert_eq!(world.run(1), [start(1), give(1, 1)]);
    assert_eq!(world.run(2), [start(2), give(2, 2)]);
    assert_eq!(world.tell(EngineInput::Ended(Attempt(1))), []);
    assert_eq!(world.run(3), [give(1, 3)]);
}

#[test]
fn a_kernel_over_its_time_ends_with_its_engine_and_the_others_begin_anew() {
    let mut world = World::device();
    world.run(1);
    world.run(2);
    world.computes(1);
    let restarted = Restarted(LATE.to_string());
    assert_eq!(world.after(LIMIT), [over_time(1, LIMIT), kill(1), start(2), give(2, 2), restarted]);
}

#[test]
fn each_item_of_a_program_has_the_limit_for_itself() {
    let mut world = World::programs();
    world.run(1);
    world.ready(1);
    world.computes(1);
    world.now = world.now + Micros::from_secs(3);
    world.computes(1);
    assert_eq!(world.after(LIMIT), [over_time(1, LIMIT), kill(1)]);
}

#[test]
fn a_unit_that_rests_has_no_limit() {
    let mut world = World::device();
    world.run(1);
    world.computes(1);
    world.tell(EngineInput::Resting(Attempt(1)));
    assert_eq!(world.supervisor.next_timeout(), None);
}

#[test]
fn a_kernel_nobody_wants_may_end_by_itself() {
    let mut world = World::device();
    world.run(1);
    world.computes(1);
    let (engine, attempt) = (EngineId(1), Attempt(1));
    assert_eq!(world.tell(EngineInput::Abort(attempt)), [Cancel { engine, attempt }]);
    assert_eq!(world.tell(EngineInput::Resting(attempt)), []);
    assert_eq!(world.supervisor.next_timeout(), None, "it ended, and is forgotten");
}

#[test]
fn a_kernel_nobody_wants_that_does_not_end_has_a_grace() {
    let mut world = World::device();
    world.run(1);
    world.computes(1);
    world.tell(EngineInput::Abort(Attempt(1)));
    assert_eq!(world.after(GRACE), [kill(1), start(2), Restarted(LATE.to_string())]);
}

#[test]
fn the_grace_of_a_unit_that_still_waits_begins_with_its_kernel() {
    let mut world = World::device();
    world.run(1);
    world.tell(EngineInput::Abort(Attempt(1)));
    assert_eq!(world.supervisor.next_timeout(), None);
    world.now = world.now + Micros::from_secs(30);
    world.computes(1);
    assert_eq!(world.after(GRACE)[0], kill(1));
}

#[test]
fn a_program_nobody_wants_ends_at_once_since_it_hears_nothing() {
    let mut world = World::programs();
    world.run(1);
    world.ready(1);
    world.computes(1);
    assert_eq!(world.tell(EngineInput::Abort(Attempt(1))), [kill(1)]);
    assert_eq!(world.run(2), [start(2), give(2, 2)]);
}

#[test]
fn whatever_computed_when_an_engine_died_is_to_blame() {
    let mut world = World::device();
    world.run(1);
    world.run(2);
    world.computes(1);
    let restarted = Restarted("it crashed".to_string());
    assert_eq!(world.died(1), [lost(1, "it crashed"), start(2), give(2, 2), restarted]);
}

#[test]
fn a_unit_is_given_to_three_new_engines_and_no_more() {
    let mut world = World::device();
    world.run(1);
    for engine in 1..=MAX_REPEATS {
        assert!(world.died(engine).contains(&give(engine + 1, 1)));
        world.ready(engine + 1);
    }
    assert!(world.died(MAX_REPEATS + 1).contains(&lost(1, "it crashed")));
}

#[test]
fn a_device_that_dies_again_and_again_before_it_is_open_is_given_up() {
    let mut world = World::device();
    world.run(1);
    for engine in 1..MAX_DEATHS {
        assert!(world.died(engine).contains(&start(engine + 1)));
    }
    let gone = Gone("it crashed".to_string());
    assert_eq!(world.died(MAX_DEATHS), [gone, lost(1, "it crashed")]);
}

#[test]
fn a_device_that_does_not_answer_is_given_up() {
    let mut world = World::new(Kind::Device);
    world.tell(EngineInput::Most(1));
    world.run(1);
    let gone = Gone("it does not answer".to_string());
    assert_eq!(world.after(OPEN_WITHIN), [kill(1), gone, lost(1, "it does not answer")]);
}

#[test]
fn what_comes_for_a_device_that_is_gone_fails_at_once() {
    let mut world = World::device();
    world.tell(EngineInput::Broken { engine: EngineId(1), why: "no device".to_string() });
    assert_eq!(world.run(1), [lost(1, "no device")]);
    let fault = Fault::Lost { why: "no device".to_string() };
    assert_eq!(world.asked(Ask::Audition), [AuditionLost { crew: CREW, fault }]);
}

#[test]
fn a_device_that_is_gone_is_looked_at_again_later_and_later() {
    let mut world = World::device();
    let mut engine = 1;
    for doublings in [0, 1, 2, 3, 4, 5, 5] {
        let (id, why) = (EngineId(engine), "no device".to_string());
        assert_eq!(world.tell(EngineInput::Broken { engine: id, why: why.clone() }), [Gone(why)]);
        engine += 1;
        assert_eq!(world.after(Micros(LOOK_AGAIN.0 << doublings)), [start(engine)]);
    }
    world.ready(engine);
    assert_eq!(world.run(1), [give(engine, 1)]);
}

#[test]
fn a_device_that_hangs_after_a_runaway_is_the_jobs_fault() {
    let mut world = World::device();
    world.run(1);
    world.computes(1);
    world.after(LIMIT);
    let (attempt, job) = (Attempt(5), JobId(1));
    world.tell(EngineInput::Run { attempt, job, limit: LIMIT });
    world.run(6);
    let outputs = world.after(OPEN_WITHIN);
    assert!(outputs.contains(&over_time(5, Micros(0))), "of the same job: {outputs:?}");
    assert!(outputs.contains(&lost(6, "it does not answer")), "of another: {outputs:?}");
}

#[test]
fn engines_that_are_not_lent_any_more_end_when_they_are_done() {
    let mut world = World::programs();
    world.run(1);
    world.run(2);
    world.tell(EngineInput::Ended(Attempt(1)));
    assert_eq!(world.tell(EngineInput::Most(0)), [kill(1)]);
    assert_eq!(world.tell(EngineInput::Ended(Attempt(2))), [kill(2)]);
}

#[test]
fn a_device_with_a_band_is_kept_until_the_crew_leaves() {
    let mut world = World::device();
    world.asked(Ask::Open(EPOCH));
    assert_eq!(world.tell(EngineInput::Most(0)), []);
    assert_eq!(world.tell(EngineInput::Left(CREW)), [kill(1)]);
}

#[test]
fn a_step_waits_for_others_and_then_its_limit_is_over() {
    let mut world = World::device();
    world.asked(Ask::Open(EPOCH));
    world.tell(EngineInput::Answered { crew: CREW, answer: Answer::Edges(EPOCH) });
    assert_eq!(world.supervisor.next_timeout(), None);
    world.run(1);
    world.asked(Ask::Step(EPOCH));
    let fault = Fault::Time { allowed: LIMIT };
    let lost = CrewLost { crew: CREW, epoch: EPOCH, fault };
    let restarted = Restarted("a step did not end in time".to_string());
    let outputs = world.after(Micros(LIMIT.0 + 10_000_000));
    assert_eq!(outputs, [lost, kill(1), start(2), give(2, 1), restarted]);
    assert!(!world.supervisor.has_band(CREW, EPOCH));
}

#[test]
fn an_engine_takes_its_bands_and_auditions_with_it() {
    let mut world = World::device();
    world.asked(Ask::Open(EPOCH));
    world.asked(Ask::Audition);
    let outputs = world.died(1);
    let fault = Fault::Lost { why: "it crashed".to_string() };
    let crew = CrewLost { crew: CREW, epoch: EPOCH, fault: fault.clone() };
    assert_eq!(outputs[..2], [crew, AuditionLost { crew: CREW, fault }]);
    world.asked(Ask::Step(EPOCH));
    assert!(!world.supervisor.has_band(CREW, EPOCH), "nobody answers an older epoch");
}

#[test]
fn closing_ends_everything() {
    let mut world = World::device();
    world.run(1);
    world.computes(1);
    assert_eq!(world.tell(EngineInput::Close), [kill(1)]);
    assert_eq!(world.supervisor.next_timeout(), None);
}
