//! One member's part in a chain: what the one before makes is its input, what it makes is the next one's. Each has a
//! running state that follows from its inputs alone (what a layer of a model remembers of a text), so that a lost
//! member comes back by hearing its inputs again, and nobody else goes back: [`shoal_kinds::Recovery::Replay`].
//!
//! The contract is the brains': one [`ChainInput`], then drain [`Chain::poll_output`]. A part lives over all epochs:
//! [`Chain::moved`] tells it of a new one. Neighbours then tell each other what they want: one that stayed, from the
//! next item on; one that is new, all that is kept. The newcomer makes again what the lost one made, keeps it as the
//! lost one did, and passes on only what the next one does not have.
//!
//! What is said is kept (`log`) until the end of the chain has handed out everything up to a mark: so any members may
//! be lost at once. The log is bounded. Where it does not reach back far enough, there is a [`ChainOutput::Gap`]:
//! the crew begins again at the last mark that the source was not told is safe.

mod log;
mod words;

pub use log::{Item, Log};

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::collective::Rank;
use words::Words;

/// Items that the next one may have and not have computed. Enough to keep it busy while they travel.
pub const WINDOW: u64 = 8;

/// One change in the part's world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainInput {
    /// At rank 0: the next item of the source, from where [`ChainOutput::Feed`] asked for it on.
    Fed(Item),
    /// A member of this epoch said this.
    Heard { from: Rank, bytes: Vec<u8> },
    /// The engine made this of the item it was told to run.
    Made { n: u64, bytes: Vec<u8> },
    /// At the last rank: all results before that item are in safe hands.
    Taken { before: u64 },
}

/// One thing to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainOutput {
    Tell {
        to: Rank,
        message: Arc<Vec<u8>>,
    },
    /// Compute this; if it is fresh, from a new state.
    Run(Item),
    /// At the last rank: a result.
    Give {
        n: u64,
        bytes: Arc<Vec<u8>>,
    },
    /// At rank 0: items are wanted from there on; none for the last mark that is not safe.
    Feed {
        from: Option<u64>,
    },
    /// At rank 0: an item before that one is never wanted again. The source knows what was taken, and believes no more.
    Safe {
        before: u64,
    },
    /// Too little was kept for a new member: the crew must begin again.
    Gap,
    /// That member did what no honest one does. Said once of each in an epoch.
    Bad {
        rank: Rank,
        why: String,
    },
}

pub struct Chain {
    rank: Rank,
    ranks: u8,
    /// The item that is heard next; none while this part has no state.
    heard: Option<u64>,
    /// Heard and not computed.
    queue: VecDeque<Item>,
    /// The engine is at work on this one, which is at a mark or not.
    running: Option<(u64, bool)>,
    log: Log,
    next: Option<Next>,
    /// Marks that are not safe yet, and how far the end is; only the last rank knows.
    marks: BTreeSet<u64>,
    taken: u64,
    bad: BTreeSet<Rank>,
    outputs: VecDeque<ChainOutput>,
}

/// What is known of the one behind, or of whoever takes the results.
#[derive(Clone, Copy, Debug)]
struct Next {
    /// It wants all from here on; none for all that is kept.
    wants: Option<u64>,
    /// It has computed all before this, as far as is known.
    got: Option<u64>,
    /// It was told all before this.
    sent: Option<u64>,
}

impl Chain {
    /// Without a state. `taken`: so many results are in safe hands already; for the last rank.
    pub fn new(rank: Rank, ranks: u8, log_bytes: u64, taken: u64) -> Chain {
        let mut chain = Chain {
            rank,
            ranks,
            heard: None,
            queue: VecDeque::new(),
            running: None,
            log: Log::new(log_bytes),
            next: None,
            marks: BTreeSet::new(),
            taken,
            bad: BTreeSet::new(),
            outputs: VecDeque::new(),
        };
        chain.moved(rank, ranks);
        chain
    }

