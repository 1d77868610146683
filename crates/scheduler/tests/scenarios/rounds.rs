//! Services whose requests go round and round through several nodes: language models.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::service;
use crate::split::{MIB, spec};
use crate::world::World;

/// A language model of six layers, of which two texts go round at a time.
fn texts(split: Split) -> ServiceSpec {
    let about = llm::Summary {
        layers: 6,
        layer_weights: vec![80 * MIB; 6],
        width: 64,
        ..llm::Summary::default()
    };
    let model = BlobRef { hash: Hash([3; 32]), size: 1 };
    let (context, conversations, wire) = (16, 2, Wire::F32);
    let work = LlmWork { model, about, context, conversations, split: true, wire };
    ServiceSpec { work: work.into(), ..spec(split) }
}

/// A word of an answer: its length, and itself.
fn word(letter: u8) -> Vec<u8> {
    vec![1, 0, 0, 0, letter]
}

#[test]
fn texts_go_round_side_by_side_and_are_answered_in_parts() {
    let mut world = World::new();
    for n in 1..=2 {
        world.linked(n, 400);
    }
    world.give(Input::Serve { request: RequestId(1), spec: texts(Split::Auto) });
    world.wait(100);
    assert_eq!(world.parts().len(), 2, "no node has the memory for all of it");
    let task = |world: &World, conn| match &world.place(conn).task {
        CrewTask::Stage(task) => task.rounds,
        CrewTask::Sim(_) | CrewTask::Talk | CrewTask::Share => false,
    };
    assert!([1, 2].map(Conn).iter().all(|conn| task(&world, *conn)));
    world.all_load();
    (1..=3).for_each(|call| world.request(call, 60_000));
    assert_eq!(world.asked.len(), 2, "as many as it is made for");
    let last = Conn(world.parts()[1].0);
    let (first, second) = (world.asked[0].1, world.asked[1].1);
    // The second is done before the first, which is not lost for that.
    world.say(last, FromNode::Answer { call: first, at: 0, part: word(1), last: false });
    world.say(last, FromNode::Answer { call: second, at: 0, part: word(2), last: true });
    assert_eq!(world.asked.len(), 3);
    world.say(last, FromNode::Answer { call: first, at: 5, part: word(3), last: true });
    let of = |call| world.answers.iter().filter(move |(id, ..)| *id == CallId(call));
    assert_eq!(of(1).map(|(_, part, _)| part.clone()).collect::<Vec<_>>(), [word(1), word(3)]);
    assert_eq!(world.scheduler.services()[0].repeated, 0);
}

#[test]
fn a_text_goes_on_behind_what_was_said_when_its_crew_changes_however_often() {
    let mut world = World::new();
    for n in 1..=2 {
        world.linked(n, 300);
    }
    world.give(Input::Serve { request: RequestId(1), spec: texts(Split::Exactly(2)) });
    world.wait(100);
    world.all_load();
    world.request(1, 600_000);
    let mut expected = vec![1];
    for round in 0..6 {
        let (_, call, body) = world.asked.last().cloned().expect("it is asked");
        assert_eq!(body, expected, "round {round}: behind what was said");
        let last = Conn(world.parts()[1].0);
        world.say(last, FromNode::Answer { call, at: 0, part: word(round), last: false });
        expected.extend(word(round));
        if round == 5 {
            // Half a word, which nobody can go on behind.
            world.say(last, FromNode::Answer { call, at: 5, part: vec![9, 0], last: false });
        }
        world.forget_calls();
        world.leave(last);
        world.linked(u64::from(round) + 3, 300);
        world.wait(100);
        world.all_load();
    }
    let (_, call, body) = world.asked.last().cloned().expect("it is asked again");
    assert_eq!(body, expected);
    let last = Conn(world.parts()[1].0);
    let part = [vec![9, 0, 0, 0], vec![7; 9]].concat();
    world.say(last, FromNode::Answer { call, at: 0, part: part.clone(), last: true });
    let given: Vec<u8> = world.answers.iter().flat_map(|(_, part, _)| part.clone()).collect();
    assert_eq!(given, [expected[1..].to_vec(), part].concat(), "no byte twice, none left out");
}

#[test]
fn reading_a_long_prompt_is_no_stall_and_doing_nothing_is_one() {
    for reads in [true, false] {
        let mut world = World::new();
        for n in 1..=3 {
            world.linked(n, 300);
        }
        world.give(Input::Serve { request: RequestId(1), spec: texts(Split::Exactly(2)) });
        world.wait(100);
        world.all_load();
        world.request(1, 600_000);
        let members: Vec<Conn> = world.parts().iter().map(|(node, _)| Conn(*node)).collect();
        for turn in 0..140 {
            world.wait(500);
            for conn in &members {
                world.say(*conn, FromNode::Alive { running: vec![], queued: vec![] });
                // No token yet: nothing that says how fast they are.
                let turns = if reads { turn } else { 0 };
                let report = StageReport { turns, held: 1, ..StageReport::default() };
                if world.crews.enlisted.contains_key(conn) {
                    world.say_crew(*conn, world.place(*conn).epoch, CrewSay::Staged(report));
                }
            }
        }
        let epoch = world.scheduler.services()[0].split.as_ref().map(|split| split.epoch);
        assert_eq!(epoch == Some(Epoch(1)), reads, "{epoch:?}");
    }
}

#[test]
fn conversations_with_one_model_go_to_a_node_side_by_side_whatever_its_slots() {
    let mut world = World::new();
    let conn = world.join_trusted(1);
    let model = BlobRef { hash: Hash([3; 32]), size: 1 };
    let about = llm::Summary::default();
    let work = LlmWork { model, about, context: 16, conversations: 3, split: false };
    world.give(Input::Serve {
        request: RequestId(1),
        spec: ServiceSpec { work: work.into(), ..service::spec(1, 1) },
    });
    world.get_ready();
    (1..=5).for_each(|call| world.ask(call, 60_000));
    assert_eq!(world.asked.len(), 3, "as many as it was made ready for");
    world.reply(1, b"done", true);
    assert_eq!(world.asked.len(), 4);
    // A program beside it has the slot, which no conversation took; two programs do not share it.
    let beside = ServiceSpec { name: "beside".into(), ..service::spec(1, 1) };
    world.give(Input::Serve { request: RequestId(2), spec: beside });
    world.wait(200);
    world.say(conn, FromNode::Warm { job: JobId(2), result: Ok(()) });
    let (deadline, priority) = (world.now + Micros::from_secs(60), Priority::Interactive);
    for call in 6..=7 {
        let urgency = Urgency { priority, deadline, budget: None };
        let (call, body) = (CallId(call), vec![call as u8]);
        world.give(Input::Ask { call, service: JobId(2), body, urgency });
    }
    assert_eq!(world.asked.len(), 5);
    world.reply(0, b"done", true);
    assert_eq!(world.asked.len(), 6, "the fifth conversation");
    world.reply(4, b"done", true);
    assert_eq!(world.asked.len(), 7, "the second program");
}
