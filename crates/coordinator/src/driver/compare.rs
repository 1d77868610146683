//! Comparing answers' bytes, on a thread of its own: they can be megabytes, and everybody waits for the
//! driver.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use shoal_protocol::{Hash, JobId, JobSpec, Span};
use shoal_scheduler::{CompareId, Outcome, Place, Sample, compare};
use tokio::sync::mpsc::WeakSender;

use super::event::Event;
use crate::store::place::read_exact_at;
use crate::store::results;

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

struct Task {
    pair: Pair,
    spec: Arc<JobSpec>,
}

impl Comparer {
    /// Starts the thread. It ends when this is dropped; `events` is weak, so that it keeps nobody alive.
    pub(super) fn start(&mut self, dir: PathBuf, events: WeakSender<Event>) -> io::Result<()> {
        let (tasks, received) = channel();
        thread::Builder::new()
            .name("shoal-compare".into())
            .spawn(move || work(&dir, &received, &events))?;
        self.tasks = Some(tasks);
        Ok(())
    }

    pub(super) fn ask(&mut self, pair: Pair, spec: Option<&JobSpec>) {
        let Some(spec) = spec else { return };
        let kept = self.specs.entry(pair.job).or_insert_with(|| Arc::new(spec.clone()));
        let task = Task { pair, spec: Arc::clone(kept) };
        if let Some(tasks) = &self.tasks {
            // The thread ends only after this.
            let _ = tasks.send(task);
        }
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.specs.remove(&job);
    }
}

fn work(dir: &Path, tasks: &Receiver<Task>, events: &WeakSender<Event>) {
    while let Ok(Task { pair, spec }) = tasks.recv() {
        let outcome = look(dir, &spec, &pair).unwrap_or_else(|error| {
            tracing::warn!(job = %pair.job, "answers cannot be compared: {error}");
            Outcome::Unreadable
        });
        let Some(events) = events.upgrade() else { return };
        if events.blocking_send(Event::Compared { id: pair.id, outcome }).is_err() {
            return;
        }
    }
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
        let Place { offset, size, hash } = place;
        let text = format!("{size} bytes at {offset} have the hash {found}, expected {hash}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_only_if_they_are_the_right_ones() {
        let path = std::env::temp_dir().join(format!("shoal-compare-{}", std::process::id()));
        std::fs::write(&path, b"..answer..").unwrap();
        let file = File::open(&path).unwrap();
        let hash = Hash(*blake3::hash(b"answer").as_bytes());
        let place = Place { offset: 2, size: 6, hash };
        assert_eq!(read(&file, &place).unwrap(), b"answer");
        let torn = read(&file, &Place { offset: 3, ..place }).unwrap_err();
        assert!(torn.to_string().contains("expected"), "{torn}");
        assert!(read(&file, &Place { offset: 8, ..place }).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
