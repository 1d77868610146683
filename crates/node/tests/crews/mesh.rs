//! Crews over real links: every pair has one, with its own paths and faults, in one virtual time.

use std::collections::BTreeMap;

use shoal_node::collective::*;
use shoal_node::link::*;
use shoal_protocol::{Micros, Time};
use shoal_sim::Clockwork;

use crate::pair::{Road, World};

struct Mesh {
    now: Time,
    groups: Vec<Group>,
    /// The link of each pair, the lower rank first.
    pairs: BTreeMap<(u8, u8), World>,
    done: Vec<Vec<Vec<u8>>>,
    slow: Vec<Vec<Rank>>,
}

impl Mesh {
    fn new(ranks: u8, patience: Micros, wire: impl Fn(u8, u8) -> Road) -> Mesh {
        let pairs = (0..ranks).flat_map(|one| (one + 1..ranks).map(move |two| (one, two)));
        let pairs = pairs.map(|(one, two)| {
            let seed = u64::from(one) * 100 + u64::from(two);
            ((one, two), World::new(seed, wire(one, two), Road::new(1, 1)))
        });
        let pairs: BTreeMap<_, _> = pairs.collect();
        let now = pairs.values().next().map_or(Time(0), |world| world.clock.now);
        Mesh {
            now,
            groups: (0..ranks).map(|me| Group::new(Rank(me), ranks, patience).unwrap()).collect(),
            pairs,
            done: vec![Vec::new(); ranks.into()],
            slow: vec![Vec::new(); ranks.into()],
        }
    }

    fn give(&mut self, rank: u8, input: GroupInput) {
        let group = &mut self.groups[usize::from(rank)];
        group.handle(self.now, input);
        group.check();
        while let Some(output) = self.groups[usize::from(rank)].poll_output() {
            match output {
                GroupOutput::Send { to, message } => {
                    let (world, end) = pair(&mut self.pairs, rank, to.0);
                    world.clock.now = self.now;
                    world.give(end, LinkInput::Send { channel: 1, message });
                }
                GroupOutput::Done { data, .. } => self.done[usize::from(rank)].push(data),
                GroupOutput::Slow { rank: slow, .. } => self.slow[usize::from(rank)].push(slow),
                GroupOutput::Hold { .. } | GroupOutput::Got { .. } => {}
                GroupOutput::Refused(_) | GroupOutput::Bad { .. } => panic!("{output:?}"),
            }
        }
    }

    fn all(&mut self, op: &Op, data: &[Vec<u8>]) {
        for (rank, data) in (0..).zip(data) {
            self.give(rank, GroupInput::Begin { op: op.clone(), data: data.clone().into() });
        }
    }

    /// The next thing happens, wherever it is.
    fn step(&mut self, end: Time) -> bool {
        let links =
            self.pairs.iter().filter_map(|(pair, world)| Some((world.next()?, Some(*pair))));
        let groups = self.groups.iter().filter_map(Group::next_timeout).map(|due| (due, None));
        let Some((at, pair)) = links.chain(groups).min().filter(|(at, _)| *at <= end) else {
            return false;
        };
        self.now = self.now.max(at);
        let Some((one, two)) = pair else {
            (0..self.groups.len() as u8).for_each(|rank| self.give(rank, GroupInput::Tick));
            return true;
        };
        let world = self.pairs.get_mut(&(one, two)).unwrap();
        world.step(at);
        for (end, (me, peer)) in [(one, two), (two, one)].into_iter().enumerate() {
            let got = std::mem::take(&mut self.pairs.get_mut(&(one, two)).unwrap().got[end]);
            for (_, message) in got {
                self.give(me, GroupInput::Received { from: Rank(peer), message });
            }
        }
        true
    }

    /// Until every rank is done with this many, or the time is over. How long it took.
    fn settle(&mut self, operations: usize, most: Micros) -> Micros {
        let (begun, end) = (self.now, self.now + most);
        while self.done.iter().any(|done| done.len() < operations) && self.step(end) {}
        self.now - begun
    }
}

fn pair(pairs: &mut BTreeMap<(u8, u8), World>, me: u8, peer: u8) -> (&mut World, usize) {
    let world = pairs.get_mut(&(me.min(peer), me.max(peer))).unwrap();
    (world, usize::from(me > peer))
}

fn whole(rank: u8, count: usize) -> Vec<u8> {
    (0..count as i32).flat_map(|at| (at * i32::from(rank + 1)).to_le_bytes()).collect()
}

