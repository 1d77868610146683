//! The answers of a program while its job runs: those that follow the ones that are here already.

use reqwest::Method;
use reqwest::header::HeaderMap;

use super::Client;
use crate::fail::Fail;

/// Set in the length of an answer if its run failed.
const FAILED: u32 = 1 << 31;

/// One run's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) item: u64,
    /// What it wrote until it failed, if it did.
    pub(crate) bytes: Vec<u8>,
    pub(crate) failed: bool,
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
        let path = format!("/api/v1/jobs/{job}/answers?from={from}");
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
            if !answers.is_empty() {
                each(answers).await.map_err(Broke::Over)?;
                *from = reader.item;
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
    /// Lengths of the present group's answers that are not handed over yet, the next one last.
    lengths: Vec<u32>,
    held: Vec<u8>,
    /// The next answer is this item's.
    item: u64,
}

impl Reader {
    fn push(&mut self, piece: &[u8]) -> Vec<Answer> {
        self.held.extend_from_slice(piece);
        let (mut at, mut answers) = (0, Vec::new());
        loop {
            let rest = &self.held[at..];
            if let Some(length) = self.lengths.last() {
                let size = (length & !FAILED) as usize;
                let Some(bytes) = rest.get(..size) else { break };
                let (item, failed) = (self.item, length & FAILED != 0);
                answers.push(Answer { item, bytes: bytes.to_vec(), failed });
                (at, self.item) = (at + size, self.item + 1);
                self.lengths.pop();
                continue;
            }
            let Some(count) = self.groups.first() else { break };
            let Some(size) = usize::try_from(*count).ok().and_then(|it| it.checked_mul(4)) else {
                break;
            };
            let Some(table) = rest.get(..size) else { break };
            let (words, _) = table.as_chunks::<4>();
            self.lengths = words.iter().rev().map(|word| u32::from_le_bytes(*word)).collect();
            at += size;
            self.groups.remove(0);
        }
        self.held.drain(..at);
        answers
    }

    fn is_done(&self) -> bool {
        self.groups.is_empty() && self.lengths.is_empty() && self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_cut_out_however_the_bytes_come() {
        let failed = 2 | FAILED;
        let bytes =
            [&[1, 0, 0, 0], &failed.to_le_bytes()[..], b"abc", &[0, 0, 0, 0], &[2, 0, 0, 0], b"de"];
        let bytes = bytes.concat();
        let answer = |item, bytes: &[u8], failed| Answer { item, bytes: bytes.into(), failed };
        let expected = [
            answer(5, b"a", false),
            answer(6, b"bc", true),
            answer(7, b"", false),
            answer(8, b"de", false),
        ];
        // Groups of two, one and one; the third has its table behind the second's answer, which is empty.
        for size in 1..=bytes.len() {
            let mut reader = Reader { groups: vec![2, 1, 1], item: 5, ..Reader::default() };
            let mut found = Vec::new();
            bytes.chunks(size).for_each(|piece| found.extend(reader.push(piece)));
            assert!(reader.is_done());
            assert_eq!(found, expected);
        }
        let mut torn = Reader { groups: vec![2], ..Reader::default() };
        torn.push(&bytes[..9]);
        assert!(!torn.is_done());
    }
}
