//! The answers of a program while its job runs: those that follow the ones that are here already.

use reqwest::Method;
use reqwest::header::HeaderMap;
use shoal_kinds::form::{LENGTH_BYTES, RECORD_BYTES, Record, Runs, records};

use super::Client;
use crate::fail::Fail;

/// One run's answer, and what it left beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) item: u64,
    /// What it wrote until it failed, if it did.
    pub(crate) bytes: Vec<u8>,
    pub(crate) failed: bool,
    /// The end of it.
    pub(crate) stderr: String,
    /// Packed by [`shoal_kinds::exec::left`].
    pub(crate) files: Vec<u8>,
}

impl Client {
    /// Hands over the answers from an item on that are there now, some at a time. Gives the first item whose answer is
    /// not, and how often answers of the job were taken back so far.
    pub(crate) async fn answers(
        &self,
        job: u64,
        from: &mut u64,
        mut each: impl AsyncFnMut(Vec<Answer>) -> Result<(), Fail>,
    ) -> Result<u64, Fail> {
        let note = |text: &str| self.note(text);
        let mut tries = self.tries(&note);
        loop {
            let before = *from;
            match self.answers_from(job, from, &mut each).await {
                Ok((taken_back, true)) => return Ok(taken_back),
                Ok((_, false)) => tries.moved(),
                Err(Broke::Over(fail)) => return Err(fail),
                Err(Broke::Again(fail)) => {
                    if *from > before {
                        tries.moved();
                    }
                    tries.again(fail).await?;
                }
            }
        }
    }

    /// One request; says whether there is no more.
    async fn answers_from(
        &self,
        job: u64,
        from: &mut u64,
        each: &mut impl AsyncFnMut(Vec<Answer>) -> Result<(), Fail>,
    ) -> Result<(u64, bool), Broke> {
        let path = format!("/api/v1/jobs/{job}/answers?from={from}&left=true");
        let answer = self.request(Method::GET, &path).send().await;
        let mut answer = self.accept(answer).await.map_err(Broke::Again)?;
        let (groups, taken_back) = announced(answer.headers()).map_err(Broke::Over)?;
        let is_last = groups.is_empty();
        let mut reader = Reader { groups, item: *from, ..Reader::default() };
        loop {
            let piece = answer.chunk().await;
            let piece = piece.map_err(|error| Broke::Again(self.unreachable(&error)))?;
            let Some(piece) = piece else { break };
            let answers = reader.push(&piece);
            if let Some(next) = answers.last().map(|answer| answer.item + 1) {
                each(answers).await.map_err(Broke::Over)?;
                *from = next;
            }
        }
        if !reader.is_done() {
            let message = "the answers arrived incomplete";
            return Err(Broke::Again(Fail::world("connection_lost", message)));
        }
        Ok((taken_back, is_last))
    }
}

enum Broke {
    /// What arrived cannot be used, or not put away.
    Over(Fail),
    Again(Fail),
}

fn announced(headers: &HeaderMap) -> Result<(Vec<u64>, u64), Fail> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let groups = text("x-shoal-runs").map(|runs| {
        runs.split(',').filter(|count| !count.is_empty()).map(str::parse).collect::<Result<_, _>>()
    });
    let taken_back = text("x-shoal-taken-back").and_then(|count| count.parse().ok());
    match (groups, taken_back) {
        (Some(Ok(groups)), Some(taken_back)) => Ok((groups, taken_back)),
        _ => {
            Err(Fail::world("bad_answer", "the coordinator does not say how many answers it sends"))
        }
    }
}

/// Cuts a response into answers, however its bytes come.
#[derive(Default)]
struct Reader {
    /// How many answers each group that did not begin yet has.
    groups: Vec<u64>,
    group: Option<Group>,
    held: Vec<u8>,
    /// The next answer is this item's.
    item: u64,
}

/// The answers of one unit.
struct Group {
    /// Its table of lengths, and where each answer that is still to come ends, the next one last.
    table: Vec<u8>,
    sizes: Vec<usize>,
    /// Answers that wait for what was left beside one of them.
    waiting: Vec<Answer>,
    /// The first of the runs with a record, and how many there are.
    noted: Option<(u64, usize)>,
    first: u64,
    records: Option<Vec<Record>>,
}

impl Group {
    fn new(table: Vec<u8>, first: u64) -> Group {
        let runs = Runs(&table);
        let size = |length: u64| usize::try_from(length).unwrap_or(usize::MAX);
        let mut sizes: Vec<usize> = runs.lengths().map(size).collect();
        sizes.reverse();
        let noted = runs.noted().next().map(|(at, _)| (first + at, runs.noted().count()));
        Group { table, sizes, waiting: Vec::new(), noted, first, records: None }
    }

