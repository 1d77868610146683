//! The network between machines: late, lossy, restarted; and the order in which all happens.

use std::sync::Arc;

use shoal_node::SimAnswer;
use shoal_protocol::{Enlist, Micros, NodeId, Time};

use crate::party::{Given, Party};
use crate::world::World;

/// How messages pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Micros,
    pub(crate) jitter: Micros,
    pub(crate) lost_per_mille: u64,
    pub(crate) doubled_per_mille: u64,
}

pub(crate) const CALM: Wire =
    Wire { delay: Micros(2_000), jitter: Micros(0), lost_per_mille: 0, doubled_per_mille: 0 };
pub(crate) const ROUGH: Wire =
    Wire { delay: Micros(5_000), jitter: Micros(9_000), lost_per_mille: 60, doubled_per_mille: 30 };

/// What a lost message costs where the network itself says it again.
const SAID_AGAIN: Micros = Micros::from_millis(150);

/// How long radios look for each other, and what a direct channel takes.
const FOUND_AFTER: Micros = Micros::from_millis(80);
const DIRECT_DELAY: Micros = Micros::from_millis(1);

pub(crate) enum Event {
    Net {
        from: NodeId,
        to: NodeId,
        life: u64,
        bytes: Arc<Vec<u8>>,
    },
    /// On a direct channel, of that life.
    Direct {
        from: NodeId,
        to: NodeId,
        life: u64,
        bytes: Arc<Vec<u8>>,
    },
    /// The radios of two machines found each other.
    Found {
        one: NodeId,
        two: NodeId,
    },
    Answer {
        to: NodeId,
        answer: SimAnswer,
    },
    Enlist {
        to: NodeId,
        enlist: Box<Enlist>,
    },
}

impl<P: Party> World<P> {
    pub(crate) fn carry(&mut self, from: NodeId, to: NodeId, bytes: Arc<Vec<u8>>) {
        let Wire { delay, jitter, lost_per_mille, doubled_per_mille } = self.wire;
        let lost = self.chance() % 1_000 < lost_per_mille;
        let doubled = self.chance() % 1_000 < doubled_per_mille;
        let late = |world: &mut World<P>| Micros(delay.0 + world.chance() % (jitter.0 + 1));
        let (first, second) = (late(self), late(self));
        let life = self.relay;
        let send = |world: &mut World<P>, late: Micros| {
            let bytes = bytes.clone();
            let mut at = world.now + late;
            if P::NEEDS_ORDER {
                let last = world.last.entry((from, to)).or_insert(at);
                at = at.max(*last);
                *last = at;
            }
            world.at(at, Event::Net { from, to, life, bytes });
        };
        match (P::NEEDS_ORDER, lost, doubled) {
            (true, true, _) => send(self, Micros(first.0 + SAID_AGAIN.0)),
            (false, true, _) => {}
            (false, false, true) => {
                send(self, first);
                send(self, second);
            }
            (true, false, _) | (false, false, false) => send(self, first),
        }
    }

    pub(crate) fn carry_direct(&mut self, from: NodeId, to: NodeId, bytes: Arc<Vec<u8>>) {
        if let Some(life) = self.life_of(from, to) {
            let at = self.now + DIRECT_DELAY;
            self.at(at, Event::Direct { from, to, life, bytes });
        }
    }

    /// A machine's radio shall call another's.
    pub(crate) fn dial(&mut self, one: NodeId, two: NodeId) {
        if self.radios {
            self.give(one, Given::Call(two));
        }
    }

    pub(crate) fn called(&mut self, one: NodeId, two: NodeId) {
        let at = self.now + FOUND_AFTER;
        self.at(at, Event::Found { one, two });
    }

    /// All direct channels die.
    pub(crate) fn cut_direct(&mut self) {
        for ((one, two), _) in std::mem::take(&mut self.direct) {
            self.give(one, Given::DirectDown(two));
            self.give(two, Given::DirectDown(one));
        }
    }

    fn life_of(&self, one: NodeId, two: NodeId) -> Option<u64> {
        self.direct.get(&(one.min(two), one.max(two))).copied()
    }

    /// The relay dies, with all that is on the way, and is there again.
    pub(crate) fn restart_relay(&mut self) {
        self.relay += 1;
        for up in [false, true] {
            for node in self.machines.keys().copied().collect::<Vec<_>>() {
                self.give(node, Given::Relay(up));
            }
        }
    }

    pub(crate) fn step(&mut self, end: Time) -> bool {
        let timers = self.machines.iter().filter_map(|(node, machine)| {
            Some((machine.party.next_timeout()?.max(self.now), Some(*node)))
        });
        let event = self.events.first_key_value().map(|((at, _), _)| (*at, None));
        let Some((at, timer)) = timers.chain(event).min().filter(|(at, _)| *at <= end) else {
            return false;
        };
        self.now = at;
        self.trace.update(&at.0.to_le_bytes());
        if let Some(node) = timer {
            self.give(node, Given::Tick);
            return true;
        }
        match self.events.pop_first() {
            Some((_, Event::Net { from, to, life, bytes })) => {
                let cut = |node: &NodeId| self.machines.get(node).is_none_or(|one| one.cut_off);
                if !cut(&from) && !cut(&to) && (P::NEEDS_ORDER || life == self.relay) {
                    self.give(to, Given::Net { from, bytes: &bytes });
                }
            }
            Some((_, Event::Direct { from, to, life, bytes })) => {
                let alive = self.life_of(from, to) == Some(life);
                let given = Given::Direct { from, bytes: &bytes };
                self.give(to, if alive { given } else { Given::Tick });
            }
            Some((_, Event::Found { one, two })) => {
                let life = self.now.0;
                self.direct.insert((one.min(two), one.max(two)), life);
                self.give(one, Given::DirectUp(two));
                self.give(two, Given::DirectUp(one));
            }
            Some((_, Event::Answer { to, answer })) => self.give(to, Given::Answer(answer)),
            Some((_, Event::Enlist { to, enlist })) => self.give(to, Given::Enlist(*enlist)),
            None => {}
        }
        true
    }

    /// What the coordinator has said and nobody heard yet.
    pub(crate) fn pending_enlistments(&self) -> Vec<(NodeId, Enlist)> {
        let enlist = |event: &Event| match event {
            Event::Enlist { to, enlist } => Some((*to, (**enlist).clone())),
            _ => None,
        };
        self.events.values().filter_map(enlist).collect()
    }
}
