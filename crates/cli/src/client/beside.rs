//! The short way where this machine has the coordinator's data folder: bytes to be stored are written into it, hashed on the way,
//! and results are read from it. No socket carries them. It is a way that may be missing: whoever finds it closed takes the usual one.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shoal_api::{BESIDE, BlobJson, DraftJson, DraftRequest, FileJson, PartJson, SizeRequest};

use super::{Client, Sink, Source};
use crate::fail::Fail;
use crate::show::Bytes as BytesBar;

/// Below this the usual way is as short.
const LARGE: u64 = 256 << 10;
/// Copied at a time: between two of these an interrupt is heard and the bar moves.
const STRIDE: u64 = 8 << 20;
/// Read at a time by whoever looks at the bytes.
const PIECE: usize = 256 << 10;

impl Client {
    /// Stores bytes by writing them into the coordinator's folder; nothing if that cannot be done.
    pub(super) async fn draft(
        &self,
        source: &Source,
        bar: &BytesBar,
    ) -> Result<Option<BlobJson>, Fail> {
        let size = source.size();
        let Some(beside) = self.beside.as_ref().filter(|_| size >= LARGE) else { return Ok(None) };
        let asked = self.ask_beside(Method::POST, "/api/v1/drafts", &SizeRequest { size }).await;
        let Some(DraftJson { file, may_be_here }) = asked else { return Ok(None) };
        let Some(path) = inside(&beside.folder, &file) else { return Ok(None) };
        if may_be_here && let Some(blob) = self.is_held(source).await? {
            bar.set(size);
            return Ok(Some(blob));
        }
        // Held here and not where it is written: an interrupt ends this, while a thread that writes is left alone.
        let Some((_draft, to)) = Draft::create(path) else { return Ok(None) };
        let (copied, shown) = (source.clone(), bar.clone());
        let hash = tokio::task::spawn_blocking(move || fill(&to, &copied, &shown))
            .await
            .map_err(|error| Fail::world("internal", error.to_string()))?;
        let Some(hash) = hash? else { return Ok(None) };
        let place = format!("/api/v1/blobs/{hash}/draft");
        let stored = self.ask_beside(Method::PUT, &place, &DraftRequest { file }).await;
        Ok(stored.filter(|stored: &BlobJson| stored.size == size))
    }

    /// Whether the coordinator has these bytes already.
    async fn is_held(&self, source: &Source) -> Result<Option<BlobJson>, Fail> {
        let blob = self.named(source).await?;
        let asked = self.request(Method::HEAD, &format!("/api/v1/blobs/{}", blob.hash));
        let answer = asked.send().await;
        Ok(answer.is_ok_and(|answer| answer.status().is_success()).then_some(blob))
    }

    /// The file with a job's result, and which parts of it are the result; nothing if it cannot be read here.
    async fn result_file(&self, job: u64) -> Option<(File, Vec<PartJson>)> {
        let beside = self.beside.as_ref().filter(|_| !self.is_partial)?;
        let path = format!("/api/v1/jobs/{job}/result/file");
        let FileJson { file, parts } = self.ask_beside(Method::GET, &path, &()).await?;
        let file = File::open(inside(&beside.folder, &file)?).ok()?;
        // A file that is not all there is somebody else's.
        let end = parts.iter().map(|part| part.offset.saturating_add(part.size)).max()?;
        (file.metadata().ok()?.len() >= end).then_some((file, parts))
    }

    /// Has the system copy a job's result into a file, behind what is written there; says how many bytes the result has.
    /// Nothing if that cannot be done; part of it may be there then.
    pub(crate) async fn copy_result(
        &self,
        job: u64,
        bar: &BytesBar,
        sink: &mut Sink,
    ) -> Result<Option<u64>, Fail> {
        let Some((file, parts)) = self.result_file(job).await else { return Ok(None) };
        let total = parts.iter().map(|part| part.size).sum();
        bar.expect(total);
        for PartJson { offset, size } in parts {
            for done in (0..size).step_by(STRIDE as usize) {
                let count = STRIDE.min(size - done);
                if !sink.append(&file, (offset + done, count))? {
                    bar.set(0);
                    return Ok(None);
                }
                bar.add(count);
                tokio::task::yield_now().await;
            }
        }
        Ok(Some(total))
    }

    /// Hands a job's result to `each` from its file, as far as that can be read. Says how many bytes those were, and whether
    /// they are all.
    pub(super) async fn read_result(
        &self,
        job: u64,
        bar: &BytesBar,
        each: &mut impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<(u64, bool), Fail> {
        let Some((file, parts)) = self.result_file(job).await else { return Ok((0, false)) };
        bar.expect(parts.iter().map(|part| part.size).sum());
        hand_over(file, &parts, bar, each).await
    }

    /// One question, once: a coordinator that is away is waited for on the usual way.
    async fn ask_beside<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        said: &impl Serialize,
    ) -> Option<T> {
        let word = &self.beside.as_ref()?.word;
        let answer = self.request(method, path).header(BESIDE, word).json(said).send().await;
        self.read(answer).await.ok()
    }
}

