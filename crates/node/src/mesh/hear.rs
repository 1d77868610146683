//! Frames come, and what links make of them goes on: to the program, to the radio, or into the peer's record.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::frame;
use shoal_protocol::{FrameKind, Header, LinkReport, Path, Time};

use super::control::{CONTROL, Control};
use super::desk::Desk;
use super::peer::{OtherMember, State};
use super::shake::{Ends, Step};
use super::{Mesh, MeshOutput};
use crate::link::{Broken, LinkInput, LinkOutput};
use crate::session::RadioDo;

/// Frames of one peer in a second that do not open. One that lost its seal without leaving says no more than
/// its window holds.
const CLOSED_PER_SECOND: u32 = 4_096;

impl Mesh {
    /// A frame from the relay.
    pub(super) fn hear(&mut self, now: Time, bytes: &[u8]) {
        let desk = &mut self.desk;
        let Ok((header, payload)) = frame::split(bytes) else {
            desk.dropped.stray += 1;
            return;
        };
        let here = Some(header.crew) == desk.crew && header.destination == desk.me();
        let Some(peer) = self.peers.get_mut(&header.source).filter(|_| here) else {
            desk.dropped.stray += 1;
            return;
        };
        match header.kind {
            FrameKind::Handshake => peer.hear_step(now, desk, &header, payload),
            FrameKind::Sealed => peer.hear_sealed(now, desk, header, bytes),
            // Nothing of the relay's way counts that is not sealed.
            FrameKind::Plain => desk.dropped.stray += 1,
        }
    }
}

impl OtherMember {
    fn hear_step(&mut self, now: Time, desk: &mut Desk, header: &Header, payload: &[u8]) {
        if let State::Shunned = self.state {
            desk.dropped.stray += 1;
            return;
        }
        if header.epoch != desk.epoch {
            desk.dropped.other_epoch += 1;
            return;
        }
        let seal = self.line().map(|line| line.seal.id());
        let ends = Ends { peer: self.node, key: &self.key, seal };
        match self.shake.hear(now, desk, ends, payload) {
            Step::Nothing => {}
            Step::Wanted if desk.calls(self.node) => {
                if let State::Idle = self.state {
                    self.state = State::Shaking;
                }
                self.call(now, desk);
            }
            Step::Wanted => {
                if self.line().is_none() {
                    self.state = State::Shaking;
                    self.shake.expect(now);
                }
            }
            Step::Confirmed => {
                if let Some(line) = self.line() {
                    line.heard_at = now;
                }
            }
            Step::Sealed(seal) => self.seal(now, desk, seal, false),
            Step::Forged => {
                // Said once: the relay may have made it up.
                if !core::mem::replace(&mut self.accused, true) {
                    desk.accuse(self.node, "its handshake is not of its key".into());
                }
            }
        }
    }

    fn hear_sealed(&mut self, now: Time, desk: &mut Desk, header: Header, bytes: &[u8]) {
        let mut scratch = core::mem::take(&mut desk.scratch);
        if let Some(words) = self.open(now, desk, bytes, &mut scratch) {
            self.hear_words(now, desk, Path::Relay, header, words);
        } else {
            desk.dropped.closed += 1;
            let shunned = matches!(self.state, State::Shunned);
            if !shunned && !self.closed.is_within(now, CLOSED_PER_SECOND) {
                self.shun(desk, "it floods this node with frames that do not open".into());
            }
        }
        desk.scratch = scratch;
    }

