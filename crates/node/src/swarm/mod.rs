//! Blobs from other nodes and for them: one node's part in it, over all its links. Pure; its shells are the page's
//! Worker and the native node, which have the files, and simulation.
//!
//! The contract is the brains': one [`SwarmInput`] with the time, then drain [`Swarms::poll_output`]. The coordinator
//! says where each piece comes from. Whatever comes is checked by the piece's hash, so that who sends other bytes is
//! named, and the whole by its own before the shell uses it. A node may need all of a blob or some pieces, and more of
//! them later; it gives what it has, all or not. A node that hears nothing of the coordinator's fetches the pieces
//! itself.
//!
//! `want` is about blobs this node needs, `give` about pieces others ask for.

mod give;
mod want;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_SHARED_BLOBS;
use shoal_protocol::swarm::pieces_of;
use shoal_protocol::{BlobRef, Hash, NodeId, PieceSet, PieceWord, SwarmSay, SwarmTold, Time};

use give::Ask;
use want::Want;

/// One change in the world.
#[derive(Clone, Debug)]
pub enum SwarmInput<'a> {
    /// The coordinator welcomed this node, or is away.
    Joined,
    Away,
    /// These pieces of the blob are needed, beside those that were before. `hashes` are those of all pieces, `has`
    /// are those that are here and were checked.
    Want {
        blob: BlobRef,
        hashes: Vec<Hash>,
        needs: PieceSet,
        has: PieceSet,
    },
    /// All of these blobs are here.
    Have(Vec<BlobRef>),
    /// These pieces of a blob are here, and none is needed now: what was and did not come is given up.
    HavePart {
        blob: BlobRef,
        has: PieceSet,
    },
    /// The blob is not needed any more, or not here any more.
    Drop(Hash),
    Told(SwarmTold),
    /// There is a direct way to that node (`true`), or only the relay.
    Near(NodeId, bool),
    /// The link to that node is over.
    Gone(NodeId),
    /// That node said this on [`shoal_protocol::swarm::BLOBS`].
    Heard {
        from: NodeId,
        words: &'a [u8],
    },
    /// The answer to [`SwarmOutput::Fetch`].
    Fetched {
        blob: Hash,
        piece: u32,
        result: Result<Vec<u8>, String>,
    },
    /// The answer to [`SwarmOutput::Load`]; `None` if it is not there after all.
    Loaded {
        blob: Hash,
        piece: u32,
        to: NodeId,
        bytes: Option<&'a [u8]>,
    },
    /// Nothing but time passed.
    Tick,
}

/// One thing to do, in order: what was stored can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwarmOutput {
    /// For the brain: `Input::SwarmSays`.
    Say(SwarmSay),
    /// Say this to that node on [`shoal_protocol::swarm::BLOBS`].
    Tell { to: NodeId, words: Arc<Vec<u8>> },
    /// Get this piece from the coordinator; answer with [`SwarmInput::Fetched`].
    Fetch { blob: BlobRef, piece: u32 },
    /// Keep this piece: it is what it should be.
    Store { blob: BlobRef, piece: u32, bytes: Vec<u8> },
    /// Read this piece for that node; answer with [`SwarmInput::Loaded`].
    Load { blob: BlobRef, piece: u32, to: NodeId },
    /// All pieces of a blob are stored, and it was needed. Its own hash is still to be checked.
    Whole(BlobRef),
    /// All pieces that were needed are stored, and others are not: there is nothing but their hashes to check them by.
    Part(BlobRef),
    /// The blob cannot be had; why.
    Failed { blob: BlobRef, why: String },
}

/// What this node gave to others and got from them, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    pub given: u64,
    pub taken: u64,
    /// From the coordinator.
    pub fetched: u64,
}

#[derive(Default)]
pub struct Swarms {
    joined: bool,
    blobs: BTreeMap<Hash, Blob>,
    /// Nodes with a direct way.
    near: BTreeSet<NodeId>,
    /// What may be given to whom.
    allowed: BTreeSet<(NodeId, Hash)>,
    /// What others asked for and did not get yet.
    asks: Vec<Ask>,
    exchanged: Exchanged,
    outputs: VecDeque<SwarmOutput>,
}

