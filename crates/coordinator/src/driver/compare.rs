//! Comparing answers' bytes, on a thread of its own: they can be megabytes, and everybody waits for the
//! driver.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use shoal_kinds::JobSpec;
use shoal_protocol::{BlobRef, CrewId, Hash, JobId, Span};
use shoal_scheduler::{CompareId, Outcome, Place, Rows, Sample, compare};
use tokio::sync::mpsc::WeakSender;

use super::event::Event;
use crate::store::blobs::Blobs;
use crate::store::place::read_exact_at;
use crate::store::results;

/// Bytes of rows that are compared at a time: large enough that reading is what takes the time.
const CHUNK: usize = 1 << 18;

#[derive(Default)]
pub(super) struct Comparer {
    /// Without a bound of its own: the scheduler asks for one comparison at a time for each unit in
    /// flight, so this never holds more than the scheduler does.
    tasks: Option<Sender<Task>>,
    /// Specs of jobs with comparisons, because they can be large.
    specs: HashMap<JobId, Arc<JobSpec>>,
}

/// Two samples that hold the results of these items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) id: CompareId,
    pub(super) job: JobId,
    pub(super) items: Span,
    pub(super) a: Sample,
    pub(super) b: Sample,
}

enum Task {
    Units { pair: Pair, spec: Arc<JobSpec> },
    Rows(RowsTask),
}

/// Rows that a crew and its checker made.
pub(super) struct RowsTask {
    pub(super) crew: CrewId,
    pub(super) job: JobId,
    pub(super) a: Vec<Rows>,
    pub(super) b: Vec<Rows>,
}

impl Comparer {
    /// Starts the thread. It ends when this is dropped; `events` is weak, so that it keeps nobody alive.
    pub(super) fn start(
        &mut self,
        dir: PathBuf,
        kept: Blobs,
        events: WeakSender<Event>,
    ) -> io::Result<()> {
        let (tasks, received) = channel();
        thread::Builder::new()
            .name("shoal-compare".into())
            .spawn(move || work(&dir, &kept, &received, &events))?;
        self.tasks = Some(tasks);
        Ok(())
    }

    pub(super) fn ask(&mut self, pair: Pair, spec: Option<&JobSpec>) {
        let Some(spec) = spec else { return };
        let kept = self.specs.entry(pair.job).or_insert_with(|| Arc::new(spec.clone()));
        let task = Task::Units { pair, spec: Arc::clone(kept) };
        self.send(task);
    }

    pub(super) fn ask_rows(&mut self, rows: RowsTask) {
        self.send(Task::Rows(rows));
    }

    fn send(&self, task: Task) {
        if let Some(tasks) = &self.tasks {
            // The thread ends only after this.
            let _ = tasks.send(task);
        }
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.specs.remove(&job);
    }
}

fn work(dir: &Path, kept: &Blobs, tasks: &Receiver<Task>, events: &WeakSender<Event>) {
    while let Ok(task) = tasks.recv() {
        let event = match task {
            Task::Units { pair, spec } => {
                let outcome = look(dir, &spec, &pair).unwrap_or_else(|error| {
                    tracing::warn!(job = %pair.job, "answers cannot be compared: {error}");
                    Outcome::Unreadable
                });
                Event::Compared { id: pair.id, outcome }
            }
            Task::Rows(RowsTask { crew, job, a, b }) => {
                let path = results::path(dir, job);
                let same = same_rows(&path, kept, &a, &b);
                let same = same.inspect_err(|error| {
                    tracing::warn!(%job, "rows cannot be compared: {error}");
                });
                Event::RowsCompared { crew, same: same.ok() }
            }
        };
        let Some(events) = events.upgrade() else { return };
        if events.blocking_send(event).is_err() {
            return;
        }
    }
}

