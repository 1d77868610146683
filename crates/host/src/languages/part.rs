//! Some layers of a language model that this node keeps in a crew.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use shoal_engine::llm::{Given, Options, READ_STEP, Rounds, Stage};
use shoal_kinds::LlmWork;
use shoal_node::{Passing, Turned};
use shoal_protocol::{Attempt, Failure, Span};

use super::{bounds, head, spelling};
use crate::courier::Courier;

pub(crate) struct Part {
    rounds: Mutex<Rounds>,
    /// To be forgotten, once nobody computes.
    over: Mutex<Vec<Attempt>>,
}

impl Part {
    /// Fetches these layers and no others.
    pub(crate) fn load(
        courier: &mut Courier,
        work: &LlmWork,
        parts: Span,
        threads: usize,
    ) -> Result<Part, Failure> {
        let unable = |message: String| Failure::Unable { message };
        let layers = work.layers(parts);
        let layers = layers.ok_or_else(|| unable(format!("the model has no parts {parts}")))?;
        let model = head(courier, work.model)?;
        let part = model.part(layers.clone()).map_err(|error| unable(error.to_string()))?;
        courier.gather_ranges(work.model, &part.ranges);
        let mut read = |range: Range<u64>| {
            let bytes = courier.range(work.model, range).map_err(|failure| failure.to_string())?;
            Ok(bytes.into())
        };
        let sequences = work.texts().into();
        let options = Options { threads, context: work.context, sequences, kernel: None };
        let stage = Stage::load(&model, layers, &options, &mut read);
        let stage = stage.map_err(|error| unable(error.to_string()))?;
        let words = stage.is_last().then(|| spelling(&model)).flatten();
        let rounds = Rounds::new(stage, bounds(&model, work, READ_STEP), words, work.wire);
        Ok(Part { rounds: Mutex::new(rounds), over: Mutex::default() })
    }

    /// A new epoch begins.
    pub(crate) fn clear(&self) {
        self.over().clear();
        self.rounds().clear();
    }

    /// What became of each item, and whether it says how fast this node is.
    pub(crate) fn turn(&self, items: &[Passing], now: u64) -> (Vec<Turned>, bool) {
        let mut rounds = self.rounds();
        self.over().drain(..).for_each(|call| rounds.forget(call.0));
        let given = items.iter().map(|it| Given { text: it.call.0, way: it.way, bytes: &it.bytes });
        let turn = rounds.turn(&given.collect::<Vec<_>>(), now);
        let made = items.iter().map(|item| item.call).zip(turn.made).collect();
        (made, turn.usual)
    }

    /// Nobody wants that text any more. Nobody waits for a turn to say so.
    pub(crate) fn forget(&self, call: Attempt) {
        let rounds = match self.rounds.try_lock() {
            Ok(rounds) => Some(rounds),
            Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match rounds {
            Some(mut rounds) => rounds.forget(call.0),
            None => self.over().push(call),
        }
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
