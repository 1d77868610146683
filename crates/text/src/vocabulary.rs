//! The words of a model, as its file lists them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::split::Split;

/// A word's number.
pub type Token = u32;

/// Words of a model: more than any has today, so that a hostile file reserves nothing absurd.
pub const MOST_TOKENS: usize = 1 << 20;

/// What a word is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Normal,
    /// Stands for what has no word.
    Unknown,
    /// A mark of the model's own, such as the end of a turn. Users' text never becomes one.
    Control,
    /// A word that is taken whole wherever it stands.
    Defined,
    Unused,
    /// One byte.
    Byte,
}

impl Sort {
    /// By the number that stands in a file.
    pub fn of(number: i64) -> Option<Sort> {
        Some(match number {
            1 => Sort::Normal,
            2 => Sort::Unknown,
            3 => Sort::Control,
            4 => Sort::Defined,
            5 => Sort::Unused,
            6 => Sort::Byte,
            _ => return None,
        })
    }
}

/// How words are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Bytes written as letters, joined pair by pair in the order of a list.
    Bytes(Split),
    /// SentencePiece: letters, joined by the words' scores.
    Pieces,
}

/// What a file says of a model's words.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// `tokenizer.ggml.model`.
    pub model: String,
    /// `tokenizer.ggml.pre`.
    pub pre: Option<String>,
    pub tokens: Vec<Box<str>>,
    /// None for all: normal words.
    pub sorts: Vec<i64>,
    pub scores: Vec<f32>,
    /// Pairs, with a space between.
    pub merges: Vec<Box<str>>,
    pub bos: Option<Token>,
    pub eos: Option<Token>,
    pub eot: Option<Token>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub add_space_prefix: Option<bool>,
}

/// Why nobody can write with these words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    #[error("the tokenizer {0:?} is not supported: expected gpt2 or llama (SentencePiece)")]
    Model(String),
    #[error("the pre-tokenizer {found:?} is not supported: expected one of {known}")]
    Split { found: String, known: String },
    #[error("the file does not say which pre-tokenizer it needs (tokenizer.ggml.pre)")]
    NoSplit,
    #[error("the file lists no tokens")]
    Empty,
    #[error("the file lists {found} tokens; at most {MOST_TOKENS} are allowed")]
    TooMany { found: usize },
    #[error("the file lists {found} {what} for {tokens} tokens")]
    Count { what: &'static str, found: usize, tokens: usize },
    #[error("token {token} has the type {found}: expected 1 to 6")]
    Sort { token: usize, found: i64 },
    #[error("token {token} has a score that is no number")]
    Score { token: usize },
    #[error("merge {at} is {found:?}: expected two words with a space between")]
    Merge { at: usize, found: String },
    #[error("{what} is token {found}, but there are {tokens}")]
    NoToken { what: &'static str, found: Token, tokens: usize },
}

/// The words of a model, checked.
#[derive(Debug)]
pub struct Vocabulary {
    pub(crate) family: Family,
    pub(crate) tokens: Vec<Box<str>>,
    pub(crate) sorts: Vec<Sort>,
    pub(crate) scores: Vec<f32>,
    /// Words by their text; of two alike, the first.
    pub(crate) numbers: BTreeMap<Box<str>, Token>,
    /// Two words, the place of their joining in the list, and what they become.
    pub(crate) merges: BTreeMap<(Token, Token), (u32, Token)>,
    /// Words that are looked for before all others, the longest first.
    pub(crate) marks: Vec<Token>,
    /// Words that end an answer.
    pub(crate) ends: Vec<Token>,
    pub(crate) bos: Option<Token>,
    pub(crate) eos: Option<Token>,
    pub(crate) add_bos: bool,
    pub(crate) add_eos: bool,
    pub(crate) add_space_prefix: bool,
    /// A part that is a word as it stands is not joined from its bytes.
    pub(crate) whole_words: bool,
}

/// Marks that end a turn in the families there are, whatever a file says of its end.
const ENDS: [&str; 9] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "</s>",
];

