//! A connected node. What lists are made of is private: it changes with them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use shoal_protocol::limit::{IDLE_SILENCE, MAX_LEASES_PER_NODE};
use shoal_protocol::{
    Attempt, Caps, Condition, Footprint, Identity, JobId, Lane, LinkKey, Micros, NodeId, PerLane,
    Signature, Time,
};

use crate::assign::Claims;
use crate::job::Job;
use crate::loans::Loan;
use crate::meter::{Meter, Pace};
use crate::state::Conn;
use crate::verify::Standing;

pub(crate) struct Peer {
    pub(crate) node: NodeId,
    pub(crate) identity: Identity,
    pub(crate) conn: Conn,
    pub(crate) caps: Caps,
    /// The operator's own.
    pub(crate) trusted: bool,
    /// Where it connects from, as a number; 0 if nobody knows.
    pub(crate) network: u64,
    /// How much its word weighs and whether it gets no work, for each lane.
    pub(super) standing: PerLane<Standing>,
    pub(super) barred: PerLane<bool>,
    /// What its links are sealed with.
    pub(crate) links: Option<(LinkKey, Signature)>,
    /// It was asked to say that.
    pub(crate) must_link: bool,
    pub(crate) condition: Condition,
    pub(crate) paused: bool,
    /// Jobs whose author the donor does not work for.
    pub(crate) declined: BTreeSet<JobId>,
    pub(crate) round_trip: Option<Micros>,
    /// Said nothing for too long; gets no work until it speaks.
    pub(crate) silent: bool,
    pub(crate) joined: Time,
    pub(crate) heard: Time,
    pub(super) timer: Time,
    /// In which lanes it could compute more than it holds.
    pub(super) hungry: PerLane<bool>,
    loans: BTreeSet<Attempt>,
    /// How many of those are late.
    late: usize,
    /// Gets nothing before, because it did not keep what it took.
    pub(super) rests_until: Option<Time>,
    lanes: PerLane<LaneLoad>,
    pub(crate) told: BTreeSet<JobId>,
    /// Jobs it was told of and seems not to know.
    pub(crate) forgot: BTreeSet<JobId>,
    pub(crate) paces: BTreeMap<JobId, Pace>,
    pub(crate) units_done: u64,
    pub(crate) units_failed: u64,
    /// Microseconds of computing.
    pub(crate) busy: Meter,
    pub(crate) last_job: Option<JobId>,
}

/// What the shell knows of a new connection.
pub(crate) struct Arrival {
    pub(crate) conn: Conn,
    pub(crate) session: String,
    pub(crate) trusted: bool,
    pub(crate) network: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneLoad {
    pub(crate) units: usize,
    /// Of those, how many the node may say it computes.
    running: usize,
    pub(crate) expected: Micros,
    /// What they take.
    pub(crate) claims: Claims,
}

impl Peer {
    pub(crate) fn new(
        now: Time,
        seat: &Arrival,
        (node, identity): (NodeId, Identity),
        caps: Caps,
    ) -> Peer {
        Peer {
            node,
            identity,
            conn: seat.conn,
            caps,
            trusted: seat.trusted,
            network: seat.network,
            standing: PerLane::all(Standing::Newcomer),
            barred: PerLane::default(),
            links: None,
            must_link: false,
            condition: Condition::default(),
            paused: false,
            declined: BTreeSet::new(),
            round_trip: None,
            silent: false,
            joined: now,
            heard: now,
            timer: now + IDLE_SILENCE,
            hungry: PerLane::default(),
            loans: BTreeSet::new(),
            late: 0,
            rests_until: None,
            lanes: PerLane::default(),
            told: BTreeSet::new(),
            forgot: BTreeSet::new(),
            paces: BTreeMap::new(),
            units_done: 0,
            units_failed: 0,
            busy: Meter::default(),
            last_job: None,
        }
    }

    /// Whether it can and may compute a job.
    pub(crate) fn suits(&self, job: &Job) -> bool {
        let needs = &job.spec.needs;
        let may = !self.barred[needs.lane] && !self.declined.contains(&job.id);
        may && !job.is_odd(self.node) && self.caps.meets(needs)
    }

    pub(crate) fn standing(&self, lane: Lane) -> Standing {
        self.standing[lane]
    }

    /// Gets no work of this lane: it was wrong too often.
    pub(crate) fn is_barred(&self, lane: Lane) -> bool {
        self.barred[lane]
    }

    /// Whether it gets units at all for the moment.
    pub(crate) fn may_work(&self) -> bool {
        !self.paused && !self.silent && !self.rests()
    }

    pub(crate) fn rests(&self) -> bool {
        self.rests_until.is_some()
    }

    pub(crate) fn loans(&self) -> &BTreeSet<Attempt> {
        &self.loans
    }

    /// How many of those are late.
    pub(crate) fn late(&self) -> usize {
        self.late
    }

    pub(crate) fn load(&self, lane: Lane) -> &LaneLoad {
        &self.lanes[lane]
    }

    pub(super) fn take(
        &mut self,
        attempt: Attempt,
        lane: Lane,
        takes: Footprint,
        expected: Micros,
    ) {
        self.loans.insert(attempt);
        let load = &mut self.lanes[lane];
        load.units += 1;
        load.claims.add(takes);
        load.expected = Micros(load.expected.0.saturating_add(expected.0));
    }

    /// A loan is over, whatever its outcome.
    pub(crate) fn let_go(&mut self, attempt: Attempt, loan: &Loan) {
        if !self.loans.remove(&attempt) {
            return;
        }
        let load = &mut self.lanes[loan.lane];
        load.units -= 1;
        load.claims.remove(loan.takes);
        load.running -= usize::from(loan.running.is_some());
        self.late -= usize::from(loan.late);
        load.expected = Micros(load.expected.0.saturating_sub(loan.expected.0));
        if self.loans.is_empty() {
            load.expected = Micros(0);
        }
    }

    /// It says that it computes one more of a lane. Nobody computes more at a time than it has slots, whatever it says.
    pub(crate) fn begins(&mut self, lane: Lane) -> bool {
        let load = &mut self.lanes[lane];
        let may = load.running < usize::from(self.caps.slots(lane));
        load.running += usize::from(may);
        may
    }

    /// One more of its loans is late.
    pub(crate) fn falls_behind(&mut self) {
        self.late += 1;
    }

    pub(super) fn check(&self) {
        let node = self.node;
        assert!(self.loans.len() <= MAX_LEASES_PER_NODE, "node {node}: leases");
        assert!(self.late <= self.loans.len(), "node {node}: late");
        let units: usize = self.lanes.values().map(|lane| lane.units).sum();
        assert_eq!(units, self.loans.len(), "node {node}: lanes");
        let running = self.lanes.values().all(|lane| lane.running <= lane.units);
        assert!(running, "node {node} computes what it does not hold");
        let idle = self.loans.is_empty();
        let expected = self.lanes.values().any(|lane| lane.expected != Micros(0));
        assert!(!idle || !expected, "node {node}: load");
    }
}
