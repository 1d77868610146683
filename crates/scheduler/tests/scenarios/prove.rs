//! Answers of strangers to a language model: one of the operator's own says some words of them again.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::rounds::{texts, word};
use crate::split::MIB;
use crate::world::{World, caps};

/// In the order in which they join: what a node is numbered.
pub(crate) const MEMBER: u64 = 1;
pub(crate) const STRANGER: u64 = 2;
pub(crate) const OWN: u64 = 3;

impl World {
    /// Somebody else's device that may be in crews.
    pub(crate) fn stranger(&mut self, n: u64) {
        self.stranger_with(n, 600);
    }

    pub(crate) fn stranger_with(&mut self, n: u64, memory: u64) {
        let conn = self.join_as(n, n, Caps { memory: memory * MIB, ..caps(100) }, Vec::new());
        let (key, proof) = (LinkKey([n as u8; 32]), Signature([0; 32], [0; 32]));
        self.say(conn, FromNode::Links { key, proof });
    }

    pub(crate) fn forget_requests(&mut self) {
        self.asked.clear();
        self.revoked.clear();
    }

    /// All who were told to keep all of it ready do.
    pub(crate) fn warmed(&mut self) {
        for conn in core::mem::take(&mut self.warm) {
            self.say(conn, FromNode::Warm { job: JobId(1), result: Ok(()) });
        }
    }

    /// A request, answered by whoever it goes to through `last`: twenty words, and an end.
    pub(crate) fn gets_answer(&mut self, call: u64, last: Conn, spoil: bool) {
        self.live(500, None);
        self.request(call, 600_000);
        let (_, attempt, _) = self.asked.last().cloned().expect("it is asked");
        self.wait(1_000);
        let part = said(spoil);
        self.say(last, FromNode::Answer { call: attempt, at: 0, part: part.into(), last: true });
        self.wait(100);
    }

    /// One of the operator's own says again what it is asked, rightly. How often it was asked.
    pub(crate) fn says_again(&mut self, own: Conn) -> usize {
        let mut times = 0;
        let mut seen = 0;
        while let Some((_, attempt, body)) = self.asked.get(seen).cloned() {
            seen += 1;
            let is_look = self.asked[seen - 1].0 == own && !self.revoked.contains(&attempt);
            if !is_look {
                continue;
            }
            // Behind the request, which is one byte, stands what was said; each word takes five.
            let word = (body.len() - 1) / 5;
            let next = said(false)[word * 5..][..5].to_vec();
            self.say(
                own,
                FromNode::Answer { call: attempt, at: 0, part: next.into(), last: false },
            );
            times += 1;
        }
        times
    }

    pub(crate) fn why(&self) -> String {
        self.scheduler.explain_service(self.now, JobId(1)).expect("it is").lines.join("\n")
    }

    pub(crate) fn lies_of(&self, node: u64) -> u32 {
        let nodes = self.scheduler.nodes(self.now);
        nodes.iter().find(|one| one.node.0 == node).expect("it is here").trust[Lane::Cpu].wrong
    }
}

/// Words 10 to 29 and an end, or all of them one more.
pub(crate) fn said(spoil: bool) -> Vec<u8> {
    let end = vec![1, 0, 0, 0, 1];
    (10..30).flat_map(|letter| word(letter + u8::from(spoil))).chain(end).collect()
}

pub(crate) fn split() -> ServiceSpec {
    ServiceSpec { strangers: true, ..texts(Split::Exactly(2)) }
}

/// A crew of one own node and a stranger, and perhaps another own node with room for everything. Says who is the last.
pub(crate) fn at_work(spec: ServiceSpec, looker: bool) -> (World, Conn) {
    let mut world = World::new();
    world.linked(MEMBER, 600);
    world.stranger(STRANGER);
    world.give(Input::Serve { request: RequestId(1), spec });
    world.wait(100);
    assert_eq!(world.parts().len(), 2);
    if looker {
        world.linked(OWN, 1_500);
    }
    world.all_load();
    let last = Conn(world.parts()[1].0);
    (world, last)
}

