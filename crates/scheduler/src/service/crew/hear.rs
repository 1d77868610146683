//! What members of a service's crew say.

use alloc::format;
use alloc::string::{String, ToString};
use shoal_protocol::id::clip;
use shoal_protocol::limit::{MAX_MEMBERS, MAX_TEXT_BYTES};
use shoal_protocol::{CrewId, CrewSay, Epoch, JobId, Micros, NodeId, StageReport, Time};

use crate::state::Scheduler;

/// A rate measured over less than this says little.
const MEASURED_AFTER: Micros = Micros::from_millis(100);

impl Scheduler {
    /// A member of the crew that keeps this service ready.
    pub(crate) fn stage_said(
        &mut self,
        now: Time,
        service: JobId,
        (node, crew, epoch): (NodeId, CrewId, Epoch),
        say: CrewSay,
    ) {
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let Some(known) = &mut of.crew else { return };
        if known.id != Some(crew) || known.epoch != epoch {
            return;
        }
        let Some(seat) = known.seat_mut(node) else { return };
        seat.heard = now;
        match say {
            CrewSay::Loaded => {
                seat.ready = true;
                if known.is_ready() {
                    of.loading = of.loading.max(now - known.since);
                    known.moved = now;
                    of.trouble = None;
                }
                self.services.due = Some(now);
                self.hand_out(service);
            }
            CrewSay::Staged(report) => self.staged(now, service, node, report),
            CrewSay::Failed { failure } => {
                let reason = clip(failure.to_string(), MAX_TEXT_BYTES);
                self.seat_out(now, service, node, &format!("node {node}: {reason}"));
            }
            CrewSay::Bad { node: other, why } => {
                let why = clip(why, MAX_TEXT_BYTES);
                self.seat_accused(now, service, (node, other), &why);
            }
            CrewSay::Auditioned { .. }
            | CrewSay::Progress { .. }
            | CrewSay::Checkpoint { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Leave
            | CrewSay::Poked { .. }
            | CrewSay::Total { .. } => {}
        }
    }

    fn staged(&mut self, now: Time, service: JobId, node: NodeId, mut report: StageReport) {
        report.links.truncate(MAX_MEMBERS);
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let (Some(crew), Some(plan)) = (&mut of.crew, &of.plan) else { return };
        let Some(seat) = crew.seat_mut(node) else { return };
        let (moved, done) = (report.turns > seat.report.turns, report.done > seat.report.done);
        if done && report.computed >= MEASURED_AFTER {
            let work = u128::from(plan.problem.work(seat.parts)) * u128::from(report.done);
            let rate = work * 1_000_000 / u128::from(report.computed.0.max(1));
            of.rates.insert(node, u64::try_from(rate).unwrap_or(u64::MAX).max(1));
        }
        seat.report = report;
        if moved {
            crew.moved = now;
        }
    }

    /// A member says that another did what no honest one does. The operator's own is believed, and else whoever says
    /// it first.
    fn seat_accused(
        &mut self,
        now: Time,
        service: JobId,
        (by, other): (NodeId, NodeId),
        why: &str,
    ) {
        let of = self.services.services.get(&service);
        if of.and_then(|of| of.crew.as_ref()).is_none_or(|crew| !crew.has(other)) {
            return;
        }
        let trusted = |node: &NodeId| self.peers.get(node).is_some_and(|peer| peer.trusted);
        let gone = if trusted(&other) && !trusted(&by) { by } else { other };
        let what: String = format!("node {by} reports node {other}: {why}");
        self.seat_out(now, service, gone, &what);
    }
}
