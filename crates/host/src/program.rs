//! Computes units of WASI programs: fetches module, folder and inputs, runs each item, packs the
//! answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use serde::Deserialize;
use shoal_engine::wasi::{Answer, Ended, Folder, Give, Module, Run, Told, Wasi};
use shoal_kinds::form::{Mark, Record, length};
use shoal_kinds::{ExecItems, ExecWork};
use shoal_node::JobInfo;
use shoal_protocol::{BlobRef, Failure, Hash, LimitKind, Span};

use super::cache::Keep;
use super::courier::Courier;

/// Compiled programs, folders and lists kept at a time: jobs of one user alternate between a few.
const KEPT: usize = 8;
/// What the answers of a unit of several runs may take together: each run keeps to its job's own
/// limit, but thousands of them are in memory at once. Four answers of the usual limit fit.
const MAX_ANSWERS_BYTES: usize = 64 << 20;

/// What all working threads share.
pub(super) struct Programs {
    wasi: Wasi,
    modules: Keep<Module>,
    folders: Keep<Arc<Laid>>,
    lists: Keep<Arc<Vec<Entry>>>,
    /// Where folders for programs are laid out.
    work: PathBuf,
    /// Folders laid out so far: each has a place of its own, so that the end of one that was
    /// dropped takes nothing from the same list's next one.
    laid_out: AtomicU64,
}

/// A program that can run at once.
struct Ready {
    module: Module,
    folder: Option<Arc<Laid>>,
}

/// A named blob in a JSON list.
#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    hash: String,
    size: u64,
}

impl Entry {
    fn blob(&self) -> Result<BlobRef, Failure> {
        let hash = self.hash.parse::<Hash>().map_err(|error| Failure::Fetch {
            message: format!("the list names {:?} by a wrong hash: {error}", self.name),
        })?;
        Ok(BlobRef { hash, size: self.size })
    }
}

/// A folder as programs find it, and its place on disk.
struct Laid {
    folder: Arc<Folder>,
    _place: Place,
}