    /// A new epoch: this part stays as it is, others may be new. What was on the way between them is lost.
    pub fn moved(&mut self, rank: Rank, ranks: u8) {
        (self.rank, self.ranks) = (rank, ranks);
        self.bad.clear();
        let end = Next { wants: Some(self.taken), got: Some(self.taken), sent: None };
        self.next = self.is_last().then_some(end);
        match self.before() {
            Some(before) => {
                self.tell(before, &Words::Want(self.heard));
                let running = self.running.map(|(n, _)| n);
                let queued = self.queue.front().map(|item| item.n);
                if let Some(got) = running.or(queued).or(self.heard) {
                    self.tell(before, &Words::Got(got));
                }
            }
            None => self.outputs.push_back(ChainOutput::Feed { from: self.heard }),
        }
        self.pass_on();
        self.run();
    }

    pub fn handle(&mut self, input: ChainInput) {
        match input {
            ChainInput::Fed(item) => {
                if self.rank == Rank(0) && self.goes_on_with(&item) {
                    // The source begins, or goes on, with the last mark that is safe.
                    if self.heard != Some(item.n) {
                        self.log.release(item.n);
                    }
                    self.hear(item);
                }
            }
            ChainInput::Heard { from, bytes } => {
                if let Err(why) = self.listen(from, bytes)
                    && self.bad.insert(from)
                {
                    let why = String::from(why);
                    self.outputs.push_back(ChainOutput::Bad { rank: from, why });
                }
            }
            ChainInput::Made { n, bytes } => self.made(n, bytes),
            ChainInput::Taken { before } => self.took(before),
        }
        self.pass_on();
        self.run();
    }

    pub fn poll_output(&mut self) -> Option<ChainOutput> {
        self.outputs.pop_front()
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        self.log.check();
        assert!(self.queue.len() as u64 <= WINDOW, "more is queued than was asked for");
        let first = self.queue.front().map(|item| item.n);
        let length = self.queue.len() as u64;
        assert!(first.is_none_or(|first| Some(first + length) == self.heard), "a hole");
    }

    fn is_last(&self) -> bool {
        self.rank.0 + 1 == self.ranks
    }

    fn before(&self) -> Option<Rank> {
        self.rank.0.checked_sub(1).map(Rank)
    }

    fn tell(&mut self, to: Rank, words: &Words) {
        let message = Arc::new(words.encode());
        self.outputs.push_back(ChainOutput::Tell { to, message });
    }

