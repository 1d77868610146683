//! Blobs this node needs: pieces that are missing, those on the way and from whom, and what to do when they do not
//! come.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_SHARED_BLOBS;
use shoal_protocol::swarm::{is_shared, piece_span, pieces_of};
use shoal_protocol::{
    BlobRef, Hash, Micros, Missed, NodeId, PieceSet, PieceWord, SwarmSay, Time, hash,
};

use super::{Blob, SwarmOutput, Swarms};

/// A piece that does not come in this time comes from elsewhere: slower than 140 kB/s, a node is no help.
const LATE: Micros = Micros::from_secs(15);
/// A coordinator that says nothing of where pieces are for this long does not know how to: they are fetched.
const OWN_AFTER: Micros = Micros::from_secs(40);
/// Pieces fetched at a time without being told to.
const OWN_AHEAD: usize = 2;
/// Tries to fetch a piece from the coordinator, and the time between two.
const MAX_TRIES: u32 = 5;
const TRY_AGAIN: Micros = Micros::from_secs(1);

pub(super) struct Want {
    hashes: Vec<Hash>,
    /// Pieces that are needed and not here: there are some.
    lacks: PieceSet,
    flying: BTreeMap<u32, Flight>,
    /// When the coordinator last said where a piece is.
    told: Time,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    /// `None` is the coordinator.
    from: Option<NodeId>,
    /// When it is late, or tried again.
    due: Option<Time>,
    tries: u32,
}

impl Want {
    /// The coordinator knows nothing of what it told before.
    pub(super) fn begin_anew(&mut self, now: Time) {
        self.told = now;
    }

    /// For the coordinator.
    pub(super) fn needs(&self) -> Vec<u64> {
        self.lacks.words()
    }

    /// What is to come from other nodes.
    pub(super) fn awaited(&self) -> Vec<u32> {
        let from_nodes = self.flying.iter().filter(|(_, flight)| flight.from.is_some());
        from_nodes.map(|(piece, _)| *piece).collect()
    }

    pub(super) fn due(&self, joined: bool) -> Option<Time> {
        let flights = self.flying.values().filter_map(|flight| flight.due).min();
        let own = Some(self.told + OWN_AFTER).filter(|_| joined && self.flying.is_empty());
        flights.into_iter().chain(own).min()
    }

    pub(super) fn check(&self, has: &PieceSet, near: impl Fn(NodeId) -> bool) {
        assert_eq!(self.hashes.len(), has.count() as usize, "hashes of pieces");
        assert!(!self.lacks.is_empty(), "a need of nothing");
        assert!(!self.lacks.meets(has), "a piece that is here is lacking");
        for (piece, flight) in &self.flying {
            assert!(self.lacks.has(*piece), "piece {piece} is on its way and not needed");
            assert!(flight.from.is_none_or(&near), "piece {piece} comes from nowhere");
        }
    }
}

impl Swarms {
    pub(super) fn want(
        &mut self,
        now: Time,
        blob: BlobRef,
        hashes: Vec<Hash>,
        (needs, has): (PieceSet, PieceSet),
    ) {
        let count = pieces_of(&blob);
        if !self.blobs.contains_key(&blob.hash) {
            self.make_room();
        }
        let why = match () {
            () if !is_shared(&blob) => "it is not of a size that is shared",
            () if hashes.len() != count as usize => "its pieces have not one hash each",
            () if self.blobs.get(&blob.hash).is_some_and(|known| known.blob != blob) => {
                "its size is another"
            }
            () if !self.blobs.contains_key(&blob.hash) && self.blobs.len() >= MAX_SHARED_BLOBS => {
                "too many others are needed"
            }
            () => {
                let of_it = |set: &PieceSet| PieceSet::from_words(count, &set.words());
                return self.want_more(now, blob, hashes, (of_it(&needs), of_it(&has)));
            }
        };
        self.outputs.push_back(SwarmOutput::Failed { blob, why: why.into() });
    }

