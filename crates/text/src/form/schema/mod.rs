//! The grammar of a JSON schema. What it allows is always valid by the schema; not all that is valid is allowed: objects
//! have their members in the schema's order and no others, and white space is short. What cannot be kept to is refused by
//! name.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::build::Build;
use super::grammar::{ENDLESS, Grammar, Id};
use super::json::{Json, quoted};
use super::machine::Machine;
use super::words::{NOTES, TYPES, Words, list, words_of};

/// Nodes of one grammar.
const MOST_NODES: usize = 200_000;
/// Schemas within schemas: each takes some of the stack, and names lead from one to the next.
const MOST_DEPTH: usize = 64;
/// Values of an `enum`, and whole numbers between two bounds: each is a way to go on.
const MOST_VALUES: usize = 1000;

/// Why a schema cannot be kept to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema is not JSON")]
    NoJson,
    #[error("the schema has {found} bytes: expected at most {most}")]
    Long { found: usize, most: usize },
    #[error(
        "the schema is too large: it has more than {MOST_NODES} parts, or more than {MOST_DEPTH} within each other"
    )]
    Large,
    #[error("{at}: {word} is not supported")]
    Unsupported { at: String, word: String },
    #[error("{at}: expected {expected}")]
    Wrong { at: String, expected: &'static str },
    #[error("{at} is not in the schema")]
    NoRef { at: String },
    #[error("no JSON fits the schema")]
    Impossible,
}

/// The grammar of any object.
pub(super) fn any_object() -> Grammar {
    let mut build = Build::new(&Json::Null);
    build.grammar.start = build.pieces.object;
    build.grammar
}

pub(super) fn of(schema: &Json) -> Result<Grammar, SchemaError> {
    let mut build = Build::new(schema);
    build.grammar.start = build.reference("#", "#")?;
    let (mut machine, start) = Machine::new(build.grammar.copied());
    let begins = (0..=u8::MAX).any(|byte| machine.run(start, &[byte]).is_some());
    if begins { Ok(build.grammar) } else { Err(SchemaError::Impossible) }
}

impl Grammar {
    fn copied(&self) -> Grammar {
        Grammar { nodes: self.nodes.clone(), start: self.start }
    }
}

type Made = Result<Id, SchemaError>;

