//! The answers of an exec job, one per run, cut from its result as it arrives.

use crate::client::{Client, Sink};
use crate::fail::Fail;
use crate::show;

/// Hands each answer over, in order; tells how many there were.
pub(crate) async fn each(
    client: &Client,
    job: u64,
    mut take: impl FnMut(usize, &[u8]) -> Result<(), Fail>,
) -> Result<usize, Fail> {
    let ends = client.ends(job).await?;
    let mut cutter = Cutter { ends: &ends, next: 0, at: 0, pending: Vec::new() };
    cutter.ended(&mut take)?;
    let bar = show::Bytes::hidden();
    client.result(job, &bar, |piece| cutter.push(piece, &mut take)).await?;
    if cutter.next != ends.len() {
        return Err(Fail::world("bad_answer", "the answers arrived incomplete"));
    }
    Ok(ends.len())
}

/// Writes all answers one after the other. As lines, each that does not end one gets a newline, so
/// that answers of different lines never run together.
pub(crate) async fn write(
    client: &Client,
    job: u64,
    sink: &mut Sink,
    as_lines: bool,
) -> Result<usize, Fail> {
    each(client, job, |_, answer| {
        sink.write(answer)?;
        if as_lines && answer.last().is_some_and(|last| *last != b'\n') {
            sink.write(b"\n")?;
        }
        Ok(())
    })
    .await
}

struct Cutter<'a> {
    ends: &'a [u64],
    next: usize,
    at: u64,
    pending: Vec<u8>,
}

impl Cutter<'_> {
    fn push(
        &mut self,
        mut piece: &[u8],
        take: &mut impl FnMut(usize, &[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        while !piece.is_empty() {
            let Some(&end) = self.ends.get(self.next) else {
                return Err(Fail::world("bad_answer", "the answers are longer than announced"));
            };
            let left = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
            let (now, later) = piece.split_at(piece.len().min(left));
            self.pending.extend_from_slice(now);
            self.at += now.len() as u64;
            piece = later;
            self.ended(take)?;
        }
        Ok(())
    }

    /// Hands over all answers that end here; several may, where some are empty.
    fn ended(
        &mut self,
        take: &mut impl FnMut(usize, &[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        while self.ends.get(self.next).is_some_and(|end| *end <= self.at) {
            take(self.next, &self.pending)?;
            self.pending.clear();
            self.next += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_cut_at_their_ends_however_the_bytes_come() {
        let ends = [0, 3, 3, 5, 5];
        for size in 1..=5 {
            let mut found = Vec::new();
            let mut take = |index: usize, answer: &[u8]| {
                assert_eq!(index, found.len());
                found.push(answer.to_vec());
                Ok(())
            };
            let mut cutter = Cutter { ends: &ends, next: 0, at: 0, pending: Vec::new() };
            cutter.ended(&mut take).expect("taken");
            for piece in b"abcde".chunks(size) {
                cutter.push(piece, &mut take).expect("taken");
            }
            assert_eq!(found, [&b""[..], b"abc", b"", b"de", b""]);
        }
    }
}
