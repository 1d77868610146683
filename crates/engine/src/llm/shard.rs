//! A share of every matrix of a model. Devices with a share each compute every layer together, in steps: each makes some
//! numbers of what all of them have, then they give each other what they made. Every number is made whole by one device,
//! from the same inputs as on a device that has all of the model, so it has the same bits, however the shares are cut.
//!
//! | step | what a device makes |
//! |---|---|
//! | words | embeddings of those words that it has |
//! | look | what some heads find |
//! | mix | some of the numbers that this adds to a row |
//! | gate | some columns of what opens the way to the last matrix |
//! | down | some of the numbers that this adds to a row |
//! | head | the numbers of some words |
//!
//! From `look` to `down` once for each layer.

use std::ops::Range;

use shoal_gguf::{Model, Role, Share};

use super::error::{LoadError, RunError};
use super::layer;
use super::rope::Turns;
use super::stage::{Loading, Options, Row, Stage};

/// What devices make between two exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Words,
    Look(u32),
    Mix(u32),
    Gate(u32),
    Down(u32),
    Head,
}

pub struct Shard {
    stage: Stage,
    share: Share,
    /// Of the words, of what heads find, of a row, and between the feed-forward part's matrices.
    words: Range<usize>,
    found: Range<usize>,
    width: Range<usize>,
    columns: Range<usize>,
    /// How the rows are turned that were looked for last: it is the same in all layers.
    turns: Option<(Vec<u32>, Turns, Option<Turns>)>,
}

impl Step {
    /// As it travels.
    pub(super) fn number(self) -> u32 {
        match self {
            Step::Words => 0,
            Step::Look(layer) => 1 + 4 * layer,
            Step::Mix(layer) => 2 + 4 * layer,
            Step::Gate(layer) => 3 + 4 * layer,
            Step::Down(layer) => 4 + 4 * layer,
            Step::Head => u32::MAX,
        }
    }

    /// The step that travels so, in a model of so many layers.
    pub(super) fn of(number: u32, layers: u32) -> Option<Step> {
        let Some(inner) = number.checked_sub(1) else { return Some(Step::Words) };
        if number == u32::MAX {
            return Some(Step::Head);
        }
        let layer = Some(inner / 4).filter(|layer| *layer < layers)?;
        Some(match inner % 4 {
            0 => Step::Look(layer),
            1 => Step::Mix(layer),
            2 => Step::Gate(layer),
            _ => Step::Down(layer),
        })
    }

    /// The one behind it, in a model of so many layers; none behind the last.
    pub(super) fn next(self, layers: u32) -> Option<Step> {
        match self {
            Step::Words => Some(Step::Look(0)),
            Step::Look(layer) => Some(Step::Mix(layer)),
            Step::Mix(layer) => Some(Step::Gate(layer)),
            Step::Gate(layer) => Some(Step::Down(layer)),
            Step::Down(layer) if layer + 1 < layers => Some(Step::Look(layer + 1)),
            Step::Down(_) => Some(Step::Head),
            Step::Head => None,
        }
    }
}

impl Shard {
    /// Loads a share of all layers: see [`Stage::load`].
    pub fn load(
        model: &Model,
        share: &Share,
        options: &Options,
        read: &mut dyn FnMut(Range<u64>) -> Result<Vec<u8>, String>,
    ) -> Result<Shard, LoadError> {
        let mut loading = Loading::of_share(model, share, options)?;
        while let Some(range) = loading.wants() {
            let bytes = read(range).map_err(LoadError::Read)?;
            loading.give(&bytes)?;
        }
        let rows = |role| {
            let rows = model.rows_of(share, role).unwrap_or_default();
            rows.start as usize..rows.end as usize
        };
        let (words, found) = (rows(Role::Embedding), rows(Role::Query));
        let (width, columns) = (rows(Role::Out), rows(Role::Gate));
        let (stage, share, turns) = (loading.finish()?, share.clone(), None);
        Ok(Shard { stage, share, words, found, width, columns, turns })
    }

    /// Whether it has the first or the last part of all matrices.
    pub fn is_first(&self) -> bool {
        self.share.is_first()
    }

    pub fn is_last(&self) -> bool {
        self.share.is_last()
    }

    /// Memory that the weights take.
    pub fn bytes(&self) -> u64 {
        self.stage.bytes()
    }

    /// Memory that the sequences take now.
    pub fn cache_bytes(&self) -> u64 {
        self.stage.cache_bytes()
    }

    pub(super) fn length(&self, sequence: u64) -> u32 {
        self.stage.length(sequence)
    }

    pub(super) fn drop_sequence(&mut self, sequence: u64) {
        self.stage.drop_sequence(sequence);
    }

    pub(super) fn layers(&self) -> u32 {
        self.stage.config.layers
    }

