//! What results are made of: how large a unit's must be, and where the answers of some items are in it. Bytes of
//! another shape would shift all that come after them, so they are refused where they arrive.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use shoal_protocol::limit::MAX_STDERR_BYTES;
use shoal_protocol::{LimitKind, Limits, Span};

use crate::exec::left::{self, from_slice};
use crate::onnx::Batch;
use crate::render::RenderWork;

/// Bytes of one length before each run's answer.
pub const LENGTH_BYTES: u64 = 4;
/// Set in the length of a run that failed: its answer is what it had written until then. Behind all answers of the
/// unit stands one record for each such run, and behind the records the end of its stderr.
const FAILED: u32 = 1 << 31;
/// Set in the length of a run that did what it should and left more than its answer: it has a record too, and behind the
/// records stand the end of its stderr and its files. No answer is so long that it needs this bit.
const LEFT: u32 = 1 << 30;
/// Of a run that failed: its exit code and the length of its stderr, little-endian. Of one that did not, the length of its
/// files takes the exit code's place.
pub const RECORD_BYTES: u64 = 8;
/// Set in the length of its stderr if it trapped.
const TRAPPED: u32 = 1 << 31;
/// Set in the length of its stderr if it went over a limit: the exit code's place says over which.
const LIMITED: u32 = 1 << 30;
/// Set in the length of its stderr if it did what it should.
const DONE: u32 = 1 << 29;
/// Limits, as the exit code's place says them.
const LIMITS: [LimitKind; 3] = [LimitKind::Time, LimitKind::Memory, LimitKind::Output];
/// Largest result of one unit of answers, whatever the limits: many runs of large output are one unit only if
/// their output was small before.
const MAX_ANSWERS_BYTES: u64 = 1 << 30;

/// What the result of a job is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form<'a> {
    /// There is none.
    Nothing,
    /// So many bytes for each item, in order.
    Items { bytes: u64 },
    /// Square tiles of a picture, each full size.
    Tiles(&'a RenderWork),
    /// The lengths of a unit's answers, [`LENGTH_BYTES`] each, little-endian, then the answers, then how those runs ended
    /// that failed, and what the others left beside their answers. Who computes the same gives the same, to the last byte.
    Answers,
    /// Tensors of each item, one after the other.
    Rows(&'a Batch),
}

/// How a run ended that failed by itself, whoever runs it. What traps say differs between engines, so it is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Trap,
    /// It went over this limit. How far a run gets in its time depends on the device, so that no device says it of
    /// the time: that stands in a result only where the coordinator was told so by enough of them.
    Limit(LimitKind),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exit(code) => write!(f, "the program ended with exit code {code}"),
            End::Trap => f.write_str("the program trapped"),
            End::Limit(LimitKind::Time) => f.write_str("over the time limit"),
            End::Limit(LimitKind::Memory) => f.write_str("over the memory limit"),
            End::Limit(LimitKind::Output) => f.write_str("over the output limit"),
        }
    }
}

/// What stands in a result of a run that failed, or left more than its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// None of a run that did what it should.
    pub end: Option<End>,
    /// Bytes of its stderr that were kept.
    pub stderr: u32,
    /// Bytes of its files, packed by [`crate::exec::left`]. A run that failed has none.
    pub files: u32,
}

impl Record {
    pub fn failed(end: End, stderr: usize) -> Record {
        Record { end: Some(end), stderr: stderr as u32, files: 0 }
    }

    pub fn left(stderr: usize, files: usize) -> Record {
        Record { end: None, stderr: stderr as u32, files: files as u32 }
    }

    /// What stands behind the records of this run.
    pub fn bytes_behind(self) -> u64 {
        u64::from(self.stderr) + u64::from(self.files)
    }

    pub fn bytes(self) -> [u8; RECORD_BYTES as usize] {
        let (code, flag) = match self.end {
            None => (self.files.cast_signed(), DONE),
            Some(End::Exit(code)) => (code, 0),
            Some(End::Trap) => (0, TRAPPED),
            Some(End::Limit(LimitKind::Time)) => (0, LIMITED),
            Some(End::Limit(LimitKind::Memory)) => (1, LIMITED),
            Some(End::Limit(LimitKind::Output)) => (2, LIMITED),
        };
        let mut bytes = [0; RECORD_BYTES as usize];
        bytes[..4].copy_from_slice(&code.to_le_bytes());
        bytes[4..].copy_from_slice(&(self.stderr | flag).to_le_bytes());
        bytes
    }

