//! What strangers in a crew computed is computed again. Rows of a checkpoint lie at the coordinator; a node of the
//! operator's own, or one that was right often, computes from the last proven checkpoint to a later one, alone, and
//! its rows must be the same bits. Nobody knows beforehand which steps will be looked at, so that every step counts.
//!
//! A stranger is looked at from checkpoint to checkpoint until it was right ten times in this crew, then one time in
//! twenty; what it was right with elsewhere is other work. Where rows differ the crew goes back to the last proven
//! checkpoint. The last rows are merged only after their check. What nobody looked at, because nobody could or
//! because its authors were right so far, the job counts, and says so.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use shoal_protocol::{
    BlobRef, CheckpointPart, CrewId, CrewSay, Epoch, Micros, NodeId, Poke, Span, Time, ToNode,
    Verify,
};

use super::mend::SILENT;
use super::{Checkpoint, Crew, Total, Try};
use crate::fact::Fact;
use crate::peers::Peer;
use crate::state::{Conn, Scheduler};
use crate::verify::{Standing, VETERAN};
use crate::{Output, Rows};

/// Of checkpoints of members that were right often, one in so many is looked at: a check costs as much as what it
/// checks.
const LOOK_ONE_IN: u64 = 20;
/// Of several members nobody knows who lied: none of them has a seat in this crew for so long.
const SUSPECTED_FOR: Micros = Micros::from_secs(600);
/// A checker is waited for so many times as long as it should take, and this much longer.
const SLACK: u64 = 4;
const AT_LEAST: Micros = Micros::from_secs(30);

/// The last checkpoint that is believed, while later ones are not yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Base {
    pub(super) step: u64,
    pub(super) parts: Vec<CheckpointPart>,
    /// All since then.
    pub(super) pokes: BTreeMap<u64, Poke>,
    /// Strangers who computed from here on.
    authors: BTreeSet<NodeId>,
}

/// Somebody computes again.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// The checker's crew of one.
    pub(super) id: CrewId,
    pub(super) epoch: Epoch,
    node: NodeId,
    conn: Conn,
    /// The rows of this step are compared.
    pub(super) to: u64,
    pub(super) rows: Vec<Rows>,
    /// What the base will be if they are the same.
    next: Base,
    authors: BTreeSet<NodeId>,
    heard: Time,
    until: Time,
    /// Its rows are here and looked at.
    made: Option<CheckpointPart>,
    /// What it makes of all rows.
    pub(super) total: Option<Total>,
}

impl Base {
    pub(super) fn new(kept: &Checkpoint) -> Base {
        let Checkpoint { step, parts, pokes, .. } = kept.clone();
        Base { step, parts, pokes, authors: BTreeSet::new() }
    }
}

impl Scheduler {
    /// The crew whose rows that checker computes again.
    pub(super) fn checked_by(&self, id: CrewId) -> Option<(CrewId, &Check)> {
        let checks = self.crews.iter().filter_map(|(of, crew)| Some((*of, crew.check.as_ref()?)));
        checks.into_iter().find(|(_, check)| check.id == id)
    }

    /// Whether a number is a checker's: what it stores is compared, and part of no checkpoint.
    pub fn is_check(&self, crew: CrewId) -> bool {
        self.checked_by(crew).is_some()
    }

    pub(super) fn checker_seat(&self, id: CrewId, conn: Conn) -> Option<(CrewId, Span, Epoch)> {
        let (of, check) = self.checked_by(id)?;
        let all = Span::new(0, self.crews.get(&of)?.plan.problem.shares());
        (check.conn == conn).then_some((of, all, check.epoch))
    }

