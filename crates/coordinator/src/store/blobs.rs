//! Bytes by their hash, in a folder. A blob is there whole or not at all: it is written beside and moved
//! into place once its hash is known to be right.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use shoal_protocol::{BlobRef, Hash};

use super::drafts::Sizes;
use super::place::is_full;
use super::receive::{ReceiveError, Received, Target, discard, receive};
use super::turn::Turns;
use crate::auth::random_word;

/// An upload nobody went on with for this long is dropped.
pub(crate) const PARTIAL_KEPT: Duration = Duration::from_secs(24 * 3600);
/// The same of one that nobody can go on with: its sender broke off. Nobody who still writes is silent for as long.
pub(super) const NAMELESS_KEPT: Duration = Duration::from_secs(3600);
/// Read at a time when hashing what is already there.
const CHUNK: usize = 256 << 10;
/// Uploads without a name of their own: their sender cannot resume them.
pub(super) const NAMELESS: &str = "post-";

#[derive(Clone)]
pub(crate) struct Blobs {
    root: Arc<Path>,
    /// Hashes being uploaded now: two writers of one file would spoil it.
    turns: Turns,
    pub(super) sizes: Sizes,
}

/// Why an upload was not taken. What was received of a named one is kept but for `Mismatch`.
#[derive(Debug)]
pub(crate) enum UploadError {
    /// Another client is sending the same blob.
    Busy,
    /// The client means to go on elsewhere than where its upload stands.
    Offset {
        held: u64,
        given: u64,
    },
    /// More bytes than `Upload-Length` said.
    TooLong {
        length: u64,
    },
    Mismatch {
        expected: Hash,
        found: Hash,
    },
    /// The client broke off.
    Client(String),
    Disk(io::Error),
}

/// How far an upload got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    Complete(BlobRef),
    Partial { held: u64 },
}