    /// The result of a unit of one item whose run left nothing but this: where the others go on without it.
    pub fn alone(end: End, stderr: &[u8]) -> Vec<u8> {
        let stderr = &stderr[stderr.len().saturating_sub(MAX_STDERR_BYTES)..];
        [&FAILED.to_le_bytes()[..], &Record::failed(end, stderr.len()).bytes(), stderr].concat()
    }

    fn read(bytes: &[u8]) -> Record {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let (code, word) = (i32::from_le_bytes(word(0)), u32::from_le_bytes(word(4)));
        let stderr = word & !(TRAPPED | LIMITED | DONE);
        if word & DONE != 0 {
            return Record { end: None, stderr, files: code.cast_unsigned() };
        }
        let limit = usize::try_from(code).ok().and_then(|code| LIMITS.get(code));
        let end = match (word & TRAPPED != 0, limit.filter(|_| word & LIMITED != 0)) {
            (true, _) => End::Trap,
            (false, Some(limit)) => End::Limit(*limit),
            (false, None) => End::Exit(code),
        };
        Record { end: Some(end), stderr, files: 0 }
    }
}

/// What a run's length says beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It left its answer and nothing else.
    Plain,
    Failed,
    /// It left more than its answer.
    Left,
}

/// The length of a run's answer as it stands in a result; none if the answer is too long to say.
pub fn length(bytes: usize, mark: Mark) -> Option<[u8; LENGTH_BYTES as usize]> {
    let length = u32::try_from(bytes).ok().filter(|length| length & (FAILED | LEFT) == 0)?;
    let flag = match mark {
        Mark::Plain => 0,
        Mark::Failed => FAILED,
        Mark::Left => LEFT,
    };
    Some((length | flag).to_le_bytes())
}

/// Where the parts of a unit of answers are, by its lengths.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a>(pub &'a [u8]);

impl<'a> Runs<'a> {
    fn words(self) -> impl Iterator<Item = u32> + 'a {
        self.0.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
    }

    /// Of all answers, in order.
    pub fn lengths(self) -> impl Iterator<Item = u64> + 'a {
        self.words().map(|word| u64::from(word & !(FAILED | LEFT)))
    }

    /// Which runs failed, counted from the unit's first.
    pub fn failed(self) -> impl Iterator<Item = u64> + 'a {
        (0..).zip(self.words()).filter(|(_, word)| word & FAILED != 0).map(|(index, _)| index)
    }

    /// Which runs have a record, counted from the unit's first; and whether they failed.
    pub fn noted(self) -> impl Iterator<Item = (u64, bool)> + 'a {
        let noted = (0..).zip(self.words()).filter(|(_, word)| word & (FAILED | LEFT) != 0);
        noted.map(|(index, word)| (index, word & FAILED != 0))
    }

    pub fn answers(self) -> Range<u64> {
        let head = self.0.len() as u64;
        head..head + self.lengths().sum::<u64>()
    }

    /// The records of the runs that failed or left more than their answers.
    pub fn records(self) -> Range<u64> {
        let start = self.answers().end;
        start..start + self.noted().count() as u64 * RECORD_BYTES
    }
}

pub fn records(bytes: &[u8]) -> impl Iterator<Item = Record> {
    bytes.chunks_exact(RECORD_BYTES as usize).map(Record::read)
}

/// What some items came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part<'b> {
    /// Before their answers.
    lengths: &'b [u8],
    pub answers: &'b [u8],
    /// How those ended that failed, what the others left, and behind that the ends of their stderr and their files.
    records: &'b [u8],
    left: &'b [u8],
}

/// What the result of one unit must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Exact(u64),
    /// The lengths of so many runs, then their answers, then how those ended that failed and what the others left; at most
    /// `most` bytes in all.
    Runs {
        runs: u64,
        most: u64,
        /// Bytes of one run's answer with its files, at most.
        output: u64,
    },
}

