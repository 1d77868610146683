//! A whole model as conversations ask it: steps of several at a time, each with its own outcome.

use std::future::Future;

use super::error::RunError;
use super::stage::{Input, Output, Row, Stage};

/// Tokens that follow each other in one conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub sequence: u64,
    /// How many went before.
    pub position: u32,
    pub tokens: Vec<u32>,
    /// The numbers behind so many of the last ones are wanted.
    pub wants: usize,
}

/// Numbers behind the last tokens of a step, one after the other, if they were wanted.
pub type Outcome = Result<Option<Vec<f32>>, String>;

/// What holds the numbers of conversations.
pub trait Holds {
    fn drop_sequence(&mut self, sequence: u64);

    /// Forgets a sequence's positions from `length` on.
    fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), String>;

    /// Begins a new sequence with the first positions of another one.
    fn copy_prefix(&mut self, from: u64, to: u64, length: u32) -> Result<(), String>;

    /// Whether it will never compute again, whatever it is asked: another one is to be loaded.
    fn is_lost(&self) -> bool {
        false
    }
}

/// What computes steps at once.
pub trait Computes: Holds {
    /// Continues sequences; gives numbers for each step that wants them, in order. A refused run changes nothing.
    fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String>;

    /// The same for the numbers behind each token of a step, as they are before words are chosen from them.
    fn read(&mut self, _: &Step) -> Result<Vec<f32>, String> {
        Err(NO_NUMBERS.into())
    }

    /// The same with an outcome for each: one that is wrong must not fail the others.
    fn run_each(&mut self, steps: &[Step]) -> Vec<Outcome> {
        match self.run(steps) {
            Ok(numbers) => numbers.into_iter().map(Ok).collect(),
            Err(_) if steps.len() > 1 && !self.is_lost() => steps
                .iter()
                .map(|step| {
                    let alone = self.run(std::slice::from_ref(step))?;
                    Ok(alone.into_iter().next().flatten())
                })
                .collect(),
            Err(error) => vec![Err(error); steps.len()],
        }
    }
}

/// What computes steps, and is awaited: a GPU.
pub trait ComputesLater: Holds {
    fn run(
        &mut self,
        steps: &[Step],
    ) -> impl Future<Output = Result<Vec<Option<Vec<f32>>>, String>>;
}

/// Why a text does not become numbers.
pub(super) const NO_NUMBERS: &str = "this engine gives no numbers of texts";

/// All layers of a model.
pub struct Whole {
    stage: Stage,
    words: usize,
}

impl Whole {
    /// The stage must have all layers: others give no numbers.
    pub fn new(stage: Stage) -> Whole {
        let words = stage.words();
        Whole { stage, words }
    }
}

impl Computes for Whole {
    fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
        let (rows, tokens) = rows_of(steps);
        let output = self.stage.run(&rows, Input::Tokens(&tokens));
        let Output::Logits(numbers) = output.map_err(|error: RunError| error.to_string())? else {
            return Err("the engine gave no logits: it has not all of the model".into());
        };
        Ok(parted(steps, &numbers, self.words))
    }

    fn read(&mut self, step: &Step) -> Result<Vec<f32>, String> {
        let (rows, tokens) = rows_of(std::slice::from_ref(step));
        self.stage.read(&rows, Input::Tokens(&tokens)).map_err(|error| error.to_string())
    }
}

impl Holds for Whole {
    fn drop_sequence(&mut self, sequence: u64) {
        self.stage.drop_sequence(sequence);
    }

    fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), String> {
        self.stage.truncate(sequence, length).map_err(|error| error.to_string())
    }

    fn copy_prefix(&mut self, from: u64, to: u64, length: u32) -> Result<(), String> {
        self.stage.copy_prefix(from, to, length).map_err(|error| error.to_string())
    }
}

/// Rows and tokens of all steps.
pub(crate) fn rows_of(steps: &[Step]) -> (Vec<Row>, Vec<u32>) {
    let mut rows = Vec::new();
    for step in steps {
        let first = step.tokens.len().saturating_sub(step.wants);
        rows.extend((0..step.tokens.len()).map(|at| Row {
            sequence: step.sequence,
            position: step.position + at as u32,
            wants_logits: at >= first,
        }));
    }
    (rows, steps.iter().flat_map(|step| step.tokens.iter().copied()).collect())
}

/// The numbers of each step that wants some.
pub(crate) fn parted(steps: &[Step], numbers: &[f32], words: usize) -> Vec<Option<Vec<f32>>> {
    let mut rest = numbers;
    let mut own = |step: &Step| {
        let (own, behind) = rest.split_at_checked(step.wants * words).unwrap_or((rest, &[]));
        rest = behind;
        (step.wants > 0).then(|| own.to_vec())
    };
    steps.iter().map(&mut own).collect()
}
