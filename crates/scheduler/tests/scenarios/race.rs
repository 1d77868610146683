//! Requests that are asked of two nodes.

use shoal_kinds::Split;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::service::{SERVICE, served};
use crate::split;
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

/// Three of five have a slice each, and requests with a budget come: one of the others has all of it.
fn stood_in() -> (World, Conn) {
    let mut world = World::new();
    for n in 1..=5 {
        world.linked(n, 800);
    }
    let spec = split::spec(Split::Exactly(3));
    world.give(Input::Serve { request: RequestId(1), spec });
    world.wait(100);
    world.all_load();
    world.wait(100);
    assert_eq!(world.warm, [], "nobody is in a hurry");
    world.hurry(1, 400);
    world.wait(100);
    let [stand_in] = world.warm[..] else { panic!("one stands in, not {:?}", world.warm) };
    assert!(world.parts().iter().all(|(node, _)| *node != stand_in.0));
    world.say(stand_in, FromNode::Warm { job: SERVICE, result: Ok(()) });
    world.answers_whole(Conn(world.parts()[2].0), 0);
    (world, stand_in)
}

impl World {
    fn answers_whole(&mut self, conn: Conn, asked: usize) {
        let call = self.asked[asked].1;
        self.say(conn, FromNode::Answer { call, at: 0, part: b"yes"[..].into(), last: true });
    }

    fn answered(&self) -> Vec<u64> {
        self.answers.iter().map(|(call, ..)| call.0).collect()
    }
}

#[test]
fn where_a_slice_says_nothing_one_node_answers_within_the_budget() {
    let (mut world, stand_in) = stood_in();
    world.hurry(2, 400);
    assert_ne!(world.asked[1].0, stand_in, "the slices are asked first");
    world.wait(250);
    assert_eq!(world.asked[2].0, stand_in);
    world.answers_whole(stand_in, 2);
    assert_eq!(world.answered(), [1, 2]);
    let call = world.asked[1].1;
    let told = world.crews.told.iter().filter(|(_, say)| *say == CrewTold::Drop { call });
    assert_eq!(told.count(), 3, "its slices forget it");
    // One node is known to be quick: the slices have most of the budget. They are slow, and answer first.
    world.hurry(3, 400);
    world.wait(450);
    world.answers_whole(Conn(world.parts()[2].0), 3);
    assert!(world.revoked.contains(&world.asked[4].1), "who stands in is told to stop");
    world.answers_whole(stand_in, 4);
    assert_eq!(world.answered(), [1, 2, 3], "each once");
}

#[test]
fn where_a_slice_is_gone_one_node_answers_until_there_are_slices_again() {
    let (mut world, stand_in) = stood_in();
    world.hurry(2, 400);
    world.wait(250);
    world.hurry(3, 400);
    let gone = Conn(world.parts()[1].0);
    world.leave(gone);
    // One was asked of it already and goes on there; then it has room for the other.
    for call in [2, 3] {
        let its = world.asked.iter().rfind(|(conn, ..)| *conn == stand_in);
        let (conn, attempt, body) = its.cloned().expect("it was asked");
        assert_eq!(body, [call]);
        world.say(
            conn,
            FromNode::Answer { call: attempt, at: 0, part: b"yes"[..].into(), last: true },
        );
    }
    assert_eq!(world.answered(), [1, 2, 3]);
    assert_eq!(world.parts().len(), 3, "the fifth takes the lost one's place");
    world.leave(Conn(world.parts()[0].0));
    world.hurry(4, 400);
    assert_eq!(world.asked.last().map(|(conn, ..)| *conn), Some(stand_in), "too few for slices");
    assert_eq!(world.parts(), []);
}

#[test]
fn nobody_stands_in_where_nobody_is_in_a_hurry_any_more() {
    let (mut world, stand_in) = stood_in();
    for _ in 0..124 {
        for conn in (1..=5).map(Conn) {
            world.say(conn, FromNode::Alive { running: vec![], queued: vec![] });
        }
        world.live(500, None);
    }
    assert_eq!(world.scheduler.services()[0].replicas, []);
    world.leave(Conn(world.parts()[1].0));
    world.wait(100);
    world.leave(Conn(world.parts()[0].0));
    world.wait(100);
    assert!(world.parts().iter().any(|(node, _)| *node == stand_in.0), "it has a slice, as all");
}