impl Form<'_> {
    /// Bytes of each item, where all have the same.
    pub fn item_bytes(&self) -> Option<u64> {
        match self {
            Form::Nothing => Some(0),
            Form::Items { bytes } => Some(*bytes),
            Form::Tiles(render) => Some(render.tile_bytes()),
            Form::Rows(batch) => Some(batch.row_bytes()),
            Form::Answers => None,
        }
    }

    /// Whether two results of the same items are one; `near` says it of numbers that devices round.
    pub fn agree(&self, a: &[u8], b: &[u8], near: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        match self {
            Form::Rows(batch) => batch.agree(a, b, near),
            Form::Nothing | Form::Items { .. } | Form::Tiles(_) | Form::Answers => near(a, b),
        }
    }

    /// Bytes at the start of a unit's result that are no part of the job's.
    pub fn head_bytes(&self, span: Span) -> u64 {
        match self {
            Form::Nothing | Form::Items { .. } | Form::Tiles(_) | Form::Rows(_) => 0,
            Form::Answers => span.len.saturating_mul(LENGTH_BYTES),
        }
    }

    pub fn shape(&self, span: Span, limits: &Limits) -> Shape {
        match self.item_bytes() {
            Some(each) => Shape::Exact(span.len.saturating_mul(each)),
            None => {
                // Files are counted with the answer.
                let noted = RECORD_BYTES + MAX_STDERR_BYTES as u64;
                let each = limits.output.saturating_add(LENGTH_BYTES + noted);
                let most = span.len.saturating_mul(each).min(MAX_ANSWERS_BYTES);
                Shape::Runs { runs: span.len, most, output: limits.output }
            }
        }
    }

    /// What some items came to in the result of `span`.
    pub fn part<'b>(&self, items: Span, (span, bytes): (Span, &'b [u8])) -> Option<Part<'b>> {
        let from = usize::try_from(items.start.checked_sub(span.start)?).ok()?;
        let len = usize::try_from(items.len).ok()?;
        let Some(each) = self.item_bytes() else {
            return answers(bytes, usize::try_from(span.len).ok()?, from, len);
        };
        let each = usize::try_from(each).ok()?;
        let start = from.checked_mul(each)?;
        let end = start.checked_add(len.checked_mul(each)?)?;
        Some(Part { answers: bytes.get(start..end)?, ..Part::default() })
    }
}

fn answers(bytes: &[u8], items: usize, from: usize, len: usize) -> Option<Part<'_>> {
    let head = bytes.get(..items.checked_mul(4)?)?;
    let (before, lengths) = (Runs(head.get(..from * 4)?), head.get(from * 4..(from + len) * 4)?);
    let (all, mine) = (Runs(head), Runs(lengths));
    let size = |lengths: Runs<'_>| lengths.lengths().sum::<u64>();
    let start = all.answers().start + size(before);
    let answers = cut(bytes, start..start + size(mine))?;
    let known = cut(bytes, all.records())?;
    let (skip, count) = (before.noted().count(), mine.noted().count());
    let bytes_of = |records: &[u8]| self::records(records).map(Record::bytes_behind).sum::<u64>();
    let (skipped, rest) = known.split_at_checked(skip * RECORD_BYTES as usize)?;
    let records = rest.get(..count * RECORD_BYTES as usize)?;
    let start = all.records().end + bytes_of(skipped);
    let left = cut(bytes, start..start + bytes_of(records))?;
    Some(Part { lengths, answers, records, left })
}

