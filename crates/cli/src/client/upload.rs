//! Sending bytes to the coordinator's blob store: only what it does not hold yet, and on from where
//! an earlier try broke off.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use reqwest::{Body, Method, StatusCode, header};
use shoal_api::BlobJson;
use tokio::sync::mpsc;

use super::{Client, Spool};
use crate::fail::Fail;
use crate::show::Bytes as BytesBar;

/// Read and sent at a time: large enough that system calls do not count, small enough for a smooth
/// bar.
const CHUNK: usize = 1 << 20;
const UPLOAD_OFFSET: &str = "upload-offset";
const UPLOAD_LENGTH: &str = "upload-length";

/// Bytes to be stored.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Memory(Bytes),
    /// Part of a file, such as an .npy without its header.
    File {
        path: PathBuf,
        start: u64,
        size: u64,
    },
    /// The same of what came through a pipe.
    Spooled {
        spool: Arc<Spool>,
        start: u64,
        size: u64,
    },
}

impl Source {
    pub(crate) fn size(&self) -> u64 {
        match self {
            Source::Memory(bytes) => bytes.len() as u64,
            Source::File { size, .. } | Source::Spooled { size, .. } => *size,
        }
    }

    /// Reads everything from `offset` on, piece by piece, until `each` says stop.
    fn read(&self, offset: u64, mut each: impl FnMut(Bytes) -> bool) -> io::Result<()> {
        match self {
            Source::Memory(bytes) => {
                let mut rest =
                    bytes.slice(usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len())..);
                while !rest.is_empty() && each(rest.split_to(rest.len().min(CHUNK))) {}
                Ok(())
            }
            Source::File { path, start, size } => {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(start + offset))?;
                pieces(offset..*size, |piece, _| file.read_exact(piece), each)
            }
            Source::Spooled { spool, start, size } => {
                let read = |piece: &mut [u8], at| spool.read_exact_at(piece, start + at);
                pieces(offset..*size, read, each)
            }
        }
    }

    pub(crate) fn hash(&self) -> Result<blake3::Hash, Fail> {
        let mut hasher = blake3::Hasher::new();
        let read = self.read(0, |piece| {
            hasher.update(&piece);
            true
        });
        read.map_err(|error| self.fail(&error))?;
        Ok(hasher.finalize())
    }

    fn fail(&self, error: &io::Error) -> Fail {
        match self {
            Source::File { path, .. } if error.kind() == io::ErrorKind::UnexpectedEof => {
                Fail::input(format!("{} became shorter while it was being read", path.display()))
            }
            Source::File { path, .. } => Fail::reading(path, error),
            Source::Memory(_) | Source::Spooled { .. } => Fail::input(error.to_string()),
        }
    }
}

/// Reads a range piece by piece, until `each` says stop.
fn pieces(
    range: Range<u64>,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<()>,
    mut each: impl FnMut(Bytes) -> bool,
) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let mut piece = vec![0; (range.end - at).min(CHUNK as u64) as usize];
        read(&mut piece, at)?;
        at += piece.len() as u64;
        if !each(piece.into()) {
            break;
        }
    }
    Ok(())
}

impl Client {
    /// Stores the bytes and tells their name.
    pub(crate) async fn upload(&self, source: &Source, bar: &BytesBar) -> Result<BlobJson, Fail> {
        let hashed = source.clone();
        let hash = tokio::task::spawn_blocking(move || hashed.hash())
            .await
            .map_err(|error| Fail::world("internal", error.to_string()))??;
        let blob = BlobJson { hash: hash.to_hex().to_string(), size: source.size() };
        let note = |text: &str| self.note(text);
        let (mut tries, mut furthest) = (self.tries(&note), 0);
        loop {
            match self.push(source, &blob, bar).await {
                Ok(()) => return Ok(blob),
                Err(Push::Refused(fail)) => return Err(fail),
                Err(Push::Broke { fail, at }) => {
                    if at > furthest {
                        furthest = at;
                        tries.moved();
                    }
                    tries.again(fail).await?;
                }
            }
        }
    }

