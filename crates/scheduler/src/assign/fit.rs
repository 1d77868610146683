//! Which job a node works on next, and how much of it.

use shoal_protocol::limit::{LEND_AHEAD, MAX_LEASES_PER_NODE, TARGET_UNIT};
use shoal_protocol::{JobId, JobSpec, Lane, Micros, NodeId, Span, Strategy};

use crate::split::{Progress, even_size, growing_size};
use crate::state::{Again, History, Job, Pace, Peer, Scheduler};

/// How many units a node may be ahead of the slowest in a round-robin job.
const TURNS_AHEAD: u64 = 2;
/// What an unmeasured unit is thought to take, for fairness between jobs.
const FIRST_GUESS: Micros = Micros::from_millis(1);

/// A unit cut for a node, not yet lent.
pub(crate) struct Unit {
    pub(crate) job: JobId,
    pub(crate) lane: Lane,
    pub(crate) span: Span,
    pub(crate) expected: Micros,
    pub(crate) history: History,
}

impl Scheduler {
    /// The next unit for a node, if it has room and there is one.
    pub(crate) fn choose(&mut self, node: NodeId) -> Option<Unit> {
        let peer = self.peers.get(&node)?;
        if peer.paused || peer.silent || peer.loans.len() >= MAX_LEASES_PER_NODE {
            return None;
        }
        let (id, pick, size) = self.ready.iter().find_map(|(_, id)| {
            let job = self.jobs.get(id)?;
            let suits = peer.caps.meets(&job.spec.needs)
                && has_room(peer, *id, &job.spec)
                && (job.spec.strategy != Strategy::RoundRobin || self.is_in_turn(node, job));
            let pick = if suits { self.pick(node, job)? } else { return None };
            Some((*id, pick, self.unit_size(peer, *id, job)))
        })?;
        self.cut(node, id, pick, size)
    }

    /// Where the next unit of a job would come from; prefers units that came back.
    fn pick(&self, node: NodeId, job: &Job) -> Option<Pick> {
        let again = job.again.iter().position(|unit| self.may_retry(node, job, unit));
        match again {
            Some(position) => Some(Pick::Again(position)),
            None if !job.waiting.is_empty() => Some(Pick::Fresh),
            None => None,
        }
    }

    /// A unit goes back to a node it failed on only if nobody else could take it.
    fn may_retry(&self, node: NodeId, job: &Job, unit: &Again) -> bool {
        !unit.history.failed_on.contains(&node)
            || self.able_besides(job, &unit.history.failed_on) == 0
    }

    /// Connected nodes that could compute the job, without these.
    pub(crate) fn able_besides(&self, job: &Job, besides: &[NodeId]) -> usize {
        let able = self.peers.iter().filter(|(node, peer)| {
            !peer.paused && peer.caps.meets(&job.spec.needs) && !besides.contains(node)
        });
        able.count()
    }

    fn cut(&mut self, node: NodeId, id: JobId, pick: Pick, size: u64) -> Option<Unit> {
        let pace = self.peers.get(&node)?.paces.get(&id).copied().unwrap_or_default();
        let job = self.jobs.get_mut(&id)?;
        let (span, history) = match pick {
            Pick::Fresh => (job.waiting.take_front(size)?, History::default()),
            Pick::Again(position) => {
                let mut unit = job.again.remove(position)?;
                if unit.span.len > size {
                    let rest = Span::new(unit.span.start + size, unit.span.len - size);
                    job.again.insert(position, Again { span: rest, history: unit.history.clone() });
                    unit.span.len = size;
                }
                (unit.span, unit.history)
            }
        };
        let expected = expected_time(span.len, pace);
        let lane = job.spec.needs.lane;
        Some(Unit { job: id, lane, span, expected, history })
    }

    fn unit_size(&self, peer: &Peer, id: JobId, job: &Job) -> u64 {
        let spec = &job.spec;
        match spec.strategy {
            Strategy::Adaptive => {
                let pace = peer.paces.get(&id).copied().unwrap_or_default();
                let progress = Progress {
                    milli_rate: pace.milli_rate,
                    last_size: pace.last_size,
                    left: job.left(),
                    total_milli_rate: job.total_milli_rate,
                };
                growing_size(spec.sizing, spec.items, job.size_cap, progress)
            }
            Strategy::RoundRobin => {
                let slots = self.able_slots(job).0;
                even_size(spec.sizing, spec.items, job.size_cap, slots, (1, 1))
            }
            Strategy::Weight => {
                let (slots, weight) = self.able_slots(job);
                let own = u64::from(peer.caps.speed) * slots;
                even_size(spec.sizing, spec.items, job.size_cap, slots, (own, weight))
            }
        }
    }

    /// Slots of all nodes that could compute the job, and their declared speeds together.
    fn able_slots(&self, job: &Job) -> (u64, u64) {
        let able = self.peers.values().filter(|peer| peer.caps.meets(&job.spec.needs));
        able.fold((0, 0), |(slots, weight), peer| {
            let own = u64::from(peer.caps.slots(job.spec.needs.lane));
            (slots + own, weight + own * u64::from(peer.caps.speed))
        })
    }

    fn is_in_turn(&self, node: NodeId, job: &Job) -> bool {
        let taken = |node: &NodeId| {
            let done = job.shares.get(node).map_or(0, |share| share.units);
            let held = job
                .leased
                .iter()
                .filter(|attempt| self.loans.get(attempt).is_some_and(|loan| loan.node == *node));
            done + held.count() as u64
        };
        let able = self
            .peers
            .iter()
            .filter(|(_, peer)| !peer.paused && !peer.silent && peer.caps.meets(&job.spec.needs));
        let least = able.map(|(other, _)| taken(other)).min().unwrap_or(0);
        taken(&node) < least + TURNS_AHEAD
    }
}

enum Pick {
    Again(usize),
    Fresh,
}

/// Enough that every slot computes and the next unit is already there: one unit for each slot and one
/// more, or as many small ones as fill [`LEND_AHEAD`]. Units that may still grow are not lent by the
/// dozen, because all of those would have to be done before the first larger one.
fn has_room(peer: &Peer, job: JobId, spec: &JobSpec) -> bool {
    let lane = spec.needs.lane;
    let slots = usize::from(peer.caps.slots(lane));
    let load = peer.lanes[lane as usize];
    if load.units <= slots {
        return true;
    }
    let Some(pace) = peer.paces.get(&job) else { return false };
    let may_grow = pace.last_size < spec.sizing.most
        && expected_time(pace.last_size, *pace).0 < TARGET_UNIT.0 / 2
        && spec.strategy == Strategy::Adaptive;
    !may_grow && load.expected.0 < LEND_AHEAD.0 * slots as u64
}

fn expected_time(items: u64, pace: Pace) -> Micros {
    if pace.milli_rate == 0 {
        return FIRST_GUESS;
    }
    let micros = u128::from(items) * 1_000_000_000 / u128::from(pace.milli_rate);
    Micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