impl Blobs {
    pub(crate) fn open(root: &Path) -> io::Result<Blobs> {
        fs::create_dir_all(root.join("partial"))?;
        for entry in fs::read_dir(root.join("partial"))? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(NAMELESS) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Blobs { root: root.into(), turns: Turns::default(), sizes: Sizes::default() })
    }

    /// The blob's size, if it is here.
    pub(crate) fn find(&self, hash: Hash) -> io::Result<Option<BlobRef>> {
        match fs::metadata(self.path(hash)) {
            Ok(meta) => Ok(Some(BlobRef { hash, size: meta.len() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn open_blob(&self, hash: Hash) -> io::Result<Option<(File, u64)>> {
        match File::open(self.path(hash)) {
            Ok(file) => {
                let size = file.metadata()?.len();
                Ok(Some((file, size)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Bytes held of an upload that is not complete.
    pub(crate) fn held(&self, hash: Hash) -> io::Result<u64> {
        match fs::metadata(self.partial(hash)) {
            Ok(meta) => Ok(meta.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Stores bytes the coordinator made itself. Blocks.
    pub(crate) fn put(&self, bytes: &[u8]) -> io::Result<BlobRef> {
        let hash = Hash(*blake3::hash(bytes).as_bytes());
        if let Some(blob) = self.find(hash)? {
            return Ok(blob);
        }
        let draft = self.nameless()?;
        let kept = fs::write(&draft, bytes).and_then(|()| self.settle(&draft, hash));
        if kept.is_err() {
            let _ = fs::remove_file(&draft);
        }
        kept?;
        Ok(BlobRef { hash, size: bytes.len() as u64 })
    }

    /// Takes an upload of at most `most` bytes whose hash its sender does not say.
    pub(crate) async fn post(&self, body: Body, most: u64) -> Result<BlobRef, UploadError> {
        let draft = Draft(self.nameless().map_err(UploadError::Disk)?);
        let file = File::create(&draft.0).map_err(UploadError::Disk)?;
        let target = Target { file: Arc::new(file), offset: 0, most };
        let Received { written, hash, end } = receive(body, target).await;
        end.map_err(|error| upload_error(error, most))?;
        let hash = Hash(*hash.as_bytes());
        self.settle(&draft.0, hash).map_err(UploadError::Disk)?;
        Ok(BlobRef { hash, size: written })
    }

    /// Goes on with an upload at `offset`; with `length` known, completes and checks it when all is there.
    pub(crate) async fn upload(
        &self,
        hash: Hash,
        offset: u64,
        length: Option<u64>,
        body: Body,
    ) -> Result<Upload, UploadError> {
        let Some(_turn) = self.turns.wait(hash).await else {
            discard(body).await;
            return Err(UploadError::Busy);
        };
        if let Some(blob) = self.find(hash).map_err(UploadError::Disk)? {
            discard(body).await;
            return Ok(Upload::Complete(blob));
        }
        let held = self.held(hash).map_err(UploadError::Disk)?;
        if held != offset {
            discard(body).await;
            return Err(UploadError::Offset { held, given: offset });
        }
        let partial = self.partial(hash);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = options.open(&partial).map_err(UploadError::Disk)?;
        let most = length.map_or(u64::MAX, |length| length.saturating_sub(held));
        let target = Target { file: Arc::new(file), offset, most };
        let Received { written, hash: seen, end } = receive(body, target).await;
        if matches!(&end, Err(ReceiveError::Disk(error)) if is_full(error)) {
            // What does not fit must not keep everybody else's work out until somebody clears it away.
            let _ = fs::remove_file(&partial);
        }
        end.map_err(|error| upload_error(error, length.unwrap_or(u64::MAX)))?;
        let held = held + written;
        if length != Some(held) {
            return Ok(Upload::Partial { held });
        }
        let found = if offset == 0 { Hash(*seen.as_bytes()) } else { rehash(&partial).await? };
        if found != hash {
            let _ = fs::remove_file(&partial);
            return Err(UploadError::Mismatch { expected: hash, found });
        }
        self.settle(&partial, hash).map_err(UploadError::Disk)?;
        Ok(Upload::Complete(BlobRef { hash, size: held }))
    }

    /// Looks whether blobs written after a moment are what their names say, and drops those that are
    /// not: the machine lost power before they were on the disk.
    pub(crate) fn check_since(&self, since: SystemTime) -> io::Result<()> {
        for dir in fs::read_dir(&self.root)? {
            let dir = dir?;
            if dir.file_name().len() != 2 {
                continue;
            }
            for entry in fs::read_dir(dir.path())? {
                let entry = entry?;
                let name = entry.file_name();
                let named: Option<Hash> = name.to_str().and_then(|name| name.parse().ok());
                let about = entry.metadata()?;
                self.sizes.note(about.len());
                let recent = about.modified()? >= since;
                if recent && named != Some(hash_file(&entry.path())?) {
                    tracing::warn!(?name, "a blob is not what its name says: dropping it");
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }

    /// Drops uploads nobody goes on with.
    pub(crate) fn sweep(&self, now: SystemTime) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join("partial"))? {
            let entry = entry?;
            // One that was moved into place or taken back meanwhile.
            let Ok(about) = entry.metadata() else { continue };
            let age = about.modified().ok().and_then(|at| now.duration_since(at).ok());
            let is_nameless = entry.file_name().to_string_lossy().starts_with(NAMELESS);
            let kept = if is_nameless { NAMELESS_KEPT } else { PARTIAL_KEPT };
            if age.is_some_and(|age| age > kept) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    pub(super) fn settle(&self, from: &Path, hash: Hash) -> io::Result<()> {
        self.sizes.note(fs::metadata(from)?.len());
        let to = self.path(hash);
        match fs::rename(from, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(dir) = to.parent() {
                    fs::create_dir_all(dir)?;
                }
                fs::rename(from, &to)
            }
            result => result,
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, hash: Hash) -> PathBuf {
        let name = hash.to_string();
        self.root.join(&name[..2]).join(name)
    }

    fn partial(&self, hash: Hash) -> PathBuf {
        self.root.join("partial").join(hash.to_string())
    }

    fn nameless(&self) -> io::Result<PathBuf> {
        Ok(self.root.join("partial").join(nameless()?))
    }
}

pub(super) fn nameless() -> io::Result<String> {
    let word = random_word().map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("{NAMELESS}{word}"))
}

/// A nameless upload's file, removed unless it was moved into place.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn upload_error(error: ReceiveError, length: u64) -> UploadError {
    match error {
        ReceiveError::TooLong => UploadError::TooLong { length },
        ReceiveError::Client(message) => UploadError::Client(message),
        ReceiveError::Disk(error) => UploadError::Disk(error),
    }
}

async fn rehash(path: &Path) -> Result<Hash, UploadError> {
    let path = path.to_owned();
    let hashed = tokio::task::spawn_blocking(move || hash_file(&path)).await;
    hashed.map_err(io::Error::other).and_then(|hash| hash).map_err(UploadError::Disk)
}

fn hash_file(path: &Path) -> io::Result<Hash> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(Hash(*hasher.finalize().as_bytes()));
        }
        hasher.update(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_nobody_goes_on_with_are_dropped() {
        let root = std::env::temp_dir().join(format!("shoal-blobs-{}", std::process::id()));
        let blobs = Blobs::open(&root).unwrap();
        let (old, new) = (Hash([1; 32]), Hash([2; 32]));
        for hash in [old, new] {
            fs::write(blobs.partial(hash), "part").unwrap();
        }
        let file = File::options().write(true).open(blobs.partial(old)).unwrap();
        let now = SystemTime::now();
        file.set_modified(now - PARTIAL_KEPT - Duration::from_secs(1)).unwrap();
        let drafts = [(); 2].map(|()| blobs.nameless().unwrap());
        for (draft, age) in drafts.iter().zip([NAMELESS_KEPT, NAMELESS_KEPT / 2]) {
            fs::write(draft, "draft").unwrap();
            let file = File::options().write(true).open(draft).unwrap();
            file.set_modified(now - age - Duration::from_secs(1)).unwrap();
        }
        blobs.sweep(now).unwrap();
        assert_eq!((blobs.held(old).unwrap(), blobs.held(new).unwrap()), (0, 4));
        assert_eq!(drafts.map(|draft| draft.exists()), [false, true]);
        fs::remove_dir_all(root).unwrap();
    }
}
