//! Members that are slow, silent, ahead, or lie; and words from rank to rank.

use shoal_node::collective::*;
use shoal_protocol::Micros;

use crate::world::{Crew, PATIENCE};

/// A message as a liar makes it.
fn message(tag: Tag, length: usize) -> Vec<u8> {
    [vec![0; length], tag.encode().to_vec()].concat()
}

fn point(label: u32) -> Tag {
    Tag { op: label, stage: Stage::Point, slice: 0, segment: 0 }
}

#[test]
fn words_wait_for_their_receiver_and_receivers_for_words() {
    let mut crew = Crew::new(1, 3);
    let say = |crew: &mut Crew, label, byte| {
        let data = vec![byte];
        crew.give(Rank(0), GroupInput::Send { to: Rank(2), label, data });
        crew.settle();
    };
    say(&mut crew, 7, 1);
    say(&mut crew, 8, 2);
    assert!(crew.said[2].is_empty());
    crew.give(Rank(2), GroupInput::Receive { from: Rank(0), label: 8 });
    crew.give(Rank(2), GroupInput::Receive { from: Rank(0), label: 7 });
    crew.give(Rank(2), GroupInput::Receive { from: Rank(0), label: 7 });
    say(&mut crew, 7, 3);
    let got = |label, byte| GroupOutput::Got { from: Rank(0), label, data: vec![byte] };
    assert_eq!(crew.said[2], [got(8, 2), got(7, 1), got(7, 3)]);
}

#[test]
fn a_member_that_does_not_deliver_is_named_once_by_all_who_wait_for_it() {
    let mut crew = Crew::new(1, 4);
    let numbers = Numbers { element: Element::I32, count: 8, fold: Fold::Sum };
    let op = Op::AllReduce { numbers, how: How::Mesh };
    for rank in [0, 1, 3] {
        crew.begin(Rank(rank), &op, &[1; 32]);
    }
    crew.settle();
    let since = crew.now;
    assert_eq!(crew.groups[0].next_timeout(), Some(since + PATIENCE));
    crew.wait(Micros(PATIENCE.0 - 1));
    assert!(crew.said.iter().all(Vec::is_empty), "not before its time");
    for _ in 0..5 {
        crew.wait(PATIENCE);
    }
    for rank in [0, 1, 3] {
        let slow = &crew.said[rank];
        assert!(slow.contains(&GroupOutput::Slow { rank: Rank(2), since }), "{slow:?}");
        let named = |said: &&GroupOutput| matches!(said, GroupOutput::Slow { rank: Rank(2), .. });
        assert_eq!(slow.iter().filter(named).count(), 1);
        assert_eq!(crew.groups[rank].next_timeout(), None);
    }
    assert!(crew.said[2].is_empty(), "who waits for nobody names nobody");
    crew.begin(Rank(2), &op, &[1; 32]);
    crew.settle();
    assert!(crew.done.iter().all(|done| done.len() == 1), "late is not never");
}

#[test]
fn a_receive_that_nobody_answers_names_its_sender() {
    let mut crew = Crew::new(1, 2);
    crew.give(Rank(0), GroupInput::Receive { from: Rank(1), label: 1 });
    let since = crew.now;
    crew.wait(PATIENCE);
    assert_eq!(crew.said[0], [GroupOutput::Slow { rank: Rank(1), since }]);
}

