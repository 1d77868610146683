//! Reading and writing a file at a position, without moving a shared cursor.

use std::fs::File;
use std::io;
use std::ops::Range;

#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let wrote = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if wrote == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[wrote..];
        offset += wrote as u64;
    }
    Ok(())
}

#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        offset += read as u64;
    }
    Ok(())
}

/// Reads small pieces of a part of a file one after the other, some thousand bytes at a time.
pub(crate) struct Window<'a> {
    file: &'a File,
    part: Range<u64>,
    held: Vec<u8>,
    /// Where the bytes held begin.
    from: u64,
}

/// What a window reads at a time.
const WINDOW: u64 = 16 << 10;

impl<'a> Window<'a> {
    pub(crate) fn new(file: &'a File, part: Range<u64>) -> Window<'a> {
        Window { file, from: part.start, part, held: Vec::new() }
    }

    pub(crate) fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let end = at + into.len() as u64;
        if at < self.part.start || end > self.part.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if at < self.from || end > self.from + self.held.len() as u64 {
            let size = (self.part.end - at).min(WINDOW.max(into.len() as u64));
            (self.from, self.held) = (at, vec![0; size as usize]);
            if let Err(error) = read_exact_at(self.file, &mut self.held, at) {
                self.held.clear();
                return Err(error);
            }
        }
        let start = (at - self.from) as usize;
        into.copy_from_slice(&self.held[start..start + into.len()]);
        Ok(())
    }
}

/// Whether an error means that the disk (or the user's part of it) is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_reads_what_is_there_and_nothing_beside_its_part() {
        let path = std::env::temp_dir().join(format!("shoal-window-{}", std::process::id()));
        let bytes: Vec<u8> = (0..50_000_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("written");
        let file = File::open(&path).expect("there");
        let mut window = Window::new(&file, 10..40_000);
        for (at, len) in [(10, 8), (18, 4000), (16_390, 20), (39_990, 10), (11, 20_000), (12, 1)] {
            let mut into = vec![0; len];
            window.read(at as u64, &mut into).expect("read");
            assert_eq!(into, bytes[at..at + len], "{at}");
        }
        for (at, len) in [(9, 1), (39_999, 2), (40_000, 1)] {
            assert!(window.read(at, &mut vec![0; len]).is_err(), "{at}");
        }
        std::fs::remove_file(&path).expect("removed");
    }
}
