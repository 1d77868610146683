//! A member's engine in virtual time: does what it is told in order, and answers some time later.

use std::collections::BTreeMap;

use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::{BlobRef, Epoch, Hash, Micros, Span, Time, UnitOutput, hash};

use crate::grid::{Grid, Rows, bytes, rows};

/// Stored checkpoints.
pub(crate) type Store = BTreeMap<Hash, Vec<u8>>;

pub(crate) struct Engine {
    grid: Grid,
    band: Span,
    state: Rows,
    before: Option<Rows>,
    step: u64,
    epoch: Epoch,
    free: Time,
    /// What a step takes.
    pub(crate) pace: Micros,
    /// Storing takes this long, beside the steps.
    pub(crate) storing: Micros,
    /// Answers nothing any more.
    pub(crate) stuck: bool,
    /// Makes totals of its rows, as it is told.
    pub(crate) reduces: bool,
    pub(crate) shown: u32,
    pub(crate) taken_back: u32,
}

impl Engine {
    pub(crate) fn new(grid: Grid, pace: Micros) -> Engine {
        Engine {
            grid,
            band: Span::new(0, 0),
            state: Rows::new(),
            before: None,
            step: 0,
            epoch: Epoch(0),
            free: Time(0),
            pace,
            storing: Micros::from_millis(3),
            stuck: false,
            reduces: true,
            shown: 0,
            taken_back: 0,
        }
    }

    /// The answers, and when they come.
    pub(crate) fn take(
        &mut self,
        now: Time,
        store: &mut Store,
        command: SimCommand,
    ) -> Vec<(Time, SimAnswer)> {
        if self.stuck {
            return Vec::new();
        }
        let reduces = matches!(command, SimCommand::Keep { .. } | SimCommand::Finish { .. });
        let (epoch, step, at) = (command.epoch(), self.step, self.free.max(now));
        let how = self.grid.reduce.filter(|_| reduces && self.reduces);
        let rows = how.map(|how| how.rows(&self.grid.work(), &bytes(&self.state)));
        let reduced = rows.map(|rows| (at, SimAnswer::Reduced { epoch, step, rows }));
        reduced.into_iter().chain(self.act(now, store, command)).collect()
    }

    fn act(
        &mut self,
        now: Time,
        store: &mut Store,
        command: SimCommand,
    ) -> Option<(Time, SimAnswer)> {
        let epoch = command.epoch();
        let begun = self.free.max(now);
        match command {
            SimCommand::Open { rows: band, step, kept, .. } => {
                assert!(epoch > self.epoch, "opened twice");
                (self.epoch, self.band, self.step, self.before) = (epoch, band, step, None);
                self.state = if kept.is_empty() { self.grid.first(band) } else { Rows::new() };
                for part in kept {
                    let all = rows(self.grid.width, &store[&part.blob.hash]);
                    assert_eq!(all.len() as u64, part.rows.len);
                    let wanted = band.start.max(part.rows.start)..band.end().min(part.rows.end());
                    let wanted = wanted.map(|row| all[(row - part.rows.start) as usize].clone());
                    self.state.extend(wanted);
                }
                assert_eq!(self.state.len() as u64, band.len, "a checkpoint with holes");
                Some(self.edges(begun, self.pace))
            }
            SimCommand::Step { step, above, below, poke, .. } => {
                assert_eq!((epoch, step), (self.epoch, self.step), "a step out of order");
                let [above, below] = [above, below].map(|halo| rows(self.grid.width, &halo));
                let state = [&above, &self.state, &below];
                let next = self.grid.step(self.band, step, state, poke);
                self.before = Some(std::mem::replace(&mut self.state, next));
                self.step += 1;
                Some(self.edges(begun, self.pace))
            }
            SimCommand::Back { .. } => {
                self.state = self.before.take().expect("one step back, not two");
                self.step -= 1;
                self.taken_back += 1;
                None
            }
            SimCommand::Keep { step, .. } => {
                assert_eq!((epoch, step), (self.epoch, self.step), "another state is kept");
                let bytes = bytes(&self.state);
                let blob = BlobRef { hash: hash(&bytes), size: bytes.len() as u64 };
                store.insert(blob.hash, bytes);
                Some((begun + self.storing, SimAnswer::Kept { epoch, step, blob }))
            }
            SimCommand::Finish { .. } => {
                assert_eq!(self.step, self.grid.steps, "not all steps were made");
                let output = UnitOutput::Inline(bytes(&self.state));
                Some((begun, SimAnswer::Final { epoch, output }))
            }
            SimCommand::Show { step, .. } => {
                assert_eq!(step, self.step, "another state is shown");
                self.shown += 1;
                Some((begun + self.storing, SimAnswer::Shown { epoch }))
            }
        }
    }

    fn edges(&mut self, begun: Time, took: Micros) -> (Time, SimAnswer) {
        self.free = begun + took;
        let halo = self.grid.halo as usize;
        let (top, bottom) = (&self.state[..halo], &self.state[self.state.len() - halo..]);
        let (top, bottom) = (bytes(top), bytes(bottom));
        (self.free, SimAnswer::Edges { epoch: self.epoch, step: self.step, top, bottom, took })
    }
}
