//! Members in a ring without links between them: what one says the other hears.

use alloc::collections::VecDeque;
use alloc::vec;

use shoal_protocol::{JobId, Span};

use super::*;

const EPOCH: Epoch = Epoch(3);
/// Rounds until a request is answered.
const ROUNDS: usize = 5;

/// Some members. Each adds its rank to what it gets; the last one gives what it has, or has it go round once more.
struct Ring {
    now: Time,
    members: Vec<Rounds>,
    wires: Vec<VecDeque<(Rank, Vec<u8>)>>,
    todo: Vec<VecDeque<StageCommand>>,
    /// What the last one was told past the others.
    aside: BTreeMap<Attempt, Vec<u8>>,
    /// All work on a request together, and what the last one heard of it.
    together: Option<BTreeMap<Attempt, Vec<u8>>>,
    parts: Vec<(u64, u64, Vec<u8>, bool)>,
    refused: Vec<u64>,
    dropped: Vec<(u8, u64)>,
    most_together: usize,
    bad: Vec<(u8, Rank)>,
    /// No request is ever answered.
    endless: bool,
}

fn ring(ranks: u8) -> Ring {
    let parts = (0..u64::from(ranks)).map(|at| Span::new(at, 1)).collect();
    let task = StageTask { job: JobId(1), parts, rounds: true };
    let member = |rank| Rounds::new(Time(0), (EPOCH, Rank(rank), ranks), &task);
    let mut ring = Ring {
        now: Time(0),
        members: (0..ranks).map(member).collect(),
        wires: vec![VecDeque::new(); ranks.into()],
        todo: vec![VecDeque::new(); ranks.into()],
        aside: BTreeMap::new(),
        parts: Vec::new(),
        refused: Vec::new(),
        dropped: Vec::new(),
        most_together: 0,
        together: None,
        bad: Vec::new(),
        endless: false,
    };
    (0..ranks).for_each(|rank| ring.drain(rank));
    ring
}

impl Ring {
    fn give(&mut self, rank: u8, input: StageInput) {
        self.now = self.now + Micros(10);
        self.members[usize::from(rank)].handle(self.now, input);
        self.drain(rank);
    }

    fn drain(&mut self, rank: u8) {
        let at = usize::from(rank);
        self.members[at].check();
        while let Some(output) = self.members[at].poll_output() {
            match output {
                StageOutput::Tell { to, message } => {
                    self.wires[usize::from(to.0)].push_back((Rank(rank), message.to_vec()));
                }
                StageOutput::Command(command) => self.todo[at].push_back(command),
                StageOutput::Says(_) | StageOutput::Slow(_) => {}
                StageOutput::Bad { rank: other, .. } => self.bad.push((rank, other)),
                StageOutput::Answer { call, .. } => self.refused.push(call.0),
                StageOutput::Part { call, at, bytes, last } => {
                    self.parts.push((call.0, at, bytes, last));
                }
            }
        }
    }

    fn ask(&mut self, call: u64) {
        let body = Arc::new(vec![call as u8]);
        self.give(0, StageInput::Ask { call: Attempt(call), body });
    }

    fn hear(&mut self) {
        while let Some(at) = self.wires.iter().position(|wire| !wire.is_empty())
            && let Some((from, bytes)) = self.wires[at].pop_front()
        {
            self.give(at as u8, StageInput::Heard { from, bytes });
        }
    }

    /// The first tells all, and everybody tells the last, who answers once it has heard of each.
    fn turn_together(&mut self, rank: u8, passing: &Passing) -> Vec<Out> {
        let last = rank as usize + 1 == self.members.len();
        let Some(heard) = &mut self.together else { return Vec::new() };
        match passing.way {
            Way::Asked => vec![Out::Among(vec![0]), Out::Choose(vec![rank])],
            Way::Among if !last => vec![Out::Choose(vec![rank])],
            Way::Among => {
                let heard = heard.entry(passing.call).or_default();
                heard.extend(passing.bytes.iter());
                match heard.len() == self.members.len() {
                    true => vec![Out::Last(heard.clone())],
                    false => Vec::new(),
                }
            }
            Way::Again | Way::On | Way::Round | Way::Aside => panic!("not in a row"),
        }
    }

    fn turn(&mut self, rank: u8, passing: &Passing) -> Vec<Out> {
        if self.together.is_some() {
            return self.turn_together(rank, passing);
        }
        let bytes = match self.endless {
            true => vec![rank],
            false => [passing.bytes.as_slice(), &[rank]].concat(),
        };
        match passing.way {
            Way::Asked => vec![Out::Aside(passing.bytes.to_vec()), Out::Again],
            Way::Again => vec![Out::On(vec![0])],
            Way::Aside => {
                self.aside.insert(passing.call, passing.bytes.to_vec());
                Vec::new()
            }
            Way::Round => vec![Out::On(bytes)],
            Way::On if usize::from(rank) + 1 < self.members.len() => vec![Out::On(bytes)],
            Way::On if bytes.len() == ROUNDS * self.members.len() => {
                let asked = self.aside.remove(&passing.call).expect("told past the others");
                vec![Out::Part(asked), Out::Last(bytes)]
            }
            Way::On => vec![Out::Round(bytes)],
            Way::Among => panic!("they do not work on it together"),
        }
    }

