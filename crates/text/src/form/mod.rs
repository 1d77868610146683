//! The form that an answer must have: some JSON object, or JSON as a schema describes it.
//!
//! - [`json`]: JSON whose objects keep their order
//! - [`grammar`]: a grammar of bytes
//! - [`build`]: the pieces of a grammar that all JSON is made of
//! - [`schema`]: the grammar of a schema
//! - [`words`]: what a schema's words say
//! - [`machine`]: what may follow what was said so far

mod build;
mod grammar;
mod json;
mod machine;
mod schema;
mod words;

pub use json::Json;
pub use schema::SchemaError;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::tokenizer::Tokenizer;
use crate::vocabulary::Token;
use grammar::Grammar;
use machine::{Machine, State};

/// Bytes of a schema: far more than people write.
pub const MOST_SCHEMA_BYTES: usize = 64 << 10;
/// Places of an answer for which it is remembered what may follow. Most texts come back to a few of them.
const MOST_MASKS: usize = 64;

/// What an answer must look like, as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// A JSON object.
    Object,
    /// JSON as this schema describes it.
    Schema(String),
}

impl Form {
    /// What a schema means, or why it cannot be kept to.
    pub fn of_schema(schema: &Json) -> Result<Form, SchemaError> {
        let text = schema.text();
        if text.len() > MOST_SCHEMA_BYTES {
            return Err(SchemaError::Long { found: text.len(), most: MOST_SCHEMA_BYTES });
        }
        schema::of(schema)?;
        Ok(Form::Schema(text))
    }

    fn grammar(&self) -> Result<Grammar, SchemaError> {
        match self {
            Form::Object => Ok(schema::any_object()),
            Form::Schema(text) if text.len() > MOST_SCHEMA_BYTES => {
                Err(SchemaError::Long { found: text.len(), most: MOST_SCHEMA_BYTES })
            }
            Form::Schema(text) => schema::of(&Json::read(text).ok_or(SchemaError::NoJson)?),
        }
    }
}

/// The bytes of every token, side by side.
#[derive(Debug)]
pub struct Spelling {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
}

impl Spelling {
    pub fn new(tokenizer: &Tokenizer) -> Spelling {
        let mut spelling = Spelling { bytes: Vec::new(), ends: Vec::new() };
        for token in 0..tokenizer.words().len() as Token {
            spelling.bytes.extend(tokenizer.bytes(token));
            spelling.ends.push(spelling.bytes.len() as u32);
        }
        spelling
    }

    fn of(&self, token: Token) -> &[u8] {
        let at = token as usize;
        let Some(&end) = self.ends.get(at) else { return &[] };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..end as usize]
    }
}

/// Keeps one answer to its form.
#[derive(Debug)]
pub struct Keeper {
    machine: Machine,
    state: State,
    spelling: Arc<Spelling>,
    ends: Vec<Token>,
    /// What may follow, by where the answer is; good until the machine forgets.
    masks: BTreeMap<State, Arc<[bool]>>,
}

impl Keeper {
    /// `ends` are the tokens that end an answer.
    pub fn new(
        form: &Form,
        spelling: Arc<Spelling>,
        ends: &[Token],
    ) -> Result<Keeper, SchemaError> {
        let (machine, state) = Machine::new(form.grammar()?);
        Ok(Keeper { machine, state, spelling, ends: ends.into(), masks: BTreeMap::new() })
    }

    /// For each token, whether it may come next.
    pub fn allowed(&mut self) -> Arc<[bool]> {
        if let Some(mask) = self.masks.get(&self.state) {
            return mask.clone();
        }
        if self.machine.is_full() {
            self.state = self.machine.forget(self.state);
            self.masks.clear();
        }
        let tokens = 0..self.spelling.ends.len() as Token;
        let mut mask: Vec<bool> = tokens
            .map(|token| {
                let bytes = self.spelling.of(token);
                !bytes.is_empty() && self.machine.run(self.state, bytes).is_some()
            })
            .collect();
        for end in &self.ends {
            if let Some(may) = mask.get_mut(*end as usize) {
                *may = self.machine.may_end(self.state);
            }
        }
        let mask: Arc<[bool]> = mask.into();
        if self.masks.len() >= MOST_MASKS {
            self.masks.clear();
        }
        self.masks.insert(self.state, mask.clone());
        mask
    }

    /// A token was said. False if it may not stand here.
    pub fn said(&mut self, token: Token) -> bool {
        let next = self.machine.run(self.state, self.spelling.of(token));
        next.map(|next| self.state = next).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sampler, Sampling};
    use crate::vocabulary::{Listed, Vocabulary};
    use alloc::format;
    use alloc::vec;

