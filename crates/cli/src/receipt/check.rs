//! What a receipt says about itself: whose it is, whose code ran, and who computed what.

use std::collections::{BTreeMap, BTreeSet};

use shoal_kinds::Kind;
use shoal_protocol::{Hash, PublicKey, Signature, sign};

use super::canon::canonical;
use super::{Anchor, Check, Code, Document, Receipt, Verdict};
use crate::keys;

impl Document {
    /// The coordinator's signature, by a key the reader has from elsewhere.
    pub(super) fn signature(&self, anchor: Option<&Anchor>) -> Check {
        let checked = self.check_signature();
        match (checked, anchor) {
            (Err(problem), _) => Check::new("signature", Verdict::Fails, problem),
            (Ok(key), Some(anchor)) if key == anchor.key => {
                let text = format!("by the coordinator {} ({})", keys::short(&key), anchor.from);
                Check::new("signature", Verdict::Holds, text)
            }
            (Ok(key), Some(anchor)) => {
                let text = format!("by the key {key}; expected {} ({})", anchor.key, anchor.from);
                Check::new("signature", Verdict::Fails, text)
            }
            (Ok(key), None) => {
                let text = format!("by the key {key}; say with --key which key you expect");
                Check::new("signature", Verdict::Unknown, text)
            }
        }
    }

    fn check_signature(&self) -> Result<PublicKey, String> {
        let key: PublicKey = self.key.parse().map_err(|error| format!("its key: {error}"))?;
        let signature: Signature =
            self.signature.parse().map_err(|error| format!("its signature: {error}"))?;
        let text = canonical(&self.receipt).ok_or("it contains numbers with fractions")?;
        let statement = sign::receipt_statement(&keys::hash(text.as_bytes()));
        if keys::is_signed(&key, &statement, &signature) {
            return Ok(key);
        }
        Err(format!("the receipt is not what the key {} signed", keys::short(&key)))
    }
}

impl Receipt {
    pub(super) fn code_signature(&self, coordinator: &str) -> Check {
        let Some(code) = &self.code else {
            let text = if Kind::brings_code(&self.kind) == Some(false) {
                Ok(format!("none: {} jobs bring none", self.kind))
            } else {
                Err(format!("a {} job runs code, but the receipt names none", self.kind))
            };
            return Check::of("code", text);
        };
        Check::of("code", code.check_signature(coordinator))
    }

    /// Every item in exactly one unit. A job that did not end well may lack some.
    pub(super) fn coverage(&self) -> Check {
        let mut next = 0;
        for unit in &self.units {
            let end = unit.start.checked_add(unit.len).filter(|end| *end <= self.items);
            let Some(end) = end.filter(|_| unit.len > 0) else {
                let text = format!(
                    "the unit of {} items from item {} does not fit a job of {}",
                    unit.len, unit.start, self.items
                );
                return Check::new("units", Verdict::Fails, text);
            };
            if unit.start < next {
                let text = format!("item {} is in two units", unit.start);
                return Check::new("units", Verdict::Fails, text);
            }
            if unit.start > next && self.is_done() {
                let text = format!("items {next} to {} are in no unit", unit.start - 1);
                return Check::new("units", Verdict::Fails, text);
            }
            next = end;
        }
        if self.is_done() && next != self.items {
            let text = format!("items {next} to {} are in no unit", self.items - 1);
            return Check::new("units", Verdict::Fails, text);
        }
        let (units, items) = (self.units.len(), self.items);
        let text = if self.is_done() {
            format!("{units} units hold each of {items} items exactly once")
        } else {
            format!("{units} units, no item twice; the job is {}", self.state)
        };
        Check::new("units", Verdict::Holds, text)
    }

    /// Whoever computed or checked is named with a key of their own, and nobody checked themselves.
    pub(super) fn named(&self) -> Check {
        Check::of("nodes", self.check_named())
    }

    fn check_named(&self) -> Result<String, String> {
        let mut keys = BTreeSet::new();
        let mut names = BTreeMap::new();
        for node in &self.nodes {
            let identity = node.identity.as_deref().ok_or_else(|| {
                format!("node {} ({}) is listed without its key", node.node, node.name)
            })?;
            if !keys.insert(identity) || names.insert(node.node, identity).is_some() {
                return Err(format!("node {} ({}) is listed twice", node.node, node.name));
            }
        }
        for unit in &self.units {
            let mut seen = BTreeSet::new();
            for node in [unit.node].iter().chain(&unit.checked_by) {
                if !names.contains_key(node) {
                    return Err(format!("node {node} of item {} is not listed", unit.start));
                }
                if !seen.insert(node) {
                    return Err(format!(
                        "node {node} counts twice for the unit from item {}",
                        unit.start
                    ));
                }
            }
        }
        match names.len() {
            1 => Ok("1 node, listed with its key".into()),
            count => Ok(format!("{count} nodes, each listed with its key")),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == "done"
    }
}

impl Code {
    fn check_signature(&self, coordinator: &str) -> Result<String, String> {
        let hash: Hash = self.hash.parse().map_err(|error| format!("its hash: {error}"))?;
        let by: PublicKey = self.signed_by.parse().map_err(|error| format!("its key: {error}"))?;
        let signature: Signature =
            self.signature.parse().map_err(|error| format!("its signature: {error}"))?;
        if !keys::is_signed(&by, &sign::code_statement(&hash), &signature) {
            return Err(format!("the code is not what the key {} signed", keys::short(&by)));
        }
        if self.signed_by == coordinator {
            return Ok("came unsigned; the coordinator signed it".into());
        }
        Ok(format!("signed by {by}"))
    }
}
