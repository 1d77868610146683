//! A service that several nodes keep ready together: ranked members, each with some of its parts in a row. A request
//! goes to the first and from member to member, or all work on it together, and its answer comes from the last. What
//! members keep of a request (a language model's keys and values) follows from the request alone: when one is lost
//! another takes its place in a new epoch, and what was under way is asked again.
//!
//! - [`ask`]: requests that go through it
//! - [`form`]: who is in it, calling it together, ending it
//! - [`hear`]: what members say
//! - [`mend`]: members that leave, stall, fail or cheat
//! - [`placements`]: what other numbers of members would bring
//! - [`recut`]: other parts, fewer members, or one node alone, once they are measured
//! - [`view`]: how people see it

mod ask;
mod form;
mod hear;
mod mend;
mod placements;
mod recut;
mod view;

pub use placements::PlacementView;
pub use view::{SplitView, StageView};

use alloc::vec::Vec;
use shoal_kinds::crew::Flow;
use shoal_kinds::{CrewPlan, CrewProblem, ServiceSpec, Split};
use shoal_protocol::{
    CrewId, Epoch, Footprint, JobId, LinkReport, Micros, NodeId, Span, StageReport, Time,
};

use super::Service;
use crate::state::{Conn, Scheduler};

/// Requests that each member has: one that it computes, and one that arrives meanwhile.
const EACH: usize = 2;

/// A crew that keeps a service ready, or is about to.
pub(in crate::service) struct Crew {
    /// Good for one life of the coordinator: none while its members come back after a start.
    id: Option<CrewId>,
    epoch: Epoch,
    /// By rank.
    seats: Vec<Seat>,
    /// When the epoch began, and when something last went on while requests were at work.
    since: Time,
    moved: Time,
    /// Requests at work.
    pub(in crate::service) calls: usize,
    /// It takes no more of them, because its members are to have other parts.
    drains: bool,
    /// What a request should take by what was known then: the slowest stage or all of them, as the kind says; and on
    /// the fastest node alone, if it fits there.
    predicted: Micros,
    alone: Option<Micros>,
}

/// A member.
struct Seat {
    node: NodeId,
    /// A node that comes back on another one has forgotten its part.
    conn: Option<Conn>,
    parts: Span,
    ready: bool,
    heard: Time,
    /// Requests in a row that it failed by its own fault.
    faults: u32,
    report: StageReport,
}

impl Seat {
    fn new(now: Time, node: NodeId, conn: Option<Conn>, parts: Span) -> Seat {
        let (ready, faults, report) = (false, 0, StageReport::default());
        Seat { node, conn, parts, ready, heard: now, faults, report }
    }

    /// What a request takes it, once one went through.
    fn pace(&self) -> Option<Micros> {
        self.report.computed.0.checked_div(self.report.done).map(Micros)
    }
}

impl Crew {
    /// As facts tell of it: nobody is here yet.
    fn absent(epoch: Epoch, seats: &[(NodeId, Span)]) -> Crew {
        let seat = |(node, parts): &(NodeId, Span)| Seat::new(Time(0), *node, None, *parts);
        Crew {
            id: None,
            epoch,
            seats: seats.iter().map(seat).collect(),
            since: Time(0),
            moved: Time(0),
            calls: 0,
            drains: false,
            predicted: Micros(0),
            alone: None,
        }
    }

    pub(in crate::service) fn is_ready(&self) -> bool {
        self.id.is_some() && self.seats.iter().all(|seat| seat.ready)
    }

    fn seat(&self, node: NodeId) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.node == node)
    }

    fn seat_mut(&mut self, node: NodeId) -> Option<&mut Seat> {
        self.seats.iter_mut().find(|seat| seat.node == node)
    }

    pub(in crate::service) fn has(&self, node: NodeId) -> bool {
        self.seat(node).is_some()
    }

    pub(in crate::service) fn id(&self) -> Option<CrewId> {
        self.id
    }

    /// Who gets requests, and who answers them.
    pub(in crate::service) fn first(&self) -> Option<NodeId> {
        self.seats.first().map(|seat| seat.node)
    }

    pub(in crate::service) fn last(&self) -> Option<NodeId> {
        self.seats.last().map(|seat| seat.node)
    }

    pub(in crate::service) fn len(&self) -> usize {
        self.seats.len()
    }

    pub(in crate::service) fn conns(&self) -> impl Iterator<Item = Conn> {
        self.seats.iter().filter_map(|seat| seat.conn)
    }

    /// By rank.
    pub(in crate::service) fn members(&self) -> impl Iterator<Item = NodeId> {
        self.seats.iter().map(|seat| seat.node)
    }

    pub(in crate::service) fn nodes(&self) -> Vec<NodeId> {
        self.members().collect()
    }

    fn shares(&self) -> Vec<(NodeId, Span)> {
        self.seats.iter().map(|seat| (seat.node, seat.parts)).collect()
    }

    /// How the links between members are, as they measured them.
    fn links(&self) -> impl Iterator<Item = (NodeId, &LinkReport)> {
        self.seats.iter().flat_map(|seat| seat.report.links.iter().map(|link| (seat.node, link)))
    }

    /// A request was answered: whoever failed one before did not fail several in a row.
    fn went_well(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.faults = 0);
    }

    /// Something went on, or begins to.
    pub(in crate::service) fn moves(&mut self, now: Time) {
        self.moved = now;
    }
}

