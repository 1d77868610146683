//! From schemas to types, as TypeScript would say them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::names::{finer, name};
use crate::shell::Outcome;

type Schemas = Map<String, Value>;

/// A type of the SDK.
#[derive(Debug, PartialEq)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) about: Option<String>,
    pub(super) body: Body,
}

#[derive(Debug, PartialEq)]
pub(super) enum Body {
    /// An object, field by field.
    Fields(Vec<Field>),
    /// Anything else, in TypeScript.
    Is(String),
}

#[derive(Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) about: Option<String>,
    /// It may be missing.
    pub(super) optional: bool,
    /// In TypeScript.
    pub(super) is: String,
}

/// Who says it. Clients leave out what they do not want; the coordinator says `null`, and leaves out only what its
/// schema does not let be `null`.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Client,
    Coordinator,
}

/// The types of requests, and those that only answers have, by name.
pub(super) fn types(mut asked: Schemas, mut said: Schemas) -> Outcome<(Vec<Type>, Vec<Type>)> {
    tag(&mut asked)?;
    merge(&mut said);
    let requests = asked.iter().map(|(of, schema)| make(of, schema, By::Client));
    let mut requests: Vec<Type> = requests.collect::<Outcome<_>>()?;
    let mut answers = Vec::new();
    for (of, schema) in &said {
        let made = make(of, schema, By::Coordinator)?;
        match requests.iter().find(|other| other.name == made.name) {
            Some(same) if *same == made => {}
            Some(_) => return Err(format!("`{of}` is another type in answers than in requests")),
            None => answers.push(made),
        }
    }
    requests.sort_by(|a, b| a.name.cmp(&b.name));
    answers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((requests, answers))
}

impl Type {
    /// Names of other types in it.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let (fields, is) = match &self.body {
            Body::Fields(fields) => (fields.as_slice(), None),
            Body::Is(is) => (&[][..], Some(is)),
        };
        let texts = fields.iter().map(|field| &field.is).chain(is);
        texts.flat_map(|is| is.split(|c: char| !c.is_alphanumeric()))
    }
}

/// Kinds of work are told apart by a field that the schema of the whole adds to that of each: here it is part of each.
fn tag(schemas: &mut Schemas) -> Outcome {
    let mut tags = Vec::new();
    for schema in schemas.values_mut() {
        for one in schema["oneOf"].as_array_mut().into_iter().flatten() {
            let [all, tag] = one["allOf"].as_array().map_or(&[][..], Vec::as_slice) else {
                continue;
            };
            let of = referred(all).ok_or_else(|| format!("{all} is no reference"))?.to_owned();
            tags.push((of, tag["properties"].clone(), one["description"].clone()));
            *one = all.clone();
        }
    }
    for (of, tag, about) in tags {
        let schema = schemas.get_mut(&of).ok_or_else(|| format!("there is no `{of}`"))?;
        for (field, is) in tag.as_object().into_iter().flatten() {
            schema["properties"][field] = is.clone();
            if let Some(required) = schema["required"].as_array_mut() {
                required.push(field.as_str().into());
            }
        }
        if schema["description"].is_null() {
            schema["description"] = about;
        }
    }
    Ok(())
}

/// What is put together from a part of its own and fields becomes one object. A part that nothing else refers to goes.
fn merge(schemas: &mut Schemas) {
    let parts = schemas.clone();
    let mut merged = BTreeSet::new();
    for schema in schemas.values_mut() {
        let Some(all) = schema["allOf"].as_array().cloned() else { continue };
        let mut whole = Map::new();
        let mut required = Vec::new();
        for part in &all {
            let part = referred(part).and_then(|of| {
                merged.insert(of.to_owned());
                parts.get(of)
            });
            let part = part.unwrap_or_else(|| all.last().unwrap_or(&Value::Null));
            whole.extend(part["properties"].as_object().cloned().unwrap_or_default());
            required.extend(part["required"].as_array().cloned().unwrap_or_default());
        }
        let about = schema["description"].clone();
        *schema = serde_json::json!({
            "type": "object", "properties": whole, "required": required, "description": about,
        });
    }
    schemas.retain(|of, _| !merged.contains(of));
}

fn make(of: &str, schema: &Value, by: By) -> Outcome<Type> {
    let about = text(&schema["description"]);
    let body = match schema["properties"].as_object() {
        Some(properties) => {
            let fields = properties.iter().map(|(field, is)| make_field(of, schema, field, is, by));
            let mut fields: Vec<Field> = fields.collect::<Outcome<_>>()?;
            // What tells objects apart comes first.
            fields.sort_by_key(|field| !(field.name == "kind" && field.is.starts_with('"')));
            Body::Fields(fields)
        }
        None => Body::Is(is(schema, by)?),
    };
    Ok(Type { name: name(of).to_owned(), about, body })
}

fn make_field(of: &str, schema: &Value, field: &str, value: &Value, by: By) -> Outcome<Field> {
    let required = schema["required"].as_array();
    let required = required.is_some_and(|names| names.iter().any(|name| name == field));
    let optional = !required && (by == By::Client || !may_be_null(value));
    // What is said of a field that may be null stands with its first type.
    let about = text(&value["description"]).or_else(|| text(&value["oneOf"][0]["description"]));
    let is = match finer(of, field) {
        Some(finer) => finer.to_owned(),
        None => is(value, by).map_err(|problem| format!("{of}.{field}: {problem}"))?,
    };
    Ok(Field { name: field.to_owned(), about, optional, is })
}