/// A folder on disk that goes when nobody uses it any more.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Programs {
    pub(super) fn new(work: PathBuf) -> Result<Programs, String> {
        Ok(Programs {
            wasi: Wasi::new()?,
            modules: Keep::new(KEPT),
            folders: Keep::new(KEPT),
            lists: Keep::new(KEPT),
            work,
            laid_out: AtomicU64::new(0),
        })
    }

    /// Runs the program for each item of the span; the answers as [`shoal_kinds::Form::Answers`].
    pub(super) fn unit(
        &self,
        courier: &mut Courier,
        work: &ExecWork,
        info: &JobInfo,
        span: Span,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Vec<u8>, Failure> {
        let ready = self.ready(courier, work)?;
        let mut inputs = self.inputs(courier, work.items, span)?;
        let mut answers = Answers::new(span);
        for item in span.start..span.end() {
            if cancel.load(Ordering::Relaxed) {
                return Err(Failure::Internal { message: "ended on request".into() });
            }
            let (input, stdin) = inputs.next(courier, (item - span.start) as usize)?;
            match self.last_try(&ready, work, info, (item, input, stdin), cancel) {
                Ok(answer) if work.leaves => answers.add_left(item, &answer)?,
                Ok(answer) => answers.add(item, &answer.stdout)?,
                Err(Ended { told: Some(told), .. }) if !work.failing.stop => {
                    answers.add_failed(item, &told)?;
                }
                Err(ended) => return Err(ended.failure),
            }
        }
        Ok(answers.packed())
    }

    /// Runs an item, and again while it fails by itself and may be tried again.
    fn last_try(
        &self,
        ready: &Ready,
        work: &ExecWork,
        info: &JobInfo,
        (item, input, stdin): (u64, Option<String>, Bytes),
        cancel: &Arc<AtomicBool>,
    ) -> Result<Answer, Ended> {
        for again in 0..work.failing.retry {
            let tried = (item, again, input.clone(), stdin.clone());
            match self.run(ready, work, info, tried, (cancel, None)) {
                Err(Ended { told: Some(_), .. }) => {}
                ended => return ended,
            }
        }
        self.run(ready, work, info, (item, work.failing.retry, input, stdin), (cancel, None))
    }

    /// Has everything here that a request needs.
    pub(super) fn warm(&self, courier: &mut Courier, work: &ExecWork) -> Result<(), Failure> {
        self.ready(courier, work).map(drop)
    }

    /// Runs the program once for a request. Its answer is given while it runs; what is left at the end comes
    /// behind its length, as a unit's.
    pub(super) fn call(
        &self,
        courier: &mut Courier,
        work: &ExecWork,
        info: &JobInfo,
        body: &Arc<Vec<u8>>,
        (cancel, give): (&Arc<AtomicBool>, Give),
    ) -> Result<Vec<u8>, Failure> {
        let ready = self.ready(courier, work)?;
        let stdin = Bytes::copy_from_slice(body);
        let answer = self.run(&ready, work, info, (0, 0, None, stdin), (cancel, Some(give)));
        Answers::one(&answer.map_err(|ended| ended.failure)?.stdout)
    }

    /// The compiled program and its folder, made if they are not there.
    fn ready(&self, courier: &mut Courier, work: &ExecWork) -> Result<Ready, Failure> {
        let module = self.modules.get(work.module.hash, || {
            let wasm = courier.shared(work.module)?;
            self.wasi.compile(&wasm)
        })?;
        let folder = match work.folder {
            Some(list) => Some(self.folders.get(list.hash, || self.lay_out(courier, list))?),
            None => None,
        };
        Ok(Ready { module, folder })
    }

    fn run(
        &self,
        ready: &Ready,
        work: &ExecWork,
        info: &JobInfo,
        (item, again, input, stdin): (u64, u32, Option<String>, Bytes),
        (cancel, give): (&Arc<AtomicBool>, Option<Give>),
    ) -> Result<Answer, Ended> {
        self.wasi.run(
            &ready.module,
            Run {
                item,
                again,
                ok: work.failing.ok.clone(),
                args: work.args.clone(),
                env: work.env.clone(),
                input,
                stdin,
                folder: ready.folder.as_ref().map(|laid| laid.folder.clone()),
                leaves: work.leaves,
                limits: info.limits,
                clock: work.clock,
                cancel: cancel.clone(),
                give,
            },
        )
    }

    fn inputs(
        &self,
        courier: &mut Courier,
        items: ExecItems,
        span: Span,
    ) -> Result<Inputs, Failure> {
        match items {
            ExecItems::Lines { data, ends } => {
                // The end of the item before the first is where the first starts.
                let before = span.start.min(1);
                let bytes = courier.part(ends, (span.start - before) * 8..span.end() * 8)?;
                let (ends, _) = bytes.as_chunks::<8>();
                let mut ends: Vec<u64> = ends.iter().map(|end| u64::from_le_bytes(*end)).collect();
                if before == 0 {
                    ends.insert(0, 0);
                }
                let (first, last) = (ends[0], ends[ends.len() - 1]);
                let bytes = courier.part(data, first..last)?;
                Ok(Inputs::Lines { bytes, ends })
            }
            ExecItems::Files { manifest } => {
                let list = self.list(courier, manifest)?;
                if span.end() > list.len() as u64 {
                    let message = format!("items {span} of a list of {}", list.len());
                    return Err(Failure::Fetch { message });
                }
                Ok(Inputs::Files { list, start: span.start as usize })
            }
            ExecItems::Requests => {
                Err(Failure::Internal { message: "a unit of a service, which has none".into() })
            }
        }
    }

    fn list(&self, courier: &mut Courier, list: BlobRef) -> Result<Arc<Vec<Entry>>, Failure> {
        self.lists.get(list.hash, || {
            let bytes = courier.once(list)?;
            serde_json::from_slice(&bytes).map(Arc::new).map_err(|error| Failure::Fetch {
                message: format!("the list of files cannot be read: {error}"),
            })
        })
    }

    /// Writes the shared files of a job to a folder of this machine.
    fn lay_out(&self, courier: &mut Courier, list: BlobRef) -> Result<Arc<Laid>, Failure> {
        let entries = self.list(courier, list)?;
        no_file_is_a_folder(entries.iter().map(|entry| entry.name.as_str()))?;
        let number = self.laid_out.fetch_add(1, Ordering::Relaxed);
        let place = self.work.join(format!("{}-{number}", list.hash));
        let cannot = |error: std::io::Error| Failure::Internal {
            message: format!("cannot lay out the program's folder: {error}"),
        };
        fs::create_dir_all(&place).map_err(cannot)?;
        let place = Place(place);
        for entry in entries.iter() {
            let path = inside(&place.0, &entry.name)?;
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(cannot)?;
            }
            let blob = entry.blob()?;
            match courier.shelved_file(blob) {
                Some(file) => drop(fs::copy(file, &path).map_err(cannot)?),
                None => fs::write(&path, courier.once(blob)?).map_err(cannot)?,
            }
        }
        let files = entries.iter().map(|entry| (entry.name.clone(), entry.size)).collect();
        let folder = Arc::new(Folder::new(&place.0, files));
        Ok(Arc::new(Laid { folder, _place: place }))
    }
}

