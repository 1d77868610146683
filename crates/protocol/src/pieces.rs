//! Which pieces of a blob somebody has.

use alloc::vec::Vec;

/// A set of pieces of one blob. A full one takes no memory, nor does one without any: whoever says that it has all of
/// a blob, however large, costs nobody anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceSet {
    count: u32,
    /// Empty if all pieces are in the set, or none.
    words: Vec<u64>,
    len: u32,
}

impl PieceSet {
    /// No piece of so many.
    pub fn new(count: u32) -> PieceSet {
        PieceSet { count, words: Vec::new(), len: 0 }
    }

    pub fn full(count: u32) -> PieceSet {
        PieceSet { count, words: Vec::new(), len: count }
    }

    /// From the wire: what is too much is not taken, what is missing is not in it.
    pub fn from_words(count: u32, words: &[u64]) -> PieceSet {
        PieceSet::new(count).of(|at| words.get(at).copied().unwrap_or(0))
    }

    /// As it goes over the wire: up to the last word with a piece.
    pub fn words(&self) -> Vec<u64> {
        let mut words: Vec<_> = (0..self.size()).map(|at| self.word(at)).collect();
        words.truncate(words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1));
        words
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
        self.spell_out();
        if let Some(word) = self.words.get_mut(piece as usize / 64) {
            *word |= 1 << (piece % 64);
        }
        self.len += 1;
        self.forget_words();
        true
    }

    /// Whether it was in it.
    pub fn remove(&mut self, piece: u32) -> bool {
        if !self.has(piece) {
            return false;
        }
        self.spell_out();
        if let Some(word) = self.words.get_mut(piece as usize / 64) {
            *word &= !(1 << (piece % 64));
        }
        self.len -= 1;
        self.forget_words();
        true
    }

    /// All that are in one or the other.
    pub fn with(&self, other: &PieceSet) -> PieceSet {
        self.of(|at| self.word(at) | other.word(at))
    }

    /// All that are not in the other.
    pub fn without(&self, other: &PieceSet) -> PieceSet {
        self.of(|at| self.word(at) & !other.word(at))
    }

    /// Whether all that are in the other are in it.
    pub fn covers(&self, other: &PieceSet) -> bool {
        self.is_full()
            || other.len <= self.len
                && (0..self.size()).all(|at| other.word(at) & !self.word(at) == 0)
    }

    /// Whether some piece is in both.
    pub fn meets(&self, other: &PieceSet) -> bool {
        let some = !self.is_empty() && !other.is_empty();
        some && (self.is_full()
            || other.is_full()
            || (0..self.size()).any(|at| self.word(at) & other.word(at) != 0))
    }

    /// A set of as many pieces, by its words.
    fn of(&self, word: impl Fn(usize) -> u64) -> PieceSet {
        let words = (0..self.size()).map(|at| word(at) & self.mask(at));
        let mut set = PieceSet { count: self.count, words: words.collect(), len: 0 };
        set.len = set.words.iter().map(|word| word.count_ones()).sum();
        set.forget_words();
        set
    }

    fn spell_out(&mut self) {
        if self.words.is_empty() {
            self.words = (0..self.size()).map(|at| self.word(at)).collect();
        }
    }

    fn forget_words(&mut self) {
        if self.is_full() || self.is_empty() {
            self.words = Vec::new();
        }
    }

    /// How many words it takes.
    fn size(&self) -> usize {
        self.count.div_ceil(64) as usize
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

    /// The first piece that is in it and in `other`, and that `fits`, from `start` on and round.
    pub fn first_also(
        &self,
        other: &PieceSet,
        start: u32,
        mut fits: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let words = self.size();
        let first = if self.count == 0 { 0 } else { start % self.count };
        let begin = first as usize / 64;
        // The first word is looked at twice: from the start on, and in the end up to it.
        (0..=words).find_map(|step| {
            let at = (begin + step) % words.max(1);
            let mut rest = self.word(at) & other.word(at);
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

    /// The first piece that is in it and `fits`, from `start` on and round.
    pub fn first(&self, start: u32, fits: impl FnMut(u32) -> bool) -> Option<u32> {
        self.first_also(self, start, fits)
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
        let first = |start| set.first(start, |_| true);
        assert_eq!(
            (first(0), first(4), first(65), first(129)),
            (Some(3), Some(64), Some(129), Some(129))
        );
        assert_eq!(set.first(65, |piece| piece != 129), Some(3));
        assert_eq!(PieceSet::full(130).without(&set).first(64, |_| true), Some(65));
        assert_eq!(PieceSet::new(130).first(7, |_| true), None);
    }

    #[test]
    fn a_full_or_empty_set_takes_no_memory_however_it_came_to_be_so() {
        let mut set = PieceSet::new(70);
        (0..70).for_each(|piece| assert!(set.insert(piece)));
        assert_eq!(set, PieceSet::full(70));
        assert_eq!(set.words.capacity(), 0);
        assert_eq!(set.words(), vec![u64::MAX, 0b11_1111]);
        assert!(set.remove(69) && !set.remove(69) && !set.has(69) && set.len() == 69);
        assert_eq!(set.iter().last(), Some(68));
        assert!(set.insert(69) && set.is_full());
        (0..70).for_each(|piece| assert!(set.remove(piece)));
        assert_eq!((set.words.capacity(), set.words()), (0, vec![]));
        assert_eq!(set, PieceSet::new(70));
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
            let expected = round.find(|piece| set.has(*piece) && other.has(*piece));
            prop_assert_eq!(set.first_also(&other, start, |_| true), expected);
            prop_assert_eq!(set.meets(&other), expected.is_some());
            let (both, rest) = (set.with(&other), set.without(&other));
            let right = |p: &u32| {
                both.has(*p) == (set.has(*p) || other.has(*p))
                    && rest.has(*p) == (set.has(*p) && !other.has(*p))
            };
            prop_assert!((0..150).all(|p| right(&p)));
            prop_assert!(both.covers(&set) && both.covers(&other) && !rest.meets(&other));
            prop_assert_eq!(set.covers(&other), other.without(&set).is_empty());
            prop_assert_eq!(PieceSet::from_words(150, &set.words()), set.clone());
            prop_assert_eq!(vec![set.len()], vec![(0..150).filter(|p| set.has(*p)).count() as u32]);
        }
    }
}