    /// Numbers of a row that all devices together make in a step.
    pub(super) fn all(&self, step: Step) -> usize {
        let config = &self.stage.config;
        let numbers = match step {
            Step::Words | Step::Mix(_) | Step::Down(_) => config.width,
            Step::Look(_) => config.heads * config.head_dim,
            Step::Gate(_) => config.ff,
            Step::Head => config.vocab,
        };
        numbers as usize
    }

    /// Where those begin that this device makes; of words, the first word that it has.
    pub(super) fn first(&self, step: Step) -> usize {
        match step {
            Step::Words | Step::Head => self.words.start,
            Step::Look(_) => self.found.start,
            Step::Mix(_) | Step::Down(_) => self.width.start,
            Step::Gate(_) => self.columns.start,
        }
    }

    /// Embeddings of those words that are here.
    pub(super) fn words(&self, tokens: &[u32]) -> Result<Vec<f32>, RunError> {
        let config = &self.stage.config;
        if let Some(token) = tokens.iter().copied().find(|token| *token >= config.vocab) {
            return Err(RunError::Token { token, vocab: config.vocab });
        }
        let here = tokens.iter().map(|token| *token as usize);
        let here: Vec<usize> = here.filter(|token| self.words.contains(token)).collect();
        let width = config.width as usize;
        let mut x = vec![0.0; here.len() * width];
        if let Some(embedding) = &self.stage.weights.embedding {
            for (token, x) in here.into_iter().zip(x.chunks_exact_mut(width)) {
                embedding.row(token - self.words.start, x);
                x.iter_mut().for_each(|x| *x *= config.embedding_scale);
            }
        }
        Ok(x)
    }

    /// Makes this device's numbers for some rows of all that was made in the step before. `x` is what goes from layer to
    /// layer: whoever asks keeps it from step to step. Where it is refused, the rows must not go on.
    pub(super) fn make(
        &mut self,
        step: Step,
        rows: &[Row],
        x: &mut Vec<f32>,
        whole: Vec<f32>,
    ) -> Result<Vec<f32>, RunError> {
        let count = rows.len();
        match step {
            Step::Words => Ok(Vec::new()),
            Step::Look(layer) => {
                match layer.checked_sub(1) {
                    None => *x = whole,
                    Some(before) => self.join_feed(before, count, x, whole),
                }
                self.look(layer, rows, x)?;
                Ok(std::mem::take(&mut self.stage.scratch.wide.numbers))
            }
            Step::Mix(layer) => {
                let Stage { weights, compute, scratch, .. } = &mut self.stage;
                scratch.wide.numbers = whole;
                weights.layers[layer as usize].mix(count, compute, scratch);
                Ok(std::mem::take(&mut scratch.added))
            }
            Step::Gate(layer) => {
                let Stage { config, weights, compute, scratch, .. } = &mut self.stage;
                let layer = &weights.layers[layer as usize];
                scratch.added = whole;
                layer.join_attention(config, count, compute, scratch, x);
                layer.gate(config, count, compute, scratch, x);
                Ok(std::mem::take(&mut scratch.wide.numbers))
            }
            Step::Down(layer) => {
                let Stage { weights, compute, scratch, .. } = &mut self.stage;
                scratch.wide.numbers = whole;
                weights.layers[layer as usize].down(count, compute, scratch);
                Ok(std::mem::take(&mut scratch.added))
            }
            Step::Head => {
                self.join_feed(self.layers() - 1, count, x, whole);
                match x.iter().all(|number| number.is_finite()) {
                    true => self.stage.logits(rows, x),
                    false => Err(RunError::NotFinite),
                }
            }
        }
    }

    fn join_feed(&mut self, layer: u32, count: usize, x: &mut [f32], whole: Vec<f32>) {
        let Stage { config, weights, compute, scratch, .. } = &mut self.stage;
        scratch.added = whole;
        weights.layers[layer as usize].join_feed(config, count, compute, scratch, x);
    }

    fn look(&mut self, layer: u32, rows: &[Row], x: &[f32]) -> Result<(), RunError> {
        let Stage { config, weights, cache, compute, scratch, .. } = &mut self.stage;
        let sequences: Vec<u64> = rows.iter().map(|row| row.sequence).collect();
        let positions: Vec<u32> = rows.iter().map(|row| row.position).collect();
        if layer == 0 {
            let follows = || rows.iter().map(|row| (row.sequence, row.position));
            cache.check(follows())?;
            cache.grow(follows());
        }
        if self.turns.as_ref().is_none_or(|(known, ..)| *known != positions) {
            let (global, local) = weights.turns(config, &positions);
            self.turns = Some((positions.clone(), global, local));
        }
        let Some((_, global, local)) = &self.turns else { return Ok(()) };
        let is_global = config.is_global(layer);
        let step = layer::Step {
            config,
            layer: layer as usize,
            sequences: &sequences,
            positions: &positions,
            turns: local.as_ref().filter(|_| !is_global).unwrap_or(global),
            window: config.window.filter(|_| !is_global).map(|window| window.size),
        };
        weights.layers[layer as usize].look(&step, cache, compute, scratch, x);
        Ok(())
    }
}
