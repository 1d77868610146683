//! Choosing the tokens of one answer, within the form that it must have.

use alloc::sync::Arc;

use crate::ask::Asked;
use crate::form::{Keeper, SchemaError, Spelling};
use crate::sample::{Chosen, Sampler};
use crate::vocabulary::Token;

/// Why an answer cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChooserError {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("the model's words cannot be read, so its answers cannot be kept to a form")]
    NoWords,
}

/// Chooses what an answer is made of.
#[derive(Debug)]
pub struct Chooser {
    sampler: Sampler,
    /// None: the answer is free.
    keeper: Option<Keeper>,
}

impl Chooser {
    /// Behind what was said already. `spelling` is how the model's tokens are written, if that is known: without it
    /// every answer is free.
    pub fn new(asked: &Asked, spelling: Option<&Arc<Spelling>>) -> Result<Chooser, ChooserError> {
        let Asked { ask, said } = asked;
        let sampler = Sampler::new(ask.sampling.clone(), &ask.prompt);
        let keeper = match &ask.form {
            None => None,
            Some(form) => {
                let spelling = spelling.ok_or(ChooserError::NoWords)?;
                Some(Keeper::new(form, spelling.clone(), &ask.ends)?)
            }
        };
        let mut chooser = Chooser { sampler, keeper };
        said.iter().for_each(|token| chooser.said(*token));
        Ok(chooser)
    }

    /// The token at this place. None if the logits are no numbers, or no token of the model fits the form.
    pub fn choose(&mut self, logits: &[f32], place: u64) -> Option<Chosen> {
        let Some(keeper) = &mut self.keeper else {
            return self.sampler.choose(logits, place, None);
        };
        let mask = keeper.allowed();
        let may = |token: Token| mask.get(token as usize).copied().unwrap_or(false);
        let chosen = self.sampler.choose(logits, place, Some(&may))?;
        // An end stands nowhere in the form: nothing follows it.
        keeper.said(chosen.token);
        Some(chosen)
    }

    /// What an earlier attempt chose at this point.
    fn said(&mut self, token: Token) {
        self.sampler.said(token);
        if let Some(keeper) = &mut self.keeper {
            keeper.said(token);
        }
    }
}
