//! What makes a device one that others can reach: its keys, and its members with their engines.

use std::collections::BTreeMap;

use ed25519_dalek::{Signer, SigningKey};
use shoal_kinds::SimWork;
use shoal_node::{Member, MemberConfig};
use shoal_protocol::{CrewId, Identity, NodeId, PublicKey, Signature, Time};
use shoal_seal::Keys;

use super::engine::Engine;
use crate::random::Random;
use crate::staged::Stage;

pub(crate) struct Linked {
    /// Spoils its rows in one step of so many.
    pub(crate) spoils: Option<u64>,
    key: SigningKey,
    secret: [u8; 32],
    pub(crate) id: Option<NodeId>,
    pub(crate) members: BTreeMap<CrewId, Member>,
    pub(crate) engines: BTreeMap<CrewId, Engine>,
    /// Parts of a service.
    pub(crate) stages: BTreeMap<CrewId, Stage>,
    /// Percent of the fastest one's time.
    pub(crate) slowness: u64,
    /// Its engines do nothing until then.
    pub(crate) hangs: Time,
}

impl Linked {
    pub(crate) fn new(spoils: Option<u64>, random: &mut Random) -> Linked {
        Linked {
            spoils,
            key: SigningKey::from_bytes(&bytes(random)),
            secret: bytes(random),
            id: None,
            members: BTreeMap::new(),
            engines: BTreeMap::new(),
            stages: BTreeMap::new(),
            slowness: random.range(100, 400),
            hangs: Time(0),
        }
    }

    /// As after a start: the key on disk is all that is left.
    pub(crate) fn reborn(&mut self, random: &mut Random) {
        self.secret = bytes(random);
        self.id = None;
        self.members.clear();
        self.engines.clear();
        self.stages.clear();
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity(self.key.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, statement: &[u8]) -> Signature {
        Signature::new(&self.key.sign(statement).to_bytes())
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys::new(self.secret)
    }

    pub(crate) fn member(
        &self,
        now: Time,
        work: Option<SimWork>,
        coordinator: PublicKey,
        seed: [u8; 32],
    ) -> Option<Member> {
        let config = MemberConfig {
            me: self.id?,
            coordinator,
            secret: self.secret,
            seed,
            unix_at_zero: 0,
            tries_direct: true,
            work,
        };
        Some(Member::new(now, config))
    }
}

pub(crate) fn bytes(random: &mut Random) -> [u8; 32] {
    let words = [(); 4].map(|()| random.draw().to_le_bytes());
    core::array::from_fn(|at| words[at / 8][at % 8])
}
