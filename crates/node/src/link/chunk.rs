//! The words of a link, inside a frame's payload: always what arrived so far and how much more may come,
//! often a chunk of a message.
//!
//! Layout, numbers little-endian: flags u8, next u64, have u128, granted u64; then by flag: echo u64; refused
//! channel u16 and message u64; chunk number u64, message u64, total u64 (first), hash (last), bytes.

use alloc::vec::Vec;
use shoal_protocol::Hash;
use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::limit::{CHUNK_BYTES, MAX_LINK_FRAME, SEAL_BYTES};

const PROBE: u8 = 1;
const ECHO: u8 = 2;
const REFUSED: u8 = 4;
const CHUNK: u8 = 8;
const FIRST: u8 = 16;
const LAST: u8 = 32;
const KNOWN: u8 = PROBE | ECHO | REFUSED | CHUNK | FIRST | LAST;

/// Bytes of all words but a chunk's own.
pub(super) const MOST_WORDS: usize = 1 + 8 + 16 + 8 + 8 + 10 + 8 + 8 + 8 + 32;
// A chunk with every word still is one frame.
const _: () = assert!(HEADER_BYTES + MOST_WORDS + CHUNK_BYTES + SEAL_BYTES <= MAX_LINK_FRAME);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words<'a> {
    /// Every chunk below this number arrived.
    pub(super) next: u64,
    /// Bit `i`: chunk `next + 1 + i` arrived too.
    pub(super) have: u128,
    /// How many bytes of chunks the peer may send in this epoch, counted from its start.
    pub(super) granted: u64,
    /// Wants an echo, on the same path, at once.
    pub(super) probe: bool,
    /// The sequence number of the last frame that wanted an echo.
    pub(super) echo: Option<u64>,
    /// This message of this channel failed its hash: send it again, and what came after it.
    pub(super) refused: Option<(u16, u64)>,
    pub(super) chunk: Option<Chunk<'a>>,
}

/// A piece of a message. Its channel is in the frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    /// Counts the chunks of the link in this epoch.
    pub(super) number: u64,
    /// Counts the messages of the channel in this epoch.
    pub(super) message: u64,
    /// The first piece says how many bytes the message has.
    pub(super) total: Option<u64>,
    /// The last piece says what the message hashes to.
    pub(super) hash: Option<Hash>,
    pub(super) bytes: &'a [u8],
}

impl<'a> Words<'a> {
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        to.push(self.flags());
        to.extend(self.next.to_le_bytes());
        to.extend(self.have.to_le_bytes());
        to.extend(self.granted.to_le_bytes());
        if let Some(echo) = self.echo {
            to.extend(echo.to_le_bytes());
        }
        if let Some((channel, message)) = self.refused {
            to.extend(channel.to_le_bytes());
            to.extend(message.to_le_bytes());
        }
        let Some(chunk) = self.chunk else { return };
        to.extend(chunk.number.to_le_bytes());
        to.extend(chunk.message.to_le_bytes());
        if let Some(total) = chunk.total {
            to.extend(total.to_le_bytes());
        }
        if let Some(hash) = chunk.hash {
            to.extend(hash.0);
        }
        to.extend_from_slice(chunk.bytes);
    }

    fn flags(&self) -> u8 {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        flag(self.probe, PROBE)
            | flag(self.echo.is_some(), ECHO)
            | flag(self.refused.is_some(), REFUSED)
            | flag(self.chunk.is_some(), CHUNK)
            | flag(self.chunk.is_some_and(|chunk| chunk.total.is_some()), FIRST)
            | flag(self.chunk.is_some_and(|chunk| chunk.hash.is_some()), LAST)
    }

    /// `None` for bytes that are no words.
    pub(super) fn decode(payload: &'a [u8]) -> Option<Words<'a>> {
        let mut rest = payload;
        let [flags] = part::<1>(&mut rest)?;
        if flags & !KNOWN != 0 {
            return None;
        }
        let has = |bit: u8| flags & bit != 0;
        let next = number(&mut rest)?;
        let have = u128::from_le_bytes(part(&mut rest)?);
        let granted = number(&mut rest)?;
        let echo = if has(ECHO) { Some(number(&mut rest)?) } else { None };
        let refused = if has(REFUSED) {
            let channel = u16::from_le_bytes(part(&mut rest)?);
            Some((channel, number(&mut rest)?))
        } else {
            None
        };
        let chunk = if has(CHUNK) {
            Some(Chunk {
                number: number(&mut rest)?,
                message: number(&mut rest)?,
                total: if has(FIRST) { Some(number(&mut rest)?) } else { None },
                hash: if has(LAST) { Some(Hash(part(&mut rest)?)) } else { None },
                bytes: core::mem::take(&mut rest),
            })
        } else {
            None
        };
        let nothing_left = rest.is_empty() && (has(CHUNK) || !has(FIRST) && !has(LAST));
        nothing_left.then_some(Words {
            next,
            have,
            granted,
            probe: has(PROBE),
            echo,
            refused,
            chunk,
        })
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    part(rest).map(u64::from_le_bytes)
}

fn part<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (part, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words<'static> {
        Words { next: 1, have: 2, granted: 3, probe: true, echo: None, refused: None, chunk: None }
    }

    fn bytes(words: &Words) -> Vec<u8> {
        let mut bytes = Vec::new();
        words.encode(&mut bytes);
        bytes
    }

    #[test]
    fn golden_bytes() {
        let expected: Vec<u8> =
            [[1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0].as_slice(), &[0; 14], &[3, 0, 0, 0, 0, 0, 0, 0]]
                .concat();
        assert_eq!(bytes(&words()), expected);
    }

    #[test]
    fn every_word_survives_the_trip() {
        let chunk = Chunk {
            number: 7,
            message: 8,
            total: Some(9),
            hash: Some(Hash([10; 32])),
            bytes: &[11; 12],
        };
        for choice in 0..32 {
            let some = |bit: u8| choice & bit != 0;
            let words = Words {
                probe: some(1),
                echo: some(2).then_some(4),
                refused: some(4).then_some((5, 6)),
                chunk: some(8).then_some(Chunk {
                    total: chunk.total.filter(|_| some(16)),
                    hash: chunk.hash.filter(|_| !some(16)),
                    ..chunk
                }),
                ..words()
            };
            assert_eq!(Words::decode(&bytes(&words)), Some(words));
        }
        let most = Words { echo: Some(4), refused: Some((5, 6)), chunk: Some(chunk), ..words() };
        assert_eq!(bytes(&most).len(), MOST_WORDS + chunk.bytes.len());
    }

    #[test]
    fn cut_long_and_unknown_words_are_none() {
        let good = bytes(&Words { echo: Some(4), refused: Some((5, 6)), ..words() });
        for length in 0..good.len() {
            assert_eq!(Words::decode(&good[..length]), None);
        }
        assert_eq!(Words::decode(&[good.as_slice(), &[0]].concat()), None, "bytes after the words");
        let mut unknown = bytes(&words());
        unknown[0] |= 64;
        assert_eq!(Words::decode(&unknown), None);
        unknown[0] = FIRST;
        assert_eq!(Words::decode(&unknown), None, "a first piece of nothing");
    }
}
