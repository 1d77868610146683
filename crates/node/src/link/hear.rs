//! A frame came: is it the peer's, of this epoch and new? Then its words are taken.

use alloc::vec::Vec;
use shoal_protocol::limit::{MAX_LINK_FRAME, SEAL_BYTES};
use shoal_protocol::{Header, Micros, Path, Time};

use super::chunk::Words;
use super::{Broken, Link, LinkOutput};

/// Frames of an epoch this node has not heard of yet, kept because the news comes another way and may be
/// late. More are not acknowledged and come again.
pub(super) const MOST_AHEAD: usize = 16;
/// Frames in one second that bring no new chunk, beside two for each of ours: pings, and copies when a
/// path is lost, are far fewer.
const USELESS_FRAMES: u64 = 4_096;
/// Measurements are told no more often.
const TELL_EVERY: Micros = Micros::from_secs(1);

/// A frame as the shell gave it.
pub(super) struct Ahead {
    path: Path,
    pub(super) header: Header,
    payload: Vec<u8>,
}

/// Frames that were not taken, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Of an older epoch.
    pub stale: u64,
    /// Of an epoch not heard of yet, beyond the few that are kept.
    pub early: u64,
    /// Heard before, or so late that it might have been.
    pub replayed: u64,
    /// Of another crew, or of a kind that does not belong on its path.
    pub stray: u64,
}

/// Guards against a peer that only makes noise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    since: Time,
    useless: u64,
    pub(super) said: u64,
}

impl Noise {
    fn add(&mut self, now: Time) -> Result<(), Broken> {
        if now - self.since >= Micros::from_secs(1) {
            *self = Noise { since: now, ..Noise::default() };
        }
        self.useless += 1;
        if self.useless > USELESS_FRAMES + 2 * self.said { Err(Broken::Flood) } else { Ok(()) }
    }
}

impl Link {
    pub(super) fn hear(
        &mut self,
        now: Time,
        path: Path,
        header: Header,
        payload: &[u8],
    ) -> Result<(), Broken> {
        if header.kind != path.kind() || header.crew != self.config.crew {
            self.dropped.stray += 1;
            return self.noise.add(now);
        }
        if header.source != self.config.peer || header.destination != self.config.me {
            return Err(Broken::Forged);
        }
        let sealed = if path == Path::Relay { SEAL_BYTES } else { 0 };
        if header.length as usize != payload.len() + sealed || payload.len() > MAX_LINK_FRAME {
            return Err(Broken::WrongLength);
        }
        if header.epoch < self.config.epoch {
            self.dropped.stale += 1;
            return self.noise.add(now);
        }
        if header.epoch > self.config.epoch {
            if self.ahead.len() >= MOST_AHEAD {
                self.dropped.early += 1;
                return self.noise.add(now);
            }
            self.ahead.push(Ahead { path, header, payload: payload.to_vec() });
            return Ok(());
        }
        if !self.replay.take(header.sequence) {
            self.dropped.replayed += 1;
            return self.noise.add(now);
        }
        let words = Words::decode(payload).ok_or(Broken::Garbled)?;
        self.take(now, path, header, words)
    }

    fn take(
        &mut self,
        now: Time,
        path: Path,
        header: Header,
        words: Words<'_>,
    ) -> Result<(), Broken> {
        if !self.met {
            // The peer has heard of this epoch now: what was said into the void may go again soon.
            self.met = true;
            self.outgoing.flight.progress(now);
            self.outgoing.flight.calm();
        }
        if words.probe {
            self.paths.of_mut(path).echo = Some(header.sequence);
        }
        self.outgoing.grant(words.granted);
        if let Some((channel, message)) = words.refused {
            self.outgoing.rewind(channel, message);
        }
        let waiting = self.outgoing.is_waiting();
        let (next, have) = (words.next, words.have);
        let news = self.outgoing.flight.acknowledge(now, next, have, waiting, &mut self.paths)?;
        if news {
            self.outgoing.retire();
        }
        if let Some(echo) = words.echo {
            self.echoed(now, path, echo);
        }
        self.paths.of_mut(path).hears();
        let mut done = Vec::new();
        let new = match words.chunk {
            Some(chunk) => self.incoming.take(now, header.channel, chunk, &mut done)?,
            None => false,
        };
        for (channel, bytes) in done {
            self.outputs.push_back(LinkOutput::Message { channel, bytes });
        }
        if new { Ok(()) } else { self.noise.add(now) }
    }

    /// The epoch this node just entered may have been spoken in already.
    pub(super) fn hear_again(&mut self, now: Time) -> Result<(), Broken> {
        for Ahead { path, header, payload } in core::mem::take(&mut self.ahead) {
            self.hear(now, path, header, &payload)?;
        }
        Ok(())
    }

    fn echoed(&mut self, now: Time, path: Path, echo: u64) {
        let Some(probe) = self.paths.of_mut(path).echoed(now, echo) else { return };
        self.outgoing.flight.calm();
        // A path was full if there was more to say all the time. What arrived by the other path while the
        // choice changed counts too; it does so once.
        if self.paths.chosen() == Some(path) {
            let arrived = self.outgoing.flight.delivered().saturating_sub(probe.delivered);
            let full = probe.waiting && self.outgoing.is_waiting();
            let way = self.paths.of_mut(path);
            way.rate_is(now, arrived, now - probe.left, full);
            if full {
                way.round();
            }
        }
        self.tell(now, path);
    }

    fn tell(&mut self, now: Time, path: Path) {
        let way = self.paths.of_mut(path);
        if way.told.is_some_and(|told| now - told < TELL_EVERY) {
            return;
        }
        way.told = Some(now);
        let (round_trip, loss) = (way.round_trip().unwrap_or_default(), way.loss());
        let bytes_per_second = way.rate(now);
        self.outputs.push_back(LinkOutput::Measured { path, round_trip, bytes_per_second, loss });
    }
}
