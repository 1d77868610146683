//! What a message between ranks belongs to: one word after its bytes, where it can be added and cut off
//! without moving them.

use alloc::sync::Arc;
use alloc::vec::Vec;

/// Bytes of a tag. Whoever makes bytes to be sent leaves this much room behind them.
pub(super) const TAG_BYTES: usize = 8;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// Numbers on their way to be folded.
    Fold = 0,
    /// Bytes as they will stay.
    Result = 1,
    /// From one rank to another, outside of any operation.
    Point = 2,
}

/// Ordered by operation first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The operation's number, or the label of a word between two.
    pub op: u32,
    pub stage: Stage,
    pub slice: u8,
    pub segment: u16,
}

impl Tag {
    /// A message: the bytes, then the tag.
    pub(super) fn message(self, mut bytes: Vec<u8>) -> Arc<Vec<u8>> {
        bytes.extend(self.encode());
        Arc::new(bytes)
    }

    /// The message of bytes that stay where they are.
    pub(super) fn message_of(self, bytes: &[u8]) -> Arc<Vec<u8>> {
        let mut message = Vec::with_capacity(bytes.len() + TAG_BYTES);
        message.extend_from_slice(bytes);
        self.message(message)
    }

    /// Takes the tag off a message, if it has one.
    pub(super) fn take(message: &mut Vec<u8>) -> Option<Tag> {
        let tag = Tag::decode(*message.last_chunk()?)?;
        message.truncate(message.len() - TAG_BYTES);
        Some(tag)
    }

    pub fn encode(self) -> [u8; TAG_BYTES] {
        let word = u64::from(self.op) << 32
            | u64::from(self.stage as u8) << 24
            | u64::from(self.slice) << 16
            | u64::from(self.segment);
        word.to_le_bytes()
    }

    /// `None` for a stage that is none.
    pub fn decode(bytes: [u8; TAG_BYTES]) -> Option<Tag> {
        let word = u64::from_le_bytes(bytes);
        let stage = match (word >> 24) as u8 {
            0 => Stage::Fold,
            1 => Stage::Result,
            2 => Stage::Point,
            _ => return None,
        };
        let (op, slice, segment) = ((word >> 32) as u32, (word >> 16) as u8, word as u16);
        Some(Tag { op, stage, slice, segment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let tag = Tag { op: 0x0102_0304, stage: Stage::Result, slice: 5, segment: 0x0607 };
        assert_eq!(tag.encode(), [7, 6, 5, 1, 4, 3, 2, 1]);
        assert_eq!(Tag::decode(tag.encode()), Some(tag));
        assert_eq!(Tag::decode([0, 0, 0, 3, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_message_gives_back_its_bytes() {
        let tag = Tag { op: 1, stage: Stage::Fold, slice: 2, segment: 3 };
        let mut message = tag.message_of(b"words").to_vec();
        assert_eq!((Tag::take(&mut message), message.as_slice()), (Some(tag), b"words".as_slice()));
        assert_eq!(Tag::take(&mut message), None, "too short for a tag");
    }
}