    /// Every byte is a token, some longer ones are, and the last one ends an answer.
    fn tokenizer() -> Tokenizer {
        let mut tokens: Vec<_> = (0..256).map(|byte| format!("<0x{byte:02X}>")).collect();
        tokens.extend(["{\"", "\":", "true}", "\"}", "}}", "name"].map(String::from));
        let (bytes, words) = (256, tokens.len() - 256);
        tokens.push("</s>".into());
        let end = tokens.len() as Token - 1;
        let listed = Listed {
            model: "llama".into(),
            sorts: [vec![6; bytes], vec![1; words], vec![3]].concat(),
            scores: vec![0.0; tokens.len()],
            tokens: tokens.into_iter().map(Into::into).collect(),
            eos: Some(end),
            ..Listed::default()
        };
        Tokenizer::new(Vocabulary::new(listed).unwrap())
    }

    /// What a model says that knows nothing and is held to a form.
    fn babble(form: &Form, seed: u64) -> String {
        let tokenizer = tokenizer();
        let spelling = Arc::new(Spelling::new(&tokenizer));
        let ends = tokenizer.words().ends().to_vec();
        let mut keeper = Keeper::new(form, spelling.clone(), &ends).unwrap();
        let mut sampler = Sampler::new(Sampling { seed, ..Sampling::default() }, &[]);
        let mut said = Vec::new();
        // Ends are likely, quotes and brackets that close too, or it would go on for ever.
        let mut logits = vec![0.0; tokenizer.words().len()];
        for byte in b"\"]},:" {
            logits[usize::from(*byte)] = 5.0;
        }
        logits[ends[0] as usize] = 9.0;
        for place in 0..20_000 {
            let mask = keeper.allowed();
            let chosen = sampler.choose(&logits, place, Some(&|token| mask[token as usize]));
            let token = chosen.expect("something may always follow").token;
            if ends.contains(&token) {
                return String::from_utf8(said).expect("whole characters");
            }
            assert!(keeper.said(token));
            said.extend_from_slice(spelling.of(token));
        }
        panic!("it does not end: {}", String::from_utf8_lossy(&said));
    }

    #[test]
    fn whatever_a_model_says_is_an_object() {
        for seed in 0..40 {
            let said = babble(&Form::Object, seed);
            let read: serde_json::Value = serde_json::from_str(&said).expect("JSON");
            assert!(read.is_object(), "{said}");
        }
    }

    #[test]
    fn whatever_a_model_says_is_as_the_schema_wants() {
        let schema = r##"{"type": "object", "required": ["name", "age", "tags"], "properties": {
            "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
            "born": {"type": "string", "format": "date"}, "child": {"$ref": "#"}}}"##;
        let form = Form::of_schema(&Json::read(schema).unwrap()).unwrap();
        for seed in 0..40 {
            let said = babble(&form, seed);
            let read: serde_json::Value = serde_json::from_str(&said).expect("JSON");
            assert!(read["name"].as_str().unwrap().chars().count() <= 12, "{said}");
            assert!(read["age"].is_u64(), "{said}");
            let tags = read["tags"].as_array().unwrap();
            assert!((1..=3).contains(&tags.len()), "{said}");
            assert!(tags.iter().all(|tag| tag == "a" || tag == "b"), "{said}");
            assert!(read["born"].as_str().is_none_or(|born| born.len() == 10), "{said}");
            let known = ["name", "age", "tags", "born", "child"];
            assert!(read.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())));
        }
    }

    #[test]
    fn what_may_not_stand_is_refused_and_an_end_waits_for_the_end() {
        let tokenizer = tokenizer();
        let spelling = Arc::new(Spelling::new(&tokenizer));
        let ends = tokenizer.words().ends().to_vec();
        let end = ends[0] as usize;
        let mut keeper = Keeper::new(&Form::Object, spelling, &ends).unwrap();
        assert!(!keeper.allowed()[end] && !keeper.said(Token::from(b'[')));
        for byte in b"{\"a\":[1.5e3,\"\\u00e4\"]" {
            assert!(keeper.said(Token::from(*byte)), "{}", *byte as char);
            assert!(!keeper.allowed()[end]);
        }
        assert!(!keeper.said(Token::from(b']')));
        assert!(keeper.said(Token::from(b'}')) && keeper.allowed()[end]);
        assert_eq!(keeper.allowed().iter().filter(|may| **may).count(), 1, "only the end");
    }
}
