//! A crew whose messages arrive in any order, by a seed.

use std::sync::Arc;

use shoal_node::collective::*;
use shoal_protocol::{Micros, Time};
use shoal_sim::Random;

pub(crate) const PATIENCE: Micros = Micros::from_secs(2);

pub(crate) struct Crew {
    pub(crate) now: Time,
    pub(crate) groups: Vec<Group>,
    /// From, to, and what.
    pub(crate) on_the_way: Vec<(Rank, Rank, Arc<Vec<u8>>)>,
    /// What each rank got of its operations, in the order they ended.
    pub(crate) done: Vec<Vec<(OpId, Vec<u8>)>>,
    /// Everything else each rank said.
    pub(crate) said: Vec<Vec<GroupOutput>>,
    /// Bytes each rank sent.
    pub(crate) sent: Vec<usize>,
    random: Random,
}

impl Crew {
    pub(crate) fn new(seed: u64, ranks: u8) -> Crew {
        let groups = (0..ranks).map(|rank| Group::new(Rank(rank), ranks, PATIENCE).unwrap());
        Crew {
            now: Time(1_000_000),
            groups: groups.collect(),
            on_the_way: Vec::new(),
            done: vec![Vec::new(); ranks.into()],
            said: vec![Vec::new(); ranks.into()],
            sent: vec![0; ranks.into()],
            random: Random::new(seed),
        }
    }

    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.groups.len() as u8).map(Rank)
    }

    pub(crate) fn give(&mut self, rank: Rank, input: GroupInput) {
        let at = usize::from(rank.0);
        self.groups[at].handle(self.now, input);
        self.groups[at].check();
        while let Some(output) = self.groups[at].poll_output() {
            match output {
                GroupOutput::Send { to, message } => {
                    self.sent[at] += message.len();
                    self.on_the_way.push((rank, to, message));
                }
                GroupOutput::Done { op, data } => self.done[at].push((op, data)),
                GroupOutput::Got { .. }
                | GroupOutput::Refused(_)
                | GroupOutput::Slow { .. }
                | GroupOutput::Hold { .. }
                | GroupOutput::Bad { .. } => self.said[at].push(output),
            }
        }
    }

    pub(crate) fn begin(&mut self, rank: Rank, op: &Op, data: &[u8]) {
        self.give(rank, GroupInput::Begin { op: op.clone(), data: Arc::new(data.to_vec()) });
    }

    /// One message arrives, any of them.
    pub(crate) fn step(&mut self) -> bool {
        if self.on_the_way.is_empty() {
            return false;
        }
        let at = self.chance() as usize % self.on_the_way.len();
        let (from, to, message) = self.on_the_way.swap_remove(at);
        self.give(to, GroupInput::Received { from, message: message.to_vec() });
        true
    }

    pub(crate) fn settle(&mut self) {
        while self.step() {}
    }

    /// All ranks do this with their data, some after others' messages came. What each got.
    pub(crate) fn all(&mut self, op: &Op, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let before: Vec<_> = self.done.iter().map(Vec::len).collect();
        let mut order: Vec<_> = self.ranks().collect();
        while !order.is_empty() {
            let at = self.chance() as usize % order.len();
            let rank = order.swap_remove(at);
            self.begin(rank, op, &data[usize::from(rank.0)]);
            for _ in 0..self.chance() % 4 {
                self.step();
            }
        }
        self.settle();
        for (rank, said) in self.said.iter().enumerate() {
            assert!(said.is_empty(), "rank {rank} said {said:?} about {op:?}");
        }
        let ends = self.done.iter().zip(before);
        ends.map(|(done, before)| {
            assert_eq!(done.len(), before + 1, "{op:?} ends once on every rank");
            done[before].1.clone()
        })
        .collect()
    }

    pub(crate) fn wait(&mut self, micros: Micros) {
        self.now = self.now + micros;
        for rank in self.ranks() {
            self.give(rank, GroupInput::Tick);
        }
    }

    pub(crate) fn chance(&mut self) -> u64 {
        self.random.draw()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.chance() as u8).collect()
    }

    /// Numbers of this many, for each rank: between -8 and 8.
    pub(crate) fn numbers(&mut self, count: usize) -> Vec<Vec<f32>> {
        let ranks = self.groups.len();
        let mut number = |_| (self.chance() % 16_000) as f32 / 1_000.0 - 8.0;
        (0..ranks).map(|_| (0..count).map(&mut number).collect()).collect()
    }
}
