//! Names: small numbers for what the coordinator counts, hashes for bytes.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id! {
    /// A job, counted from 1 by the coordinator that took it.
    JobId
}
number_id! {
    /// A node, counted from 1. The same [`Identity`] gets the same number again, also after a restart.
    NodeId
}
number_id! {
    /// One lending of one unit. Never used twice: the coordinator's life is in the high bits, so that
    /// an answer from before a restart cannot be taken for a newer one. Fits a JavaScript number.
    Attempt
}

number_id! {
    /// A crew, counted from 1 by the coordinator that called it together. 0 is no crew: two nodes that
    /// only exchange blobs.
    CrewId
}

/// Counts a crew's changes of membership. What was said in an older epoch is never computed on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u32);

impl Attempt {
    /// Bits left for counting within one life of the coordinator.
    const COUNT_BITS: u32 = 32;

    pub fn new(life: u32, count: u32) -> Attempt {
        Attempt(u64::from(life) << Self::COUNT_BITS | u64::from(count))
    }
}

/// Who a node is: the Ed25519 public key of a pair it made once and keeps. Its greeting proves that it has
/// the other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity(pub [u8; 32]);

/// The BLAKE3 hash of some bytes, which is also their name in the blob store. Written as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hash(pub [u8; 32]);

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAHash;

impl fmt::Display for NotAHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a BLAKE3 hash: 64 hexadecimal digits")
    }
}

impl FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Hash, NotAHash> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(NotAHash);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
        }
        Ok(Hash(bytes))
    }
}

fn hex_digit(digit: u8) -> Result<u8, NotAHash> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(NotAHash),
    }
}

/// Stored bytes: their name and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlobRef {
    pub hash: Hash,
    pub size: u64,
}

/// Some consecutive items of a job: elements of a map, tiles of a render, inputs of an exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    pub start: u64,
    pub len: u64,
}

impl Span {
    pub fn new(start: u64, len: u64) -> Span {
        Span { start, len }
    }

    /// The first item after the span. Saturates, because spans also come off the wire.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end())
    }
}

/// Cuts a text from a peer to at most `most` bytes, on a character boundary.
pub fn clip(mut text: String, most: usize) -> String {
    if text.len() > most {
        let cut = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_hash_reads_back_what_it_writes() {
        let hash = Hash(core::array::from_fn(|i| i as u8 * 7));
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!("zz".parse::<Hash>(), Err(NotAHash));
    }

    #[test]
    fn attempts_of_a_later_life_are_larger_and_fit_a_javascript_number() {
        assert!(Attempt::new(2, 0) > Attempt::new(1, u32::MAX));
        assert!(Attempt::new(1 << 20, u32::MAX).0 < 1 << 53);
    }

    #[test]
    fn clip_never_cuts_a_character() {
        assert_eq!(clip("aé".into(), 2), "a");
        assert_eq!(clip("ab".into(), 2), "ab");
    }
}
