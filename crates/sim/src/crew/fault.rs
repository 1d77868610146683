//! What goes wrong: devices vanish, freeze and hang, sockets and channels break, the coordinator crashes.

use shoal_protocol::Micros;
use shoal_scheduler::Input;

use super::world::{Event, World};

impl World {
    /// Something goes wrong.
    pub(super) fn fault(&mut self) {
        self.report.faults += 1;
        let at = self.random.range(0, self.devices.len() as u64) as usize;
        match self.random.range(0, 6) {
            0 if self.vanished < 3 => self.vanish(at),
            1 => self.crash_if_up(),
            2 => {
                if let Some(conn) = self.devices[at].conn {
                    self.at(self.now.0, Event::Closed(conn));
                    self.give(Input::Disconnected { conn });
                }
            }
            3 => self.devices[at].hangs = self.now + Micros(self.random.range(100_000, 15_000_000)),
            4 => self.freeze(at),
            _ => self.cut_channels(),
        }
    }

    /// Its socket ends, and all it knew.
    fn vanish(&mut self, at: usize) {
        self.vanished += 1;
        let back = self.now + Micros(self.random.range(500_000, 20_000_000));
        if let Some(conn) = self.devices[at].conn.take() {
            self.sockets.remove(&conn);
            let due = self.later();
            self.at(due.0, Event::Gone(conn));
        }
        self.channels.retain(|(_, a, b)| *a != at && *b != at);
        self.devices[at].reborn(&mut self.random);
        self.devices[at].away = back;
        self.at(back.0, Event::Wake(at));
    }

    fn crash_if_up(&mut self) {
        if self.scheduler.is_some() {
            self.crash();
        }
    }

    fn freeze(&mut self, at: usize) {
        let until = self.now + Micros(self.random.range(100_000, 6_000_000));
        let device = &mut self.devices[at];
        device.frozen = device.frozen.max(until);
    }

    fn cut_channels(&mut self) {
        let up: Vec<_> = self.channels.iter().copied().collect();
        for (crew, a, b) in up {
            let births = (self.devices[a].birth, self.devices[b].birth);
            self.direct_down((a, b), births, crew);
        }
    }
}
