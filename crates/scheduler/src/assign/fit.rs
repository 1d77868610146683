//! Which job a node works on next, and how much of it.

use alloc::collections::BTreeSet;
use shoal_kinds::JobSpec;
use shoal_protocol::limit::{LEND_AHEAD, MAX_LEASES_PER_NODE, TARGET_UNIT};
use shoal_protocol::{Footprint, JobId, Lane, Micros, NodeId, Span, Strategy, Time, Verify};

use super::conduct::Width;
use crate::job::Job;
use crate::meter::Pace;
use crate::peers::Peer;
use crate::split::{Progress, even_size, growing_size};
use crate::state::Scheduler;
use crate::unit::{History, Unit};
use crate::verify::Standing;

/// What an unmeasured unit is thought to take, for fairness between jobs.
const FIRST_GUESS: Micros = Micros::from_millis(1);

/// Units that want a copy looked at for one node before fresh items are taken: those in front are
/// nearly always open to everybody, and a node must not pay for a long queue of those that are not.
const WANTING_SEEN: usize = 32;

/// Checks that old hands are left to do, for each of them; beyond that new nodes help.
const VOTES_PER_ELDER: usize = 8;
/// Units of one job in flight, with those that wait for a verdict: a few for each node there may be.
const MAX_IN_FLIGHT: usize = 1 << 16;

/// A copy of a unit for a node, not yet lent.
pub(crate) struct Cut {
    pub(crate) job: JobId,
    /// First item of the unit.
    pub(crate) unit: u64,
    pub(crate) span: Span,
    pub(crate) lane: Lane,
    pub(crate) expected: Micros,
    /// Beyond what the unit asks for: another copy is late, or its answer is known.
    pub(crate) extra: bool,
}

impl Scheduler {
    /// The next unit for a node, if it has room and there is one.
    pub(crate) fn choose(&mut self, now: Time, node: NodeId) -> Option<Cut> {
        let peer = self.peers.get(&node)?;
        if !peer.may_work() || peer.loans().len() >= MAX_LEASES_PER_NODE {
            return None;
        }
        // A job whose turn it is and that has nothing here waits until enough is left: later ones do not take it away.
        let mut waits = false;
        let width = self.width(peer);
        let (id, choice) = self.jobs.ready_jobs().find_map(|job| {
            let choice = self.consider(peer, width, job)?;
            if waits && job.spec.needs.takes != Footprint::NOTHING {
                return None;
            }
            if !self.has_means(peer, job) {
                waits |= !self.has_units_of(peer, job.id);
                return None;
            }
            Some((job.id, choice))
        })?;
        self.cut(now, node, id, choice)
    }

    /// What a node would get of a job, if it has room for it.
    fn consider(&self, peer: &Peer, width: Width, job: &Job) -> Option<Choice> {
        let pace = peer.paces.get(&job.id).copied();
        if !peer.suits(job) || !has_room(peer, width, pace, &job.spec) {
            return None;
        }
        let in_turn = match job.spec.strategy {
            Strategy::RoundRobin => !job.waiting.is_empty() && self.is_in_turn(peer.node, job),
            Strategy::Adaptive | Strategy::Weight => true,
        };
        let pick = self.pick(peer, job, in_turn)?;
        let pace = pace.unwrap_or_default();
        Some(Choice { pick, size: unit_size(peer, pace, job), pace })
    }

    fn has_units_of(&self, peer: &Peer, job: JobId) -> bool {
        let mut held = peer.loans().iter().filter_map(|attempt| self.loans.get(attempt));
        held.any(|loan| loan.job == job)
    }

    /// Where the next copy of a job would come from; prefers units in flight that want one. A new node
    /// has a say only where old hands cannot keep up, because its word weighs little.
    fn pick(&self, peer: &Peer, job: &Job, in_turn: bool) -> Option<Pick> {
        let node = peer.node;
        if let Some(start) = self.open_to(node, job, &job.wanting) {
            return Some(Pick::Wanting(start));
        }
        if !job.aside.is_empty()
            && let Some(start) = self.open_to(node, job, &job.aside)
        {
            return Some(Pick::Wanting(start));
        }
        let lane = job.spec.needs.lane;
        let elder = peer.standing(lane) != Standing::Newcomer;
        let urgent = elder || job.votes.len() > self.peers.elders(lane).len() * VOTES_PER_ELDER;
        let fresh = in_turn && !job.waiting.is_empty() && job.units.len() < MAX_IN_FLIGHT;
        if fresh && !urgent {
            return Some(Pick::Fresh);
        }
        let votes = Some(&job.votes).filter(|_| self.may_vote(peer, job));
        let vote = votes.and_then(|votes| self.open_to(node, job, votes)).map(Pick::Vote);
        vote.or_else(|| fresh.then_some(Pick::Fresh))
    }

