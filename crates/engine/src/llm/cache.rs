//! What a sequence's earlier positions left behind: keys and values of each layer, as halves. A position that does not
//! follow is refused: an answer from a cache with a hole would be fluent and wrong.

use std::collections::BTreeMap;
use std::ops::Range;

use super::error::RunError;
use super::lanes::{LANES, narrow};

/// The sequences of one stage.
pub(crate) struct Cache {
    shape: Shape,
    most_sequences: usize,
    most_positions: u32,
    sequences: BTreeMap<u64, Sequence>,
}

#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    pub(crate) kv_heads: usize,
    /// Elements of a head, and those filled up to sixteens.
    pub(crate) head: usize,
    pub(crate) filled: usize,
}

#[derive(Clone)]
struct Sequence {
    length: u32,
    /// For each layer and head.
    heads: Vec<Head>,
}

#[derive(Clone, Default)]
pub(crate) struct Head {
    /// `[position / 16][element][position % 16]`.
    pub(crate) keys: Vec<u16>,
    /// `[position][element]`, whole sixteens of positions.
    pub(crate) values: Vec<u16>,
}

impl Cache {
    pub(crate) fn new(shape: Shape, most_sequences: usize, most_positions: u32) -> Cache {
        Cache { shape, most_sequences, most_positions, sequences: BTreeMap::new() }
    }

    pub(crate) fn most_sequences(&self) -> usize {
        self.most_sequences
    }

    pub(crate) fn length(&self, sequence: u64) -> u32 {
        self.sequences.get(&sequence).map_or(0, |it| it.length)
    }

    /// Bytes that are held now.
    pub(crate) fn bytes(&self) -> u64 {
        let heads = self.sequences.values().flat_map(|sequence| &sequence.heads);
        heads.map(|head| 2 * (head.keys.len() + head.values.len()) as u64).sum()
    }

    /// Whether these positions follow, row by row; nothing changes.
    pub(crate) fn check(&self, rows: impl Iterator<Item = (u64, u32)>) -> Result<(), RunError> {
        let mut lengths: BTreeMap<u64, u32> = BTreeMap::new();
        for (sequence, position) in rows {
            let length = lengths.entry(sequence).or_insert_with(|| self.length(sequence));
            if *length != position {
                return Err(RunError::Hole { sequence, length: *length, position });
            }
            if position >= self.most_positions {
                return Err(RunError::Context { sequence, most: self.most_positions });
            }
            *length += 1;
        }
        let fresh = lengths.keys().filter(|it| !self.sequences.contains_key(it)).count();
        if self.sequences.len() + fresh > self.most_sequences {
            return Err(RunError::Sequences { most: self.most_sequences });
        }
        Ok(())
    }

    /// Makes room for these rows, which were checked.
    pub(crate) fn grow(&mut self, rows: impl Iterator<Item = (u64, u32)>) {
        let Shape { layers, kv_heads, filled, .. } = self.shape;
        for (sequence, position) in rows {
            let sequence = self.sequences.entry(sequence).or_insert_with(|| Sequence {
                length: 0,
                heads: vec![Head::default(); layers * kv_heads],
            });
            sequence.length = position + 1;
            let elements = (position as usize + 1).next_multiple_of(LANES) * filled;
            for head in &mut sequence.heads {
                if head.keys.len() < elements {
                    head.keys.resize(elements, 0);
                    head.values.resize(elements, 0);
                }
            }
        }
    }

    /// Writes a row's keys and values of one layer.
    pub(crate) fn write(
        &mut self,
        layer: usize,
        (sequence, position): (u64, u32),
        keys: &[f32],
        values: &[f32],
    ) {
        let Shape { kv_heads, head: elements, filled, .. } = self.shape;
        let Some(sequence) = self.sequences.get_mut(&sequence) else { return };
        let position = position as usize;
        for (at, head) in sequence.heads[layer * kv_heads..][..kv_heads].iter_mut().enumerate() {
            let (keys, values) = (&keys[at * elements..], &values[at * elements..]);
            let begin = position / LANES * filled * LANES + position % LANES;
            for (element, key) in keys[..elements].iter().enumerate() {
                head.keys[begin + element * LANES] = narrow(*key);
            }
            let to = &mut head.values[position * filled..][..elements];
            for (to, value) in to.iter_mut().zip(values) {
                *to = narrow(*value);
            }
        }
    }

    pub(crate) fn heads(&self, layer: usize, sequence: u64) -> &[Head] {
        let kv_heads = self.shape.kv_heads;
        let sequence = self.sequences.get(&sequence);
        sequence.map_or(&[], |it| &it.heads[layer * kv_heads..][..kv_heads])
    }

