//! A split service as people see it.

use alloc::vec::Vec;
use shoal_protocol::{Epoch, LinkReport, Micros, NodeId, Span};

use super::Crew;
use crate::service::Service;

/// Several nodes that keep a service ready together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitView {
    pub epoch: Epoch,
    pub ready: bool,
    /// Requests at work.
    pub running: usize,
    /// All work on each request together; otherwise one after another.
    pub side_by_side: bool,
    /// By rank.
    pub stages: Vec<StageView>,
    /// What a request should take by what was known when the crew was formed, and on the fastest node alone.
    pub predicted: Micros,
    pub alone: Option<Micros>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageView {
    pub node: NodeId,
    pub parts: Span,
    /// Bytes that these parts take.
    pub memory: u64,
    pub ready: bool,
    /// Requests done in this epoch.
    pub done: u64,
    /// What one takes here on average, and how long it is waited for in between.
    pub computes: Option<Micros>,
    pub waits: Option<Micros>,
    /// What is handed on for one, and how long that is on its way, there and a word back.
    pub hands_on: Option<u64>,
    pub travels: Option<Micros>,
    /// The link to the next one.
    pub link: Option<LinkReport>,
}

impl Service {
    pub(in crate::service) fn view_crew(&self) -> Option<SplitView> {
        let crew = self.crew.as_ref()?;
        let stages = (0..crew.seats.len()).filter_map(|rank| self.view_stage(crew, rank));
        Some(SplitView {
            epoch: crew.epoch,
            ready: crew.is_ready(),
            running: crew.calls,
            side_by_side: self.is_side_by_side(),
            stages: stages.collect(),
            predicted: crew.predicted,
            alone: crew.alone,
        })
    }

    fn view_stage(&self, crew: &Crew, rank: usize) -> Option<StageView> {
        let seat = crew.seats.get(rank)?;
        let next = crew.seats.get(rank + 1).map(|next| next.node);
        let report = &seat.report;
        Some(StageView {
            node: seat.node,
            parts: seat.parts,
            memory: self.seat_takes(seat.parts).memory,
            ready: seat.ready,
            done: report.done,
            computes: seat.pace(),
            waits: report.waited.0.checked_div(report.done).map(Micros),
            hands_on: report.bytes.checked_div(report.passed),
            travels: report.travelled.0.checked_div(report.passed).map(Micros),
            link: report.links.iter().find(|link| Some(link.with) == next).copied(),
        })
    }
}
