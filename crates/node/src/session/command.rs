//! What a simulation asks of the shell's engine, and its answers.

use alloc::vec::Vec;
use shoal_kinds::Figures;
use shoal_protocol::{
    Attempt, BlobRef, CheckpointPart, Epoch, Failure, JobId, Micros, Poke, Span, UnitOutput,
};

/// One thing for the engine to do, in the order given. Each but `Back` is answered once, by the answer it
/// names or by [`SimAnswer::Failed`]. Edges come in order; `Kept` and `Shown` may come later, when the bytes
/// are stored: the rows are those of the state at their place in the order. Where the work is to be reduced, `Keep`
/// and `Finish` are answered by `Reduced` as well, in order and first.
#[derive(Clone, Debug, PartialEq)]
pub enum SimCommand {
    /// Make room for `rows` of the job's grid (and the halo on either side). The state after `step` steps comes
    /// from `kept` (fetch the overlapping rows), else from the job's `first`, else from its `init`, else it is
    /// zero. With `apart`, edges are computed apart and answered before the rest. What was open for an older epoch is
    /// over. Answered by `Edges` of that state.
    Open { epoch: Epoch, job: JobId, rows: Span, step: u64, kept: Vec<CheckpointPart>, apart: bool },
    /// One step, from `step` to `step + 1`. The halos are the rows just above and just below the band, of the
    /// state after `step` steps. Answered by `Edges` of the new state, maybe before the inside is done.
    Step { epoch: Epoch, step: u64, above: Vec<u8>, below: Vec<u8>, poke: Option<Poke> },
    /// Take the last step back: its halos were guessed, and wrong. Its `Edges` are still answered. No answer.
    Back { epoch: Epoch },
    /// Store this band's rows of the present state: `PUT /node/kept/{crew}/{epoch}`. Answered by `Kept`.
    Keep { epoch: Epoch, step: u64 },
    /// Hand in this band's rows of the last state as the attempt's result, stored or inline. Answered by `Final`.
    Finish { epoch: Epoch, step: u64, attempt: Attempt },
    /// Send a picture of the present state: `PUT /node/view/{crew}`. Answered by `Shown`.
    Show { epoch: Epoch, step: u64 },
}

/// The engine's answer. Those of an older epoch change nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum SimAnswer {
    /// The first and the last `halo` rows of the band, after `step` steps.
    Edges {
        epoch: Epoch,
        step: u64,
        top: Vec<u8>,
        bottom: Vec<u8>,
        /// How long the engine was at work since the edges before; the inside of a step that was answered
        /// early counts in the next.
        took: Micros,
    },
    Kept {
        epoch: Epoch,
        step: u64,
        blob: BlobRef,
    },
    Final {
        epoch: Epoch,
        output: UnitOutput,
    },
    Shown {
        epoch: Epoch,
    },
    /// What `Reduce::rows` makes of this band's rows after `step` steps.
    Reduced {
        epoch: Epoch,
        step: u64,
        rows: Figures,
    },
    /// Whatever was asked cannot be done: this member's part is over.
    Failed {
        epoch: Epoch,
        failure: Failure,
    },
}

impl SimCommand {
    pub fn epoch(&self) -> Epoch {
        match self {
            SimCommand::Open { epoch, .. }
            | SimCommand::Step { epoch, .. }
            | SimCommand::Back { epoch }
            | SimCommand::Keep { epoch, .. }
            | SimCommand::Finish { epoch, .. }
            | SimCommand::Show { epoch, .. } => *epoch,
        }
    }
}

impl SimAnswer {
    pub fn epoch(&self) -> Epoch {
        match self {
            SimAnswer::Edges { epoch, .. }
            | SimAnswer::Kept { epoch, .. }
            | SimAnswer::Final { epoch, .. }
            | SimAnswer::Shown { epoch }
            | SimAnswer::Reduced { epoch, .. }
            | SimAnswer::Failed { epoch, .. } => *epoch,
        }
    }
}
