//! One member's part in a service that several keep ready, whose requests go round and round: through all members, from
//! the last one to the first, and through all again, each until it is answered. So a text is continued by devices that
//! each have some layers of a model: a round is a token. Or all members work on each request at the same time and tell
//! each other what they made: their engines know when they have heard enough to go on.
//!
//! The contract is the brains'. The engine keeps something of each request until it is dropped or the epoch ends;
//! whatever was under way in an older epoch is asked again by the coordinator. What waits here goes through the engine
//! together, of what is passed on at most one item of each request, and no more than leaves as much for each of the other
//! members: else all requests would end up in one place, and only one member would have something to do. What all work on
//! together is for all of them at the same time, so none of it waits. What comes out of the engine
//! together is told together, so that the next one takes it together. A member is told at most [`AHEAD`] that it has
//! not begun by the one before it; rounds and words past the others are few, because each request has one of them at a
//! time.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_kinds::crew::{Out, Way};
use shoal_protocol::limit::{HEARTBEAT, MAX_CALLS_PER_NODE, MAX_MESSAGE_BYTES};
use shoal_protocol::{
    Attempt, CrewSay, Epoch, Failure, LimitKind, Micros, StageReport, StageTask, Time,
};

use super::stage::words::{Item, TAIL_BYTES, Words, decode_all, encode_all};
use super::stage::{
    Passing, Remembered, StageAnswer, StageCommand, StageInput, StageOutput, Turned,
};
use crate::collective::Rank;

/// Items that the next one has and has not begun: so many that it can take them together, few enough for its memory.
pub(super) const AHEAD: usize = 8;
/// Items that the engine gets at a time: those of so many requests share the reading of weights.
const MOST_TOGETHER: usize = 32;
/// Items that wait here: of each request one from the one before or from the last, and one past the others.
const MOST_QUEUED: usize = 2 * MAX_CALLS_PER_NODE;
/// Of one request and from one member, among all: what belongs to a few steps that follow each other, and what is read next.
const MOST_AMONG: usize = 6;
/// Bytes of a message that holds several words: who is in it must not wait long for the others.
const TOGETHER_BYTES: usize = 64 << 10;
/// How long a turn is put off at most for others to share it: less than it takes them where links are slow.
const MOST_HOLD: Micros = Micros(2_000);
/// What was not taken in this time is waited for.
const PATIENCE: Micros = Micros::from_secs(2);

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

pub(super) struct Rounds {
    epoch: Epoch,
    rank: Rank,
    ranks: u8,
    phase: Phase,
    /// Here and not begun.
    queue: VecDeque<Passing>,
    /// The engine has a turn of these.
    running: Vec<Attempt>,
    /// Until then the next turn waits for others to share it.
    hold: Option<Time>,
    /// What the last turn took.
    took: Micros,
    /// Since when the engine waits for what goes round; nobody asks for anything if none.
    idle_since: Option<Time>,
    /// What the engine waited for what is under way: it counts with what is measured of that.
    waited: Micros,
    /// Made, while the next one has no room.
    made: VecDeque<Item>,
    told: VecDeque<Told>,
    /// Over before they came here, or while they were.
    dropped: Remembered,
    /// At rank 0: what was asked lately, because the network may say things twice.
    asked: Remembered,
    /// At the last rank: bytes of each answer that were given.
    given: BTreeMap<Attempt, u64>,
    /// Requests that came by and are not over.
    open: BTreeSet<Attempt>,
    /// Not told yet, because more may come of the same turn.
    saying: BTreeMap<Rank, Vec<Words>>,
    report: StageReport,
    beat_at: Time,
    outputs: VecDeque<StageOutput>,
}

