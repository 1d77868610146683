//! What is text about a language model: its words and how text becomes them, chat templates, choosing the next token,
//! and putting an answer together from what was chosen. Pure: it decides everything and touches nothing. Its shells are
//! the coordinator, which writes prompts and reads answers, and the nodes, which choose.
//!
//! The same inputs give the same outputs, natively and in tabs: no function here depends on the machine.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod answer;
mod ask;
mod choose;
mod date;
mod embed;
mod file;
mod form;
mod guard;
mod join;
mod letters;
mod lookup;
mod request;
mod sample;
mod speak;
mod split;
mod stream;
mod template;
mod tokenizer;
mod vocabulary;

pub use answer::{Answer, AnswerError, Bounds, Next};
pub use ask::{Ask, Asked, Done, Garbled, Said, Why, Words, pack};
pub use choose::{Chooser, ChooserError};
pub use embed::{EmbeddingRequest, Pooling, Read};
pub use file::{Texts, TextsError};
pub use form::{Form, Json, Keeper, MOST_SCHEMA_BYTES, SchemaError, Spelling};
pub use lookup::STEP_PRICE;
pub use request::{ChatRequest, CompletionRequest, Prompt, Settings, Wrong};
pub use sample::{Chosen, MOST_ALTERNATIVES, MOST_BIASES, Sampler, Sampling, SamplingError};
pub use speak::{Chance, Ended, Finish, Heard, Named, Speaker};
pub use split::Split;
pub use stream::{Characters, Shown, Stops};
pub use template::{MOST_TEMPLATE_BYTES, Message, Role, Template, TemplateError};
pub use tokenizer::{EncodeError, Tokenizer};
pub use vocabulary::{Family, Listed, MOST_TOKENS, Sort, Token, Vocabulary, VocabularyError};
