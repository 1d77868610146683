//! How blobs go from node to node: in pieces, each with its own hash. What a node says to the coordinator, which
//! knows who has what, what it is told, and the words two nodes have for each other.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::id::{BlobRef, Hash, NodeId};
use crate::limit::{MAX_PIECES, PIECE_BYTES, SHARED_FROM};

/// The channel on which two nodes ask for pieces and give them. A token for sharing allows reading it, no more.
pub const BLOBS: u16 = 16;

/// From a node, about blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShareSay {
    /// This node needs all of the blob and has these pieces of it. Said anew on each connection.
    Wants { blob: BlobRef, has: Vec<u64> },
    /// It has all of these, and gives them.
    Holds { blobs: Vec<BlobRef> },
    /// A piece is here and is what it should be.
    Got { blob: BlobRef, piece: u32, from: Option<NodeId> },
    /// A piece did not come from the node it was to come from.
    Missed { blob: BlobRef, piece: u32, from: NodeId, why: Missed },
    /// It neither needs the blob nor has it any more.
    Drops { blob: BlobRef },
    /// There is a direct way to that node (`true`), or none any more.
    Near { node: NodeId, near: bool },
}

/// Why a piece did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Missed {
    /// Nothing came for too long.
    Late,
    /// The other does not give it.
    Refused,
    /// Other bytes came: their hash is wrong.
    Bad,
}

/// To a node, about blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShareTold {
    /// These pieces come from that node, or from the coordinator itself.
    Take { blob: BlobRef, pieces: Vec<u32>, from: Option<NodeId> },
    /// That node may read this blob here.
    Give { blob: BlobRef, to: NodeId },
}

/// How a blob is cut: in pieces of one size, the last one shorter.
pub fn pieces_of(blob: &BlobRef) -> u32 {
    u32::try_from(blob.size.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX)
}

/// Whether it is worth sharing: small ones are fetched at once, and of huge ones nobody keeps books.
pub fn is_shared(blob: &BlobRef) -> bool {
    blob.size >= SHARED_FROM && pieces_of(blob) <= MAX_PIECES
}

/// Where a piece lies in its blob: the first byte, and how many.
pub fn piece_span(blob: &BlobRef, piece: u32) -> (u64, u64) {
    let start = u64::from(piece) * PIECE_BYTES;
    (start, blob.size.saturating_sub(start).min(PIECE_BYTES))
}

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

/// What two nodes say on [`BLOBS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PieceWord<'a> {
    Ask {
        blob: Hash,
        piece: u32,
    },
    Here {
        blob: Hash,
        piece: u32,
        bytes: &'a [u8],
    },
    /// It is not given: not here, not allowed, or too much is asked.
    Not {
        blob: Hash,
        piece: u32,
    },
}

/// The kind, the blob and the piece's number stand before the bytes.
const HEAD: usize = 1 + 32 + 4;

impl PieceWord<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let (kind, blob, piece, bytes): (u8, _, _, &[u8]) = match self {
            PieceWord::Ask { blob, piece } => (0, blob, piece, &[]),
            PieceWord::Here { blob, piece, bytes } => (1, blob, piece, bytes),
            PieceWord::Not { blob, piece } => (2, blob, piece, &[]),
        };
        let mut words = Vec::with_capacity(HEAD + bytes.len());
        words.push(kind);
        words.extend_from_slice(&blob.0);
        words.extend_from_slice(&piece.to_le_bytes());
        words.extend_from_slice(bytes);
        words
    }

    /// `None` if it is none. Bytes after a word without any are a newer peer's, and allowed.
    pub fn decode(words: &[u8]) -> Option<PieceWord<'_>> {
        let (kind, rest) = words.split_first()?;
        let (blob, rest) = rest.split_first_chunk::<32>()?;
        let (piece, bytes) = rest.split_first_chunk::<4>()?;
        let (blob, piece) = (Hash(*blob), u32::from_le_bytes(*piece));
        match kind {
            0 => Some(PieceWord::Ask { blob, piece }),
            1 => Some(PieceWord::Here { blob, piece, bytes }),
            2 => Some(PieceWord::Not { blob, piece }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn blob(size: u64) -> BlobRef {
        BlobRef { hash: Hash([7; 32]), size }
    }

    #[test]
    fn the_last_piece_is_shorter() {
        let blob = blob(8 * PIECE_BYTES + 5);
        assert_eq!(pieces_of(&blob), 9);
        assert_eq!(piece_span(&blob, 1), (PIECE_BYTES, PIECE_BYTES));
        assert_eq!(piece_span(&blob, 8), (8 * PIECE_BYTES, 5));
        assert_eq!(piece_span(&blob, 9).1, 0);
        assert!(is_shared(&blob) && !is_shared(&self::blob(SHARED_FROM - 1)));
        assert!(!is_shared(&self::blob(u64::MAX)));
    }

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

    #[test]
    fn words_are_what_they_were() {
        let here = PieceWord::Here { blob: Hash([1; 32]), piece: 2, bytes: &[3, 4] };
        assert_eq!(here.encode()[..5], [1, 1, 1, 1, 1]);
        assert_eq!(here.encode()[33..], [2, 0, 0, 0, 3, 4]);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(word) = PieceWord::decode(&bytes) {
                prop_assert!(bytes.starts_with(&word.encode()));
            }
        }

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
