//! Receipts: what an ended job can show, and checking it without asking anybody.

mod canon;
mod check;
mod files;
mod policy;
#[cfg(test)]
mod tests;

pub(crate) use files::Files;

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shoal_api::RECEIPT_FORMAT as FORMAT;
use shoal_protocol::PublicKey;

use crate::fail::Fail;

// Types of its own, not those that the coordinator writes: a receipt may be years old, and only what is checked counts.

/// A receipt as it is handed out: signed.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    receipt: Value,
    key: String,
    signature: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) job: u64,
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) items: u64,
    pub(crate) policy: Policy,
    code: Option<Code>,
    #[serde(default)]
    inputs: Vec<Input>,
    output: Option<Output>,
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    units: Vec<Unit>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Policy {
    pub(crate) verify: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Code {
    hash: String,
    signed_by: String,
    signature: String,
}

#[derive(Debug, Deserialize)]
struct Input {
    role: String,
    name: Option<String>,
    hash: String,
}

#[derive(Debug, Deserialize)]
struct Output {
    what: String,
    hash: String,
    size: u64,
}

#[derive(Debug, Deserialize)]
struct Node {
    node: u64,
    #[serde(default)]
    name: String,
    identity: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unit {
    start: u64,
    len: u64,
    node: u64,
    hash: Option<String>,
    #[serde(default, alias = "confirmedBy")]
    checked_by: Vec<u64>,
    #[serde(default)]
    sure: bool,
    #[serde(default, alias = "vouched")]
    own: bool,
}

/// What one look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// Nothing was given to hold it against, or the receipt cannot tell.
    Unknown,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) what: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) text: String,
}

impl Check {
    fn new(what: &'static str, verdict: Verdict, text: impl Into<String>) -> Check {
        Check { what, verdict, text: text.into() }
    }

    fn of(what: &'static str, outcome: Result<String, String>) -> Check {
        match outcome {
            Ok(text) => Check::new(what, Verdict::Holds, text),
            Err(text) => Check::new(what, Verdict::Fails, text),
        }
    }
}

/// The key a receipt is held against, and where it is from.
pub(crate) struct Anchor {
    pub(crate) key: PublicKey,
    pub(crate) from: &'static str,
}

impl Document {
    pub(crate) fn read(path: &Path) -> Result<(Document, Receipt), Fail> {
        let bytes = std::fs::read(path).map_err(|error| Fail::reading(path, &error))?;
        Document::parse(&bytes)
            .map_err(|problem| Fail::input(format!("{} {problem}", path.display())))
    }

    fn parse(bytes: &[u8]) -> Result<(Document, Receipt), String> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| format!("is not a receipt: {error}"))?;
        let format = &document.receipt["format"];
        if format != FORMAT {
            return Err(format!("is a receipt in the format {format}; expected {FORMAT:?}"));
        }
        let receipt = Receipt::deserialize(&document.receipt)
            .map_err(|error| format!("is an incomplete receipt: {error}"))?;
        Ok((document, receipt))
    }

    /// Everything that can be checked, in the order people read it.
    pub(crate) fn check(
        &self,
        receipt: &Receipt,
        anchor: Option<&Anchor>,
        files: &Files,
    ) -> Result<Vec<Check>, Fail> {
        let mut checks = vec![self.signature(anchor)];
        checks.push(receipt.code_signature(&self.key));
        checks.push(receipt.coverage());
        checks.push(receipt.named());
        checks.push(receipt.policy_kept());
        checks.extend(receipt.files(files)?);
        Ok(checks)
    }
}
