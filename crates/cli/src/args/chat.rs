//! `shoal chat`.

use clap::Args;

use super::{Server, help};

/// Talk to a language model, in the terminal or from a script
#[derive(Debug, Args)]
#[command(after_help = help::CHAT)]
pub(crate) struct Chat {
    /// The model's name
    pub(crate) model: String,
    /// A single question; without one, the conversation goes on in the terminal, or stdin is the question
    pub(crate) prompt: Vec<String>,
    /// Instructions for the model, before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// How freely words are chosen: 0 for the likeliest ones, up to 2 [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) temperature: Option<f32>,
    /// Choose only among the likeliest words whose probabilities add up to this, from 0 to 1
    #[arg(long, value_name = "PART")]
    pub(crate) top_p: Option<f32>,
    /// Choose only among this many of the likeliest words
    #[arg(long, value_name = "N")]
    pub(crate) top_k: Option<u32>,
    /// Make answers repeatable: the same seed and question give the same answer
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// The longest answer, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u32>,
    #[command(flatten)]
    pub(crate) server: Server,
}
