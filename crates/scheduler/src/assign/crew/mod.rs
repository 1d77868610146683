//! Crews: nodes that compute together and depend on each other. Each shows first how fast it is; then the
//! fastest crew is called together, and called anew, in a new epoch, whenever it changes.
//!
//! - [`place`]: who is in it, and who gets which share
//! - [`clock`]: how fast strangers are by the coordinator's clock
//! - [`crews`]: all of them, and when to look at them
//! - [`form`]: auditions, calling the crew together
//! - [`hear`]: what members say
//! - [`mend`]: members that leave, stall, fail or cheat; better crews
//! - [`keep`]: checkpoints and the end
//! - [`prove`]: strangers' rows are computed again
//! - [`proven`]: how far that came
//! - [`poke`]: pokes over the field, and when they count
//! - [`total`]: what members make of all their rows
//! - [`past`]: what happened to it
//! - [`pair`]: two nodes that talk, or give each other blobs

mod clock;
mod crews;
mod form;
mod hear;
mod keep;
mod mend;
mod pair;
mod past;
pub(crate) mod place;
mod poke;
mod prove;
mod proven;
mod total;

pub(crate) use crews::Crews;
pub(crate) use form::GATHER;
pub(crate) use pair::Pairs;
pub use past::CrewEvent;
use prove::{Base, Check};
pub(crate) use proven::unchecked_words;
pub use total::Total;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use shoal_kinds::CrewPlan;
use shoal_protocol::{
    Attempt, CheckpointPart, CrewId, Epoch, JobId, LinkReport, Micros, NodeId, Poke, Span, Time,
    ToNode,
};

use crate::fact::Place;
use crate::job::Job;
use crate::state::{Conn, Scheduler};

/// Crews are looked at this often while there are any.
const LOOK_EVERY: Micros = Micros::from_millis(200);

/// What is durable of a crew.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) epoch: Epoch,
    /// Steps of the last whole checkpoint, and its parts; none if it begins at step 0.
    pub(crate) step: u64,
    pub(crate) parts: Vec<CheckpointPart>,
    /// Pokes for steps from there on.
    pub(crate) pokes: BTreeMap<u64, Poke>,
}

/// A crew that forms or works; dies with the process.
pub(crate) struct Crew {
    /// Whose work it does. A job may have several crews; each has a number of its own.
    pub(crate) job: JobId,
    /// What it has to do, as the job's kind says.
    pub(crate) plan: CrewPlan,
    /// The present one. Numbers of epochs are counted for the job, over all its crews and all lives.
    pub(crate) epoch: Epoch,
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
    pub(crate) arriving: BTreeMap<u64, BTreeMap<u64, CheckpointPart>>,
    pub(crate) finals: BTreeMap<u64, Final>,
    pub(crate) keep_every: u64,
    pub(crate) predicted: Micros,
    pub(crate) alone: Option<Micros>,
    /// Members compute their edges apart.
    pub(crate) apart: bool,
    pub(crate) watched: bool,
    /// Pokes whose step rank 0 has not said yet, or that wait for a crew.
    pub(crate) untimed: VecDeque<Poke>,
    /// How often each member accused another.
    pub(crate) accusers: BTreeMap<NodeId, u32>,
    /// Nodes that vanished before the first step of an epoch.
    pub(crate) victims: Vec<NodeId>,
    /// Nodes whose devices cannot compute it rightly.
    pub(crate) unable: Vec<NodeId>,
    pub(crate) failed_on: Vec<NodeId>,
    pub(crate) failures: u32,
    /// Where what is believed ends, if members computed more, and who computes that again.
    base: Option<Base>,
    check: Option<Check>,
    /// How often rows of strangers were found right.
    right: BTreeMap<NodeId, u32>,
    /// Nodes that could not compute it again.
    no_checkers: BTreeSet<NodeId>,
    /// What the coordinator's clock says of nodes that claimed to be faster.
    clocked: BTreeMap<NodeId, u64>,
    /// The most that its clock has seen strangers do: they are believed some times as much, and no more.
    seen: BTreeMap<NodeId, u64>,
    pub(crate) changes: Vec<CrewChange>,
}

