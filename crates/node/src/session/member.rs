//! A member: links and a program, put together.

use alloc::collections::VecDeque;
use shoal_protocol::{Time, limit::HEARTBEAT};

use super::{MemberConfig, MemberInput, MemberOutput};

/// One node's part in one crew.
pub struct Member {
    config: MemberConfig,
    outputs: VecDeque<MemberOutput>,
    beat: Time,
}

impl Member {
    pub fn new(now: Time, config: MemberConfig) -> Member {
        Member { config, outputs: VecDeque::new(), beat: now + HEARTBEAT }
    }

    pub fn handle(&mut self, now: Time, input: MemberInput<'_>) {
        if let MemberInput::Tick = input {
            self.beat = now + HEARTBEAT;
        }
    }

    pub fn poll_output(&mut self) -> Option<MemberOutput> {
        self.outputs.pop_front()
    }

    /// When to say `Tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        Some(self.beat).filter(|_| self.config.tries_direct)
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {}
}