async fn hand_over(
    mut file: File,
    parts: &[PartJson],
    bar: &BytesBar,
    each: &mut impl FnMut(&[u8]) -> Result<(), Fail>,
) -> Result<(u64, bool), Fail> {
    let (mut piece, mut have) = (vec![0; PIECE], 0);
    for &PartJson { offset, size } in parts {
        for done in (0..size).step_by(PIECE) {
            let piece = &mut piece[..(size - done).min(PIECE as u64) as usize];
            let read = file.seek(SeekFrom::Start(offset + done));
            if read.and_then(|_| file.read_exact(piece)).is_err() {
                return Ok((have, false));
            }
            each(piece)?;
            have += piece.len() as u64;
            bar.set(have);
            tokio::task::yield_now().await;
        }
    }
    Ok((have, true))
}

/// A file that the coordinator names, if it is in the folder.
fn inside(folder: &Path, file: &str) -> Option<PathBuf> {
    let is_inside =
        |file: &str| Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    (!file.is_empty() && is_inside(file)).then(|| folder.join(file))
}

/// A file in the coordinator's folder that is no blob yet: it goes with this.
struct Draft(PathBuf);

impl Draft {
    /// Makes it. Nothing if the folder takes no such file.
    fn create(path: PathBuf) -> Option<(Draft, File)> {
        let file = File::create_new(&path).ok()?;
        Some((Draft(path), file))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // One that became a blob is not there any more.
        let _ = fs::remove_file(&self.0);
    }
}

/// Copies into a draft, and hashes in the same pass: what the copy holds has this hash, whatever becomes of the bytes it was made
/// from. Nothing if the draft cannot be written.
fn fill(mut to: &File, source: &Source, bar: &BytesBar) -> Result<Option<blake3::Hash>, Fail> {
    let (mut hasher, mut is_refused) = (blake3::Hasher::new(), false);
    let passed = source.pass(&mut |piece| {
        hasher.update(piece);
        bar.add(piece.len() as u64);
        to.write_all(piece).inspect_err(|_| is_refused = true)
    });
    match passed {
        Ok(()) => Ok(Some(hasher.finalize())),
        Err(_) if is_refused => {
            bar.set(0);
            Ok(None)
        }
        Err(error) => Err(source.fail(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let folder = Path::new("/data");
        assert_eq!(inside(folder, "blobs/x"), Some("/data/blobs/x".into()));
        for name in ["", "/etc/passwd", "../x", "blobs/../../x", "./x"] {
            assert_eq!(inside(folder, name), None, "{name}");
        }
    }

    #[tokio::test]
    async fn a_result_is_handed_over_as_far_as_it_can_be_read() {
        let path = std::env::temp_dir().join(format!("shoal-handed-{}", std::process::id()));
        let bytes: Vec<u8> = (0..PIECE as u32 + 9).map(|at| (at * 7 / 3) as u8).collect();
        fs::write(&path, &bytes).expect("written");
        let size = bytes.len() as u64;
        let first = PartJson { offset: 5, size: size - 5 };
        for (second, more) in [(5, 5), (6, 0)] {
            let parts = [
                first,
                PartJson { offset: 0, size: 5 },
                PartJson { offset: size - 5, size: second },
            ];
            let (file, mut found) = (File::open(&path).expect("there"), Vec::new());
            let mut each = |piece: &[u8]| {
                found.extend_from_slice(piece);
                Ok(())
            };
            let handed = hand_over(file, &parts, &BytesBar::hidden(), &mut each).await;
            assert_eq!(handed.expect("taken"), (size + more, more > 0));
            let last = &bytes[bytes.len() - more as usize..];
            assert!(found == [&bytes[5..], &bytes[..5], last].concat());
        }
        fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_draft_has_the_hash_of_what_is_in_it_and_goes_unless_it_is_taken() {
        let folder = std::env::temp_dir().join(format!("shoal-draft-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (from, to) = (folder.join("in.npy"), folder.join("draft"));
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 31 / 7) as u8).collect();
        fs::write(&from, &bytes).expect("written");
        let size = bytes.len() as u64 - 128;
        let source = Source::File { path: from.clone(), start: 128, size };
        let (draft, file) = Draft::create(to.clone()).expect("a new file");
        let write = || fill(&file, &source, &BytesBar::hidden());
        assert_eq!(write().expect("readable"), Some(blake3::hash(&bytes[128..])));
        assert!(fs::read(&to).expect("there") == bytes[128..]);
        assert!(Draft::create(to.clone()).is_none(), "somebody else's file stays as it is");
        assert!(to.exists());
        fs::write(&from, &bytes[..1000]).expect("written");
        let Err(Fail::Input { message, .. }) = write() else { panic!("it is shorter now") };
        assert!(message.contains("became shorter"), "{message}");
        drop(draft);
        assert!(!to.exists());
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_told() {
        let path = std::env::temp_dir().join(format!("shoal-changing-{}", std::process::id()));
        fs::write(&path, vec![1; 3 * PIECE]).expect("written");
        let source = Source::File { path: path.clone(), start: 0, size: 3 * PIECE as u64 };
        let other = File::options().write(true).open(&path).expect("there");
        let mut is_first = true;
        let passed = source.pass(&mut |_| {
            if std::mem::replace(&mut is_first, false) {
                let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
                (&other).write_all(&[2; 10])?;
                // As the system does it, whose clock ticks too seldom for a test.
                other.set_modified(later)?;
            }
            Ok(())
        });
        let Fail::Input { code, message } = source.fail(&passed.expect_err("it changed")) else {
            panic!("somebody changed it")
        };
        assert!(code == "hash_mismatch" && message.contains("changed while"), "{code} {message}");
        fs::remove_file(&path).expect("removed");
    }
}
