//! Which pieces of a blob somebody has.

use alloc::vec::Vec;

/// A set of pieces of one blob. A full one takes no memory: whoever says that it has all of a blob, however large,
/// costs nobody anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceSet {
    count: u32,
    /// Empty if the set is full.
    words: Vec<u64>,
    len: u32,
}

impl PieceSet {
    /// No piece of so many.
    pub fn new(count: u32) -> PieceSet {
        PieceSet { count, words: alloc::vec![0; count.div_ceil(64) as usize], len: 0 }
    }

    pub fn full(count: u32) -> PieceSet {
        PieceSet { count, words: Vec::new(), len: count }
    }

    /// From the wire: what is too much is not taken, what is missing is not in it.
    pub fn from_words(count: u32, words: &[u64]) -> PieceSet {
        let mut set = PieceSet::new(count);
        for (at, word) in words.iter().enumerate().take(set.words.len()) {
            set.words[at] = word & set.mask(at);
        }
        set.len = set.words.iter().map(|word| word.count_ones()).sum();
        set.forget_if_full();
        set
    }

    /// As it goes over the wire.
    pub fn words(&self) -> Vec<u64> {
        (0..self.count.div_ceil(64) as usize).map(|at| self.word(at)).collect()
    }

    /// Of how many pieces it is a set.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_full(&self) -> bool {
        self.len == self.count
    }

    pub fn has(&self, piece: u32) -> bool {
        piece < self.count && self.word(piece as usize / 64) >> (piece % 64) & 1 == 1
    }

    /// All that are in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let words = (0..self.count.div_ceil(64)).map(|at| (at, self.word(at as usize)));
        words.flat_map(|(at, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| at * 64 + bit)
        })
    }

    /// Whether it is new, and a piece at all.
    pub fn insert(&mut self, piece: u32) -> bool {
        if piece >= self.count || self.has(piece) {
            return false;
        }
        if let Some(word) = self.words.get_mut(piece as usize / 64) {
            *word |= 1 << (piece % 64);
        }
        self.len += 1;
        self.forget_if_full();
        true
    }

    /// Whether it was in it.
    pub fn remove(&mut self, piece: u32) -> bool {
        if !self.has(piece) {
            return false;
        }
        if self.is_full() {
            self.words = self.words();
        }
        if let Some(word) = self.words.get_mut(piece as usize / 64) {
            *word &= !(1 << (piece % 64));
        }
        self.len -= 1;
        true
    }

    fn forget_if_full(&mut self) {
        if self.is_full() {
            self.words = Vec::new();
        }
    }

    fn word(&self, at: usize) -> u64 {
        if self.is_full() { self.mask(at) } else { self.words.get(at).copied().unwrap_or(0) }
    }

    /// The bits of a word that stand for pieces.
    fn mask(&self, at: usize) -> u64 {
        match (self.count as usize).saturating_sub(at * 64) {
            0 => 0,
            left @ 1..64 => (1 << left) - 1,
            _ => u64::MAX,
        }
    }

    /// The first piece that is in it and not in `other`, and that `fits`, from `start` on and round.
    pub fn first_beyond(
        &self,
        other: &PieceSet,
        start: u32,
        mut fits: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let words = self.count.div_ceil(64) as usize;
        let first = if self.count == 0 { 0 } else { start % self.count };
        let begin = first as usize / 64;
        // The first word is looked at twice: from the start on, and in the end up to it.
        (0..=words).find_map(|step| {
            let at = (begin + step) % words.max(1);
            let mut rest = self.word(at) & !other.word(at);
            let upper = u64::MAX << (first % 64);
            if step == 0 {
                rest &= upper;
            } else if step == words {
                rest &= !upper;
            }
            while rest != 0 {
                let piece = at as u32 * 64 + rest.trailing_zeros();
                if fits(piece) {
                    return Some(piece);
                }
                rest &= rest - 1;
            }
            None
        })
    }

    /// The first piece that is missing and `fits`, from `start` on and round.
    pub fn first_missing(&self, start: u32, fits: impl FnMut(u32) -> bool) -> Option<u32> {
        PieceSet::full(self.count).first_beyond(self, start, fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn a_set_from_the_wire_is_no_larger_than_its_blob() {
        let set = PieceSet::from_words(70, &[u64::MAX, u64::MAX, u64::MAX]);
        assert!(set.is_full() && set.len() == 70 && !set.has(70));
        let set = PieceSet::from_words(70, &[5]);
        assert_eq!((set.len(), set.has(0), set.has(1), set.has(69)), (2, true, false, false));
    }

    #[test]
    fn pieces_are_found_from_a_start_on_and_round() {
        let mut set = PieceSet::new(130);
        [3, 64, 129].into_iter().for_each(|piece| assert!(set.insert(piece)));
        let none = PieceSet::new(130);
        let first = |start| set.first_beyond(&none, start, |_| true);
        assert_eq!(
            (first(0), first(4), first(65), first(129)),
            (Some(3), Some(64), Some(129), Some(129))
        );
        assert_eq!(set.first_beyond(&none, 65, |piece| piece != 129), Some(3));
        assert_eq!(set.first_missing(64, |_| true), Some(65));
        assert_eq!(PieceSet::full(130).first_missing(7, |_| true), None);
    }

    #[test]
    fn a_full_set_takes_no_memory_however_it_came_to_be_full() {
        let mut set = PieceSet::new(70);
        (0..70).for_each(|piece| assert!(set.insert(piece)));
        assert_eq!(set, PieceSet::full(70));
        assert_eq!(set.words.capacity(), 0);
        assert_eq!(set.words(), vec![u64::MAX, 0b11_1111]);
        assert!(set.remove(69) && !set.remove(69) && !set.has(69) && set.len() == 69);
        assert_eq!(set.iter().last(), Some(68));
        assert!(set.insert(69) && set.is_full());
    }

    proptest! {
        #[test]
        fn the_first_piece_is_the_nearest(
            raw in prop::collection::vec(any::<u64>(), 3),
            other in prop::collection::vec(any::<u64>(), 3),
            start in 0_u32..150,
        ) {
            let (set, other) = (PieceSet::from_words(150, &raw), PieceSet::from_words(150, &other));
            let mut round = (0..150).map(|step| (start + step) % 150);
            let expected = round.find(|piece| set.has(*piece) && !other.has(*piece));
            prop_assert_eq!(set.first_beyond(&other, start, |_| true), expected);
            prop_assert_eq!(vec![set.len()], vec![(0..150).filter(|p| set.has(*p)).count() as u32]);
        }
    }
}
