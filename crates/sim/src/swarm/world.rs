//! Events in virtual time between a coordinator and devices that all need one blob.

use std::collections::BTreeMap;

use shoal_node::ShareInput;
use shoal_protocol::limit::PIECE_BYTES;
use shoal_protocol::share::piece_span;
use shoal_protocol::{BlobRef, FromNode, Hash, Micros, NodeId, Time, ToNode, hash};
use shoal_scheduler::{Conn, Input, Output, Scheduler};

use super::device::Device;
use super::{SwarmPlan, SwarmReport};
use crate::random::Random;

/// Virtual time after which somebody waits in vain.
const PATIENCE: u64 = 3_600_000_000;

pub(super) enum Event {
    /// A device starts, for the first time or again.
    Start(usize),
    Wake(usize),
    ToNode(Conn, ToNode),
    FromNode(Conn, FromNode),
    Words {
        to: usize,
        birth: u32,
        from: NodeId,
        words: Vec<u8>,
    },
    Fetched {
        device: usize,
        birth: u32,
        piece: u32,
    },
    Near {
        device: usize,
        birth: u32,
        node: NodeId,
        near: bool,
    },
    Gone(Conn),
    /// A device says the next of so many words that cost it nothing.
    Flood {
        device: usize,
        birth: u32,
        word: u64,
    },
    Timer,
    Fault,
    Restart,
}

pub(super) struct World {
    pub(super) plan: SwarmPlan,
    pub(super) random: Random,
    pub(super) now: Time,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    pub(super) scheduler: Option<Scheduler>,
    pub(super) devices: Vec<Device>,
    pub(super) conns: BTreeMap<Conn, usize>,
    pub(super) next_conn: u64,
    /// Keeps the order of what a socket carries.
    carried: BTreeMap<(Conn, bool), Time>,
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) blob: BlobRef,
    pub(super) hashes: Vec<Hash>,
    /// Until when the coordinator's line is busy.
    pub(super) busy: Time,
    pub(super) timer: Option<Time>,
    pub(super) report: SwarmReport,
}

impl World {
    pub(super) fn new(plan: SwarmPlan, mut random: Random) -> World {
        let size = u64::from(plan.pieces) * PIECE_BYTES - random.range(0, PIECE_BYTES);
        let mut blob = BlobRef { hash: Hash([0; 32]), size };
        let pieces: Vec<Vec<u8>> = (0..plan.pieces)
            .map(|piece| {
                let mark = (random.draw() as u8).wrapping_add(piece as u8);
                vec![mark; piece_span(&blob, piece).1 as usize]
            })
            .collect();
        let hashes: Vec<Hash> = pieces.iter().map(|piece| hash(piece)).collect();
        blob.hash = hash(&hashes.iter().flat_map(|hash| hash.0).collect::<Vec<u8>>());
        let devices = (0..plan.devices).map(|at| Device::new(at, &plan, &mut random)).collect();
        World {
            plan,
            random,
            now: Time(0),
            events: BTreeMap::new(),
            count: 0,
            scheduler: Some(Scheduler::new()),
            devices,
            conns: BTreeMap::new(),
            next_conn: 0,
            carried: BTreeMap::new(),
            pieces,
            blob,
            hashes,
            busy: Time(0),
            timer: None,
            report: SwarmReport::default(),
        }
    }

    pub(super) fn run(mut self) -> SwarmReport {
        let seed = self.random.draw();
        self.give(Input::Start { seed });
        for device in 0..self.plan.devices {
            let at = self.random.range(0, self.plan.spread);
            self.at(Time(at), Event::Start(device));
        }
        for _ in 0..self.plan.faults {
            let at = self.random.range(0, 2 * self.plan.spread + 5_000_000);
            self.at(Time(at), Event::Fault);
        }
        while self.devices.iter().any(|device| !device.whole) {
            let Some(((time, _), event)) = self.events.pop_first() else {
                panic!("the world stands still: {:?}", self.plan);
            };
            assert!(time.0 < PATIENCE, "somebody waits in vain: {:?}", self.plan);
            (self.now, self.report.events) = (time, self.report.events + 1);
            self.step(event);
        }
        self.finish()
    }

    fn finish(mut self) -> SwarmReport {
        for device in &self.devices {
            let right = self
                .pieces
                .iter()
                .enumerate()
                .all(|(piece, bytes)| device.disk.get(&(piece as u32)) == Some(bytes));
            assert!(right, "a device has other bytes");
        }
        let live = self.scheduler.as_ref();
        let books = live.map_or(0, |live| live.swarms().blobs);
        assert!(books <= 1, "books of {books} blobs, and there is one");
        let nodes = live.map(|live| live.nodes(self.now)).unwrap_or_default();
        self.report.named = nodes.iter().filter(|node| node.gave_wrong > 0).count() as u64;
        self.report.pieces = u64::from(self.plan.pieces);
        self.report.devices = self.plan.devices as u64;
        self.report.virtual_micros = self.now.0;
        self.report.trace = self.random.draw();
        self.report
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Start(device) => self.start(device),
            Event::Wake(device) => {
                self.devices[device].timer = None;
                self.tell(device, ShareInput::Tick);
            }
            Event::ToNode(conn, message) => {
                if let Some(device) = self.conns.get(&conn).copied() {
                    self.told(device, message);
                }
            }
            Event::FromNode(conn, message) => self.heard(conn, message),
            Event::Flood { device, birth, word } => self.flood(device, birth, word),
            Event::Words { to, birth, from, words } => {
                if self.devices[to].birth == birth && self.devices[to].links.contains_key(&from) {
                    self.tell(to, ShareInput::Heard { from, words: &words });
                }
            }
            Event::Fetched { device, birth, piece } => self.fetched(device, birth, piece),
            Event::Near { device, birth, node, near } => self.near(device, birth, node, near),
            Event::Gone(conn) => self.give(Input::Disconnected { conn }),
            Event::Timer => {
                self.timer = None;
                self.give(Input::Tick);
            }
            Event::Fault => self.fault(),
            Event::Restart => self.restart(),
        }
    }

    pub(super) fn give(&mut self, input: Input) {
        let Some(live) = &mut self.scheduler else { return };
        live.handle(self.now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| live.poll_output()).collect();
        live.check();
        let due = live.next_timeout();
        for output in outputs {
            match output {
                Output::Send { conn, message } => {
                    self.send(conn, true, Event::ToNode(conn, message));
                }
                Output::Refuse { conn, .. } => self.closed(conn),
                Output::Record(_)
                | Output::Reply { .. }
                | Output::Ended(_)
                | Output::Removed(_)
                | Output::Route { .. }
                | Output::Drop(_)
                | Output::Compare { .. } => {}
            }
        }
        if let Some(due) = due
            && self.timer.is_none_or(|timer| timer > due)
        {
            let due = Time(due.0.max(self.now.0 + 1));
            self.timer = Some(due);
            self.at(due, Event::Timer);
        }
    }

    /// On a socket: after a while, in order.
    pub(super) fn send(&mut self, conn: Conn, down: bool, event: Event) {
        let due = self.later();
        let last = self.carried.entry((conn, down)).or_insert(due);
        *last = due.max(*last);
        let due = *last;
        self.at(due, event);
    }

    pub(super) fn later(&mut self) -> Time {
        let (low, high) = self.plan.delay;
        self.now + Micros(self.random.range(low, high))
    }

    pub(super) fn at(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.insert((time, self.count), event);
    }
}