    /// Gives every run its own, and says whether the rest of the group is there.
    fn hand_out(&mut self, rest: &[u8]) -> Option<usize> {
        let Some((_, count)) = self.noted else { return Some(0) };
        let head = count * RECORD_BYTES as usize;
        if self.records.is_none() {
            self.records = Some(records(rest.get(..head)?).collect());
        }
        let known = self.records.as_deref().unwrap_or_default();
        let behind: u64 = known.iter().map(|record| record.bytes_behind()).sum();
        let all = head.saturating_add(usize::try_from(behind).unwrap_or(usize::MAX));
        let mut behind = rest.get(head..all)?;
        let start = self.waiting.first().map_or(0, |answer| answer.item);
        for ((at, failed), record) in Runs(&self.table).noted().zip(known) {
            let (stderr, after) = behind.split_at(record.stderr as usize);
            let (files, after) = after.split_at(record.files as usize);
            behind = after;
            let place = usize::try_from(self.first + at - start).unwrap_or(usize::MAX);
            if let Some(answer) = self.waiting.get_mut(place) {
                answer.failed = failed;
                answer.stderr = String::from_utf8_lossy(stderr).into_owned();
                answer.files = files.to_vec();
            }
        }
        Some(all)
    }
}

impl Reader {
    fn push(&mut self, piece: &[u8]) -> Vec<Answer> {
        self.held.extend_from_slice(piece);
        let (mut at, mut answers) = (0, Vec::new());
        while let Some(taken) = self.step(at, &mut answers) {
            at += taken;
        }
        self.held.drain(..at);
        answers
    }

    /// Takes the next part that is whole: how many bytes it has.
    fn step(&mut self, at: usize, answers: &mut Vec<Answer>) -> Option<usize> {
        let rest = self.held.get(at..)?;
        let Some(group) = &mut self.group else {
            let size = self.groups.first()?.checked_mul(LENGTH_BYTES)?;
            let table = rest.get(..usize::try_from(size).ok()?)?;
            self.group = Some(Group::new(table.to_vec(), self.item));
            self.groups.remove(0);
            return Some(table.len());
        };
        let Some(size) = group.sizes.last() else {
            let taken = group.hand_out(rest)?;
            answers.append(&mut group.waiting);
            self.group = None;
            return Some(taken);
        };
        let bytes = rest.get(..*size)?;
        let answer = Answer { item: self.item, bytes: bytes.to_vec(), ..Answer::default() };
        // Those before the first with more need not wait for it.
        match group.noted {
            Some((first, _)) if self.item >= first => group.waiting.push(answer),
            Some(_) | None => answers.push(answer),
        }
        self.item += 1;
        group.sizes.pop();
        Some(bytes.len())
    }

    fn is_done(&self) -> bool {
        self.groups.is_empty() && self.group.is_none() && self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use shoal_kinds::form::{End, Mark, length};

    use super::*;

    #[test]
    fn answers_are_cut_out_however_the_bytes_come() {
        let table = |sizes: &[(usize, Mark)]| -> Vec<u8> {
            sizes.iter().flat_map(|(size, mark)| length(*size, *mark).expect("short")).collect()
        };
        let bytes = [
            &table(&[(1, Mark::Plain), (2, Mark::Failed), (1, Mark::Left), (0, Mark::Plain)])[..],
            b"abcd",
            &Record::failed(End::Exit(3), 2).bytes(),
            &Record::left(1, 3).bytes(),
            b"noxyyy",
            &table(&[(0, Mark::Plain)]),
            &table(&[(2, Mark::Plain)]),
            b"de",
        ];
        let bytes = bytes.concat();
        let answer = |item, bytes: &[u8]| Answer { item, bytes: bytes.into(), ..Answer::default() };
        let expected = [
            answer(5, b"a"),
            Answer { failed: true, stderr: "no".into(), ..answer(6, b"bc") },
            Answer { stderr: "x".into(), files: b"yyy".into(), ..answer(7, b"d") },
            answer(8, b""),
            answer(9, b""),
            answer(10, b"de"),
        ];
        // Groups of four, one and one; the third has its table behind the second's answer, which is empty.
        for size in 1..=bytes.len() {
            let mut reader = Reader { groups: vec![4, 1, 1], item: 5, ..Reader::default() };
            let mut found = Vec::new();
            bytes.chunks(size).for_each(|piece| found.extend(reader.push(piece)));
            assert!(reader.is_done());
            assert_eq!(found, expected);
        }
        let mut torn = Reader { groups: vec![4], item: 5, ..Reader::default() };
        let early = torn.push(&bytes[..bytes.len() - 15]);
        assert_eq!((early.len(), torn.is_done()), (1, false), "those before need not wait");
    }
}