impl Rounds {
    /// The part begins at once: the engine is asked to load.
    pub(super) fn new(
        now: Time,
        (epoch, rank, ranks): (Epoch, Rank, u8),
        task: &StageTask,
    ) -> Rounds {
        let mut rounds = Rounds {
            epoch,
            rank,
            ranks,
            phase: Phase::Loading,
            queue: VecDeque::new(),
            running: Vec::new(),
            hold: None,
            took: Micros(0),
            idle_since: None,
            waited: Micros(0),
            made: VecDeque::new(),
            told: VecDeque::new(),
            dropped: Remembered::default(),
            asked: Remembered::default(),
            given: BTreeMap::new(),
            open: BTreeSet::new(),
            saying: BTreeMap::new(),
            report: StageReport::default(),
            beat_at: now,
            outputs: VecDeque::new(),
        };
        rounds.beat(now);
        let mine = task.parts.get(usize::from(rank.0)).filter(|parts| parts.len > 0);
        match mine.filter(|_| task.parts.len() == usize::from(ranks)) {
            Some(&parts) => rounds.command(StageCommand::Load { epoch, job: task.job, parts }),
            None => {
                let message = format!("parts for {} members of {ranks}", task.parts.len());
                rounds.fail(Failure::Internal { message });
            }
        }
        rounds
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
        self.say();
        if now >= self.beat_at {
            self.beat(now);
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<StageOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let next = self.hold.map_or(self.beat_at, |hold| hold.min(self.beat_at));
        (self.phase != Phase::Over).then_some(next)
    }

    pub(super) fn check(&self) {
        assert!(self.queue.len() <= self.most_queued(), "more is queued than was asked for");
        assert!(self.told.len() <= AHEAD, "the next one was told too much");
        let remembered = self.dropped.len().max(self.asked.len());
        assert!(remembered <= MAX_CALLS_PER_NODE, "too much is remembered");
        let dropped = |call: &Attempt| self.dropped.contains(*call);
        assert!(!self.given.keys().any(dropped), "an answer that nobody wants is counted");
        assert!(self.open.len() <= MAX_CALLS_PER_NODE && !self.open.iter().any(dropped));
        assert!(self.saying.is_empty(), "something is not told");
        assert!(self.hold.is_none() || !self.queue.is_empty(), "nothing is put off");
    }

    fn most_queued(&self) -> usize {
        let others = usize::from(self.ranks.saturating_sub(1));
        MOST_QUEUED + MAX_CALLS_PER_NODE * MOST_AMONG * others
    }

    fn is_last(&self) -> bool {
        self.rank.0 + 1 == self.ranks
    }

    fn last(&self) -> Rank {
        Rank(self.ranks.saturating_sub(1))
    }

    fn before(&self) -> Option<Rank> {
        self.rank.0.checked_sub(1).map(Rank)
    }

    fn command(&mut self, command: StageCommand) {
        self.outputs.push_back(StageOutput::Command(command));
    }

    fn tell(&mut self, to: Rank, words: Words) {
        self.saying.entry(to).or_default().push(words);
    }

    /// All that is to be told, in as few messages as it fits.
    fn say(&mut self) {
        for (to, words) in core::mem::take(&mut self.saying) {
            let mut rest = words.as_slice();
            while !rest.is_empty() {
                let mut bytes = 0;
                let fits = rest.iter().take_while(|words| {
                    bytes += words.bytes();
                    bytes <= TOGETHER_BYTES
                });
                let (now, later) = rest.split_at(fits.count().max(1));
                let message = Arc::new(encode_all(now, self.epoch));
                self.outputs.push_back(StageOutput::Tell { to, message });
                rest = later;
            }
        }
    }

    /// A request came by.
    fn opens(&mut self, call: Attempt) {
        if self.open.len() < MAX_CALLS_PER_NODE {
            self.open.insert(call);
        }
    }

    fn tell_among(&mut self, to: Rank, item: Item) {
        self.report.bytes += item.bytes.len() as u64;
        self.tell(to, Words::Among(item));
    }

    fn fail(&mut self, failure: Failure) {
        self.phase = Phase::Over;
        self.outputs.push_back(StageOutput::Says(CrewSay::Failed { failure }));
    }

    fn refuse(&mut self, call: Attempt, failure: Failure) {
        self.outputs.push_back(StageOutput::Answer { call, result: Err(failure) });
    }

    fn ask(&mut self, call: Attempt, body: Arc<Vec<u8>>) {
        if !self.asked.insert(call) || self.dropped.contains(call) {
            return;
        }
        if self.rank != Rank(0) || self.queue.len() >= MAX_CALLS_PER_NODE {
            let message = String::from("a request that this member cannot take");
            return self.refuse(call, Failure::DeviceLost { message });
        }
        self.opens(call);
        self.queue.push_back(Passing { call, way: Way::Asked, bytes: body });
    }

    fn listen(&mut self, now: Time, from: Rank, bytes: Vec<u8>) -> Result<(), &'static str> {
        let all = decode_all(bytes).ok_or("words that make no sense between members")?;
        if all.iter().any(|(epoch, _)| *epoch != self.epoch) {
            return Err("words of another epoch");
        }
        all.into_iter().try_for_each(|(_, words)| self.hear(now, from, words))
    }