/// A schema in TypeScript.
fn is(schema: &Value, by: By) -> Outcome<String> {
    if let Some(of) = referred(schema) {
        return Ok(name(of).to_owned());
    }
    for (how, between) in [("oneOf", " | "), ("allOf", " & ")] {
        if let Some(parts) = schema[how].as_array() {
            let parts = parts.iter().filter(|part| by != By::Client || part["type"] != "null");
            let parts: Vec<String> = parts.map(|part| is(part, by)).collect::<Outcome<_>>()?;
            return Ok(parts.join(between));
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(Value::to_string).collect();
        return Ok(words.join(" | "));
    }
    match &schema["type"] {
        Value::Null => Ok("unknown".into()),
        Value::String(one) => plain(one, schema, by),
        Value::Array(several) => {
            let several = several.iter().filter_map(Value::as_str);
            let several = several.filter(|one| by != By::Client || *one != "null");
            let several: Vec<String> =
                several.map(|one| plain(one, schema, by)).collect::<Outcome<_>>()?;
            Ok(several.join(" | "))
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(format!("there is no type {other}"))
        }
    }
}

fn plain(kind: &str, schema: &Value, by: By) -> Outcome<String> {
    match kind {
        "string" | "boolean" | "number" | "null" => Ok(kind.to_owned()),
        "integer" => Ok("number".into()),
        "array" => {
            let of = is(&schema["items"], by)?;
            let of = if of.contains(' ') { format!("({of})") } else { of };
            match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
                (Some(least), Some(most)) if least == most => {
                    Ok(format!("[{}]", vec![of; most as usize].join(", ")))
                }
                _ => Ok(format!("{of}[]")),
            }
        }
        "object" => match (&schema["properties"], &schema["additionalProperties"]) {
            (Value::Object(_), _) => {
                let Body::Fields(fields) = make("", schema, by)?.body else {
                    return Err("an object without fields".into());
                };
                let fields = fields.iter().map(|Field { name, optional, is, .. }| {
                    format!("{name}{}: {is}", if *optional { "?" } else { "" })
                });
                Ok(format!("{{ {} }}", fields.collect::<Vec<_>>().join("; ")))
            }
            (_, each @ Value::Object(_)) => Ok(format!("Record<string, {}>", is(each, by)?)),
            (_, _) => Ok("Record<string, unknown>".into()),
        },
        other => Err(format!("there is no type `{other}`")),
    }
}

fn may_be_null(schema: &Value) -> bool {
    let among = |list: &Value| list.as_array().is_some_and(|all| all.iter().any(|is| is == "null"));
    let one_of = schema["oneOf"].as_array();
    among(&schema["type"]) || one_of.is_some_and(|all| all.iter().any(|is| is["type"] == "null"))
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// Words of a description on one line.
fn text(description: &Value) -> Option<String> {
    let words: Vec<&str> = description.as_str()?.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schemas(value: Value) -> Schemas {
        value.as_object().cloned().expect("an object")
    }

    fn field(field: &str, is: &str, optional: bool) -> Field {
        Field { name: field.into(), about: None, optional, is: is.into() }
    }

    #[test]
    fn clients_leave_out_what_the_coordinator_says_is_null() {
        let schema = json!({"properties": {
            "a": {"type": ["string", "null"]},
            "b": {"oneOf": [{"$ref": "#/components/schemas/BlobJson"}, {"type": "null"}]},
            "c": {"type": "integer"},
            "d": {"type": "array", "items": {"type": ["number", "null"]}},
        }, "required": ["d"], "type": "object"});
        let asked = make("AskRequest", &schema, By::Client).expect("a type");
        let expected = [
            field("a", "string", true),
            field("b", "BlobRef", true),
            field("c", "number", true),
            field("d", "number[]", false),
        ];
        assert_eq!(asked.body, Body::Fields(expected.into()));
        let said = make("SayJson", &schema, By::Coordinator).expect("a type");
        let expected = [
            field("a", "string | null", false),
            field("b", "BlobRef | null", false),
            field("c", "number", true),
            field("d", "(number | null)[]", false),
        ];
        assert_eq!(said.body, Body::Fields(expected.into()));
        assert_eq!(said.name, "Say");
    }

    #[test]
    fn a_kind_is_part_of_its_request() {
        let kind = json!({"properties": {"kind": {"enum": ["noop"], "type": "string"}}});
        let noop = json!({"$ref": "#/components/schemas/NoopRequest"});
        let requests = schemas(json!({
            "NoopRequest": {"properties": {"items": {"type": "integer"}}, "required": ["items"]},
            "WorkRequest": {"oneOf": [{"allOf": [noop, kind], "description": "Nothing."}]},
        }));
        let (types, _) = types(requests, Schemas::new()).expect("types");
        let fields = vec![field("kind", "\"noop\"", false), field("items", "number", false)];
        assert_eq!(types[0].body, Body::Fields(fields));
        assert_eq!(types[0].about.as_deref(), Some("Nothing."));
        assert_eq!(types[1].body, Body::Is("NoopRequest".into()));
    }

    #[test]
    fn parts_become_one_object_and_rows_of_fixed_length_tuples() {
        let pair =
            json!({"items": {"type": "number"}, "type": "array", "minItems": 2, "maxItems": 2});
        let answers = schemas(json!({
            "Shown": {"properties": {"render": {"type": "string"}}, "required": ["render"]},
            "JobJson": {"allOf": [{"$ref": "#/components/schemas/Shown"},
                {"properties": {"at": pair}, "required": ["at"]}]},
        }));
        let (_, types) = types(Schemas::new(), answers).expect("types");
        let fields = vec![field("at", "[number, number]", false), field("render", "string", false)];
        assert_eq!(types.len(), 1);
        assert_eq!(types[0].body, Body::Fields(fields));
    }
}