    /// One try: asks what is held and sends the rest.
    async fn push(&self, source: &Source, blob: &BlobJson, bar: &BytesBar) -> Result<(), Push> {
        let offset = match self.held(blob).await? {
            Held::All => {
                bar.set(blob.size);
                return Ok(());
            }
            Held::Part(offset) => offset.min(blob.size),
        };
        bar.set(offset);
        let (body, reader) = body(source.clone(), offset, bar.clone());
        let answer = self
            .request(Method::PUT, &format!("/api/v1/blobs/{}", blob.hash))
            .header(UPLOAD_OFFSET, offset)
            .header(UPLOAD_LENGTH, blob.size)
            .header(header::CONTENT_LENGTH, blob.size - offset)
            .body(body)
            .send()
            .await;
        // A file that could not be read to its end breaks the request too; its own error says more.
        if let Ok(Err(error)) = reader.await {
            return Err(Push::Refused(source.fail(&error)));
        }
        let broke = |fail| Push::Broke { fail, at: offset };
        let answer = answer.map_err(|error| broke(self.unreachable(&error)))?;
        self.patience.note_reached();
        match answer.status() {
            StatusCode::ACCEPTED | StatusCode::CONFLICT => Err(broke(Fail::world(
                "connection_lost",
                "the coordinator did not receive all bytes of an upload",
            ))),
            StatusCode::UNPROCESSABLE_ENTITY => Err(Push::Refused(Fail::Input {
                code: "hash_mismatch".into(),
                message: match source {
                    Source::File { path, .. } => {
                        format!("{} changed while it was being sent: try again", path.display())
                    }
                    Source::Memory(_) | Source::Spooled { .. } => {
                        "the bytes changed on their way: try again".into()
                    }
                },
            })),
            status if status.is_success() => Ok(()),
            // A coordinator that is about to stop says so; the next try finds it back.
            _ => Err(broke(self.refused(answer).await)),
        }
    }

    async fn held(&self, blob: &BlobJson) -> Result<Held, Push> {
        let path = format!("/api/v1/blobs/{}", blob.hash);
        let broke = |fail| Push::Broke { fail, at: 0 };
        let answer = self.request(Method::HEAD, &path).send().await;
        let answer = answer.map_err(|error| broke(self.unreachable(&error)))?;
        self.patience.note_reached();
        match answer.status() {
            StatusCode::NOT_FOUND => {
                let offset = answer.headers().get(UPLOAD_OFFSET);
                let offset = offset.and_then(|text| text.to_str().ok()?.parse().ok());
                Ok(Held::Part(offset.unwrap_or(0)))
            }
            status if status.is_success() => Ok(Held::All),
            _ => Err(broke(self.refused(answer).await)),
        }
    }
}

enum Held {
    All,
    Part(u64),
}

/// How one try ended.
enum Push {
    /// Trying again cannot help.
    Refused(Fail),
    /// The way there broke after the coordinator held `at` bytes.
    Broke { fail: Fail, at: u64 },
}

/// A request body fed by a reading thread, two pieces ahead.
fn body(
    source: Source,
    offset: u64,
    bar: BytesBar,
) -> (Body, tokio::task::JoinHandle<io::Result<()>>) {
    let (to_body, pieces) = mpsc::channel::<Bytes>(2);
    let reader = tokio::task::spawn_blocking(move || {
        source.read(offset, |piece| {
            let size = piece.len() as u64;
            let taken = to_body.blocking_send(piece).is_ok();
            bar.add(size);
            taken
        })
    });
    let pieces = stream::unfold(pieces, async |mut pieces| {
        pieces.recv().await.map(|piece| (Ok::<_, io::Error>(piece), pieces))
    });
    (Body::wrap_stream(pieces), reader)
}
