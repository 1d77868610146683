//! How blobs go from node to node: in pieces, each with its own hash. What a node says to the coordinator, which
//! knows who has what, what it is told, and the words two nodes have for each other.

use alloc::vec::Vec;
use core::ops::Range;
use core::slice;
use serde::{Deserialize, Serialize};

use crate::id::{BlobRef, Hash, NodeId};
use crate::limit::{MAX_PIECES, PIECE_BYTES, SHARED_FROM};
use crate::pieces::PieceSet;

/// The channel on which two nodes ask for pieces and give them. A token for sharing allows reading it, no more.
pub const BLOBS: u16 = 16;

/// From a node, about blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwarmSay {
    /// Which pieces of the blob this node has and gives, and which it needs. Said anew on each connection, and when
    /// it needs more.
    Part { blob: BlobRef, has: Vec<u64>, needs: Vec<u64> },
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

impl SwarmSay {
    /// Blobs that a node says it has or needs, or a part of them.
    pub fn claimed(&self) -> &[BlobRef] {
        match self {
            SwarmSay::Part { blob, .. } => slice::from_ref(blob),
            SwarmSay::Holds { blobs } => blobs,
            SwarmSay::Got { .. }
            | SwarmSay::Missed { .. }
            | SwarmSay::Drops { .. }
            | SwarmSay::Near { .. } => &[],
        }
    }
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
pub enum SwarmTold {
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

/// The pieces in which these bytes lie: ranges are rounded out to pieces, and to the end of the blob.
pub fn pieces_in(blob: &BlobRef, ranges: impl IntoIterator<Item = Range<u64>>) -> PieceSet {
    let mut pieces = PieceSet::new(pieces_of(blob));
    for range in ranges.into_iter().filter(|range| range.start < range.end) {
        let end = range.end.min(blob.size).div_ceil(PIECE_BYTES);
        for piece in range.start / PIECE_BYTES..end {
            pieces.insert(u32::try_from(piece).unwrap_or(u32::MAX));
        }
    }
    pieces
}

/// How many bytes these pieces of a blob are.
pub fn bytes_in(blob: &BlobRef, pieces: &PieceSet) -> u64 {
    let last = pieces_of(blob).saturating_sub(1);
    let short = PIECE_BYTES - piece_span(blob, last).1;
    u64::from(pieces.len()) * PIECE_BYTES - if pieces.has(last) { short } else { 0 }
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
    fn bytes_are_rounded_out_to_pieces() {
        let blob = blob(8 * PIECE_BYTES + 5);
        let pieces = |ranges: &[Range<u64>]| -> Vec<u32> {
            pieces_in(&blob, ranges.iter().cloned()).iter().collect()
        };
        assert_eq!(
            pieces(&[PIECE_BYTES - 1..PIECE_BYTES + 1, 3 * PIECE_BYTES..4 * PIECE_BYTES]),
            [0, 1, 3]
        );
        assert_eq!(pieces(&[8 * PIECE_BYTES..u64::MAX, 7..7]), [8]);
        assert!(pieces_in(&blob, core::iter::once(0..blob.size)).is_full());
        assert_eq!(bytes_in(&blob, &pieces_in(&blob, core::iter::once(0..blob.size))), blob.size);
        assert_eq!(bytes_in(&blob, &pieces_in(&blob, core::iter::once(0..1))), PIECE_BYTES);
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
    }
}
