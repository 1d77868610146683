//! Where the lines of a text end, so that a unit can fetch just its own.

use std::io::{self, Read};

/// Read at a time.
const CHUNK: usize = 256 << 10;

/// The ends of groups of lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// Little-endian `u64`s: where each item ends.
    pub(super) ends: Vec<u8>,
    pub(super) items: u64,
    /// Bytes of the longest item.
    pub(super) longest: u64,
}

/// Finds the items of a text; a last line without a newline counts. Stops after `most`.
pub(super) fn find(mut text: impl Read, per_item: u64, most: u64) -> io::Result<Lines> {
    let mut lines = Lines::default();
    let mut buffer = vec![0; CHUNK];
    let (mut at, mut start, mut in_item) = (0_u64, 0_u64, 0_u64);
    while lines.items <= most {
        let read = text.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        let newlines = buffer[..read].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        for (offset, _) in newlines {
            in_item += 1;
            if in_item == per_item {
                let end = at + offset as u64 + 1;
                lines.add(start, end);
                (start, in_item) = (end, 0);
            }
        }
        at += read as u64;
    }
    if at > start {
        lines.add(start, at);
    }
    Ok(lines)
}

impl Lines {
    fn add(&mut self, start: u64, end: u64) {
        self.ends.extend(end.to_le_bytes());
        self.items += 1;
        self.longest = self.longest.max(end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str, per_item: u64) -> Vec<u64> {
        let lines = find(text.as_bytes(), per_item, 100).unwrap();
        let ends = lines.ends.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap()));
        assert_eq!(lines.items, lines.ends.len() as u64 / 8);
        ends.collect()
    }

    #[test]
    fn each_line_is_an_item_with_its_newline() {
        assert_eq!(ends("a\nbc\n", 1), [2, 5]);
        assert_eq!(ends("a\nbc", 1), [2, 4]);
        assert_eq!(ends("\n\n", 1), [1, 2]);
        assert_eq!(ends("", 1), [] as [u64; 0]);
    }

    #[test]
    fn lines_can_be_grouped() {
        assert_eq!(ends("1\n2\n3\n4\n5\n", 2), [4, 8, 10]);
        assert_eq!(find("1\n22222\n".as_bytes(), 1, 100).unwrap().longest, 6);
    }
}
