//! One member's part in a service that several keep ready: it has some of the service's parts, what the one before
//! makes of a request is its input, what it makes is the next one's. Rank 0 gets the requests, the last rank answers.
//!
//! The contract is the brains'. A part lives for one epoch: nothing is kept between two requests, so whatever was
//! under way in an older epoch is asked again by the coordinator, and forgotten here. Requests go through in the
//! order they came; while this member has one, the one before has the next. A member is told at most [`AHEAD`] that it
//! has not begun.

pub(in crate::session) mod words;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_kinds::crew::{Out, Way};
use shoal_protocol::limit::{HEARTBEAT, MAX_CALLS_PER_NODE, MAX_MESSAGE_BYTES};
use shoal_protocol::{
    Attempt, CrewSay, Epoch, Failure, JobId, LimitKind, Micros, Span, StageReport, StageTask, Time,
};

use crate::collective::Rank;
use words::{Item, TAIL_BYTES, Words};

/// Requests that the next one has and has not begun: one on its way while it computes another.
pub const AHEAD: usize = 2;
/// What was not taken in this time is waited for: tensors of a service arrive in far less.
const PATIENCE: Micros = Micros::from_secs(2);
/// Requests that were asked or are over, and perhaps not here yet: no more than are at work at a time.
const MAX_REMEMBERED: usize = MAX_CALLS_PER_NODE;

/// One thing for the engine to do, one after another. `Load` and `Run` are answered once, also when their epoch is
/// over: the answer changes nothing then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageCommand {
    /// Have these parts of the service ready, and no others. Answered by `Loaded` or `Failed`; at once, if they are.
    Load { epoch: Epoch, job: JobId, parts: Span },
    /// Have a request go through all parts that are loaded. What goes into the service's first part is the request's
    /// body, what comes out of its last is the answer. Answered by `Made` or `NotMade`.
    Run { epoch: Epoch, call: Attempt, input: Arc<Vec<u8>> },
    /// Where requests go round and round: have some of them go through all parts that are loaded, together. Answered by
    /// `Turned`.
    Turn { epoch: Epoch, items: Vec<Passing> },
    /// Nobody wants that one any more: end it if that can be done, and forget it. No answer of its own.
    Drop { epoch: Epoch, call: Attempt },
}

/// What comes to a member, of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passing {
    pub call: Attempt,
    pub way: Way,
    pub bytes: Arc<Vec<u8>>,
}

/// What became of it.
pub type Turned = (Attempt, Result<Vec<Out>, Failure>);

#[derive(Clone, Debug, PartialEq)]
pub enum StageAnswer {
    Loaded {
        epoch: Epoch,
    },
    Made {
        epoch: Epoch,
        call: Attempt,
        output: Vec<u8>,
        took: Micros,
    },
    NotMade {
        epoch: Epoch,
        call: Attempt,
        failure: Failure,
    },
    /// For each item of a turn, in order.
    Turned {
        epoch: Epoch,
        made: Vec<Turned>,
        took: Micros,
        /// Whether others of its kind take as long, so that it says how fast this member is.
        usual: bool,
    },
    /// The parts cannot be loaded: this member's part is over.
    Failed {
        epoch: Epoch,
        failure: Failure,
    },
}