    /// One engine does the next thing.
    fn work(&mut self, rank: u8) -> bool {
        let Some(command) = self.todo[usize::from(rank)].pop_front() else { return false };
        let answer = match command {
            StageCommand::Load { epoch, .. } => StageAnswer::Loaded { epoch },
            StageCommand::Turn { epoch, items } => {
                self.most_together = self.most_together.max(items.len());
                let made = items.iter().map(|item| (item.call, Ok(self.turn(rank, item))));
                let made = made.collect();
                StageAnswer::Turned { epoch, made, took: Micros(7), usual: true }
            }
            StageCommand::Drop { call, .. } => {
                self.dropped.push((rank, call.0));
                return true;
            }
            StageCommand::Run { .. } => panic!("requests go round and round"),
        };
        self.give(rank, StageInput::Answer(answer));
        true
    }

    fn run(&mut self) {
        loop {
            self.hear();
            let ranks = self.members.len() as u8;
            if (0..ranks).filter(|rank| self.work(*rank)).count() == 0 {
                // Somebody may wait for others a while.
                self.now = self.now + MOST_HOLD;
                (0..ranks).for_each(|rank| self.give(rank, StageInput::Tick));
                if self.wires.iter().all(VecDeque::is_empty)
                    && self.todo.iter().all(VecDeque::is_empty)
                {
                    return;
                }
            }
        }
    }
}

#[test]
fn a_request_goes_round_until_the_last_one_answers_in_parts() {
    for ranks in [2, 3, 5] {
        let mut ring = ring(ranks);
        ring.run();
        ring.ask(9);
        ring.run();
        let all: Vec<u8> = (0..ROUNDS).flat_map(|_| 0..ranks).collect();
        assert_eq!(ring.parts, [(9, 0, vec![9], false), (9, 1, all, true)]);
        assert!(ring.bad.is_empty() && ring.refused.is_empty());
    }
}

#[test]
fn many_share_the_engines_turns_and_keep_to_their_own() {
    let mut ring = ring(3);
    ring.run();
    (1..=40).for_each(|call| ring.ask(call));
    ring.run();
    let last = ring.parts.iter().filter(|(.., last)| *last);
    let mut answered: Vec<u64> = last.map(|(call, ..)| *call).collect();
    answered.sort_unstable();
    assert_eq!(answered, (1..=40).collect::<Vec<_>>());
    assert!(ring.most_together > 1 && ring.bad.is_empty());
}

#[test]
fn all_work_on_a_request_together_and_the_last_one_hears_of_each() {
    for ranks in [2, 3, 5] {
        let mut ring = ring(ranks);
        ring.together = Some(BTreeMap::new());
        ring.run();
        (1..=20).for_each(|call| ring.ask(call));
        ring.run();
        assert_eq!(ring.parts.len(), 20);
        for (_, _, mut heard, last) in ring.parts.drain(..) {
            heard.sort_unstable();
            let others: Vec<u8> = (0..ranks - 1).collect();
            assert!(last && heard == [&[0][..], &others].concat(), "{heard:?}");
        }
        assert!(ring.bad.is_empty() && ring.refused.is_empty());
    }
}

#[test]
fn more_than_can_belong_to_a_request_is_reported() {
    let mut ring = ring(2);
    let item = Item { call: Attempt(1), bytes: Arc::default() };
    for n in 0..=MOST_AMONG {
        let bytes = Words::Among(item.clone()).encode(EPOCH);
        ring.give(1, StageInput::Heard { from: Rank(0), bytes });
        assert_eq!(ring.bad.pop().is_some(), n == MOST_AMONG);
    }
    let bytes = Words::Among(item).encode(EPOCH);
    ring.give(1, StageInput::Heard { from: Rank(1), bytes });
    assert!(ring.bad.pop().is_some(), "from itself");
}

#[test]
fn what_is_dropped_is_forgotten_by_everybody_and_holds_up_nobody() {
    let mut ring = ring(3);
    ring.run();
    (1..=4).for_each(|call| ring.ask(call));
    ring.hear();
    for rank in 0..3 {
        ring.work(rank);
    }
    for rank in 0..3 {
        ring.give(rank, StageInput::Drop { call: Attempt(2) });
    }
    ring.run();
    assert!((0..3).all(|rank| ring.dropped.contains(&(rank, 2))));
    let mut answered: Vec<u64> = ring.parts.iter().map(|(call, ..)| *call).collect();
    answered.dedup();
    assert_eq!(answered.len(), 3);
    assert!(!answered.contains(&2) && ring.bad.is_empty());
    assert!(ring.members.iter().all(|member| member.told.is_empty()));
}

