//! The words of channel 0: tokens, and what radios say to each other.
//!
//! Layout: kind u8; then of a token its bytes, of a radio's words the dial they belong to (u32, little-endian)
//! and the words, of a channel that is gone its dial.

use alloc::vec::Vec;

/// The channel of the mesh itself. Programs have the others.
pub const CONTROL: u16 = 0;
/// Words of a radio in one message: an SDP with its candidates has a few kB.
pub const MAX_RADIO_BYTES: usize = 64 << 10;

const TOKEN: u8 = 1;
const RADIO: u8 = 2;
const NO_RADIO: u8 = 3;
const HUNG: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control<'a> {
    /// This is what I may do.
    Token(&'a [u8]),
    /// For your radio.
    Radio { dial: u32, words: &'a [u8] },
    /// There is none here: do not dial again.
    NoRadio,
    /// The channel of this dial is gone here; the other end of a frozen or killed radio may not know.
    Hung { dial: u32 },
    /// A newer peer's word: skipped.
    Unknown,
}

impl<'a> Control<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Control::Token(token) => [&[TOKEN], *token].concat(),
            Control::Radio { dial, words } => {
                [[RADIO].as_slice(), &dial.to_le_bytes(), words].concat()
            }
            Control::NoRadio => [NO_RADIO].to_vec(),
            Control::Hung { dial } => [[HUNG].as_slice(), &dial.to_le_bytes()].concat(),
            Control::Unknown => Vec::new(),
        }
    }

    /// `None` for bytes that are no word.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Control<'a>> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            TOKEN => Some(Control::Token(rest)),
            RADIO => {
                let (dial, words) = rest.split_first_chunk()?;
                let dial = u32::from_le_bytes(*dial);
                (words.len() <= MAX_RADIO_BYTES).then_some(Control::Radio { dial, words })
            }
            NO_RADIO => rest.is_empty().then_some(Control::NoRadio),
            HUNG => {
                let dial = u32::from_le_bytes(rest.try_into().ok()?);
                Some(Control::Hung { dial })
            }
            _ => Some(Control::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn golden_bytes() {
        let radio = Control::Radio { dial: 0x0102, words: b"hi" };
        assert_eq!(radio.encode(), [2, 2, 1, 0, 0, b'h', b'i']);
        let (token, empty) = (Control::Token(b"t"), Control::Token(b""));
        for control in [radio, token, empty, Control::NoRadio, Control::Hung { dial: 7 }] {
            assert_eq!(Control::decode(&control.encode()), Some(control));
        }
    }

    #[test]
    fn garbage_is_told_from_a_newer_peers_words() {
        assert_eq!(Control::decode(&[]), None);
        assert_eq!(Control::decode(&[RADIO, 1, 0, 0]), None);
        assert_eq!(Control::decode(&[NO_RADIO, 1]), None);
        assert_eq!(Control::decode(&[HUNG, 1, 0, 0]), None);
        assert_eq!(Control::decode(&vec![RADIO; 6 + MAX_RADIO_BYTES]), None);
        assert_eq!(Control::decode(&[99, 1]), Some(Control::Unknown));
    }
}