/// What a crew of the service has to do; none if it is not to be split, or cannot be.
pub(in crate::service) fn plan_of(spec: &ServiceSpec) -> Option<CrewPlan> {
    if spec.split == Split::Never {
        return None;
    }
    let plan = spec.work.crew()?;
    plan.problem.flow().is_some().then_some(plan)
}

impl Service {
    /// How many requests go round and round in a crew of it at a time; none if each goes through once.
    fn rounds(&self) -> Option<u16> {
        match self.plan.as_ref()?.problem.flow()? {
            Flow::Once => None,
            Flow::Rounds { calls } => Some(calls),
        }
    }

    /// Whether all members of its crew work on each request together.
    fn is_side_by_side(&self) -> bool {
        let problem = self.plan.as_ref().map(|plan| &plan.problem);
        problem.is_some_and(|problem| match problem {
            CrewProblem::Group(_) => true,
            CrewProblem::Ring(_) | CrewProblem::Chain(_) => false,
        })
    }

    /// Whether one more request keeps the crew's members busy, and does not only wait there.
    pub(in crate::service) fn crew_has_room(&self) -> bool {
        let ready = self.crew.as_ref().filter(|crew| crew.is_ready() && !crew.drains);
        let Some(crew) = ready else { return false };
        crew.calls < self.rounds().map_or(EACH * crew.seats.len(), usize::from)
    }

    /// What these parts take of a node.
    pub(in crate::service) fn seat_takes(&self, parts: Span) -> Footprint {
        let memory = self.plan.as_ref().map_or(0, |plan| plan.problem.held_bytes(parts));
        Footprint { memory, ..self.spec.needs.takes }
    }

    /// What a node's parts take that is in the crew, or about to be.
    pub(in crate::service) fn crew_takes(&self, node: NodeId) -> Option<Footprint> {
        let crew = self.crew.as_ref().filter(|crew| crew.id.is_some())?;
        crew.seat(node).map(|seat| self.seat_takes(seat.parts))
    }
}

impl Scheduler {
    pub(crate) fn apply_crew(&mut self, service: JobId, epoch: Epoch, seats: &[(NodeId, Span)]) {
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.epoch = epoch;
        of.crew = (!seats.is_empty()).then(|| Crew::absent(epoch, seats));
    }

    /// The service that a crew keeps ready.
    pub(crate) fn service_of_crew(&self, crew: CrewId) -> Option<JobId> {
        let mut services = self.services.services.iter();
        let its = |of: &Service| of.crew.as_ref().is_some_and(|known| known.id == Some(crew));
        services.find(|(_, of)| its(of)).map(|(id, _)| *id)
    }

    /// Part of [`Scheduler::check`].
    pub(in crate::service) fn check_crew(&self, of: &Service, calls: usize) {
        let Some(crew) = &of.crew else {
            assert_eq!(calls, 0, "requests at work in no crew");
            return;
        };
        assert_eq!(crew.calls, calls, "requests of a crew counted wrong");
        assert!(calls == 0 || crew.is_ready(), "requests at work in a crew that is not ready");
        let parts = of.plan.as_ref().map_or(0, |plan| plan.problem.shares());
        let end = crew.seats.iter().fold(0, |at, seat| {
            assert!(seat.parts.start == at && seat.parts.len > 0, "parts lost or held twice");
            assert!(!of.replicas.contains_key(&seat.node), "a member that has all of it as well");
            seat.parts.end()
        });
        assert_eq!(end, parts, "parts lost at the end");
        if crew.id.is_some() {
            let here = crew.seats.iter().all(|seat| self.conn_of(seat.node) == seat.conn);
            assert!(here, "a member that is not here");
        }
    }
}
