//! Services whose requests go round and round through several nodes: language models.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::service;
use crate::split::{MIB, spec};
use crate::world::{World, caps};

/// A language model of six layers, of which two texts go round at a time.
pub(crate) fn texts(split: Split) -> ServiceSpec {
    let about = llm::Summary {
        layers: 6,
        layer_weights: vec![80 * MIB; 6],
        width: 64,
        ..llm::Summary::default()
    };
    let model = BlobRef { hash: Hash([3; 32]), size: 1 };
    let (context, conversations, wire) = (16, 2, Wire::F32);
    let (by, on) = (llm::By::Layers, llm::On::Processor);
    let work = LlmWork { model, about, context, conversations, split: true, wire, by, on };
    ServiceSpec { work: work.into(), ..spec(split) }
}

/// The same, of which each device has a share of every matrix: there are four, of 135 MiB each.
fn shares(split: Split) -> ServiceSpec {
    let texts = texts(split);
    let mut work = texts.work.language().expect("a language model").clone();
    work.by = llm::By::Tensors;
    (work.about.weights, work.about.heads) = (480 * MIB, 4);
    ServiceSpec { work: work.into(), ..texts }
}

/// A word of an answer: its length, and itself.
pub(crate) fn word(letter: u8) -> Vec<u8> {
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
        CrewTask::Sim(_) | CrewTask::Talk | CrewTask::Swarm => false,
    };
    assert!([1, 2].map(Conn).iter().all(|conn| task(&world, *conn)));
    world.all_load();
    (1..=3).for_each(|call| world.request(call, 60_000));
    assert_eq!(world.asked.len(), 2, "as many as it is made for");
    let last = Conn(world.parts()[1].0);
    let (first, second) = (world.asked[0].1, world.asked[1].1);
    // The second is done before the first, which is not lost for that.
    world.say(last, FromNode::Answer { call: first, at: 0, part: word(1).into(), last: false });
    world.say(last, FromNode::Answer { call: second, at: 0, part: word(2).into(), last: true });
    assert_eq!(world.asked.len(), 3);
    world.say(last, FromNode::Answer { call: first, at: 5, part: word(3).into(), last: true });
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
        world.say(last, FromNode::Answer { call, at: 0, part: word(round).into(), last: false });
        expected.extend(word(round));
        if round == 5 {
            // Half a word, which nobody can go on behind.
            world.say(last, FromNode::Answer { call, at: 5, part: vec![9, 0].into(), last: false });
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
    world.say(last, FromNode::Answer { call, at: 0, part: part.clone().into(), last: true });
    let given: Vec<u8> = world.answers.iter().flat_map(|(_, part, _)| part.clone()).collect();
    assert_eq!(given, [expected[1..].to_vec(), part].concat(), "no byte twice, none left out");
}

#[test]
fn devices_that_share_every_matrix_answer_together_and_another_takes_a_lost_ones_share() {
    let mut world = World::new();
    for n in 1..=2 {
        world.linked(n, 400);
    }
    // What each holds beside its shares leaves room for two, and not for three.
    world.give(Input::Serve { request: RequestId(1), spec: shares(Split::Auto) });
    world.wait(100);
    assert_eq!(world.parts(), [(1, 2), (2, 2)]);
    let is_rounds = |conn| match &world.place(conn).task {
        CrewTask::Stage(task) => task.rounds,
        CrewTask::Sim(_) | CrewTask::Talk | CrewTask::Swarm => false,
    };
    assert!([1, 2].map(Conn).into_iter().all(is_rounds));
    world.all_load();
    (1..=3).for_each(|call| world.request(call, 600_000));
    assert_eq!(world.asked.len(), 2, "as many as it is made for");
    let (first, call, _) = world.asked[0].clone();
    assert_eq!(first, Conn(1), "the first hears what is asked");
    let last = Conn(2);
    world.say(last, FromNode::Answer { call, at: 0, part: word(7).into(), last: false });
    let why = world.scheduler.explain_service(world.now, JobId(1)).expect("it is");
    assert!(why.lines.iter().any(|line| line.contains("compute every token together")));
    assert!(why.placements.iter().all(|placed| placed.predicted.is_some()), "{why:?}");
    assert!(world.scheduler.services()[0].split.as_ref().is_some_and(|split| split.side_by_side));
    world.forget_calls();
    world.linked(3, 400);
    world.leave(last);
    world.wait(100);
    assert_eq!(world.parts(), [(1, 2), (3, 2)], "nobody else moves");
    world.all_load();
    let again = world.asked.iter().map(|(_, _, body)| body.clone());
    assert!(
        again.collect::<Vec<_>>().contains(&[vec![1], word(7)].concat()),
        "behind what was said"
    );
}