impl Vocabulary {
    pub fn new(listed: Listed) -> Result<Vocabulary, VocabularyError> {
        let family = family(&listed)?;
        let tokens = listed.tokens;
        let count = tokens.len();
        if count == 0 {
            return Err(VocabularyError::Empty);
        }
        if count > MOST_TOKENS {
            return Err(VocabularyError::TooMany { found: count });
        }
        let sorts = sorts(&listed.sorts, count)?;
        let scores = scores(listed.scores, count, family)?;
        let mut numbers = BTreeMap::new();
        for (token, text) in (0..).zip(&tokens) {
            numbers.entry(text.clone()).or_insert(token);
        }
        let named = [("bos", listed.bos), ("eos", listed.eos), ("eot", listed.eot)];
        for (what, token) in named {
            if let Some(found) = token.filter(|token| *token as usize >= count) {
                return Err(VocabularyError::NoToken { what, found, tokens: count });
            }
        }
        let merges = merges(&listed.merges, &numbers)?;
        let is_mark = |sort: Sort| matches!(sort, Sort::Control | Sort::Defined | Sort::Unknown);
        let mut marks: Vec<Token> =
            (0..count as Token).filter(|token| is_mark(sorts[*token as usize])).collect();
        // A mark of one letter could not be told from a user's letter.
        marks.retain(|token| tokens[*token as usize].chars().nth(1).is_some());
        marks.sort_by_key(|token| (core::cmp::Reverse(tokens[*token as usize].len()), *token));
        let mut ends: Vec<Token> = [listed.eos, listed.eot].into_iter().flatten().collect();
        let known = ENDS.iter().filter_map(|text| numbers.get(*text).copied());
        ends.extend(known.filter(|token| sorts[*token as usize] == Sort::Control));
        ends.sort_unstable();
        ends.dedup();
        let usual = usual(family);
        Ok(Vocabulary {
            family,
            sorts,
            scores,
            numbers,
            merges,
            marks,
            ends,
            bos: listed.bos,
            eos: listed.eos,
            add_bos: listed.add_bos.unwrap_or(usual.add_bos),
            add_eos: listed.add_eos.unwrap_or(false),
            add_space_prefix: listed.add_space_prefix.unwrap_or(family == Family::Pieces),
            whole_words: usual.whole_words,
            tokens,
        })
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Words that end an answer.
    pub fn ends(&self) -> &[Token] {
        &self.ends
    }

    /// As it stands in the file.
    pub fn text(&self, token: Token) -> Option<&str> {
        self.tokens.get(token as usize).map(|text| &**text)
    }

    pub fn bos(&self) -> Option<Token> {
        self.bos
    }

    pub fn eos(&self) -> Option<Token> {
        self.eos
    }

    /// Texts that a template may write and a user may not.
    pub fn control_texts(&self) -> impl Iterator<Item = &str> {
        let control = self
            .marks
            .iter()
            .filter(|token| matches!(self.sorts[**token as usize], Sort::Control | Sort::Unknown));
        control.map(|token| &*self.tokens[*token as usize])
    }
}

struct Usual {
    add_bos: bool,
    whole_words: bool,
}

/// What a file of this family means when it says nothing.
fn usual(family: Family) -> Usual {
    match family {
        Family::Pieces => Usual { add_bos: true, whole_words: false },
        Family::Bytes(Split::Llama3 | Split::Tekken) => Usual { add_bos: true, whole_words: true },
        Family::Bytes(Split::Gpt4o | Split::Gpt2 | Split::Smollm | Split::Qwen2) => {
            Usual { add_bos: false, whole_words: false }
        }
    }
}

fn family(listed: &Listed) -> Result<Family, VocabularyError> {
    match listed.model.as_str() {
        "llama" => Ok(Family::Pieces),
        "gpt2" => {
            let pre = listed.pre.as_deref().ok_or(VocabularyError::NoSplit)?;
            let split = Split::of(pre).ok_or_else(|| VocabularyError::Split {
                found: pre.into(),
                known: Split::known(),
            })?;
            Ok(Family::Bytes(split))
        }
        other => Err(VocabularyError::Model(other.into())),
    }
}

fn sorts(listed: &[i64], count: usize) -> Result<Vec<Sort>, VocabularyError> {
    if listed.is_empty() {
        return Ok(alloc::vec![Sort::Normal; count]);
    }
    if listed.len() != count {
        let (what, found) = ("token types", listed.len());
        return Err(VocabularyError::Count { what, found, tokens: count });
    }
    let sort = |(token, found): (usize, &i64)| {
        Sort::of(*found).ok_or(VocabularyError::Sort { token, found: *found })
    };
    listed.iter().enumerate().map(sort).collect()
}

fn scores(listed: Vec<f32>, count: usize, family: Family) -> Result<Vec<f32>, VocabularyError> {
    let needed = family == Family::Pieces;
    if listed.len() != count && (needed || !listed.is_empty()) {
        let (what, found) = ("scores", listed.len());
        return Err(VocabularyError::Count { what, found, tokens: count });
    }
    match listed.iter().position(|score| score.is_nan()) {
        Some(token) => Err(VocabularyError::Score { token }),
        None => Ok(listed),
    }
}

type Merges = BTreeMap<(Token, Token), (u32, Token)>;

/// Pairs whose words, or what they become, are not in the list can never be used.
fn merges(
    listed: &[Box<str>],
    numbers: &BTreeMap<Box<str>, Token>,
) -> Result<Merges, VocabularyError> {
    let mut merges = BTreeMap::new();
    for (at, pair) in listed.iter().enumerate() {
        // A word may begin with a space, but not be one letter of it.
        let first = pair.chars().next().map_or(0, char::len_utf8);
        let space = pair.get(first..).and_then(|rest| rest.find(' '));
        let Some(space) = space else {
            return Err(VocabularyError::Merge { at, found: (**pair).into() });
        };
        let (left, right) = (&pair[..first + space], &pair[first + space + 1..]);
        let joined = alloc::format!("{left}{right}");
        let known = (numbers.get(left), numbers.get(right), numbers.get(joined.as_str()));
        if let (Some(left), Some(right), Some(joined)) = known {
            merges.entry((*left, *right)).or_insert((at as u32, *joined));
        }
    }
    Ok(merges)
}
