//! What a crew has to do, in numbers, so that the scheduler finds who does which part of it without knowing the
//! kind of work. Speeds are in the kind's own measure of work (cells, multiplications) per second.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::Span;

/// What a crew of this work is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrewPlan {
    pub problem: CrewProblem,
    /// Exactly so many members; 0 for as many as make it fastest.
    pub members: usize,
    pub steps: u64,
    /// Steps between two checkpoints: 0 for none, `None` for what a few seconds bring.
    pub keep_every: Option<u64>,
    /// Members go on with guesses where a neighbour is late.
    pub guesses: bool,
    /// What an audition computes at most. So a clock that sees it answered can tell what is too fast to be true.
    pub trial: u64,
    /// What becomes of a crew that loses a member.
    pub recovery: Recovery,
    /// What its members make of their states together, at every checkpoint and at the end.
    pub totals: Option<Totals>,
}

/// A few numbers of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub numbers: usize,
    /// `sum`, `mean`: in words.
    pub name: &'static str,
}

/// How a crew goes on without one of its members. The kind says so, because it knows what a member's state is made
/// of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// All go back to the last checkpoint, in a new epoch: every member's state depends on every other's.
    Checkpoint,
    /// What members know of requests follows from what went into the crew and came out of it, and the coordinator
    /// keeps that: each request, and what was given of its answer. So those that were under way are asked again, behind
    /// what was given where [`crate::About::resumed`] says how, and all members make what they lost anew. What they
    /// loaded is worth more than a better cut: whoever stays keeps its share, and others take the empty places.
    Replay,
}

/// How its parts depend on each other. Each member has a row of shares; in order of rank they are all there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrewProblem {
    Ring(Ring),
    Chain(Chain),
    Group(Group),
}

/// Equal shares in a row that wraps around. Neighbours exchange their edges every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    pub shares: u64,
    /// Of one share in one step.
    pub work: u64,
    /// Of one share in one buffer, and what a checkpoint stores of it.
    pub share_bytes: u64,
    /// Buffers of a member that hold all its shares.
    pub copies: u64,
    /// Shares of each neighbour that a step reads; no member has fewer of its own.
    pub halo: u64,
    /// What crosses each edge in a step.
    pub edge_bytes: u64,
}

/// Unequal parts in a fixed order: what one makes is the next one's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub parts: Vec<ChainPart>,
    pub pace: Pace,
    pub flow: Flow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPart {
    pub work: u64,
    /// Memory it takes.
    pub bytes: u64,
    /// What it hands to the part behind it in a step.
    pub out_bytes: u64,
}

/// When the members of a chain work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All at once, each on another step: the slowest stage counts.
    Flowing,
    /// One after another on the same step: all stages count.
    InTurn,
}

/// How requests go through a crew that keeps a service ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Once, in the order they came: what the last member makes of one is its answer.
    Once,
    /// Round and round, each until it is answered, so many at a time. Members keep something of each until then.
    Rounds { calls: u16 },
}

/// What goes to a member of a chain in which requests go round and round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// To the first: a request.
    Asked,
    /// To the same member again: it has more to do before anybody else has.
    Again,
    /// From the one before.
    On,
    /// From the last to the first: the next round.
    Round,
    /// From the first to the last, past all others.
    Aside,
    /// From any other member: all work on the same request at the same time.
    Among,
}

/// What a member makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Out {
    Again,
    On(Vec<u8>),
    Round(Vec<u8>),
    Aside(Vec<u8>),
    /// More of the answer.
    Part(Vec<u8>),
    /// The rest of the answer.
    Last(Vec<u8>),
    /// To all others, as [`Way::Among`].
    Among(Vec<u8>),
    /// To the last one, which chooses how the answer goes on: there it is one of [`Way::Among`].
    Choose(Vec<u8>),
}

/// Shares of every step: several times in one, all members give each other what they made of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub shares: u64,
    /// Of one share in one step.
    pub work: u64,
    /// Memory of one share.
    pub share_bytes: u64,
    /// Memory that every member needs beside its shares.
    pub common_bytes: u64,
    /// How often they do so in a step, and what all of them together have made each time.
    pub exchanges: u64,
    pub exchange_bytes: u64,
    pub flow: Flow,
}

impl CrewProblem {
    /// How requests go through the crew; none where it keeps no service ready.
    pub fn flow(&self) -> Option<Flow> {
        match self {
            CrewProblem::Ring(_) => None,
            CrewProblem::Chain(chain) => Some(chain.flow),
            CrewProblem::Group(group) => Some(group.flow),
        }
    }

    pub fn shares(&self) -> u64 {
        match self {
            CrewProblem::Ring(ring) => ring.shares,
            CrewProblem::Chain(chain) => chain.parts.len() as u64,
            CrewProblem::Group(group) => group.shares,
        }
    }

    /// Shares that a member has at least.
    pub fn least(&self) -> u64 {
        match self {
            CrewProblem::Ring(ring) => ring.halo.max(1),
            CrewProblem::Chain(_) | CrewProblem::Group(_) => 1,
        }
    }

    /// What a step is for whoever has these shares.
    pub fn work(&self, shares: Span) -> u64 {
        match self {
            CrewProblem::Ring(ring) => shares.len.saturating_mul(ring.work),
            CrewProblem::Group(group) => shares.len.saturating_mul(group.work),
            CrewProblem::Chain(chain) => {
                let inside = chain.parts.iter().enumerate();
                let inside =
                    inside.filter(|(at, _)| (shares.start..shares.end()).contains(&(*at as u64)));
                inside.fold(0, |sum: u64, (_, part)| sum.saturating_add(part.work))
            }
        }
    }

    /// Memory of whoever has these shares.
    pub fn held_bytes(&self, shares: Span) -> u64 {
        match self {
            CrewProblem::Ring(ring) => {
                let held = shares.len.saturating_add(2 * ring.halo);
                held.saturating_mul(ring.share_bytes).saturating_mul(ring.copies)
            }
            CrewProblem::Group(group) => {
                shares.len.saturating_mul(group.share_bytes).saturating_add(group.common_bytes)
            }
            CrewProblem::Chain(chain) => {
                let parts =
                    chain.parts.iter().skip(shares.start as usize).take(shares.len as usize);
                parts.fold(0, |sum: u64, part| sum.saturating_add(part.bytes))
            }
        }
    }

    /// Bytes of shares that fit a node whose largest buffer and whose memory left for it, if known, are these.
    pub fn budget(&self, buffer: u64, room: Option<u64>) -> u64 {
        match self {
            CrewProblem::Ring(ring) => {
                room.map_or(buffer, |room| buffer.min(room / ring.copies.max(1)))
            }
            CrewProblem::Chain(_) | CrewProblem::Group(_) => room.unwrap_or(buffer),
        }
    }

    /// What a checkpoint stores of these shares; nothing where a crew goes on without.
    pub fn kept_bytes(&self, shares: Span) -> u64 {
        match self {
            CrewProblem::Ring(ring) => shares.len.saturating_mul(ring.share_bytes),
            CrewProblem::Chain(_) | CrewProblem::Group(_) => 0,
        }
    }
}
