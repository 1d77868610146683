//! Receipts. What is signed is the text of [`ReceiptJson`], so its form is fixed: fields in the order of
//! their names, no spaces, no fractions.

use serde::Serialize;
use shoal_kinds::plan::Settings;
use utoipa::ToSchema;

/// The first line of every receipt, so that nobody takes another format for this one.
pub(crate) const RECEIPT_FORMAT: &str = "shoal receipt 1";

/// A receipt and who signed it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SignedReceiptJson {
    /// The coordinator's public key, 64 hexadecimal digits.
    pub(crate) key: String,
    pub(crate) receipt: ReceiptJson,
    /// Ed25519, 128 hexadecimal digits, of the words `shoal receipt 1`, a zero byte and the BLAKE3 hash
    /// of `receipt` as JSON without spaces and with sorted keys.
    pub(crate) signature: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptJson {
    pub(crate) code: Option<CodeJson>,
    /// Milliseconds since the Unix epoch, as all moments here.
    pub(crate) ended: Option<u64>,
    /// `shoal receipt 1`.
    pub(crate) format: &'static str,
    pub(crate) inputs: Vec<ReceiptInputJson>,
    pub(crate) items: u64,
    pub(crate) job: u64,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// Everybody named in `units`.
    pub(crate) nodes: Vec<ReceiptNodeJson>,
    /// Of a job that is done.
    pub(crate) output: Option<ReceiptOutputJson>,
    pub(crate) owner: String,
    pub(crate) policy: ReceiptPolicyJson,
    /// What the job was asked to compute, beside its code and inputs: what its kind says of it.
    #[schema(value_type = Object)]
    pub(crate) settings: Settings,
    pub(crate) state: &'static str,
    pub(crate) submitted: u64,
    pub(crate) units: Vec<ReceiptUnitJson>,
    /// BLAKE3 of all that nodes are told to do, as it is sent to them (postcard).
    pub(crate) work: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeJson {
    /// BLAKE3 of the kernel's text or of the module.
    pub(crate) hash: String,
    pub(crate) signature: Option<String>,
    pub(crate) signed_by: Option<String>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptInputJson {
    pub(crate) hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// `input` of a map; `lines`, `file` or `folder` of an exec.
    pub(crate) role: &'static str,
    pub(crate) size: u64,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptNodeJson {
    /// Its numeric class as last said.
    pub(crate) class: Option<String>,
    /// Its public key.
    pub(crate) identity: Option<String>,
    pub(crate) name: String,
    pub(crate) node: u64,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptOutputJson {
    pub(crate) hash: String,
    pub(crate) size: u64,
    /// `bytes`: the result as it is served; `pixels`: the picture's RGBA8 rows.
    pub(crate) what: &'static str,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptPolicyJson {
    pub(crate) tolerance: ReceiptToleranceJson,
    pub(crate) verify: String,
}

/// Fractions are written as text, so that there is one way to write them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptToleranceJson {
    pub(crate) abs: String,
    /// `bytes` (bit for bit), `unorm8`, `f16` or `f32`.
    pub(crate) dtype: &'static str,
    pub(crate) rel: String,
    pub(crate) ulps: u32,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReceiptUnitJson {
    /// When it was merged, to a tenth of a second.
    pub(crate) at: u64,
    /// Other nodes that computed the unit, whole or in part, and gave the same answer. With `node` they are
    /// those who agreed. Empty if nobody checked it.
    pub(crate) checked_by: Vec<u64>,
    /// BLAKE3 of the unit's bytes; `null` where there are none.
    pub(crate) hash: Option<String>,
    pub(crate) len: u64,
    /// Who computed it.
    pub(crate) node: u64,
    /// One of your own devices (the operator's nodes) gave this answer.
    pub(crate) own: bool,
    pub(crate) size: u64,
    pub(crate) start: u64,
    /// As many agreed as the policy asks.
    pub(crate) sure: bool,
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
        let tolerance = ReceiptToleranceJson { abs: text(), dtype: "f32", rel: text(), ulps: 16 };
        let receipt = ReceiptJson {
            code: Some(CodeJson { hash: text(), signature: Some(text()), signed_by: None }),
            ended: Some(2),
            format: RECEIPT_FORMAT,
            inputs: vec![ReceiptInputJson {
                hash: text(),
                name: Some(text()),
                role: "file",
                size: 1,
            }],
            items: 1,
            job: 1,
            kind: "map",
            name: text(),
            nodes: vec![ReceiptNodeJson { class: None, identity: None, name: text(), node: 1 }],
            output: Some(ReceiptOutputJson { hash: text(), size: 1, what: "bytes" }),
            owner: text(),
            policy: ReceiptPolicyJson { tolerance, verify: text() },
            settings: ["width", "args", "clock"]
                .map(|name| (name.into(), text().into()))
                .into_iter()
                .collect(),
            state: "done",
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
        let written = serde_json::to_string(&receipt).unwrap();
        let value: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written, sorted(&value));
    }
}
