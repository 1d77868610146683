//! One other member: what state the link to it is in, and what each input does to it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{Identity, LinkKey, Micros, NodeId, Path, Time};
use shoal_seal::Seal;

use super::MeshOutput;
use super::control::CONTROL;
use super::desk::{Desk, Meter};
use super::line::Line;
use super::shake::{Ends, Shake};
use super::waiting::Waiting;
use crate::link::LinkInput;
use crate::session::RadioDo;

/// Nothing of what is to be said arrives for this long: somebody should know. As long as a link waits.
const SLOW_AFTER: Micros = Micros::from_secs(4);
/// Nothing came for this long, though links say something each second: the peer may have lost its seal.
const SILENT_AFTER: Micros = Micros::from_secs(3);

pub(super) struct OtherMember {
    pub(super) node: NodeId,
    pub(super) identity: Identity,
    pub(super) key: LinkKey,
    /// Its key is signed by its identity.
    pub(super) proven: bool,
    pub(super) state: State,
    pub(super) shake: Shake,
    pub(super) waiting: Waiting,
    hold: bool,
    /// It was named slow, or its handshake forged, since the last good news.
    slow: bool,
    pub(super) accused: bool,
    /// Frames that did not open.
    pub(super) closed: Meter,
    /// Bytes of frames sent to it, in this crew.
    pub(super) relayed: u64,
    pub(super) direct: u64,
}

pub(super) enum State {
    /// Nobody needs a link to it.
    Idle,
    /// A link is wanted; the two have no seal yet.
    Shaking,
    Sealed(Box<Line>),
    /// It is not talked to before the coordinator names it again.
    Shunned,
}

impl OtherMember {
    pub(super) fn new(node: NodeId, identity: Identity, key: LinkKey) -> OtherMember {
        OtherMember {
            node,
            identity,
            key,
            proven: false,
            state: State::Idle,
            shake: Shake::default(),
            waiting: Waiting::default(),
            hold: false,
            slow: false,
            accused: false,
            closed: Meter::default(),
            relayed: 0,
            direct: 0,
        }
    }

    pub(super) fn line(&mut self) -> Option<&mut Line> {
        match &mut self.state {
            State::Sealed(line) => Some(line),
            State::Idle | State::Shaking | State::Shunned => None,
        }
    }

