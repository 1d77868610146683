//! Stages in a row without links between them: what one says the other hears.

use alloc::collections::VecDeque;
use alloc::vec;

use super::*;

const EPOCH: Epoch = Epoch(3);

/// Some stages; each adds its rank's digit to what it gets.
struct Row {
    now: Time,
    stages: Vec<Stage>,
    /// What each was told and has not heard.
    wires: Vec<VecDeque<(Rank, Vec<u8>)>>,
    /// What each engine has to do.
    todo: Vec<VecDeque<StageCommand>>,
    answers: Vec<(u64, Result<Vec<u8>, Failure>)>,
    says: Vec<(u8, CrewSay)>,
    bad: Vec<(u8, Rank)>,
}

fn row(ranks: u8) -> Row {
    let parts = (0..u64::from(ranks)).map(|at| Span::new(at, 1)).collect();
    let task = StageTask { job: JobId(1), parts, rounds: false };
    let stage = |rank| Stage::new(Time(0), (EPOCH, Rank(rank), ranks), &task);
    let mut row = Row {
        now: Time(0),
        stages: (0..ranks).map(stage).collect(),
        wires: vec![VecDeque::new(); ranks.into()],
        todo: vec![VecDeque::new(); ranks.into()],
        answers: Vec::new(),
        says: Vec::new(),
        bad: Vec::new(),
    };
    (0..ranks).for_each(|rank| row.drain(rank));
    row
}

impl Row {
    fn give(&mut self, rank: u8, input: StageInput) {
        self.now = self.now + Micros(10);
        self.stages[usize::from(rank)].handle(self.now, input);
        self.drain(rank);
    }

    fn drain(&mut self, rank: u8) {
        let at = usize::from(rank);
        self.stages[at].check();
        while let Some(output) = self.stages[at].poll_output() {
            match output {
                StageOutput::Tell { to, message } => {
                    self.wires[usize::from(to.0)].push_back((Rank(rank), message.to_vec()));
                }
                StageOutput::Command(command) => self.todo[at].push_back(command),
                StageOutput::Says(say) => self.says.push((rank, say)),
                StageOutput::Slow(_) => {}
                StageOutput::Bad { rank: other, .. } => self.bad.push((rank, other)),
                StageOutput::Answer { call, result } => self.answers.push((call.0, result)),
                StageOutput::Part { .. } => panic!("answers of stages are whole"),
            }
        }
    }

    fn ask(&mut self, call: u64) {
        let body = Arc::new(vec![call as u8]);
        self.give(0, StageInput::Ask { call: Attempt(call), body });
    }

    /// Everything that was said is heard.
    fn hear(&mut self) {
        while let Some(at) = self.wires.iter().position(|wire| !wire.is_empty())
            && let Some((from, bytes)) = self.wires[at].pop_front()
        {
            self.give(at as u8, StageInput::Heard { from, bytes });
        }
    }

    /// One engine does the next thing.
    fn work(&mut self, rank: u8) -> bool {
        let Some(command) = self.todo[usize::from(rank)].pop_front() else { return false };
        let answer = match command {
            StageCommand::Load { epoch, .. } => StageAnswer::Loaded { epoch },
            StageCommand::Run { epoch, call, input } => {
                let output = [input.as_slice(), &[rank]].concat();
                StageAnswer::Made { epoch, call, output, took: Micros(7) }
            }
            StageCommand::Turn { .. } => panic!("requests go through once"),
            StageCommand::Drop { .. } => return true,
        };
        self.give(rank, StageInput::Answer(answer));
        true
    }

    fn run(&mut self) {
        loop {
            self.hear();
            let ranks = self.stages.len() as u8;
            if (0..ranks).filter(|rank| self.work(*rank)).count() == 0 {
                return;
            }
        }
    }
}

