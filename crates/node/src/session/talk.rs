//! An application's part in a crew: its own messages pass through, and the common operations of the crew run on
//! a channel of their own.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{Micros, Time};

use super::COLLECTIVE;
use crate::collective::{Fault, Group, GroupInput, GroupOutput, Op, OpError, OpId, Rank};

/// A member that lets a common operation wait this long is named.
const PATIENCE: Micros = Micros::from_secs(2);

pub(super) struct Talk {
    /// `None` where the place is none, so that nothing common can be done.
    group: Option<Group>,
    outputs: VecDeque<TalkOutput>,
}

pub(super) enum TalkOutput {
    Tell { to: Rank, message: Arc<Vec<u8>> },
    App { from: Rank, channel: u16, bytes: Vec<u8> },
    Done { op: OpId, data: Vec<u8> },
    NotBegun(OpError),
    Hold { rank: Rank, hold: bool },
    Slow(Rank),
    Bad { rank: Rank, why: String },
}

impl Talk {
    pub(super) fn new(rank: Rank, ranks: u8) -> Talk {
        Talk { group: Group::new(rank, ranks, PATIENCE), outputs: VecDeque::new() }
    }

    pub(super) fn heard(&mut self, now: Time, from: Rank, channel: u16, bytes: Vec<u8>) {
        if channel == COLLECTIVE {
            self.group(now, GroupInput::Received { from, message: bytes });
        } else {
            self.outputs.push_back(TalkOutput::App { from, channel, bytes });
        }
    }

    pub(super) fn begin(&mut self, now: Time, op: Op, data: Arc<Vec<u8>>) {
        self.group(now, GroupInput::Begin { op, data });
    }

    pub(super) fn tick(&mut self, now: Time) {
        self.group(now, GroupInput::Tick);
    }

    pub(super) fn poll_output(&mut self) -> Option<TalkOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.group.as_ref()?.next_timeout()
    }

    pub(super) fn check(&self) {
        if let Some(group) = &self.group {
            group.check();
        }
    }

    fn group(&mut self, now: Time, input: GroupInput) {
        let Some(group) = &mut self.group else { return };
        group.handle(now, input);
        while let Some(output) = group.poll_output() {
            self.outputs.push_back(match output {
                GroupOutput::Send { to, message } => TalkOutput::Tell { to, message },
                GroupOutput::Done { op, data } => TalkOutput::Done { op, data },
                GroupOutput::Refused(error) => TalkOutput::NotBegun(error),
                GroupOutput::Slow { rank, .. } => TalkOutput::Slow(rank),
                GroupOutput::Hold { rank, hold } => TalkOutput::Hold { rank, hold },
                GroupOutput::Bad { rank, fault } => TalkOutput::Bad { rank, why: words(fault) },
                // Nobody here asks for words from rank to rank: applications have their own channels.
                GroupOutput::Got { .. } => continue,
            });
        }
    }
}

pub(super) fn words(fault: Fault) -> String {
    let what = match fault {
        Fault::Unexpected => "belongs to nothing that is awaited",
        Fault::WrongLength => "has another length than its operation says",
        Fault::Flood => "is more than is kept for later",
    };
    format!("a part of a common operation that {what}")
}
