//! A member that has its keys and does not play by the rules: it agrees on a seal with a true mesh, and then
//! says what it likes.

use std::sync::Arc;

use shoal_node::link::{Link, LinkConfig, LinkInput, LinkOutput};
use shoal_node::mesh::*;
use shoal_protocol::frame::{self, HEADER_BYTES};
use shoal_protocol::*;
use shoal_seal::{Handshake, Keys, Parties, Seal, present};

use crate::crew::{CREW, coordinator};
use crate::world::World;

/// Whom it talks to, and who it is: the one with the higher number is called.
pub(crate) const VICTIM: u64 = 1;
pub(crate) const LIAR: u64 = 2;

pub(crate) struct Liar {
    pub(crate) seal: Seal,
    link: Link,
    /// Frames of the relay it has looked at.
    seen: usize,
}

pub(crate) fn parties() -> Parties {
    let (caller, called) = (NodeId(VICTIM), NodeId(LIAR));
    Parties { coordinator: coordinator(), crew: CREW, caller, called }
}

/// A crew of two whose second member is nobody yet.
pub(crate) fn world() -> World {
    let mut world = World::new(1, 1);
    world.members.push(NodeId(LIAR));
    world.enlist();
    world
}

pub(crate) fn header(kind: FrameKind, length: usize) -> Header {
    Header {
        kind,
        channel: 0,
        length: length as u32,
        source: NodeId(LIAR),
        destination: NodeId(VICTIM),
        crew: CREW,
        epoch: Epoch(1),
        sequence: 0,
    }
}

/// The words of a token, as they are said on channel 0.
pub(crate) fn token_words(token: &[u8]) -> Vec<u8> {
    let shown = present(token).unwrap_or_else(|_| token.to_vec());
    [&[1], shown.as_slice()].concat()
}

/// The words of a radio.
pub(crate) fn radio_words(dial: u32, words: &[u8]) -> Vec<u8> {
    [[2].as_slice(), &dial.to_le_bytes(), words].concat()
}

impl Liar {
    /// Answers the victim's call.
    pub(crate) fn meet(world: &mut World) -> Liar {
        let call = world.seen.iter().rev().find(|bytes| bytes[1] == FrameKind::Handshake as u8);
        let first = call.unwrap()[HEADER_BYTES + 1..].to_vec();
        let keys = Keys::new([LIAR as u8; 32]);
        let victim = Keys::new([VICTIM as u8; 32]).public();
        let answering = Handshake::respond(&keys, &victim, &parties(), [77; 32], &first).unwrap();
        let (seal, answer) = answering.answer(&[0]).unwrap();
        let payload = [&[2], answer.as_slice()].concat();
        let header = header(FrameKind::Handshake, payload.len());
        world.give(
            NodeId(VICTIM),
            MeshInput::Relay(&[header.encode().as_slice(), &payload].concat()),
        );
        let (me, peer, epoch) = (NodeId(LIAR), NodeId(VICTIM), Epoch(1));
        let mut link = Link::new(world.clock.now, LinkConfig { me, peer, crew: CREW, epoch });
        link.handle(world.clock.now, LinkInput::Up(Path::Relay));
        let mut liar = Liar { seal, link, seen: 0 };
        liar.pump(world);
        liar
    }

    /// As an honest member begins.
    pub(crate) fn trusted(world: &mut World) -> Liar {
        let mut liar = Liar::meet(world);
        let token = world.token(NodeId(LIAR), |claims| claims);
        liar.say(world, CONTROL, &token_words(&token));
        assert!(world.mesh(VICTIM).is_open(NodeId(LIAR)));
        liar
    }

    pub(crate) fn say(&mut self, world: &mut World, channel: u16, bytes: &[u8]) {
        let message = Arc::new(bytes.to_vec());
        self.link.handle(world.clock.now, LinkInput::Send { channel, message });
        self.pump(world);
    }

    /// Any words, sealed as they must be.
    pub(crate) fn seal(&self, header: Header, words: &[u8]) -> Vec<u8> {
        let mut frame = [header.encode().as_slice(), words].concat();
        self.seal.seal(&mut frame);
        frame
    }

    /// What is on the way between the two arrives.
    pub(crate) fn pump(&mut self, world: &mut World) {
        loop {
            let mut quiet = true;
            while let Some(output) = self.link.poll_output() {
                if let LinkOutput::Frame { header, bytes, .. } = output {
                    let words = &bytes[HEADER_BYTES..];
                    let frame = self.seal(header, words);
                    world.give(NodeId(VICTIM), MeshInput::Relay(&frame));
                    quiet = false;
                }
            }
            while self.seen < world.seen.len() {
                let bytes = world.seen[self.seen].clone();
                self.seen += 1;
                let (header, _) = frame::split(&bytes).unwrap();
                let mut words = Vec::new();
                if header.kind == FrameKind::Sealed
                    && let Ok(payload) = self.seal.open(&bytes, &mut words)
                {
                    let path = Path::Relay;
                    self.link.handle(world.clock.now, LinkInput::Frame { path, header, payload });
                    quiet = false;
                }
            }
            if quiet {
                return;
            }
        }
    }
}
