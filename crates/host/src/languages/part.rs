//! Some layers of a language model that this node keeps in a crew, or some rows of every matrix.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use shoal_engine::llm::{Abreast, Given, Options, READ_STEP, Rounds, Shard, Stage, Turn};
use shoal_gguf::{Model, Share};
use shoal_kinds::LlmWork;
use shoal_kinds::llm::By;
use shoal_node::{Passing, Turned};
use shoal_protocol::{Attempt, Failure, Span};

use super::{bounds, head, spelling};
use crate::courier::Courier;

pub(crate) struct Part {
    kept: Mutex<Kept>,
    /// To be forgotten, once nobody computes.
    over: Mutex<Vec<Attempt>>,
}

struct Kept {
    engine: Engine,
    /// What tokens that are under way took in earlier turns.
    spent: Duration,
}

enum Engine {
    Layers(Rounds),
    Tensors(Abreast),
}

/// What became of each item.
pub(crate) struct Made {
    pub(crate) turned: Vec<Turned>,
    pub(crate) took: Duration,
    /// That it took so long says how fast this node is.
    pub(crate) usual: bool,
}

impl Part {
    /// Fetches these layers or rows and no others.
    pub(crate) fn load(
        courier: &mut Courier,
        work: &LlmWork,
        parts: Span,
        threads: usize,
    ) -> Result<Part, Failure> {
        let model = head(courier, work.model)?;
        let sequences = work.texts().into();
        let options = Options { threads, context: work.context, sequences, kernel: None };
        let engine = match work.by {
            By::Layers => Engine::Layers(layers(courier, work, parts, &model, &options)?),
            By::Tensors => Engine::Tensors(tensors(courier, work, parts, &model, &options)?),
        };
        let kept = Kept { engine, spent: Duration::ZERO };
        Ok(Part { kept: Mutex::new(kept), over: Mutex::default() })
    }

    /// A new epoch begins.
    pub(crate) fn clear(&self) {
        self.over().clear();
        let mut kept = self.kept();
        kept.spent = Duration::ZERO;
        match &mut kept.engine {
            Engine::Layers(rounds) => rounds.clear(),
            Engine::Tensors(abreast) => abreast.clear(),
        }
    }

    pub(crate) fn turn(&self, items: &[Passing], now: u64) -> Made {
        let mut kept = self.kept();
        self.over().drain(..).for_each(|call| kept.engine.forget(call));
        let given = items.iter().map(|it| Given { text: it.call.0, way: it.way, bytes: &it.bytes });
        let (given, began) = (given.collect::<Vec<_>>(), Instant::now());
        let Turn { made, usual, single } = match &mut kept.engine {
            Engine::Layers(rounds) => {
                rounds.turn(&given, &|| now + began.elapsed().as_micros() as u64)
            }
            Engine::Tensors(abreast) => abreast.turn(&given, now),
        };
        let mut took = began.elapsed();
        // A token that is computed together takes many turns.
        if single {
            kept.spent += took;
        }
        if usual {
            took = std::mem::take(&mut kept.spent);
        }
        let turned = items.iter().map(|item| item.call).zip(made).collect();
        Made { turned, took, usual }
    }

    /// Nobody wants that text any more. Nobody waits for a turn to say so.
    pub(crate) fn forget(&self, call: Attempt) {
        let kept = match self.kept.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match kept {
            Some(mut kept) => kept.engine.forget(call),
            None => self.over().push(call),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    fn forget(&mut self, call: Attempt) {
        match self {
            Engine::Layers(rounds) => rounds.forget(call.0),
            Engine::Tensors(abreast) => abreast.forget(call.0),
        }
    }
}

fn layers(
    courier: &mut Courier,
    work: &LlmWork,
    parts: Span,
    model: &Model,
    options: &Options,
) -> Result<Rounds, Failure> {
    let layers = work.layers(parts).ok_or_else(|| no_parts(parts))?;
    let part = model.part(layers.clone()).map_err(unable)?;
    courier.gather_ranges(work.model, &part.ranges);
    let stage = Stage::load(model, layers, options, &mut reader(courier, work)).map_err(unable)?;
    let words = stage.is_last().then(|| spelling(model)).flatten();
    Ok(Rounds::new(stage, bounds(model, work, READ_STEP), words, work.wire))
}

fn tensors(
    courier: &mut Courier,
    work: &LlmWork,
    parts: Span,
    model: &Model,
    options: &Options,
) -> Result<Abreast, Failure> {
    let end = parts.start.saturating_add(parts.len);
    let share = Share::new(parts.start..end, work.shares()).ok_or_else(|| no_parts(parts))?;
    courier.gather_ranges(work.model, &model.slice(&share).ranges);
    let shard = Shard::load(model, &share, options, &mut reader(courier, work)).map_err(unable)?;
    let words = shard.is_last().then(|| spelling(model)).flatten();
    Ok(Abreast::new(shard, bounds(model, work, READ_STEP), words))
}

fn reader(
    courier: &mut Courier,
    work: &LlmWork,
) -> impl FnMut(Range<u64>) -> Result<Vec<u8>, String> {
    move |range: Range<u64>| {
        let bytes = courier.range(work.model, range).map_err(|failure| failure.to_string())?;
        Ok(bytes.into())
    }
}

fn no_parts(parts: Span) -> Failure {
    unable(format!("the model has no parts {parts}"))
}

fn unable(words: impl ToString) -> Failure {
    Failure::Unable { message: words.to_string() }
}