    pub(super) fn sealed(&self) -> Option<&Line> {
        match &self.state {
            State::Sealed(line) => Some(line),
            State::Idle | State::Shaking | State::Shunned => None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.sealed().is_some_and(|line| line.heard && line.shown && line.claims.is_some())
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.sealed().is_some_and(|line| line.link.is_busy())
    }

    pub(super) fn queued_bytes(&self) -> u64 {
        let link = self.sealed().map_or(0, |line| line.link.queued_bytes());
        link + self.waiting.bytes()
    }

    /// Somebody wants a link to it.
    pub(super) fn want(&mut self, now: Time, desk: &mut Desk) {
        if let State::Idle = self.state {
            self.state = State::Shaking;
        }
        if let State::Shaking = self.state
            && !self.shake.is_calling()
        {
            self.call(now, desk);
        }
    }

    /// Begins to agree on keys, at once.
    pub(super) fn call(&mut self, now: Time, desk: &mut Desk) {
        if desk.relay_up {
            let seal = self.sealed().map(|line| line.seal.id());
            let ends = Ends { peer: self.node, key: &self.key, seal };
            self.shake.begin(now, desk, ends);
        }
    }

    /// The crew changed, and it still belongs to it.
    pub(super) fn enter(&mut self, now: Time, desk: &mut Desk) {
        self.waiting.clear();
        (self.slow, self.accused) = (false, false);
        let (node, epoch) = (self.node, desk.epoch);
        match &mut self.state {
            State::Sealed(line) => {
                if line.ladder.forget_words() {
                    desk.put(MeshOutput::Radio(node, RadioDo::Hang));
                }
                line.enter(now, epoch);
                self.show(now, desk);
            }
            // Said in the old epoch, it was not taken.
            State::Shaking => self.call(now, desk),
            State::Shunned => self.state = State::Idle,
            State::Idle => {}
        }
    }

    pub(super) fn relay(&mut self, now: Time, desk: &mut Desk, up: bool) {
        if !up {
            self.shake.rest();
        }
        match &mut self.state {
            State::Sealed(line) => {
                let input =
                    if up { LinkInput::Up(Path::Relay) } else { LinkInput::Down(Path::Relay) };
                line.link.handle(now, input);
                // Silence counts from now on.
                line.heard_at = now;
                self.show(now, desk);
            }
            State::Shaking => self.call(now, desk),
            State::Idle | State::Shunned => {}
        }
    }

    /// There is a new seal, proven by a frame (`heard`) or by the peer's answer. What there was before is over.
    pub(super) fn seal(&mut self, now: Time, desk: &mut Desk, seal: Seal, heard: bool) {
        self.hang(desk);
        self.waiting.take_back();
        let mut line = Box::new(Line::new(now, desk, self.node, seal));
        line.heard = heard;
        if self.hold {
            line.link.handle(now, LinkInput::Hold(true));
        }
        if desk.relay_up {
            line.link.handle(now, LinkInput::Up(Path::Relay));
        }
        self.shake.rest();
        self.state = State::Sealed(line);
        self.show(now, desk);
    }

    /// Says this node's token first of all, then what waits. Chunks of a link are taken in order, so that the
    /// peer knows the token before anything else.
    pub(super) fn show(&mut self, now: Time, desk: &mut Desk) {
        let State::Sealed(line) = &mut self.state else { return };
        if !line.shown && line.has_way(desk) {
            line.shown = true;
            line.say(now, CONTROL, Arc::clone(&desk.token));
        }
        if line.shown {
            for (channel, message) in self.waiting.give() {
                line.say(now, channel, message);
            }
            if line.heard {
                self.waiting.clear();
                self.slow = false;
            }
        }
        self.drain(now, desk);
    }

    pub(super) fn send(&mut self, now: Time, desk: &mut Desk, channel: u16, message: Arc<Vec<u8>>) {
        if let State::Sealed(line) = &mut self.state
            && line.shown
            && line.heard
        {
            line.say(now, channel, message);
            return self.drain(now, desk);
        }
        let shunned = matches!(self.state, State::Shunned);
        if shunned || !self.waiting.add(now, channel, message) {
            return desk.put(MeshOutput::Refused { to: self.node, channel });
        }
        self.want(now, desk);
        self.show(now, desk);
    }

    pub(super) fn hold(&mut self, now: Time, desk: &mut Desk, hold: bool) {
        self.hold = hold;
        if let Some(line) = self.line() {
            line.link.handle(now, LinkInput::Hold(hold));
            self.drain(now, desk);
        }
    }

    /// It did what no honest member does: nothing more is said to it or heard of it.
    pub(super) fn shun(&mut self, desk: &mut Desk, why: String) {
        self.leave(desk);
        self.state = State::Shunned;
        desk.accuse(self.node, why);
    }

    /// It does not belong to the crew any more.
    pub(super) fn leave(&mut self, desk: &mut Desk) {
        self.hang(desk);
        self.shake = Shake::default();
        self.waiting.clear();
        self.state = State::Idle;
    }

    pub(super) fn tick(&mut self, now: Time, desk: &mut Desk) {
        let due = |due: Option<Time>| due.is_some_and(|due| due <= now);
        if due(self.shake.due()) {
            let seal = self.sealed().map(|line| line.seal.id());
            let ends = Ends { peer: self.node, key: &self.key, seal };
            self.shake.repeat(now, desk, ends);
        } else if due(self.silence_due(desk)) {
            self.call(now, desk);
        }
        if due(self.slow_due(desk)) {
            self.slow = true;
            desk.put(MeshOutput::Slow(self.node));
        }
        let node = self.node;
        let Some(line) = self.line() else { return };
        if line.ladder.gives_up(now) {
            line.ladder.fall(now);
            desk.put(MeshOutput::Radio(node, RadioDo::Hang));
        }
        if due(line.link.next_timeout()) {
            line.link.handle(now, LinkInput::Tick);
        }
        self.climb(now, desk);
        self.drain(now, desk);
    }

    pub(super) fn next_timeout(&self, desk: &Desk) -> Option<Time> {
        let dials = desk.calls(self.node);
        let line = self.sealed();
        let link = line.and_then(|line| line.link.next_timeout());
        let ladder = line.filter(|line| !dials || line.claims.is_some());
        let ladder = ladder.and_then(|line| line.ladder.due(dials));
        let all = [self.shake.due(), self.silence_due(desk), self.slow_due(desk), link, ladder];
        all.into_iter().flatten().min()
    }

    /// When the calling end asks whether the peer still has its seal.
    fn silence_due(&self, desk: &Desk) -> Option<Time> {
        let line = self.sealed()?;
        let may = desk.relay_up && desk.calls(self.node) && !self.shake.is_calling();
        may.then_some(line.heard_at + SILENT_AFTER)
    }

    /// When a peer that never answered is named.
    fn slow_due(&self, desk: &Desk) -> Option<Time> {
        let since = self.waiting.since().filter(|_| desk.relay_up && !self.slow)?;
        Some(since + SLOW_AFTER)
    }

    /// Panics where an invariant does not hold.
    pub(super) fn check(&self, desk: &Desk) {
        self.shake.check();
        self.waiting.check();
        let Some(line) = self.sealed() else { return };
        line.link.check();
        assert!(
            !line.heard || !line.shown || self.waiting.is_empty(),
            "something waits for nothing"
        );
        if let Some(claims) = &line.claims {
            assert_eq!(claims.epoch, desk.epoch, "a token of another epoch is in force");
            assert_eq!((claims.crew, claims.holder), (desk.crew(), self.node));
        }
    }
}