#[test]
fn requests_go_through_all_in_order_and_the_last_one_answers() {
    let mut row = row(3);
    row.run();
    assert_eq!(row.says.iter().filter(|(_, say)| *say == CrewSay::Loaded).count(), 3);
    (1..=20).for_each(|call| row.ask(call));
    row.run();
    let whole = |call: u64| (call, Ok(vec![call as u8, 0, 1, 2]));
    assert_eq!(row.answers, (1..=20).map(whole).collect::<Vec<_>>());
    assert!(row.bad.is_empty());
    row.now = row.now + HEARTBEAT;
    row.give(1, StageInput::Tick);
    let report = row.says.iter().rev().find_map(|(rank, say)| {
        let CrewSay::Staged(report) = say else { return None };
        (*rank == 1).then(|| report.clone())
    });
    let report = report.expect("it says how it does");
    assert_eq!((report.done, report.passed, report.held), (20, 20, 0));
    assert_eq!((report.computed, report.bytes), (Micros(140), 60));
}

#[test]
fn while_one_stage_is_slow_the_others_hold_no_more_than_they_may() {
    let mut row = row(3);
    row.run();
    (1..=20).for_each(|call| row.ask(call));
    for _ in 0..100 {
        row.hear();
        row.work(0);
        row.work(1);
    }
    // The last one has one at work and two behind it, those before it one made ahead and one at work.
    let queued = row.stages.iter().map(|stage| stage.queue.len()).collect::<Vec<_>>();
    assert_eq!(queued[2], AHEAD);
    assert!(queued[1] <= AHEAD && queued[0] >= 8, "{queued:?}");
    row.run();
    assert_eq!(row.answers.len(), 20);
}

#[test]
fn what_is_dropped_is_dropped_wherever_it_is_and_nothing_waits_for_it() {
    let mut row = row(3);
    row.run();
    (1..=6).for_each(|call| row.ask(call));
    row.hear();
    row.work(0);
    row.hear();
    for rank in 0..3 {
        [1, 2, 5].into_iter().for_each(|call| {
            row.give(rank, StageInput::Drop { call: Attempt(call) });
        });
    }
    row.run();
    let answered: Vec<_> = row.answers.iter().map(|(call, _)| *call).collect();
    assert_eq!(answered, [3, 4, 6]);
    assert!(row.bad.is_empty());
}

#[test]
fn a_stage_that_cannot_says_so_and_the_next_request_goes_on() {
    let mut row = row(2);
    row.run();
    row.ask(1);
    row.ask(1);
    row.ask(2);
    row.hear();
    let failure = Failure::OutOfMemory { message: "no".into() };
    row.todo[0].clear();
    let answer = StageAnswer::NotMade { epoch: EPOCH, call: Attempt(1), failure: failure.clone() };
    row.give(0, StageInput::Answer(answer));
    row.run();
    assert_eq!(row.answers, [(1, Err(failure)), (2, Ok(vec![2, 0, 1]))], "once each");
}

#[test]
fn words_of_another_epoch_of_strangers_and_too_many_are_reported() {
    let mut row = row(3);
    row.run();
    let item = |call| Words::Item(Item { call: Attempt(call), bytes: Arc::new(vec![1]) });
    let heard = |from, bytes| StageInput::Heard { from: Rank(from), bytes };
    row.give(1, heard(0, item(1).encode(Epoch(2))));
    row.give(1, heard(2, item(1).encode(EPOCH)));
    row.give(1, heard(0, b"nonsense".to_vec()));
    row.give(1, heard(2, Words::Here(Attempt(9)).encode(EPOCH)));
    assert_eq!(row.bad, [(1, Rank(0)), (1, Rank(2)), (1, Rank(0)), (1, Rank(2))]);
    assert!(row.todo[1].is_empty(), "nothing of it is computed");
    (1..=4).for_each(|call| row.give(1, heard(0, item(call).encode(EPOCH))));
    assert_eq!(row.bad.len(), 5, "one at work, two wait, one is too much");
}

#[test]
fn answers_of_an_older_epoch_change_nothing() {
    let mut row = row(2);
    let old = Epoch(2);
    row.give(0, StageInput::Answer(StageAnswer::Loaded { epoch: old }));
    assert!(row.says.iter().all(|(_, say)| *say != CrewSay::Loaded));
    row.run();
    row.ask(1);
    let made = StageAnswer::Made { epoch: old, call: Attempt(1), output: vec![9], took: Micros(1) };
    row.give(0, StageInput::Answer(made));
    row.run();
    assert_eq!(row.answers, [(1, Ok(vec![1, 0, 1]))]);
}