    /// A checkpoint is whole: `before` is the one before it.
    pub(super) fn stored_whole(&mut self, now: Time, id: CrewId, before: Base) {
        let Some(kept) = self.crew_job(id).map(|job| job.checkpoint.clone()) else { return };
        if !self.is_proving(id) {
            return self.let_go_parts(id, before.parts);
        }
        self.begin_base(id, before);
        let idle = self.crews.get(&id).is_some_and(|crew| crew.check.is_none());
        if idle {
            let rows = kept.parts.iter().map(|part| Rows::Stored(part.blob)).collect();
            self.look_or_believe(now, id, rows, Base::new(&kept));
        }
    }

    /// All rows of the last step are here: merged at once, or after a check.
    pub(super) fn conclude(&mut self, now: Time, id: CrewId) {
        let (Some(crew), Some(known)) = (self.crews.get(&id), self.crew_job(id)) else { return };
        if !crew.is_complete() || crew.check.is_some() {
            return;
        }
        let rows: Option<Vec<_>> =
            crew.finals.values().map(|last| Some(Rows::Result(last.place?))).collect();
        let steps = crew.plan.steps;
        let base = Base::new(&known.checkpoint);
        let Some(rows) = rows.filter(|_| self.is_proving(id)) else {
            return self.merge_finals(now, id);
        };
        self.begin_base(id, base);
        self.look_or_believe(now, id, rows, Base { step: steps, ..Base::default() });
    }

    fn is_proving(&self, id: CrewId) -> bool {
        self.crew_job(id).is_some_and(|job| job.spec.policy.verify != Verify::None)
    }

    /// What is not believed yet begins at that checkpoint, unless it began earlier.
    fn begin_base(&mut self, id: CrewId, before: Base) {
        let Some(crew) = self.crews.get(&id) else { return };
        let strangers = crew.seats.iter().map(|seat| seat.node).filter(|node| !self.is_own(*node));
        let strangers: Vec<_> = strangers.collect();
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let over = match &mut crew.base {
            Some(base) => {
                base.authors.extend(strangers);
                before.parts
            }
            None => {
                let authors = strangers.into_iter().collect();
                crew.base = Some(Base { authors, ..before });
                Vec::new()
            }
        };
        self.let_go_parts(id, over);
    }

    pub(crate) fn is_own(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(|peer| peer.trusted)
    }

    /// Has somebody compute again what was computed since the base, if it must be.
    fn look_or_believe(&mut self, now: Time, id: CrewId, rows: Vec<Rows>, next: Base) {
        let authors = self.crews.get(&id).and_then(|crew| crew.base.as_ref());
        let authors = authors.map(|base| base.authors.clone()).unwrap_or_default();
        let proven = authors.iter().all(|node| self.is_proven(id, *node));
        if authors.is_empty() {
            return self.believe_rows(now, id, &next, None);
        }
        if proven && !self.chance.hits(1, LOOK_ONE_IN) {
            let why = "whoever computed them was right so far, and is looked at now and then";
            return self.believe_rows(now, id, &next, Some(why));
        }
        let Some((node, conn)) = self.checker(now, id, &authors) else {
            return self.believe_rows(now, id, &next, Some("nobody here can compute it again"));
        };
        self.begin_check(now, id, (node, conn), rows, next);
    }

    fn is_proven(&self, id: CrewId, node: NodeId) -> bool {
        let right = self.crews.get(&id).and_then(|crew| crew.right.get(&node));
        right.is_some_and(|right| *right >= VETERAN)
    }

