//! The words and the template of a model, from the head of its GGUF file.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_gguf::{Head, ReadError};

use crate::embed::{Pooling, pooling};
use crate::template::{Template, TemplateError};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{Listed, Token, Vocabulary, VocabularyError};

/// What is text about a model.
#[derive(Debug)]
pub struct Texts {
    pub tokenizer: Tokenizer,
    /// None: the model was not made for conversations.
    pub template: Option<Template>,
    /// Whose numbers are those of a text; a kind that nobody here knows by its number.
    pub pooling: Result<Pooling, u64>,
}

/// Why nobody can write for a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextsError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{key} is not of the type that was expected: {expected}")]
    Type { key: &'static str, expected: &'static str },
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl Texts {
    pub fn read(head: &Head) -> Result<Texts, TextsError> {
        let words = Vocabulary::new(listed(head)?)?;
        let source = head.text("tokenizer.chat_template")?;
        let template = source.map(|source| Template::new(source, &words)).transpose()?;
        Ok(Texts { tokenizer: Tokenizer::new(words), template, pooling: pooling(head)? })
    }
}

fn listed(head: &Head) -> Result<Listed, TextsError> {
    let token = |key: &str| -> Result<Option<Token>, ReadError> {
        Ok(head.count(key)?.and_then(|token| Token::try_from(token).ok()))
    };
    let text =
        |key: &str| -> Result<Option<String>, ReadError> { Ok(head.text(key)?.map(String::from)) };
    Ok(Listed {
        model: text("tokenizer.ggml.model")?.unwrap_or_default(),
        pre: text("tokenizer.ggml.pre")?,
        tokens: texts(head, "tokenizer.ggml.tokens")?,
        sorts: match head.list("tokenizer.ggml.token_type")? {
            Some(list) => numbers("tokenizer.ggml.token_type", list.ints())?,
            None => Vec::new(),
        },
        scores: match head.list("tokenizer.ggml.scores")? {
            Some(list) => numbers("tokenizer.ggml.scores", list.reals())?,
            None => Vec::new(),
        },
        merges: texts(head, "tokenizer.ggml.merges")?,
        bos: token("tokenizer.ggml.bos_token_id")?,
        eos: token("tokenizer.ggml.eos_token_id")?,
        eot: token("tokenizer.ggml.eot_token_id")?,
        add_bos: head.flag("tokenizer.ggml.add_bos_token")?,
        add_eos: head.flag("tokenizer.ggml.add_eos_token")?,
        add_space_prefix: head.flag("tokenizer.ggml.add_space_prefix")?,
    })
}

fn texts(head: &Head, key: &'static str) -> Result<Vec<Box<str>>, TextsError> {
    let Some(list) = head.list(key)? else { return Ok(Vec::new()) };
    let texts = list.texts().ok_or(TextsError::Type { key, expected: "a list of texts" })?;
    Ok(texts.map(Box::from).collect())
}

fn numbers<T>(
    key: &'static str,
    list: Option<impl Iterator<Item = T>>,
) -> Result<Vec<T>, TextsError> {
    let list = list.ok_or(TextsError::Type { key, expected: "a list of numbers" })?;
    Ok(list.collect())
}
