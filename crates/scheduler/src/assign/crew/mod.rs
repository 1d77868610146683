//! Crews: nodes that compute together and depend on each other. Each shows first how fast it is; then the
//! fastest crew is called together, and called anew, in a new epoch, whenever it changes.
//!
//! - [`place`]: who is in it, and how the grid is cut
//! - [`form`]: auditions, calling the crew together
//! - [`hear`]: what members say
//! - [`mend`]: members that leave, stall, fail or cheat; better crews
//! - [`keep`]: checkpoints and the end
//! - [`stroke`]: strokes over the field, and when they count
//! - [`past`]: what happened to it
//! - [`pair`]: two nodes whose applications talk

mod form;
mod hear;
mod keep;
mod mend;
mod pair;
mod past;
mod place;
mod stroke;

pub(crate) use form::GATHER;
pub(crate) use pair::Pair;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::{
    Attempt, CrewId, Epoch, JobId, KeptPart, LinkReport, Micros, NodeId, Poke, SimWork, Span, Time,
    ToNode, Work,
};

use crate::fact::Place;
use crate::state::{Conn, Scheduler};

/// Crews are looked at this often while there are any.
const LOOK_EVERY: Micros = Micros::from_millis(200);

/// What is durable of a crew.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub(crate) epoch: Epoch,
    /// Steps of the last whole checkpoint, and its parts; none if it begins at step 0.
    pub(crate) step: u64,
    pub(crate) parts: Vec<KeptPart>,
    /// Strokes for steps from there on.
    pub(crate) strokes: BTreeMap<u64, Poke>,
}

/// A crew that forms or works; dies with the process.
#[derive(Default)]
pub(crate) struct Crew {
    /// By rank; empty while it forms.
    pub(crate) seats: Vec<Seat>,
    pub(crate) tries: BTreeMap<NodeId, Try>,
    /// Nodes that get no seat until then, and why.
    pub(crate) out: BTreeMap<NodeId, (Time, String)>,
    /// How long it waits for others before it is called together.
    pub(crate) gather: Micros,
    /// When the first node was asked, or the epoch began.
    pub(crate) since: Time,
    /// Steps that were done when the epoch began.
    pub(crate) began: u64,
    /// Steps that all have done, and when that last grew.
    pub(crate) moved: (u64, Time),
    /// Parts of checkpoints that are not whole yet.
    pub(crate) arriving: BTreeMap<u64, BTreeMap<u64, KeptPart>>,
    pub(crate) finals: BTreeMap<u64, Final>,
    pub(crate) keep_every: u64,
    pub(crate) predicted: Micros,
    pub(crate) alone: Option<Micros>,
    pub(crate) watched: bool,
    /// Strokes whose step rank 0 has not said yet, or that wait for a crew.
    pub(crate) pokes: VecDeque<Poke>,
    /// How often each member accused another.
    pub(crate) accusers: BTreeMap<NodeId, u32>,
    /// Nodes that vanished before the first step of an epoch.
    pub(crate) victims: Vec<NodeId>,
    /// Nodes whose devices cannot compute it rightly.
    pub(crate) unable: Vec<NodeId>,
    pub(crate) failed_on: Vec<NodeId>,
    pub(crate) failures: u32,
    pub(crate) changes: Vec<CrewChange>,
}

/// A member at work.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) node: NodeId,
    /// A node that comes back on another one has forgotten its part.
    pub(crate) conn: Conn,
    pub(crate) rows: Span,
    pub(crate) attempt: Attempt,
    pub(crate) step: u64,
    pub(crate) computed: Micros,
    pub(crate) waited: Micros,
    pub(crate) guessed: u64,
    pub(crate) corrected: u64,
    pub(crate) heard: Time,
    /// Whom it waits for, and since when it says so.
    pub(crate) waits_for: Option<(NodeId, Time)>,
    pub(crate) links: Vec<LinkReport>,
}

impl Seat {
    fn new(now: Time, (node, conn): (NodeId, Conn), rows: Span, attempt: Attempt) -> Seat {
        Seat {
            node,
            conn,
            rows,
            attempt,
            step: 0,
            computed: Micros(0),
            waited: Micros(0),
            guessed: 0,
            corrected: 0,
            heard: now,
            waits_for: None,
            links: Vec::new(),
        }
    }
}

/// How a node did that was asked to show its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Try {
    Asked {
        at: Time,
    },
    /// Cells per second.
    Fit {
        rate: u64,
    },
    Unfit {
        until: Time,
    },
}

/// A member's rows of the final state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Final {
    pub(crate) rows: Span,
    pub(crate) node: NodeId,
    pub(crate) place: Option<Place>,
}