#[test]
fn what_one_node_and_several_would_bring_is_said_beside_what_was_measured() {
    let mut world = World::new();
    for n in 1..=3 {
        world.linked(n, 800);
    }
    world.give(Input::Serve { request: RequestId(1), spec: texts(Split::Exactly(2)) });
    world.wait(100);
    world.all_load();
    let why = |world: &World| world.scheduler.explain_service(world.now, JobId(1)).expect("it is");
    let before = why(&world);
    assert!(before.stepwise && before.guessed.len() == 3);
    let sizes = |why: &WhyService| -> Vec<_> {
        why.placements.iter().map(|placed| (placed.members.len(), placed.used)).collect()
    };
    assert_eq!(sizes(&before), [(1, false), (2, true), (3, false)]);
    assert!(before.placements.iter().all(|placed| placed.measured.is_none()));
    let alone = before.placements[0].predicted.expect("a guess");
    let together = before.placements[1].predicted.expect("a guess");
    assert!(alone < together, "every token goes there and back: {before:?}");
    // Ten words in 400 ms, after a prompt that counts for nothing.
    world.request(1, 60_000);
    let call = world.asked[0].1;
    let last = Conn(world.parts()[1].0);
    world.wait(2_000);
    let say = |world: &mut World, at, part: Vec<u8>, last_one| {
        world.say(last, FromNode::Answer { call, at, part: part.into(), last: last_one });
    };
    say(&mut world, 0, word(0), false);
    (1..=10).for_each(|n| {
        world.wait(40);
        say(&mut world, 5 * n, word(n as u8), n == 10);
    });
    let after = why(&world);
    let took = after.placements[1].measured.expect("it was the only one");
    assert_eq!((took.each, took.answers), (Micros::from_millis(40), 1));
    let text = after.lines.join("\n");
    for words in [
        "long is kept ready by n and n together",
        "it must be split over 2 devices (--split 2)",
        "n alone: ",
        "tokens/s predicted, not measured",
        "parts: ",
        "25 tokens/s measured in 1 answer (in use)",
        "estimated: no answer from n, n and n yet",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_one_node_was_measured_to_do_alone_counts_for_what_is_expected_of_it() {
    let mut world = World::new();
    // Each answers two requests at a time.
    let caps = Caps { memory: 1_500 * MIB, cpu_slots: 2, ..caps(100) };
    for n in 1..=2 {
        world.linked_as(n, caps.clone());
    }
    world.give(Input::Serve { request: RequestId(1), spec: texts(Split::Auto) });
    world.wait(100);
    let node = world.scheduler.services()[0].replicas[0].node;
    world.say(Conn(node.0), FromNode::Warm { job: JobId(1), result: Ok(()) });
    let answer = |world: &mut World, first: u64, others: u64| {
        let from = world.asked.len();
        (first..=first + others).for_each(|call| world.request(call, 60_000));
        let call = world.asked[from].1;
        for n in 0..=10 {
            world.wait(20);
            let part = FromNode::Answer { call, at: 5 * n, part: word(1).into(), last: n == 10 };
            world.say(Conn(node.0), part);
        }
    };
    let placed = |world: &World| {
        let why = world.scheduler.explain_service(world.now, JobId(1)).expect("it is");
        let alone = why.placements.iter().find(|placed| placed.used).cloned().expect("in use");
        (alone, why.guessed)
    };
    answer(&mut world, 1, 1);
    assert_eq!(placed(&world).0.measured, None, "another was at work beside it");
    world.give(Input::HangUp { call: CallId(2) });
    answer(&mut world, 3, 0);
    let (alone, guessed) = placed(&world);
    assert_eq!(alone.measured.map(|took| took.each), Some(Micros::from_millis(20)));
    let predicted = alone.predicted.expect("it has links").0;
    assert!(predicted.abs_diff(20_000) <= 1, "{predicted}");
    assert_eq!(guessed.len(), 1, "only the other one");
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
    let (context, conversations, wire) = (16, 3, Wire::F32);
    let (split, by, on) = (false, llm::By::Layers, llm::On::Processor);
    let work = LlmWork { model, about, context, conversations, split, wire, by, on };
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
