//! A stream in use: two threads, one that seals and writes, one that reads and opens, so that neither makes the node's
//! loop wait. What does not leave waits, up to a bound; what is not taken waits at the sender.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shoal_seal::stream::{Opener, RECORD_HEAD, Sealer};
use tokio::sync::mpsc;

use super::super::{CrewPeer, Heard, MAX_WAITING_BYTES, News};
use super::{Event, USE};

/// An idle stream says this often that it lives...
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// ... and is dead after silence of four times that, or when nothing can be written for as long.
const SILENCE: Duration = Duration::from_secs(4);
/// Sealed and written in one go: some frames, so that the other end opens them meanwhile.
const TOGETHER: usize = 256 << 10;
/// Read in one go, and room for a whole record beside the rest of another.
const READ_BYTES: usize = 256 << 10;

/// A proven connection with its keys.
pub(in super::super) struct Line {
    /// This end dials, and says first of all that this stream is used.
    pub(in super::super) dials: bool,
    pub(super) socket: TcpStream,
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
}

/// The node's end of a stream. It ends when this is dropped.
pub(super) struct Pipe {
    pub(super) outbox: Arc<Outbox>,
    socket: TcpStream,
}

/// Frames that wait to be written.
#[derive(Default)]
pub(in super::super) struct Outbox {
    waiting: Mutex<Waiting>,
    more: Condvar,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Vec<u8>>,
    /// Of these, and of those that are being written.
    bytes: usize,
    is_over: bool,
}

/// Where a stream tells what becomes of it.
pub(super) struct Tells {
    pub(super) peer: CrewPeer,
    pub(super) call: u64,
    pub(super) heard: mpsc::Sender<Heard>,
    pub(super) events: mpsc::Sender<Event>,
}

impl Pipe {
    pub(super) fn start(line: Line, tells: Tells) -> io::Result<Pipe> {
        let Line { dials, socket, mut sealer, opener } = line;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        let mut sealed = Vec::new();
        if dials && !sealer.seal(&[USE], &mut sealed) {
            return Err(io::Error::other("no seal"));
        }
        let outbox = Arc::new(Outbox::default());
        let (reads, writes, queue) = (socket.try_clone()?, socket.try_clone()?, outbox.clone());
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("stream out").spawn(move || {
            let _ = write(&queue, sealer, sealed, &writes);
            queue.close();
            // So that the reader ends too, and tells.
            let _ = writes.shutdown(Shutdown::Both);
        })?;
        let pipe = Pipe { outbox, socket };
        thread("stream in").spawn(move || {
            let error = read(&reads, opener, &tells);
            tracing::debug!("a stream of crew {} ended: {error}", tells.peer.0.0);
            let _ = reads.shutdown(Shutdown::Both);
            let Tells { peer, call, events, .. } = tells;
            // The radio may be gone.
            let _ = events.blocking_send(Event::Ended { peer, call });
        })?;
        Ok(pipe)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.outbox.close();
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Outbox {
    /// A frame for the peer; dropped if too much waits, because links repeat what was lost.
    pub(super) fn push(&self, frame: Vec<u8>) {
        let mut waiting = self.waiting();
        if waiting.bytes + frame.len() <= MAX_WAITING_BYTES && !waiting.is_over {
            waiting.bytes += frame.len();
            waiting.frames.push_back(frame);
            self.more.notify_one();
        }
    }

    fn close(&self) {
        let mut waiting = self.waiting();
        waiting.is_over = true;
        waiting.frames.clear();
        self.more.notify_all();
    }

    /// Some frames, or none if none came for a while; `None` when it is over. `written` bytes have left.
    fn next(&self, written: usize) -> Option<Vec<Vec<u8>>> {
        let mut waiting = self.waiting();
        waiting.bytes = waiting.bytes.saturating_sub(written);
        let is_idle = |waiting: &mut Waiting| waiting.frames.is_empty() && !waiting.is_over;
        let waited = self.more.wait_timeout_while(waiting, ALIVE_EVERY, is_idle);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if waiting.is_over {
            return None;
        }
        let mut size = 0;
        let fits = |frame: &&Vec<u8>| {
            size += frame.len();
            size <= TOGETHER
        };
        // At least one, however long it is: nothing waits for ever.
        let count = waiting.frames.iter().take_while(fits).count();
        let count = count.max(1).min(waiting.frames.len());
        Some(waiting.frames.drain(..count).collect())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until the stream is over. An empty record says that this end lives.
fn write(
    outbox: &Outbox,
    mut sealer: Sealer,
    mut sealed: Vec<u8>,
    mut socket: &TcpStream,
) -> io::Result<()> {
    socket.write_all(&sealed)?;
    let mut written = 0;
    while let Some(frames) = outbox.next(written) {
        sealed.clear();
        let alive = [Vec::new()];
        let records = if frames.is_empty() { &alive[..] } else { &frames[..] };
        if !records.iter().all(|words| sealer.seal(words, &mut sealed)) {
            return Err(io::Error::other("no seal"));
        }
        written = frames.iter().map(Vec::len).sum();
        socket.write_all(&sealed)?;
    }
    Ok(())
}

/// Why it ended.
fn read(mut socket: &TcpStream, mut opener: Opener, tells: &Tells) -> io::Error {
    let mut buffer = vec![0; READ_BYTES];
    let (mut begin, mut end) = (0, 0);
    loop {
        while let Some(head) = buffer[begin..end].first_chunk::<RECORD_HEAD>() {
            let Some(length) = Opener::length(*head) else {
                return io::Error::other("no record is that long");
            };
            let at = begin + RECORD_HEAD;
            let Some(sealed) = buffer.get(at..at + length).filter(|_| at + length <= end) else {
                break;
            };
            let Some(words) = opener.open(sealed) else {
                return io::Error::other("a record that the peer did not seal");
            };
            begin = at + length;
            let Tells { peer, call, ref heard, .. } = *tells;
            let frame = Heard { peer, call, news: News::Frame(words) };
            if length > shoal_protocol::limit::SEAL_BYTES && heard.blocking_send(frame).is_err() {
                return io::Error::other("the node is gone");
            }
        }
        buffer.copy_within(begin..end, 0);
        (begin, end) = (0, end - begin);
        match socket.read(&mut buffer[end..]) {
            Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(count) => end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_nothing_is_taken_after_the_end() {
        let outbox = Outbox::default();
        for _ in 0..10_000 {
            outbox.push(vec![0; 60_000]);
        }
        assert!(outbox.waiting().bytes <= MAX_WAITING_BYTES);
        assert!(outbox.waiting().frames.len() <= MAX_WAITING_BYTES / 60_000);
        let together = outbox.next(0).expect("frames");
        assert!(together.len() > 1 && together.len() * 60_000 <= TOGETHER);
        outbox.close();
        outbox.push(vec![1]);
        assert!(outbox.waiting().frames.is_empty() && outbox.next(0).is_none());
    }

    #[test]
    fn a_frame_longer_than_what_goes_together_goes_alone() {
        let outbox = Outbox::default();
        outbox.push(vec![0; TOGETHER + 1]);
        outbox.push(vec![1]);
        assert_eq!(outbox.next(0).expect("frames").len(), 1);
        assert_eq!(outbox.next(0).expect("frames").len(), 1);
    }
}