/// The answers of one unit as they are handed over.
pub(super) struct Answers {
    span: Span,
    /// The lengths of all answers, zero for those to come, then the answers.
    packed: Vec<u8>,
    /// Of runs that failed how they ended, of those that left more than an answer how much; and behind that the ends of
    /// their stderr and their files.
    records: Vec<u8>,
    left: Vec<u8>,
}

impl Answers {
    /// The answer to a request.
    pub(super) fn one(answer: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut answers = Answers::new(Span::new(0, 1));
        answers.add(0, answer)?;
        Ok(answers.packed())
    }

    fn new(span: Span) -> Answers {
        let packed = vec![0; span.len as usize * 4];
        Answers { span, packed, records: Vec::new(), left: Vec::new() }
    }

    fn packed(mut self) -> Vec<u8> {
        self.packed.append(&mut self.records);
        self.packed.append(&mut self.left);
        self.packed
    }

    /// Items come in order.
    fn add(&mut self, item: u64, answer: &[u8]) -> Result<(), Failure> {
        self.put(item, answer, Mark::Plain)
    }

    /// An answer with what the run left beside it.
    fn add_left(&mut self, item: u64, answer: &Answer) -> Result<(), Failure> {
        let Answer { stdout, stderr, files } = answer;
        if stderr.is_empty() && files.is_empty() {
            return self.add(item, stdout);
        }
        self.records.extend(Record::left(stderr.len(), files.len()).bytes());
        self.left.extend(stderr);
        self.left.extend(files);
        self.put(item, stdout, Mark::Left)
    }

    fn add_failed(&mut self, item: u64, told: &Told) -> Result<(), Failure> {
        self.records.extend(Record::failed(told.end, told.stderr.len()).bytes());
        self.left.extend(&told.stderr);
        self.put(item, &told.stdout, Mark::Failed)
    }

    fn put(&mut self, item: u64, answer: &[u8], mark: Mark) -> Result<(), Failure> {
        let over = |item, allowed| Failure::Limit {
            item,
            which: LimitKind::Output,
            allowed,
            stderr: String::new(),
        };
        // No item is at fault: a smaller unit passes. One run alone has its job's limit only.
        let held = self.packed.len() + self.records.len() + self.left.len();
        if self.span.len > 1 && held + answer.len() > MAX_ANSWERS_BYTES {
            return Err(over(None, MAX_ANSWERS_BYTES as u64));
        }
        let most = u64::from(u32::MAX >> 2);
        let length = length(answer.len(), mark).ok_or_else(|| over(Some(item), most))?;
        let at = (item - self.span.start) as usize * 4;
        self.packed[at..at + 4].copy_from_slice(&length);
        self.packed.extend_from_slice(answer);
        Ok(())
    }
}

/// The inputs of one unit.
enum Inputs {
    Lines { bytes: Bytes, ends: Vec<u64> },
    Files { list: Arc<Vec<Entry>>, start: usize },
}

impl Inputs {
    /// Name and bytes of the unit's `index`-th item.
    fn next(
        &mut self,
        courier: &mut Courier,
        index: usize,
    ) -> Result<(Option<String>, Bytes), Failure> {
        match self {
            Inputs::Lines { bytes, ends } => {
                let first = ends[0];
                let (from, to) = (ends[index] - first, ends[index + 1] - first);
                if from > to || to > bytes.len() as u64 {
                    let message = "the list of line ends does not ascend".into();
                    return Err(Failure::Fetch { message });
                }
                Ok((None, bytes.slice(from as usize..to as usize)))
            }
            Inputs::Files { list, start } => {
                let entry = &list[*start + index];
                Ok((Some(entry.name.clone()), courier.once(entry.blob()?)?))
            }
        }
    }
}

/// A path below `folder`. Names come over the network: none may lead out of it.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let relative = Path::new(name);
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || name.is_empty() {
        let message =
            format!("the folder has a file named {name:?}, which points outside the folder");
        return Err(Failure::Fetch { message });
    }
    Ok(folder.join(relative))
}

