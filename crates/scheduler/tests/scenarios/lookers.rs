//! Who says words of strangers' answers again: one that is silent, is lost or fails accuses nobody, and is not the last
//! one who is asked.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::prove::{OWN, STRANGER, at_work, said, split};
use crate::rounds::{texts, word};
use crate::split::MIB;
use crate::world::{World, caps};

const OTHER: u64 = OWN + 1;

impl World {
    /// Whom something was asked last, and as what.
    fn asked_last(&self) -> (Conn, Attempt) {
        let (conn, attempt, _) = self.asked.last().expect("somebody is asked");
        (*conn, *attempt)
    }

    /// All of them are heard, with those who have places.
    fn all_live(&mut self, own: &[u64], millis: u64) {
        for _ in 0..millis / 500 {
            for node in own {
                let (running, queued) = (vec![], vec![]);
                self.say(Conn(*node), FromNode::Alive { running, queued });
            }
            self.live(500, None);
        }
    }

    fn fails(&mut self, (conn, attempt): (Conn, Attempt)) {
        let failure = Failure::Internal { message: "no luck".into() };
        self.say(conn, FromNode::Failed { attempt, failure });
    }
}

#[test]
fn a_looker_that_is_silent_for_a_moment_is_asked_again() {
    let (mut world, last) = at_work(split(), true);
    world.gets_answer(1, last, true);
    world.warmed();
    let (conn, attempt) = world.asked_last();
    assert_eq!(conn, Conn(OWN));
    world.live(3_000, None);
    assert!(world.revoked.contains(&attempt), "it is silent");
    assert_eq!((world.asked_last().1, world.lies_of(STRANGER)), (attempt, 0));
    world.all_live(&[OWN], 4_000);
    assert_ne!(world.asked_last().1, attempt, "it is heard again");
    assert_eq!(world.says_again(Conn(OWN)), 1);
    assert_eq!(world.lies_of(STRANGER), 1);
}

#[test]
fn another_goes_on_where_a_looker_fails_or_leaves() {
    for leaves in [false, true] {
        let (mut world, last) = at_work(split(), true);
        world.linked(OTHER, 1_500);
        world.gets_answer(1, last, false);
        world.warmed();
        let (first, attempt) = world.asked_last();
        // One step is right.
        let body = world.asked.last().expect("it is asked").2.clone();
        let next = said(false)[body.len() - 1..][..5].to_vec();
        let part = next.into();
        world.say(first, FromNode::Answer { call: attempt, at: 0, part, last: false });
        match leaves {
            true => world.leave(first),
            false => world.fails(world.asked_last()),
        }
        world.wait(100);
        world.warmed();
        let (second, _) = world.asked_last();
        assert_ne!(second, first, "leaves: {leaves}");
        assert!(world.says_again(second) > 0);
        assert!(world.why().contains("checked 1 of 1 answer"), "{}", world.why());
    }
}

#[test]
fn one_that_left_is_waited_for_and_not_for_ever() {
    let (mut world, last) = at_work(split(), true);
    world.gets_answer(1, last, true);
    world.warmed();
    world.leave(Conn(OWN));
    world.live(10_000, None);
    assert!(!world.why().contains("could not be checked"), "{}", world.why());
    world.linked(OWN, 1_500);
    world.all_live(&[OWN], 4_000);
    world.warmed();
    world.leave(Conn(OWN));
    world.live(120_000, None);
    let why = world.why();
    assert!(why.contains("could not be checked because the device that checked it left"), "{why}");
    assert_eq!(world.lies_of(STRANGER), 0, "nobody said it again");
}

#[test]
fn an_answer_that_lookers_fail_at_again_and_again_is_given_up() {
    let (mut world, last) = at_work(split(), true);
    world.gets_answer(1, last, true);
    world.warmed();
    for failure in 1..=4 {
        let asked = world.asked_last();
        assert!(!world.revoked.contains(&asked.1), "it is asked for the {failure}. time");
        world.fails(asked);
        world.all_live(&[OWN], 4_000);
    }
    let why = world.why();
    assert!(why.contains("1 answer of other people's devices could not be checked"), "{why}");
    assert!(why.contains("no luck"), "{why}");
    assert!(world.revoked.contains(&world.asked_last().1), "it is not asked any more");
    // The next one is.
    world.gets_answer(2, last, true);
    assert_eq!(world.says_again(Conn(OWN)), 1);
    assert_eq!(world.lies_of(STRANGER), 1);
}

#[test]
fn one_that_says_nothing_makes_way_where_another_could_and_is_waited_for_otherwise() {
    for others in [false, true] {
        let (mut world, last) = at_work(split(), true);
        world.gets_answer(1, last, true);
        world.warmed();
        let (_, attempt) = world.asked_last();
        if others {
            world.linked(OTHER, 1_500);
        }
        world.all_live(&[OWN, OTHER], 42_000);
        world.warmed();
        assert_eq!(world.revoked.contains(&attempt), others);
        let asked = Conn(if others { OTHER } else { OWN });
        assert_eq!(world.asked_last().0, asked);
        assert_eq!(world.says_again(asked), 1);
        assert_eq!(world.lies_of(STRANGER), 1);
    }
}

