//! What a text becomes as numbers: texts that mean the like have rows of numbers that point the same way. Which tokens'
//! numbers count is the model's own choice; the row's length is always 1.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use alloc::{boxed::Box, format};

use serde::{Deserialize, Serialize};
use shoal_gguf::{Head, ReadError};

use crate::ask::Ask;
use crate::request::Wrong;
use crate::sample::Sampling;
use crate::vocabulary::Token;

/// Texts of one request, as many as OpenAI takes.
const MOST_TEXTS: usize = 2048;
/// Numbers of one word of an answer.
const MOST_OF_A_WORD: usize = 4096;

/// Whose numbers are those of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pooling {
    /// All tokens' mean: what a file that says nothing gets.
    #[default]
    Mean,
    First,
    Last,
}

/// What a file says of it. The numbers of kinds are those of llama.cpp.
pub(crate) fn pooling(head: &Head) -> Result<Result<Pooling, u64>, ReadError> {
    let arch = head.text("general.architecture")?.unwrap_or_default();
    Ok(match head.count(&format!("{arch}.pooling_type"))?.unwrap_or(0) {
        0 | 1 => Ok(Pooling::Mean),
        2 => Ok(Pooling::First),
        3 => Ok(Pooling::Last),
        other => Err(other),
    })
}

/// A request for the numbers of texts.
#[derive(Debug, Deserialize)]
pub struct EmbeddingRequest {
    pub model: String,
    input: Input,
    #[serde(default)]
    encoding_format: Option<String>,
    #[serde(default)]
    pub dimensions: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<Token>),
    Lists(Vec<Vec<Token>>),
}

/// A text whose numbers are wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    Text(String),
    Tokens(Vec<Token>),
}

impl EmbeddingRequest {
    pub fn read(body: &[u8]) -> Result<EmbeddingRequest, Wrong> {
        serde_json::from_slice(body).map_err(|error| Wrong {
            param: None,
            code: "invalid_request",
            message: format!("the request cannot be read: {error}"),
        })
    }

    pub fn texts(&self) -> Result<Vec<Read>, Wrong> {
        let texts: Vec<Read> = match &self.input {
            Input::Text(text) => vec![Read::Text(text.clone())],
            Input::Texts(texts) => texts.iter().cloned().map(Read::Text).collect(),
            Input::Tokens(tokens) => vec![Read::Tokens(tokens.clone())],
            Input::Lists(lists) => lists.iter().cloned().map(Read::Tokens).collect(),
        };
        if !(1..=MOST_TEXTS).contains(&texts.len()) {
            let found = texts.len();
            let message = format!("input has {found} texts: expected 1 to {MOST_TEXTS}");
            return Err(Wrong::at("input", message));
        }
        let is_empty = |text: &Read| match text {
            Read::Text(text) => text.is_empty(),
            Read::Tokens(tokens) => tokens.is_empty(),
        };
        match texts.iter().position(is_empty) {
            Some(at) => Err(Wrong::at("input", format!("text {at} of input is empty"))),
            None => Ok(texts),
        }
    }

    /// Whether numbers are wanted as base64 and not as a list.
    pub fn as_base64(&self) -> Result<bool, Wrong> {
        match self.encoding_format.as_deref() {
            None | Some("float") => Ok(false),
            Some("base64") => Ok(true),
            Some(other) => {
                let message =
                    format!("encoding_format is {other:?}: expected \"float\" or \"base64\"");
                Err(Wrong::at("encoding_format", message))
            }
        }
    }
}

impl Ask {
    /// For the numbers of a text.
    pub fn embedding(prompt: Vec<Token>, pooling: Pooling) -> Ask {
        let (ends, sampling) = (Vec::new(), Sampling::default());
        Ask { prompt, most: 0, ends, sampling, form: None, embed: Some(pooling), guess: false }
    }
}

/// The numbers of a text, as far as it was read.
#[derive(Debug)]
pub(crate) struct Pool {
    pooling: Pooling,
    /// The sum of what counts, and of how many tokens.
    sum: Vec<f64>,
    rows: usize,
}

impl Pool {
    pub(crate) fn new(pooling: Pooling) -> Pool {
        Pool { pooling, sum: Vec::new(), rows: 0 }
    }

