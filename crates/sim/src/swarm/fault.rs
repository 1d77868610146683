//! What goes wrong: ways that die, devices that vanish, a coordinator that crashes.

use shoal_node::{Share, ShareInput};
use shoal_protocol::{Condition, FromNode, Micros, NodeId, Time};
use shoal_scheduler::{Input, Scheduler};

use super::world::{Event, World};
use crate::flood::idle_word;

/// Words of one flood, and microseconds between two.
const FLOOD: u64 = 500;
const FLOOD_EVERY: u64 = 4_000;

impl World {
    /// Both ends of a link hear that it is direct, or that it is not any more; some time later it dies or is back.
    pub(super) fn both_near(&mut self, at: usize, node: NodeId, due: Time, near: bool) {
        let other = self.devices.iter().position(|device| device.id == Some(node));
        let (Some(me), Some(other)) = (self.devices[at].id, other) else { return };
        for (device, node) in [(at, node), (other, me)] {
            let birth = self.devices[device].birth;
            let lag = Micros(self.random.range(0, 20_000));
            self.at(due + lag, Event::Near { device, birth, node, near });
        }
    }

    pub(super) fn near(&mut self, at: usize, birth: u32, node: NodeId, near: bool) {
        let device = &mut self.devices[at];
        if device.birth != birth || !device.links.contains_key(&node) {
            return;
        }
        let changed = if near { device.near.insert(node) } else { device.near.remove(&node) };
        if !changed {
            return;
        }
        self.tell(at, ShareInput::Near(node, near));
        let first = self.devices[at].id.is_some_and(|me| me < node);
        let lives = self.plan.direct_lives;
        if first && lives < u64::MAX / 8 {
            let until = if near { lives } else { 700_000 };
            let due = self.now + Micros(self.random.range(until / 2, until));
            self.both_near(at, node, due, !near);
        }
    }

    /// One word of many; the last takes back what the others said of the device.
    pub(super) fn flood(&mut self, at: usize, birth: u32, word: u64) {
        let device = &self.devices[at];
        let Some(conn) = device.conn.filter(|_| device.birth == birth) else { return };
        let over = word >= FLOOD;
        let message = match over {
            true => FromNode::Condition(Condition::default()),
            false => idle_word(word, &mut self.random),
        };
        self.heard(conn, message);
        if over {
            self.heard(conn, FromNode::Pause(false));
        } else {
            let due = self.now + Micros(FLOOD_EVERY);
            self.at(due, Event::Flood { device: at, birth, word: word + 1 });
        }
    }

    pub(super) fn fault(&mut self) {
        self.report.faults += 1;
        if self.random.chance(200_000) {
            return self.crash();
        }
        let at = self.random.range(0, self.plan.devices as u64) as usize;
        self.vanish(at);
        let back = self.now + Micros(self.random.range(100_000, 10_000_000));
        self.at(back, Event::Start(at));
    }

    /// The process is gone; its disk is not.
    fn vanish(&mut self, at: usize) {
        let device = &mut self.devices[at];
        let Some(conn) = device.conn.take() else { return };
        device.share = Share::new();
        device.birth += 1;
        device.links.clear();
        device.near.clear();
        device.timer = None;
        self.conns.remove(&conn);
        let due = self.later();
        self.at(due, Event::Gone(conn));
    }

    /// The coordinator forgets all that is not durable: here, all. Devices keep what they have and come back.
    fn crash(&mut self) {
        if self.scheduler.take().is_none() {
            return;
        }
        self.timer = None;
        self.conns.clear();
        for at in 0..self.devices.len() {
            let device = &mut self.devices[at];
            if device.conn.take().is_some() {
                device.links.clear();
                device.near.clear();
                self.tell(at, ShareInput::Away);
                let due = self.now + Micros(self.random.range(1_000, 2_000_000));
                self.at(due, Event::Start(at));
            }
        }
        let back = self.now + Micros(self.random.range(100_000, 3_000_000));
        self.at(back, Event::Restart);
    }

    /// The coordinator closed a socket, for instance because nothing was heard on it. The device comes again.
    pub(super) fn closed(&mut self, conn: shoal_scheduler::Conn) {
        let Some(at) = self.conns.remove(&conn) else { return };
        let device = &mut self.devices[at];
        device.conn = None;
        device.links.clear();
        device.near.clear();
        self.tell(at, ShareInput::Away);
        let due = self.now + Micros(self.random.range(1_000, 500_000));
        self.at(due, Event::Start(at));
    }

    pub(super) fn restart(&mut self) {
        self.scheduler = Some(Scheduler::new());
        let seed = self.random.draw();
        self.give(Input::Start { seed });
    }
}