impl Build<'_> {
    /// What a `$ref` names. It may hold itself.
    fn reference(&mut self, name: &str, at: &str) -> Made {
        if let Some(id) = self.named.get(name) {
            return Ok(*id);
        }
        let missing = || SchemaError::NoRef { at: format!("{at}: {name}") };
        let path = name.strip_prefix('#').ok_or_else(missing)?;
        let mut found = self.root;
        for step in path.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            found = found.get(&step).ok_or_else(missing)?;
        }
        let id = self.grammar.reserve();
        self.named.insert(name.into(), id);
        let made = self.schema(found, name)?;
        self.grammar.define(id, vec![made]);
        Ok(id)
    }

    fn schema(&mut self, schema: &Json, at: &str) -> Made {
        if self.grammar.nodes.len() > MOST_NODES || self.depth >= MOST_DEPTH {
            return Err(SchemaError::Large);
        }
        self.depth += 1;
        let made = self.shallow(schema, at);
        self.depth -= 1;
        made
    }

    fn shallow(&mut self, schema: &Json, at: &str) -> Made {
        let wrong = |expected| SchemaError::Wrong { at: at.into(), expected };
        let members = match schema {
            Json::Flag(true) => return Ok(self.pieces.value),
            Json::Object(members) => members,
            Json::Null | Json::Flag(false) | Json::Number(_) | Json::Text(_) | Json::List(_) => {
                return Err(wrong("a schema: an object"));
            }
        };
        let words = Words { schema, at, members };
        for (word, made_of) in
            [("$ref", 0), ("const", 1), ("enum", 2), ("anyOf", 3), ("oneOf", 4), ("allOf", 5)]
        {
            let Some(value) = schema.get(word) else { continue };
            // Of values it is known whether they have the type; what the others allow may not have it.
            let known = [word, "type"];
            words.only(if matches!(made_of, 1 | 2) { &known } else { &known[..1] })?;
            return match made_of {
                0 => self.reference(value.as_text().ok_or_else(|| wrong("a text as $ref"))?, at),
                1 => self.values(core::slice::from_ref(value), &words),
                2 => self.values(list(value).ok_or_else(|| wrong("a list as enum"))?, &words),
                3 => self.any_of(value, &format!("{at}/anyOf")),
                4 => self.one_of(value, &format!("{at}/oneOf")),
                _ => self.all_of(value, &format!("{at}/allOf")),
            };
        }
        match schema.get("type") {
            None if words.says_nothing() => Ok(self.pieces.value),
            // Whoever names properties means an object.
            None if schema.get("properties").is_some() => self.typed("object", &words),
            None => Err(wrong("a \"type\"")),
            Some(Json::Text(name)) => self.typed(name, &words),
            Some(Json::List(names)) => {
                let each = names.iter().map(|name| {
                    let name = name.as_text().ok_or_else(|| wrong("names of types"))?;
                    self.typed_of_many(name, &words)
                });
                let each = each.collect::<Result<Vec<Id>, _>>()?;
                Ok(self.grammar.one(&each))
            }
            Some(_) => Err(wrong("a type's name, or a list of names")),
        }
    }

    fn values(&mut self, values: &[Json], words: &Words<'_>) -> Made {
        let wrong = |expected| SchemaError::Wrong { at: words.at.into(), expected };
        if values.is_empty() || values.len() > MOST_VALUES {
            return Err(wrong("1 to 1000 values"));
        }
        if !values.iter().all(|value| words.has_type(value)) {
            return Err(wrong("values of the type that stands beside them"));
        }
        Ok(self.grammar.words(values.iter().map(Json::text)))
    }

    fn any_of(&mut self, value: &Json, at: &str) -> Made {
        let of = list(value).filter(|of| !of.is_empty());
        let wrong = || SchemaError::Wrong { at: at.into(), expected: "a list of schemas" };
        let of = of.ok_or_else(wrong)?.iter().enumerate();
        let each = of.map(|(index, each)| self.schema(each, &format!("{at}/{index}")));
        let each = each.collect::<Result<Vec<Id>, _>>()?;
        Ok(self.grammar.one(&each))
    }

    /// Only where no value can fit two of them.
    fn one_of(&mut self, value: &Json, at: &str) -> Made {
        let marks: Option<Vec<String>> =
            list(value).and_then(|of| of.iter().map(|each| self.mark(each)).collect());
        let mut different = marks.clone().unwrap_or_default();
        different.sort_unstable();
        different.dedup();
        // Two members that are always there may be in one object.
        let name = |mark: &String| mark.split_once('=').map(|(name, _)| String::from(name));
        let mut names: Vec<String> = different.iter().filter_map(name).collect();
        names.dedup();
        if names.len() > 1 || marks.is_none_or(|marks| marks.len() != different.len()) {
            let word = "oneOf of schemas that are not told apart by type or a const".to_string();
            return Err(SchemaError::Unsupported { at: at.into(), word });
        }
        self.any_of(value, at)
    }

    /// What tells the values of a schema from others': a type's name, or a member that is always the same.
    fn mark(&self, schema: &Json) -> Option<String> {
        let mut schema = schema;
        if let Some(name) = schema.get("$ref").and_then(Json::as_text) {
            schema = name.strip_prefix("#/")?.split('/').try_fold(self.root, Json::get)?;
        }
        if let Some(Json::Object(properties)) = schema.get("properties") {
            let required = schema.get("required").and_then(list)?;
            let fixed = properties.iter().find_map(|(name, of)| {
                let one = of.get("enum").and_then(list).filter(|values| values.len() == 1);
                let value = of.get("const").or_else(|| one?.first())?;
                let is_there = required.iter().any(|it| it.as_text() == Some(name));
                is_there.then(|| format!("{name}={}", value.text()))
            });
            return Some(fixed.unwrap_or_else(|| "object".into()));
        }
        match schema.get("type")?.as_text()? {
            "integer" => Some("number".into()),
            other => Some(other.into()),
        }
    }

    fn all_of(&mut self, value: &Json, at: &str) -> Made {
        match list(value) {
            Some([only]) => self.schema(only, &format!("{at}/0")),
            _ => {
                let word = "allOf of several schemas".to_string();
                Err(SchemaError::Unsupported { at: at.into(), word })
            }
        }
    }

    /// One of several types: the words of the others are not its own.
    fn typed_of_many(&mut self, name: &str, words: &Words<'_>) -> Made {
        let own = words_of(name);
        let others = words.members.iter().find(|(word, _)| {
            let of_any = TYPES.iter().any(|name| words_of(name).contains(&word.as_str()));
            word != "type" && !of_any && !NOTES.contains(&word.as_str())
        });
        if let Some((word, _)) = others {
            return Err(words.unsupported(word));
        }
        let kept: Vec<(String, Json)> = words
            .members
            .iter()
            .filter(|(word, _)| own.contains(&word.as_str()))
            .cloned()
            .collect();
        let schema = Json::Object(kept);
        let Json::Object(members) = &schema else { return Err(SchemaError::NoJson) };
        self.typed(name, &Words { schema: &schema, at: words.at, members })
    }

    fn typed(&mut self, name: &str, words: &Words<'_>) -> Made {
        words.only(&[&["type"][..], words_of(name)].concat())?;
        match name {
            "object" => self.object(words),
            "array" => self.array(words),
            "string" => self.string(words),
            "integer" => self.integer(words),
            "number" => {
                let least = words.number("minimum")?;
                if least.is_some_and(|least| least != 0) {
                    return Err(words.unsupported("a minimum other than 0 of a fraction"));
                }
                Ok(self.number(least.is_none()))
            }
            "boolean" => Ok(self.words(&["true", "false"])),
            "null" => Ok(self.grammar.text("null")),
            _ => {
                let expected = "object, array, string, integer, number, boolean or null as type";
                Err(SchemaError::Wrong { at: words.at.into(), expected })
            }
        }
    }

    fn string(&mut self, words: &Words<'_>) -> Made {
        let Some(format) = words.schema.get("format") else {
            let least = words.times("minLength")?.unwrap_or(0);
            let most = words.times("maxLength")?.unwrap_or(ENDLESS);
            words.ordered(least, most)?;
            return Ok(self.string_of(least, most));
        };
        let inner = match format.as_text() {
            Some("date") => self.date(),
            Some("time") => self.time(),
            Some("date-time") => {
                let (date, t, time) = (self.date(), self.grammar.text("T"), self.time());
                self.grammar.row(&[date, t, time])
            }
            Some("uuid") => self.uuid(),
            other => {
                let name = other.unwrap_or_default();
                return Err(words.unsupported(&format!("the format {name:?}")));
            }
        };
        if ["minLength", "maxLength"].iter().any(|word| words.schema.get(word).is_some()) {
            return Err(words.unsupported("a length beside a format"));
        }
        Ok(self.quotes(inner))
    }

    fn integer(&mut self, words: &Words<'_>) -> Made {
        let above = words.number("exclusiveMinimum")?.map(|least| least.saturating_add(1));
        let below = words.number("exclusiveMaximum")?.map(|most| most.saturating_sub(1));
        let least = words.number("minimum")?.into_iter().chain(above).max();
        let most = words.number("maximum")?.into_iter().chain(below).min();
        match (least, most) {
            (None, None) => Ok(self.whole(true, false)),
            (Some(0), None) => Ok(self.whole(false, false)),
            (Some(1), None) => Ok(self.whole(false, true)),
            (Some(least), Some(most))
                if (0..MOST_VALUES as i64).contains(&most.saturating_sub(least)) =>
            {
                Ok(self.grammar.words((least..=most).map(|number| number.to_string())))
            }
            _ => Err(words.unsupported("a range of more than 1000 whole numbers")),
        }
    }

    fn array(&mut self, words: &Words<'_>) -> Made {
        let least = words.times("minItems")?.unwrap_or(0);
        let most = words.times("maxItems")?.unwrap_or(ENDLESS);
        words.ordered(least, most)?;
        if let Some(first) = words.schema.get("prefixItems") {
            let wrong =
                || SchemaError::Wrong { at: words.at.into(), expected: "a list as prefixItems" };
            let first = list(first).ok_or_else(wrong)?;
            let count = first.len() as u32;
            if !(least..=most).contains(&count) {
                return Err(words.unsupported("prefixItems with other bounds than their number"));
            }
            let mut row = Vec::new();
            for (index, item) in first.iter().enumerate() {
                row.extend((index > 0).then_some(self.pieces.comma));
                row.push(self.schema(item, &format!("{}/prefixItems/{index}", words.at))?);
            }
            let row = self.grammar.row(&row);
            return Ok(self.brackets("[", row, "]"));
        }
        let item = match words.schema.get("items") {
            None => self.pieces.value,
            Some(items) => self.schema(items, &format!("{}/items", words.at))?,
        };
        Ok(self.list(item, least, most))
    }

    fn object(&mut self, words: &Words<'_>) -> Made {
        let wrong = |expected| SchemaError::Wrong { at: words.at.into(), expected };
        let required = match words.schema.get("required") {
            None => Vec::new(),
            Some(required) => list(required)
                .and_then(|names| names.iter().map(Json::as_text).collect::<Option<Vec<_>>>())
                .ok_or_else(|| wrong("a list of names as required"))?,
        };
        let mut named = match words.schema.get("properties") {
            None => Vec::new(),
            Some(Json::Object(named)) => named.clone(),
            Some(_) => return Err(wrong("an object as properties")),
        };
        let closed = words.schema.get("additionalProperties") == Some(&Json::Flag(false));
        for name in &required {
            if !named.iter().any(|(known, _)| known == name) {
                if closed {
                    return Err(wrong("only names of properties as required"));
                }
                named.push(((*name).into(), Json::Flag(true)));
            }
        }
        if named.is_empty() {
            return match words.schema.get("additionalProperties") {
                None | Some(Json::Flag(true)) => Ok(self.pieces.object),
                Some(Json::Flag(false)) => {
                    let nothing = self.grammar.nothing();
                    Ok(self.brackets("{", nothing, "}"))
                }
                Some(of) => {
                    let value = self.schema(of, &format!("{}/additionalProperties", words.at))?;
                    Ok(self.map(value))
                }
            };
        }
        let mut members = Vec::new();
        for (name, of) in &named {
            let value = self.schema(of, &format!("{}/properties/{name}", words.at))?;
            let key = self.grammar.text(format!("{}:", quoted(name)));
            let member = self.grammar.row(&[key, self.pieces.space, value]);
            members.push((member, required.contains(&name.as_str())));
        }
        let members = self.in_order(&members);
        Ok(self.brackets("{", members, "}"))
    }

    /// Members in their order, those that need not be there or not. From the last to the first: what follows, if it is
    /// the first in its object, and if it is not.
    fn in_order(&mut self, members: &[(Id, bool)]) -> Id {
        let nothing = self.grammar.nothing();
        let (mut first, mut later) = (nothing, nothing);
        for (member, is_required) in members.iter().rev() {
            let own = self.grammar.row(&[*member, later]);
            let behind = self.grammar.row(&[self.pieces.comma, *member, later]);
            if *is_required {
                (first, later) = (own, behind);
            } else {
                (first, later) =
                    (self.grammar.one(&[own, first]), self.grammar.one(&[behind, later]));
            }
        }
        first
    }
}

#[cfg(test)]
mod tests;
