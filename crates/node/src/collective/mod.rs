//! What a crew does together: broadcast, scatter, gather, folds, barriers, and words from rank to rank. Pure;
//! the session that has the links is its shell.
//!
//! The contract is the brains': one [`GroupInput`] with the time, then drain [`Group::poll_output`]. A group
//! lives for one epoch. All its members begin the same operations in the same order; each may run several
//! at a time. Messages may come in any order, also before this rank begins what they belong to.
//!
//! `plan` lays an operation out, `topology` says who sends to whom, `running` does it, `number` and
//! `narrow` know the numbers, `choose` says which way is fastest.

mod choose;
mod narrow;
mod number;
mod plan;
mod point;
mod running;
mod tag;
mod topology;
mod wait;

pub use choose::{Links, Speed, choose};
pub use number::{Element, Fold, Numbers};
pub use plan::{MAX_OP_BYTES, Op, OpError};
pub use tag::{Stage, Tag};
pub use topology::{How, Rank};
pub use wait::{HOLD_BYTES, MAX_EARLY_BYTES};

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{Micros, Time};

use point::Points;
use running::{Running, Sends};
use topology::View;
use wait::MESSAGE_COST;

/// Operations of one group at a time. A step of a model overlaps a handful.
pub const MAX_RUNNING: usize = 64;
/// How far a rank may be ahead of another, in operations it began. More is a rank that never waits.
pub const MAX_AHEAD: u32 = 1024;

/// Counts the operations of a group, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpId(pub u32);

/// One change in the group's world.
#[derive(Clone, Debug)]
pub enum GroupInput {
    /// Begins the next operation. `data` is what this rank gives to it.
    Begin { op: Op, data: Arc<Vec<u8>> },
    /// Says something to one rank; `label` tells it from other talk.
    Send { to: Rank, label: u32, data: Vec<u8> },
    /// Waits for what that rank says under that label; leads to [`GroupOutput::Got`].
    Receive { from: Rank, label: u32 },
    /// A message of a member, as [`GroupOutput::Send`] gave it there.
    Received { from: Rank, message: Vec<u8> },
    /// Nothing but time passed.
    Tick,
}

/// One thing to do, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupOutput {
    /// Shared, so that many can be told the same without copies.
    Send {
        to: Rank,
        message: Arc<Vec<u8>>,
    },
    /// An operation is over here; this is what the rank gets of it.
    Done {
        op: OpId,
        data: Vec<u8>,
    },
    Got {
        from: Rank,
        label: u32,
        data: Vec<u8>,
    },
    /// Not begun: the operation makes no sense. It counts as no operation.
    Refused(OpError),
    /// This rank is waited for since then. It may itself wait for another: the slow one is who is named and
    /// names nobody.
    Slow {
        rank: Rank,
        since: Time,
    },
    /// Too much came from it before its time: hold its link, or let it go on.
    Hold {
        rank: Rank,
        hold: bool,
    },
    /// A message that no honest member sends. It was not taken.
    Bad {
        rank: Rank,
        fault: Fault,
    },
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Belongs to nothing that this rank awaits or will await.
    Unexpected,
    WrongLength,
    /// More than is kept for later.
    Flood,
}

pub struct Group {
    view: View,
    /// How long a member may be silent while it is waited for.
    patience: Micros,
    next: u32,
    running: BTreeMap<u32, Running>,
    /// Messages of operations not begun here, by operation.
    early: BTreeMap<(Tag, Rank), Vec<u8>>,
    points: Points,
    /// Bytes kept for later, by sender, and whether it is held back.
    kept: BTreeMap<Rank, (usize, bool)>,
    outputs: VecDeque<GroupOutput>,
}

impl Group {
    /// The group as `me` of `ranks` sees it. `None` if there is no such rank.
    pub fn new(me: Rank, ranks: u8, patience: Micros) -> Option<Group> {
        (me.0 < ranks).then(|| Group {
            view: View { me, ranks },
            patience,
            next: 0,
            running: BTreeMap::new(),
            early: BTreeMap::new(),
            points: Points::default(),
            kept: BTreeMap::new(),
            outputs: VecDeque::new(),
        })
    }

