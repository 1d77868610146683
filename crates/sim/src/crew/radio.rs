//! Direct channels between devices: they come after a word each way, or never, and die.

use shoal_node::MemberInput;
use shoal_node::session::RadioDo;
use shoal_protocol::{CrewId, Header, NodeId, frame};

use super::{CrewEvent, Pair};
use crate::world::{Event, Probe, World};

impl<P: Probe> World<P> {
    pub(super) fn send_direct(&mut self, at: usize, crew: CrewId, peer: NodeId, bytes: Vec<u8>) {
        let Some(from) = self.devices[at].linked.as_ref().and_then(|linked| linked.id) else {
            return;
        };
        let Some(to) = self.device_of(peer) else { return };
        let up = self.crews.channels.contains(&(crew, at.min(to), at.max(to)));
        if up && !self.random.chance(self.scenario.links.lost) {
            self.report.crew.direct += 1;
            let birth = self.devices[to].birth;
            let due = self.now.0 + self.random.range(50, 2_000);
            // The sender's line carries one after the other.
            let shelf = self.devices[at].shelf.as_mut();
            let left = shelf.map_or(self.now, |shelf| shelf.sends(self.now, bytes.len() as u64));
            let event = CrewEvent::Direct { from, to, birth, bytes };
            self.at(due.max(left.0), Event::Crew(event));
        }
    }

    pub(super) fn direct_came(&mut self, from: NodeId, to: usize, birth: u32, bytes: &[u8]) {
        let Ok((Header { crew, .. }, _)) = frame::split(bytes) else { return };
        if self.devices[to].birth == birth {
            self.tell_member(to, crew, MemberInput::Direct(from, bytes));
        }
    }

    fn pair(&self, at: usize, peer: NodeId, crew: CrewId) -> Option<Pair> {
        let to = self.device_of(peer)?;
        let births = (self.devices[at].birth, self.devices[to].birth);
        Some(Pair { devices: (at, to), births, crew })
    }

    /// One word each way, and the channel is there, or never.
    pub(super) fn radio(&mut self, at: usize, crew: CrewId, peer: NodeId, order: RadioDo) {
        match order {
            RadioDo::Dial => self.tell_member(at, crew, MemberInput::Radio(peer, vec![1])),
            RadioDo::Hear(words) if words == [1] => {
                self.tell_member(at, crew, MemberInput::Radio(peer, vec![2]));
            }
            RadioDo::Hear(_) => {
                let Some(pair) = self.pair(at, peer, crew) else { return };
                if self.random.chance(self.scenario.links.direct) {
                    let due = self.now.0 + self.random.range(10_000, 300_000);
                    self.at(due, Event::Crew(CrewEvent::DirectUp(pair)));
                }
            }
            RadioDo::Hang => {
                let Some(pair) = self.pair(at, peer, crew) else { return };
                self.at(self.now.0 + 1, Event::Crew(CrewEvent::DirectDown(pair)));
            }
            RadioDo::Listen => {}
        }
    }

    fn is_same_life(&self, Pair { devices: (a, b), births, .. }: Pair) -> bool {
        (self.devices[a].birth, self.devices[b].birth) == births
    }

    pub(super) fn direct_up(&mut self, pair: Pair) {
        if !self.is_same_life(pair) {
            return;
        }
        let (a, b) = pair.devices;
        self.crews.channels.insert((pair.crew, a.min(b), a.max(b)));
        self.both(pair, MemberInput::DirectUp);
        let lives = self.scenario.links.direct_lives;
        let lives = self.random.range(lives / 2, lives);
        self.at(self.now.0 + lives, Event::Crew(CrewEvent::DirectDown(pair)));
    }

    pub(super) fn direct_down(&mut self, pair: Pair) {
        let (a, b) = pair.devices;
        let open = self.is_same_life(pair);
        if open && self.crews.channels.remove(&(pair.crew, a.min(b), a.max(b))) {
            self.both(pair, MemberInput::DirectDown);
        }
    }

    /// A device has no more to do with a crew: whom it had a channel to hears so.
    pub(super) fn hang_up(&mut self, at: usize, crew: CrewId) {
        let open = self.crews.channels.iter();
        let open = open.filter(|(of, a, b)| *of == crew && (*a == at || *b == at));
        let open: Vec<_> = open.map(|(_, a, b)| (*a, *b)).collect();
        for devices in open {
            let births = (self.devices[devices.0].birth, self.devices[devices.1].birth);
            let pair = Pair { devices, births, crew };
            self.at(self.now.0 + 1, Event::Crew(CrewEvent::DirectDown(pair)));
        }
    }

    /// Every direct way breaks.
    pub(crate) fn cut_channels(&mut self) {
        let up: Vec<_> = self.crews.channels.iter().copied().collect();
        for (crew, a, b) in up {
            let births = (self.devices[a].birth, self.devices[b].birth);
            let pair = Pair { devices: (a, b), births, crew };
            self.crew_event(CrewEvent::DirectDown(pair));
        }
    }

    fn both(&mut self, pair: Pair, input: fn(NodeId) -> MemberInput<'static>) {
        let (a, b) = pair.devices;
        let id = |at: usize| self.devices[at].linked.as_ref().and_then(|linked| linked.id);
        let (Some(first), Some(second)) = (id(a), id(b)) else { return };
        self.tell_member(a, pair.crew, input(second));
        self.tell_member(b, pair.crew, input(first));
    }
}