    /// Opens a frame with the seal there is, or with one that it proves.
    fn open<'a>(
        &mut self,
        now: Time,
        desk: &mut Desk,
        frame: &[u8],
        into: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let line = self.line();
        let opened = line.and_then(|line| line.seal.open(frame, into).ok().map(<[u8]>::len));
        let length = match (opened, &self.state) {
            (Some(length), _) => length,
            (None, State::Shunned) => return None,
            (None, State::Idle | State::Shaking | State::Sealed(_)) => {
                let (seal, length) = self.shake.prove(frame, into)?;
                self.seal(now, desk, seal, true);
                length
            }
        };
        into.get(..length)
    }

    /// A frame from the direct channel, which has its own seal: what comes this way is the peer's doing.
    pub(super) fn hear_direct(&mut self, now: Time, desk: &mut Desk, bytes: &[u8]) {
        if !self.line().is_some_and(|line| line.ladder.is_up()) {
            desk.dropped.stray += 1;
            return;
        }
        match frame::split(bytes) {
            Ok((header, payload)) => self.hear_words(now, desk, Path::Direct, header, payload),
            Err(error) => self.shun(desk, format!("on its direct channel came {error}")),
        }
    }

    fn hear_words(
        &mut self,
        now: Time,
        desk: &mut Desk,
        path: Path,
        header: Header,
        payload: &[u8],
    ) {
        let Some(line) = self.line() else { return };
        let first = !line.heard && header.epoch == desk.epoch;
        (line.heard, line.heard_at) = (line.heard || first, now);
        line.link.handle(now, LinkInput::Frame { path, header, payload });
        if first {
            self.show(now, desk);
        } else {
            self.drain(now, desk);
        }
    }

    /// Does what the link wants done.
    pub(super) fn drain(&mut self, now: Time, desk: &mut Desk) {
        let node = self.node;
        while let Some(output) = self.line().and_then(|line| line.link.poll_output()) {
            match output {
                LinkOutput::Frame { path, bytes, .. } => self.post(desk, path, bytes),
                LinkOutput::Message { channel: CONTROL, bytes } => {
                    self.hear_control(now, desk, &bytes);
                }
                LinkOutput::Message { channel, bytes } => {
                    self.hear_message(now, desk, channel, bytes);
                }
                LinkOutput::Refused { channel, .. } => {
                    desk.put(MeshOutput::Refused { to: node, channel });
                }
                LinkOutput::Using(path) => {
                    if let Some(line) = self.line() {
                        line.using = Some(path);
                    }
                    desk.put(MeshOutput::Using(node, path));
                }
                LinkOutput::Measured { path, round_trip, bytes_per_second, loss } => {
                    let using = self.line().and_then(|line| line.using);
                    if using == Some(path) {
                        let (relayed, direct) = (self.relayed, self.direct);
                        desk.put(MeshOutput::Report(LinkReport {
                            with: node,
                            via: path,
                            round_trip,
                            bytes_per_second,
                            loss,
                            relayed,
                            direct,
                        }));
                    }
                }
                LinkOutput::Stalled { .. } => desk.put(MeshOutput::Slow(node)),
                LinkOutput::Flowing => {}
                LinkOutput::Broken(reason) => {
                    self.shun(desk, broken(reason).into());
                }
            }
        }
    }

    fn post(&mut self, desk: &mut Desk, path: Path, mut bytes: Vec<u8>) {
        match path {
            Path::Relay => {
                let Some(line) = self.line() else { return };
                line.seal.seal(&mut bytes);
                self.relayed += bytes.len() as u64;
                desk.put(MeshOutput::Relay(bytes));
            }
            Path::Direct => {
                self.direct += bytes.len() as u64;
                desk.put(MeshOutput::Direct(self.node, bytes));
            }
        }
    }

    fn hear_message(&mut self, now: Time, desk: &mut Desk, channel: u16, bytes: Vec<u8>) {
        let Some(line) = self.line() else { return };
        match line.may_write(now, desk, channel) {
            Ok(()) => desk.put(MeshOutput::Message { from: self.node, channel, bytes }),
            Err(why) => self.shun(desk, why),
        }
    }

    fn hear_control(&mut self, now: Time, desk: &mut Desk, bytes: &[u8]) {
        let node = self.node;
        let Some(line) = self.line() else { return };
        let control = Control::decode(bytes);
        let token = matches!(control, Some(Control::Token(_)));
        if line.claims.is_none() && !token {
            return self.shun(desk, "it spoke before it showed its token".into());
        }
        match control {
            Some(Control::Token(token)) => match line.shown_token(now, desk, node, token) {
                Ok(()) => self.climb(now, desk),
                Err(why) => self.shun(desk, why),
            },
            Some(Control::Radio { .. }) if !desk.config.tries_direct => {
                line.say(now, CONTROL, Arc::new(Control::NoRadio.encode()));
            }
            Some(Control::Radio { dial, words }) => self.hear_radio(now, desk, dial, words),
            Some(Control::NoRadio) => {
                if line.ladder.never() {
                    line.link.handle(now, LinkInput::Down(Path::Direct));
                    desk.put(MeshOutput::Radio(node, RadioDo::Hang));
                }
            }
            Some(Control::Hung { dial }) => self.hear_hung(now, desk, dial),
            Some(Control::Unknown) => {}
            None => self.shun(desk, "it says words on channel 0 that are none".into()),
        }
    }
}

fn broken(reason: Broken) -> &'static str {
    match reason {
        Broken::Flood => "it sent more than it may, or only noise",
        Broken::WrongLength => "it sent a message or frame that is not as long as it says",
        Broken::TooLong => "it began a message longer than any may be",
        Broken::Forged => "it spoke in another's name, or to another",
        Broken::Garbled => "it sent words that are none, or about what never was",
        Broken::Disorder => "it sent pieces that are not of the message whose turn it is",
        Broken::WrongHash => "it sent a message that failed its hash, twice",
    }
}
