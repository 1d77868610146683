//! The one text of a receipt that is signed: compact JSON, keys sorted, whole numbers only. Written
//! here, key by key, so that no library's choice can change it.

use serde_json::Value;

/// `None` if there is a number with a fraction, which has no one way to be written.
pub(super) fn canonical(value: &Value) -> Option<String> {
    let mut text = String::new();
    write(value, &mut text)?;
    Some(text)
}

fn write(value: &Value, text: &mut String) -> Option<()> {
    match value {
        Value::Number(number) if number.is_f64() => return None,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(item, text)?;
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (at, (name, member)) in members.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(member, text)?;
            }
            text.push('}');
        }
    }
    Some(())
}
