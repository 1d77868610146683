//! Files that a run left in `/out`, as bytes: for each the length of its path and its own, little-endian `u32`s, then the
//! path, with `/` between folders, then the file. In the order of their paths' bytes, so that equal runs give equal bytes.
//! They come from strangers' devices: whoever reads them goes by [`walk`], which takes nothing else and needs no memory.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

/// Bytes before each file.
pub const HEAD_BYTES: usize = 8;
/// Most files that a run leaves.
pub const MAX_FILES: usize = 16_384;
/// Longest path of one.
pub const MAX_PATH: usize = 4095;

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

/// Why some bytes are not the files of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They end within a file, or before one.
    Torn,
    /// A path is empty, too long or no UTF-8.
    Path,
    /// A path does not come behind the one before it.
    Order,
    /// A path leads through another file.
    Through,
    TooMany,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Torn => f.write_str("the lengths of its files do not make their size"),
            Fault::Path => {
                write!(f, "the path of a file is empty, no UTF-8, or longer than {MAX_PATH} bytes")
            }
            Fault::Order => f.write_str("its files are not in the order of their paths"),
            Fault::Through => f.write_str("one of its files is the folder of another"),
            Fault::TooMany => write!(f, "it left more than {MAX_FILES} files"),
        }
    }
}

/// Goes through `size` bytes of files, which `read` copies from a place on, and hands over each path with the place and the
/// size of its file. Gives what is wrong with them: those before were right.
pub fn walk<E>(
    size: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    mut each: impl FnMut(&str, u64, u64),
) -> Result<Option<Fault>, E> {
    let (mut at, mut count) = (0_u64, 0);
    let (mut paths, mut path) = (Paths::new(), [0; MAX_PATH]);
    while at < size {
        if size - at < HEAD_BYTES as u64 {
            return Ok(Some(Fault::Torn));
        }
        if count == MAX_FILES {
            return Ok(Some(Fault::TooMany));
        }
        let mut head = [0; HEAD_BYTES];
        read(at, &mut head)?;
        let [a, b, c, d, e, f, g, h] = head;
        let (length, bytes) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let Some(path) = path.get_mut(..length as usize).filter(|path| !path.is_empty()) else {
            return Ok(Some(Fault::Path));
        };
        let from = at + (HEAD_BYTES + path.len()) as u64;
        let end = from + u64::from(bytes);
        if end > size {
            return Ok(Some(Fault::Torn));
        }
        read(at + HEAD_BYTES as u64, path)?;
        let Ok(text) = core::str::from_utf8(path) else { return Ok(Some(Fault::Path)) };
        if let Some(fault) = paths.next(path) {
            return Ok(Some(fault));
        }
        each(text, from, u64::from(bytes));
        (at, count) = (end, count + 1);
    }
    Ok(None)
}

/// The paths so far: the last one, and which of its beginnings are files too. Between a folder and what is in it others may
/// sort (`a`, `a-b`, `a/b`), but all of these begin as the folder is called.
struct Paths {
    last: [u8; MAX_PATH],
    length: usize,
    /// A bit for each length.
    files: [u64; MAX_PATH / 64 + 1],
}

impl Paths {
    fn new() -> Paths {
        Paths { last: [0; MAX_PATH], length: 0, files: [0; MAX_PATH / 64 + 1] }
    }

    /// Takes one that is not too long.
    fn next(&mut self, path: &[u8]) -> Option<Fault> {
        let last = &self.last[..self.length];
        if last >= path {
            return Some(Fault::Order);
        }
        let common = last.iter().zip(path).take_while(|(a, b)| a == b).count();
        for length in common + 1..=self.length {
            self.files[length / 64] &= !(1 << (length % 64));
        }
        let mut folders = (0..).zip(path).take(common + 1).filter(|(_, byte)| **byte == b'/');
        if folders.any(|(length, _): (usize, _)| self.files[length / 64] >> (length % 64) & 1 == 1)
        {
            return Some(Fault::Through);
        }
        self.last[..path.len()].copy_from_slice(path);
        self.length = path.len();
        self.files[path.len() / 64] |= 1 << (path.len() % 64);
        None
    }
}

/// The files, path first; none if these bytes are no files.
pub fn unpack(bytes: &[u8]) -> Option<Vec<(&str, &[u8])>> {
    let mut files = Vec::new();
    let fault = walk(bytes.len() as u64, from_slice(bytes), |path, at, size| {
        let (at, size) = (at as usize, size as usize);
        // Not the walk's own copy of it.
        let path = core::str::from_utf8(&bytes[at - path.len()..at]).unwrap_or_default();
        files.push((path, &bytes[at..at + size]));
    });
    let Ok(fault) = fault;
    fault.is_none().then_some(files)
}

/// Reads from bytes that are at hand. Nobody may ask for more than there are.
pub fn from_slice(bytes: &[u8]) -> impl FnMut(u64, &mut [u8]) -> Result<(), Infallible> {
    |at, into| {
        let at = at as usize;
        into.copy_from_slice(&bytes[at..at + into.len()]);
        Ok(())
    }
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

    fn fault(paths: &[&str]) -> Option<Fault> {
        let mut bytes = Vec::new();
        paths.iter().for_each(|path| pack(&mut bytes, path, b""));
        let Ok(fault) = walk(bytes.len() as u64, from_slice(&bytes), |_, _, _| {});
        assert_eq!(unpack(&bytes).is_none(), fault.is_some());
        fault
    }

    #[test]
    fn files_out_of_order_or_twice_are_none() {
        for paths in [["b", "a"], ["a", "a"], ["a/b", "a"]] {
            assert_eq!(fault(&paths), Some(Fault::Order), "{paths:?}");
        }
    }

    #[test]
    fn no_file_is_the_folder_of_another_whatever_sorts_between_them() {
        for wrong in [
            &["a", "a/b"][..],
            &["a", "a-b", "a/b"],
            &["a", "a-", "a-b", "a-b/c"],
            &["a", "a!/x", "a-b", "a/b/c"],
            &["a/b", "a/b-", "a/b/c/d"],
        ] {
            assert_eq!(fault(wrong), Some(Fault::Through), "{wrong:?}");
        }
        for right in [
            &["a-b", "a/b", "a0", "b/a"][..],
            &["a", "aa/b", "ab", "b/a"],
            &["a/b", "a/c", "b", "c/b"],
            &["ab", "b", "b-/a"],
        ] {
            assert_eq!(fault(right), None, "{right:?}");
        }
    }

    #[test]
    fn paths_have_bounds_and_so_has_their_number() {
        assert_eq!(fault(&[""]), Some(Fault::Path));
        let long = "a".repeat(MAX_PATH);
        assert_eq!(fault(&[&long]), None);
        assert_eq!(fault(&[&long, &alloc::format!("{long}a")]), Some(Fault::Path));
        assert_eq!(unpack(b"\x01\0\0\0\0\0\0\0\xff"), None, "no UTF-8");
        let names: Vec<_> = (0..=MAX_FILES).map(|at| alloc::format!("{at:06}")).collect();
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        assert_eq!(fault(&names[..MAX_FILES]), None);
        assert_eq!(fault(&names), Some(Fault::TooMany));
    }

    #[test]
    fn lengths_that_reach_too_far_are_never_followed() {
        let mut bytes = Vec::new();
        pack(&mut bytes, "a", b"xy");
        for at in [0, 4] {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            assert_eq!(unpack(&wrong), None);
        }
    }
}