fn cut(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

impl Shape {
    /// Why these bytes are no such result.
    pub fn fault(&self, bytes: &[u8]) -> Option<String> {
        let size = bytes.len() as u64;
        match *self {
            Shape::Exact(expected) if size != expected => {
                Some(format!("the result has {size} bytes, expected {expected}"))
            }
            Shape::Exact(_) => None,
            Shape::Runs { runs, output, .. } => {
                let head = runs.saturating_mul(LENGTH_BYTES);
                let Some(lengths) = cut(bytes, 0..head) else { return Some(short(runs)) };
                let records = cut(bytes, Runs(lengths).records()).unwrap_or_default();
                let Ok(fault) = runs_fault(lengths, records, (size, output), from_slice(bytes));
                fault
            }
        }
    }
}

/// Why a result of so many bytes cannot begin with these lengths and have these records, or the files that `read` copies
/// from it, if a run may leave `output` bytes.
pub fn runs_fault<E>(
    lengths: &[u8],
    records: &[u8],
    (size, output): (u64, u64),
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<String>, E> {
    if let Some(fault) = sizes_fault(lengths, records, (size, output)) {
        return Ok(Some(fault));
    }
    let mut at = Runs(lengths).records().end;
    for record in self::records(records) {
        at += u64::from(record.stderr);
        let of_run = |from: u64, bytes: &mut [u8]| read(at + from, bytes);
        if let Some(fault) = left::walk(record.files.into(), of_run, |_, _, _| {})? {
            return Ok(Some(format!("what a run left in /out is damaged: {fault}")));
        }
        at += u64::from(record.files);
    }
    Ok(None)
}

fn sizes_fault(lengths: &[u8], records: &[u8], (size, output): (u64, u64)) -> Option<String> {
    let range = Runs(lengths).records();
    if range.end - range.start > records.len() as u64 {
        return Some(
            "the result is too short to hold its answers and how its failed runs ended".into(),
        );
    }
    let mut noted = Runs(lengths).noted().zip(self::records(records));
    if noted.any(|((_, failed), record)| failed == record.end.is_none()) {
        return Some(
            "the lengths and the records contradict each other on which runs failed".into(),
        );
    }
    let most = MAX_STDERR_BYTES as u32;
    if let Some(record) = self::records(records).find(|record| record.stderr > most) {
        let stderr = record.stderr;
        return Some(format!("a run has {stderr} bytes of stderr; at most {most} are kept"));
    }
    if self::records(records).any(|record| record.end == Some(End::Limit(LimitKind::Time))) {
        return Some("a run is over the time limit, which no device may say alone".into());
    }
    let expected = range.end + self::records(records).map(Record::bytes_behind).sum::<u64>();
    if expected != size {
        return Some(format!(
            "the result has {size} bytes, but the lengths at its start make {expected}"
        ));
    }
    let (mut left, runs) = (self::records(records), Runs(lengths));
    let mut with_files = runs.words().zip(runs.lengths()).map(|(word, answer)| {
        let record = if word & (FAILED | LEFT) == 0 { None } else { left.next() };
        answer + record.map_or(0, |record| u64::from(record.files))
    });
    let large = with_files.find(|bytes| *bytes > output)?;
    Some(format!("a run has {large} bytes of output with its files; at most {output} are allowed"))
}

pub fn short(runs: u64) -> String {
    format!("the result is too short to hold the lengths of {runs} answers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_must_be_as_long_as_they_say() {
        let shape = Shape::Runs { runs: 2, most: 100, output: 50 };
        assert_eq!(shape.fault(&[1, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', b'c']), None);
        assert!(shape.fault(&[1, 0, 0, 0, 2, 0, 0, 0, b'a']).is_some());
        assert!(shape.fault(&[1, 0, 0]).is_some());
    }

    #[test]
    fn fixed_results_must_have_their_size() {
        assert_eq!(Shape::Exact(3).fault(&[1, 2, 3]), None);
        assert!(Shape::Exact(3).fault(&[]).is_some_and(|fault| fault.contains("expected 3")));
    }

    #[test]
    fn a_part_of_a_programs_answers_is_found_by_their_lengths() {
        let whole = [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b', b'c'];
        let part =
            |bytes, from| answers(bytes, 3, from, 1).map(|part| (part.lengths, part.answers));
        assert_eq!(part(&whole, 1), Some((&whole[4..8], &b"bc"[..])));
        assert_eq!(part(&whole, 2), Some((&whole[8..12], &b""[..])));
        assert_eq!(part(&whole[..13], 1), None, "torn");
    }

    /// Three runs: `a`, then `bc` and exit code 3 with `no` on stderr, then a trap with `oh` on stderr.
    fn with_failures() -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec::Vec::new();
        for (size, mark) in [(1, Mark::Plain), (2, Mark::Failed), (0, Mark::Failed)] {
            bytes.extend(length(size, mark).expect("short"));
        }
        bytes.extend(b"abc");
        for end in [End::Exit(3), End::Trap] {
            bytes.extend(Record::failed(end, 2).bytes());
        }
        bytes.extend(b"nooh");
        bytes
    }

    #[test]
    fn runs_that_failed_stand_behind_the_answers_and_must_be_whole() {
        let bytes = with_failures();
        let runs = Runs(&bytes[..12]);
        assert!(runs.lengths().eq([1, 2, 0]) && runs.failed().eq([1, 2]));
        assert_eq!((runs.answers(), runs.records()), (12..15, 15..31));
        let ends = records(&bytes[15..31]).map(|record| record.end);
        assert!(ends.eq([Some(End::Exit(3)), Some(End::Trap)]));
        let shape = Shape::Runs { runs: 3, most: 100, output: 50 };
        assert_eq!(shape.fault(&bytes), None);
        for len in 0..bytes.len() {
            assert!(shape.fault(&bytes[..len]).is_some(), "torn at {len}");
        }
        let mut long = bytes;
        long[15 + 4..][..4].copy_from_slice(&5000_u32.to_le_bytes());
        assert!(shape.fault(&long).is_some_and(|fault| fault.contains("5000 bytes of stderr")));
    }

    #[test]
    fn a_run_over_a_limit_says_which_and_no_device_says_it_of_the_time() {
        for limit in LIMITS {
            let bytes = Record::alone(End::Limit(limit), b"why");
            let (runs, shape) = (Runs(&bytes[..4]), Shape::Runs { runs: 1, most: 100, output: 50 });
            assert!(runs.failed().eq([0]) && runs.answers().is_empty());
            let known: Vec<_> = records(&bytes[4..12]).collect();
            assert_eq!(known, [Record::failed(End::Limit(limit), 3)]);
            assert_eq!(
                (&bytes[12..], shape.fault(&bytes).is_some()),
                (&b"why"[..], limit == LimitKind::Time)
            );
        }
        let long = Record::alone(End::Trap, &[7; MAX_STDERR_BYTES + 1]);
        assert_eq!(long.len(), 12 + MAX_STDERR_BYTES);
    }

    #[test]
    fn a_part_has_what_its_own_failures_left_and_no_others() {
        let bytes = with_failures();
        let part = |from, len| answers(&bytes, 3, from, len).expect("whole");
        assert_eq!((part(0, 1).records, part(0, 1).left), (&b""[..], &b""[..]));
        assert_eq!((part(1, 1).answers, part(1, 1).left), (&b"bc"[..], &b"no"[..]));
        assert_eq!((part(2, 1).records, part(2, 1).left), (&bytes[23..31], &b"oh"[..]));
        assert_eq!(part(1, 2).left, b"nooh");
    }

    /// Two runs: `a` with `hm` on stderr and these files, then one that failed.
    fn with_files(files: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(length(1, Mark::Left).expect("short"));
        bytes.extend(length(0, Mark::Failed).expect("short"));
        bytes.extend(b"a");
        bytes.extend(Record::left(2, files.len()).bytes());
        bytes.extend(Record::failed(End::Exit(1), 1).bytes());
        bytes.extend([b"hm", files, b"n"].concat());
        bytes
    }

    #[test]
    fn what_runs_leave_beside_their_answers_is_theirs_and_must_be_whole() {
        let mut files = Vec::new();
        left::pack(&mut files, "d/f", b"z");
        let bytes = with_files(&files);
        let runs = Runs(&bytes[..8]);
        assert!(runs.failed().eq([1]) && runs.noted().eq([(0, false), (1, true)]));
        assert_eq!((runs.answers(), runs.records()), (8..9, 9..25));
        let known: Vec<_> = records(&bytes[9..25]).collect();
        assert_eq!(known, [Record::left(2, 12), Record::failed(End::Exit(1), 1)]);
        let part = |from| answers(&bytes, 2, from, 1).expect("whole");
        assert_eq!((part(0).left, part(1).left), (&[b"hm", &files[..]].concat()[..], &b"n"[..]));
        let shape = Shape::Runs { runs: 2, most: 100, output: 50 };
        assert_eq!(shape.fault(&bytes), None);
        for len in 0..bytes.len() {
            assert!(shape.fault(&bytes[..len]).is_some(), "torn at {len}");
        }
        let mut lying = bytes.clone();
        lying[3] = 0x80;
        assert!(shape.fault(&lying).is_some_and(|fault| fault.contains("contradict")));
        assert_eq!(length(1 << 30, Mark::Plain), None, "its bit says something else");
    }

    #[test]
    fn files_that_no_run_leaves_are_refused() {
        let shape = Shape::Runs { runs: 2, most: 100, output: 25 };
        let mut files = Vec::new();
        left::pack(&mut files, "a", b"z");
        left::pack(&mut files, "a-", b"yxwv");
        assert_eq!((files.len(), shape.fault(&with_files(&files))), (24, None));
        let mut one_more = files.clone();
        one_more[left::size("a", 1) as usize + 4] = 5;
        one_more.push(b'u');
        let large = shape.fault(&with_files(&one_more));
        assert!(large.is_some_and(|fault| fault.contains("26 bytes of output")));
        for torn in [&files[..23], &files[1..]] {
            assert!(shape.fault(&with_files(torn)).is_some_and(|it| it.contains("damaged")));
        }
        let mut through = Vec::new();
        left::pack(&mut through, "a", b"");
        left::pack(&mut through, "a/b", b"");
        assert!(shape.fault(&with_files(&through)).is_some_and(|it| it.contains("folder")));
    }
}