impl Crew {
    fn new(now: Time, job: JobId, plan: CrewPlan, gather: Micros) -> Crew {
        Crew {
            job,
            plan,
            epoch: Epoch(0),
            seats: Vec::new(),
            tries: BTreeMap::new(),
            out: BTreeMap::new(),
            gather,
            since: now,
            began: 0,
            moved: (0, now),
            arriving: BTreeMap::new(),
            finals: BTreeMap::new(),
            keep_every: 0,
            predicted: Micros(0),
            alone: None,
            apart: false,
            watched: false,
            untimed: VecDeque::new(),
            accusers: BTreeMap::new(),
            victims: Vec::new(),
            unable: Vec::new(),
            failed_on: Vec::new(),
            failures: 0,
            base: None,
            check: None,
            right: BTreeMap::new(),
            no_checkers: BTreeSet::new(),
            clocked: BTreeMap::new(),
            seen: BTreeMap::new(),
            changes: Vec::new(),
        }
    }

    /// Part of [`crate::Scheduler::check`]: while it works, every row is one member's.
    fn check(&self) {
        if self.seats.is_empty() || self.is_complete() {
            return;
        }
        let (id, problem) = (self.job, &self.plan.problem);
        let end = self.seats.iter().fold(0, |at, seat| {
            assert_eq!(seat.rows.start, at, "job {id}: rows lost or held twice");
            assert!(seat.rows.len >= problem.least(), "job {id}: a share too small");
            seat.rows.end()
        });
        assert_eq!(end, problem.shares(), "job {id}: rows lost at the end");
    }
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
    /// It has said how fast it is, has compiled everything, and shows it once more, by the coordinator's clock.
    Again {
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrewChange {
    pub at: Time,
    pub epoch: Epoch,
    pub what: CrewEvent,
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

impl Scheduler {
    pub(super) fn next_crew(&mut self) -> CrewId {
        self.numbers.next_crew()
    }

    /// The job whose work a crew does; none for two who talk or share.
    pub fn job_of(&self, crew: CrewId) -> Option<JobId> {
        self.crews.get(&crew).map(|crew| crew.job)
    }

    /// The crew that computes a job's result.
    pub(crate) fn crew_of(&self, job: JobId) -> Option<CrewId> {
        self.jobs.get(&job)?.crews.first().copied()
    }

    pub(super) fn crew_job(&self, crew: CrewId) -> Option<&Job> {
        self.jobs.get(&self.job_of(crew)?)
    }

    pub(super) fn crew_job_mut(&mut self, crew: CrewId) -> Option<&mut Job> {
        self.jobs.get_mut(&self.job_of(crew)?)
    }

    /// The rows of a connected member in the present epoch: who may store its checkpoints and pictures.
    pub fn member(&self, crew: CrewId, epoch: Epoch, conn: Conn) -> Option<(JobId, Span)> {
        let (job, rows, now) = self.seat_of(crew, conn)?;
        (now == epoch).then_some((job, rows))
    }

    /// The same in whatever epoch it is.
    pub fn in_crew(&self, crew: CrewId, conn: Conn) -> Option<(JobId, Span)> {
        self.seat_of(crew, conn).map(|(job, rows, _)| (job, rows))
    }

    fn seat_of(&self, id: CrewId, conn: Conn) -> Option<(JobId, Span, Epoch)> {
        let Some(crew) = self.crews.get(&id) else {
            let (of, rows, epoch) = self.checker_seat(id, conn)?;
            return Some((self.job_of(of)?, rows, epoch));
        };
        let node = self.peers.on(conn)?;
        let seat = crew.seats.iter().find(|seat| seat.node == node)?;
        Some((crew.job, seat.rows, crew.epoch))
    }

    pub(crate) fn watch(&mut self, job: JobId, on: bool) {
        let Some(id) = self.crew_of(job) else { return };
        let Some(crew) = self.crews.get_mut(&id) else { return };
        crew.watched = on;
        self.tell_watched(id);
    }

    pub(crate) fn tell_watched(&mut self, id: CrewId) {
        let Some(crew) = self.crews.get(&id) else { return };
        let say = shoal_protocol::CrewTold::Watch(crew.watched);
        let conns = crew.seats.iter().filter_map(|seat| self.conn_of(seat.node));
        let conns: Vec<_> = conns.collect();
        for conn in conns {
            self.send(conn, ToNode::ToCrew { crew: id, say });
        }
    }

    pub(crate) fn conn_of(&self, node: NodeId) -> Option<Conn> {
        self.peers.get(&node).map(|peer| peer.conn)
    }

    pub(crate) fn view_crew(&self, now: Time, id: CrewId) -> Option<CrewView> {
        let (crew, kept) = (self.crews.get(&id)?, &self.crew_job(id)?.checkpoint);
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
            epoch: crew.epoch,
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
