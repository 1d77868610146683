//! What a key agreement makes: a link, the seal its frames have on the relay, what its peer may do, and how far
//! up the ladder it is.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::swarm::BLOBS;
use shoal_protocol::{Epoch, NodeId, Path, Time};
use shoal_seal::{Claims, Rights, Seal, read};

use super::desk::Desk;
use super::radio::Ladder;
use crate::link::{Link, LinkConfig, LinkInput};

pub(super) struct Line {
    pub(super) seal: Seal,
    pub(super) link: Link,
    /// A frame of the peer, of the present epoch, opened with this seal: the peer has it too. In an epoch
    /// without this node it may have given it up.
    pub(super) heard: bool,
    /// When something last came, or when the line was made.
    pub(super) heard_at: Time,
    /// This node's token of the present epoch was said.
    pub(super) shown: bool,
    /// What the peer may do in the present epoch: its token was accepted.
    pub(super) claims: Option<Claims>,
    pub(super) ladder: Ladder,
    pub(super) using: Option<Path>,
}

impl Line {
    pub(super) fn new(now: Time, desk: &Desk, peer: NodeId, seal: Seal) -> Line {
        let (me, crew, epoch) = (desk.me(), desk.crew(), desk.epoch);
        let mut link = Link::new(now, LinkConfig { me, peer, crew, epoch });
        if desk.direct_first {
            link.prefer_direct();
        }
        Line {
            seal,
            link,
            heard: false,
            heard_at: now,
            shown: false,
            claims: None,
            ladder: Ladder::default(),
            using: None,
        }
    }

    /// The crew changed: tokens are for one epoch.
    pub(super) fn enter(&mut self, now: Time, epoch: Epoch) {
        (self.heard, self.shown, self.claims) = (false, false, None);
        self.link.handle(now, LinkInput::Epoch(epoch));
    }

    pub(super) fn has_way(&self, desk: &Desk) -> bool {
        desk.relay_up || self.ladder.is_up()
    }

    pub(super) fn say(&mut self, now: Time, channel: u16, message: Arc<Vec<u8>>) {
        self.link.handle(now, LinkInput::Send { channel, message });
    }

    /// The peer shows its token. Why it is not accepted, if so.
    pub(super) fn shown_token(
        &mut self,
        now: Time,
        desk: &Desk,
        peer: NodeId,
        token: &[u8],
    ) -> Result<(), String> {
        if self.claims.is_some() {
            return Err(String::from("it showed a second token in one epoch"));
        }
        let claims = read(token, &desk.config.coordinator)
            .map_err(|error| format!("its token is refused: {error}"))?;
        let holds = claims.belong(desk.crew(), peer).and_then(|()| {
            // Of no buffer in particular, but now and here.
            claims.allow(Rights::NONE, claims.buffers.0, desk.epoch, desk.unix(now))
        });
        holds.map_err(|denied| format!("its token is refused: {denied}"))?;
        self.claims = Some(claims);
        Ok(())
    }

    /// Whether the peer may say this on a program's channel. Why not, if so.
    pub(super) fn may_write(&self, now: Time, desk: &Desk, channel: u16) -> Result<(), String> {
        let Some(claims) = &self.claims else {
            return Err(String::from("it spoke before it showed its token"));
        };
        // Blobs are read, not written: who may read them may ask for pieces and answer.
        let (right, did) =
            if channel == BLOBS { (Rights::READ, "asked of") } else { (Rights::WRITE, "wrote to") };
        claims
            .allow(right, u32::from(channel), desk.epoch, desk.unix(now))
            .map_err(|denied| format!("it {did} buffer {channel}: {denied}"))
    }
}