#[test]
fn messages_that_nobody_awaits_are_not_taken() {
    let mut crew = Crew::new(1, 3);
    let numbers = Numbers { element: Element::I32, count: 4, fold: Fold::Sum };
    crew.begin(Rank(0), &Op::AllReduce { numbers, how: How::Tree }, &[0; 16]);
    let tag = Tag { op: 0, stage: Stage::Fold, slice: 0, segment: 0 };
    let lies = [
        (1, tag, 15, Fault::WrongLength),
        (1, Tag { segment: 1, ..tag }, 16, Fault::Unexpected),
        (1, Tag { slice: 9, ..tag }, 16, Fault::Unexpected),
        (1, Tag { stage: Stage::Result, ..tag }, 16, Fault::Unexpected),
        (1, Tag { op: MAX_AHEAD + 1, ..tag }, 16, Fault::Unexpected),
        (0, tag, 16, Fault::Unexpected),
        (7, tag, 16, Fault::Unexpected),
    ];
    for (from, tag, length, fault) in lies {
        let (from, message) = (Rank(from), message(tag, length));
        crew.give(Rank(0), GroupInput::Received { from, message });
        assert_eq!(crew.said[0].pop(), Some(GroupOutput::Bad { rank: from, fault }), "{tag:?}");
    }
    crew.give(Rank(0), GroupInput::Received { from: Rank(1), message: vec![9; 7] });
    assert!(matches!(crew.said[0].pop(), Some(GroupOutput::Bad { .. })), "no tag");
    let early = Tag { op: 5, ..tag };
    crew.give(Rank(0), GroupInput::Received { from: Rank(1), message: message(early, 0) });
    assert!(crew.said[0].is_empty());
    crew.give(Rank(0), GroupInput::Received { from: Rank(1), message: message(early, 0) });
    assert!(matches!(crew.said[0].pop(), Some(GroupOutput::Bad { .. })), "said twice");
    crew.begin(Rank(1), &Op::AllReduce { numbers, how: How::Tree }, &[0; 16]);
    crew.begin(Rank(2), &Op::AllReduce { numbers, how: How::Tree }, &[0; 16]);
    crew.settle();
    assert_eq!(crew.done[0].len(), 1, "lies changed nothing");
}

#[test]
fn whoever_is_far_ahead_is_held_back_and_then_not_kept() {
    let mut crew = Crew::new(1, 2);
    let piece = 1 << 20;
    let mut given = 0;
    while !matches!(crew.said[0].last(), Some(GroupOutput::Bad { .. })) {
        given += piece;
        assert!(given <= MAX_EARLY_BYTES + piece, "kept without end");
        let message = message(point(given as u32), piece);
        crew.give(Rank(0), GroupInput::Received { from: Rank(1), message });
    }
    assert_eq!(crew.said[0][0], GroupOutput::Hold { rank: Rank(1), hold: true });
    for label in (0..=given).step_by(piece) {
        crew.give(Rank(0), GroupInput::Receive { from: Rank(1), label: label as u32 });
    }
    assert!(crew.said[0].contains(&GroupOutput::Hold { rank: Rank(1), hold: false }));
}

#[test]
fn operations_that_make_no_sense_are_refused_and_not_counted() {
    let mut crew = Crew::new(1, 3);
    let numbers = Numbers { element: Element::F32, count: 4, fold: Fold::Sum };
    let huge = Numbers { count: usize::MAX / 2, ..numbers };
    let how = How::Ring;
    let cases = [
        (Op::AllReduce { numbers, how }, OpError::WrongLength),
        (Op::AllReduce { numbers: huge, how }, OpError::TooLarge),
        (Op::Broadcast { root: Rank(3), bytes: 0, how }, OpError::WrongRanks),
        (Op::Broadcast { root: Rank(1), bytes: MAX_OP_BYTES + 1, how }, OpError::TooLarge),
        (Op::Scatter { root: Rank(3), parts: vec![1, 1, 1] }, OpError::WrongRanks),
        (Op::Gather { root: Rank(9), parts: vec![0, 0, 1] }, OpError::WrongRanks),
        (Op::AllGather { parts: vec![0, 0], how }, OpError::WrongRanks),
        (Op::AllGather { parts: vec![usize::MAX, 1, 1], how }, OpError::TooLarge),
    ];
    for (op, error) in cases {
        crew.begin(Rank(0), &op, &[]);
        assert_eq!(crew.said[0].pop(), Some(GroupOutput::Refused(error)), "{op:?}");
    }
    crew.give(Rank(0), GroupInput::Send { to: Rank(0), label: 1, data: vec![] });
    assert_eq!(crew.said[0].pop(), Some(GroupOutput::Refused(OpError::WrongRanks)));
    for rank in crew.ranks() {
        crew.begin(rank, &Op::Barrier, &[]);
    }
    crew.settle();
    assert!(crew.done.iter().all(|done| done == &[(OpId(0), vec![])]));
    assert!(Group::new(Rank(3), 3, PATIENCE).is_none());
}
