//! A peer's ladder: this node's radio is told what to do, and the link hears of direct channels.

use alloc::sync::Arc;
use shoal_protocol::{Path, Time};

use super::MeshOutput;
use super::control::{CONTROL, Control, MAX_RADIO_BYTES};
use super::desk::Desk;
use super::peer::OtherMember;
use super::radio::Heard;
use crate::link::LinkInput;
use crate::session::RadioDo;

impl OtherMember {
    /// The radio has a direct channel.
    pub(super) fn rise(&mut self, now: Time, desk: &mut Desk) {
        let Some(line) = self.line() else { return };
        if line.ladder.rise(now) {
            line.link.handle(now, LinkInput::Up(Path::Direct));
            self.show(now, desk);
        }
    }

    /// The direct channel is gone, or did not come. The peer may not know.
    pub(super) fn fall(&mut self, now: Time, desk: &mut Desk) {
        let Some(line) = self.line().filter(|line| line.ladder.is_busy()) else { return };
        if line.ladder.fall(now) {
            line.link.handle(now, LinkInput::Down(Path::Direct));
        }
        if line.shown {
            let hung = Control::Hung { dial: line.ladder.dial_number() }.encode();
            line.say(now, CONTROL, Arc::new(hung));
        }
        self.drain(now, desk);
    }

    /// The channel is gone at the peer's end.
    pub(super) fn hear_hung(&mut self, now: Time, desk: &mut Desk, dial: u32) {
        let node = self.node;
        let Some(line) = self.line() else { return };
        if line.ladder.is_busy() && line.ladder.dial_number() == dial {
            if line.ladder.fall(now) {
                line.link.handle(now, LinkInput::Down(Path::Direct));
            }
            desk.put(MeshOutput::Radio(node, RadioDo::Hang));
        }
    }

    /// This node's radio has words for the peer's.
    pub(super) fn radio_says(&mut self, now: Time, desk: &mut Desk, words: &[u8]) {
        let Some(line) = self.line().filter(|line| line.shown && line.ladder.is_busy()) else {
            return;
        };
        if words.len() <= MAX_RADIO_BYTES {
            let words = Control::Radio { dial: line.ladder.dial_number(), words }.encode();
            line.say(now, CONTROL, Arc::new(words));
            self.drain(now, desk);
        }
    }

    /// Dials, if it is this end's turn and the time for it.
    pub(super) fn climb(&mut self, now: Time, desk: &mut Desk) {
        if !desk.config.tries_direct || !desk.calls(self.node) {
            return;
        }
        let node = self.node;
        let Some(line) = self.line().filter(|line| line.claims.is_some()) else { return };
        if line.ladder.dial(now) {
            desk.put(MeshOutput::Radio(node, RadioDo::Dial));
        }
    }

    /// What the radio does for this link is over.
    pub(super) fn hang(&mut self, desk: &mut Desk) {
        if self.sealed().is_some_and(|line| line.ladder.is_busy()) {
            desk.put(MeshOutput::Radio(self.node, RadioDo::Hang));
        }
    }

    /// The peer's radio has words for this node's.
    pub(super) fn hear_radio(&mut self, now: Time, desk: &mut Desk, dial: u32, words: &[u8]) {
        let (node, dials) = (self.node, desk.calls(self.node));
        let Some(line) = self.line() else { return };
        match line.ladder.hear(now, dial, dials) {
            Heard::Late => return,
            Heard::Now => {}
            Heard::Anew { was_up } => {
                if was_up {
                    line.link.handle(now, LinkInput::Down(Path::Direct));
                }
                desk.put(MeshOutput::Radio(node, RadioDo::Listen));
            }
            Heard::Flood => return self.shun(desk, "its radio does not stop talking".into()),
        }
        desk.put(MeshOutput::Radio(node, RadioDo::Hear(words.to_vec())));
    }
}