/// The sum of what [`whole`] gives to this many ranks.
fn sum(ranks: u8, count: usize) -> Vec<u8> {
    let all: i32 = (1..=i32::from(ranks)).sum();
    (0..count as i32).flat_map(|at| (at * all).to_le_bytes()).collect()
}

fn all_reduce(count: usize, how: How) -> Op {
    Op::AllReduce { numbers: Numbers { element: Element::I32, count, fold: Fold::Sum }, how }
}

#[test]
fn over_links_that_lose_and_mix_up_everything_the_sum_is_right() {
    for (ranks, count) in [(2, 10), (3, 100_000), (5, 30_000), (9, 1_000)] {
        for how in [How::Tree, How::Ring, How::Mesh] {
            let wire =
                |one, two| Road::new(2 + u64::from(one), 20_000_000).faulty(50, 50, u64::from(two));
            let mut mesh = Mesh::new(ranks, Micros::from_secs(60), wire);
            let data: Vec<_> = (0..ranks).map(|rank| whole(rank, count)).collect();
            mesh.all(&all_reduce(count, how), &data);
            mesh.all(&Op::Barrier, &vec![vec![]; ranks.into()]);
            mesh.settle(2, Micros::from_secs(60));
            for done in &mesh.done {
                assert_eq!(done.len(), 2, "{how:?} of {ranks}");
                assert!(done.contains(&sum(ranks, count)), "{how:?} of {ranks}");
            }
        }
    }
}

#[test]
fn large_sums_come_near_the_bound_of_the_links() {
    let (ranks, count, rate) = (4u8, 4 << 20, 100_000_000);
    for how in [How::Ring, How::Mesh] {
        let mut mesh = Mesh::new(ranks, Micros::from_secs(60), |_, _| Road::new(1, rate));
        while mesh.step(Time(1_200_000)) {}
        let data: Vec<_> = (0..ranks).map(|rank| whole(rank, count)).collect();
        let begun = mesh.now;
        mesh.all(&all_reduce(count, how), &data);
        mesh.settle(1, Micros::from_secs(10));
        let took = (mesh.now - begun).0;
        assert!(mesh.done.iter().all(|done| *done == [sum(ranks, count)]));
        // Each byte crosses a neighbour's link twice, but for a share of 1/ranks.
        let bytes = 2 * (u64::from(ranks) - 1) * 4 * count as u64 / u64::from(ranks);
        let bound = bytes * 1_000_000 / rate;
        assert!(how == How::Mesh || bound * 100 / took >= 80, "{how:?}: {took} for {bound}");
        assert!(how == How::Ring || took < bound, "all links carry at once: {took} for {bound}");
    }
}

#[test]
fn a_member_behind_a_dead_link_is_named_by_its_neighbour() {
    let mut mesh = Mesh::new(4, Micros::from_secs(3), |_, _| Road::new(5, 10_000_000));
    for peer in [0, 1, 3] {
        pair(&mut mesh.pairs, 2, peer).0.relay.dead = true;
    }
    let data: Vec<_> = (0..4).map(|rank| whole(rank, 1_000)).collect();
    mesh.all(&all_reduce(1_000, How::Ring), &data);
    mesh.settle(1, Micros::from_secs(10));
    assert!(mesh.done.iter().all(Vec::is_empty));
    assert_eq!(mesh.slow[3], [Rank(2)], "rank 3 hears rank 2 on the ring");
    let stalled = |said: &LinkOutput| matches!(said, LinkOutput::Stalled { .. });
    assert!(pair(&mut mesh.pairs, 1, 2).0.said[0].iter().any(stalled), "its link says so too");
}

#[test]
fn a_relay_restarted_in_the_middle_changes_nothing() {
    let mut mesh = Mesh::new(5, Micros::from_secs(60), |_, _| Road::new(5, 10_000_000));
    let count = 200_000;
    let data: Vec<_> = (0..5).map(|rank| whole(rank, count)).collect();
    mesh.all(&all_reduce(count, How::Ring), &data);
    for _ in 0..4 {
        mesh.settle(1, Micros::from_millis(30));
        for world in mesh.pairs.values_mut() {
            world.clock.now = mesh.now;
            world.down(Path::Relay);
            world.up(Path::Relay);
        }
    }
    mesh.settle(1, Micros::from_secs(10));
    assert!(mesh.done.iter().all(|done| *done == [sum(5, count)]));
}
