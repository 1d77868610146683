//! How many have each piece of one blob, and what the coordinator handed out of it. Whoever has all of it is counted
//! in one number, and what nobody has is kept as a set: neither a claim nor a question walks over all pieces.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::{Micros, PieceSet, Time};

pub(super) struct Copies {
    /// Nodes that have all and give it.
    whole: u32,
    /// For each piece, how many of those that have a part have it and give it. Empty until somebody has a part.
    parts: Vec<u32>,
    /// Pieces on their way from the coordinator, or handed out by it of late.
    handed: BTreeMap<u32, Handed>,
    /// Pieces in nobody's part and not handed out.
    rare: PieceSet,
}

struct Handed {
    /// How many it is on its way to.
    open: u32,
    /// When it was last handed out.
    at: Time,
}

impl Copies {
    pub(super) fn new(pieces: u32) -> Copies {
        let (parts, handed) = (Vec::new(), BTreeMap::new());
        Copies { whole: 0, parts, handed, rare: PieceSet::full(pieces) }
    }

    /// Whether nobody has this piece, or nobody gives it.
    pub(super) fn is_missing(&self, piece: u32) -> bool {
        self.whole == 0 && self.in_parts(piece) == 0
    }

    pub(super) fn is_handed(&self, piece: u32) -> bool {
        self.handed.contains_key(&piece)
    }

    /// A piece that nobody has, that was not handed out, and that is one of these.
    pub(super) fn first_rare(
        &self,
        lacks: &PieceSet,
        start: u32,
        fits: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if self.whole > 0 { None } else { self.rare.first_also(lacks, start, fits) }
    }

    /// Somebody gives these.
    pub(super) fn add(&mut self, has: &PieceSet) {
        if has.is_full() {
            self.whole += 1;
        } else {
            has.iter().for_each(|piece| self.gain(piece));
        }
    }

    /// Somebody does not give these any more.
    pub(super) fn remove(&mut self, has: &PieceSet) {
        if has.is_full() {
            self.whole -= 1;
        } else {
            has.iter().for_each(|piece| self.lose(piece));
        }
    }

    /// One with a part has one piece more.
    pub(super) fn gain(&mut self, piece: u32) {
        if self.parts.is_empty() {
            self.parts = alloc::vec![0; self.rare.count() as usize];
        }
        if let Some(copies) = self.parts.get_mut(piece as usize) {
            *copies += 1;
            self.rare.remove(piece);
        }
    }

    fn lose(&mut self, piece: u32) {
        if let Some(copies) = self.parts.get_mut(piece as usize) {
            *copies -= 1;
            self.note_rare(piece);
        }
    }

    /// The coordinator gives it to somebody.
    pub(super) fn hand(&mut self, now: Time, piece: u32) {
        let handed = self.handed.entry(piece).or_insert(Handed { open: 0, at: now });
        (handed.open, handed.at) = (handed.open + 1, now);
        self.rare.remove(piece);
    }

    /// It is there, or will not come.
    pub(super) fn hand_over(&mut self, piece: u32) {
        if let Some(handed) = self.handed.get_mut(&piece) {
            handed.open = handed.open.saturating_sub(1);
        }
    }

    /// What was handed out so long ago, and is not on its way, may be handed out again.
    pub(super) fn forget_handed(&mut self, now: Time, after: Micros) {
        let over = |handed: &Handed| handed.open == 0 && now >= handed.at + after;
        let old = self.handed.iter().filter(|(_, handed)| over(handed));
        let old: Vec<_> = old.map(|(piece, _)| *piece).collect();
        for piece in old {
            self.handed.remove(&piece);
            self.note_rare(piece);
        }
    }

    fn note_rare(&mut self, piece: u32) {
        if self.in_parts(piece) == 0 && !self.handed.contains_key(&piece) {
            self.rare.insert(piece);
        }
    }

    fn in_parts(&self, piece: u32) -> u32 {
        self.parts.get(piece as usize).copied().unwrap_or(0)
    }

    /// Panics if it is not what these sets make it; `open` is what the coordinator was asked for.
    pub(super) fn check<'a>(
        &self,
        counted: impl Iterator<Item = &'a PieceSet> + Clone,
        open: impl Iterator<Item = u32>,
    ) {
        let whole = counted.clone().filter(|has| has.is_full()).count();
        assert_eq!(whole as u32, self.whole, "whole copies");
        for piece in 0..self.rare.count() {
            let parts = counted.clone().filter(|has| !has.is_full() && has.has(piece)).count();
            assert_eq!(parts as u32, self.in_parts(piece), "copies of piece {piece}");
            let rare = parts == 0 && !self.is_handed(piece);
            assert_eq!(rare, self.rare.has(piece), "piece {piece} is rare");
        }
        let mut asked = BTreeMap::<u32, u32>::new();
        open.for_each(|piece| *asked.entry(piece).or_default() += 1);
        let handed = self.handed.iter().filter(|(_, handed)| handed.open > 0);
        let handed: BTreeMap<_, _> = handed.map(|(piece, handed)| (*piece, handed.open)).collect();
        assert_eq!(asked, handed, "pieces on their way from the coordinator");
    }
}
