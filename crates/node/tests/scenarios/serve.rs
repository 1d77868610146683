//! Services: made ready once they may run, asked before units, answered once.

use shoal_node::*;
use shoal_protocol::*;

use crate::world::World;

const MIB: u64 = 1 << 20;

/// Job 1 is a service whose runs take 600 MiB of the 1024 lent.
fn serving() -> World {
    let mut world = World::joined();
    world.tell_taking(Footprint { memory: 600 * MIB, ..Footprint::NOTHING });
    world.hear(ToNode::Warm { job: JobId(1) });
    assert_eq!(world.warm, [JobId(1)]);
    world.give(Input::Warmed { job: JobId(1), result: Ok(()) });
    world
}

fn ask(world: &mut World, call: u64) {
    world.hear(ToNode::Ask {
        call: Attempt(call),
        job: JobId(1),
        body: vec![call as u8].into(),
        rest: 0,
    });
}

fn answers(world: &World) -> Vec<(u64, Vec<u8>, bool)> {
    let answers = world.said.iter().filter_map(|said| {
        let FromNode::Answer { call, part, last, .. } = said else { return None };
        Some((call.0, part.to_vec(), *last))
    });
    answers.collect()
}

/// What a program gives for a request: the length of its answer, then the answer.
fn output(answer: &[u8]) -> UnitOutput {
    let mut bytes = (answer.len() as u32).to_le_bytes().to_vec();
    bytes.extend(answer);
    UnitOutput::Inline(bytes)
}

fn ran(world: &mut World, call: u64, answer: &[u8]) {
    let result = Ok(output(answer));
    world.give(Input::Ran { attempt: Attempt(call), took: Micros(1), result });
}

#[test]
fn a_service_is_made_ready_and_shown() {
    let world = serving();
    assert!(world.said.contains(&FromNode::Warm { job: JobId(1), result: Ok(()) }));
    let services: Vec<_> = world.node.services().map(|(job, info)| (job, info.takes)).collect();
    assert_eq!(services.len(), 1);
    assert_eq!(services[0].1.memory, 600 * MIB);
}

#[test]
fn a_request_begins_when_all_of_it_is_here() {
    let mut world = serving();
    let (call, job) = (Attempt(5), JobId(1));
    world.hear(ToNode::Ask { call, job, body: vec![1, 2].into(), rest: 3 });
    world.hear(ToNode::AskMore { call, body: vec![3].into() });
    assert!(world.runs.is_empty());
    world.hear(ToNode::AskMore { call, body: vec![4, 5, 6].into() });
    world.hear(ToNode::AskMore { call, body: vec![7].into() });
    assert_eq!(world.bodies, [[1, 2, 3, 4, 5]], "nothing is lost, and nothing added");
    ran(&mut world, 5, b"yes");
    assert_eq!(answers(&world), [(5, b"yes".to_vec(), true)]);
    // Taken back between its parts: what comes later belongs to nobody.
    world.hear(ToNode::Ask { call: Attempt(6), job, body: vec![1].into(), rest: 1 });
    world.hear(ToNode::Revoke(vec![Attempt(6)]));
    world.hear(ToNode::AskMore { call: Attempt(6), body: vec![2].into() });
    assert_eq!(world.bodies.len(), 1);
}

#[test]
fn requests_that_no_memory_could_hold_are_refused() {
    let mut world = serving();
    let job = JobId(1);
    let refused = |world: &World, call: u64| {
        let is_it = |said: &FromNode| matches!(said, FromNode::Failed { attempt, .. } if *attempt == Attempt(call));
        world.said.iter().any(is_it)
    };
    world.hear(ToNode::Ask { call: Attempt(1), job, body: vec![1].into(), rest: u64::MAX });
    assert!(refused(&world, 1), "too large");
    let large = limit::MAX_REQUEST_BYTES as u64 - 1;
    for call in 2..7 {
        world.hear(ToNode::Ask { call: Attempt(call), job, body: vec![1].into(), rest: large });
    }
    assert!(!refused(&world, 5), "four of the largest may wait");
    assert!(refused(&world, 6), "a fifth may not");
}