#[test]
fn an_honest_stranger_stays_and_is_looked_at_seldom_after_its_first_answers() {
    let (mut world, last) = at_work(split(), true);
    let mut looks = 0;
    for call in 1..=60 {
        world.gets_answer(call, last, false);
        world.warmed();
        let said = world.says_again(Conn(OWN));
        assert!(call > 3 || said > 1, "answer {call} is looked at, several words of it: {said}");
        looks += usize::from(said > 0);
        world.forget_requests();
    }
    assert!((4..20).contains(&looks), "{looks} of 60");
    let why = world.why();
    assert!(
        why.contains(&format!("checked {looks} of 60 answers of other people's devices: none was")),
        "{why}"
    );
    assert_eq!((world.lies_of(STRANGER), world.parts().len()), (0, 2));
}

#[test]
fn a_stranger_that_says_other_words_leaves_and_what_it_is_in_the_middle_of_is_broken_off() {
    let (mut world, last) = at_work(split(), true);
    world.gets_answer(1, last, true);
    world.request(2, 600_000);
    world.request(3, 600_000);
    let begun = world.asked[1].1;
    world.say(last, FromNode::Answer { call: begun, at: 0, part: word(1).into(), last: false });
    world.warmed();
    assert_eq!(world.says_again(Conn(OWN)), 1, "the first word said again shows it");
    assert!(
        matches!(&world.unanswered[..], [(CallId(2), CallError::Doubted { why })] if why.contains("came to other words")),
        "{:?}",
        world.unanswered
    );
    assert_eq!(world.lies_of(STRANGER), 1, "there was no other stranger");
    let why = world.why();
    for words in
        ["1 answer of other people's devices: 1 was wrong", "gets nothing of it for another 600 s"]
    {
        assert!(why.contains(words), "{words}: {why}");
    }
    world.wait(200);
    let members = world.parts();
    assert!(members.len() == 2 && members.iter().all(|(node, _)| *node != STRANGER), "{members:?}");
    world.all_load();
    let (_, _, body) = world.asked.last().cloned().expect("asked again");
    assert_eq!(body, [3], "from the start: nothing was said of it");
    // Not even where nobody else is there.
    world.leave(Conn(OWN));
    world.wait(200);
    assert!(world.parts().is_empty(), "it is not asked");
}

#[test]
fn where_none_of_the_own_devices_has_room_for_all_of_it_that_is_said() {
    let (mut world, last) = at_work(split(), false);
    world.gets_answer(1, last, true);
    world.wait(200);
    let why = world.why();
    assert!(why.contains("1 answer of other people's devices could not be checked because none of your own devices"), "{why}");
    assert_eq!((world.lies_of(STRANGER), world.parts().len()), (0, 2));
}

#[test]
fn numbers_that_are_rounded_on_their_way_are_no_lies() {
    let spec = split();
    let mut work = spec.work.language().expect("a language model").clone();
    work.wire = Wire::F16;
    let (mut world, last) = at_work(ServiceSpec { work: work.into(), ..spec }, true);
    world.gets_answer(1, last, true);
    world.wait(200);
    let why = world.why();
    assert!(
        why.contains("could not be checked because what its devices send each other is rounded"),
        "{why}"
    );
    assert_eq!(world.lies_of(STRANGER), 0);
}

#[test]
fn a_stranger_with_all_of_it_is_looked_at_as_well_and_three_lies_bar_it() {
    let mut world = World::new();
    let (stranger, own) = (1, 2);
    let spec = ServiceSpec { strangers: true, ..texts(Split::Never) };
    world.give(Input::Serve { request: RequestId(1), spec });
    for lie in 1..=3 {
        world.stranger_with(stranger, 1_500);
        world.wait(100);
        world.warmed();
        world.linked(own, 1_500);
        world.gets_answer(lie, Conn(stranger), true);
        world.warmed();
        assert_eq!(world.says_again(Conn(own)), 1);
        assert_eq!(u64::from(world.lies_of(stranger)), lie);
        world.leave(Conn(own));
        world.wait(100);
        assert!(world.warm.is_empty(), "it is kept out");
        world.leave(Conn(stranger));
        world.forget_requests();
        world.wait(700_000);
    }
    world.stranger_with(stranger, 1_500);
    world.wait(100);
    assert!(world.warm.is_empty(), "it is barred");
    let mut again = world.restarted();
    again.stranger_with(stranger, 1_500);
    (0..20).for_each(|_| again.wait(100));
    assert!(again.warm.is_empty(), "that is remembered");
}