    /// Who computes again, of those whose word counts: one of the operator's own, because liars may have earned trust
    /// with other work and vouch for each other; rather somebody who has no seat; the fastest.
    fn checker(&self, now: Time, id: CrewId, authors: &BTreeSet<NodeId>) -> Option<(NodeId, Conn)> {
        let (crew, job) = (self.crews.get(&id)?, self.crew_job(id)?);
        let lane = job.spec.needs.lane;
        let whole = crew.plan.problem.kept_bytes(Span::new(0, crew.plan.problem.shares()));
        let fits = |peer: &Peer| {
            let believed = match self.standing(peer.node, lane) {
                Standing::Operator | Standing::Veteran => true,
                Standing::Newcomer => false,
            };
            let room = peer.caps.gpu.as_ref().is_some_and(|gpu| gpu.buffer_bytes >= whole);
            let out = crew.out.get(&peer.node).is_some_and(|(until, _)| *until > now);
            let other = !authors.contains(&peer.node) && !crew.no_checkers.contains(&peer.node);
            believed && room && other && !out && peer.links.is_some() && self.may_sit(peer, id)
        };
        let able = crew.tries.iter().filter_map(|(node, tried)| {
            let Try::Fit { rate } = tried else { return None };
            let peer = self.peers.get(node).filter(|peer| fits(peer))?;
            let sits = crew.seats.iter().any(|seat| seat.node == *node);
            Some((!peer.trusted, sits, core::cmp::Reverse(*rate), *node, peer.conn))
        });
        able.min().map(|(_, _, _, node, conn)| (node, conn))
    }

    fn begin_check(
        &mut self,
        now: Time,
        id: CrewId,
        (node, conn): (NodeId, Conn),
        rows: Vec<Rows>,
        next: Base,
    ) {
        // Its first and only one: the number is new.
        let (checker, epoch) = (self.next_crew(), Epoch(1));
        let attempt = self.next_attempt();
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let job = crew.job;
        let Some(base) = &mut crew.base else { return };
        let authors = core::mem::take(&mut base.authors);
        let to = next.step;
        let all = Span::new(0, crew.plan.problem.shares());
        let rate = match crew.tries.get(&node) {
            Some(Try::Fit { rate }) => *rate,
            Some(Try::Asked { .. } | Try::Again { .. } | Try::Unfit { .. }) | None => 1,
        };
        let work = u128::from(crew.plan.problem.work(all)) * u128::from(to - base.step);
        let takes = work * 1_000_000 / u128::from(rate.max(1));
        let takes = u64::try_from(takes).unwrap_or(u64::MAX).saturating_mul(SLACK);
        let until = Time(now.0.saturating_add(takes.saturating_add(AT_LEAST.0)));
        let from = base.clone();
        crew.check = Some(Check {
            id: checker,
            epoch,
            node,
            conn,
            to,
            rows,
            next,
            authors,
            heard: now,
            until,
            made: None,
            total: None,
        });
        self.tell(node, job);
        let order = self.check_order((checker, epoch, node), id, &from, to, attempt);
        if let Some(order) = order {
            self.send(conn, ToNode::Enlist(order));
        }
    }

