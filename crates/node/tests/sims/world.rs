//! Machines, a network between them and a coordinator that calls crews together, by a seed.

use std::collections::BTreeMap;

use shoal_node::SimCommand;
use shoal_protocol::{
    Attempt, CheckpointPart, CrewId, CrewSay, CrewTask, CrewTold, Enlist, Epoch, JobId, Micros,
    NodeId, Poke, SimTask, Span, Time, UnitOutput,
};
use shoal_sim::{Clock, Clockwork, Wire};

use crate::engine::{Engine, Store};
use crate::grid::Grid;
use crate::party::{Does, Given, Party};
use crate::wires::Event;

pub(crate) const CREW: CrewId = CrewId(7);
/// Milliseconds of virtual time in which every story here ends.
const LONGEST: u64 = 600_000;

pub(crate) struct Machine<P> {
    pub(crate) party: P,
    pub(crate) engine: Engine,
    /// Nothing goes in or out, and nobody is told.
    pub(crate) cut_off: bool,
}

pub(crate) struct World<P> {
    seed: u64,
    pub(crate) clock: Clock<Event>,
    pub(crate) grid: Grid,
    pub(crate) keep_every: u64,
    pub(crate) speculate: bool,
    pub(crate) wire: Wire,
    pub(crate) machines: BTreeMap<NodeId, Machine<P>>,
    pub(crate) epoch: Epoch,
    /// Of the present epoch.
    pub(crate) members: Vec<NodeId>,
    pub(crate) says: Vec<(NodeId, Epoch, CrewSay)>,
    kept: BTreeMap<(Epoch, u64), Vec<CheckpointPart>>,
    attempts: BTreeMap<Attempt, Span>,
    /// Rows handed in, by the first.
    pub(crate) results: BTreeMap<u64, Vec<u8>>,
    store: Store,
    /// The poke of each step that was made, in this epoch and before the checkpoint it began with.
    computed: BTreeMap<u64, Option<Poke>>,
    /// Pokes that rank 0 said the step of, in this epoch and before the checkpoint it began with.
    pub(crate) pokes: BTreeMap<u64, Poke>,
    /// Lives of the relay; what was on the way in an older one is lost.
    pub(crate) relay: u64,
    /// Machines' radios can find each other, and those channels that are open, by the time they were.
    pub(crate) radios: bool,
    pub(crate) direct: BTreeMap<(NodeId, NodeId), u64>,
    /// Who is enlisted for talk, and what applications and common operations brought.
    pub(crate) talkers: Vec<u64>,
    pub(crate) heard: BTreeMap<NodeId, Vec<(u16, Vec<u8>)>>,
    pub(crate) done: BTreeMap<NodeId, Vec<Vec<u8>>>,
    pub(crate) last: BTreeMap<(NodeId, NodeId), Time>,
}

impl<P: Party> World<P> {
    /// Machines 1, 2, ... of about 4 ms a step.
    pub(crate) fn new(seed: u64, grid: Grid, machines: u64, wire: Wire) -> World<P> {
        let mut world = World {
            seed,
            clock: Clock::new(seed),
            grid,
            keep_every: 0,
            speculate: false,
            wire,
            machines: BTreeMap::new(),
            epoch: Epoch(0),
            members: Vec::new(),
            says: Vec::new(),
            kept: BTreeMap::new(),
            attempts: BTreeMap::new(),
            results: BTreeMap::new(),
            store: Store::new(),
            computed: BTreeMap::new(),
            pokes: BTreeMap::new(),
            relay: 0,
            radios: false,
            direct: BTreeMap::new(),
            talkers: Vec::new(),
            heard: BTreeMap::new(),
            done: BTreeMap::new(),
            last: BTreeMap::new(),
        };
        (1..=machines).for_each(|node| world.add(node));
        world
    }

