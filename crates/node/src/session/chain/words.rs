//! What two neighbours in a chain tell each other.
//!
//! | bytes | what |
//! |---|---|
//! | any | of an item: its bytes |
//! | 8 | number u64, little-endian |
//! | 1 | 0 an item, 1 an item at a mark, 2 want from there on, 3 want all there is, 4 done up to there, 5 and 6 safe up to there |

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::log::Item;

const TAIL_BYTES: usize = 9;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    Item(Item),
    /// To the one before: from that item on; none for all that is kept, by one that has no state.
    Want(Option<u64>),
    /// To the one before: all before that item are computed.
    Got(u64),
    /// To the one before: what came before that item is needed by nobody any more.
    Safe(u64),
    /// To the one behind, which was not there to say so: the same.
    Past(u64),
}

impl Words {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (mut bytes, n, kind) = match self {
            Words::Item(item) => (item.bytes.to_vec(), item.n, u8::from(item.fresh)),
            Words::Want(Some(from)) => (Vec::new(), *from, 2),
            Words::Want(None) => (Vec::new(), 0, 3),
            Words::Got(before) => (Vec::new(), *before, 4),
            Words::Safe(before) => (Vec::new(), *before, 5),
            Words::Past(before) => (Vec::new(), *before, 6),
        };
        bytes.extend(n.to_le_bytes());
        bytes.push(kind);
        bytes
    }

    pub(super) fn decode(mut bytes: Vec<u8>) -> Option<Words> {
        let (rest, tail) = bytes.split_last_chunk::<TAIL_BYTES>()?;
        let n = u64::from_le_bytes(core::array::from_fn(|at| tail[at]));
        let (length, kind) = (rest.len(), tail[8]);
        let words = match kind {
            0 | 1 => {
                bytes.truncate(length);
                return Some(Words::Item(Item { n, fresh: kind == 1, bytes: Arc::new(bytes) }));
            }
            2 => Words::Want(Some(n)),
            3 => Words::Want(None),
            4 => Words::Got(n),
            5 => Words::Safe(n),
            6 => Words::Past(n),
            _ => return None,
        };
        (length == 0).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_nothing_else() {
        let item = |fresh| Words::Item(Item { n: 7, fresh, bytes: Arc::new(b"abc".to_vec()) });
        let all = [item(true), item(false), Words::Want(Some(9)), Words::Want(None)];
        for words in all.into_iter().chain([Words::Got(u64::MAX), Words::Safe(0), Words::Past(3)]) {
            assert_eq!(Words::decode(words.encode()), Some(words));
        }
        for length in 0..24 {
            for fill in [0, 2, 5, 7, 255] {
                Words::decode(alloc::vec![fill; length]);
            }
        }
        assert_eq!(Words::decode(b"too much of it\x04".to_vec()), None);
    }
}