    /// Numbers behind so many tokens more. None if they are none.
    pub(crate) fn add(&mut self, rows: usize, numbers: &[f32]) -> Option<()> {
        let width = numbers.len().checked_div(rows).filter(|width| *width > 0)?;
        let fits = self.sum.is_empty() || self.sum.len() == width;
        if !fits || width * rows != numbers.len() {
            return None;
        }
        for row in numbers.chunks_exact(width) {
            let counts = match self.pooling {
                Pooling::Mean | Pooling::Last => true,
                Pooling::First => self.rows == 0,
            };
            if self.pooling == Pooling::Last || self.sum.is_empty() {
                self.sum = vec![0.0; width];
            }
            if counts {
                // One after the other, so that the bits are the same however the text is cut.
                self.sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += f64::from(*number));
            }
            self.rows += 1;
        }
        Some(())
    }

    /// As words of an answer. The length is 1, so a sum points where a mean does.
    pub(crate) fn finish(&self) -> Vec<Box<[f32]>> {
        let square: f64 = self.sum.iter().map(|number| number * number).sum();
        let by = if square > 0.0 { 1.0 / libm::sqrt(square) } else { 0.0 };
        let numbers: Vec<f32> = self.sum.iter().map(|number| (number * by) as f32).collect();
        numbers.chunks(MOST_OF_A_WORD).map(Box::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use serde_json::json;

    fn read(input: serde_json::Value) -> Result<Vec<Read>, Wrong> {
        let body = json!({ "model": "m", "input": input, "user": "me" });
        EmbeddingRequest::read(body.to_string().as_bytes())?.texts()
    }

    #[test]
    fn texts_and_tokens_are_taken_one_or_many() {
        let text = |text: &str| Read::Text(text.into());
        assert_eq!(read(json!("a")), Ok(vec![text("a")]));
        assert_eq!(read(json!(["a", "b"])), Ok(vec![text("a"), text("b")]));
        assert_eq!(read(json!([1, 2])), Ok(vec![Read::Tokens(vec![1, 2])]));
        let lists = vec![Read::Tokens(vec![1]), Read::Tokens(vec![2, 3])];
        assert_eq!(read(json!([[1], [2, 3]])), Ok(lists));
        for wrong in [json!(""), json!([]), json!(["a", ""]), json!([[1], []])] {
            assert_eq!(read(wrong).unwrap_err().param, Some("input"));
        }
        assert_eq!(read(json!(["a", 1])).unwrap_err().code, "invalid_request");
        let many: Vec<&str> = vec!["a"; MOST_TEXTS + 1];
        let message = read(json!(many)).unwrap_err().message;
        assert_eq!(message, "input has 2049 texts: expected 1 to 2048");
    }

    #[test]
    fn numbers_are_wanted_as_a_list_or_as_base64() {
        let wants = |format: serde_json::Value| {
            let body = json!({ "model": "m", "input": "a", "encoding_format": format });
            EmbeddingRequest::read(body.to_string().as_bytes())?.as_base64()
        };
        assert_eq!(wants(json!(null)), Ok(false));
        assert_eq!((wants(json!("float")), wants(json!("base64"))), (Ok(false), Ok(true)));
        assert_eq!(wants(json!("int8")).unwrap_err().param, Some("encoding_format"));
    }

    #[test]
    fn a_text_is_the_mean_the_first_or_the_last_of_its_tokens_however_it_is_cut() {
        let rows = [3.0, 0.0, 0.0, 0.0, 0.0, 4.0];
        let of = |pooling, cut: usize| {
            let mut pool = Pool::new(pooling);
            pool.add(cut, &rows[..2 * cut]).unwrap();
            if cut < 3 {
                pool.add(3 - cut, &rows[2 * cut..]).unwrap();
            }
            pool.finish().concat()
        };
        for cut in 1..=3 {
            assert_eq!(of(Pooling::Mean, cut), [0.6, 0.8]);
            assert_eq!(of(Pooling::First, cut), [1.0, 0.0]);
            assert_eq!(of(Pooling::Last, cut), [0.0, 1.0]);
        }
        let mut pool = Pool::new(Pooling::Mean);
        assert_eq!((pool.add(2, &[1.0; 3]), pool.add(1, &[])), (None, None));
        pool.add(1, &[0.0; 3]).unwrap();
        assert_eq!(pool.add(1, &[1.0; 2]), None, "another width");
        assert_eq!(pool.finish().concat(), [0.0; 3], "nothing points nowhere");
    }

    #[test]
    fn wide_models_have_several_words() {
        let mut pool = Pool::new(Pooling::Mean);
        pool.add(1, &vec![1.0; MOST_OF_A_WORD + 1]).unwrap();
        let words: Vec<usize> = pool.finish().iter().map(|word| word.len()).collect();
        assert_eq!(words, [MOST_OF_A_WORD, 1]);
    }
}
