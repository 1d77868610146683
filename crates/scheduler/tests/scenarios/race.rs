//! Requests that are asked of two nodes.

use shoal_protocol::*;
use shoal_scheduler::*;

use crate::service::{SERVICE, served};
use crate::world::{World, trap};

impl World {
    /// Asks for an answer within so many milliseconds, if that can be.
    fn hurry(&mut self, call: u64, millis: u64) {
        let (deadline, priority) = (self.now + Micros::from_secs(60), Priority::Interactive);
        let urgency = Urgency { priority, deadline, budget: Some(Micros::from_millis(millis)) };
        let (call, body) = (CallId(call), vec![call as u8]);
        self.give(Input::Ask { call, service: SERVICE, body, urgency });
    }
}

/// Two nodes were asked the same.
fn raced() -> World {
    let (mut world, _) = served(2, 2, 2);
    world.hurry(1, 400);
    assert_eq!(world.asked.len(), 1, "one is asked at first");
    world.wait(150);
    assert_eq!(world.asked.len(), 1, "it has half of the budget for itself");
    world.wait(100);
    let [(first, one, _), (second, other, _)] = &world.asked[..] else {
        panic!("two are asked, not {:?}", world.asked)
    };
    assert!(first != second && one != other);
    assert_eq!(world.scheduler.services()[0].running, 2);
    world
}

#[test]
fn of_two_that_are_asked_the_first_answer_counts_and_the_other_is_cancelled() {
    for winner in [0, 1] {
        let (mut world, loser) = (raced(), 1 - winner);
        world.reply(winner, b"first ", false);
        assert!(world.revoked.contains(&world.asked[loser].1), "the other is told to stop");
        assert!(!world.revoked.contains(&world.asked[winner].1));
        world.reply(loser, b"second", true);
        world.reply(winner, b"and all", true);
        let said: Vec<u8> = world.answers.iter().flat_map(|(_, part, _)| part.clone()).collect();
        assert_eq!(said, b"first and all");
        assert_eq!(world.answers.iter().filter(|(_, _, last)| *last).count(), 1);
        let view = world.scheduler.services().remove(0);
        assert_eq!((view.answered, view.failed, view.running), (1, 0, 0));
    }
}

#[test]
fn of_two_that_are_asked_one_may_fail_or_leave() {
    let mut world = raced();
    let (conn, ..) = world.asked[0];
    world.leave(conn);
    assert_eq!(world.asked.len(), 2, "the other has it already");
    world.reply(1, b"done", true);
    assert_eq!(world.answers, [(CallId(1), b"done".to_vec(), true)]);

    let mut world = raced();
    let (conn, call, _) = world.asked[1].clone();
    world.say(conn, FromNode::Failed { attempt: call, failure: trap() });
    assert_eq!(world.unanswered, [], "the other may know better");
    let (conn, call, _) = world.asked[0].clone();
    world.say(conn, FromNode::Failed { attempt: call, failure: trap() });
    assert_eq!(world.unanswered.len(), 1, "it does not");
    assert_eq!(world.answers, []);
}

#[test]
fn nobody_is_asked_twice_without_need() {
    let (mut world, _) = served(2, 2, 2);
    world.hurry(1, 400);
    world.wait(100);
    world.reply(0, b"in time", true);
    world.wait_awake(2, 1);
    assert_eq!(world.asked.len(), 1);
    // The service is known to be quick: one node is waited for longer before another is asked.
    world.hurry(2, 400);
    world.wait(250);
    assert_eq!(world.asked.len(), 2);
    world.wait(100);
    assert_eq!(world.asked.len(), 3);
    world.give(Input::HangUp { call: CallId(2) });
    assert!(world.revoked.contains(&world.asked[1].1) && world.revoked.contains(&world.asked[2].1));
    world.ask(3, 60_000);
    world.wait(1_000);
    assert_eq!(world.asked.len(), 4, "without a budget there is no race");
}

#[test]
fn a_race_takes_no_slot_that_others_wait_for() {
    let (mut world, _) = served(1, 1, 1);
    world.hurry(1, 200);
    world.wait(500);
    assert_eq!(world.asked.len(), 1, "there is nobody else");
}
