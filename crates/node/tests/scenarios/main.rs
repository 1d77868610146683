//! Scenarios: each is one sentence about how a node behaves.
#![allow(clippy::unwrap_used)]

mod consent;
mod means;
mod quic;
mod serve;
mod world;

use shoal_node::*;
use shoal_protocol::*;
use world::World;

#[test]
fn greets_with_its_token_and_what_it_still_holds() {
    let mut world = World::joined();
    world.lend(1..4);
    world.give(Input::Closed);
    world.wait(1_000);
    world.open();
    let Some(FromNode::Hello(hello)) = world.said.last() else { panic!("no greeting") };
    assert_eq!((hello.token.as_str(), hello.held.len()), ("t", 3));
    assert_eq!(world.connects, 2);
}

#[test]
fn one_answer_is_sent_at_once() {
    let mut world = World::joined();
    world.lend(1..2);
    world.ran(1);
    assert_eq!(world.answers(), [1]);
}

#[test]
fn many_quick_answers_are_sent_together() {
    let mut world = World::joined();
    world.lend(1..101);
    for attempt in 1..101 {
        world.ran(attempt);
    }
    assert_eq!(world.answers().iter().sum::<usize>(), 100);
    assert!(world.answers().len() <= 2, "{:?}", world.answers());
}

#[test]
fn a_held_answer_goes_out_in_time() {
    let mut world = World::joined();
    world.lend(1..4);
    world.ran(1);
    world.ran(2);
    let due = world.node.next_timeout().unwrap();
    assert!(due <= world.now + Micros::from_millis(2));
    world.wait(2);
    assert_eq!(world.answers().iter().sum::<usize>(), 2);
}

#[test]
fn says_it_lives_while_it_computes() {
    let mut world = World::joined();
    world.lend(1..3);
    world.wait(500);
    let alive = FromNode::Alive { running: vec![Attempt(1)], queued: vec![Attempt(2)] };
    assert!(world.said.contains(&alive), "{:?}", world.said);
}

#[test]
fn a_revoked_unit_is_ended_and_its_late_answer_is_not_sent() {
    let mut world = World::joined();
    world.lend(1..3);
    world.hear(ToNode::Revoke(vec![Attempt(1), Attempt(2)]));
    assert_eq!(world.aborted, [Attempt(1)]);
    world.ran(1);
    assert!(world.answers().is_empty());
}

#[test]
fn pausing_hands_back_what_is_not_begun() {
    let mut world = World::joined();
    world.lend(1..4);
    world.give(Input::Pause(true));
    assert!(world.said.contains(&FromNode::Returned(vec![Attempt(2), Attempt(3)])));
    world.ran(1);
    assert_eq!(world.answers(), [1], "what was begun is finished");
}

#[test]
fn a_unit_of_an_unknown_job_is_handed_back() {
    let mut world = World::joined();
    let lease = Lease { attempt: Attempt(9), job: JobId(5), span: Span::new(0, 1) };
    world.hear(ToNode::Lend(vec![lease]));
    assert!(world.said.contains(&FromNode::Returned(vec![Attempt(9)])));
}

#[test]
fn waits_longer_after_each_failed_connection() {
    let mut world = World::new();
    world.give(Input::Start);
    let mut waits = Vec::new();
    for _ in 0..6 {
        world.give(Input::Closed);
        let due = world.node.next_timeout().unwrap();
        waits.push((due - world.now).as_millis());
        world.wait((due - world.now).as_millis() + 1);
    }
    assert!(waits[0] <= 1_600 && waits[1] <= 400 && waits[5] > 2_000, "{waits:?}");
}

#[test]
fn a_wrong_token_ends_it() {
    let mut world = World::new();
    world.give(Input::Start);
    world.open();
    world.hear(ToNode::Refused(Refusal::Token));
    assert_eq!(world.stopped, Some(Some(Refusal::Token)));
}

#[test]
fn stop_stops_at_once() {
    let mut world = World::joined();
    world.lend(1..4);
    world.give(Input::Stop);
    assert_eq!((world.aborted.len(), &world.stopped), (1, &Some(None)));
    world.lend(5..6);
    assert_eq!(world.runs.len(), 1, "nothing more is begun");
}

#[test]
fn a_page_that_hides_says_so_once_and_again_after_a_reconnect() {
    let mut world = World::joined();
    let hidden = Condition { visible: false, ..Condition::default() };
    world.give(Input::Condition(hidden));
    world.give(Input::Condition(hidden));
    let told = |world: &World| {
        world.said.iter().filter(|said| **said == FromNode::Condition(hidden)).count()
    };
    assert_eq!(told(&world), 1);
    world.give(Input::Closed);
    world.wait(10_000);
    world.open();
    world.hear(ToNode::Welcome { node: NodeId(1), session: String::from("s") });
    assert_eq!(told(&world), 2);
}

#[test]
fn what_is_lent_twice_is_computed_once() {
    let mut world = World::joined();
    world.lend(1..3);
    world.lend(1..3);
    world.ran(1);
    world.ran(2);
    assert_eq!(world.runs.len(), 2);
}
