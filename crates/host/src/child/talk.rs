//! The words between a node and a process that computes for it, over the child's stdin and stdout: one byte for what it
//! is, eight for its length, then the bytes. A request is written from where it lies and read to where it stays.

use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Longest message: a model's file or a tensor, which may have 2 GiB.
const MAX_BYTES: u64 = (2 << 30) + (1 << 20);
/// What is reserved before it has come, so that a wrong length reserves nothing.
const RESERVED: u64 = 64 << 20;
/// What a driver may take to wind up.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// From the node: bytes of a model's file. Answered by `Answer` or `Refused`, as all that it says.
    Model,
    /// From the node: what is to be computed, or done.
    Request,
    /// First from the child: what it computes with.
    Opened,
    Answer,
    /// It cannot, in these words.
    Refused,
}

/// A word, and what it is about.
pub(crate) type Message = (Word, Vec<u8>);

impl Word {
    const ALL: [Word; 5] = [Word::Model, Word::Request, Word::Opened, Word::Answer, Word::Refused];
}

/// What the node says to this process, on a thread of its own: when the node is gone, this process is too, whatever a
/// library or a driver is doing. What was used is given back, as memory for what comes next.
pub(crate) fn listen() -> (mpsc::Receiver<Message>, mpsc::Sender<Vec<u8>>) {
    let (heard, words) = mpsc::sync_channel(1);
    let (used, unused) = mpsc::channel();
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let memory = || unused.try_recv().unwrap_or_default();
        while let Ok(message) = read_into(&mut stdin, memory()) {
            if heard.send(message).is_err() {
                break;
            }
        }
        leave();
    });
    (words, used)
}

/// The node is gone. A driver that still runs a kernel may keep a process from ending, but not for
/// long.
pub(crate) fn leave() -> ! {
    thread::spawn(|| std::process::exit(0));
    thread::sleep(LEAVE_WITHIN);
    std::process::abort()
}

pub(crate) fn write(to: &mut impl Write, word: Word, bytes: &[u8]) -> io::Result<()> {
    let mut head = [word as u8; 9];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)?;
    to.flush()
}

pub(crate) fn read(from: &mut impl Read) -> io::Result<(Word, Vec<u8>)> {
    read_into(from, Vec::new())
}

/// The same into memory that is there, in so far as it suffices: fresh memory costs more than the copy into it.
pub(crate) fn read_into(from: &mut impl Read, memory: Vec<u8>) -> io::Result<(Word, Vec<u8>)> {
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
        write(&mut pipe, Word::Answer, b"").expect("memory is writable");
        let used = read_into(&mut &pipe[..], vec![1; 9]).expect("a word");
        assert_eq!(used, (Word::Request, b"abc".to_vec()));
        let mut from = &pipe[..];
        assert_eq!(read(&mut from).expect("a word"), (Word::Request, b"abc".to_vec()));
        assert_eq!(read(&mut from).expect("a word"), (Word::Answer, Vec::new()));
        assert!(read(&mut from).is_err());
        assert!(read(&mut &[9, 0, 0, 0, 0, 0, 0, 0, 0][..]).is_err());
        assert!(read(&mut &[1, 0, 0, 0, 0, 0, 0, 0, 255][..]).is_err());
        assert!(read(&mut &[1, 2, 0, 0, 0, 0, 0, 0, 0, 7][..]).is_err());
    }
}
