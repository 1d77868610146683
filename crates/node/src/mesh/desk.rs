//! What all peers of a mesh share: who this node is, the present epoch, and where outputs go.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{CrewId, Epoch, Hash, Hasher, Micros, NodeId, Time};
use shoal_seal::{Claims, Parties};

use super::{MeshConfig, MeshOutput};

/// What a token is taken to last on a device whose clock is wrong: less than any is made for, and long enough
/// to be told apart from an epoch.
const CLOCK_SLACK: Micros = Micros::from_secs(3_600);

/// Frames that were not taken, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshDropped {
    /// No frame, of another crew, to another node, of nobody in the crew, or of a kind that does not belong
    /// on its way.
    pub stray: u64,
    /// A step of a key agreement of another epoch.
    pub other_epoch: u64,
    /// Opens with no seal there is: changed, forged, or sealed in an earlier life of the peer.
    pub closed: u64,
    /// A step of a key agreement that is not of the peer's key, or of an earlier agreement.
    pub forged: u64,
    /// A step of a key agreement too many.
    pub flood: u64,
}

/// Counts what happens in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    since: Time,
    count: u32,
}

impl Meter {
    /// One more. Whether there were not more than `most` in this second.
    pub(super) fn is_within(&mut self, now: Time, most: u32) -> bool {
        if now - self.since >= Micros::from_secs(1) {
            *self = Meter { since: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}

pub(super) struct Desk {
    pub(super) config: MeshConfig,
    /// None before the first `Enlist`.
    pub(super) crew: Option<CrewId>,
    pub(super) epoch: Epoch,
    /// This node's token in the present epoch, as the words it is shown with.
    pub(super) token: Arc<Vec<u8>>,
    pub(super) relay_up: bool,
    /// Links are for bulk: direct whenever they can be.
    pub(super) direct_first: bool,
    pub(super) dropped: MeshDropped,
    /// How much this device's clock is known to be wrong.
    ahead: Micros,
    /// What fresh bytes are drawn from, and how often that was done.
    seed: Hash,
    drawn: u64,
    outputs: VecDeque<MeshOutput>,
    /// Where frames are opened; kept, so that no frame needs new memory.
    pub(super) scratch: Vec<u8>,
}

impl Desk {
    pub(super) fn new(now: Time, config: MeshConfig) -> Desk {
        let mut hasher = Hasher::new();
        hasher.update(b"shoal mesh 1\0");
        hasher.update(&config.seed);
        // The same keys a second time would be fatal, so a shell that gives a seed twice by mistake is helped.
        for number in [config.me.0, config.unix_at_zero, now.0] {
            hasher.update(&number.to_le_bytes());
        }
        Desk {
            seed: hasher.finish(),
            config,
            ahead: Micros(0),
            crew: None,
            epoch: Epoch(0),
            token: Arc::default(),
            relay_up: false,
            direct_first: false,
            dropped: MeshDropped::default(),
            drawn: 0,
            outputs: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    pub(super) fn me(&self) -> NodeId {
        self.config.me
    }

    /// Of two nodes the one with the lower number calls, also with the radio.
    pub(super) fn calls(&self, peer: NodeId) -> bool {
        self.config.me < peer
    }

    pub(super) fn crew(&self) -> CrewId {
        self.crew.unwrap_or(CrewId(0))
    }

    pub(super) fn parties(&self, peer: NodeId) -> Parties {
        let me = self.config.me;
        let (caller, called) = if self.calls(peer) { (me, peer) } else { (peer, me) };
        Parties { coordinator: self.config.coordinator, crew: self.crew(), caller, called }
    }

    pub(super) fn unix(&self, now: Time) -> u64 {
        self.config.unix_at_zero.saturating_add(now.0).saturating_sub(self.ahead.0)
    }

    /// This node's own token was made just now. If it is over by this node's clock, the clock is wrong, and
    /// everybody's token would seem to be.
    pub(super) fn set_clock(&mut self, now: Time, own: &Claims) {
        let unix = self.unix(now);
        if unix >= own.until {
            self.ahead.0 += unix - own.until + CLOCK_SLACK.0;
        }
    }

    /// Fresh bytes for one key agreement.
    pub(super) fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        let mut hasher = Hasher::new();
        hasher.update(&self.seed.0);
        hasher.update(&self.drawn.to_le_bytes());
        let Hash(seed) = hasher.finish();
        seed
    }

    pub(super) fn put(&mut self, output: MeshOutput) {
        self.outputs.push_back(output);
    }

    pub(super) fn take(&mut self) -> Option<MeshOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn accuse(&mut self, node: NodeId, why: String) {
        self.put(MeshOutput::Bad { node, why });
    }
}
