//! Pieces that other nodes ask for. Only what the coordinator allowed is given, only directly, and only so much at a
//! time.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_PIECES_ASKED;
use shoal_protocol::{Hash, Micros, NodeId, PieceWord, Time};

use super::{SwarmOutput, Swarms};

/// A question may be here before the coordinator's word that it may be answered; it waits this long for it.
const WORD_COMES: Micros = Micros::from_secs(3);
/// Questions of all nodes together: what the coordinator deals of one node, and as much again.
const MAX_ASKS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) to: NodeId,
    blob: Hash,
    piece: u32,
    state: AskState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskState {
    /// Not allowed yet.
    Waits { until: Time },
    /// The shell reads the piece.
    Loading,
}

impl Ask {
    pub(super) fn due(&self) -> Option<Time> {
        match self.state {
            AskState::Waits { until } => Some(until),
            AskState::Loading => None,
        }
    }
}

pub(super) fn check(asks: &[Ask]) {
    assert!(asks.len() <= MAX_ASKS, "too many questions are kept");
    for ask in asks {
        let of_one = asks.iter().filter(|other| other.to == ask.to).count();
        assert!(of_one <= MAX_PIECES_ASKED, "too many questions of node {}", ask.to);
    }
}

impl Swarms {
    pub(super) fn asked(&mut self, now: Time, to: NodeId, blob: Hash, piece: u32) {
        let of_one = self.asks.iter().filter(|ask| ask.to == to).count();
        let room = self.asks.len() < MAX_ASKS && of_one < MAX_PIECES_ASKED;
        let has = self.blobs.get(&blob).is_some_and(|known| known.has.has(piece));
        // By the relay it would go through the coordinator, which can give it better itself.
        if !room || !has || !self.near.contains(&to) {
            return self.tell(to, &PieceWord::Not { blob, piece });
        }
        let state = AskState::Waits { until: now + WORD_COMES };
        self.asks.push(Ask { to, blob, piece, state });
        self.load_allowed();
    }

    pub(super) fn allow(&mut self, blob: Hash, to: NodeId) {
        // Both come from the coordinator, which bounds them.
        if self.blobs.contains_key(&blob) {
            self.allowed.insert((to, blob));
            self.load_allowed();
        }
    }

    fn load_allowed(&mut self) {
        for ask in &mut self.asks {
            let allowed = self.allowed.contains(&(ask.to, ask.blob));
            if ask.state == AskState::Loading || !allowed {
                continue;
            }
            let Some(known) = self.blobs.get(&ask.blob) else { continue };
            ask.state = AskState::Loading;
            let (blob, piece, to) = (known.blob, ask.piece, ask.to);
            self.outputs.push_back(SwarmOutput::Load { blob, piece, to });
        }
    }

    pub(super) fn loaded(&mut self, blob: Hash, piece: u32, to: NodeId, bytes: Option<&[u8]>) {
        let same = |ask: &Ask| (ask.to, ask.blob, ask.piece) == (to, blob, piece);
        let Some(at) = self.asks.iter().position(|ask| same(ask) && ask.due().is_none()) else {
            return;
        };
        self.asks.remove(at);
        match bytes {
            Some(bytes) => {
                self.exchanged.given += bytes.len() as u64;
                self.tell(to, &PieceWord::Here { blob, piece, bytes });
            }
            None => {
                self.tell(to, &PieceWord::Not { blob, piece });
                self.lost(blob, piece);
            }
        }
    }

    /// The disk does not have it after all, so nobody is to be sent here for it.
    fn lost(&mut self, blob: Hash, piece: u32) {
        if self.blobs.get_mut(&blob).is_some_and(|known| known.has.remove(piece)) {
            self.say_part(blob);
        }
    }

    pub(super) fn look_at_asks(&mut self, now: Time) {
        let over = |ask: &Ask| ask.due().is_some_and(|due| due <= now);
        let refused: Vec<_> = self.asks.iter().filter(|ask| over(ask)).copied().collect();
        self.asks.retain(|ask| !over(ask));
        for Ask { to, blob, piece, .. } in refused {
            self.tell(to, &PieceWord::Not { blob, piece });
        }
    }
}
