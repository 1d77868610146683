//! Whom to believe where answers contradict each other and nobody is left to decide. Whoever makes up keys can
//! contradict for ever: those who have been here longer agree or they do not, and the new ones end no job. Nobody is
//! called wrong by that.

use alloc::vec::Vec;
use shoal_protocol::{JobId, NodeId, Time};

use super::quorum::{Answer, Ballot, Rules};
use crate::assign::Rank;
use crate::job::{Job, Proof};
use crate::peers::Peer;
use crate::state::Scheduler;
use crate::unit::Unit;

/// Whose word is asked for, one after the other: old hands, those who did other units of the job, those who did
/// something once or have been here for a while.
const SENIORS: [Rank; 3] = [Rank::Elder, Rank::Contributor, Rank::Settled];

/// So many who are not new are heard, if they are here, before a job fails because everybody says something else. If
/// they do not agree, it is the program.
const SENIORS_HEARD: usize = 6;

impl Scheduler {
    /// Takes the answer of a ballot that came to no end; nobody is blamed, and nobody earns trust.
    pub(super) fn believe_choice(&mut self, now: Time, id: JobId, start: u64, winner: usize) {
        let Some((span, ballot)) = self.close_ballot(id, start) else { return };
        let first = ballot.first_of(winner).node;
        let by: Vec<NodeId> = ballot.agreeing(winner).filter(|node| *node != first).collect();
        let proof = Proof { vouched: false, sure: false, by };
        let proof = Some(&proof).filter(|proof| !proof.by.is_empty());
        self.believe(now, id, span, &ballot, winner, proof);
        self.finish_if_whole(now, id);
    }

    /// No further voter brings agreement: the job fails, unless most of those who are not new agree, or may yet.
    pub(super) fn believe_seniors(&mut self, now: Time, id: JobId, start: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let Some(unit) = job.units.get(&start) else { return };
        let Some(ballot) = unit.ballot.as_ref() else { return };
        let few = ballot.voices(Rank::Settled).count() < SENIORS_HEARD;
        match ballot.majority_of(Rank::Settled, job.rules().votes) {
            Some(winner) => self.believe_choice(now, id, start, winner),
            None if few && self.awaits_senior(job, unit, ballot) => self.refresh(id, start),
            None => self.give_up(now, id, start),
        }
    }

    /// Whether somebody who is not new computes the unit, or will be asked to.
    fn awaits_senior(&self, job: &Job, unit: &Unit, ballot: &Ballot) -> bool {
        let senior = |peer: &Peer| self.rank(peer, job) >= Rank::Settled;
        let holders = unit.copies.iter().filter(|copy| !copy.late);
        let mut holders = holders.filter_map(|copy| self.peers.get(&copy.node));
        let asked = |peer: &Peer| senior(peer) && self.is_awaited(peer, ballot.since);
        holders.any(senior) || (!ballot.is_full() && self.has_voter(job, unit, asked))
    }
}

impl Ballot {
    /// The answer to believe where there is no majority and nobody else to ask.
    pub(super) fn choice(&self, rules: &Rules, insists: bool) -> Option<usize> {
        let votes = if insists { rules.votes } else { 1 };
        let seniors = || SENIORS.iter().find_map(|rank| self.majority_of(*rank, rules.votes));
        self.undisputed(votes).or_else(seniors)
    }

    /// An answer that all others are near, though some of the same class are not equal to it: a class is what a node
    /// says of itself, and within its tolerance the job takes either.
    fn undisputed(&self, votes: usize) -> Option<usize> {
        (0..self.groups.len()).find(|group| {
            let all = self.voices(Rank::New).all(|answer| !answer.contradicts(*group));
            all && self.agreeing(*group).count() >= votes
        })
    }

    /// What more than half of those say whose word is worth at least so much.
    fn majority_of(&self, rank: Rank, votes: usize) -> Option<usize> {
        let all: u32 = self.voices(rank).map(|answer| answer.weight).sum();
        (0..self.groups.len()).find(|group| {
            let of_group = || self.voices(rank).filter(|a| a.backs() == Some(*group));
            let weight: u32 = of_group().map(|answer| answer.weight).sum();
            of_group().count() >= votes && weight * 2 > all
        })
    }

    fn voices(&self, rank: Rank) -> impl Iterator<Item = &Answer> {
        self.answers.iter().filter(move |answer| !answer.suspect && answer.rank >= rank)
    }

    /// Everybody whose answer is as good as this one.
    fn agreeing(&self, group: usize) -> impl Iterator<Item = NodeId> {
        self.voices(Rank::New).filter(move |answer| answer.fits(group)).map(|answer| answer.node)
    }
}
