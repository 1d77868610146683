//! Direct channels between devices: they come after a word each way, or never, and die.

use shoal_node::MemberInput;
use shoal_node::session::RadioDo;
use shoal_protocol::{CrewId, Header, NodeId, frame};

use super::world::{Event, World};

impl World {
    fn device_of(&self, node: NodeId) -> Option<usize> {
        self.devices.iter().position(|device| device.id == Some(node))
    }

    pub(super) fn send_direct(&mut self, at: usize, crew: CrewId, peer: NodeId, bytes: Vec<u8>) {
        let (Some(to), Some(from)) = (self.device_of(peer), self.devices[at].id) else { return };
        let up = self.channels.contains(&(crew, at.min(to), at.max(to)));
        if up && !self.random.chance(self.plan.lost) {
            self.report.direct += 1;
            let birth = self.devices[to].birth;
            let due = self.now.0 + self.random.range(50, 2_000);
            self.at(due, Event::Direct { from, to, birth, bytes });
        }
    }

    pub(super) fn direct_came(&mut self, from: NodeId, to: usize, birth: u32, bytes: &[u8]) {
        let Ok((Header { crew, .. }, _)) = frame::split(bytes) else { return };
        if self.devices[to].birth == birth {
            self.tell_member(to, crew, MemberInput::Direct(from, bytes));
        }
    }

    /// One word each way, and the channel is there, or never.
    pub(super) fn radio(&mut self, at: usize, crew: CrewId, peer: NodeId, order: RadioDo) {
        match order {
            RadioDo::Dial => self.tell_member(at, crew, MemberInput::Radio(peer, vec![1])),
            RadioDo::Hear(words) if words == [1] => {
                self.tell_member(at, crew, MemberInput::Radio(peer, vec![2]));
            }
            RadioDo::Hear(_) => {
                let Some(to) = self.device_of(peer) else { return };
                if self.random.chance(self.plan.direct) {
                    let births = (self.devices[at].birth, self.devices[to].birth);
                    let due = self.now.0 + self.random.range(10_000, 300_000);
                    self.at(due, Event::DirectUp { pair: (at, to), births, crew });
                }
            }
            RadioDo::Hang => {
                let Some(to) = self.device_of(peer) else { return };
                let births = (self.devices[at].birth, self.devices[to].birth);
                self.at(self.now.0 + 1, Event::DirectDown { pair: (at, to), births, crew });
            }
            RadioDo::Listen => {}
        }
    }

    pub(super) fn direct_up(&mut self, pair: (usize, usize), births: (u32, u32), crew: CrewId) {
        let (a, b) = pair;
        if (self.devices[a].birth, self.devices[b].birth) != births {
            return;
        }
        self.channels.insert((crew, a.min(b), a.max(b)));
        self.both(pair, crew, MemberInput::DirectUp);
        let lives = self.random.range(self.plan.direct_lives / 2, self.plan.direct_lives);
        self.at(self.now.0 + lives, Event::DirectDown { pair, births, crew });
    }

    pub(super) fn direct_down(&mut self, pair: (usize, usize), births: (u32, u32), crew: CrewId) {
        let (a, b) = pair;
        let same = (self.devices[a].birth, self.devices[b].birth) == births;
        if same && self.channels.remove(&(crew, a.min(b), a.max(b))) {
            self.both(pair, crew, MemberInput::DirectDown);
        }
    }

    fn both(
        &mut self,
        (a, b): (usize, usize),
        crew: CrewId,
        input: fn(NodeId) -> MemberInput<'static>,
    ) {
        let ids = (self.devices[a].id, self.devices[b].id);
        let (Some(first), Some(second)) = ids else { return };
        self.tell_member(a, crew, input(second));
        self.tell_member(b, crew, input(first));
    }
}
