//! Where the lines of a text end, so that a unit can fetch just its own.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The ends of groups of lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// Little-endian `u64`s: where each item ends.
    pub(super) ends: Vec<u8>,
    pub(super) items: u64,
    /// Bytes of the longest item.
    pub(super) longest: u64,
}

/// Finds the items of a text that comes piece by piece; a last line without a newline counts.
pub(super) struct Finder {
    lines: Lines,
    /// Lines of an item.
    per_item: u64,
    /// No more items than one beyond this are looked for.
    most: u64,
    /// Bytes seen, and where the present item began.
    at: u64,
    start: u64,
    in_item: u64,
}

impl Finder {
    pub(super) fn new(per_item: u64, most: u64) -> Finder {
        Finder { lines: Lines::default(), per_item, most, at: 0, start: 0, in_item: 0 }
    }

    /// Whether it wants more.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        let newlines = piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        for (offset, _) in newlines {
            self.in_item += 1;
            if self.in_item == self.per_item {
                let end = self.at + offset as u64 + 1;
                self.lines.add(self.start, end);
                (self.start, self.in_item) = (end, 0);
            }
        }
        self.at += piece.len() as u64;
        self.lines.items <= self.most
    }

    pub(super) fn finish(mut self) -> Lines {
        if self.at > self.start {
            self.lines.add(self.start, self.at);
        }
        self.lines
    }
}

impl Lines {
    fn add(&mut self, start: u64, end: u64) {
        self.ends.extend(end.to_le_bytes());
        self.items += 1;
        self.longest = self.longest.max(end - start);
    }
}

/// What people call an item.
pub(super) fn words(item: u64, per_run: u64) -> String {
    let first = item.saturating_mul(per_run).saturating_add(1);
    match per_run {
        1 => format!("line {first}"),
        _ => format!("lines {first} to {}", first.saturating_add(per_run - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, per_item: u64) -> Lines {
        let mut finder = Finder::new(per_item, 100);
        // In small pieces: lines go over their ends.
        text.as_bytes().chunks(3).for_each(|piece| assert!(finder.push(piece)));
        finder.finish()
    }

    fn ends(text: &str, per_item: u64) -> Vec<u64> {
        let lines = find(text, per_item);
        let ends = lines.ends.chunks_exact(8);
        let ends = ends.map(|b| u64::from_le_bytes(b.try_into().expect("eight")));
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
        assert_eq!(find("1\n22222\n", 1).longest, 6);
        assert_eq!((words(4, 1), words(4, 10)), ("line 5".into(), "lines 41 to 50".into()));
    }
}
