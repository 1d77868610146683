//! What is to be said before the peer is known to hear: kept until it is, so that a key agreement that came to
//! nothing loses no message.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::Time;
use shoal_protocol::limit::MAX_MESSAGE_BYTES;

/// A program that says more to somebody it never heard should wait.
pub(super) const MAX_WAITING: usize = 1024;
pub(super) const MAX_WAITING_BYTES: u64 = MAX_MESSAGE_BYTES;

pub(super) type Message = (u16, Arc<Vec<u8>>);

#[derive(Default)]
pub(super) struct Waiting {
    messages: VecDeque<Message>,
    bytes: u64,
    /// How many of them the present link was given.
    given: usize,
    /// Since when something waits.
    since: Option<Time>,
}

impl Waiting {
    /// Whether there was room for it.
    pub(super) fn add(&mut self, now: Time, channel: u16, message: Arc<Vec<u8>>) -> bool {
        let size = message.len() as u64;
        if self.messages.len() >= MAX_WAITING || self.bytes + size > MAX_WAITING_BYTES {
            return false;
        }
        self.bytes += size;
        self.since.get_or_insert(now);
        self.messages.push_back((channel, message));
        true
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the present link was not given yet.
    pub(super) fn give(&mut self) -> Vec<Message> {
        let given = core::mem::replace(&mut self.given, self.messages.len());
        self.messages.iter().skip(given).cloned().collect()
    }

    /// There is another link, which was given nothing.
    pub(super) fn take_back(&mut self) {
        self.given = 0;
    }

    pub(super) fn clear(&mut self) {
        *self = Waiting::default();
    }

    pub(super) fn since(&self) -> Option<Time> {
        self.since
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Panics where an invariant does not hold.
    pub(super) fn check(&self) {
        let bytes: usize = self.messages.iter().map(|(_, message)| message.len()).sum();
        assert_eq!(self.bytes, bytes as u64, "waiting bytes are counted wrong");
        assert!(self.messages.len() <= MAX_WAITING && self.bytes <= MAX_WAITING_BYTES);
        assert!(self.given <= self.messages.len(), "more was given than there is");
        assert_eq!(self.since.is_some(), !self.is_empty(), "waiting since nobody knows when");
    }
}