/// Something that happened to a crew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrewChange {
    pub at: Time,
    pub epoch: Epoch,
    pub what: String,
}

/// A crew as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct CrewView {
    pub epoch: Epoch,
    /// Whether it computes; else it forms or waits for members.
    pub works: bool,
    /// Steps that all members have done.
    pub step: u64,
    /// Steps of the last checkpoint.
    pub kept: u64,
    /// By rank.
    pub members: Vec<MemberView>,
    /// Nodes that could step in.
    pub spares: u64,
    /// What a step should take, and took on average in this epoch.
    pub predicted: Micros,
    pub measured: Option<Micros>,
    /// What it should take on the fastest node alone.
    pub alone: Option<Micros>,
    pub changes: Vec<CrewChange>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MemberView {
    pub node: NodeId,
    pub rows: Span,
    pub step: u64,
    pub computed: Micros,
    pub waited: Micros,
    pub guessed: u64,
    pub corrected: u64,
    pub links: Vec<LinkReport>,
}

/// A simulation's crew has its job's number.
pub(crate) fn crew_of(job: JobId) -> CrewId {
    CrewId(job.0)
}

impl Scheduler {
    /// The rows of a connected member in the present epoch: who may store its checkpoints and pictures.
    pub fn member(&self, crew: CrewId, epoch: Epoch, conn: Conn) -> Option<(JobId, Span)> {
        let (job, seat) = self.seat_of(crew, conn)?;
        let now = self.jobs.get(&job)?.kept.epoch;
        (now == epoch).then_some((job, seat.rows))
    }

    /// The same in whatever epoch it is.
    pub fn in_crew(&self, crew: CrewId, conn: Conn) -> Option<(JobId, Span)> {
        self.seat_of(crew, conn).map(|(job, seat)| (job, seat.rows))
    }

    fn seat_of(&self, crew: CrewId, conn: Conn) -> Option<(JobId, &Seat)> {
        let (job, node) = (JobId(crew.0), self.conns.get(&conn)?);
        let seats = &self.crews.get(&job)?.seats;
        seats.iter().find(|seat| seat.node == *node).map(|seat| (job, seat))
    }

    pub(crate) fn watch(&mut self, job: JobId, on: bool) {
        let Some(crew) = self.crews.get_mut(&job) else { return };
        crew.watched = on;
        self.tell_watched(job);
    }

    pub(crate) fn tell_watched(&mut self, job: JobId) {
        let Some(crew) = self.crews.get(&job) else { return };
        let say = shoal_protocol::CrewTold::Watch(crew.watched);
        let conns = crew.seats.iter().filter_map(|seat| self.conn_of(seat.node));
        let conns: Vec<_> = conns.collect();
        for conn in conns {
            self.send(conn, ToNode::ToCrew { crew: crew_of(job), say });
        }
    }

    pub(crate) fn conn_of(&self, node: NodeId) -> Option<Conn> {
        self.peers.get(&node).map(|peer| peer.conn)
    }

    pub(crate) fn sim(&self, job: JobId) -> Option<&SimWork> {
        match &self.jobs.get(&job)?.spec.work {
            Work::Sim(sim) => Some(sim),
            Work::Noop | Work::Map(_) | Work::Render(_) | Work::Exec(_) => None,
        }
    }

    pub(crate) fn view_crew(&self, now: Time, job: JobId) -> Option<CrewView> {
        let (crew, kept) = (self.crews.get(&job)?, &self.jobs.get(&job)?.kept);
        let members = crew.seats.iter().map(|seat| MemberView {
            node: seat.node,
            rows: seat.rows,
            step: seat.step,
            computed: seat.computed,
            waited: seat.waited,
            guessed: seat.guessed,
            corrected: seat.corrected,
            links: seat.links.clone(),
        });
        let fit = crew.tries.iter().filter(|(node, tried)| {
            let sits = crew.seats.iter().any(|seat| seat.node == **node);
            matches!(tried, Try::Fit { .. }) && !sits && self.peers.contains_key(node)
        });
        let steps = crew.moved.0.saturating_sub(crew.began);
        Some(CrewView {
            epoch: kept.epoch,
            works: !crew.seats.is_empty(),
            step: if crew.seats.is_empty() { kept.step } else { crew.moved.0 },
            kept: kept.step,
            members: members.collect(),
            spares: fit.count() as u64,
            predicted: crew.predicted,
            measured: (now - crew.since).0.checked_div(steps).map(Micros),
            alone: crew.alone,
            changes: crew.changes.clone(),
        })
    }
}
