//! A swarm: nodes that need one large blob, all or some of it, exchange its pieces over sealed links while the real
//! scheduler deals. Some give wrong bytes, some nothing, some accuse everybody. In the end everybody has the right
//! bytes of all it asked for and no piece more, and where nothing went wrong the coordinator gave little more than one
//! copy.
//!
//! [`shell`] is what the shells do, [`shelf`] one device's part; [`crowd`] measures the scheduler alone.

mod crowd;
mod shelf;
mod shell;

pub use crowd::{SwarmCost, swarm_cost};
pub(crate) use shelf::Shelf;

use shoal_protocol::limit::PIECE_BYTES;
use shoal_protocol::swarm::piece_span;
use shoal_protocol::{BlobRef, Hash, Time, hash};

use crate::device::Device;
use crate::random::Random;

/// A blob, and who needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwarmPlan {
    /// The first so many devices.
    pub devices: usize,
    pub pieces: u32,
    /// Bytes of a piece that a device sends in a second, at least and at most, and the coordinator.
    pub rates: (u64, u64),
    pub coordinator_rate: u64,
    /// Of a million devices.
    pub liars: u64,
    pub mute: u64,
    pub accusers: u64,
    /// Of a million devices, how many need only some ranges of bytes, and perhaps others later.
    pub ranges: u64,
    /// Devices begin within so many microseconds.
    pub spread: u64,
}

impl SwarmPlan {
    /// Nothing goes wrong.
    pub fn calm(devices: usize, pieces: u32) -> SwarmPlan {
        SwarmPlan {
            devices,
            pieces,
            rates: (20_000_000, 100_000_000),
            coordinator_rate: 100_000_000,
            liars: 0,
            mute: 0,
            accusers: 0,
            ranges: 0,
            spread: 2_000_000,
        }
    }

    pub(crate) fn random(random: &mut Random, devices: usize) -> SwarmPlan {
        let calm = SwarmPlan::calm(devices, random.range(9, 17) as u32);
        let rarely = |random: &mut Random, most: u64| {
            if random.chance(400_000) { random.range(0, most) } else { 0 }
        };
        SwarmPlan {
            rates: if random.chance(300_000) { (200_000, 2_000_000) } else { calm.rates },
            coordinator_rate: [1_000_000, 20_000_000, 100_000_000][random.range(0, 3) as usize],
            liars: rarely(random, 400_000),
            mute: rarely(random, 400_000),
            accusers: rarely(random, 300_000),
            spread: random.range(1, 20_000_000),
            ranges: [0, 500_000, 1_000_000][random.range(0, 3) as usize],
            ..calm
        }
    }
}

/// What became of a blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmReport {
    /// Pieces from the coordinator and from node to node, as their takers count.
    pub fetched: u64,
    pub exchanged: u64,
    /// Pieces of one copy.
    pub pieces: u64,
    /// Pieces that all devices asked for together.
    pub needed: u64,
    pub devices: u64,
    /// Nodes that were found to give wrong bytes.
    pub named: u64,
}

impl SwarmReport {
    pub(crate) fn add(&mut self, other: &SwarmReport) {
        self.fetched += other.fetched;
        self.exchanged += other.exchanged;
        self.pieces += other.pieces;
        self.needed += other.needed;
        self.devices += other.devices;
        self.named += other.named;
    }
}

/// What happens to a device that needs the blob.
pub(crate) enum SwarmEvent {
    /// It needs it from now on.
    Needs(usize),
    /// It needs more than it did.
    More { device: usize, birth: u32 },
    /// A piece came from the coordinator.
    Fetched { device: usize, birth: u32, piece: u32 },
}

impl SwarmEvent {
    fn device(&self) -> usize {
        match self {
            SwarmEvent::Needs(device)
            | SwarmEvent::More { device, .. }
            | SwarmEvent::Fetched { device, .. } => *device,
        }
    }
}

/// The blob as the coordinator has it.
pub(crate) struct Swarm {
    plan: SwarmPlan,
    blob: BlobRef,
    pieces: Vec<Vec<u8>>,
    hashes: Vec<Hash>,
    /// Until when its line is busy.
    busy: Time,
}

impl Swarm {
    pub(crate) fn new(plan: SwarmPlan, devices: &mut [Device], random: &mut Random) -> Swarm {
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
        for device in devices.iter_mut().take(plan.devices).filter(|one| one.hostile.is_none()) {
            device.shelf = Some(Box::new(Shelf::new(&plan, &blob, random)));
        }
        Swarm { plan, blob, pieces, hashes, busy: Time(0) }
    }
}
