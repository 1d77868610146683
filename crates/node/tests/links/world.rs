//! Two ends of a link and the paths between them, in virtual time. Every fault comes from the seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_node::link::*;
use shoal_protocol::limit::SEAL_BYTES;
use shoal_protocol::*;

pub(crate) use crate::road::{Road, Wire};

struct OnTheWay {
    to: usize,
    path: Path,
    life: u64,
    bytes: Vec<u8>,
}

pub(crate) struct World {
    pub(crate) now: Time,
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
    on_the_way: BTreeMap<(Time, u64), OnTheWay>,
    count: u64,
    random: u64,
    /// A digest of all that happened.
    pub(crate) trace: Hasher,
}

pub(crate) const PEER: [NodeId; 2] = [NodeId(1), NodeId(2)];
pub(crate) const CREW: CrewId = CrewId(7);

impl World {
    /// The relay is up.
    pub(crate) fn new(seed: u64, relay: Wire, direct: Wire) -> World {
        let now = Time(1_000_000);
        let end = |me: usize| {
            let (me, peer) = (PEER[me], PEER[1 - me]);
            Link::new(now, LinkConfig { me, peer, crew: CREW, epoch: Epoch(1) })
        };
        let mut world = World {
            now,
            ends: [end(0), end(1)],
            relay: Road::new(relay),
            direct: Road::new(direct),
            got: Default::default(),
            got_at: Default::default(),
            said: Default::default(),
            corrupt: None,
            on_the_way: BTreeMap::new(),
            count: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            trace: Hasher::new(),
        };
        world.up(Path::Relay);
        world
    }

    /// 20 ms and 50 MB/s by relay, 5 ms and 50 MB/s direct.
    pub(crate) fn usual() -> World {
        World::new(1, Wire::new(20, 50_000_000), Wire::new(5, 50_000_000))
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
        self.ends[end].handle(self.now, input);
        self.ends[end].check();
        while let Some(output) = self.ends[end].poll_output() {
            match output {
                LinkOutput::Frame { path, bytes, .. } => self.carry(end, path, bytes),
                LinkOutput::Message { channel, bytes } => {
                    self.trace.update(hash(&bytes).0.as_slice());
                    self.got[end].push((channel, bytes));
                    self.got_at[end].push(self.now);
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
        let (first, second) = (self.chance(), self.chance());
        let (late, later) = (self.chance(), self.chance());
        let now = self.now;
        let road = self.road(path);
        road.frames[from] += 1;
        road.bytes[from] += bytes.len() as u64;
        if !road.up || road.dead || first % 1_000 < road.wire.lost_per_mille {
            return;
        }
        let takes = Micros(bytes.len() as u64 * 1_000_000 / road.wire.bytes_per_second);
        road.free[from] = road.free[from].max(now) + takes;
        let arrives = road.free[from] + road.wire.delay;
        let mut late = vec![Micros(late % (road.wire.jitter.0 + 1))];
        if second % 1_000 < road.wire.doubled_per_mille {
            late.push(Micros(later % (road.wire.jitter.0 + 1)));
        }
        let life = road.life;
        for late in late {
            self.count += 1;
            let on_the_way = OnTheWay { to: 1 - from, path, life, bytes: bytes.clone() };
            self.on_the_way.insert((arrives + late, self.count), on_the_way);
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

    /// Lets this much time pass.
    pub(crate) fn run(&mut self, millis: u64) {
        let end = self.now + Micros::from_millis(millis);
        while self.step(end) {}
        self.now = end;
    }

    /// Until the condition holds; fails after that much time.
    pub(crate) fn until(&mut self, most_millis: u64, condition: impl Fn(&World) -> bool) {
        let end = self.now + Micros::from_millis(most_millis);
        while !condition(self) {
            assert!(self.step(end), "it never came to that in {most_millis} ms");
        }
    }

    /// Until both ends have said all, or this much time passed. How long it took.
    pub(crate) fn settle(&mut self, most_millis: u64) -> Micros {
        let (begun, end) = (self.now, self.now + Micros::from_millis(most_millis));
        while self.ends.iter().any(Link::is_busy) && self.step(end) {}
        self.now - begun
    }

    /// When something happens next.
    pub(crate) fn due(&self) -> Option<Time> {
        let timers = self.ends.iter().filter_map(Link::next_timeout).map(|due| due.max(self.now));
        timers.chain(self.arrival()).min()
    }

    fn arrival(&self) -> Option<Time> {
        self.on_the_way.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn step(&mut self, end: Time) -> bool {
        let arrival = self.arrival();
        let Some(at) = self.due().filter(|at| *at <= end) else { return false };
        self.now = at;
        self.trace.update(&at.0.to_le_bytes());
        if arrival != Some(at) {
            self.both(|_| LinkInput::Tick);
            return true;
        }
        let Some((_, frame)) = self.on_the_way.pop_first() else { return false };
        let road = self.road(frame.path);
        let hears = road.up && !road.dead && !road.deaf[frame.to];
        if hears && road.life == frame.life {
            self.deliver(frame.to, frame.path, &frame.bytes);
        }
        true
    }

    /// As a shell does: take the frame apart, open what is sealed.
    pub(crate) fn deliver(&mut self, to: usize, path: Path, bytes: &[u8]) {
        let (header, payload) = frame::split(bytes).unwrap();
        let sealed = if path == Path::Relay { SEAL_BYTES } else { 0 };
        let payload = &payload[..payload.len() - sealed];
        self.give(to, LinkInput::Frame { path, header, payload });
    }

    pub(crate) fn chance(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
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

/// Bytes that no other message has.
pub(crate) fn message(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(byte).collect()
}
