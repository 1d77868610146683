//! What a device's engine would do: commands in order, each taking its time.

use std::collections::{BTreeMap, VecDeque};

use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::{BlobRef, Failure, Hash, Micros, Span, UnitOutput, hash};

use super::field::Grid;

/// Bytes by their hash: the coordinator's store.
pub(crate) type Blobs = BTreeMap<Hash, Vec<u8>>;

/// One crew's band on one device.
pub(crate) struct Engine {
    grid: Grid,
    /// What a row of a step takes the fastest device.
    row_micros: u64,
    lies: Option<u64>,
    rows: Span,
    state: Vec<u8>,
    before: Vec<u8>,
    queue: VecDeque<SimCommand>,
    /// A command is being worked on, and takes so long.
    busy: Option<Micros>,
}

impl Engine {
    pub(crate) fn new(grid: Grid, row_micros: u64, lies: Option<u64>) -> Engine {
        let (state, before) = (Vec::new(), Vec::new());
        let rows = Span::new(0, 0);
        let (queue, busy) = (VecDeque::new(), None);
        Engine { grid, row_micros, lies, rows, state, before, queue, busy }
    }

    /// What was asked in an older epoch is not done any more.
    pub(crate) fn ask(&mut self, command: SimCommand) {
        if matches!(command, SimCommand::Open { .. }) {
            self.queue.clear();
        }
        self.queue.push_back(command);
    }

    /// What its rows come to, where the command it is at asks for them.
    pub(crate) fn reduced(&self) -> Option<SimAnswer> {
        let command = self.queue.front()?;
        let step = match command {
            SimCommand::Keep { step, .. } | SimCommand::Finish { step, .. } => *step,
            SimCommand::Open { .. }
            | SimCommand::Step { .. }
            | SimCommand::Back { .. }
            | SimCommand::Show { .. } => return None,
        };
        let rows = self.grid.row_totals(&self.state)?;
        Some(SimAnswer::Reduced { epoch: command.epoch(), step, rows })
    }

    /// Begins the next command, if it has one and is free; how long that takes on a device that is so much slower
    /// than the fastest, in percent.
    pub(crate) fn begins(&mut self, slowness: u64) -> Option<Micros> {
        if self.busy.is_some() {
            return None;
        }
        let rows = match self.queue.front()? {
            SimCommand::Open { rows, .. } => rows.len,
            SimCommand::Step { .. }
            | SimCommand::Back { .. }
            | SimCommand::Keep { .. }
            | SimCommand::Finish { .. }
            | SimCommand::Show { .. } => self.rows.len,
        };
        self.busy = Some(Micros((rows * self.row_micros * slowness / 100).max(1)));
        self.busy
    }

    /// The command is done.
    pub(crate) fn ends(&mut self, blobs: &mut Blobs) -> Option<SimAnswer> {
        let took = self.busy.take()?;
        let command = self.queue.pop_front()?;
        self.act(command, took, blobs)
    }

    /// Does a command; the bytes it stores are named by their hash.
    fn act(&mut self, command: SimCommand, took: Micros, blobs: &mut Blobs) -> Option<SimAnswer> {
        match command {
            SimCommand::Open { epoch, rows, step, kept, .. } => {
                self.rows = rows;
                let row = self.grid.row_bytes();
                let mut state = if kept.is_empty() { self.grid.first(rows) } else { Vec::new() };
                for part in &kept {
                    let Some(bytes) = blobs.get(&part.blob.hash) else {
                        let message = format!("blob {} is gone", part.blob.hash);
                        return Some(SimAnswer::Failed {
                            epoch,
                            failure: Failure::Fetch { message },
                        });
                    };
                    let (from, to) =
                        (part.rows.start.max(rows.start), part.rows.end().min(rows.end()));
                    if from < to {
                        let at = |line: u64| (line - part.rows.start) as usize * row;
                        state.extend_from_slice(&bytes[at(from)..at(to)]);
                    }
                }
                assert_eq!(state.len(), rows.len as usize * row, "a checkpoint with a hole");
                self.state = state;
                Some(self.edges(epoch, step, took))
            }
            SimCommand::Step { epoch, step, above, below, poke } => {
                let slab = [&above[..], &self.state, &below[..]].concat();
                let mut next = self.grid.step(&slab, poke.as_ref());
                if self.lies.is_some_and(|every| (step + 1).is_multiple_of(every)) {
                    next[0] ^= 1;
                }
                self.before = std::mem::replace(&mut self.state, next);
                Some(self.edges(epoch, step + 1, took))
            }
            SimCommand::Back { .. } => {
                self.state = std::mem::take(&mut self.before);
                None
            }
            SimCommand::Keep { epoch, step } => {
                let blob = BlobRef { hash: hash(&self.state), size: self.state.len() as u64 };
                blobs.insert(blob.hash, self.state.clone());
                Some(SimAnswer::Kept { epoch, step, blob })
            }
            SimCommand::Finish { epoch, .. } => {
                let (hash, size) = (hash(&self.state), self.state.len() as u64);
                blobs.insert(hash, self.state.clone());
                Some(SimAnswer::Final { epoch, output: UnitOutput::Stored { hash, size } })
            }
            SimCommand::Show { epoch, .. } => Some(SimAnswer::Shown { epoch }),
        }
    }

    fn edges(&self, epoch: shoal_protocol::Epoch, step: u64, took: Micros) -> SimAnswer {
        let halo = self.grid.halo as usize * self.grid.row_bytes();
        let top = self.state[..halo].to_vec();
        let bottom = self.state[self.state.len() - halo..].to_vec();
        SimAnswer::Edges { epoch, step, top, bottom, took }
    }
}
