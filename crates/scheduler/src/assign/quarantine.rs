//! Units that end the nodes that compute them. A vanished node is no failed unit: donors close tabs. But a unit
//! whose nodes vanish soon after they began, one after the other, is not lent for ever.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_TRIES;
use shoal_protocol::{Caps, Failure, JobId, Micros, NodeId, NodeKind, Time};

use super::fail::voices;
use crate::state::Scheduler;
use crate::unit::{History, Loan};

/// Distinct nodes that vanished early before a unit is thought deadly: with two it may still be chance.
const DEADLY: usize = 3;
/// Vanishing this soon after a node began points at the unit; later it points at life.
const EARLY: Micros = Micros::from_secs(10);

/// A node that vanished while it computed a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Victim {
    pub(crate) node: NodeId,
    network: u64,
    kind: &'static str,
    gpu: Option<String>,
}

impl Scheduler {
    /// Notes that a node vanished with a unit at work; says why if the unit is not to be lent again.
    pub(crate) fn vanished(&mut self, now: Time, loan: &Loan) -> Option<Failure> {
        let began = loan.running?;
        let victim = self.peers.get(&loan.node);
        let victim = victim.map(|peer| Victim::new(loan.node, peer.network, &peer.caps));
        let unit = self.jobs.get_mut(&loan.job)?.units.get_mut(&loan.unit)?;
        if unit.ballot.is_some() {
            // Somebody could compute it, so it is not deadly.
            return None;
        }
        let history = &mut unit.history;
        history.tries += 1;
        let early = now - began < EARLY;
        if let Some(victim) = victim.filter(|_| early)
            && history.victims.iter().all(|known| known.node != victim.node)
        {
            history.victims.push(victim);
        }
        let networks: Vec<_> = history.victims.iter().map(|victim| victim.network).collect();
        let deadly = voices(&networks) >= DEADLY || history.tries >= MAX_TRIES;
        deadly.then(|| Failure::Internal { message: describe(history) })
    }
}

impl Scheduler {
    /// A node thought to be ended by a unit is still at it.
    pub(crate) fn forgive(&mut self, node: NodeId, id: JobId, start: u64) {
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start));
        let Some(history) = unit.map(|unit| &mut unit.history) else { return };
        let before = history.victims.len();
        history.victims.retain(|victim| victim.node != node);
        history.tries -= u32::from(history.victims.len() < before).min(history.tries);
    }
}

impl Victim {
    fn new(node: NodeId, network: u64, caps: &Caps) -> Victim {
        let kind = match caps.kind {
            NodeKind::Native => "native nodes",
            NodeKind::Browser => "browsers",
            NodeKind::Simulated => "simulated nodes",
        };
        Victim { node, network, kind, gpu: caps.gpu.as_ref().map(|gpu| gpu.name.clone()) }
    }
}

/// What the victims had in common helps whoever must find the cause.
fn describe(history: &History) -> String {
    let Some(first) = history.victims.first().filter(|_| history.victims.len() >= DEADLY) else {
        return format!("{} nodes vanished or stalled while they computed it", history.tries);
    };
    let mut common = Vec::new();
    if history.victims.iter().all(|victim| victim.kind == first.kind) {
        common.push(format!("all were {}", first.kind));
    }
    if let Some(gpu) = &first.gpu
        && history.victims.iter().all(|victim| victim.gpu == first.gpu)
    {
        common.push(format!("all have the GPU {gpu}"));
    }
    let common =
        if common.is_empty() { "nothing in common".to_string() } else { common.join(", ") };
    format!(
        "{} nodes vanished soon after they began to compute it: {common}",
        history.victims.len()
    )
}
