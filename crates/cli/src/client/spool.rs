//! Bytes that come once and only to their end, such as those of a pipe. A few stay in memory; more wait in a file, because
//! sending them means to read them twice, and again where a connection breaks.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::fail::Fail;

/// A file without a name for others, which goes with its last user.
#[derive(Debug)]
pub(crate) struct Spool {
    /// Readers of several tries take turns, each from a place of its own.
    file: Mutex<File>,
    /// Where it still has to be removed: some systems keep a file that is open.
    path: Option<PathBuf>,
}

/// All that came.
#[derive(Debug)]
pub(crate) enum Spooled {
    Memory(Vec<u8>),
    File {
        /// The first bytes once more.
        head: Vec<u8>,
        spool: Spool,
        size: u64,
    },
}

impl Spooled {
    /// Reads to the end, keeping at most so many bytes in memory. `cannot` says what a failure to read means.
    pub(crate) fn read(
        mut from: impl Read,
        most: u64,
        cannot: impl Fn(io::Error) -> Fail,
    ) -> Result<Spooled, Fail> {
        let mut head = Vec::new();
        let read = (&mut from).take(most).read_to_end(&mut head);
        let mut next = [0];
        if (read.map_err(&cannot)? as u64) < most || from.read(&mut next).map_err(&cannot)? == 0 {
            return Ok(Spooled::Memory(head));
        }
        let (mut file, path) = create()?;
        let full = |error: io::Error| Fail::writing(&std::env::temp_dir(), &error);
        file.write_all(&head).and_then(|()| file.write_all(&next)).map_err(full)?;
        let mut size = most + 1;
        let mut piece = vec![0; 1 << 20];
        loop {
            let count = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cannot(error)),
            };
            file.write_all(&piece[..count]).map_err(full)?;
            size += count as u64;
        }
        Ok(Spooled::File { head, spool: Spool { file: Mutex::new(file), path }, size })
    }
}

impl Spool {
    pub(super) fn read_exact_at(&self, piece: &mut [u8], offset: u64) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(piece)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removed at once where that can be, so that a client that is killed leaves nothing behind.
fn create() -> Result<(File, Option<PathBuf>), Fail> {
    let random = getrandom::u64()
        .map_err(|error| Fail::world("internal", format!("no random numbers: {error}")))?;
    let path = std::env::temp_dir().join(format!("shoal-spool-{random:016x}"));
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    // What comes through a pipe is nobody else's business.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).map_err(|error| Fail::writing(&path, &error))?;
    let is_gone = fs::remove_file(&path).is_ok();
    Ok((file, (!is_gone).then_some(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], most: u64) -> Spooled {
        Spooled::read(bytes, most, |error| Fail::input(error.to_string())).expect("read")
    }

    #[test]
    fn few_bytes_stay_in_memory_and_more_are_read_from_a_file() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for size in [0, 1, 999, 1000] {
            let Spooled::Memory(kept) = read(&bytes[..size], 1000) else { panic!("{size}") };
            assert!(kept == bytes[..size]);
        }
        for count in [1001, 1002, bytes.len()] {
            let all = &bytes[..count];
            let Spooled::File { head, spool, size } = read(all, 1000) else { panic!("{count}") };
            assert_eq!((head.as_slice(), size), (&all[..1000], count as u64));
            let mut found = vec![0; count];
            spool.read_exact_at(&mut found, 0).expect("all of it");
            assert!(found == all);
            spool.read_exact_at(&mut found[..1], count as u64 - 1).expect("the last byte");
            assert_eq!(found[0], all[count - 1]);
            assert!(spool.read_exact_at(&mut found[..2], count as u64 - 1).is_err());
            #[cfg(unix)]
            assert!(spool.path.is_none(), "nobody has to remove it");
        }
    }

    #[test]
    fn a_pipe_that_breaks_is_an_error() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it broke"))
            }
        }
        let from = [1; 2000].as_slice().chain(Broken);
        let fail = Spooled::read(from, 1000, |error| Fail::input(error.to_string()));
        assert!(matches!(fail, Err(Fail::Input { message, .. }) if message == "it broke"));
    }
}