#[test]
fn an_answer_is_said_without_its_length() {
    let mut world = serving();
    ask(&mut world, 5);
    assert_eq!(world.runs.len(), 1);
    ran(&mut world, 5, b"yes");
    assert_eq!(answers(&world), [(5, b"yes".to_vec(), true)]);
    ran(&mut world, 5, b"again");
    assert_eq!(answers(&world).len(), 1, "answered once");
}

#[test]
fn a_long_answer_comes_in_parts() {
    let mut world = serving();
    ask(&mut world, 5);
    let long = vec![7; 3 * limit::ANSWER_PART_BYTES - 1];
    ran(&mut world, 5, &long);
    let parts = answers(&world);
    assert_eq!(parts.iter().map(|(_, _, last)| *last).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(parts.into_iter().flat_map(|(_, part, _)| part).collect::<Vec<_>>(), long);
}

#[test]
fn an_empty_answer_is_one_too() {
    let mut world = serving();
    ask(&mut world, 5);
    ran(&mut world, 5, b"");
    assert_eq!(answers(&world), [(5, Vec::new(), true)]);
}

#[test]
fn requests_that_run_at_once_stay_within_the_memory_lent() {
    let mut world = serving();
    ask(&mut world, 5);
    ask(&mut world, 6);
    assert_eq!(world.runs.len(), 1, "600 MiB each of 1024");
    ran(&mut world, 5, b"a");
    assert_eq!(world.runs.len(), 2);
}

#[test]
fn conversations_with_one_model_share_its_memory_and_need_no_slots() {
    let mut world = World::joined();
    world.tell_language(3, Footprint { memory: 600 * MIB, ..Footprint::NOTHING });
    world.hear(ToNode::Warm { job: JobId(1) });
    world.give(Input::Warmed { job: JobId(1), result: Ok(()) });
    (1..=4).for_each(|call| ask(&mut world, call));
    assert_eq!(world.runs.len(), 3, "as many as it holds, and 600 MiB of 1024 for all of them");
    assert_eq!(world.node.in_use().memory, 600 * MIB);
    ran(&mut world, 2, b"a");
    assert_eq!(world.runs.last().map(|lease| lease.attempt), Some(Attempt(4)));
    for call in [1, 3, 4] {
        ran(&mut world, call, b"a");
    }
    assert_eq!(world.node.in_use(), Footprint::NOTHING);
    assert_eq!(answers(&world).len(), 4);
}

#[test]
fn a_request_goes_before_units_that_wait() {
    let mut world = serving();
    world.lend(1..3);
    ask(&mut world, 5);
    assert_eq!(world.runs.len(), 1, "one unit has the memory");
    world.ran(1);
    assert_eq!(world.runs.last().map(|lease| lease.attempt), Some(Attempt(5)));
}

#[test]
fn a_donor_who_pauses_answers_nobody() {
    let mut world = serving();
    ask(&mut world, 5);
    world.give(Input::Pause(true));
    assert_eq!(world.aborted, [Attempt(5)]);
    let failed =
        |said: &FromNode| matches!(said, FromNode::Failed { attempt, .. } if attempt.0 == 5);
    assert!(world.said.iter().any(failed), "whoever asked asks another");
}

#[test]
fn a_service_that_ended_is_forgotten_with_its_requests() {
    let mut world = serving();
    ask(&mut world, 5);
    world.hear(ToNode::Forget(JobId(1)));
    assert_eq!(world.aborted, [Attempt(5)]);
    assert_eq!(world.node.services().count(), 0);
    ran(&mut world, 5, b"late");
    assert!(answers(&world).is_empty());
}

#[test]
fn a_connection_that_is_lost_takes_its_requests_along() {
    let mut world = serving();
    ask(&mut world, 5);
    world.give(Input::Closed);
    assert_eq!(world.aborted, [Attempt(5)]);
}

/// A place in a crew that keeps parts of job 1 ready.
fn enlist(world: &mut World, epoch: u32) {
    let member = MemberInfo {
        node: NodeId(1),
        identity: Identity([0; 32]),
        key: LinkKey([0; 32]),
        proof: Signature([0; 32], [0; 32]),
    };
    let task = CrewTask::Stage(StageTask {
        job: JobId(1),
        parts: vec![Span::new(0, 2); 2],
        rounds: false,
    });
    let (crew, rank, members) = (CrewId(7), 0, vec![member; 2]);
    let (epoch, token, ice) = (Epoch(epoch), Vec::new(), Vec::new());
    world.hear(ToNode::Enlist(Box::new(Enlist { crew, epoch, rank, members, token, ice, task })));
}

#[test]
fn requests_to_a_service_of_which_it_has_parts_go_to_the_crew_and_their_answers_come_from_there() {
    let mut world = World::joined();
    world.tell_taking(Footprint::NOTHING);
    enlist(&mut world, 1);
    assert!(matches!(world.crew.as_slice(), [Output::Enlist(_)]));
    let (call, job, crew) = (Attempt(5), JobId(1), CrewId(7));
    world.hear(ToNode::Ask { call, job, body: vec![1].into(), rest: 1 });
    assert_eq!(world.crew.len(), 1, "not before all of it is here");
    world.hear(ToNode::AskMore { call, body: vec![2].into() });
    let Some(Output::AskCrew { body, .. }) = world.crew.last() else { panic!("no request") };
    assert_eq!((body.as_slice(), world.runs.len()), ([1, 2].as_slice(), 0));
    world.give(Input::CrewAnswers { crew, call, result: Ok(b"yes".to_vec()) });
    assert_eq!(answers(&world), [(5, b"yes".to_vec(), true)]);
    world.hear(ToNode::Dismiss { crew });
    world.give(Input::CrewAnswers { crew, call, result: Ok(b"late".to_vec()) });
    assert_eq!(answers(&world).len(), 1, "it is in no such crew any more");
}

#[test]
fn a_place_is_taken_when_the_code_was_checked_and_left_when_the_donor_pauses() {
    let mut world = World::joined();
    world.tell_taking(Footprint::NOTHING);
    world.hear(ToNode::Forget(JobId(1)));
    let checked = world.to_check.len();
    world.tell_again();
    enlist(&mut world, 1);
    assert!(world.crew.is_empty() && world.to_check.len() == checked + 1);
    world.give(Input::Checked { job: JobId(1), result: Ok(()) });
    assert!(matches!(world.crew.as_slice(), [Output::Enlist(_)]));
    world.give(Input::Pause(true));
    assert!(matches!(world.crew.last(), Some(Output::Dismiss(CrewId(7)))));
    enlist(&mut world, 2);
    let refused =
        |said: &FromNode| matches!(said, FromNode::Crew { say: CrewSay::Failed { .. }, .. });
    assert!(world.said.iter().any(refused), "a paused device takes no place");
}

#[test]
fn a_node_that_is_asked_for_the_key_of_its_links_makes_it_once_and_says_it() {
    let mut world = World::joined();
    world.hear(ToNode::Link);
    assert!(matches!(world.crew.as_slice(), [Output::Link]));
    let key = LinkKey([6; 32]);
    world.give(Input::LinkKey(key));
    world.sign();
    let said = |world: &World| {
        let mut said = world.said.iter();
        said.any(|word| matches!(word, FromNode::Links { key: told, .. } if *told == key))
    };
    assert!(said(&world));
    world.said.clear();
    world.hear(ToNode::Link);
    world.sign();
    assert!(said(&world), "it has one already");
    assert_eq!(world.crew.len(), 1);
}
