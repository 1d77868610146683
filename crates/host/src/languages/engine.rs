//! The engine as the desk asks it: a whole model on this machine.

use std::ops::Range;

use shoal_engine::llm::{Input, Options, Output, Row, Stage};
use shoal_gguf::Model;

use super::desk::{Computes, Step};

pub(super) struct Engine {
    stage: Stage,
    words: usize,
}

impl Engine {
    /// With so many threads, for so many tokens of a conversation, and so many conversations.
    pub(super) fn load(
        model: &Model,
        (threads, context, sequences): (usize, u32, usize),
        read: &mut dyn FnMut(Range<u64>) -> Result<Vec<u8>, String>,
    ) -> Result<Engine, String> {
        let options = Options { threads, context, sequences, kernel: None };
        let stage = Stage::load(model, model.whole(), &options, read);
        let stage = stage.map_err(|error| error.to_string())?;
        Ok(Engine { stage, words: model.config().vocab as usize })
    }
}

impl Computes for Engine {
    fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
        let mut rows = Vec::new();
        for step in steps {
            let last = step.tokens.len().saturating_sub(1);
            rows.extend((0..step.tokens.len()).map(|at| Row {
                sequence: step.sequence,
                position: step.position + at as u32,
                wants_logits: step.wants && at == last,
            }));
        }
        let tokens: Vec<u32> = steps.iter().flat_map(|step| step.tokens.iter().copied()).collect();
        let output = self.stage.run(&rows, Input::Tokens(&tokens));
        let Output::Logits(numbers) = output.map_err(|error| error.to_string())? else {
            return Err("the engine gave no logits: it has not all of the model".into());
        };
        let mut each = numbers.chunks(self.words);
        let mut own = |step: &Step| step.wants.then(|| each.next().unwrap_or_default().to_vec());
        Ok(steps.iter().map(&mut own).collect())
    }

    fn drop_sequence(&mut self, sequence: u64) {
        self.stage.drop_sequence(sequence);
    }
}
