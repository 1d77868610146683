//! Machines, a network between them and a coordinator that calls crews together, in virtual time, by a seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_node::SimAnswer;
use shoal_protocol::{
    Attempt, CrewId, CrewSay, CrewTask, CrewTold, Enlist, Epoch, Hasher, JobId, KeptPart, Micros,
    NodeId, Poke, SimTask, Span, Time, UnitOutput,
};

use crate::engine::{Engine, Store};
use crate::grid::Grid;
use crate::party::{Does, Given, Party};

pub(crate) const CREW: CrewId = CrewId(7);
/// Virtual time in which every story here ends.
const LONGEST: Micros = Micros::from_secs(600);

/// How messages pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Micros,
    pub(crate) jitter: Micros,
    pub(crate) lost_per_mille: u64,
    pub(crate) doubled_per_mille: u64,
}

pub(crate) const CALM: Wire =
    Wire { delay: Micros(2_000), jitter: Micros(0), lost_per_mille: 0, doubled_per_mille: 0 };
pub(crate) const ROUGH: Wire =
    Wire { delay: Micros(5_000), jitter: Micros(9_000), lost_per_mille: 60, doubled_per_mille: 30 };

/// What a lost message costs where the network itself says it again.
const SAID_AGAIN: Micros = Micros::from_millis(150);

pub(crate) struct Machine<P> {
    pub(crate) party: P,
    pub(crate) engine: Engine,
    /// Nothing goes in or out, and nobody is told.
    pub(crate) cut_off: bool,
}

enum Event {
    Net { from: NodeId, to: NodeId, life: u64, bytes: Arc<Vec<u8>> },
    Answer { to: NodeId, answer: SimAnswer },
    Enlist { to: NodeId, enlist: Box<Enlist> },
}

pub(crate) struct World<P> {
    pub(crate) now: Time,
    pub(crate) grid: Grid,
    pub(crate) keep_every: u64,
    pub(crate) speculate: bool,
    pub(crate) wire: Wire,
    pub(crate) machines: BTreeMap<NodeId, Machine<P>>,
    pub(crate) epoch: Epoch,
    /// Of the present epoch.
    pub(crate) members: Vec<NodeId>,
    pub(crate) says: Vec<(NodeId, Epoch, CrewSay)>,
    kept: BTreeMap<(Epoch, u64), Vec<KeptPart>>,
    attempts: BTreeMap<Attempt, Span>,
    /// Rows handed in, by the first.
    pub(crate) results: BTreeMap<u64, Vec<u8>>,
    store: Store,
    /// Lives of the relay; what was on the way in an older one is lost.
    pub(crate) relay: u64,
    events: BTreeMap<(Time, u64), Event>,
    last: BTreeMap<(NodeId, NodeId), Time>,
    count: u64,
    random: u64,
    pub(crate) trace: Hasher,
}

impl<P: Party> World<P> {
    /// Machines 1, 2, ... of about 4 ms a step.
    pub(crate) fn new(seed: u64, grid: Grid, machines: u64, wire: Wire) -> World<P> {
        let now = Time(1_000_000);
        let machine = |node: u64| {
            let engine = Engine::new(grid, Micros(3_000 + node * 500));
            let party = P::new(now, NodeId(node), grid.work());
            (NodeId(node), Machine { party, engine, cut_off: false })
        };
        World {
            now,
            grid,
            keep_every: 0,
            speculate: false,
            wire,
            machines: (1..=machines).map(machine).collect(),
            epoch: Epoch(0),
            members: Vec::new(),
            says: Vec::new(),
            kept: BTreeMap::new(),
            attempts: BTreeMap::new(),
            results: BTreeMap::new(),
            store: Store::new(),
            relay: 0,
            events: BTreeMap::new(),
            last: BTreeMap::new(),
            count: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            trace: Hasher::new(),
        }
    }

    /// A new epoch with these members and so many rows for each, from the last complete checkpoint on.
    pub(crate) fn form(&mut self, bands: &[(u64, u64)]) {
        self.epoch.0 += 1;
        self.members = bands.iter().map(|(node, _)| NodeId(*node)).collect();
        let spans = bands.iter().scan(0, |next, (_, rows)| {
            *next += rows;
            Some(Span::new(*next - rows, *rows))
        });
        let spans: Vec<_> = spans.collect();
        let height = u64::from(self.grid.height);
        let whole =
            |parts: &[KeptPart]| parts.iter().map(|part| part.rows.len).sum::<u64>() == height;
        let complete = self.kept.iter().filter(|(_, parts)| whole(parts));
        let newest = complete.max_by_key(|((_, step), _)| *step);
        let (from, kept) = newest.map_or((0, vec![]), |((_, step), parts)| (*step, parts.clone()));
        (self.attempts, self.results) = Default::default();
        for (rank, (node, rows)) in self.members.clone().into_iter().zip(&spans).enumerate() {
            let attempt = Attempt::new(self.epoch.0, rank as u32);
            self.attempts.insert(attempt, *rows);
            let (bands, kept, speculate) = (spans.clone(), kept.clone(), self.speculate);
            let (job, keep_every) = (JobId(1), self.keep_every);
            let task = SimTask { job, bands, from, kept, keep_every, attempt, speculate };
            let enlist = Box::new(Enlist {
                crew: CREW,
                epoch: self.epoch,
                rank: rank as u8,
                members: self.members.iter().map(|node| P::card(*node)).collect(),
                token: P::token(node, self.epoch),
                ice: Vec::new(),
                task: CrewTask::Sim(task),
            });
            let at = self.now + Micros(self.chance() % 40_000);
            self.at(at, Event::Enlist { to: node, enlist });
        }
    }

