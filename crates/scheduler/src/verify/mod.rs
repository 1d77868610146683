//! What happens to an answer before it is merged. Most are merged at once; those of new nodes, and of others
//! by chance, wait until other nodes said the same.
//!
//! - [`compare`]: when two answers are the same
//! - [`quorum`]: who said what, and whether that is enough
//! - [`trust`]: whose word weighs how much, and what a wrong answer means
//! - [`alone`]: what to do where nobody else can check
//! - [`dispute`]: whom to believe where nobody is left to decide between answers
//! - [`audit`]: looking again at what is merged
//! - [`told`]: how units were checked, in numbers and words
//! - [`witness`]: whether somebody lied or only rounds differently

mod alone;
mod audit;
mod compare;
mod dispute;
mod quorum;
mod told;
mod trust;
mod witness;

pub use compare::{CompareId, Outcome, Sample, agree, compare};
pub(crate) use quorum::{Answer, Ballot, Rules};
pub use told::Checked;
pub(crate) use told::Proofs;
pub use trust::Trust;
pub(crate) use trust::{Standing, Trusts, VETERAN};

use alloc::format;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_TRIES;
use shoal_protocol::{Failure, JobId, NodeId, Span, Time, Verify};

use crate::Output;
use crate::assign::Rank;
use crate::fact::{Fact, Place};
use crate::job::{Job, Proof};
use crate::loans::Loan;
use crate::peers::Peer;
use crate::state::Scheduler;
use crate::unit::Unit;

impl Scheduler {
    /// A unit's answer is in: merged, or put beside others.
    pub(crate) fn answered(&mut self, now: Time, node: NodeId, loan: &Loan, place: Option<Place>) {
        let Some(job) = self.jobs.get(&loan.job) else { return };
        let (id, start, lane) = (loan.job, loan.unit, loan.lane);
        let (verify, rules) = (job.spec.policy.verify, job.rules());
        if verify == Verify::None {
            self.merge_unit(now, id, loan.span, node, place, None);
            self.finish_if_whole(now, id);
            return;
        }
        let Some(unit) = job.units.get(&start) else { return };
        let (whole, is_first) = (unit.span, unit.ballot.is_none());
        let standing = self.standing(node, lane);
        if is_first && !self.is_checked(node, lane, verify) {
            let vouched = standing == Standing::Operator;
            let proof = Proof { by: Vec::new(), sure: true, vouched };
            self.merge_unit(now, id, whole, node, place, Some(&proof).filter(|_| vouched));
            self.finish_if_whole(now, id);
            return;
        }
        let (Some(job), peer) = (self.jobs.get(&id), self.peers.get(&node)) else { return };
        let answer = Answer {
            node,
            span: loan.span,
            place,
            class: peer.filter(|_| job.spec.work.has_class()).map_or(0, |peer| peer.caps.class),
            weight: rules.weight(standing),
            operator: standing == Standing::Operator,
            rank: peer.map_or(Rank::New, |peer| self.rank(peer, job)),
            network: peer.map_or(0, |peer| peer.network),
            suspect: false,
            whole: loan.span == whole,
            fits: 0,
            near: 0,
            tested: 0,
        };
        self.jobs.put_answer(now, id, start, answer);
        self.judge(now, id, start);
    }

    /// Compares what can be compared, and ends the ballot if it is decided.
    pub(crate) fn judge(&mut self, now: Time, id: JobId, start: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (rules, exact) = (job.rules(), job.spec.policy.tolerance.is_exact());
        let Some(unit) = job.units.get_mut(&start) else { return };
        let Some(ballot) = unit.ballot.as_mut() else { return };
        if ballot.comparing.is_none()
            && let Some((at, group)) = ballot.next_comparison(exact)
        {
            let answer = &ballot.answers[at];
            let first = &ballot.answers[ballot.groups[group]];
            if let (Some(a), Some(b)) = (first.place, answer.place) {
                ballot.comparisons += 1;
                ballot.comparing = Some(ballot.comparisons);
                let id = CompareId { job: id, unit: start, count: ballot.comparisons };
                let (a, b) =
                    (Sample { span: first.span, place: a }, Sample { span: answer.span, place: b });
                let items = answer.span;
                self.outputs.push_back(Output::Compare { id, job: id.job, items, a, b });
            }
        }
        if let Some(winner) = ballot.decided(&rules) {
            if ballot.seeks == 0 && !self.seek_witness(id, start, winner) {
                self.settle(now, id, start, winner);
            } else {
                self.refresh(id, start);
                self.accept_if_alone(now, id, start);
            }
        } else if ballot.is_hopeless(&rules) && !self.leave_to_own(id, start) {
            self.believe_seniors(now, id, start);
        } else {
            self.refresh(id, start);
            self.accept_if_alone(now, id, start);
        }
    }

    /// The shell looked at the bytes.
    pub(crate) fn compared(&mut self, now: Time, id: CompareId, outcome: Outcome) {
        let Some(job) = self.jobs.get_mut(&id.job) else { return };
        let Some(unit) = job.units.get_mut(&id.unit) else { return };
        let Some(ballot) = unit.ballot.as_mut().filter(|b| b.comparing == Some(id.count)) else {
            return;
        };
        ballot.comparing = None;
        let Some(at) = ballot.first_open() else { return };
        match outcome {
            Outcome::Same | Outcome::Near | Outcome::Different => ballot.compared(at, outcome),
            Outcome::Unreadable => {
                let dropped = ballot.drop_answer(at);
                unit.history.tries += 1;
                let tries = unit.history.tries;
                job.part_ends(dropped.node);
                if tries >= MAX_TRIES {
                    self.give_up(now, id.job, id.unit);
                    return;
                }
            }
        }
        self.judge(now, id.job, id.unit);
    }

