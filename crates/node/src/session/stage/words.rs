//! What two neighbours in a row of stages tell each other.
//!
//! | bytes | what |
//! |---|---|
//! | any | of an item: its bytes |
//! | 8 | the request it belongs to, u64, little-endian |
//! | 4 | epoch u32, little-endian |
//! | 1 | 0 an item, 1 it is here, 2 it is begun or dropped; 3 an item for the next round, 4 one past the others, 6 one among all |
//!
//! Where requests go round and round, a message may hold several of these, so that what was made together is heard
//! together. Behind each stands its length, u32, little-endian, and behind the last one a byte, 5.

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
    /// From one of those who all work on it.
    Among(Item),
}

impl Words {
    /// That it takes in a message.
    pub(in crate::session) fn bytes(&self) -> usize {
        match self {
            Words::Item(item) | Words::Round(item) | Words::Aside(item) | Words::Among(item) => {
                item.bytes.len() + TAIL_BYTES
            }
            Words::Here(_) | Words::Begun(_) => TAIL_BYTES,
        }
    }

    pub(in crate::session) fn encode(&self, epoch: Epoch) -> Vec<u8> {
        let (body, call, kind): (&[u8], _, _) = match self {
            Words::Item(item) => (&item.bytes, item.call, 0),
            Words::Here(call) => (&[], *call, 1),
            Words::Begun(call) => (&[], *call, 2),
            Words::Round(item) => (&item.bytes, item.call, 3),
            Words::Aside(item) => (&item.bytes, item.call, 4),
            Words::Among(item) => (&item.bytes, item.call, 6),
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
            0 | 3 | 4 | 6 => {
                bytes.truncate(length);
                let item = Item { call, bytes: Arc::new(bytes) };
                match kind {
                    0 => Words::Item(item),
                    3 => Words::Round(item),
                    4 => Words::Aside(item),
                    _ => Words::Among(item),
                }
            }
            1 if length == 0 => Words::Here(call),
            2 if length == 0 => Words::Begun(call),
            _ => return None,
        };
        Some((epoch, words))
    }
}

/// Ends a message of several.
const SEVERAL: u8 = 5;

/// One message of all of these; of one, as it is alone.
pub(in crate::session) fn encode_all(all: &[Words], epoch: Epoch) -> Vec<u8> {
    if let [words] = all {
        return words.encode(epoch);
    }
    let mut bytes = Vec::new();
    for words in all {
        let own = words.encode(epoch);
        bytes.extend_from_slice(&own);
        bytes.extend((own.len() as u32).to_le_bytes());
    }
    bytes.push(SEVERAL);
    bytes
}

/// All that a message holds, in order.
pub(in crate::session) fn decode_all(mut bytes: Vec<u8>) -> Option<Vec<(Epoch, Words)>> {
    if bytes.last() != Some(&SEVERAL) {
        return Words::decode(bytes).map(|words| [words].into());
    }
    bytes.pop();
    let (mut rest, mut all) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (before, length) = rest.split_last_chunk::<4>()?;
        let start = before.len().checked_sub(u32::from_le_bytes(*length) as usize)?;
        all.push(Words::decode(before[start..].to_vec())?);
        rest = &before[..start];
    }
    all.reverse();
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_come_together_and_in_order() {
        let item = |call: u64, bytes: &[u8]| {
            Words::Item(Item { call: Attempt(call), bytes: Arc::new(bytes.to_vec()) })
        };
        let all =
            [item(1, b"abc"), Words::Here(Attempt(2)), item(3, b""), Words::Begun(Attempt(1))];
        for count in 1..=all.len() {
            let message = encode_all(&all[..count], Epoch(9));
            let heard = decode_all(message.clone()).expect("as it should be");
            let expected: Vec<_> = all[..count].iter().map(|it| (Epoch(9), it.clone())).collect();
            assert_eq!(heard, expected);
            // One byte more or less is another message, or none.
            assert_ne!(decode_all(message[1..].to_vec()), Some(expected));
        }
        for length in 0..64 {
            for fill in [0, 1, 2, 3, 5, 255] {
                decode_all([alloc::vec![fill; length], [SEVERAL].into()].concat());
            }
        }
    }

    #[test]
    fn what_is_said_is_understood_and_nothing_else() {
        let call = Attempt(7 << 40);
        let item = Item { call, bytes: Arc::new(b"abc".to_vec()) };
        let aside = Words::Aside(item.clone());
        let items = [Words::Item(item.clone()), Words::Round(item.clone()), aside];
        let items = items.into_iter().chain([Words::Among(item)]);
        for words in items.chain([Words::Here(call), Words::Begun(Attempt(u64::MAX))]) {
            assert_eq!(Words::decode(words.encode(Epoch(3))), Some((Epoch(3), words)));
        }
        for length in 0..32 {
            for fill in [0, 1, 2, 3, 4, 5, 6, 255] {
                Words::decode(alloc::vec![fill; length]);
            }
        }
        assert_eq!(Words::decode(b"too much of all this\x01".to_vec()), None);
    }
}
