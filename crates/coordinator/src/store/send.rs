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

/// Extents from this size on are read on their own.
const LARGE: u64 = 64 << 10;
/// Small extents are read together if they lie within this, and not much more is read than is used.
const WINDOW: u64 = 1 << 20;
const WASTE: u64 = 4;

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
        let mut bytes = Vec::with_capacity(total as usize);
        while !reader.extents.is_empty() {
            bytes.extend_from_slice(&reader.piece()?);
        }
        return Ok(Body::from(bytes));
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
    /// The next bytes: a part of one large extent, or as many small ones as lie close together.
    fn piece(&mut self) -> io::Result<Bytes> {
        match self.extents.front() {
            None => Ok(Bytes::new()),
            Some(extent) if extent.len >= LARGE => self.large(*extent),
            Some(_) => self.small(),
        }
    }

    fn large(&mut self, extent: Extent) -> io::Result<Bytes> {
        let take = extent.len.min(PIECE);
        let bytes = self.read(Extent { len: take, ..extent })?;
        match self.extents.front_mut() {
            Some(front) if front.len > take => {
                front.offset += take;
                front.len -= take;
            }
            _ => {
                self.extents.pop_front();
            }
        }
        Ok(Bytes::from(bytes))
    }

    /// Reads the window around the next small extents once and picks them out of it.
    fn small(&mut self) -> io::Result<Bytes> {
        let (count, window, total) = self.window();
        let around = self.read(window)?;
        if total == window.len && count == 1 {
            self.extents.pop_front();
            return Ok(Bytes::from(around));
        }
        let mut bytes = Vec::with_capacity(total as usize);
        for Extent { offset, len } in self.extents.drain(..count) {
            let start = (offset - window.offset) as usize;
            bytes.extend_from_slice(&around[start..start + len as usize]);
        }
        Ok(Bytes::from(bytes))
    }

    /// How many extents are read together, the window that holds them, and their bytes.
    fn window(&self) -> (usize, Extent, u64) {
        let (mut low, mut high, mut total, mut count) = (u64::MAX, 0, 0, 0);
        for Extent { offset, len } in &self.extents {
            let (to_low, to_high) = (low.min(*offset), high.max(offset + len));
            let (span, sum) = (to_high - to_low, total + len);
            let wasteful = span > sum * WASTE && span > SMALL;
            if count > 0 && (*len >= LARGE || sum > PIECE || span > WINDOW || wasteful) {
                break;
            }
            (low, high, total, count) = (to_low, to_high, sum, count + 1);
        }
        (count, Extent { offset: low, len: high - low }, total)
    }

    fn read(&mut self, Extent { offset, len }: Extent) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len as usize);
        self.file.seek(SeekFrom::Start(offset))?;
        let read = Read::by_ref(&mut self.file).take(len).read_to_end(&mut bytes)?;
        if (read as u64) < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn file(name: &str, bytes: &[u8]) -> (File, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("shoal-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        (File::open(&path).unwrap(), path)
    }

    #[tokio::test]
    async fn extents_come_out_in_order_whatever_their_size_and_place() {
        let content: Vec<u8> = (0..3_000_000_u32).map(|i| (i * 31 / 7) as u8).collect();
        let (file, path) = file("send", &content);
        let mut extents = Vec::new();
        let mut at = 0;
        // Backwards by a stride, with sizes from nothing to more than a piece.
        for i in 0..400_u64 {
            let len = [0, 1, 10, 333, 70_000, 600_000][(i % 6) as usize];
            at = (at + 2_345_678 + i * 977) % (3_000_000 - 600_000);
            extents.push(Extent { offset: at, len });
        }
        extents.extend((0..5_000).map(|i| Extent { offset: i * 12 + 4, len: 8 }));
        let expected: Vec<u8> = extents
            .iter()
            .flat_map(|e| content[e.offset as usize..][..e.len as usize].iter().copied())
            .collect();
        let whole = body(file, extents).unwrap().collect().await.unwrap().to_bytes();
        assert!(whole == expected);
        std::fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_too_short_breaks_the_body() {
        let (file, path) = file("short", &[0; 1000]);
        let extents = [Extent { offset: 0, len: 200_000 }];
        assert!(body(file, extents).unwrap().collect().await.is_err());
        std::fs::remove_file(path).unwrap();
    }
}
