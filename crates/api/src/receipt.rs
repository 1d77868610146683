//! Receipts. What is signed is the text of [`ReceiptJson`], so its form is fixed: fields in the order of
//! their names, no spaces, no fractions.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use shoal_kinds::plan::Settings;

use super::StateJson;

/// The first line of every receipt, so that nobody takes another format for this one.
pub const RECEIPT_FORMAT: &str = "shoal receipt 1";

/// A receipt and who signed it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SignedReceiptJson {
    /// The coordinator's public key, 64 hexadecimal digits.
    pub key: String,
    pub receipt: ReceiptJson,
    /// Ed25519, 128 hexadecimal digits, of the words `shoal receipt 1`, a zero byte and the BLAKE3 hash
    /// of `receipt` as JSON without spaces and with sorted keys.
    pub signature: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceiptJson {
    pub code: Option<CodeJson>,
    /// Milliseconds since 1970. So are all moments here.
    pub ended: Option<u64>,
    /// `shoal receipt 1`.
    pub format: Cow<'static, str>,
    pub inputs: Vec<ReceiptInputJson>,
    pub items: u64,
    pub job: u64,
    pub kind: Cow<'static, str>,
    pub name: String,
    /// Everybody named in `units`.
    pub nodes: Vec<ReceiptNodeJson>,
    /// Of a job that is done.
    pub output: Option<ReceiptOutputJson>,
    pub owner: String,
    pub policy: ReceiptPolicyJson,
    /// What the job was asked to compute, beside its code and inputs: what its kind says of it.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub settings: Settings,
    pub state: StateJson,
    pub submitted: u64,
    pub units: Vec<ReceiptUnitJson>,
    /// BLAKE3 of all that nodes are told to do, as it is sent to them (postcard).
    pub work: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CodeJson {
    /// BLAKE3 of the kernel's text or of the module.
    pub hash: String,
    pub signature: Option<String>,
    pub signed_by: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceiptInputJson {
    pub hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub name: Option<String>,
    /// `input` of a map; `lines`, `file` or `folder` of an exec.
    pub role: Cow<'static, str>,
    pub size: u64,
}

/// What a job computes from, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InputsJson {
    pub inputs: Vec<ReceiptInputJson>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceiptNodeJson {
    /// Its numeric class as last said.
    pub class: Option<String>,
    /// Its public key.
    pub identity: Option<String>,
    pub name: String,
    pub node: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceiptOutputJson {
    pub hash: String,
    pub size: u64,
    pub what: ReceiptWhatJson,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceiptPolicyJson {
    pub tolerance: ReceiptToleranceJson,
    pub verify: String,
}

/// What the hash of a result is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReceiptWhatJson {
    /// The result as it is served.
    Bytes,
    /// The picture's RGBA8 rows.
    Pixels,
}

/// Fractions are written as text, so that there is one way to write them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceiptToleranceJson {
    pub abs: String,
    /// `bytes` (bit for bit), `unorm8`, `f16` or `f32`.
    pub dtype: Cow<'static, str>,
    pub rel: String,
    pub ulps: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReceiptUnitJson {
    /// When it was merged, to a tenth of a second.
    pub at: u64,
    /// Other nodes that computed the unit, whole or in part, and gave the same answer. With `node` they are
    /// those who agreed. Empty if nobody checked it.
    pub checked_by: Vec<u64>,
    /// BLAKE3 of the unit's bytes; `null` where there are none.
    pub hash: Option<String>,
    pub len: u64,
    /// Who computed it.
    pub node: u64,
    /// One of your own devices gave this answer.
    pub own: bool,
    pub size: u64,
    pub start: u64,
    /// As many devices agreed as the policy requires.
    pub sure: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Every object of a value with its keys in order.
    fn sorted(value: &Value) -> String {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| name.as_str());
                let fields = fields.iter().map(|(name, v)| format!("\"{name}\":{}", sorted(v)));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
            Value::Array(values) => {
                format!("[{}]", values.iter().map(sorted).collect::<Vec<_>>().join(","))
            }
            Value::Number(number) => {
                assert!(!number.is_f64(), "{number} is no integer");
                number.to_string()
            }
            Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
        }
    }

    #[test]
    fn fields_are_written_in_the_order_of_their_names() {
        let text = || String::from("text");
        let tolerance =
            ReceiptToleranceJson { abs: text(), dtype: "f32".into(), rel: text(), ulps: 16 };
        let receipt = ReceiptJson {
            code: Some(CodeJson { hash: text(), signature: Some(text()), signed_by: None }),
            ended: Some(2),
            format: RECEIPT_FORMAT.into(),
            inputs: vec![ReceiptInputJson {
                hash: text(),
                name: Some(text()),
                role: "file".into(),
                size: 1,
            }],
            items: 1,
            job: 1,
            kind: "map".into(),
            name: text(),
            nodes: vec![ReceiptNodeJson { class: None, identity: None, name: text(), node: 1 }],
            output: Some(ReceiptOutputJson { hash: text(), size: 1, what: ReceiptWhatJson::Bytes }),
            owner: text(),
            policy: ReceiptPolicyJson { tolerance, verify: text() },
            settings: ["width", "args", "clock"]
                .map(|name| (name.into(), text().into()))
                .into_iter()
                .collect(),
            state: StateJson::Done,
            submitted: 1,
            units: vec![ReceiptUnitJson {
                at: 1,
                checked_by: vec![2],
                hash: Some(text()),
                len: 1,
                node: 1,
                own: false,
                size: 1,
                start: 0,
                sure: true,
            }],
            work: text(),
        };
        let written = serde_json::to_string(&receipt).expect("plain data");
        let value: Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(written, sorted(&value));
    }
}
