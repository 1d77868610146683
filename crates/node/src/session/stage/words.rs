//! What two neighbours in a row of stages tell each other.
//!
//! | bytes | what |
//! |---|---|
//! | any | of an item: its bytes |
//! | 8 | the request it belongs to, u64, little-endian |
//! | 4 | epoch u32, little-endian |
//! | 1 | 0 an item, 1 it is here, 2 it is begun or dropped; 3 an item for the next round, 4 one past the others |

use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, Epoch};

pub(in crate::session) const TAIL_BYTES: usize = 13;

/// What one stage made of a request, on its way to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct Item {
    pub(in crate::session) call: Attempt,
    pub(in crate::session) bytes: Arc<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) enum Words {
    /// To the one behind.
    Item(Item),
    /// To the one before: it arrived.
    Here(Attempt),
    /// To the one before: there is room for one more.
    Begun(Attempt),
    /// From the last to the first, where requests go round and round.
    Round(Item),
    /// From the first to the last.
    Aside(Item),
}

impl Words {
    pub(in crate::session) fn encode(&self, epoch: Epoch) -> Vec<u8> {
        let (body, call, kind): (&[u8], _, _) = match self {
            Words::Item(item) => (&item.bytes, item.call, 0),
            Words::Here(call) => (&[], *call, 1),
            Words::Begun(call) => (&[], *call, 2),
            Words::Round(item) => (&item.bytes, item.call, 3),
            Words::Aside(item) => (&item.bytes, item.call, 4),
        };
        let mut bytes = Vec::with_capacity(body.len() + TAIL_BYTES);
        bytes.extend_from_slice(body);
        bytes.extend(call.0.to_le_bytes());
        bytes.extend(epoch.0.to_le_bytes());
        bytes.push(kind);
        bytes
    }

    pub(in crate::session) fn decode(mut bytes: Vec<u8>) -> Option<(Epoch, Words)> {
        let (rest, tail) = bytes.split_last_chunk::<TAIL_BYTES>()?;
        let call = Attempt(u64::from_le_bytes(core::array::from_fn(|at| tail[at])));
        let epoch = Epoch(u32::from_le_bytes(core::array::from_fn(|at| tail[8 + at])));
        let (length, kind) = (rest.len(), tail[12]);
        let words = match kind {
            0 | 3 | 4 => {
                bytes.truncate(length);
                let item = Item { call, bytes: Arc::new(bytes) };
                match kind {
                    0 => Words::Item(item),
                    3 => Words::Round(item),
                    _ => Words::Aside(item),
                }
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
        let item = Item { call, bytes: Arc::new(b"abc".to_vec()) };
        let items = [Words::Item(item.clone()), Words::Round(item.clone()), Words::Aside(item)];
        for words in items.into_iter().chain([Words::Here(call), Words::Begun(Attempt(u64::MAX))]) {
            assert_eq!(Words::decode(words.encode(Epoch(3))), Some((Epoch(3), words)));
        }
        for length in 0..32 {
            for fill in [0, 1, 2, 3, 4, 5, 255] {
                Words::decode(alloc::vec![fill; length]);
            }
        }
        assert_eq!(Words::decode(b"too much of all this\x01".to_vec()), None);
    }
}
