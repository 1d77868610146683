//! Taking a request's body into a file: hashed while it is written, off the reactor, in large pieces.
//! While one piece is written the next arrives, and no thread waits for a slow sender.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::place::write_all_at;

/// Bytes gathered before they are handed to a writing thread: one hand-over is then small against the
/// copying, and an upload holds at most two pieces in memory.
const PIECE: usize = 1 << 20;
/// Bodies up to this are written where they arrive: handing over would cost more.
const SMALL: usize = 64 << 10;

/// A sender that is silent for so long has gone without saying so.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// What is read of a refused body, so that its sender gets to the answer instead of a broken connection.
const DISCARD_MOST: u64 = 256 << 20;
const DISCARD_WITHIN: Duration = Duration::from_secs(10);

/// Where bytes go.
pub(crate) struct Target {
    pub(crate) file: Arc<File>,
    pub(crate) offset: u64,
    /// More than this is refused.
    pub(crate) most: u64,
}

/// What came of it. `written` bytes are in the file, whatever else happened.
pub(crate) struct Received {
    pub(crate) written: u64,
    /// Of the written bytes.
    pub(crate) hash: blake3::Hash,
    pub(crate) end: Result<(), ReceiveError>,
}

#[derive(Debug)]
pub(crate) enum ReceiveError {
    /// More bytes than announced or allowed.
    TooLong,
    /// The sender broke off.
    Client(String),
    Disk(io::Error),
}

pub(crate) async fn receive(mut body: Body, target: Target) -> Received {
    let most = target.most;
    let mut writer = Writer::new(target);
    let mut taken = 0;
    let mut end = Ok(());
    loop {
        let bytes = match timeout(SILENT_FOR, body.frame()).await {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) => bytes,
                Err(_trailers) => continue,
            },
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                end = Err(ReceiveError::Client(error.to_string()));
                break;
            }
            Err(_elapsed) => {
                let silence = format!("nothing came for {} seconds", SILENT_FOR.as_secs());
                end = Err(ReceiveError::Client(silence));
                break;
            }
        };
        taken += bytes.len() as u64;
        if taken > most {
            end = Err(ReceiveError::TooLong);
            break;
        }
        if let Err(error) = writer.push(bytes).await {
            end = Err(ReceiveError::Disk(error));
            break;
        }
    }
    let (written, hash, flushed) = writer.finish().await;
    let end = end.and(flushed.map_err(ReceiveError::Disk));
    match end {
        Err(ReceiveError::TooLong | ReceiveError::Disk(_)) => discard(body).await,
        Ok(()) | Err(ReceiveError::Client(_)) => {}
    }
    Received { written, hash, end }
}

/// Reads the rest of a body that is not wanted, within reason.
pub(crate) async fn discard(mut body: Body) {
    let reading = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
            if read > DISCARD_MOST {
                return;
            }
        }
    };
    let _ = timeout(DISCARD_WITHIN, reading).await;
}

struct Writer {
    pieces: Vec<Bytes>,
    gathered: usize,
    work: Work,
}

enum Work {
    Idle(Box<State>),
    Busy(JoinHandle<(Box<State>, io::Result<()>)>),
    /// Only while changing from one to the other, or after a writing thread died.
    Gone,
}

struct State {
    target: Target,
    hasher: blake3::Hasher,
    written: u64,
}

impl Writer {
    fn new(target: Target) -> Writer {
        let state = State { target, hasher: blake3::Hasher::new(), written: 0 };
        Writer { pieces: Vec::new(), gathered: 0, work: Work::Idle(Box::new(state)) }
    }

    async fn push(&mut self, bytes: Bytes) -> io::Result<()> {
        self.gathered += bytes.len();
        self.pieces.push(bytes);
        if self.gathered < PIECE {
            return Ok(());
        }
        let (mut state, result) = self.rest().await?;
        if let Err(error) = result {
            self.work = Work::Idle(state);
            return Err(error);
        }
        self.gathered = 0;
        let pieces = std::mem::take(&mut self.pieces);
        self.work = Work::Busy(spawn_blocking(move || {
            let result = state.write(&pieces);
            (state, result)
        }));
        Ok(())
    }

    /// Writes what is left; says how much is in the file, and its hash.
    async fn finish(mut self) -> (u64, blake3::Hash, io::Result<()>) {
        let rest = self.rest().await;
        let pieces = self.pieces;
        let done = match rest {
            Ok((mut state, Ok(()))) if self.gathered <= SMALL => {
                let result = state.write(&pieces);
                Ok((state, result))
            }
            Ok((mut state, Ok(()))) => spawn_blocking(move || {
                let result = state.write(&pieces);
                (state, result)
            })
            .await
            .map_err(io::Error::other),
            other => other,
        };
        match done {
            Ok((state, result)) => (state.written, state.hasher.finalize(), result),
            // A writing thread died: nothing is known to be in the file.
            Err(error) => (0, blake3::hash(&[]), Err(error)),
        }
    }

    /// Waits until nothing is being written.
    async fn rest(&mut self) -> io::Result<(Box<State>, io::Result<()>)> {
        match std::mem::replace(&mut self.work, Work::Gone) {
            Work::Idle(state) => Ok((state, Ok(()))),
            Work::Busy(work) => work.await.map_err(io::Error::other),
            Work::Gone => Err(io::Error::other("the writing thread is gone")),
        }
    }
}

impl State {
    fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        for piece in pieces {
            write_all_at(&self.target.file, piece, self.target.offset + self.written)?;
            self.hasher.update(piece);
            self.written += piece.len() as u64;
        }
        Ok(())
    }
}