/// What a turn of so many items takes where two members share the layers: weights are read once, each item adds a part.
fn turn_takes(items: usize) -> Micros {
    Micros(1_000 + 160 * items as u64)
}

/// Turns of each size at each member, and the rounds of all requests in a second, by a clock: words take a while, and a
/// message is received for a while before the next one is.
fn paced(calls: u64) -> (Vec<usize>, u64) {
    const ON_THE_WAY: Micros = Micros(150);
    const TO_RECEIVE: Micros = Micros(40);
    let (mut ring, start, seconds) = (ring(2), Time(0), 2);
    ring.run();
    ring.endless = true;
    (1..=calls).for_each(|call| ring.ask(call));
    let mut sizes = Vec::new();
    let mut busy: Vec<Option<(Time, Vec<Passing>)>> = vec![None, None];
    let mut ways: Vec<VecDeque<(Time, Rank, Vec<u8>)>> = vec![VecDeque::new(), VecDeque::new()];
    let (mut rounds, mut now) = (0, start);
    while now < start + Micros::from_secs(seconds) {
        ring.now = now;
        for rank in 0..2u8 {
            let at = usize::from(rank);
            let due = busy[at].as_ref().is_some_and(|(end, _)| *end <= now);
            if due && let Some((_, items)) = busy[at].take() {
                let made = items.iter().map(|item| (item.call, Ok(ring.turn(rank, item))));
                let made = made.collect();
                let (epoch, took) = (EPOCH, turn_takes(items.len()));
                rounds += if rank == 1 { items.len() } else { 0 };
                ring.give(
                    rank,
                    StageInput::Answer(StageAnswer::Turned { epoch, made, took, usual: true }),
                );
            }
            while let Some(true) = ways[at].front().map(|(when, ..)| *when <= now)
                && let Some((_, from, bytes)) = ways[at].pop_front()
            {
                ring.give(rank, StageInput::Heard { from, bytes });
            }
            if ring.members[at].next_timeout().is_some_and(|when| when <= now) {
                ring.give(rank, StageInput::Tick);
            }
            if let Some(StageCommand::Turn { items, .. }) = ring.todo[at].pop_front() {
                sizes.push(items.len());
                busy[at] = Some((now + turn_takes(items.len()), items));
            }
        }
        for (at, way) in ways.iter_mut().enumerate() {
            for (from, bytes) in ring.wires[at].drain(..) {
                let before = way.back().map_or(Time(0), |(when, ..)| *when + TO_RECEIVE);
                way.push_back((before.max(now + ON_THE_WAY), from, bytes));
            }
        }
        now = now + Micros(20);
    }
    (sizes, rounds as u64 / seconds)
}

/// As many requests at each member as at the other, so that neither waits: all in one place would be half as fast.
#[test]
fn eight_requests_keep_two_members_busy() {
    let (sizes, rounds) = paced(8);
    let ideal = 4_000_000 / turn_takes(4).0;
    assert!(
        100 * rounds > 85 * ideal,
        "{rounds} of {ideal}; turns of {:?}",
        &sizes[sizes.len() - 40..]
    );
    let (_, alone) = paced(1);
    let most = 1_000_000 / (2 * turn_takes(1).0 + 2 * 150);
    assert!(100 * alone > 90 * most, "one request is not held up: {alone} of {most}");
}

#[test]
fn between_two_requests_nobody_waits() {
    let mut ring = ring(2);
    ring.run();
    for call in 1..=2 {
        ring.now = ring.now + Micros::from_secs(3_600);
        ring.ask(call);
        ring.run();
        (0..2).for_each(|rank| ring.give(rank, StageInput::Drop { call: Attempt(call) }));
    }
    for Rounds { report: StageReport { waited, .. }, .. } in &ring.members {
        assert!((Micros(1)..Micros::from_secs(1)).contains(waited), "{waited:?}");
    }
}

#[test]
fn words_from_the_wrong_place_are_reported() {
    let mut ring = ring(3);
    ring.run();
    let item = Item { call: Attempt(1), bytes: Arc::default() };
    for (to, from, words) in [
        (1, 2, Words::Item(item.clone())),
        (1, 2, Words::Round(item.clone())),
        (0, 1, Words::Round(item.clone())),
        (2, 1, Words::Aside(item.clone())),
        (0, 1, Words::Begun(Attempt(1))),
    ] {
        let bytes = words.encode(EPOCH);
        ring.give(to, StageInput::Heard { from: Rank(from), bytes });
        assert_eq!(ring.bad.pop(), Some((to, Rank(from))), "{words:?}");
    }
    let bytes = Words::Item(item).encode(Epoch(2));
    ring.give(1, StageInput::Heard { from: Rank(0), bytes });
    assert_eq!(ring.bad.pop(), Some((1, Rank(0))), "an older epoch");
}
