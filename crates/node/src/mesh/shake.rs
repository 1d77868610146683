//! Agreeing on keys with one peer, through the relay, where messages are lost, doubled and replayed. The node
//! with the lower number calls, the other answers; it may ask to be called.
//!
//! Repeating is harmless: the same call gets the same answer. Each tells the other which seal it has, so that
//! nobody gives up a link that the other still uses. A call may be a copy of an old one: the called node keeps
//! what comes of it beside the seal in use, until a frame opens with it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use shoal_protocol::{FrameKind, Header, LinkKey, Micros, NodeId, Time};
use shoal_seal::{Handshake, Seal};

use super::MeshOutput;
use super::desk::{Desk, Meter};

/// Said again after this long, then twice as long each time: a round trip through the relay and some.
const FIRST_PATIENCE: Micros = Micros::from_millis(300);
const MOST_PATIENCE: Micros = Micros::from_secs(5);
/// Agreements that no frame has proven yet. One is usual; more come of replayed calls and restarts.
pub(super) const MOST_CANDIDATES: usize = 4;
/// New calls of one peer, and its wishes to be called, that are taken in a second: each costs a fraction of a
/// millisecond, and an honest peer has one or two.
const STEPS_PER_SECOND: u32 = 8;

/// What a handshake frame's payload begins with.
const CALL: u8 = 1;
const ANSWER: u8 = 2;
const ASK: u8 = 3;

#[derive(Default)]
pub(super) struct Shake {
    /// The calling end: what was said and waits for its answer.
    call: Option<Call>,
    /// The called end: what no frame has proven yet, oldest first.
    candidates: VecDeque<Candidate>,
    /// When to say it again, and how long after that.
    due: Option<Time>,
    patience: Micros,
    steps: Meter,
}

struct Call {
    handshake: Handshake,
    first: Vec<u8>,
}

struct Candidate {
    first: Vec<u8>,
    answer: Vec<u8>,
    seal: Seal,
}

/// What a step of the peer brought about.
pub(super) enum Step {
    Nothing,
    /// The peer wants a link, or to be called.
    Wanted,
    /// The peer still has the seal that this end has.
    Confirmed,
    Sealed(Seal),
    /// Not said by the owner of the peer's key.
    Forged,
}

/// The two ends, and the seal this one has.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub(super) peer: NodeId,
    pub(super) key: &'a LinkKey,
    pub(super) seal: Option<u64>,
}

impl Shake {
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    pub(super) fn is_calling(&self) -> bool {
        self.due.is_some()
    }

    /// Begins, or begins again at once.
    pub(super) fn begin(&mut self, now: Time, desk: &mut Desk, ends: Ends<'_>) {
        self.patience = FIRST_PATIENCE;
        self.repeat(now, desk, ends);
    }

    /// The peer called: it is asked again only if nothing comes of that.
    pub(super) fn expect(&mut self, now: Time) {
        self.patience = self.patience.max(FIRST_PATIENCE);
        self.due = Some(now + self.patience);
    }

    /// There is nothing to agree on for now.
    pub(super) fn rest(&mut self) {
        (self.due, self.call) = (None, None);
    }

    /// Calls, or asks to be called; and again later.
    pub(super) fn repeat(&mut self, now: Time, desk: &mut Desk, ends: Ends<'_>) {
        self.due = Some(now + self.patience);
        self.patience = Micros(2 * self.patience.0).min(MOST_PATIENCE);
        if !desk.calls(ends.peer) {
            return send(desk, ends.peer, ASK, &[]);
        }
        if self.call.is_none() {
            let (seed, parties) = (desk.draw(), desk.parties(ends.peer));
            let word = ends.seal.unwrap_or(0).to_le_bytes();
            let keys = &desk.config.keys;
            let called = Handshake::initiate(keys, ends.key, &parties, seed, &word);
            let Ok((handshake, first)) = called else { return };
            self.call = Some(Call { handshake, first });
        }
        if let Some(call) = &self.call {
            send(desk, ends.peer, CALL, &call.first);
        }
    }

