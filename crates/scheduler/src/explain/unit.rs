//! What became of a unit.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use shoal_protocol::{JobId, NodeId, Span, Time};

use super::many;
use crate::job::{Job, Proof};
use crate::state::Scheduler;
use crate::unit::Unit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyUnit {
    Waiting,
    ComputedBy {
        span: Span,
        node: NodeId,
        at: Time,
    },
    /// All who gave the same answer, whoever computed it first.
    Checked {
        nodes: Vec<NodeId>,
        /// As many as the policy asks.
        sure: bool,
        /// The policy counts votes.
        quorum: bool,
    },
    /// Computed by one of the operator's own nodes, and by nobody else.
    Own,
    /// Merged on one node's word.
    Unchecked,
    LentTo {
        node: NodeId,
        since: Time,
        computing: bool,
        /// Another copy is late, or its answer is known and the node is tried.
        extra: bool,
    },
    FailedOn {
        nodes: Vec<NodeId>,
        tries: u32,
    },
    /// Lost by several: who has shown most here tries it next, or nobody is here who could.
    SetAside,
    /// How many nodes answered, and how many of them say what most say.
    Disputed {
        nodes: usize,
        agree: usize,
    },
    WaitsForVoter {
        agree: usize,
    },
}

impl fmt::Display for WhyUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyUnit::Waiting => f.write_str("it is waiting for a node"),
            WhyUnit::ComputedBy { span, node, .. } => {
                write!(f, "items {span} were computed by node {node}")
            }
            WhyUnit::Checked { nodes, sure, quorum } => {
                match nodes.as_slice() {
                    [_, other] if !quorum => write!(f, "checked by another device: node {other}")?,
                    all => write!(f, "agreed by {} devices: {}", all.len(), list(all))?,
                }
                let few = ", fewer than required, because no other device was there";
                f.write_str(if *sure { "" } else { few })
            }
            WhyUnit::Own => f.write_str("computed by your own device, not checked"),
            WhyUnit::Unchecked => f.write_str("not checked: no other device computed it"),
            WhyUnit::LentTo { node, computing, extra, .. } => {
                let doing = if *computing { "is computing it" } else { "has it" };
                let why = if *extra { ", because another node is late, or to test this one" } else { "" };
                write!(f, "node {node} {doing}{why}")
            }
            WhyUnit::FailedOn { nodes, tries } if nodes.is_empty() => {
                write!(f, "{} disconnected while computing it", many(u64::from(*tries), "node"))
            }
            WhyUnit::FailedOn { nodes, tries } => {
                write!(f, "it failed on {} ({tries} tries)", list(nodes))
            }
            WhyUnit::SetAside => f.write_str(
                "one of your own nodes, or the nodes with the best record, must try it before the job fails",
            ),
            WhyUnit::Disputed { nodes, agree } => {
                write!(f, "{nodes} nodes answered and disagree; at most {agree} gave the same answer")
            }
            WhyUnit::WaitsForVoter { agree: 1 } => {
                f.write_str("one node answered; it waits for another to check it")
            }
            WhyUnit::WaitsForVoter { agree } => {
                write!(f, "{agree} nodes gave the same answer; it waits for another to check it")
            }
        }
    }
}

fn list(nodes: &[NodeId]) -> String {
    let numbers: Vec<_> = nodes.iter().map(NodeId::to_string).collect();
    let what = if nodes.len() == 1 { "node " } else { "nodes " };
    String::from(what) + &numbers.join(", ")
}

fn explain_proof(job: &Job, node: NodeId, proof: Option<&Proof>) -> WhyUnit {
    match proof {
        Some(Proof { by, sure, .. }) if !by.is_empty() => WhyUnit::Checked {
            nodes: core::iter::once(node).chain(by.iter().copied()).collect(),
            sure: *sure,
            quorum: job.quorum().is_some(),
        },
        Some(Proof { vouched: true, .. }) => WhyUnit::Own,
        Some(_) | None => WhyUnit::Unchecked,
    }
}

impl Scheduler {
    /// What became of the unit that holds an item; empty if there is no such item.
    pub fn explain_unit(&self, id: JobId, item: u64) -> Vec<WhyUnit> {
        let mut why = Vec::new();
        let Some(job) = self.jobs.get(&id).filter(|job| item < job.spec.items) else { return why };
        let merged = job.merged.range(..=item).next_back();
        if let Some((start, merged)) = merged.filter(|(start, m)| item < *start + m.len) {
            let span = Span::new(*start, merged.len);
            why.push(WhyUnit::ComputedBy { span, node: merged.node, at: merged.at });
            why.push(explain_proof(job, merged.node, job.proofs.get(start)));
        }
        let unit = job.units.range(..=item).next_back().map(|(_, unit)| unit);
        if let Some(unit) = unit.filter(|unit| item < unit.span.end()) {
            self.explain_flight(job, unit, &mut why);
        } else if why.is_empty() {
            why.push(WhyUnit::Waiting);
        }
        why
    }

    fn explain_flight(&self, job: &Job, unit: &Unit, why: &mut Vec<WhyUnit>) {
        for copy in &unit.copies {
            let Some(loan) = self.loans.get(&copy.attempt) else { continue };
            let (node, since, computing) = (copy.node, loan.since, loan.running.is_some());
            why.push(WhyUnit::LentTo { node, since, computing, extra: copy.extra });
        }
        let nodes = unit.history.failed_on();
        if unit.history.tries > 0 || !nodes.is_empty() {
            why.push(WhyUnit::FailedOn { nodes, tries: unit.history.tries });
        }
        if unit.is_aside() && unit.copies.is_empty() {
            why.push(WhyUnit::SetAside);
        }
        if let Some(ballot) = &unit.ballot {
            let (agree, nodes) = (ballot.poll().votes, ballot.answers.len());
            why.extend(ballot.is_disputed().then_some(WhyUnit::Disputed { nodes, agree }));
            why.extend(unit.wants(&job.rules()).then_some(WhyUnit::WaitsForVoter { agree }));
        } else if unit.copies.is_empty() {
            why.push(WhyUnit::Waiting);
        }
    }
}
