//! Two ends of a link and the paths between them. Every fault comes from the seed.

use std::sync::Arc;

use shoal_node::link::*;
use shoal_protocol::limit::SEAL_BYTES;
use shoal_protocol::*;
use shoal_sim::{Clock, Clockwork, Random};

pub(crate) use crate::road::Road;

pub(crate) struct OnTheWay {
    to: usize,
    path: Path,
    life: u64,
    bytes: Vec<u8>,
}

pub(crate) struct World {
    pub(crate) clock: Clock<OnTheWay>,
    pub(crate) ends: [Link; 2],
    pub(crate) relay: Road,
    pub(crate) direct: Road,
    /// Messages each end received.
    pub(crate) got: [Vec<(u16, Vec<u8>)>; 2],
    pub(crate) got_at: [Vec<Time>; 2],
    /// Everything else each end said.
    pub(crate) said: [Vec<LinkOutput>; 2],
    /// Flips a bit of the next chunks that end 0 sends with at least this many bytes.
    pub(crate) corrupt: Option<(usize, u32)>,
}

pub(crate) const PEER: [NodeId; 2] = [NodeId(1), NodeId(2)];
pub(crate) const CREW: CrewId = CrewId(7);

impl World {
    /// The relay is up.
    pub(crate) fn new(seed: u64, relay: Road, direct: Road) -> World {
        let clock = Clock::new(seed);
        let end = |me: usize| {
            let (me, peer) = (PEER[me], PEER[1 - me]);
            Link::new(clock.now, LinkConfig { me, peer, crew: CREW, epoch: Epoch(1) })
        };
        let mut world = World {
            ends: [end(0), end(1)],
            clock,
            relay,
            direct,
            got: Default::default(),
            got_at: Default::default(),
            said: Default::default(),
            corrupt: None,
        };
        world.up(Path::Relay);
        world
    }

    /// 20 ms and 50 MB/s by relay, 5 ms and 50 MB/s direct.
    pub(crate) fn usual() -> World {
        World::new(1, Road::new(20, 50_000_000), Road::new(5, 50_000_000))
    }

    pub(crate) fn road(&mut self, path: Path) -> &mut Road {
        match path {
            Path::Relay => &mut self.relay,
            Path::Direct => &mut self.direct,
        }
    }

    pub(crate) fn up(&mut self, path: Path) {
        let road = self.road(path);
        (road.up, road.life, road.deaf) = (true, road.life + 1, [false; 2]);
        self.both(|_| LinkInput::Up(path));
    }

    /// The path is there for one end; the other has it that much later.
    pub(crate) fn up_first_at(&mut self, end: usize, path: Path, later_millis: u64) {
        let road = self.road(path);
        (road.up, road.life) = (true, road.life + 1);
        road.deaf[1 - end] = true;
        self.give(end, LinkInput::Up(path));
        self.run(later_millis);
        self.road(path).deaf = [false; 2];
        self.give(1 - end, LinkInput::Up(path));
    }

    pub(crate) fn down(&mut self, path: Path) {
        self.road(path).up = false;
        self.both(|_| LinkInput::Down(path));
    }

    pub(crate) fn epoch(&mut self, end: usize, epoch: u32) {
        self.give(end, LinkInput::Epoch(Epoch(epoch)));
    }

    pub(crate) fn send(&mut self, end: usize, channel: u16, bytes: Vec<u8>) {
        self.give(end, LinkInput::Send { channel, message: Arc::new(bytes) });
    }

    fn both(&mut self, input: impl Fn(usize) -> LinkInput<'static>) {
        (0..2).for_each(|end| self.give(end, input(end)));
    }

    pub(crate) fn give(&mut self, end: usize, input: LinkInput<'_>) {
        self.ends[end].handle(self.clock.now, input);
        self.ends[end].check();
        while let Some(output) = self.ends[end].poll_output() {
            match output {
                LinkOutput::Frame { path, bytes, .. } => self.carry(end, path, bytes),
                LinkOutput::Message { channel, bytes } => {
                    self.clock.trace.update(hash(&bytes).0.as_slice());
                    self.got[end].push((channel, bytes));
                    self.got_at[end].push(self.clock.now);
                }
                LinkOutput::Refused { .. }
                | LinkOutput::Using(_)
                | LinkOutput::Measured { .. }
                | LinkOutput::Stalled { .. }
                | LinkOutput::Flowing
                | LinkOutput::Broken(_) => self.said[end].push(output),
            }
        }
    }

    fn carry(&mut self, from: usize, path: Path, mut bytes: Vec<u8>) {
        self.flip(from, &mut bytes);
        if path == Path::Relay {
            bytes.extend([0; SEAL_BYTES]);
        }
        let wire = self.road(path).wire;
        let copies = wire.copies(&mut self.clock.random);
        let now = self.clock.now;
        let road = self.road(path);
        road.frames[from] += 1;
        road.bytes[from] += bytes.len() as u64;
        if !road.up || road.dead || copies.is_empty() {
            return;
        }
        let takes = Micros(bytes.len() as u64 * 1_000_000 / road.bytes_per_second);
        road.free[from] = road.free[from].max(now) + takes;
        let (sent, life) = (road.free[from], road.life);
        for late in copies {
            let on_the_way = OnTheWay { to: 1 - from, path, life, bytes: bytes.clone() };
            self.clock.events.at(sent + late, on_the_way);
        }
    }

    fn flip(&mut self, from: usize, bytes: &mut [u8]) {
        let Some((least, left)) = &mut self.corrupt else { return };
        if from == 0 && bytes.len() >= *least && *left > 0 {
            *left -= 1;
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
        }
    }

    /// Until both ends have said all, or this much time passed. How long it took.
    pub(crate) fn settle(&mut self, most_millis: u64) -> Micros {
        self.run_while(most_millis, |world| world.ends.iter().any(Link::is_busy))
    }

    /// As a shell does: take the frame apart, open what is sealed.
    pub(crate) fn deliver(&mut self, to: usize, path: Path, bytes: &[u8]) {
        let (header, payload) = frame::split(bytes).unwrap();
        let sealed = if path == Path::Relay { SEAL_BYTES } else { 0 };
        let payload = &payload[..payload.len() - sealed];
        self.give(to, LinkInput::Frame { path, header, payload });
    }

    pub(crate) fn using(&self, end: usize) -> Option<Path> {
        self.said[end].iter().rev().find_map(|said| match said {
            LinkOutput::Using(path) => Some(*path),
            _ => None,
        })
    }

    pub(crate) fn broken(&self, end: usize) -> Option<Broken> {
        self.said[end].iter().find_map(|said| match said {
            LinkOutput::Broken(reason) => Some(*reason),
            _ => None,
        })
    }
}

impl Clockwork for World {
    type Event = OnTheWay;

    fn clock(&self) -> &Clock<OnTheWay> {
        &self.clock
    }

    fn clock_mut(&mut self) -> &mut Clock<OnTheWay> {
        &mut self.clock
    }

    fn due(&self) -> Option<Time> {
        self.ends.iter().filter_map(Link::next_timeout).min()
    }

    fn wake(&mut self) {
        self.both(|_| LinkInput::Tick);
    }

    fn happens(&mut self, frame: OnTheWay) {
        let road = self.road(frame.path);
        let hears = road.up && !road.dead && !road.deaf[frame.to];
        if hears && road.life == frame.life {
            self.deliver(frame.to, frame.path, &frame.bytes);
        }
    }
}

/// Bytes that no other message has.
pub(crate) fn message(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..length).map(|_| random.draw() as u8).collect()
}
