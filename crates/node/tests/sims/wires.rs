//! The network between machines: late, lossy, restarted.

use std::sync::Arc;

use shoal_node::SimAnswer;
use shoal_protocol::{Enlist, Micros, NodeId, Time};
use shoal_sim::{Clock, Clockwork, Wire};

use crate::party::{Given, Party};
use crate::world::{Machine, World};

pub(crate) const CALM: Wire = Wire { delay: Micros(2_000), jitter: Micros(0), lost: 0, doubled: 0 };
pub(crate) const ROUGH: Wire =
    Wire { delay: Micros(5_000), jitter: Micros(9_000), lost: 60_000, doubled: 30_000 };

/// When a lost message comes where the network itself says it again.
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
        let (life, copies) = (self.relay, self.wire.copies(&mut self.clock.random));
        if P::NEEDS_ORDER {
            let late = copies.first().copied().unwrap_or(SAID_AGAIN);
            let at = self.last.entry((from, to)).or_default();
            *at = (*at).max(self.clock.now + late);
            return self.clock.events.at(*at, Event::Net { from, to, life, bytes });
        }
        for late in copies {
            self.clock.after(late, Event::Net { from, to, life, bytes: bytes.clone() });
        }
    }

    pub(crate) fn carry_direct(&mut self, from: NodeId, to: NodeId, bytes: Arc<Vec<u8>>) {
        if let Some(life) = self.life_of(from, to) {
            self.clock.after(DIRECT_DELAY, Event::Direct { from, to, life, bytes });
        }
    }

    /// A machine's radio shall call another's.
    pub(crate) fn dial(&mut self, one: NodeId, two: NodeId) {
        if self.radios {
            self.give(one, Given::Call(two));
        }
    }

    pub(crate) fn called(&mut self, one: NodeId, two: NodeId) {
        self.clock.after(FOUND_AFTER, Event::Found { one, two });
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

    /// Of those whose time has come, in the order of their numbers.
    fn first_due(&self) -> Option<(Time, NodeId)> {
        let timer = |(node, machine): (&NodeId, &Machine<P>)| {
            Some((machine.party.next_timeout()?.max(self.clock.now), *node))
        };
        self.machines.iter().filter_map(timer).min()
    }

    /// What the coordinator has said and nobody heard yet.
    pub(crate) fn pending_enlistments(&self) -> Vec<(NodeId, Enlist)> {
        let enlist = |event: &Event| match event {
            Event::Enlist { to, enlist } => Some((*to, (**enlist).clone())),
            _ => None,
        };
        self.clock.events.iter().filter_map(enlist).collect()
    }
}

impl<P: Party> Clockwork for World<P> {
    type Event = Event;

    fn clock(&self) -> &Clock<Event> {
        &self.clock
    }

    fn clock_mut(&mut self) -> &mut Clock<Event> {
        &mut self.clock
    }

    fn due(&self) -> Option<Time> {
        self.first_due().map(|(due, _)| due)
    }

    fn wake(&mut self) {
        self.first_due().into_iter().for_each(|(_, node)| self.give(node, Given::Tick));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Net { from, to, life, bytes } => {
                let cut = |node: &NodeId| self.machines.get(node).is_none_or(|one| one.cut_off);
                if !cut(&from) && !cut(&to) && (P::NEEDS_ORDER || life == self.relay) {
                    self.give(to, Given::Net { from, bytes: &bytes });
                }
            }
            Event::Direct { from, to, life, bytes } => {
                let alive = self.life_of(from, to) == Some(life);
                let given = Given::Direct { from, bytes: &bytes };
                self.give(to, if alive { given } else { Given::Tick });
            }
            Event::Found { one, two } => {
                let life = self.clock.now.0;
                self.direct.insert((one.min(two), one.max(two)), life);
                self.give(one, Given::DirectUp(two));
                self.give(two, Given::DirectUp(one));
            }
            Event::Answer { to, answer } => self.give(to, Given::Answer(answer)),
            Event::Enlist { to, enlist } => self.give(to, Given::Enlist(*enlist)),
        }
    }
}