    pub fn handle(&mut self, now: Time, input: GroupInput) {
        match input {
            GroupInput::Begin { op, data } => {
                if let Err(error) = self.begin(now, &op, data) {
                    self.outputs.push_back(GroupOutput::Refused(error));
                }
            }
            GroupInput::Send { to, .. } | GroupInput::Receive { from: to, .. }
                if !self.is_other(to) =>
            {
                self.outputs.push_back(GroupOutput::Refused(OpError::WrongRanks));
            }
            GroupInput::Send { to, label, data } => {
                let tag = Tag { op: label, stage: Stage::Point, slice: 0, segment: 0 };
                self.outputs.push_back(GroupOutput::Send { to, message: tag.message(data) });
            }
            GroupInput::Receive { from, label } => {
                if let Some(data) = self.points.receive(now, from, label) {
                    self.forget(from, data.len());
                    self.outputs.push_back(GroupOutput::Got { from, label, data });
                }
            }
            GroupInput::Received { from, message } => {
                if let Err(fault) = self.received(now, from, message) {
                    self.outputs.push_back(GroupOutput::Bad { rank: from, fault });
                }
            }
            GroupInput::Tick => {}
        }
        self.name_slow(now);
    }

    pub fn poll_output(&mut self) -> Option<GroupOutput> {
        self.outputs.pop_front()
    }

    /// When to say `Tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        let running = self.running.values().flat_map(|running| running.patience.values());
        let waits = running.map(|awaited| (awaited.since, awaited.told));
        let waits = waits.chain(self.points.waits());
        waits.filter(|(_, told)| !told).map(|(since, _)| since + self.patience).min()
    }

    fn begin(&mut self, now: Time, op: &Op, data: Arc<Vec<u8>>) -> Result<(), OpError> {
        let plan = op.plan(self.view)?;
        if plan.gives != data.len() {
            return Err(OpError::WrongLength);
        }
        if self.running.len() >= MAX_RUNNING || self.next == u32::MAX {
            return Err(OpError::TooMany);
        }
        let id = OpId(self.next);
        self.next += 1;
        let mut running = Running::new(now, id, self.view, plan, data);
        let mut sends = Sends::new();
        running.begin(&mut sends);
        self.say(sends);
        self.running.insert(id.0, running);
        while let Some(((tag, from), _)) = self.early.first_key_value()
            && tag.op == id.0
        {
            let (tag, from) = (*tag, *from);
            let bytes = self.early.remove(&(tag, from)).unwrap_or_default();
            self.forget(from, bytes.len());
            if let Err(fault) = self.take(now, from, tag, bytes) {
                self.outputs.push_back(GroupOutput::Bad { rank: from, fault });
            }
        }
        self.end_if_done(id);
        Ok(())
    }

    fn received(&mut self, now: Time, from: Rank, message: Vec<u8>) -> Result<(), Fault> {
        let mut bytes = message;
        let tag = Tag::take(&mut bytes).ok_or(Fault::Unexpected)?;
        if !self.is_other(from) {
            return Err(Fault::Unexpected);
        }
        if tag.stage == Stage::Point {
            if self.points.meet(now, from, tag.op) {
                self.outputs.push_back(GroupOutput::Got { from, label: tag.op, data: bytes });
                return Ok(());
            }
            self.keep(from, bytes.len())?;
            self.points.keep(from, tag.op, bytes);
            return Ok(());
        }
        if tag.op < self.next {
            return self.take(now, from, tag, bytes);
        }
        if tag.op - self.next >= MAX_AHEAD || self.early.contains_key(&(tag, from)) {
            return Err(Fault::Unexpected);
        }
        self.keep(from, bytes.len())?;
        self.early.insert((tag, from), bytes);
        Ok(())
    }

    fn take(&mut self, now: Time, from: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), Fault> {
        let running = self.running.get_mut(&tag.op).ok_or(Fault::Unexpected)?;
        let mut sends = Sends::new();
        let taken = running.received(now, from, tag, bytes, &mut sends);
        self.say(sends);
        self.end_if_done(OpId(tag.op));
        taken
    }

    fn end_if_done(&mut self, op: OpId) {
        if let Some(data) = self.running.get_mut(&op.0).and_then(Running::done) {
            self.running.remove(&op.0);
            self.outputs.push_back(GroupOutput::Done { op, data });
        }
    }

    fn say(&mut self, sends: Sends) {
        let sends = sends.into_iter().map(|(to, message)| GroupOutput::Send { to, message });
        self.outputs.extend(sends);
    }

    fn is_other(&self, rank: Rank) -> bool {
        rank.0 < self.view.ranks && rank != self.view.me
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        self.running.values().for_each(Running::check);
        assert!(self.running.len() <= MAX_RUNNING, "too many operations");
        assert!(self.early.keys().all(|(tag, _)| tag.op >= self.next), "late and not taken");
        let early: usize = self.early.values().map(|bytes| bytes.len() + MESSAGE_COST).sum();
        let kept: usize = self.kept.values().map(|(kept, _)| kept).sum();
        assert_eq!(kept, early + self.points.kept(), "kept bytes are counted wrong");
    }
}