/// A blob of which something is here.
struct Blob {
    blob: BlobRef,
    has: PieceSet,
    /// Something of it is needed and not here.
    want: Option<Want>,
}

impl Blob {
    fn part(&self) -> SwarmSay {
        let needs = self.want.as_ref().map(Want::needs).unwrap_or_default();
        SwarmSay::Part { blob: self.blob, has: self.has.words(), needs }
    }
}

impl Swarms {
    pub fn new() -> Swarms {
        Swarms::default()
    }

    pub fn handle(&mut self, now: Time, input: SwarmInput<'_>) {
        match input {
            SwarmInput::Joined => self.joined(now),
            SwarmInput::Away => self.away(),
            SwarmInput::Want { blob, hashes, needs, has } => {
                self.want(now, blob, hashes, (needs, has));
            }
            SwarmInput::Have(blobs) => self.have(blobs),
            SwarmInput::HavePart { blob, has } => self.have_part(blob, &has),
            SwarmInput::Drop(hash) => self.drop(hash),
            SwarmInput::Told(SwarmTold::Take { blob, pieces, from }) => {
                self.take(now, &blob, &pieces, from);
            }
            SwarmInput::Told(SwarmTold::Give { blob, to }) => self.allow(blob.hash, to),
            SwarmInput::Near(node, near) => self.near(node, near),
            SwarmInput::Gone(node) => self.gone(node),
            SwarmInput::Heard { from, words } => self.heard(now, from, words),
            SwarmInput::Fetched { blob, piece, result } => self.fetched(now, blob, piece, result),
            SwarmInput::Loaded { blob, piece, to, bytes } => self.loaded(blob, piece, to, bytes),
            SwarmInput::Tick => {}
        }
        self.look_at_wants(now);
        self.look_at_asks(now);
    }

    pub fn poll_output(&mut self) -> Option<SwarmOutput> {
        self.outputs.pop_front()
    }