    /// Forgets all positions from here on. Longer than it is, is refused.
    pub(crate) fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), RunError> {
        let held = self.length(sequence);
        if length > held {
            return Err(RunError::Hole { sequence, length: held, position: length });
        }
        if length == 0 {
            self.forget(sequence);
        } else if let Some(sequence) = self.sequences.get_mut(&sequence) {
            sequence.cut(length, self.shape.filled);
        }
        Ok(())
    }

    pub(crate) fn forget(&mut self, sequence: u64) {
        self.sequences.remove(&sequence);
    }

    /// A new sequence that begins as another one does.
    pub(crate) fn copy(&mut self, from: u64, to: u64, length: u32) -> Result<(), RunError> {
        let held = self.length(from);
        let found = self.sequences.get(&from).filter(|_| length > 0 && length <= held);
        let Some(found) = found else {
            return Err(RunError::Hole { sequence: from, length: held, position: length });
        };
        if let Some(there) = self.sequences.get(&to) {
            return Err(RunError::Hole { sequence: to, length: there.length, position: 0 });
        }
        if self.sequences.len() >= self.most_sequences {
            return Err(RunError::Sequences { most: self.most_sequences });
        }
        let mut copy = found.clone();
        copy.cut(length, self.shape.filled);
        self.sequences.insert(to, copy);
        Ok(())
    }
}

impl Sequence {
    fn cut(&mut self, length: u32, filled: usize) {
        self.length = length;
        let elements = (length as usize).next_multiple_of(LANES) * filled;
        for head in &mut self.heads {
            head.keys.truncate(elements);
            head.values.truncate(elements);
        }
    }
}

/// Rows of one sequence that follow each other in a batch.
pub(crate) fn runs(sequences: &[u64]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (row, sequence) in sequences.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if sequences[run.start] == *sequence => run.end = row + 1,
            _ => runs.push(row..row + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> Cache {
        Cache::new(Shape { layers: 1, kv_heads: 1, head: 16, filled: 16 }, 2, 20)
    }

    fn put(cache: &mut Cache, rows: &[(u64, u32)]) -> Result<(), RunError> {
        cache.check(rows.iter().copied())?;
        cache.grow(rows.iter().copied());
        Ok(())
    }

    #[test]
    fn positions_that_do_not_follow_are_refused() {
        let mut cache = cache();
        assert_eq!(put(&mut cache, &[(1, 0), (1, 1), (2, 0)]), Ok(()));
        let hole = RunError::Hole { sequence: 1, length: 2, position: 3 };
        assert_eq!(put(&mut cache, &[(1, 3)]), Err(hole));
        // Also within a batch, and a position that is there already.
        let hole = RunError::Hole { sequence: 1, length: 3, position: 4 };
        assert_eq!(put(&mut cache, &[(1, 2), (1, 4)]), Err(hole));
        assert_eq!(cache.length(1), 2);
        assert!(put(&mut cache, &[(1, 0)]).is_err());
        assert_eq!(put(&mut cache, &[(3, 0)]), Err(RunError::Sequences { most: 2 }));
        cache.forget(2);
        assert_eq!(put(&mut cache, &[(3, 0)]), Ok(()));
        let hole = RunError::Hole { sequence: 2, length: 0, position: 1 };
        assert_eq!(put(&mut cache, &[(2, 1)]), Err(hole));
    }

    #[test]
    fn sequences_are_cut_and_copied() {
        let mut cache = cache();
        let rows: Vec<(u64, u32)> = (0..20).map(|at| (5, at)).collect();
        assert_eq!(put(&mut cache, &rows), Ok(()));
        assert_eq!(put(&mut cache, &[(5, 20)]), Err(RunError::Context { sequence: 5, most: 20 }));
        assert_eq!(cache.copy(5, 6, 3), Ok(()));
        assert_eq!((cache.length(5), cache.length(6)), (20, 3));
        assert!(cache.copy(5, 6, 3).is_err());
        assert!(cache.truncate(6, 4).is_err());
        assert_eq!(cache.truncate(5, 17), Ok(()));
        assert_eq!(put(&mut cache, &[(5, 17)]), Ok(()));
        assert_eq!(cache.truncate(5, 0), Ok(()));
        assert_eq!((cache.length(5), cache.bytes()), (0, 2 * 2 * 256));
    }

    #[test]
    fn rows_of_a_sequence_go_together() {
        assert_eq!(runs(&[1, 1, 2, 1]), [0..2, 2..3, 3..4]);
    }
}