/// Refuses `a` next to `a/b`, which no disk can hold.
fn no_file_is_a_folder<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let paths: BTreeSet<&Path> = names.map(Path::new).collect();
    for path in &paths {
        if let Some(parent) = path.ancestors().skip(1).find(|parent| paths.contains(parent)) {
            let message = format!(
                "the folder has a file named {:?} and one named {:?}: the first cannot be a file \
                 and a folder at once",
                parent.display().to_string(),
                path.display().to_string()
            );
            return Err(Failure::Fetch { message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_kinds::Shape;
    use shoal_kinds::form::{End, Runs, records};

    #[test]
    fn no_name_is_both_a_file_and_a_folder() {
        assert_eq!(no_file_is_a_folder(["a/b", "a/c", "ab", "b"].into_iter()), Ok(()));
        for bad in [["a", "a/b"], ["x/y/z", "x"], ["a//b/c", "a/b"]] {
            assert!(no_file_is_a_folder(bad.into_iter()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let folder = Path::new("f");
        assert_eq!(inside(folder, "a/b.txt"), Ok(folder.join("a/b.txt")));
        for bad in ["", "/etc/passwd", "../x", "a/../../x"] {
            assert!(inside(folder, bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn answers_are_packed_behind_their_lengths() {
        let mut answers = Answers::new(Span { start: 5, len: 2 });
        assert_eq!(answers.add(5, b"ab"), Ok(()));
        assert_eq!(answers.add(6, b"c"), Ok(()));
        assert_eq!(answers.packed(), b"\x02\0\0\0\x01\0\0\0abc");
    }

    #[test]
    fn failed_runs_stand_behind_the_answers() {
        let mut answers = Answers::new(Span { start: 5, len: 3 });
        let told = |end| Told { end, stdout: b"half".into(), stderr: b"why".into() };
        assert_eq!(answers.add_failed(5, &told(End::Exit(3))), Ok(()));
        assert_eq!(answers.add(6, b"c"), Ok(()));
        assert_eq!(answers.add_failed(7, &told(End::Limit(LimitKind::Memory))), Ok(()));
        let packed = answers.packed();
        let runs = Runs(&packed[..12]);
        assert!(runs.lengths().eq([4, 1, 4]) && runs.failed().eq([0, 2]));
        assert_eq!(&packed[12..21], b"halfchalf");
        let ends = records(&packed[21..37]).map(|record| (record.end, record.stderr));
        let [exit, memory] = [End::Exit(3), End::Limit(LimitKind::Memory)].map(Some);
        assert!(ends.eq([(exit, 3), (memory, 3)]));
        assert_eq!(&packed[37..], b"whywhy");
        assert_eq!(Shape::Runs { runs: 3, most: 100, output: 100 }.fault(&packed), None);
    }

    #[test]
    fn what_runs_leave_stands_behind_the_answers_and_those_that_leave_nothing_take_no_room() {
        let span = Span { start: 5, len: 2 };
        let answer = |stderr: &[u8], files: &[u8]| Answer {
            stdout: b"ab".into(),
            stderr: stderr.into(),
            files: files.into(),
        };
        let mut plain = Answers::new(span);
        let mut left = Answers::new(span);
        for item in 5..7 {
            assert_eq!(plain.add(item, b"ab"), Ok(()));
            assert_eq!(left.add_left(item, &answer(b"", b"")), Ok(()));
        }
        assert_eq!(plain.packed(), left.packed());
        let mut left = Answers::new(span);
        assert_eq!(left.add_left(5, &answer(b"hm", b"")), Ok(()));
        let mut files = Vec::new();
        shoal_kinds::exec::left::pack(&mut files, "a/b", b"file");
        assert_eq!(left.add_left(6, &answer(b"oh", &files)), Ok(()));
        let packed = left.packed();
        assert_eq!(&packed[8..12], b"abab");
        assert!(records(&packed[12..28]).eq([Record::left(2, 0), Record::left(2, 15)]));
        assert_eq!(packed[28..], [b"hmoh", &files[..]].concat());
        assert_eq!(Shape::Runs { runs: 2, most: 100, output: 100 }.fault(&packed), None);
    }

    #[test]
    fn answers_too_large_together_blame_no_item_and_one_alone_passes() {
        let large = vec![7; MAX_ANSWERS_BYTES];
        let mut several = Answers::new(Span { start: 0, len: 2 });
        assert_eq!(several.add(0, b"small"), Ok(()));
        let refused = several.add(1, &large);
        assert!(
            matches!(refused, Err(Failure::Limit { item: None, which: LimitKind::Output, .. })),
            "{refused:?}"
        );
        assert_eq!(Answers::new(Span { start: 1, len: 1 }).add(1, &large), Ok(()));
    }
}
