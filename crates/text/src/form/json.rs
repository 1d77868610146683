//! JSON whose objects keep their order: the order of a schema's properties is that of the answer.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Flag(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn read(text: &str) -> Option<Json> {
        serde_json::from_str(text).ok()
    }

    /// As short as it can be written.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, into: &mut String) {
        match self {
            Json::Null => *into += "null",
            Json::Flag(flag) => *into += if *flag { "true" } else { "false" },
            Json::Number(number) => *into += &number.to_string(),
            Json::Text(text) => *into += &quoted(text),
            Json::List(list) => {
                into.push('[');
                for (at, item) in list.iter().enumerate() {
                    if at > 0 {
                        into.push(',');
                    }
                    item.write(into);
                }
                into.push(']');
            }
            Json::Object(members) => {
                into.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    if at > 0 {
                        into.push(',');
                    }
                    *into += &quoted(key);
                    into.push(':');
                    value.write(into);
                }
                into.push('}');
            }
        }
    }

    /// An object's member; nothing of anything else.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            Json::Null | Json::Flag(_) | Json::Number(_) | Json::List(_) | Json::Object(_) => None,
        }
    }
}

/// A text as JSON writes it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        Json::deserialize(deserializer)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Json, E> {
        let number = serde_json::Number::from_f64(number);
        number.map(Json::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_what_is_written_is_read_again() {
        let text = r#"{"b":[1,-2,0.5,true,null],"a":{"z":"\"\n","y":{}}}"#;
        let read = Json::read(text).unwrap();
        assert_eq!(read.text(), text);
        assert_eq!(Json::read(&read.text()), Some(read));
        assert_eq!(Json::read("{"), None);
    }
}
