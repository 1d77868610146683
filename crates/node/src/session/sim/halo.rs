//! What neighbours tell each other at each step: the rows at the edge of their bands, and the pokes to come.
//! The rows come first and the rest last, so that a halo is taken out of its message without a copy.
//!
//! | bytes | what |
//! |---|---|
//! | rows | the edge, as the engine gave it |
//! | 32 for each poke | step u64, at 2 f32, by 2 f32, radius f32, strength f32 |
//! | 8 | step u64: so many steps were done when the rows were so |
//! | 1 | side: 0 if the rows are above the receiver's band, 1 if below |
//! | 1 | how many pokes |

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use shoal_protocol::Poke;

use super::poke::{MAX_KNOWN, POKE_BYTES};

/// Step, side and count.
const TAIL_BYTES: usize = 10;

/// On which side of a band a halo lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Side {
    Above = 0,
    Below = 1,
}

impl Side {
    pub(super) const BOTH: [Side; 2] = [Side::Above, Side::Below];

    fn from_byte(byte: u8) -> Option<Side> {
        Side::BOTH.into_iter().find(|side| *side as u8 == byte)
    }
}

/// A neighbour's message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Halo {
    pub(super) step: u64,
    pub(super) side: Side,
    pub(super) pokes: Vec<(u64, Poke)>,
    pub(super) rows: Vec<u8>,
}

impl Halo {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = self.rows;
        bytes.reserve_exact(self.pokes.len() * POKE_BYTES + TAIL_BYTES);
        for (step, poke) in &self.pokes {
            bytes.extend(step.to_le_bytes());
            bytes.extend(numbers(poke).into_iter().flat_map(f32::to_le_bytes));
        }
        bytes.extend(self.step.to_le_bytes());
        bytes.push(self.side as u8);
        bytes.push(self.pokes.len() as u8);
        bytes
    }

    pub(super) fn decode(mut bytes: Vec<u8>) -> Result<Halo, Wrong> {
        let (head, tail) = bytes.split_last_chunk::<TAIL_BYTES>().ok_or(Wrong::Short)?;
        let step = u64::from_le_bytes(core::array::from_fn(|at| tail[at]));
        let side = Side::from_byte(tail[8]).ok_or(Wrong::Side(tail[8]))?;
        let count = usize::from(tail[9]);
        if count > MAX_KNOWN {
            return Err(Wrong::Pokes(count));
        }
        let rows = head.len().checked_sub(count * POKE_BYTES).ok_or(Wrong::Short)?;
        let pokes = head[rows..].chunks_exact(POKE_BYTES).map(read_poke).collect();
        bytes.truncate(rows);
        Ok(Halo { step, side, pokes, rows: bytes })
    }
}

fn numbers(poke: &Poke) -> [f32; 6] {
    let Poke { at: [x, y], by: [dx, dy], radius, strength } = *poke;
    [x, y, dx, dy, radius, strength]
}

/// From [`POKE_BYTES`] bytes.
fn read_poke(bytes: &[u8]) -> (u64, Poke) {
    let word = |at: usize| -> [u8; 4] { core::array::from_fn(|byte| bytes[at * 4 + byte]) };
    let number = |at: usize| f32::from_le_bytes(word(at));
    let step =
        u64::from(u32::from_le_bytes(word(1))) << 32 | u64::from(u32::from_le_bytes(word(0)));
    let (at, by) = ([number(2), number(3)], [number(4), number(5)]);
    (step, Poke { at, by, radius: number(6), strength: number(7) })
}

/// Why a message is no halo that could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Short,
    Side(u8),
    Pokes(usize),
    Length {
        came: usize,
        expected: u64,
    },
    /// This rank has no business with that side of this band.
    NotANeighbour,
    /// Of a step that is over, or told already.
    Again {
        step: u64,
        at: u64,
    },
    /// Of a step that its sender cannot have reached.
    Ahead {
        step: u64,
        at: u64,
    },
    PokeAt {
        step: u64,
        at: u64,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Short => f.write_str("a halo shorter than its own words"),
            Wrong::Side(side) => write!(f, "a halo for side {side}; there are 0 and 1"),
            Wrong::Pokes(count) => write!(f, "a halo with {count} pokes; at most {MAX_KNOWN} wait"),
            Wrong::Length { came, expected } => {
                write!(f, "a halo of {came} bytes; expected {expected}")
            }
            Wrong::NotANeighbour => f.write_str("a halo from a member that is not on that side"),
            Wrong::Again { step, at } => {
                write!(f, "a halo of step {step} that was told before; here it is step {at}")
            }
            Wrong::Ahead { step, at } => {
                write!(f, "a halo of step {step}, which needs ours; here it is step {at}")
            }
            Wrong::PokeAt { step, at } => {
                write!(
                    f,
                    "a poke for step {step} in a halo of step {at}: that is no step it can have"
                )
            }
        }
    }
}

/// Halos that came, by side and step. At most two a side: a neighbour is at most one step ahead.
#[derive(Default)]
pub(super) struct Halos {
    came: [BTreeMap<u64, Vec<u8>>; 2],
    /// The last one used and the one before it, for guesses.
    last: [Option<Vec<u8>>; 2],
    before: [Option<Vec<u8>>; 2],
    /// Remember those.
    remembers: bool,
}

impl Halos {
    pub(super) fn new(remembers: bool) -> Halos {
        Halos { remembers, ..Halos::default() }
    }

    /// Whether it is the first of its step on its side.
    pub(super) fn put(&mut self, side: Side, step: u64, rows: Vec<u8>) -> bool {
        self.came[side as usize].insert(step, rows).is_none()
    }

    pub(super) fn of(&self, side: Side, step: u64) -> Option<&Vec<u8>> {
        self.came[side as usize].get(&step)
    }

    pub(super) fn has(&self, side: Side, step: u64) -> bool {
        self.of(side, step).is_some()
    }

    pub(super) fn missing(&self, step: u64) -> impl Iterator<Item = Side> {
        Side::BOTH.into_iter().filter(move |side| !self.has(*side, step))
    }

    /// It is used now: taken out, and remembered.
    pub(super) fn take(&mut self, side: Side, step: u64) -> Option<Vec<u8>> {
        let at = side as usize;
        let rows = self.came[at].remove(&step)?;
        if self.remembers {
            self.before[at] = self.last[at].replace(rows.clone());
        }
        Some(rows)
    }

    /// What the next one might be: the last one and once more by how much it differed from the one before,
    /// where that makes sense.
    pub(super) fn guess(&self, side: Side, floats: bool) -> Option<Vec<u8>> {
        let last = self.last[side as usize].as_ref()?;
        match &self.before[side as usize] {
            Some(before) if floats => Some(extrapolate(last, before)),
            Some(_) | None => Some(last.clone()),
        }
    }

    pub(super) fn can_guess(&self) -> bool {
        self.last.iter().all(Option::is_some)
    }

    pub(super) fn check(&self, at: u64) {
        for came in &self.came {
            let near = came.keys().all(|step| *step == at || *step == at + 1);
            assert!(near && came.len() <= 2, "halos that nobody can use at step {at}");
        }
    }
}

fn extrapolate(last: &[u8], before: &[u8]) -> Vec<u8> {
    let (last, _) = last.as_chunks::<4>();
    let (before, _) = before.as_chunks::<4>();
    let pairs = last.iter().zip(before);
    let next = pairs.map(|(last, before)| {
        let (last, before) = (f32::from_le_bytes(*last), f32::from_le_bytes(*before));
        (last + (last - before)).to_le_bytes()
    });
    next.flatten().collect()
}
