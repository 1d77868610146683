//! What a job can show: who computed what, when, and why it is believed. The shell signs it.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Identity, JobId, NodeId, Policy, Span, Time};

use crate::fact::Place;
use crate::job::{Job, JobState, Proof};
use crate::state::Scheduler;

#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    pub job: JobId,
    pub name: String,
    pub owner: String,
    pub state: JobState,
    pub items: u64,
    pub policy: Policy,
    pub submitted: Time,
    pub ended: Option<Time>,
    /// Everybody named below.
    pub nodes: Vec<ReceiptNode>,
    /// In order.
    pub units: Vec<ReceiptUnit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptNode {
    pub node: NodeId,
    pub identity: Option<Identity>,
    /// Its numeric class, as last said; 0 if unknown.
    pub class: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptUnit {
    pub span: Span,
    /// Who computed it.
    pub node: NodeId,
    /// When it was merged, to a tenth of a second.
    pub at: Time,
    /// Where its bytes are, and their hash.
    pub place: Option<Place>,
    /// Who checked it; `None` if nobody did.
    pub proof: Option<Proof>,
}

impl Scheduler {
    /// Everything about a job that is durable.
    pub fn receipt(&self, job: JobId) -> Option<Receipt> {
        let known = self.jobs.get(&job)?;
        let units = known.receipt_units();
        Some(Receipt {
            job,
            name: known.spec.name.clone(),
            owner: known.spec.owner.clone(),
            state: known.state,
            items: known.spec.items,
            policy: known.spec.policy,
            submitted: known.submitted,
            ended: known.ended,
            nodes: self.receipt_nodes(&units),
            units,
        })
    }

    fn receipt_nodes(&self, units: &[ReceiptUnit]) -> Vec<ReceiptNode> {
        let by = units.iter().filter_map(|unit| unit.proof.as_ref()).flat_map(|proof| &proof.by);
        let mut nodes: Vec<_> = units.iter().map(|unit| &unit.node).chain(by).copied().collect();
        nodes.sort();
        nodes.dedup();
        let named: BTreeSet<_> = nodes.iter().copied().collect();
        let keys = self.register.keys(&named);
        let node = |node: NodeId| ReceiptNode {
            node,
            identity: keys.get(&node).copied(),
            class: self.register.class(node),
        };
        nodes.into_iter().map(node).collect()
    }
}

impl Job {
    fn receipt_units(&self) -> Vec<ReceiptUnit> {
        let units = self.merged.iter().map(|(start, merged)| ReceiptUnit {
            span: Span::new(*start, merged.len),
            node: merged.node,
            at: merged.at,
            place: merged.place,
            proof: self.proofs.get(start).cloned(),
        });
        units.collect()
    }
}