    /// As many members as there are machines, rows as even as can be.
    pub(crate) fn form_all(&mut self) {
        let (height, count) = (u64::from(self.grid.height), self.machines.len() as u64);
        let nodes: Vec<_> = self.machines.keys().map(|node| node.0).collect();
        let share = |at: u64| height * (at + 1) / count - height * at / count;
        let bands: Vec<_> = (0..).zip(nodes).map(|(at, node)| (node, share(at))).collect();
        self.form(&bands);
    }

    pub(crate) fn kill(&mut self, node: u64) {
        self.machines.remove(&NodeId(node));
    }

    pub(crate) fn machine(&mut self, node: u64) -> &mut Machine<P> {
        self.machines.get_mut(&NodeId(node)).unwrap()
    }

    /// Stirs the field: rank 0 is told.
    pub(crate) fn poke(&mut self, poke: Poke) {
        self.give(self.members[0], Given::Told(CrewTold::Poke(poke)));
    }

    /// The relay dies, with all that is on the way, and is there again.
    pub(crate) fn restart_relay(&mut self) {
        self.relay += 1;
        for up in [false, true] {
            for node in self.machines.keys().copied().collect::<Vec<_>>() {
                self.give(node, Given::Relay(up));
            }
        }
    }

    pub(crate) fn give(&mut self, node: NodeId, given: Given<'_>) {
        let Some(machine) = self.machines.get_mut(&node) else { return };
        machine.party.give(self.now, given);
        machine.party.check();
        while let Some(does) = self.machines.get_mut(&node).and_then(|at| at.party.poll()) {
            self.trace.update(format!("{node} {does:?}").as_bytes());
            match does {
                Does::Net { to, bytes } => self.carry(node, to, bytes),
                Does::Command(command) => {
                    let machine = self.machines.get_mut(&node).unwrap();
                    let answer = machine.engine.take(self.now, &mut self.store, command);
                    if let Some((at, answer)) = answer {
                        self.at(at, Event::Answer { to: node, answer });
                    }
                }
                Does::Says { epoch, say } => self.hear(node, epoch, say),
                Does::Deliver { attempt, output } => {
                    let UnitOutput::Inline(bytes) = output else { panic!("not inline") };
                    if let Some(rows) = self.attempts.remove(&attempt) {
                        self.results.insert(rows.start, bytes);
                    }
                }
            }
        }
    }

    fn hear(&mut self, node: NodeId, epoch: Epoch, say: CrewSay) {
        if let CrewSay::Kept { step, part } = &say {
            let parts = self.kept.entry((epoch, *step)).or_default();
            parts.push(*part);
            parts.sort_by_key(|part| part.rows);
        }
        self.says.push((node, epoch, say));
    }

    pub(crate) fn carry(&mut self, from: NodeId, to: NodeId, bytes: Arc<Vec<u8>>) {
        let Wire { delay, jitter, lost_per_mille, doubled_per_mille } = self.wire;
        let lost = self.chance() % 1_000 < lost_per_mille;
        let doubled = self.chance() % 1_000 < doubled_per_mille;
        let late = |world: &mut World<P>| Micros(delay.0 + world.chance() % (jitter.0 + 1));
        let (first, second) = (late(self), late(self));
        let life = self.relay;
        let send = |world: &mut World<P>, late: Micros| {
            let bytes = bytes.clone();
            let mut at = world.now + late;
            if P::NEEDS_ORDER {
                let last = world.last.entry((from, to)).or_insert(at);
                at = at.max(*last);
                *last = at;
            }
            world.at(at, Event::Net { from, to, life, bytes });
        };
        match (P::NEEDS_ORDER, lost, doubled) {
            (true, true, _) => send(self, Micros(first.0 + SAID_AGAIN.0)),
            (false, true, _) => {}
            (false, false, true) => {
                send(self, first);
                send(self, second);
            }
            (true, false, _) | (false, false, false) => send(self, first),
        }
    }

    fn at(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// Lets this much time pass.
    pub(crate) fn run(&mut self, millis: u64) {
        let end = self.now + Micros::from_millis(millis);
        while self.step(end) {}
        self.now = end;
    }

    /// Until all rows are handed in: those rows.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let end = self.now + LONGEST;
        while !self.attempts.is_empty() {
            assert!(self.step(end), "no end in sight at {:?}: {:?}", self.now, self.says.last());
        }
        self.results.values().flatten().copied().collect()
    }

    pub(crate) fn step(&mut self, end: Time) -> bool {
        let timers = self.machines.iter().filter_map(|(node, machine)| {
            Some((machine.party.next_timeout()?.max(self.now), Some(*node)))
        });
        let event = self.events.first_key_value().map(|((at, _), _)| (*at, None));
        let Some((at, timer)) = timers.chain(event).min().filter(|(at, _)| *at <= end) else {
            return false;
        };
        self.now = at;
        self.trace.update(&at.0.to_le_bytes());
        if let Some(node) = timer {
            self.give(node, Given::Tick);
            return true;
        }
        match self.events.pop_first() {
            Some((_, Event::Net { from, to, life, bytes })) => {
                let cut = |node: &NodeId| self.machines.get(node).is_none_or(|one| one.cut_off);
                if !cut(&from) && !cut(&to) && (P::NEEDS_ORDER || life == self.relay) {
                    self.give(to, Given::Net { from, bytes: &bytes });
                }
            }
            Some((_, Event::Answer { to, answer })) => self.give(to, Given::Answer(answer)),
            Some((_, Event::Enlist { to, enlist })) => self.give(to, Given::Enlist(*enlist)),
            None => {}
        }
        true
    }

    pub(crate) fn chance(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }
}