    pub(crate) fn add(&mut self, node: u64) {
        let engine = Engine::new(self.grid, Micros(3_000 + node * 500));
        let party = P::new(self.clock.now, NodeId(node), self.grid.work());
        self.machines.insert(NodeId(node), Machine { party, engine, cut_off: false });
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
        let whole = |parts: &[CheckpointPart]| {
            parts.iter().map(|part| part.rows.len).sum::<u64>() == height
        };
        let complete = self.kept.iter().filter(|(_, parts)| whole(parts));
        let newest = complete.max_by_key(|((_, step), _)| *step);
        let (from, kept) = newest.map_or((0, vec![]), |((_, step), parts)| (*step, parts.clone()));
        (self.attempts, self.results) = Default::default();
        self.computed.retain(|step, _| *step < from);
        for (rank, (node, rows)) in self.members.clone().into_iter().zip(&spans).enumerate() {
            let attempt = Attempt::new(self.epoch.0, rank as u32);
            self.attempts.insert(attempt, *rows);
            let (bands, kept, speculate) = (spans.clone(), kept.clone(), self.speculate);
            let (job, keep_every) = (JobId(1), self.keep_every);
            let pokes = self.pokes.range(from..).map(|(step, poke)| (*step, *poke)).collect();
            let task = SimTask {
                job,
                bands,
                from,
                kept,
                keep_every,
                attempt,
                speculate,
                pokes,
                check: None,
                apart: false,
            };
            let talks = self.talkers.contains(&node.0);
            let enlist = Box::new(Enlist {
                crew: CREW,
                epoch: self.epoch,
                rank: rank as u8,
                members: self.members.iter().map(|node| P::card(*node)).collect(),
                token: P::token(node, self.epoch),
                ice: Vec::new(),
                task: if talks { CrewTask::Talk } else { CrewTask::Sim(task) },
            });
            let late = Micros(self.chance() % 40_000);
            self.clock.after(late, Event::Enlist { to: node, enlist });
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

    pub(crate) fn give(&mut self, node: NodeId, given: Given<'_>) {
        let Some(machine) = self.machines.get_mut(&node) else { return };
        machine.party.give(self.clock.now, given);
        machine.party.check();
        while let Some(does) = self.machines.get_mut(&node).and_then(|at| at.party.poll()) {
            match &does {
                Does::Net { bytes, .. } | Does::Direct { bytes, .. } => {
                    self.clock.trace.update(bytes)
                }
                other => self.clock.trace.update(format!("{node} {other:?}").as_bytes()),
            }
            match does {
                Does::Net { to, bytes } => self.carry(node, to, bytes),
                Does::Direct { to, bytes } => self.carry_direct(node, to, bytes),
                Does::Dial(peer) => self.dial(node, peer),
                Does::Called(peer) => self.called(node, peer),
                Does::App { channel, bytes } => {
                    self.heard.entry(node).or_default().push((channel, bytes));
                }
                Does::Done(data) => self.done.entry(node).or_default().push(data),
                Does::Command(command) => {
                    self.note_poke(&command);
                    let machine = self.machines.get_mut(&node).unwrap();
                    for (at, answer) in
                        machine.engine.take(self.clock.now, &mut self.store, command)
                    {
                        self.clock.events.at(at, Event::Answer { to: node, answer });
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

    fn note_poke(&mut self, command: &SimCommand) {
        if let SimCommand::Step { epoch, step, poke, .. } = command
            && *epoch == self.epoch
        {
            let known = self.computed.entry(*step).or_insert(*poke);
            assert_eq!(known, poke, "members do not agree on the poke of step {step}");
        }
    }

    /// By step.
    pub(crate) fn poked(&self) -> BTreeMap<u64, Poke> {
        self.computed.iter().filter_map(|(step, poke)| Some((*step, (*poke)?))).collect()
    }

    fn hear(&mut self, node: NodeId, epoch: Epoch, say: CrewSay) {
        if let CrewSay::Checkpoint { step, part } = &say
            && epoch == self.epoch
        {
            let parts = self.kept.entry((epoch, *step)).or_default();
            parts.push(*part);
            parts.sort_by_key(|part| part.rows);
        }
        if let CrewSay::Poked { step: Some(step), poke } = say
            && epoch == self.epoch
        {
            assert_eq!(node, self.members[0], "only rank 0 chooses steps");
            assert!(self.pokes.insert(step, poke).is_none(), "two pokes for step {step}");
        }
        self.says.push((node, epoch, say));
    }

    /// Until all rows are handed in: those rows.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.run_while(LONGEST, |world| !world.attempts.is_empty());
        let (seed, last) = (self.seed, self.says.last());
        assert!(self.attempts.is_empty(), "seed {seed}: no end in sight; last was said {last:?}");
        self.results.values().flatten().copied().collect()
    }
}