#[derive(Clone, Debug)]
pub(super) enum StageInput {
    /// At rank 0: the coordinator has a request.
    Ask {
        call: Attempt,
        body: Arc<Vec<u8>>,
    },
    /// A member of this epoch said this.
    Heard {
        from: Rank,
        bytes: Vec<u8>,
    },
    Answer(StageAnswer),
    /// A request is over.
    Drop {
        call: Attempt,
    },
    Tick,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum StageOutput {
    Tell {
        to: Rank,
        message: Arc<Vec<u8>>,
    },
    Command(StageCommand),
    Says(CrewSay),
    Slow(Rank),
    Bad {
        rank: Rank,
        why: String,
    },
    /// The request is answered, or why it cannot be.
    Answer {
        call: Attempt,
        result: Result<Vec<u8>, Failure>,
    },
    /// More of the answer, behind so many bytes.
    Part {
        call: Attempt,
        at: u64,
        bytes: Vec<u8>,
        last: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Loading,
    Ready,
    /// Failed.
    Over,
}

/// What the next one was told and has not begun.
#[derive(Clone, Copy, Debug)]
struct Told {
    call: Attempt,
    at: Time,
    /// It has said that it is there.
    here: bool,
}

pub(super) struct Stage {
    epoch: Epoch,
    rank: Rank,
    ranks: u8,
    phase: Phase,
    /// Here and not begun.
    queue: VecDeque<Item>,
    /// The engine has this one, since then.
    running: Option<Attempt>,
    /// Since when the engine has nothing to do.
    idle_since: Time,
    /// Made, while the next one has no room.
    made: VecDeque<Item>,
    told: VecDeque<Told>,
    /// Over before they came here, or while they were.
    dropped: Remembered,
    /// At rank 0: what was asked lately, because the network may say things twice.
    asked: Remembered,
    report: StageReport,
    beat_at: Time,
    outputs: VecDeque<StageOutput>,
}

impl Stage {
    /// The part begins at once: the engine is asked to load.
    pub(super) fn new(
        now: Time,
        (epoch, rank, ranks): (Epoch, Rank, u8),
        task: &StageTask,
    ) -> Stage {
        let mut stage = Stage {
            epoch,
            rank,
            ranks,
            phase: Phase::Loading,
            queue: VecDeque::new(),
            running: None,
            idle_since: now,
            made: VecDeque::new(),
            told: VecDeque::new(),
            dropped: Remembered::default(),
            asked: Remembered::default(),
            report: StageReport::default(),
            beat_at: now,
            outputs: VecDeque::new(),
        };
        stage.beat(now);
        let mine = task.parts.get(usize::from(rank.0)).filter(|parts| parts.len > 0);
        match mine.filter(|_| task.parts.len() == usize::from(ranks)) {
            Some(&parts) => stage.command(StageCommand::Load { epoch, job: task.job, parts }),
            None => {
                let message = format!("parts for {} members of {ranks}", task.parts.len());
                stage.fail(Failure::Internal { message });
            }
        }
        stage
    }

    pub(super) fn handle(&mut self, now: Time, input: StageInput) {
        if self.phase == Phase::Over {
            return;
        }
        match input {
            StageInput::Ask { call, body } => self.ask(call, body),
            StageInput::Heard { from, bytes } => {
                if let Err(why) = self.listen(now, from, bytes) {
                    self.outputs.push_back(StageOutput::Bad { rank: from, why: why.into() });
                }
            }
            StageInput::Answer(answer) => self.answered(now, answer),
            StageInput::Drop { call } => self.drop_call(call),
            StageInput::Tick => {}
        }
        self.pass_on(now);
        self.run(now);
        if now >= self.beat_at {
            self.beat(now);
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<StageOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        (self.phase != Phase::Over).then_some(self.beat_at)
    }

    pub(super) fn check(&self) {
        let most = if self.rank == Rank(0) { MAX_CALLS_PER_NODE } else { AHEAD };
        assert!(self.queue.len() <= most, "more is queued than was asked for");
        assert!(self.told.len() <= AHEAD, "the next one was told too much");
        let remembered = self.dropped.len().max(self.asked.len());
        assert!(remembered <= MAX_REMEMBERED, "too much is remembered");
        let twice = |item: &Item| self.queue.iter().filter(|other| other.call == item.call).count();
        assert!(self.queue.iter().all(|item| twice(item) == 1), "a request is here twice");
    }

    fn is_last(&self) -> bool {
        self.rank.0 + 1 == self.ranks
    }

    fn before(&self) -> Option<Rank> {
        self.rank.0.checked_sub(1).map(Rank)
    }

    fn command(&mut self, command: StageCommand) {
        self.outputs.push_back(StageOutput::Command(command));
    }

    fn tell(&mut self, to: Rank, words: &Words) {
        let message = Arc::new(words.encode(self.epoch));
        self.outputs.push_back(StageOutput::Tell { to, message });
    }

    fn give(&mut self, call: Attempt, result: Result<Vec<u8>, Failure>) {
        self.outputs.push_back(StageOutput::Answer { call, result });
    }

    fn fail(&mut self, failure: Failure) {
        self.phase = Phase::Over;
        self.outputs.push_back(StageOutput::Says(CrewSay::Failed { failure }));
    }

    fn ask(&mut self, call: Attempt, body: Arc<Vec<u8>>) {
        if !self.asked.insert(call) || self.dropped.contains(call) {
            return;
        }
        if self.rank != Rank(0) || self.queue.len() >= MAX_CALLS_PER_NODE {
            let message = String::from("a request that this member cannot take");
            return self.give(call, Err(Failure::DeviceLost { message }));
        }
        self.queue.push_back(Item { call, bytes: body });
    }

    fn listen(&mut self, now: Time, from: Rank, bytes: Vec<u8>) -> Result<(), &'static str> {
        let is_before = Some(from) == self.before();
        let is_behind = u16::from(from.0) == u16::from(self.rank.0) + 1;
        let said = Words::decode(bytes).ok_or("words that make no sense between stages")?;
        let (epoch, words) = said;
        if epoch != self.epoch {
            return Err("words of another epoch");
        }
        match words {
            Words::Item(item) if is_before => {
                self.tell(from, &Words::Here(item.call));
                if self.dropped.contains(item.call) {
                    self.tell(from, &Words::Begun(item.call));
                    return Ok(());
                }
                let twice = self.queue.iter().any(|other| other.call == item.call);
                if twice || self.queue.len() >= AHEAD {
                    return Err("more than was asked for");
                }
                self.queue.push_back(item);
            }
            Words::Here(call) if is_behind => {
                let told = self.told.iter_mut().find(|told| told.call == call && !told.here);
                let Some(told) = told else { return Err("it has what it was not told") };
                told.here = true;
                let took = now - told.at;
                self.report.travelled.0 += took.0;
                self.report.passed += 1;
            }
            Words::Begun(call) if is_behind => {
                let before = self.told.len();
                self.told.retain(|told| told.call != call);
                if self.told.len() == before {
                    return Err("it has what it was not told");
                }
            }
            Words::Round(_) | Words::Aside(_) | Words::Among(_) => {
                return Err("words of requests that go round and round");
            }
            Words::Item(_) | Words::Here(_) | Words::Begun(_) => {
                return Err("words of a member that is no neighbour on that side");
            }
        }
        Ok(())
    }

    fn answered(&mut self, now: Time, answer: StageAnswer) {
        match answer {
            StageAnswer::Loaded { epoch } if epoch == self.epoch => {
                if self.phase == Phase::Loading {
                    self.phase = Phase::Ready;
                    self.idle_since = now;
                    self.outputs.push_back(StageOutput::Says(CrewSay::Loaded));
                }
            }
            StageAnswer::Failed { epoch, failure } if epoch == self.epoch => self.fail(failure),
            StageAnswer::Made { epoch, call, output, took } if self.is_at(epoch, call) => {
                self.ended(now);
                self.report.turns += 1;
                self.report.done += 1;
                self.report.computed.0 += took.0;
                if !self.dropped.remove(call) {
                    self.hand_on(call, output);
                }
            }
            StageAnswer::NotMade { epoch, call, failure } if self.is_at(epoch, call) => {
                self.ended(now);
                if !self.dropped.remove(call) {
                    self.give(call, Err(failure));
                }
            }
            // Of an older epoch, or of nothing.
            StageAnswer::Turned { .. }
            | StageAnswer::Loaded { .. }
            | StageAnswer::Failed { .. }
            | StageAnswer::Made { .. }
            | StageAnswer::NotMade { .. } => {}
        }
    }

    fn is_at(&self, epoch: Epoch, call: Attempt) -> bool {
        epoch == self.epoch && self.running == Some(call)
    }

    fn ended(&mut self, now: Time) {
        self.running = None;
        self.idle_since = now;
    }

    fn hand_on(&mut self, call: Attempt, output: Vec<u8>) {
        if self.is_last() {
            return self.give(call, Ok(output));
        }
        let allowed = MAX_MESSAGE_BYTES - TAIL_BYTES as u64;
        if output.len() as u64 > allowed {
            let which = LimitKind::Output;
            let failure = Failure::Limit { item: None, which, allowed, stderr: String::new() };
            return self.give(call, Err(failure));
        }
        self.made.push_back(Item { call, bytes: Arc::new(output) });
    }

    /// The next one gets what it has room for.
    fn pass_on(&mut self, now: Time) {
        while self.told.len() < AHEAD
            && let Some(item) = self.made.pop_front()
        {
            self.report.bytes += item.bytes.len() as u64;
            self.told.push_back(Told { call: item.call, at: now, here: false });
            self.tell(Rank(self.rank.0 + 1), &Words::Item(item));
        }
    }

    /// The engine has one at a time, and none that could not be passed on soon.
    fn run(&mut self, now: Time) {
        if self.phase != Phase::Ready || self.running.is_some() || self.made.len() >= AHEAD {
            return;
        }
        let Some(Item { call, bytes: input }) = self.queue.pop_front() else { return };
        self.running = Some(call);
        self.report.waited.0 += (now - self.idle_since).0;
        if let Some(before) = self.before() {
            self.tell(before, &Words::Begun(call));
        }
        self.command(StageCommand::Run { epoch: self.epoch, call, input });
    }

    /// It may be here, have been here, or be on its way.
    fn drop_call(&mut self, call: Attempt) {
        self.made.retain(|item| item.call != call);
        let queued = self.queue.len();
        self.queue.retain(|item| item.call != call);
        if self.queue.len() < queued
            && let Some(before) = self.before()
        {
            self.tell(before, &Words::Begun(call));
        }
        if self.running == Some(call) {
            self.command(StageCommand::Drop { epoch: self.epoch, call });
        }
        self.dropped.insert(call);
    }

    fn beat(&mut self, now: Time) {
        self.beat_at = now + HEARTBEAT;
        let here = self.queue.len() + self.made.len() + usize::from(self.running.is_some());
        let not_taken = self.told.iter().filter(|told| !told.here);
        self.report.held = (here + not_taken.clone().count()) as u32;
        if not_taken.clone().any(|told| now > told.at + PATIENCE) {
            self.outputs.push_back(StageOutput::Slow(Rank(self.rank.0 + 1)));
        }
        self.outputs.push_back(StageOutput::Says(CrewSay::Staged(self.report.clone())));
    }
}

/// The last requests of which something was heard. What was heard longest ago is surely not on its way any more; the
/// oldest request may well be, because one can last long.
#[derive(Default)]
pub(in crate::session) struct Remembered(VecDeque<Attempt>);

impl Remembered {
    pub(in crate::session) fn contains(&self, call: Attempt) -> bool {
        self.0.contains(&call)
    }

    pub(in crate::session) fn len(&self) -> usize {
        self.0.len()
    }

    /// Says whether it is news.
    pub(in crate::session) fn insert(&mut self, call: Attempt) -> bool {
        if self.contains(call) {
            return false;
        }
        self.0.push_back(call);
        if self.0.len() > MAX_REMEMBERED {
            self.0.pop_front();
        }
        true
    }

    /// Says whether it was there.
    fn remove(&mut self, call: Attempt) -> bool {
        let at = self.0.iter().position(|other| *other == call);
        at.and_then(|at| self.0.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests;