    /// Needs these pieces beside what was needed before; the coordinator hears of it if that changes anything.
    fn want_more(
        &mut self,
        now: Time,
        blob: BlobRef,
        hashes: Vec<Hash>,
        (needs, has): (PieceSet, PieceSet),
    ) {
        let count = pieces_of(&blob);
        let new = || Blob { blob, has: PieceSet::new(count), want: None };
        let known = self.blobs.entry(blob.hash).or_insert_with(new);
        let had = (known.has.len(), known.want.as_ref().map_or(0, |want| want.lacks.len()));
        let before = known.want.take();
        if before.is_none() {
            // The shell just looked: what it does not see is not here any more.
            known.has = known.has.without(&needs);
        }
        known.has = known.has.with(&has);
        let lacked = before.as_ref().map(|want| needs.with(&want.lacks));
        let lacks = lacked.unwrap_or(needs).without(&known.has);
        let has = (known.has.len(), lacks.len());
        if !lacks.is_empty() {
            let mut flying = before.map(|want| want.flying).unwrap_or_default();
            flying.retain(|piece, _| lacks.has(*piece));
            known.want = Some(Want { hashes, lacks, flying, told: now });
        }
        if has != had {
            self.say_part(blob.hash);
        }
        if has.1 == 0 {
            self.all_here(blob);
        }
    }

    /// Nothing that was needed is missing.
    fn all_here(&mut self, blob: BlobRef) {
        let whole = self.blobs.get(&blob.hash).is_some_and(|known| known.has.is_full());
        let here = if whole { SwarmOutput::Whole } else { SwarmOutput::Part };
        self.outputs.push_back(here(blob));
    }

    /// What is needed goes before what is only kept: of that the coordinator need not know.
    fn make_room(&mut self) {
        if self.blobs.len() >= MAX_SHARED_BLOBS {
            let kept = self.blobs.values().find(|known| known.want.is_none());
            if let Some(hash) = kept.map(|known| known.blob.hash) {
                self.drop(hash);
            }
        }
    }

    /// The coordinator says where pieces come from.
    pub(super) fn take(&mut self, now: Time, blob: &BlobRef, pieces: &[u32], from: Option<NodeId>) {
        let count = pieces_of(blob);
        for piece in pieces.iter().copied().filter(|piece| *piece < count) {
            let Some(known) = self.blobs.get_mut(&blob.hash) else { return };
            let Some(want) = &mut known.want else { return };
            want.told = now;
            let flying = want.flying.get(&piece).map(|flight| flight.from);
            if !want.lacks.has(piece) || flying == Some(from) {
                continue;
            }
            match from {
                // It went away while this was said: the coordinator hears of it too.
                Some(node) if !self.near.contains(&node) => {
                    let why = Missed::Refused;
                    self.say(SwarmSay::Missed { blob: *blob, piece, from: node, why });
                }
                Some(node) => {
                    let due = Some(now + LATE);
                    want.flying.insert(piece, Flight { from, due, tries: 0 });
                    self.tell(node, &PieceWord::Ask { blob: blob.hash, piece });
                }
                None => {
                    want.flying.insert(piece, Flight { from, due: None, tries: 1 });
                    self.outputs.push_back(SwarmOutput::Fetch { blob: *blob, piece });
                }
            }
        }
    }

    /// Bytes came, whether they were waited for or are late.
    pub(super) fn came(
        &mut self,
        now: Time,
        blob: Hash,
        piece: u32,
        from: Option<NodeId>,
        bytes: Vec<u8>,
    ) {
        let Some(known) = self.blobs.get_mut(&blob) else { return };
        let (blob, Some(want)) = (known.blob, &mut known.want) else { return };
        let Some(expected) = want.hashes.get(piece as usize).filter(|_| want.lacks.has(piece))
        else {
            return;
        };
        let (_, size) = piece_span(&blob, piece);
        let asked = want.flying.get(&piece).is_some_and(|flight| flight.from == from);
        if bytes.len() as u64 != size || hash(&bytes) != *expected {
            return match from {
                Some(node) if asked => self.missed(blob, piece, node, Missed::Bad),
                // Nobody asked that node for it.
                Some(_) => {}
                None => self.not_fetched(now, &blob, piece, "other bytes came than its hash says"),
            };
        }
        want.flying.remove(&piece);
        want.lacks.remove(piece);
        known.has.insert(piece);
        match from {
            Some(_) => self.exchanged.taken += size,
            None => self.exchanged.fetched += size,
        }
        known.want.take_if(|want| want.lacks.is_empty());
        let enough = known.want.is_none();
        self.outputs.push_back(SwarmOutput::Store { blob, piece, bytes });
        self.say(SwarmSay::Got { blob, piece, from });
        if enough {
            self.all_here(blob);
        }
    }