    /// Enough nodes agree: their answer stands, others were wrong.
    pub(super) fn settle(&mut self, now: Time, id: JobId, start: u64, winner: usize) {
        let Some((span, ballot)) = self.close_ballot(id, start) else { return };
        let first = ballot.first_of(winner);
        let right = |answer: &&Answer| answer.backs() == Some(winner) && !answer.suspect;
        let wrong = ballot.answers.iter().filter(|answer| ballot.is_wrong(answer, winner));
        // Where votes are counted others may outvote the operator's own node, but make nobody a liar by it.
        let own = |answer: &Answer| answer.operator && answer.contradicts(winner);
        let overruled = ballot.answers.iter().any(own);
        let wrong = wrong.filter(|_| !overruled);
        let wrong: Vec<_> = wrong.map(|a| (a.node, ballot.only_rounds(a, winner))).collect();
        let exact = self.spec(id).is_none_or(|spec| spec.policy.tolerance.is_exact());
        let others = ballot.answers.iter().filter(right).filter(|a| a.node != first.node);
        let by = others.map(|answer| answer.node).collect();
        // A look at a part vouches for no more than that part.
        let vouched = ballot.answers.iter().filter(right).any(|a| a.operator && a.whole);
        let proof = Proof { by, sure: true, vouched };
        self.believe(now, id, span, &ballot, winner, Some(&proof));
        for (node, other_class) in wrong {
            let rounds = other_class && !exact;
            self.introduce(node);
            self.record(Fact::Rejected { job: id, span, node, rounds });
            self.apply_rejected(id, node, rounds);
            self.distrust(now, node);
        }
        self.finish_if_whole(now, id);
    }

    /// Merges a ballot's winner, or notes who checked it where it is merged already.
    fn believe(
        &mut self,
        now: Time,
        id: JobId,
        span: Span,
        ballot: &Ballot,
        winner: usize,
        proof: Option<&Proof>,
    ) {
        let first = ballot.first_of(winner);
        if ballot.merged && winner == 0 {
            if let Some(proof) = proof {
                self.confirm(id, span, first.node, proof);
            }
            return;
        }
        if ballot.merged {
            self.record(Fact::Unmerged { job: id, span });
            if let Some(job) = self.jobs.get_mut(&id) {
                job.unmerge(span);
                job.waiting.take(span);
            }
        }
        self.merge_unit(now, id, span, first.node, first.place, proof);
    }

    /// Makes durable who checked a unit.
    pub(crate) fn confirm(&mut self, id: JobId, span: Span, node: NodeId, proof: &Proof) {
        for node in core::iter::once(node).chain(proof.by.iter().copied()) {
            self.introduce(node);
        }
        self.record(Fact::Checked { job: id, span, node, proof: proof.clone() });
        self.apply_checked(id, span, node, proof);
    }

    /// Whether somebody of these, connected now, could have a say about a unit.
    pub(crate) fn has_voter(&self, job: &Job, unit: &Unit, of: impl Fn(&Peer) -> bool) -> bool {
        self.peers.iter().any(|(node, peer)| {
            let here = !peer.paused && !peer.silent && peer.suits(job) && of(peer);
            here && self.may_vote(peer, job) && self.may_take(*node, job, unit)
        })
    }

    /// Whether a node speaks for somebody else than those who have a part in a unit already.
    pub(crate) fn is_apart(&self, node: NodeId, unit: &Unit) -> bool {
        let Some(peer) = self.peers.get(&node) else { return false };
        if peer.trusted || peer.network == 0 {
            return true;
        }
        let copies = unit.copies.iter().filter_map(|copy| self.peers.get(&copy.node));
        let copies = copies.filter(|holder| !holder.trusted).map(|holder| holder.network);
        let answers = unit.ballot.iter().flat_map(|ballot| &ballot.answers);
        let answers = answers.filter(|answer| !answer.operator).map(|answer| answer.network);
        copies.chain(answers).all(|network| network != peer.network)
    }

    /// Whoever has many keys can say many things: where one of the operator's own nodes could decide, it does.
    fn leave_to_own(&mut self, id: JobId, start: u64) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let Some(unit) = job.units.get(&start) else { return false };
        let counted = matches!(job.spec.policy.verify, Verify::Quorum { .. });
        let able = |peer: &Peer| !peer.paused && !peer.silent && peer.suits(job);
        let own = self.peers.own().iter().filter(|node| !unit.answered_by(**node));
        let there = own.filter_map(|node| self.peers.get(node)).any(able) && !counted;
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start));
        if let Some(ballot) = unit.and_then(|unit| unit.ballot.as_mut()) {
            ballot.for_own = there;
        }
        there
    }

    /// Nodes disagree and will not come to agree.
    fn give_up(&mut self, now: Time, id: JobId, start: u64) {
        let Some(unit) = self.jobs.get(&id).and_then(|job| job.units.get(&start)) else { return };
        let nodes: Vec<_> = unit.nodes().collect();
        let message = format!(
            "the answers of {} nodes do not agree: does the program give the same answer twice?",
            nodes.len()
        );
        let span = unit.span;
        self.fail_unit(now, id, span, nodes, Failure::Internal { message });
    }

    /// Ends a unit's ballot and takes its answers out.
    fn close_ballot(&mut self, id: JobId, start: u64) -> Option<(Span, Ballot)> {
        let taken = self.jobs.take_ballot(id, start)?;
        self.close_unit(id, start);
        Some(taken)
    }
}