    fn open_to(&self, node: NodeId, job: &Job, starts: &BTreeSet<u64>) -> Option<u64> {
        let units = starts.iter().take(WANTING_SEEN).filter_map(|start| job.units.get(start));
        let mut open = units.filter(|unit| self.may_take(node, job, unit));
        open.next().map(|unit| unit.span.start)
    }

    /// A node takes part in a unit once, and where answers are checked a network does; what happened to the
    /// unit before may keep it from some.
    pub(crate) fn may_take(&self, node: NodeId, job: &Job, unit: &Unit) -> bool {
        let seeks = unit.ballot.as_ref().map_or(0, |ballot| ballot.seeks);
        let class = || self.peers.get(&node).map(|peer| peer.caps.class);
        let for_own = unit.ballot.as_ref().is_some_and(|ballot| ballot.for_own);
        (seeks == 0 || class() == Some(seeks))
            && (!for_own || self.peers.own().contains(&node))
            && !unit.knows(node)
            && (job.spec.policy.verify == Verify::None || self.is_apart(node, unit))
            && self.may_try(node, job, unit)
    }

    /// Connected nodes that could compute the job, without these.
    pub(crate) fn able_besides(&self, job: &Job, besides: &[NodeId]) -> usize {
        let able = self
            .peers
            .iter()
            .filter(|(node, peer)| !peer.paused && peer.suits(job) && !besides.contains(node));
        able.count()
    }

    fn cut(&mut self, now: Time, node: NodeId, id: JobId, choice: Choice) -> Option<Cut> {
        let Choice { pick, size, pace } = choice;
        let pick = match pick {
            Pick::Fresh => self.known_unit(node, id).map_or(Pick::Fresh, Pick::Known),
            Pick::Wanting(_) | Pick::Vote(_) | Pick::Known(_) => pick,
        };
        if let Pick::Known(start) = pick {
            self.look_again(now, id, start);
        }
        let job = self.jobs.get_mut(&id)?;
        let lane = job.spec.needs.lane;
        let (unit, span) = match pick {
            Pick::Fresh => {
                let span = job.waiting.take_front(size)?;
                job.open_unit(span, History::default());
                (span.start, span)
            }
            Pick::Wanting(start) => {
                job.cut_unit(start, size);
                (start, job.units.get(&start)?.span)
            }
            Pick::Vote(start) => (start, self.sample(id, start)?),
            Pick::Known(start) => (start, job.units.get(&start)?.span),
        };
        let extra = matches!(pick, Pick::Known(_));
        Some(Cut { job: id, unit, span, lane, expected: expected_time(span.len, pace), extra })
    }
}

fn unit_size(peer: &Peer, pace: Pace, job: &Job) -> u64 {
    let spec = &job.spec;
    match spec.strategy {
        Strategy::Adaptive => {
            let progress = Progress {
                milli_rate: pace.milli_rate,
                last_size: pace.last_size,
                left: job.left(),
                total_milli_rate: job.total_milli_rate,
            };
            growing_size(spec.sizing, spec.items, job.size_cap, progress)
        }
        Strategy::RoundRobin => {
            let slots = job.able_slots().0;
            even_size(spec.sizing, spec.items, job.size_cap, slots, (1, 1))
        }
        Strategy::Weight => {
            let (slots, weight) = job.able_slots();
            let own = u64::from(peer.caps.speed) * slots;
            even_size(spec.sizing, spec.items, job.size_cap, slots, (own, weight))
        }
    }
}

/// Enough that every slot computes and the next unit is already there: one unit for each slot and one
/// more, or as many small ones as fill [`LEND_AHEAD`]. Units that may still grow are not lent by the
/// dozen, because all of those would have to be done before the first larger one.
fn has_room(peer: &Peer, width: Width, pace: Option<Pace>, spec: &JobSpec) -> bool {
    let lane = spec.needs.lane;
    let (slots, load) = (width.slots(peer, lane), peer.load(lane));
    if load.units < slots + usize::from(width.ahead) {
        return true;
    }
    let Some(pace) = pace.filter(|_| width.ahead) else { return false };
    let may_grow = pace.last_size < spec.sizing.most
        && expected_time(pace.last_size, pace).0 < TARGET_UNIT.0 / 2
        && spec.strategy == Strategy::Adaptive;
    !may_grow && load.expected.0 < LEND_AHEAD.0 * slots as u64
}

/// What a node would get of a job.
struct Choice {
    pick: Pick,
    /// Items of a unit for it.
    size: u64,
    /// How fast it does the job.
    pace: Pace,
}

enum Pick {
    /// A copy of the unit that starts here.
    Wanting(u64),
    /// The same to confirm or refute an answer.
    Vote(u64),
    /// The same to see whether the node gives the answer that is known.
    Known(u64),
    Fresh,
}

pub(super) fn expected_time(items: u64, pace: Pace) -> Micros {
    if pace.milli_rate == 0 {
        return FIRST_GUESS;
    }
    let micros = u128::from(items) * 1_000_000_000 / u128::from(pace.milli_rate);
    Micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
