//! A device: a node, its members, their engines, and the keys that make it who it is.

use std::collections::BTreeMap;

use ed25519_dalek::{Signer, SigningKey};
use shoal_node::{Config, Member, MemberConfig, Node, Rules};
use shoal_protocol::{CrewId, Identity, NodeId, PublicKey, Signature, Time};
use shoal_scheduler::Conn;
use shoal_seal::Keys;

use super::engine::Engine;
use super::field::Grid;
use crate::random::Random;

pub(crate) struct Device {
    pub(crate) number: usize,
    key: SigningKey,
    secret: [u8; 32],
    pub(crate) node: Node,
    pub(crate) id: Option<NodeId>,
    pub(crate) conn: Option<Conn>,
    pub(crate) members: BTreeMap<CrewId, Member>,
    pub(crate) engines: BTreeMap<CrewId, Engine>,
    /// Percent of the fastest one's time.
    pub(crate) slowness: u64,
    /// Everything stands still until then.
    pub(crate) frozen: Time,
    /// Gone until then; after it, everything is forgotten.
    pub(crate) away: Time,
    /// Its engine does nothing until then.
    pub(crate) hangs: Time,
    /// Counts its lives: what belongs to an older one never happens.
    pub(crate) birth: u32,
    pub(crate) timer: Option<Time>,
}

impl Device {
    pub(crate) fn new(number: usize, random: &mut Random) -> Device {
        let key = SigningKey::from_bytes(&bytes(random));
        let mut device = Device {
            number,
            node: node(number, &key, 0),
            key,
            secret: [0; 32],
            id: None,
            conn: None,
            members: BTreeMap::new(),
            engines: BTreeMap::new(),
            slowness: random.range(100, 400),
            frozen: Time(0),
            away: Time(0),
            hangs: Time(0),
            birth: 0,
            timer: None,
        };
        device.reborn(random);
        device
    }

    /// As after a start: the key on disk is all that is left.
    pub(crate) fn reborn(&mut self, random: &mut Random) {
        self.birth += 1;
        self.secret = bytes(random);
        self.node = node(self.number, &self.key, random.draw());
        (self.id, self.conn, self.timer) = (None, None, None);
        self.members.clear();
        self.engines.clear();
    }

    pub(crate) fn sign(&self, statement: &[u8]) -> Signature {
        Signature::new(&self.key.sign(statement).to_bytes())
    }

    pub(crate) fn link_keys(&self) -> Keys {
        Keys::new(self.secret)
    }

    pub(crate) fn member(
        &self,
        now: Time,
        grid: Grid,
        coordinator: PublicKey,
        seed: [u8; 32],
    ) -> Option<Member> {
        let shoal_protocol::Work::Sim(work) = grid.spec(0, None, false).work else { return None };
        let config = MemberConfig {
            me: self.id?,
            coordinator,
            secret: self.secret,
            seed,
            unix_at_zero: 0,
            tries_direct: true,
            work: Some(work),
        };
        Some(Member::new(now, config))
    }
}

fn node(number: usize, key: &SigningKey, seed: u64) -> Node {
    Node::new(Config {
        token: String::new(),
        identity: Identity(key.verifying_key().to_bytes()),
        caps: crate::device::crew_caps(number),
        rules: Rules::default(),
        talks: false,
        shares: false,
        seed,
    })
}

pub(crate) fn bytes(random: &mut Random) -> [u8; 32] {
    let words = [(); 4].map(|()| random.draw().to_le_bytes());
    core::array::from_fn(|at| words[at / 8][at % 8])
}
