//! The seal of a frame: ChaCha20-Poly1305, the header bound to it, the frame's own number as nonce.

use alloc::vec::Vec;
use core::fmt;

use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::limit::SEAL_BYTES;

use crate::cipher::{Cipher, Nonce};

/// Where a header has the frame's sequence number.
const SEQUENCE_AT: core::ops::Range<usize> = 40..48;

/// What two nodes agreed on: one key for each direction. Whoever seals must never use a sequence number
/// twice; the link counts them.
#[derive(Clone)]
pub struct Seal {
    outgoing: Cipher,
    incoming: Cipher,
    id: u64,
}

impl Seal {
    pub(crate) fn new(outgoing: &[u8; 32], incoming: &[u8; 32], id: u64) -> Seal {
        Seal { outgoing: Cipher::new(outgoing), incoming: Cipher::new(incoming), id }
    }

    /// Names this agreement. Both nodes have the same, nobody can choose it, and it gives nothing away.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Seals a frame in place: header, then words. The header must count the tag already, which is appended.
    /// Bytes too short for a header are no frame and are left as they are.
    pub fn seal(&self, frame: &mut Vec<u8>) {
        let Some((header, words)) = frame.split_first_chunk_mut::<HEADER_BYTES>() else { return };
        match self.outgoing.seal(nonce(header), header, words) {
            Some(tag) => frame.extend_from_slice(&tag),
            // Then the frame is worthless and must not go out in the clear.
            None => frame.clear(),
        }
    }

    /// Opens a sealed frame into a buffer, which grows to hold the words and is not emptied: they are what is
    /// returned. The frame stays as it is, so that another seal can be tried.
    pub fn open<'a>(&self, frame: &[u8], into: &'a mut Vec<u8>) -> Result<&'a [u8], SealError> {
        let short = SealError::Short(frame.len());
        let (header, sealed) = frame.split_first_chunk::<HEADER_BYTES>().ok_or(short)?;
        let (words, tag) = sealed.split_last_chunk::<SEAL_BYTES>().ok_or(short)?;
        self.incoming.open(nonce(header), header, (words, tag), into).ok_or(SealError::Closed)
    }
}

/// Never shows the keys.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal({:016x})", self.id)
    }
}

/// As Noise has it: four bytes of zero, then the number.
fn nonce(header: &[u8; HEADER_BYTES]) -> Nonce {
    let mut nonce = Nonce::default();
    nonce[4..].copy_from_slice(&header[SEQUENCE_AT]);
    nonce
}

/// Why a frame does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    Short(usize),
    /// Sealed with another key, or changed on its way.
    Closed,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SealError::Short(size) => {
                let least = HEADER_BYTES + SEAL_BYTES;
                write!(f, "a sealed frame of {size} bytes; header and tag alone have {least}")
            }
            SealError::Closed => {
                f.write_str("a frame that is sealed with another key or was changed on its way")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shoal_protocol::{CrewId, Epoch, FrameKind, Header, NodeId};

    fn pair() -> (Seal, Seal) {
        (Seal::new(&[1; 32], &[2; 32], 9), Seal::new(&[2; 32], &[1; 32], 9))
    }

    fn frame(sequence: u64, words: &[u8]) -> Vec<u8> {
        let header = Header {
            kind: FrameKind::Sealed,
            channel: 3,
            length: (words.len() + SEAL_BYTES) as u32,
            source: NodeId(1),
            destination: NodeId(2),
            crew: CrewId(4),
            epoch: Epoch(5),
            sequence,
        };
        [header.encode().as_slice(), words].concat()
    }

    #[test]
    fn what_is_sealed_opens_on_the_other_end_only() {
        let (one, two) = pair();
        let mut sealed = frame(7, b"words");
        one.seal(&mut sealed);
        assert!(shoal_protocol::frame::split(&sealed).is_ok(), "the header counts the tag");
        assert!(!sealed.windows(5).any(|window| window == b"words"));
        assert_eq!(
            one.open(&sealed, &mut Vec::new()),
            Err(SealError::Closed),
            "sent back to its sender"
        );
        let other = Seal::new(&[2; 32], &[3; 32], 9);
        assert_eq!(other.open(&sealed, &mut Vec::new()), Err(SealError::Closed));
        assert_eq!(two.open(&sealed, &mut Vec::new()), Ok(b"words".as_slice()));
    }

    #[test]
    fn golden_bytes() {
        // As OpenSSL seals the same: key of ones, nonce of four zeros and the number, header as associated data.
        let expected = [
            [76, 207, 146, 132, 22, 30, 178].as_slice(),
            &[254, 145, 94, 144, 125, 152, 71],
            &[76, 245, 79, 57, 189, 153, 62],
        ];
        let mut sealed = frame(7, b"words");
        pair().0.seal(&mut sealed);
        assert_eq!(sealed[HEADER_BYTES..], expected.concat());
    }

    #[test]
    fn the_number_is_the_nonce() {
        let (one, _) = pair();
        let (mut first, mut second) = (frame(1, b"words"), frame(2, b"words"));
        one.seal(&mut first);
        one.seal(&mut second);
        assert_ne!(first[HEADER_BYTES..], second[HEADER_BYTES..]);
    }

    #[test]
    fn every_changed_bit_keeps_it_closed() {
        let (one, two) = pair();
        let mut sealed = frame(7, b"words");
        one.seal(&mut sealed);
        for at in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert_eq!(two.open(&changed, &mut Vec::new()), Err(SealError::Closed), "bit {at}");
        }
        for length in 0..sealed.len() {
            assert!(two.open(&sealed[..length], &mut Vec::new()).is_err(), "cut to {length} bytes");
        }
        assert_eq!(two.open(&[0; 20], &mut Vec::new()), Err(SealError::Short(20)));
        let mut nothing = Vec::new();
        one.seal(&mut nothing);
        assert!(nothing.is_empty(), "no frame, nothing sealed");
    }

    proptest! {
        #[test]
        fn words_survive_the_trip(words in prop::collection::vec(any::<u8>(), 0..2000), sequence: u64) {
            let (one, two) = pair();
            let mut sealed = frame(sequence, &words);
            one.seal(&mut sealed);
            let mut opened = Vec::new();
            prop_assert_eq!(two.open(&sealed, &mut opened), Ok(words.as_slice()));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(pair().1.open(&bytes, &mut Vec::new()).is_err());
        }
    }
}