    /// A handshake frame of the peer.
    pub(super) fn hear(
        &mut self,
        now: Time,
        desk: &mut Desk,
        ends: Ends<'_>,
        payload: &[u8],
    ) -> Step {
        let calls = desk.calls(ends.peer);
        match payload.split_first() {
            Some((&CALL, first)) if !calls => self.answer(now, desk, ends, first),
            Some((&ANSWER, answer)) if calls => self.finish(desk, answer),
            Some((&ASK, [])) if calls => {
                if self.steps.is_within(now, STEPS_PER_SECOND) {
                    return Step::Wanted;
                }
                desk.dropped.flood += 1;
                Step::Nothing
            }
            Some(_) | None => {
                desk.dropped.stray += 1;
                Step::Nothing
            }
        }
    }

    fn answer(&mut self, now: Time, desk: &mut Desk, ends: Ends<'_>, first: &[u8]) -> Step {
        if let Some(known) = self.candidates.iter().find(|candidate| candidate.first == first) {
            send(desk, ends.peer, ANSWER, &known.answer);
            return Step::Nothing;
        }
        if !self.steps.is_within(now, STEPS_PER_SECOND) {
            desk.dropped.flood += 1;
            return Step::Nothing;
        }
        let (seed, parties) = (desk.draw(), desk.parties(ends.peer));
        let heard = Handshake::respond(&desk.config.keys, ends.key, &parties, seed, first);
        let Ok(answering) = heard else {
            desk.dropped.forged += 1;
            return Step::Forged;
        };
        let theirs = <[u8; 8]>::try_from(answering.word()).map_or(0, u64::from_le_bytes);
        let knows = theirs != 0
            && (ends.seal == Some(theirs)
                || self.candidates.iter().any(|candidate| candidate.seal.id() == theirs));
        let Ok((seal, answer)) = answering.answer(&[u8::from(knows)]) else { return Step::Nothing };
        send(desk, ends.peer, ANSWER, &answer);
        if self.candidates.len() >= MOST_CANDIDATES {
            self.candidates.pop_front();
        }
        self.candidates.push_back(Candidate { first: first.to_vec(), answer, seal });
        Step::Wanted
    }

    fn finish(&mut self, desk: &mut Desk, answer: &[u8]) -> Step {
        let Some(call) = &mut self.call else {
            // The answer to a call that was repeated, or an old one.
            return Step::Nothing;
        };
        let Ok((seal, word)) = call.handshake.finish(answer) else {
            desk.dropped.forged += 1;
            return Step::Nothing;
        };
        self.rest();
        if word == [1] { Step::Confirmed } else { Step::Sealed(seal) }
    }

    /// The seal that opens this frame, and how many words came out of it. Older ones are of earlier lives and
    /// forgotten.
    pub(super) fn prove(&mut self, frame: &[u8], into: &mut Vec<u8>) -> Option<(Seal, usize)> {
        let mut opens =
            |candidate: &Candidate| candidate.seal.open(frame, into).ok().map(<[u8]>::len);
        let candidates = self.candidates.iter().enumerate().rev();
        let (at, length) = candidates.filter_map(|(at, one)| Some((at, opens(one)?))).next()?;
        let proven = self.candidates.drain(..=at).next_back()?;
        Some((proven.seal, length))
    }

    /// Panics where an invariant does not hold.
    pub(super) fn check(&self) {
        assert!(self.candidates.len() <= MOST_CANDIDATES, "too many unproven agreements");
        assert!(self.call.is_none() || self.due.is_some(), "a call that is never repeated");
    }
}

fn send(desk: &mut Desk, to: NodeId, step: u8, message: &[u8]) {
    let header = Header {
        kind: FrameKind::Handshake,
        channel: 0,
        length: message.len() as u32 + 1,
        source: desk.me(),
        destination: to,
        crew: desk.crew(),
        epoch: desk.epoch,
        sequence: 0,
    };
    let frame = [header.encode().as_slice(), &[step], message].concat();
    desk.put(MeshOutput::Relay(frame));
}