#[test]
fn whoever_has_another_version_of_the_engine_is_not_asked_where_one_has_the_same() {
    let with = |version: &str, memory: u64| {
        let mut caps = Caps { memory: memory * MIB, ..caps(100) };
        caps.engines.push(Engine::new(Engine::LLM, version));
        caps
    };
    let mut spec = ServiceSpec { strangers: true, ..texts(Split::Never) };
    spec.needs.engine = Some(Engine::LLM.into());
    let mut world = World::new();
    world.give(Input::Serve { request: RequestId(1), spec });
    let stranger = world.join_as(1, 1, with("1", 1_500), Vec::new());
    world.wait(100);
    world.warmed();
    world.linked_as(2, with("1", 1_500));
    world.linked_as(3, with("2", 1_500));
    world.gets_answer(1, stranger, true);
    assert_eq!(world.warm, [Conn(2)]);
    world.warmed();
    assert_eq!(world.says_again(Conn(2)), 1);
    assert_eq!(world.lies_of(1), 1);
}

#[test]
fn words_that_no_model_has_are_no_failure_of_who_looks() {
    let (mut world, last) = at_work(split(), true);
    world.gets_answer(1, last, true);
    world.warmed();
    let (conn, attempt) = world.asked_last();
    let failure = Failure::Model { message: "the model has no token 999".into() };
    world.say(conn, FromNode::Failed { attempt, failure });
    assert_eq!(world.lies_of(STRANGER), 1);
}

/// A service of strangers that have all of it, the first of which is there.
fn of_strangers() -> (World, Conn) {
    let mut world = World::new();
    let spec = ServiceSpec { strangers: true, ..texts(Split::Never) };
    world.give(Input::Serve { request: RequestId(1), spec });
    world.stranger_with(1, 1_500);
    world.wait(100);
    world.warmed();
    (world, Conn(1))
}

#[test]
fn half_a_word_of_one_that_left_does_not_make_the_next_one_a_liar() {
    for (half, torn) in [([9, 0], true), ([1, 0], false)] {
        let (mut world, first) = of_strangers();
        world.request(1, 600_000);
        let (_, call) = world.asked_last();
        let part = [word(10), half.to_vec()].concat().into();
        world.say(first, FromNode::Answer { call, at: 0, part, last: false });
        world.leave(first);
        world.stranger_with(2, 1_500);
        world.wait(100);
        world.warmed();
        world.linked(3, 1_500);
        let (next, call) = world.asked_last();
        assert_eq!(next, Conn(2));
        let part = said(false)[5..].to_vec().into();
        world.say(next, FromNode::Answer { call, at: 0, part, last: true });
        world.wait(100);
        world.warmed();
        assert_eq!(world.says_again(Conn(3)) > 0, !torn);
        assert_eq!(world.lies_of(2), 0, "it said the right words");
        let why = world.why();
        assert_eq!(why.contains("could not be checked because a device said the begin"), torn);
    }
}

#[test]
fn what_a_liar_said_and_another_goes_on_behind_is_broken_off_as_well() {
    let (mut world, liar) = of_strangers();
    world.linked(2, 1_500);
    world.gets_answer(1, liar, true);
    world.request(2, 600_000);
    let (asked, call) = world.asked_last();
    assert_eq!(asked, liar);
    world.say(liar, FromNode::Answer { call, at: 0, part: word(1).into(), last: false });
    world.leave(liar);
    world.warmed();
    let (own, _) = world.asked_last();
    assert_eq!(own, Conn(2), "it goes on behind that");
    assert!(world.says_again(own) > 0);
    assert!(
        matches!(&world.unanswered[..], [(CallId(2), CallError::Doubted { .. })]),
        "{:?}",
        world.unanswered
    );
}

/// Once, answers that came while another was looked at were looked at by nobody: of a burst, those of liars went unseen.
#[test]
fn first_answers_that_come_while_another_is_looked_at_wait_for_their_turn() {
    let mut world = World::new();
    let spec = ServiceSpec { strangers: true, least: 2, most: 2, ..texts(Split::Never) };
    world.give(Input::Serve { request: RequestId(1), spec });
    let (honest, liar, own) = (Conn(1), Conn(2), Conn(3));
    world.stranger_with(1, 1_500);
    world.stranger_with(2, 1_500);
    for _ in 0..3 {
        world.wait(100);
        world.warmed();
    }
    world.linked(3, 1_500);
    (1..=4).for_each(|call| world.request(call, 600_000));
    let asked = world.asked.clone();
    assert!([honest, liar].iter().all(|of| asked.iter().filter(|(to, ..)| to == of).count() == 2));
    for (conn, call, _) in asked {
        let part = said(conn == liar).into();
        world.say(conn, FromNode::Answer { call, at: 0, part, last: true });
    }
    for _ in 0..3 {
        world.wait(100);
        world.warmed();
        world.says_again(own);
    }
    assert_eq!((world.lies_of(1), world.lies_of(2)), (0, 2), "{}", world.why());
    let why = world.why();
    assert!(why.contains("checked 4 of 4 answers"), "two of each of them: {why}");
    assert!(!why.contains("could not be checked"), "{why}");
}
