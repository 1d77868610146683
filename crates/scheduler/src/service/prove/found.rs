//! What follows when an answer of strangers was looked at.

use alloc::format;
use alloc::vec::Vec;
use shoal_protocol::{JobId, Micros, NodeId};

use super::look::Look;
use crate::service::unanswered::CallError;
use crate::state::Scheduler;

/// After a wrong answer, as in simulations.
const SUSPECTED_FOR: Micros = Micros::from_secs(600);

impl Scheduler {
    pub(super) fn found_right(&mut self, service: JobId) {
        let Some(look) = self.end_look(service) else { return };
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.proofs.looked_at += 1;
        for node in look.by {
            *of.proofs.right.entry(node).or_default() += 1;
        }
    }

    /// Those strangers who gave it get no more of the service for a while, and what they said something of ends. If it
    /// is only one, it has lied: that counts like a wrong answer in a job.
    pub(super) fn found_wrong(&mut self, service: JobId) {
        let now = self.now;
        let of = self.services.services.get(&service);
        let Some(looker) = of.and_then(|of| of.proofs.looker()) else { return };
        let Some(Look { by, .. }) = self.end_look(service) else { return };
        let names: Vec<_> = by.iter().map(|node| self.called_node(*node)).collect();
        let mut what = format!(
            "{} said an answer of {} again and came to other words",
            self.called_node(looker),
            names.join(", ")
        );
        if by.len() > 1 {
            what += ": one of them lied";
        }
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let lane = of.spec.needs.lane;
        (of.trouble, of.proofs.found) = (Some(what.clone()), Some(what.clone()));
        of.proofs.looked_at += 1;
        of.proofs.wrong += 1;
        // It may be needed in the place of whoever goes.
        of.proofs.wanted = now;
        for node in &by {
            of.proofs.right.remove(node);
            of.proofs.suspects.insert(*node, now + SUSPECTED_FOR);
            of.unfit.insert(*node, now + SUSPECTED_FOR);
        }
        if let [liar] = by.as_slice() {
            self.belie(now, *liar, lane);
        }
        self.break_off(service, &by, &what);
        self.crew_lied(now, service, &by, &what);
        by.iter().for_each(|node| self.dismiss_replica(service, *node));
        self.services.due = Some(now);
        self.hand_out(service);
    }

    /// Answers that they have said something of, whoever goes on with them now: nobody can go on behind words that may
    /// be wrong.
    fn break_off(&mut self, service: JobId, by: &[NodeId], why: &str) {
        let theirs = self.services.calls.iter().filter(|(_, call)| {
            call.service == service && call.said_by.iter().any(|node| by.contains(node))
        });
        let theirs: Vec<_> = theirs.map(|(id, _)| *id).collect();
        for id in theirs {
            self.end_call(id, Some(CallError::Doubted { why: why.into() }));
        }
    }
}
