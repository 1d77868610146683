//! What is asked of a crew, and how it is laid out: slices, each with an owner, cut into segments that
//! travel on their own, so that a rank passes on the first while the last is still coming.

use alloc::vec::Vec;
use core::ops::Range;

use super::number::Numbers;
use super::topology::{How, Rank, View};

/// Bytes of a segment: about a quarter MiB, so that passing on costs little time and few messages. A
/// multiple of every block of numbers, so that none is cut.
pub(super) const SEGMENT_BYTES: usize = 36 * 7282;
/// Data of one operation: two fit into what a link queues. Larger data goes in several, each of which can be
/// lost and repeated on its own.
pub const MAX_OP_BYTES: usize = 128 << 20;

/// What all members do together. All say the same, but for their data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The root's bytes go to all.
    Broadcast { root: Rank, bytes: usize, how: How },
    /// The root's bytes are dealt out; `parts` says how many each rank gets.
    Scatter { root: Rank, parts: Vec<usize> },
    /// The root gets everybody's bytes, in the order of ranks.
    Gather { root: Rank, parts: Vec<usize> },
    /// All get everybody's bytes, in the order of ranks.
    AllGather { parts: Vec<usize>, how: How },
    /// The root gets the fold of everybody's numbers.
    Reduce { root: Rank, numbers: Numbers, how: How },
    /// All get the fold of everybody's numbers, the same bits.
    AllReduce { numbers: Numbers, how: How },
    /// Nobody goes on before all are here.
    Barrier,
}

/// An operation as one rank sees it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) slices: Vec<Slice>,
    /// What is folded, if anything is.
    pub(super) fold: Option<Numbers>,
    pub(super) how: How,
    /// Bytes this rank must give, and will get.
    pub(super) gives: usize,
    pub(super) gets: usize,
}

/// A part of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) owner: Rank,
    /// Goes from its owner to this rank only, instead of to all.
    pub(super) only_to: Option<Rank>,
    pub(super) bytes: usize,
    /// Where it begins in the data given, by its owner or, if it is folded, by each.
    pub(super) given_at: usize,
    /// Where it begins in what this rank gets, if it gets it.
    pub(super) got_at: Option<usize>,
}

impl Slice {
    /// Even nothing has one segment: that it came is the news.
    pub(super) fn segments(&self) -> u16 {
        self.bytes.div_ceil(SEGMENT_BYTES).max(1) as u16
    }

    /// The place of a segment in the slice.
    pub(super) fn segment(&self, segment: u16) -> Range<usize> {
        let from = usize::from(segment) * SEGMENT_BYTES;
        from..(from + SEGMENT_BYTES).min(self.bytes)
    }
}

/// Why an operation cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpError {
    /// The data is not as long as the operation says.
    WrongLength,
    /// More than [`MAX_OP_BYTES`].
    TooLarge,
    /// A rank that is not in the crew, or parts for another number of ranks.
    WrongRanks,
    /// More operations at a time than allowed.
    TooMany,
}

impl Op {
    pub(super) fn plan(&self, view: View) -> Result<Plan, OpError> {
        let plan = match self {
            Op::Broadcast { root, bytes, how } => one(view, *root, *bytes, None, *how),
            Op::Scatter { root, parts } => dealt(view, parts, |rank| (*root, Some(rank)))?,
            Op::Gather { root, parts } => dealt(view, parts, |rank| (rank, Some(*root)))?,
            Op::AllGather { parts, how } => {
                Plan { how: *how, ..dealt(view, parts, |rank| (rank, None))? }
            }
            Op::Reduce { root, numbers, how } => folded(view, *numbers, *how, Some(*root))?,
            Op::AllReduce { numbers, how } => folded(view, *numbers, *how, None)?,
            Op::Barrier => barrier(view),
        };
        let named =
            plan.slices.iter().flat_map(|slice| slice.only_to.into_iter().chain([slice.owner]));
        if named.into_iter().any(|rank| rank.0 >= view.ranks) {
            return Err(OpError::WrongRanks);
        }
        if plan.gives.max(plan.gets) > MAX_OP_BYTES {
            return Err(OpError::TooLarge);
        }
        Ok(plan)
    }
}

/// One slice, from the root to all.
fn one(view: View, root: Rank, bytes: usize, fold: Option<Numbers>, how: How) -> Plan {
    let slice = Slice { owner: root, only_to: None, bytes, given_at: 0, got_at: Some(0) };
    let gives = if view.me == root || fold.is_some() { bytes } else { 0 };
    Plan { slices: Vec::from([slice]), fold, how, gives, gets: bytes }
}

fn barrier(view: View) -> Plan {
    let nothing = Numbers { element: super::Element::I32, count: 0, fold: super::Fold::Sum };
    one(view, Rank(0), 0, Some(nothing), How::Tree)
}

/// A slice for each rank, none folded. `ends` says who has it first and who gets it.
fn dealt(
    view: View,
    parts: &[usize],
    ends: impl Fn(Rank) -> (Rank, Option<Rank>),
) -> Result<Plan, OpError> {
    if parts.len() != usize::from(view.ranks) {
        return Err(OpError::WrongRanks);
    }
    let total = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(*part));
    total.filter(|total| *total <= MAX_OP_BYTES).ok_or(OpError::TooLarge)?;
    let mut plan = Plan { slices: Vec::new(), fold: None, how: How::Mesh, gives: 0, gets: 0 };
    // What has several slices lies one after another.
    let mut given = alloc::vec![0; parts.len()];
    for (rank, bytes) in (0..view.ranks).map(Rank).zip(parts.iter().copied()) {
        let (owner, only_to) = ends(rank);
        let Some(given) = given.get_mut(usize::from(owner.0)) else {
            return Err(OpError::WrongRanks);
        };
        let got = only_to.is_none_or(|to| to == view.me);
        let got_at = got.then_some(plan.gets);
        if bytes > 0 {
            plan.slices.push(Slice { owner, only_to, bytes, given_at: *given, got_at });
        }
        *given += bytes;
        plan.gives += if owner == view.me { bytes } else { 0 };
        plan.gets += if got { bytes } else { 0 };
    }
    Ok(plan)
}

fn folded(view: View, numbers: Numbers, how: How, root: Option<Rank>) -> Result<Plan, OpError> {
    // Folded, they have their full width.
    if numbers.count > MAX_OP_BYTES / 4 {
        return Err(OpError::TooLarge);
    }
    let bytes = numbers.element.bytes(numbers.count);
    let got = root.is_none_or(|root| root == view.me);
    let owner_of_all = root.unwrap_or(Rank(0));
    let cuts = match how {
        How::Tree => 1,
        How::Ring | How::Mesh => usize::from(view.ranks),
    };
    let (block, _) = numbers.element.block();
    let blocks = (bytes / block) as u64;
    let edge = |cut: usize| (blocks * cut as u64 / cuts as u64) as usize * block;
    let slices = (0..cuts).map(|cut| {
        let owner = if cuts == 1 { owner_of_all } else { Rank(cut as u8) };
        let (from, to) = (edge(cut), edge(cut + 1));
        let got_at = got.then_some(from);
        Slice { owner, only_to: root, bytes: to - from, given_at: from, got_at }
    });
    // An empty slice need not travel.
    let slices: Vec<_> = slices.filter(|slice| slice.bytes > 0 || cuts == 1).collect();
    let gets = if got { bytes } else { 0 };
    Ok(Plan { slices, fold: Some(numbers), how, gives: bytes, gets })
}