    fn listen(&mut self, from: Rank, bytes: Vec<u8>) -> Result<(), &'static str> {
        let is_before = Some(from) == self.before();
        let is_behind = u16::from(from.0) == u16::from(self.rank.0) + 1;
        match Words::decode(bytes).ok_or("words that make no sense in a chain")? {
            Words::Item(item) if is_before => {
                let jumps = self.heard != Some(item.n);
                if !self.goes_on_with(&item) || !jumps && self.queue.len() as u64 >= WINDOW {
                    return Err("an item that was not asked for");
                }
                self.hear(item);
            }
            Words::Want(wants) if is_behind => {
                self.next = Some(Next { wants, got: None, sent: None });
            }
            Words::Got(before) if is_behind => {
                let next = self.next.as_mut().ok_or("it has what was never said")?;
                if next.sent.or(next.wants).is_none_or(|said| before > said) {
                    return Err("it has what was never said");
                }
                next.got = next.got.max(Some(before));
            }
            // It may be far ahead of a new member. Whoever lies here hurts nobody but a crew that loses members.
            Words::Safe(before) if is_behind => self.release(before),
            Words::Past(before) if is_before => self.log.release(before),
            Words::Item(_) | Words::Want(_) | Words::Got(_) | Words::Safe(_) | Words::Past(_) => {
                return Err("words of a member that is no neighbour on that side");
            }
        }
        Ok(())
    }

    /// The next one, or a mark: with that it may begin, or leave out what was taken while it was catching up.
    fn goes_on_with(&self, item: &Item) -> bool {
        self.heard.map_or(item.fresh, |next| item.n == next || item.fresh && item.n > next)
    }

    fn hear(&mut self, item: Item) {
        if self.heard != Some(item.n) {
            self.queue.clear();
        }
        self.heard = Some(item.n + 1);
        if item.fresh && self.is_last() {
            self.marks.insert(item.n);
        }
        self.queue.push_back(item);
    }

    fn made(&mut self, n: u64, bytes: Vec<u8>) {
        let Some((_, fresh)) = self.running.take_if(|(running, _)| *running == n) else { return };
        let said = self.next.and_then(|next| next.sent.or(next.wants)).unwrap_or(0);
        self.log.push(Item { n, fresh, bytes: Arc::new(bytes) }, said);
        if let Some(before) = self.before() {
            self.tell(before, &Words::Got(n + 1));
        }
    }

    /// At the end of the chain: up to the last mark before what is not taken, nobody needs anything again.
    fn took(&mut self, before: u64) {
        if !self.is_last() || before <= self.taken {
            return;
        }
        self.taken = before;
        if let Some(next) = &mut self.next {
            next.got = next.got.max(Some(before));
        }
        if let Some(mark) = self.marks.range(..=before).next_back().copied() {
            self.marks = self.marks.split_off(&mark);
            self.release(mark);
        }
    }

    fn release(&mut self, before: u64) {
        self.log.release(before);
        match self.before() {
            Some(rank) => self.tell(rank, &Words::Safe(before)),
            None => self.outputs.push_back(ChainOutput::Safe { before }),
        }
    }

    /// Says what the one behind wants and was not told.
    fn pass_on(&mut self) {
        let Some(mut next) = self.next else { return };
        if self.falls_short(&next) {
            self.next = None;
            return self.outputs.push_back(ChainOutput::Gap);
        }
        let wanted = next.sent.or(next.wants);
        let mark =
            self.log.first().filter(|mark| wanted.is_none_or(|n| n < self.log.safe() && n < *mark));
        let Some(mut n) = mark.or(wanted) else { return };
        // It begins there, and forgets what it has in hand.
        if mark.is_some() {
            next.got = Some(n);
            if !self.is_last() {
                self.tell(Rank(self.rank.0 + 1), &Words::Past(self.log.safe()));
            }
        }
        while next.got.is_some_and(|got| n < got.saturating_add(WINDOW))
            && let Some(item) = self.log.item(n).cloned()
        {
            n += 1;
            if self.is_last() {
                self.outputs.push_back(ChainOutput::Give { n: item.n, bytes: item.bytes });
            } else {
                self.tell(Rank(self.rank.0 + 1), &Words::Item(item));
            }
            next.sent = Some(n);
        }
        self.next = Some(next);
    }

    /// What the one behind must hear next is not kept and will not be made again.
    fn falls_short(&self, next: &Next) -> bool {
        let Some(n) = next.sent.or(next.wants) else { return self.log.is_torn() };
        let n = n.max(self.log.safe());
        // What is made next, or would be if it were told to.
        let running = self.running.map(|(n, _)| n);
        let queued = self.queue.front().map(|item| item.n);
        let made_next = self.log.next().or(running).or(queued).or(self.heard);
        self.log.item(n).is_none() && made_next.is_some_and(|made_next| n < made_next)
    }

    /// The engine has one item at a time, and none that could not be passed on soon.
    fn run(&mut self) {
        let Some(next) = self.next else { return };
        let made = self.log.next().unwrap_or(0);
        let room = match next.got {
            None => next.wants.map_or(self.log.first().is_none(), |wants| made < wants),
            // What nobody needs any more is made on the way to what is.
            Some(got) => made < got.max(self.log.safe()).saturating_add(2 * WINDOW),
        };
        if self.running.is_some() || !room {
            return;
        }
        if let Some(item) = self.queue.pop_front() {
            self.running = Some((item.n, item.fresh));
            self.outputs.push_back(ChainOutput::Run(item));
        }
    }
}

/// For logs and tests.
impl core::fmt::Debug for Chain {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (rank, heard, log) = (self.rank, self.heard, &self.log);
        let log = format!("{:?}..{:?}", log.first(), log.next());
        f.write_str(&format!("rank {rank:?} heard {heard:?} log {log} next {:?}", self.next))
    }
}
