//! The words of a JSON schema: which say something about values of which type, and what they say.

use alloc::format;
use alloc::string::String;

use super::json::Json;
use super::schema::SchemaError;

/// Times that something is counted.
const MOST_TIMES: u64 = 10_000;

/// Words of schemas that say nothing about what is valid.
pub(super) const NOTES: [&str; 14] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
];

pub(super) const TYPES: [&str; 7] =
    ["object", "array", "string", "integer", "number", "boolean", "null"];

/// The words that say something about values of a type.
pub(super) fn words_of(name: &str) -> &'static [&'static str] {
    match name {
        "object" => &["properties", "required", "additionalProperties"],
        "array" => &["items", "prefixItems", "minItems", "maxItems"],
        "string" => &["minLength", "maxLength", "format"],
        "integer" => &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
        "number" => &["minimum"],
        _ => &[],
    }
}

/// A schema's words, and where it stands.
pub(super) struct Words<'a> {
    pub(super) schema: &'a Json,
    pub(super) at: &'a str,
    pub(super) members: &'a [(String, Json)],
}

impl Words<'_> {
    pub(super) fn unsupported(&self, word: &str) -> SchemaError {
        SchemaError::Unsupported { at: self.at.into(), word: word.into() }
    }

    /// Nothing else may stand there: it would not be kept to.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), SchemaError> {
        let knows = |word: &str| known.contains(&word) || NOTES.contains(&word);
        match self.members.iter().find(|(word, _)| !knows(word)) {
            Some((word, _)) => Err(self.unsupported(&format!("{word:?}"))),
            None => Ok(()),
        }
    }

    /// Whether a value has the type, or one of those, that the schema names.
    pub(super) fn has_type(&self, value: &Json) -> bool {
        let has = |name: &Json| match (name.as_text(), value) {
            (Some("object"), Json::Object(_))
            | (Some("array"), Json::List(_))
            | (Some("string"), Json::Text(_))
            | (Some("number"), Json::Number(_))
            | (Some("boolean"), Json::Flag(_))
            | (Some("null"), Json::Null) => true,
            (Some("integer"), Json::Number(number)) => number.is_i64() || number.is_u64(),
            _ => false,
        };
        match self.schema.get("type") {
            None => true,
            Some(Json::List(names)) => names.iter().any(has),
            Some(name) => has(name),
        }
    }

    pub(super) fn says_nothing(&self) -> bool {
        self.only(&[]).is_ok()
    }

    pub(super) fn number(&self, word: &'static str) -> Result<Option<i64>, SchemaError> {
        let Some(value) = self.schema.get(word) else { return Ok(None) };
        let whole = |number: &serde_json::Number| {
            let float = number.as_f64().filter(|it| it.abs() < 1e15 && *it as i64 as f64 == *it);
            number.as_i64().or(float.map(|it| it as i64))
        };
        match value {
            Json::Number(number) if whole(number).is_some() => Ok(whole(number)),
            Json::Number(_)
            | Json::Null
            | Json::Flag(_)
            | Json::Text(_)
            | Json::List(_)
            | Json::Object(_) => Err(SchemaError::Wrong {
                at: format!("{}/{word}", self.at),
                expected: "a whole number",
            }),
        }
    }

    pub(super) fn times(&self, word: &'static str) -> Result<Option<u32>, SchemaError> {
        let Some(number) = self.number(word)? else { return Ok(None) };
        match u64::try_from(number) {
            Ok(number) if number <= MOST_TIMES => Ok(Some(number as u32)),
            _ => Err(SchemaError::Wrong {
                at: format!("{}/{word}", self.at),
                expected: "0 to 10000",
            }),
        }
    }

    pub(super) fn ordered(&self, least: u32, most: u32) -> Result<(), SchemaError> {
        let expected = "a least bound that is not above the most";
        if least <= most {
            Ok(())
        } else {
            Err(SchemaError::Wrong { at: self.at.into(), expected })
        }
    }
}

pub(super) fn list(value: &Json) -> Option<&[Json]> {
    match value {
        Json::List(list) => Some(list),
        Json::Null | Json::Flag(_) | Json::Number(_) | Json::Text(_) | Json::Object(_) => None,
    }
}
