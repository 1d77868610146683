//! The seal of a stream between two nodes: records in order, ChaCha20-Poly1305, numbered by counting. Each end gave
//! half of the secret over a link that was sealed already, so whoever can seal here is the peer there.
//!
//! A record is a head of four bytes (how many follow, little-endian) and the sealed words with their tag. Keys are made
//! anew for every connection from what both ends drew for it: no number is ever used twice with one key, and what was
//! said on one connection means nothing on another.

use alloc::vec::Vec;

use shoal_protocol::limit::{MAX_LINK_FRAME, SEAL_BYTES};
use shoal_protocol::{Hash, Hasher};

use crate::cipher::{Cipher, Nonce};

/// Bytes of a record's head.
pub const RECORD_HEAD: usize = 4;

const ID: &[u8] = b"shoal stream 1: which call";
const CALLER: &[u8] = b"shoal stream 1: what the caller says";
const CALLED: &[u8] = b"shoal stream 1: what the called one says";

/// What makes streams of one call these two nodes' alone.
#[derive(Clone)]
pub struct Halves {
    pub dials: [u8; 32],
    pub listens: [u8; 32],
}

/// What the two ends of one connection drew for it. The caller is who opened the connection, which either may.
#[derive(Clone, Copy)]
pub struct Salts {
    pub caller: [u8; 32],
    pub called: [u8; 32],
}

pub struct Sealer(Numbered);
pub struct Opener(Numbered);

struct Numbered {
    cipher: Cipher,
    next: u64,
}

impl Halves {
    /// Names the call. It goes over the network in the clear and gives nothing away.
    pub fn id(&self) -> [u8; 16] {
        let Hash(whole) = self.derive(ID, &[]);
        let mut id = [0; 16];
        id.copy_from_slice(&whole[..16]);
        id
    }

    /// For one connection, at the end that opened it (`calls`) or took it.
    pub fn seal(&self, salts: &Salts, calls: bool) -> (Sealer, Opener) {
        let one = Numbered::new(self.derive(CALLER, &[&salts.caller, &salts.called]));
        let two = Numbered::new(self.derive(CALLED, &[&salts.caller, &salts.called]));
        if calls { (Sealer(one), Opener(two)) } else { (Sealer(two), Opener(one)) }
    }

    /// All parts are of fixed length but the first, and no first is the beginning of another.
    fn derive(&self, what: &[u8], salts: &[&[u8; 32]]) -> Hash {
        let mut hasher = Hasher::new();
        hasher.update(what);
        hasher.update(&self.dials);
        hasher.update(&self.listens);
        salts.iter().for_each(|salt| hasher.update(*salt));
        hasher.finish()
    }
}

impl Numbered {
    fn new(Hash(key): Hash) -> Numbered {
        Numbered { cipher: Cipher::new(&key), next: 0 }
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = Nonce::default();
        nonce[4..].copy_from_slice(&self.next.to_le_bytes());
        self.next += 1;
        nonce
    }
}

impl Sealer {
    /// Appends a record. Whether it could be sealed; if not, nothing is appended and the stream is of no use.
    pub fn seal(&mut self, words: &[u8], into: &mut Vec<u8>) -> bool {
        if words.len() > MAX_LINK_FRAME {
            return false;
        }
        let begin = into.len();
        let head = ((words.len() + SEAL_BYTES) as u32).to_le_bytes();
        into.extend_from_slice(&head);
        into.extend_from_slice(words);
        let nonce = self.0.nonce();
        match self.0.cipher.seal(nonce, &head, &mut into[begin + RECORD_HEAD..]) {
            Some(tag) => into.extend_from_slice(&tag),
            None => into.truncate(begin),
        }
        into.len() > begin
    }
}

impl Opener {
    /// How many bytes follow this head; `None` if no record has such a head.
    pub fn length(head: [u8; RECORD_HEAD]) -> Option<usize> {
        let length = u32::from_le_bytes(head) as usize;
        (SEAL_BYTES..=MAX_LINK_FRAME + SEAL_BYTES).contains(&length).then_some(length)
    }

    /// The words of the next record; `None` if the peer did not seal it, or not as the next.
    pub fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (words, tag) = sealed.split_last_chunk::<SEAL_BYTES>()?;
        let head = (sealed.len() as u32).to_le_bytes();
        let mut opened = Vec::new();
        let nonce = self.0.nonce();
        self.0.cipher.open(nonce, &head, (words, tag), &mut opened)?;
        Some(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SALTS: Salts = Salts { caller: [3; 32], called: [4; 32] };

    fn halves() -> Halves {
        Halves { dials: [1; 32], listens: [2; 32] }
    }

    fn record(sealer: &mut Sealer, words: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        assert!(sealer.seal(words, &mut record));
        record
    }

    #[test]
    fn both_ends_understand_each_other_in_order() {
        let (mut out, mut back) = halves().seal(&SALTS, true);
        let (mut answers, mut hears) = halves().seal(&SALTS, false);
        for words in [b"first".as_slice(), b"", b"third"] {
            let sealed = record(&mut out, words);
            assert_eq!(
                Opener::length(*sealed.first_chunk().expect("a head")),
                Some(sealed.len() - 4)
            );
            assert_eq!(hears.open(&sealed[4..]).as_deref(), Some(words));
            let sealed = record(&mut answers, words);
            assert_eq!(back.open(&sealed[4..]).as_deref(), Some(words));
        }
    }

    #[test]
    fn what_is_left_out_doubled_or_turned_round_does_not_open() {
        let (mut out, mut back) = halves().seal(&SALTS, true);
        let (one, two) = (record(&mut out, b"one"), record(&mut out, b"two"));
        assert!(back.open(&one[4..]).is_none(), "sent back to who said it");
        let (_, mut hears) = halves().seal(&SALTS, false);
        assert!(hears.open(&two[4..]).is_none(), "the first was left out");
        let (_, mut hears) = halves().seal(&SALTS, false);
        assert!(hears.open(&one[4..]).is_some());
        assert!(hears.open(&one[4..]).is_none(), "said twice");
    }

    #[test]
    fn another_connection_and_another_call_have_other_keys() {
        let (mut out, _) = halves().seal(&SALTS, true);
        let sealed = record(&mut out, b"words");
        let again = Salts { called: [5; 32], ..SALTS };
        assert!(halves().seal(&again, false).1.open(&sealed[4..]).is_none());
        let other = Halves { listens: [9; 32], ..halves() };
        assert!(other.seal(&SALTS, false).1.open(&sealed[4..]).is_none());
        assert_ne!(other.id(), halves().id());
    }

    #[test]
    fn heads_that_no_record_has_are_refused() {
        for length in [0, SEAL_BYTES - 1, MAX_LINK_FRAME + SEAL_BYTES + 1, u32::MAX as usize] {
            assert_eq!(Opener::length((length as u32).to_le_bytes()), None);
        }
        let mut record = Vec::new();
        assert!(!halves().seal(&SALTS, true).0.seal(&[0; MAX_LINK_FRAME + 1], &mut record));
        assert!(record.is_empty());
    }

    proptest! {
        #[test]
        fn garbage_never_opens(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(halves().seal(&SALTS, false).1.open(&bytes).is_none());
        }
    }
}
