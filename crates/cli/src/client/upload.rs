//! Sending bytes to the coordinator's blob store: only what it does not hold yet, and on from where
//! an earlier try broke off.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

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
/// Read at a time where nothing is sent.
const PASSED: usize = 256 << 10;
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

    /// Hands everything to `each`, through one buffer that stays in a core's own cache. A file that changes meanwhile is an
    /// error: what was handed over was in no moment its content.
    pub(super) fn pass(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Source::Memory(bytes) => bytes.chunks(PASSED).try_for_each(each),
            Source::File { path, start, size } => {
                let mut file = File::open(path)?;
                let before = stamp(&file)?;
                file.seek(SeekFrom::Start(*start))?;
                passed(*size, |piece, _| file.read_exact(piece), each)?;
                if stamp(&file)? == before { Ok(()) } else { Err(io::Error::other(Changed)) }
            }
            Source::Spooled { spool, start, size } => {
                passed(*size, |piece, at| spool.read_exact_at(piece, start + at), each)
            }
        }
    }

    pub(crate) fn hash(&self) -> Result<blake3::Hash, Fail> {
        let mut hasher = blake3::Hasher::new();
        let read = self.pass(&mut |piece| {
            hasher.update(piece);
            Ok(())
        });
        read.map_err(|error| self.fail(&error))?;
        Ok(hasher.finalize())
    }

    /// It is not what it was.
    fn changed(&self) -> Fail {
        Fail::Input {
            code: "hash_mismatch".into(),
            message: match self {
                Source::File { path, .. } => {
                    format!("{} changed while it was being sent: try again", path.display())
                }
                Source::Memory(_) | Source::Spooled { .. } => {
                    "the bytes changed on their way: try again".into()
                }
            },
        }
    }

    pub(super) fn fail(&self, error: &io::Error) -> Fail {
        if error.get_ref().is_some_and(|error| error.is::<Changed>()) {
            return self.changed();
        }
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

/// Reads so many bytes through one buffer.
fn passed(
    size: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<()>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; size.min(PASSED as u64) as usize];
    let mut at = 0;
    while at < size {
        let piece = &mut buffer[..(size - at).min(PASSED as u64) as usize];
        read(piece, at)?;
        each(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// What is another one once somebody has written to a file, as far as the system tells.
fn stamp(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let about = file.metadata()?;
    Ok((about.len(), about.modified().ok()))
}

/// A file was written to while it was read.
#[derive(Debug)]
struct Changed;

impl std::fmt::Display for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the file changed while it was being read")
    }
}

impl std::error::Error for Changed {}

impl Client {
    /// Stores the bytes and tells their name.
    pub(crate) async fn upload(&self, source: &Source, bar: &BytesBar) -> Result<BlobJson, Fail> {
        if let Some(blob) = self.draft(source, bar).await? {
            return Ok(blob);
        }
        let blob = self.named(source).await?;
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

    /// What the bytes are called.
    pub(super) async fn named(&self, source: &Source) -> Result<BlobJson, Fail> {
        let hashed = source.clone();
        let hash = tokio::task::spawn_blocking(move || hashed.hash())
            .await
            .map_err(|error| Fail::world("internal", error.to_string()))??;
        Ok(BlobJson { hash: hash.to_hex().to_string(), size: source.size() })
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
            StatusCode::UNPROCESSABLE_ENTITY => Err(Push::Refused(source.changed())),
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
