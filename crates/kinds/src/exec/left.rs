//! Files that a run left in `/out`, as bytes: for each the length of its path and its own, little-endian `u32`s, then the
//! path, with `/` between folders, then the file. In the order of their paths' bytes, so that equal runs give equal bytes.

use alloc::vec::Vec;

/// Bytes before each file.
pub const HEAD_BYTES: usize = 8;

/// What a file takes.
pub fn size(path: &str, bytes: u64) -> u64 {
    HEAD_BYTES as u64 + path.len() as u64 + bytes
}

/// Adds a file behind those that are there.
pub fn pack(into: &mut Vec<u8>, path: &str, bytes: &[u8]) {
    into.extend((path.len() as u32).to_le_bytes());
    into.extend((bytes.len() as u32).to_le_bytes());
    into.extend(path.as_bytes());
    into.extend(bytes);
}

/// The files, path first; none if these bytes are no files, or not in order. Paths are what a stranger's device says: they may
/// be anything.
pub fn unpack(bytes: &[u8]) -> Option<Vec<(&str, &[u8])>> {
    let (mut files, mut rest) = (Vec::new(), bytes);
    while let Some((path, file, after)) = first(rest) {
        if files.last().is_some_and(|(before, _)| *before >= path) {
            return None;
        }
        files.push((path, file));
        rest = after;
    }
    rest.is_empty().then_some(files)
}

fn first(bytes: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (path, rest) = rest.split_at_checked(usize::try_from(word(0)).ok()?)?;
    let (file, rest) = rest.split_at_checked(usize::try_from(word(4)).ok()?)?;
    Some((core::str::from_utf8(path).ok()?, file, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_packed_one_after_the_other() {
        let mut bytes = Vec::new();
        pack(&mut bytes, "a", b"xy");
        pack(&mut bytes, "b/c", b"");
        assert_eq!(bytes, b"\x01\0\0\0\x02\0\0\0axy\x03\0\0\0\0\0\0\0b/c");
        assert_eq!(bytes.len() as u64, size("a", 2) + size("b/c", 0));
        assert_eq!(unpack(&bytes), Some([("a", &b"xy"[..]), ("b/c", b"")].into()));
        assert_eq!(unpack(b""), Some(Vec::new()));
        for end in 1..bytes.len() {
            let torn = unpack(&bytes[..end]);
            assert_eq!(torn.is_some(), end == size("a", 2) as usize, "torn at {end}");
        }
    }

    #[test]
    fn files_out_of_order_or_twice_are_none() {
        for paths in [["b", "a"], ["a", "a"]] {
            let mut bytes = Vec::new();
            paths.iter().for_each(|path| pack(&mut bytes, path, b""));
            assert_eq!(unpack(&bytes), None);
        }
    }
}
