//! The words between a node and the process that runs a model, over the child's stdin and stdout: one byte for what it
//! is, eight for its length, then the bytes. A request is written from where it lies and read to where it stays.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

/// Longest message: a model's file, which may have 2 GiB.
const MAX_BYTES: u64 = (2 << 30) + (1 << 20);
/// What is reserved before it has come, so that a wrong length reserves nothing.
const RESERVED: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// From the node: a model's file. Answered by `Loaded` or `Refused`.
    Model,
    /// From the node: packed tensors. Answered by `Answer` or `Refused`.
    Request,
    /// First from the child: what the library is, as [`Opened`].
    Opened,
    Loaded,
    Answer,
    /// It cannot, in these words.
    Refused,
}

impl Word {
    const ALL: [Word; 6] =
        [Word::Model, Word::Request, Word::Opened, Word::Loaded, Word::Answer, Word::Refused];
}

/// What a library says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Opened {
    pub(super) version: String,
    /// Hardware it may compute with, beside processors.
    pub(super) providers: Vec<String>,
}

pub(super) fn write(to: &mut impl Write, word: Word, bytes: &[u8]) -> io::Result<()> {
    let mut head = [word as u8; 9];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)?;
    to.flush()
}

pub(super) fn read(from: &mut impl Read) -> io::Result<(Word, Vec<u8>)> {
    read_into(from, Vec::new())
}

/// The same into memory that is there, in so far as it suffices: fresh memory costs more than the copy into it.
pub(super) fn read_into(from: &mut impl Read, memory: Vec<u8>) -> io::Result<(Word, Vec<u8>)> {
    let mut head = [0; 9];
    from.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let word = Word::ALL.into_iter().find(|word| *word as u8 == kind);
    let word = word.ok_or_else(|| io::Error::other(format!("a message of the kind {kind}")))?;
    let length = u64::from_le_bytes(length);
    if length > MAX_BYTES {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut bytes = memory;
    bytes.clear();
    bytes.reserve(length.min(RESERVED) as usize);
    let found = from.take(length).read_to_end(&mut bytes)?;
    if found as u64 == length {
        Ok((word, bytes))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_pipe_and_garbage_is_an_error() {
        let mut pipe = Vec::new();
        write(&mut pipe, Word::Request, b"abc").expect("memory is writable");
        write(&mut pipe, Word::Loaded, b"").expect("memory is writable");
        let used = read_into(&mut &pipe[..], vec![1; 9]).expect("a word");
        assert_eq!(used, (Word::Request, b"abc".to_vec()));
        let mut from = &pipe[..];
        assert_eq!(read(&mut from).expect("a word"), (Word::Request, b"abc".to_vec()));
        assert_eq!(read(&mut from).expect("a word"), (Word::Loaded, Vec::new()));
        assert!(read(&mut from).is_err());
        assert!(read(&mut &[9, 0, 0, 0, 0, 0, 0, 0, 0][..]).is_err());
        assert!(read(&mut &[1, 0, 0, 0, 0, 0, 0, 0, 255][..]).is_err());
        assert!(read(&mut &[1, 2, 0, 0, 0, 0, 0, 0, 0, 7][..]).is_err());
    }
}