    pub(super) fn fetched(
        &mut self,
        now: Time,
        blob: Hash,
        piece: u32,
        result: Result<Vec<u8>, String>,
    ) {
        match result {
            Ok(bytes) => self.came(now, blob, piece, None, bytes),
            Err(why) => {
                if let Some(blob) = self.blobs.get(&blob).map(|known| known.blob) {
                    self.not_fetched(now, &blob, piece, &why);
                }
            }
        }
    }

    /// The last resort failed: again after a while, and then no more.
    fn not_fetched(&mut self, now: Time, blob: &BlobRef, piece: u32, why: &str) {
        let known = self.blobs.get_mut(&blob.hash);
        let Some(want) = known.and_then(|known| known.want.as_mut()) else { return };
        let Some(flight) = want.flying.get_mut(&piece).filter(|flight| flight.from.is_none())
        else {
            return;
        };
        if flight.tries < MAX_TRIES {
            flight.due = Some(now + TRY_AGAIN);
            return;
        }
        let why = alloc::format!("piece {piece}: {why}");
        self.drop(blob.hash);
        self.outputs.push_back(SwarmOutput::Failed { blob: *blob, why });
    }

    pub(super) fn refused(&mut self, blob: Hash, piece: u32, from: NodeId) {
        let Some(known) = self.blobs.get(&blob) else { return };
        let flight = known.want.as_ref().and_then(|want| want.flying.get(&piece));
        if flight.is_some_and(|flight| flight.from == Some(from)) {
            self.missed(known.blob, piece, from, Missed::Refused);
        }
    }

    /// All that was to come of it from that node is dealt anew by the coordinator.
    fn missed(&mut self, blob: BlobRef, piece: u32, from: NodeId, why: Missed) {
        let known = self.blobs.get_mut(&blob.hash);
        if let Some(want) = known.and_then(|known| known.want.as_mut()) {
            want.flying.retain(|_, flight| flight.from != Some(from));
        }
        self.say(SwarmSay::Missed { blob, piece, from, why });
    }

    pub(super) fn forget_flights(&mut self, node: NodeId) {
        for want in self.blobs.values_mut().filter_map(|known| known.want.as_mut()) {
            want.flying.retain(|_, flight| flight.from != Some(node));
        }
    }

    /// Pieces that are late, tries that are due, and a coordinator that does not help.
    pub(super) fn look_at_wants(&mut self, now: Time) {
        let (mut late, mut again, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for known in self.blobs.values_mut() {
            let Some(want) = &mut known.want else { continue };
            for (piece, flight) in &mut want.flying {
                if flight.due.is_none_or(|due| now < due) {
                    continue;
                }
                match flight.from {
                    Some(node) => late.push((known.blob, *piece, node)),
                    None => {
                        (flight.due, flight.tries) = (None, flight.tries + 1);
                        again.push((known.blob, *piece));
                    }
                }
            }
            if self.joined && want.flying.is_empty() && now >= want.told + OWN_AFTER {
                own.push(known.blob);
            }
        }
        for (blob, piece, node) in late {
            self.missed(blob, piece, node, Missed::Late);
        }
        for (blob, piece) in again {
            self.outputs.push_back(SwarmOutput::Fetch { blob, piece });
        }
        for blob in own {
            self.fetch_some(now, &blob);
        }
    }

    fn fetch_some(&mut self, now: Time, blob: &BlobRef) {
        let known = self.blobs.get(&blob.hash);
        let Some(want) = known.and_then(|known| known.want.as_ref()) else { return };
        let pieces: Vec<_> = want.lacks.iter().take(OWN_AHEAD).collect();
        let told = want.told;
        self.take(now, blob, &pieces, None);
        // Nobody told: the next ones need not wait as long again.
        let known = self.blobs.get_mut(&blob.hash);
        if let Some(want) = known.and_then(|known| known.want.as_mut()) {
            want.told = told;
        }
    }
}
