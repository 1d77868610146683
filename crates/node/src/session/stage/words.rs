//! What two neighbours in a row of stages tell each other.
//!
//! | bytes | what |
//! |---|---|
//! | any | of an item: its bytes |
//! | 8 | the request it belongs to, u64, little-endian |
//! | 4 | epoch u32, little-endian |
//! | 1 | 0 an item, 1 it is here, 2 it is begun or dropped |

use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, Epoch};

pub(super) const TAIL_BYTES: usize = 13;

/// What one stage made of a request, on its way to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) call: Attempt,
    pub(super) bytes: Arc<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// To the one behind.
    Item(Item),
    /// To the one before: it arrived.
    Here(Attempt),
    /// To the one before: there is room for one more.
    Begun(Attempt),
}

impl Words {
    pub(super) fn encode(&self, epoch: Epoch) -> Vec<u8> {
        let (mut bytes, call, kind) = match self {
            Words::Item(item) => {
                let mut bytes = Vec::with_capacity(item.bytes.len() + TAIL_BYTES);
                bytes.extend_from_slice(&item.bytes);
                (bytes, item.call, 0)
            }
            Words::Here(call) => (Vec::new(), *call, 1),
            Words::Begun(call) => (Vec::new(), *call, 2),
        };
        bytes.extend(call.0.to_le_bytes());
        bytes.extend(epoch.0.to_le_bytes());
        bytes.push(kind);
        bytes
    }

    pub(super) fn decode(mut bytes: Vec<u8>) -> Option<(Epoch, Words)> {
        let (rest, tail) = bytes.split_last_chunk::<TAIL_BYTES>()?;
        let call = Attempt(u64::from_le_bytes(core::array::from_fn(|at| tail[at])));
        let epoch = Epoch(u32::from_le_bytes(core::array::from_fn(|at| tail[8 + at])));
        let (length, kind) = (rest.len(), tail[12]);
        let words = match kind {
            0 => {
                bytes.truncate(length);
                Words::Item(Item { call, bytes: Arc::new(bytes) })
            }
            1 if length == 0 => Words::Here(call),
            2 if length == 0 => Words::Begun(call),
            _ => return None,
        };
        Some((epoch, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_nothing_else() {
        let call = Attempt(7 << 40);
        let item = Words::Item(Item { call, bytes: Arc::new(b"abc".to_vec()) });
        for words in [item, Words::Here(call), Words::Begun(Attempt(u64::MAX))] {
            assert_eq!(Words::decode(words.encode(Epoch(3))), Some((Epoch(3), words)));
        }
        for length in 0..32 {
            for fill in [0, 1, 2, 3, 255] {
                Words::decode(alloc::vec![fill; length]);
            }
        }
        assert_eq!(Words::decode(b"too much of all this\x01".to_vec()), None);
    }
}
