//! The loop: from one state to the next.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{CheckpointPart, CrewSay, Failure, Micros, Time};

use super::halo::{Halo, Side};
use super::total::Totals;
use super::{Edges, Phase, Sim, SimOutput};
use crate::session::command::{SimAnswer, SimCommand};

/// Checkpoints being stored. One more waits until one of them is, so that slow storage slows the simulation
/// down and does not fill the memory.
pub(super) const MAX_KEEPING: usize = 2;
/// Pictures while somebody looks: ten a second look alive.
const SHOW_EVERY: Micros = Micros::from_millis(100);

impl Sim {
    pub(super) fn answered(&mut self, now: Time, answer: SimAnswer) {
        if answer.epoch() != self.place.epoch {
            return;
        }
        match answer {
            SimAnswer::Edges { step, top, bottom, took, .. } => {
                self.made(now, step, Edges { top, bottom }, took);
            }
            SimAnswer::Kept { step, blob, .. } => {
                if self.keeping.remove(&step) {
                    let part = CheckpointPart { rows: self.band, blob };
                    self.outputs.push_back(SimOutput::Says(CrewSay::Checkpoint { step, part }));
                    if matches!(self.phase, Phase::Finishing) && self.task.check == Some(step) {
                        self.phase = Phase::Done;
                        self.report(now);
                    }
                }
            }
            SimAnswer::Final { output, .. } => {
                if matches!(self.phase, Phase::Finishing) {
                    self.phase = Phase::Done;
                    self.report(now);
                    self.last = Some(output);
                }
            }
            SimAnswer::Reduced { step, rows, .. } => self.reduced(now, step, &rows),
            SimAnswer::Shown { .. } => self.showing = false,
            SimAnswer::Failed { failure, .. } => self.fail(failure),
        }
    }

    /// The engine has a next state, or the first.
    fn made(&mut self, now: Time, step: u64, edges: Edges, took: Micros) {
        if self.guess.take_stale() {
            return self.pace.made_in_vain(now, took, matches!(self.phase, Phase::Waiting));
        }
        self.pace.made(now, took);
        let lengths = [edges.top.len() as u64, edges.bottom.len() as u64];
        let expected = match self.phase {
            Phase::Opening => Some(self.step),
            Phase::Stepping => Some(self.step + 1),
            Phase::Waiting | Phase::Guessed(_) | Phase::Finishing | Phase::Done | Phase::Over => {
                None
            }
        };
        if Some(step) != expected || lengths != [self.halo_bytes; 2] {
            let message = format!(
                "edges of {lengths:?} bytes at step {step}; expected {} at {expected:?}",
                self.halo_bytes
            );
            return self.fail(Failure::Internal { message });
        }
        if self.guess.is_settled() {
            self.advance(now, step, edges);
        } else {
            self.phase = Phase::Guessed(edges);
        }
    }

    /// A state is there, and its edges are true.
    fn advance(&mut self, now: Time, step: u64, edges: Edges) {
        self.step = step;
        self.guess.renew();
        self.pokes.forget_before(step);
        let (epoch, every) = (self.place.epoch, self.task.keep_every);
        if step == self.steps {
            self.phase = Phase::Finishing;
            self.show(now, self.watched);
            if self.task.check.is_some() {
                self.keeping.insert(step);
                self.command(SimCommand::Keep { epoch, step });
            } else {
                self.command(SimCommand::Finish { epoch, step, attempt: self.task.attempt });
            }
            return self.report(now);
        }
        self.phase = Phase::Waiting;
        self.pace.told(now);
        self.tell(edges);
        self.keep_due = every > 0 && step > self.task.from && step.is_multiple_of(every);
        self.show(now, self.watched && self.show_at <= now);
    }

    /// To both neighbours, which may be one, or this member itself.
    fn tell(&mut self, Edges { top, bottom }: Edges) {
        let step = self.step;
        if self.place.ranks == 1 {
            self.halos.put(Side::Above, step, bottom);
            self.halos.put(Side::Below, step, top);
            return;
        }
        let (upper, lower) = (self.neighbour(Side::Above), self.neighbour(Side::Below));
        for (to, side, rows) in [(upper, Side::Below, top), (lower, Side::Above, bottom)] {
            let message = Halo { step, side, pokes: self.pokes.to_tell(), rows }.encode();
            self.outputs.push_back(SimOutput::Tell { to, message: Arc::new(message) });
        }
    }

    fn show(&mut self, now: Time, due: bool) {
        if due && !self.showing {
            self.showing = true;
            self.show_at = now + SHOW_EVERY;
            self.command(SimCommand::Show { epoch: self.place.epoch, step: self.step });
        }
    }

    /// Does what can be done now.
    pub(super) fn go_on(&mut self, now: Time) {
        self.settle(now);
        if self.guess.is_settled()
            && let Phase::Guessed(edges) = &mut self.phase
        {
            let edges = core::mem::take(edges);
            self.advance(now, self.step + 1, edges);
        }
        if !matches!(self.phase, Phase::Waiting) || !self.keep() {
            return;
        }
        if self.halos.missing(self.step).next().is_none() {
            self.pace.arrived(now);
            let [above, below] = Side::BOTH.map(|side| self.halos.take(side, self.step));
            self.make(now, above.unwrap_or_default(), below.unwrap_or_default());
        } else if self.guess_at().is_some_and(|at| at <= now) {
            self.make_guess(now);
        }
    }

    /// Whether nothing is to be stored before the state changes.
    fn keep(&mut self) -> bool {
        let may = self.totals.as_ref().is_none_or(Totals::has_room);
        if self.keep_due && self.keeping.len() < MAX_KEEPING && may {
            self.keep_due = false;
            self.keeping.insert(self.step);
            self.command(SimCommand::Keep { epoch: self.place.epoch, step: self.step });
        }
        !self.keep_due
    }

    pub(super) fn make(&mut self, now: Time, above: Vec<u8>, below: Vec<u8>) {
        self.pace.works(now);
        self.phase = Phase::Stepping;
        let (epoch, step, poke) = (self.place.epoch, self.step, self.pokes.of(self.step));
        self.command(SimCommand::Step { epoch, step, above, below, poke });
    }

    pub(super) fn command(&mut self, command: SimCommand) {
        self.outputs.push_back(SimOutput::Command(command));
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.phase = Phase::Over;
        self.guess.give_up();
        self.outputs.push_back(SimOutput::Says(CrewSay::Failed { failure }));
    }
}