    fn hear(&mut self, now: Time, from: Rank, words: Words) -> Result<(), &'static str> {
        let is_before = Some(from) == self.before();
        let is_behind = u16::from(from.0) == u16::from(self.rank.0) + 1;
        match words {
            Words::Item(item) if is_before => {
                self.tell(from, Words::Here(item.call));
                let own = self.queue.iter().filter(|passing| passing.way == Way::On);
                if own.count() >= AHEAD {
                    return Err("more than was asked for");
                }
                if self.dropped.contains(item.call) {
                    self.tell(from, Words::Begun(item.call));
                    return Ok(());
                }
                self.take(item, Way::On)
            }
            Words::Round(item) if from == self.last() && self.rank == Rank(0) => {
                self.take(item, Way::Round)
            }
            Words::Aside(item) if from == Rank(0) && self.is_last() => self.take(item, Way::Aside),
            Words::Among(item) if from != self.rank => self.take(item, Way::Among),
            Words::Here(call) if is_behind => {
                let told = self.told.iter_mut().find(|told| told.call == call && !told.here);
                let Some(told) = told else { return Err("it has what it was not told") };
                told.here = true;
                self.report.travelled.0 += (now - told.at).0;
                self.report.passed += 1;
                Ok(())
            }
            Words::Begun(call) if is_behind => {
                let told = self.told.iter().position(|told| told.call == call);
                let at = told.ok_or("it has what it was not told")?;
                self.told.remove(at);
                Ok(())
            }
            Words::Item(_)
            | Words::Here(_)
            | Words::Begun(_)
            | Words::Round(_)
            | Words::Aside(_)
            | Words::Among(_) => Err("words of a member that has another place"),
        }
    }

    fn take(&mut self, item: Item, way: Way) -> Result<(), &'static str> {
        if self.dropped.contains(item.call) {
            return Ok(());
        }
        let alike = |other: &&Passing| other.call == item.call && other.way == way;
        let most = match way {
            Way::On => usize::MAX,
            Way::Among => MOST_AMONG * usize::from(self.ranks.saturating_sub(1)),
            // One of a kind at a time: its next is made of this one.
            Way::Asked | Way::Again | Way::Round | Way::Aside => 1,
        };
        let full = self.queue.len() >= self.most_queued();
        if full || self.queue.iter().filter(alike).count() >= most {
            return Err("more than there can be");
        }
        self.opens(item.call);
        self.queue.push_back(Passing { call: item.call, way, bytes: item.bytes });
        Ok(())
    }

    fn answered(&mut self, now: Time, answer: StageAnswer) {
        match answer {
            StageAnswer::Loaded { epoch } if epoch == self.epoch => {
                if self.phase == Phase::Loading {
                    self.phase = Phase::Ready;
                    self.outputs.push_back(StageOutput::Says(CrewSay::Loaded));
                }
            }
            StageAnswer::Failed { epoch, failure } if epoch == self.epoch => self.fail(failure),
            StageAnswer::Turned { epoch, made, took, usual } if epoch == self.epoch => {
                (self.idle_since, self.took) = (Some(now), took);
                self.running.clear();
                self.report.turns += 1;
                if usual {
                    self.report.done += 1;
                    self.report.computed.0 += took.0;
                    self.report.waited.0 += core::mem::take(&mut self.waited).0;
                }
                made.into_iter().for_each(|turned| self.turned(turned));
            }
            // Of an older epoch, or of nothing.
            StageAnswer::Loaded { .. }
            | StageAnswer::Failed { .. }
            | StageAnswer::Turned { .. }
            | StageAnswer::Made { .. }
            | StageAnswer::NotMade { .. } => {}
        }
    }

    fn turned(&mut self, (call, result): Turned) {
        if self.dropped.contains(call) {
            return;
        }
        match result {
            Ok(outs) => outs.into_iter().for_each(|out| self.out(call, out)),
            Err(failure) => self.refuse(call, failure),
        }
    }

    fn out(&mut self, call: Attempt, out: Out) {
        let item = |bytes: Vec<u8>| Item { call, bytes: Arc::new(bytes) };
        match out {
            Out::Again => {
                let bytes = Arc::default();
                self.queue.push_back(Passing { call, way: Way::Again, bytes });
            }
            Out::On(bytes)
            | Out::Round(bytes)
            | Out::Aside(bytes)
            | Out::Among(bytes)
            | Out::Choose(bytes)
                if is_large(&bytes) =>
            {
                let (which, allowed) = (LimitKind::Output, MAX_MESSAGE_BYTES);
                let failure = Failure::Limit { item: None, which, allowed, stderr: String::new() };
                self.refuse(call, failure);
            }
            Out::On(bytes) => self.made.push_back(item(bytes)),
            Out::Round(bytes) => self.tell(Rank(0), Words::Round(item(bytes))),
            Out::Aside(bytes) => self.tell(self.last(), Words::Aside(item(bytes))),
            Out::Among(bytes) => {
                let item = item(bytes);
                let rank = self.rank;
                for to in (0..self.ranks).map(Rank).filter(|to| *to != rank) {
                    self.tell_among(to, item.clone());
                }
            }
            Out::Choose(bytes) => self.tell_among(self.last(), item(bytes)),
            Out::Part(bytes) => self.give(call, bytes, false),
            Out::Last(bytes) => self.give(call, bytes, true),
        }
    }

    fn give(&mut self, call: Attempt, bytes: Vec<u8>, last: bool) {
        let given = self.given.entry(call).or_default();
        let at = *given;
        *given += bytes.len() as u64;
        if last {
            self.given.remove(&call);
        }
        self.outputs.push_back(StageOutput::Part { call, at, bytes, last });
    }

    /// The next one gets what it has room for.
    fn pass_on(&mut self, now: Time) {
        while self.told.len() < AHEAD
            && let Some(item) = self.made.pop_front()
        {
            self.report.bytes += item.bytes.len() as u64;
            self.told.push_back(Told { call: item.call, at: now, here: false });
            self.tell(Rank(self.rank.0 + 1), Words::Item(item));
        }
    }

    /// The engine has one turn at a time, and none that could not be passed on soon.
    fn run(&mut self, now: Time) {
        let among = self.queue.iter().any(|passing| passing.way == Way::Among);
        if among || self.queue.is_empty() {
            // Nothing is put off any more: a time that is over would wake the shell for ever.
            self.hold = None;
        }
        let busy = !self.running.is_empty() || self.made.len() >= AHEAD;
        if self.phase != Phase::Ready || busy || self.queue.is_empty() {
            return;
        }
        if !among && self.holds(now) {
            return;
        }
        let most = self.open.len().div_ceil(usize::from(self.ranks).max(1));
        let most = if among { MOST_TOGETHER } else { most.clamp(1, MOST_TOGETHER) };
        let (mut items, mut later): (Vec<Passing>, _) = (Vec::new(), VecDeque::new());
        for passing in core::mem::take(&mut self.queue) {
            let is_alone = passing.way != Way::Among;
            let twice = is_alone && items.iter().any(|other| other.call == passing.call);
            if twice || items.len() >= most {
                later.push_back(passing);
            } else {
                items.push(passing);
            }
        }
        self.queue = later;
        self.running = items.iter().map(|item| item.call).collect();
        // What all make together takes many turns, and else a turn stands for itself.
        if !among {
            self.waited = Micros(0);
        }
        if let Some(since) = self.idle_since.take() {
            self.waited.0 += (now - since).0;
        }
        if let Some(before) = self.before() {
            let begun = items.iter().filter(|item| item.way == Way::On).map(|item| item.call);
            let begun: Vec<_> = begun.collect();
            begun.into_iter().for_each(|call| self.tell(before, Words::Begun(call)));
        }
        self.command(StageCommand::Turn { epoch: self.epoch, items });
    }

    /// Whether a turn is put off: with fewer than this member's share of all requests it costs nearly as much as with
    /// all of them, and those who share one go on together.
    fn holds(&mut self, now: Time) -> bool {
        let share = self.open.len() / usize::from(self.ranks).max(1);
        if self.queue.len() < share.min(MOST_TOGETHER) {
            let until = now + Micros(self.took.0 / 2).min(MOST_HOLD);
            let until = *self.hold.get_or_insert(until);
            if now < until {
                return true;
            }
        }
        self.hold = None;
        false
    }

    /// It may be here, have been here, or be on its way; the engine may have something of it.
    fn drop_call(&mut self, call: Attempt) {
        self.made.retain(|item| item.call != call);
        self.given.remove(&call);
        self.open.remove(&call);
        let here = self.queue.iter().filter(|it| it.call == call && it.way == Way::On).count();
        self.queue.retain(|passing| passing.call != call);
        if let Some(before) = self.before() {
            (0..here).for_each(|_| self.tell(before, Words::Begun(call)));
        }
        self.command(StageCommand::Drop { epoch: self.epoch, call });
        self.dropped.insert(call);
        // What comes next is another request: until somebody asks, nobody waits.
        if self.queue.is_empty() && self.made.is_empty() && self.told.is_empty() {
            self.idle_since = None;
        }
    }

    fn beat(&mut self, now: Time) {
        self.beat_at = now + HEARTBEAT;
        let here = self.queue.len() + self.made.len() + self.running.len();
        let not_taken = self.told.iter().filter(|told| !told.here);
        self.report.held = (here + not_taken.clone().count()) as u32;
        if not_taken.clone().any(|told| now > told.at + PATIENCE) {
            self.outputs.push_back(StageOutput::Slow(Rank(self.rank.0 + 1)));
        }
        self.outputs.push_back(StageOutput::Says(CrewSay::Staged(self.report.clone())));
    }
}

fn is_large(bytes: &[u8]) -> bool {
    (bytes.len() + TAIL_BYTES) as u64 > MAX_MESSAGE_BYTES
}

#[cfg(test)]
mod tests;
