//! Files as response bodies: read in large pieces off the reactor, the next while one is sent. No thread
//! waits for a slow reader.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::task::{JoinHandle, spawn_blocking};

/// Read at a time: stays in a core's cache between reading and sending.
const PIECE: u64 = 512 << 10;
/// Bodies up to this are read at once where they are asked for: handing over would cost more.
const SMALL: u64 = 64 << 10;

/// Consecutive bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The extents of a file one after the other.
pub(crate) fn body(file: File, extents: impl IntoIterator<Item = Extent>) -> io::Result<Body> {
    let extents: VecDeque<_> = extents.into_iter().filter(|extent| extent.len > 0).collect();
    let mut reader = Reader { file, extents };
    let total: u64 = reader.extents.iter().map(|extent| extent.len).sum();
    if total <= SMALL {
        return Ok(Body::from(reader.piece()?));
    }
    let ahead = read_ahead(reader);
    Ok(Body::from_stream(stream::unfold(Some(ahead), next_piece)))
}

struct Reader {
    file: File,
    extents: VecDeque<Extent>,
}

type Ahead = JoinHandle<(Reader, io::Result<Bytes>)>;

fn read_ahead(mut reader: Reader) -> Ahead {
    spawn_blocking(move || {
        let piece = reader.piece();
        (reader, piece)
    })
}

async fn next_piece(ahead: Option<Ahead>) -> Option<(io::Result<Bytes>, Option<Ahead>)> {
    match ahead?.await {
        Ok((reader, Ok(bytes))) => {
            let ahead = (!reader.extents.is_empty()).then(|| read_ahead(reader));
            (!bytes.is_empty()).then_some((Ok(bytes), ahead))
        }
        Ok((_, Err(error))) => Some((Err(error), None)),
        Err(error) => Some((Err(io::Error::other(error)), None)),
    }
}

impl Reader {
    /// The next bytes, gathered from as many extents as one piece holds.
    fn piece(&mut self) -> io::Result<Bytes> {
        let left: u64 = self.extents.iter().map(|extent| extent.len).take(PIECE as usize).sum();
        let mut bytes = Vec::with_capacity(left.min(PIECE) as usize);
        while let Some(extent) = self.extents.front_mut() {
            let room = PIECE - bytes.len() as u64;
            if room == 0 {
                break;
            }
            let take = room.min(extent.len);
            self.file.seek(SeekFrom::Start(extent.offset))?;
            let read = Read::by_ref(&mut self.file).take(take).read_to_end(&mut bytes)?;
            if (read as u64) < take {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            extent.offset += take;
            extent.len -= take;
            if extent.len == 0 {
                self.extents.pop_front();
            }
        }
        Ok(Bytes::from(bytes))
    }
}