/// Whether the bytes of all of `a`, one after another, are those of `b`.
fn same_rows(results: &Path, kept: &Blobs, a: &[Rows], b: &[Rows]) -> io::Result<bool> {
    let size = |rows: &[Rows]| rows.iter().map(|rows| bytes_of(*rows).size).sum::<u64>();
    if size(a) != size(b) {
        return Ok(false);
    }
    let (mut a, mut b) = (chained(results, kept, a)?, chained(results, kept, b)?);
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let (read, other) = (fill(&mut a, &mut left)?, fill(&mut b, &mut right)?);
        if left[..read] != right[..other] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn bytes_of(rows: Rows) -> BlobRef {
    match rows {
        Rows::Stored(blob) => blob,
        Rows::Result(Place { size, hash, .. }) => BlobRef { hash, size },
    }
}

fn chained(results: &Path, kept: &Blobs, rows: &[Rows]) -> io::Result<Box<dyn Read>> {
    let mut all: Box<dyn Read> = Box::new(io::empty());
    for rows in rows {
        let (file, size) = match rows {
            Rows::Stored(blob) => {
                let gone = || io::Error::new(io::ErrorKind::NotFound, blob.hash.to_string());
                (kept.open_blob(blob.hash)?.ok_or_else(gone)?.0, blob.size)
            }
            Rows::Result(place) => {
                let mut file = File::open(results)?;
                file.seek(SeekFrom::Start(place.offset))?;
                (file, place.size)
            }
        };
        all = Box::new(all.chain(file.take(size)));
    }
    Ok(all)
}

/// Reads until the buffer is full or nothing is left.
fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < buffer.len() {
        match from.read(&mut buffer[at..])? {
            0 => break,
            read => at += read,
        }
    }
    Ok(at)
}

fn look(dir: &Path, spec: &JobSpec, pair: &Pair) -> io::Result<Outcome> {
    let file = File::open(results::path(dir, pair.job))?;
    let (a, b) = (read(&file, &pair.a.place)?, read(&file, &pair.b.place)?);
    Ok(compare(spec, pair.items, (pair.a.span, &a), (pair.b.span, &b)))
}

/// The bytes at a place, if they are still those that came.
fn read(file: &File, place: &Place) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(place.size).map_err(io::Error::other)?];
    read_exact_at(file, &mut bytes, place.offset)?;
    let found = Hash(*blake3::hash(&bytes).as_bytes());
    if found != place.hash {
        let Place { offset, size, hash, .. } = place;
        let text = format!("{size} bytes at {offset} have the hash {found}, expected {hash}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_scheduler::Failed;

    #[test]
    fn bytes_are_read_only_if_they_are_the_right_ones() {
        let path = std::env::temp_dir().join(format!("shoal-compare-{}", std::process::id()));
        std::fs::write(&path, b"..answer..").unwrap();
        let file = File::open(&path).unwrap();
        let hash = Hash(*blake3::hash(b"answer").as_bytes());
        let place = Place { offset: 2, size: 6, hash, failed: Failed::default() };
        assert_eq!(read(&file, &place).unwrap(), b"answer");
        let torn = read(&file, &Place { offset: 3, ..place }).unwrap_err();
        assert!(torn.to_string().contains("expected"), "{torn}");
        assert!(read(&file, &Place { offset: 8, ..place }).is_err());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn rows_are_the_same_however_they_are_cut_and_wherever_they_are() {
        let dir = std::env::temp_dir().join(format!("shoal-rows-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let kept = Blobs::open(&dir).unwrap();
        let put = |bytes: &[u8]| Rows::Stored(kept.put(bytes).unwrap());
        let results = dir.join("results");
        std::fs::write(&results, b"..ef").unwrap();
        let last = Rows::Result(Place {
            offset: 2,
            size: 2,
            hash: Hash([0; 32]),
            failed: Failed::default(),
        });
        let same = |a: &[Rows], b: &[Rows]| same_rows(&results, &kept, a, b);
        let whole = put(b"abcdef");
        assert!(same(&[whole], &[put(b"abc"), put(b"def")]).unwrap());
        assert!(same(&[whole], &[put(b"ab"), put(b"cd"), last]).unwrap());
        assert!(!same(&[whole], &[put(b"abc"), put(b"deg")]).unwrap());
        assert!(!same(&[whole], &[put(b"abc")]).unwrap());
        let gone = Rows::Stored(BlobRef { hash: Hash([9; 32]), size: 6 });
        assert!(same(&[whole], &[gone]).is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