    /// When to say `Tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        let wants = self.blobs.values().filter_map(|blob| blob.want.as_ref()?.due(self.joined));
        wants.chain(self.asks.iter().filter_map(Ask::due)).min()
    }

    pub fn exchanged(&self) -> Exchanged {
        self.exchanged
    }

    /// The pieces of a blob that other nodes were asked for, and may still send.
    pub fn awaited(&self, blob: Hash) -> Vec<u32> {
        let want = self.blobs.get(&blob).and_then(|known| known.want.as_ref());
        want.map(Want::awaited).unwrap_or_default()
    }

    /// The pieces of a blob that are here.
    pub fn has(&self, blob: Hash) -> Option<&PieceSet> {
        self.blobs.get(&blob).map(|known| &known.has)
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        for (hash, known) in &self.blobs {
            assert_eq!(*hash, known.blob.hash, "a blob under a wrong name");
            assert_eq!(known.has.count(), pieces_of(&known.blob), "pieces of {hash}");
            let Some(want) = &known.want else { continue };
            want.check(&known.has, |node| self.near.contains(&node));
        }
        give::check(&self.asks);
        assert!(self.blobs.len() <= MAX_SHARED_BLOBS, "more blobs than a node tells of");
    }

    fn joined(&mut self, now: Time) {
        self.away();
        self.joined = true;
        let (mut holds, mut parts) = (Vec::new(), Vec::new());
        for known in self.blobs.values_mut() {
            if let Some(want) = &mut known.want {
                want.begin_anew(now);
            }
            match known.has.is_full() {
                true => holds.push(known.blob),
                false => parts.push(known.part()),
            }
        }
        parts.into_iter().for_each(|part| self.say(part));
        if !holds.is_empty() {
            self.say(SwarmSay::Holds { blobs: holds });
        }
    }

    /// Links end with the connection: the next one has others.
    fn away(&mut self) {
        self.joined = false;
        let near: Vec<_> = self.near.iter().copied().collect();
        near.into_iter().for_each(|node| self.gone(node));
        self.asks.clear();
        self.allowed.clear();
    }

    fn have(&mut self, blobs: Vec<BlobRef>) {
        let mut new = Vec::new();
        for blob in blobs.into_iter().filter(shoal_protocol::swarm::is_shared) {
            let all = Blob { blob, has: PieceSet::full(pieces_of(&blob)), want: None };
            let room = self.blobs.len() < MAX_SHARED_BLOBS;
            match self.blobs.get_mut(&blob.hash) {
                // The rest came another way.
                Some(known) if known.blob == blob && !known.has.is_full() => *known = all,
                None if room => {
                    self.blobs.insert(blob.hash, all);
                }
                Some(_) | None => continue,
            }
            new.push(blob);
        }
        if !new.is_empty() {
            self.say(SwarmSay::Holds { blobs: new });
        }
    }

    fn have_part(&mut self, blob: BlobRef, has: &PieceSet) {
        let has = PieceSet::from_words(pieces_of(&blob), &has.words());
        if let Some(known) = self.blobs.get_mut(&blob.hash).filter(|known| known.blob == blob) {
            let gave_up = known.want.take().is_some();
            if gave_up || known.has != has {
                known.has = has;
                self.say_part_or_drop(blob.hash);
            }
            return;
        }
        if has.is_full() {
            return self.have(alloc::vec![blob]);
        }
        let room = self.blobs.len() < MAX_SHARED_BLOBS && !self.blobs.contains_key(&blob.hash);
        if room && !has.is_empty() && shoal_protocol::swarm::is_shared(&blob) {
            self.blobs.insert(blob.hash, Blob { blob, has, want: None });
            self.say_part(blob.hash);
        }
    }

    /// Says what is here of a blob that is not needed now; without any of it there is nothing to keep books of.
    fn say_part_or_drop(&mut self, hash: Hash) {
        match self.blobs.get(&hash).is_some_and(|known| known.has.is_empty()) {
            true => self.drop(hash),
            false => self.say_part(hash),
        }
    }

    /// Says what is here of a blob, and what is needed.
    fn say_part(&mut self, hash: Hash) {
        if let Some(part) = self.blobs.get(&hash).map(Blob::part) {
            self.say(part);
        }
    }

    fn drop(&mut self, hash: Hash) {
        let Some(known) = self.blobs.remove(&hash) else { return };
        self.allowed.retain(|(_, blob)| *blob != hash);
        self.say(SwarmSay::Drops { blob: known.blob });
    }

    fn near(&mut self, node: NodeId, near: bool) {
        if near {
            self.near.insert(node);
        } else {
            self.near.remove(&node);
            self.forget_flights(node);
        }
        self.say(SwarmSay::Near { node, near });
    }

    fn gone(&mut self, node: NodeId) {
        self.near.remove(&node);
        self.allowed.retain(|(to, _)| *to != node);
        self.asks.retain(|ask| ask.to != node);
        self.forget_flights(node);
    }

    fn heard(&mut self, now: Time, from: NodeId, words: &[u8]) {
        match PieceWord::decode(words) {
            Some(PieceWord::Ask { blob, piece }) => self.asked(now, from, blob, piece),
            Some(PieceWord::Here { blob, piece, bytes }) => {
                self.came(now, blob, piece, Some(from), bytes.to_vec());
            }
            Some(PieceWord::Not { blob, piece }) => self.refused(blob, piece, from),
            // A newer peer's word.
            None => {}
        }
    }

    fn say(&mut self, say: SwarmSay) {
        if self.joined {
            self.outputs.push_back(SwarmOutput::Say(say));
        }
    }

    fn tell(&mut self, to: NodeId, word: &PieceWord<'_>) {
        self.outputs.push_back(SwarmOutput::Tell { to, words: Arc::new(word.encode()) });
    }
}
