//! Bytes as visible letters, as byte-level vocabularies write them.

/// The letter for a byte: itself where it can be seen, else one from a row of its own.
pub(crate) fn letter(byte: u8) -> char {
    if is_plain(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !is_plain(*byte)).count();
    // At most 67 are moved, so there is always such a letter.
    char::from_u32(256 + before as u32).unwrap_or('\u{100}')
}

/// The byte of a letter.
pub(crate) fn byte(letter: char) -> Option<u8> {
    match u32::from(letter) {
        code @ 0..=255 => u8::try_from(code).ok().filter(|byte| is_plain(*byte)),
        256.. => MOVED.get((u32::from(letter) - 256) as usize).copied(),
    }
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, 33..=126 | 161..=172 | 174..=255)
}

/// Bytes that no eye sees, in order.
const MOVED: [u8; 68] = {
    let mut moved = [0; 68];
    let (mut byte, mut count) = (0, 0);
    while byte < 256 {
        if !is_plain(byte as u8) {
            moved[count] = byte as u8;
            count += 1;
        }
        byte += 1;
    }
    moved
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_letter_of_its_own() {
        for from in 0..=255 {
            assert_eq!(byte(letter(from)), Some(from), "{from}");
        }
        assert_eq!((letter(b' '), letter(b'\n'), letter(b'a')), ('Ġ', 'Ċ', 'a'));
        assert_eq!((byte(' '), byte('漢')), (None, None));
    }
}