    /// What the checker says of its work.
    pub(super) fn checker_said(
        &mut self,
        now: Time,
        node: NodeId,
        checker: CrewId,
        epoch: Epoch,
        say: CrewSay,
    ) {
        let Some((id, check)) = self.checked_by(checker) else { return };
        if check.node != node || check.epoch != epoch {
            return;
        }
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let job = crew.job;
        let whole = Span::new(0, crew.plan.problem.shares());
        let size = crew.plan.problem.kept_bytes(whole);
        let Some(check) = &mut crew.check else { return };
        check.heard = now;
        match say {
            CrewSay::Checkpoint { step, part } => {
                let fits = part.rows == whole && part.blob.size == size && step == check.to;
                if !fits || check.made.is_some() {
                    return self.drop_parts(id, [part.blob].into());
                }
                check.made = Some(part);
                let (a, b) = ([Rows::Stored(part.blob)].into(), check.rows.clone());
                self.outputs.push_back(Output::CompareRows { crew: checker, job, a, b });
            }
            CrewSay::Failed { .. } => {
                crew.no_checkers.insert(node);
                self.give_up_check(now, id);
            }
            CrewSay::Progress { .. }
            | CrewSay::Auditioned { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Bad { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Leave
            | CrewSay::Poked { .. }
            | CrewSay::Loaded
            | CrewSay::Staged(_) => {}
            CrewSay::Total { step, numbers } => self.checker_totalled(id, step, numbers),
        }
    }

    /// The shell looked at the rows; `same` is none if it could not.
    pub(crate) fn rows_compared(&mut self, now: Time, checker: CrewId, same: Option<bool>) {
        let Some((id, _)) = self.checked_by(checker) else { return };
        let Some(check) = self.end_check(id) else { return };
        let class = |node: &NodeId| self.register.class(*node);
        let mine = class(&check.node);
        let alike = mine != 0 && check.authors.iter().all(|author| class(author) == mine);
        match same {
            Some(true) => {
                if let Some(crew) = self.crews.get_mut(&id) {
                    for author in &check.authors {
                        *crew.right.entry(*author).or_default() += 1;
                    }
                }
                self.take_total(id, check.total.clone());
                self.believe_rows(now, id, &check.next, None);
            }
            Some(false) if alike => self.go_back(now, id, &check),
            // Other devices round differently, and little differences grow.
            Some(false) => {
                if let Some(crew) = self.crews.get_mut(&id) {
                    crew.no_checkers.insert(check.node);
                }
                let why = "a device of another kind came to other bits, as it may";
                self.believe_rows(now, id, &check.next, Some(why));
            }
            None => self.believe_rows(now, id, &check.next, Some("rows could not be read")),
        }
        self.conclude(now, id);
    }

    /// A checker that is gone, silent or late is not waited for.
    pub(super) fn look_at_check(&mut self, now: Time, id: CrewId) {
        let Some(check) = self.crews.get(&id).and_then(|crew| crew.check.as_ref()) else { return };
        let lost = self.conn_of(check.node) != Some(check.conn);
        let late = now > check.until || now > check.heard + SILENT;
        if check.made.is_some() || !lost && !late {
            return;
        }
        let node = check.node;
        if !lost && let Some(crew) = self.crews.get_mut(&id) {
            crew.no_checkers.insert(node);
        }
        self.give_up_check(now, id);
    }

    /// Somebody else may look at it, or at more at a later checkpoint.
    fn give_up_check(&mut self, now: Time, id: CrewId) {
        let Some(check) = self.end_check(id) else { return };
        let over = check.next.parts.clone();
        let Some(crew) = self.crews.get_mut(&id) else { return };
        if let Some(base) = &mut crew.base {
            base.authors.extend(check.authors);
        }
        self.let_go_parts(id, over);
        self.conclude(now, id);
    }

    /// A new epoch computes the last rows again: a check of the old ones says nothing about them.
    pub(super) fn end_stale_check(&mut self, id: CrewId) {
        let of_results = |check: &Check| check.rows.iter().any(|r| matches!(r, Rows::Result(_)));
        let check = self.crews.get(&id).and_then(|crew| crew.check.as_ref());
        if !check.is_some_and(of_results) {
            return;
        }
        let check = self.end_check(id);
        let base = self.crews.get_mut(&id).and_then(|crew| crew.base.as_mut());
        if let (Some(base), Some(check)) = (base, check) {
            base.authors.extend(check.authors);
        }
    }

    /// The checker's part is over.
    pub(super) fn end_check(&mut self, id: CrewId) -> Option<Check> {
        let check = self.crews.get_mut(&id)?.check.take()?;
        if self.conn_of(check.node) == Some(check.conn) {
            self.send(check.conn, ToNode::Dismiss { crew: check.id });
        }
        let (crew, epoch, members) = (check.id, check.epoch, Vec::new());
        self.outputs.push_back(Output::Route { crew, epoch, members });
        if let Some(made) = check.made {
            self.let_go_parts(id, [made].into());
        }
        Some(check)
    }

    /// What was computed up to there counts; `unsure` says why nobody looked, if it should have been.
    fn believe_rows(&mut self, now: Time, id: CrewId, next: &Base, unsure: Option<&str>) {
        let kept = self.crew_job(id).map_or(0, |job| job.checkpoint.step);
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let steps = crew.plan.steps;
        let Some(base) = crew.base.take() else { return };
        // What came after it waits for its own check.
        if kept > next.step {
            crew.base = Some(Base { authors: base.authors, ..next.clone() });
        }
        let job = crew.job;
        self.note_proven(now, job, (base.step, next.step), unsure);
        self.let_go_parts(id, base.parts);
        if next.step == steps {
            self.merge_finals(now, id);
        }
    }

    /// Rows were wrong: whoever made them goes, and the crew computes them again from where it is sure.
    fn go_back(&mut self, now: Time, id: CrewId, check: &Check) {
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let (Some(base), job) = (crew.base.take(), crew.job) else { return };
        let all = Span::new(0, crew.plan.problem.shares());
        let Some(lane) = self.jobs.get(&job).map(|known| known.spec.needs.lane) else { return };
        let what = format!(
            "node {} computed steps {} to {} again and came to other rows",
            check.node, base.step, check.to
        );
        let sure = self.standing(check.node, lane) == Standing::Operator;
        // Those who went on from wrong rows are at no fault.
        let guilty = check.authors.first().copied().filter(|_| sure && check.authors.len() == 1);
        if let Some(node) = guilty {
            self.introduce(node);
            self.record(Fact::Rejected { job, span: all, node, rounds: false });
            self.apply_rejected(job, node, false);
            self.distrust(now, node);
        }
        let mut out = check.authors.clone();
        out.extend((!sure).then_some(check.node));
        self.mark_time(now);
        let Base { step, parts, pokes, .. } = base;
        self.record(Fact::Checkpoint { job, step, parts: parts.clone() });
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let wrong = core::mem::replace(&mut known.checkpoint.parts, parts);
        let to = core::mem::replace(&mut known.checkpoint.step, step);
        known.checkpoint.pokes = pokes;
        let again = known.checkpoint.pokes.range(..to).map(|(step, poke)| (*step, *poke));
        let again: Vec<_> = again.collect();
        for (step, poke) in again {
            self.record(Fact::Poked { job, step, poke });
        }
        self.forget_total(job);
        self.let_go_parts(id, wrong);
        self.let_go_parts(id, check.next.parts.clone());
        if let Some(crew) = self.crews.get_mut(&id) {
            for node in out {
                crew.out.insert(node, (now + SUSPECTED_FOR, what.clone()));
                crew.right.remove(&node);
            }
        }
        self.disband(now, id, &what);
    }

    fn let_go_parts(&mut self, id: CrewId, parts: Vec<CheckpointPart>) {
        self.drop_parts(id, parts.into_iter().map(|part| part.blob).collect());
    }
}

impl Check {
    /// Parts of the checkpoint it looks at.
    pub(super) fn rows_kept(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.rows.iter().filter_map(|rows| match rows {
            Rows::Stored(blob) => Some(*blob),
            Rows::Result(_) => None,
        })
    }
}

impl Crew {
    /// All rows of the last step are here.
    pub(crate) fn is_complete(&self) -> bool {
        !self.seats.is_empty() && self.finals.len() == self.seats.len()
    }

    /// Blobs that a check needs, or a crew that must go back.
    pub(super) fn unproven(&self) -> Vec<BlobRef> {
        let base = self.base.iter().flat_map(|base| &base.parts).map(|part| part.blob);
        let check = self.check.iter();
        let made = check.clone().flat_map(|check| check.made).map(|made| made.blob);
        base.chain(check.flat_map(Check::rows_kept)).chain(made).collect()
    }

    pub(super) fn poke_since_base(&mut self, step: u64, poke: Poke) {
        let next = self.check.iter_mut().map(|check| &mut check.next);
        for base in self.base.iter_mut().chain(next.filter(|next| next.step <= step)) {
            base.pokes.insert(step, poke);
        }
    }
}
