//! What goes wrong, and when.

use shoal_node::{Input, Rules};
use shoal_protocol::{Condition, Micros, Time};

use crate::device::author;
use crate::scenario::LENT_LEAST;
use crate::world::{Event, Probe, World};

/// How long a crashed coordinator is away, and a vanished or frozen device, in microseconds.
pub(crate) const ABSENCE: (u64, u64) = (10_000, 4_000_000);
/// A clock that is set jumps by at most this much: more than any patience for silence but the idle one.
const FARTHEST_JUMP: u64 = 5_000_000;
/// An engine that hangs does so longer than a crew waits for it.
const LONGEST_HANG: u64 = 15_000_000;
/// Facts in a batch after which a kill may come; few batches have more.
const KILL_WITHIN: u64 = 12;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Vanish,
    Freeze,
    Partition,
    Hide,
    Jump,
    Crash,
    Kill,
    Break,
    Hang,
    Cut,
}

impl<P: Probe> World<P> {
    pub(crate) fn plan_faults(&mut self) {
        let all = [
            Fault::Vanish,
            Fault::Freeze,
            Fault::Partition,
            Fault::Hide,
            Fault::Jump,
            Fault::Crash,
            Fault::Kill,
        ];
        for fault in all {
            self.plan(fault);
        }
        if self.scenario.has_links() {
            [Fault::Break, Fault::Hang, Fault::Cut].into_iter().for_each(|fault| self.plan(fault));
        }
    }

    fn plan(&mut self, fault: Fault) {
        let faults = &self.scenario.faults;
        let mean = match fault {
            Fault::Vanish => faults.churn,
            Fault::Freeze => faults.freezes,
            Fault::Partition => faults.partitions,
            Fault::Hide => faults.hides,
            Fault::Jump => faults.jumps,
            Fault::Crash => faults.crashes,
            Fault::Kill => faults.kills,
            Fault::Break => faults.breaks,
            Fault::Hang => faults.hangs,
            Fault::Cut => faults.cuts,
        };
        let at = self.now.0 + self.random.range(1, mean.max(1) * 2);
        if mean > 0 && at < self.scenario.faults.until {
            self.at(at, Event::Fault(fault));
        }
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        if !self.has_faults() {
            return;
        }
        self.report.faults += 1;
        match fault {
            Fault::Vanish => self.vanish(),
            Fault::Freeze => self.freeze(),
            Fault::Partition => self.partition(),
            Fault::Hide => self.hide(),
            Fault::Jump => self.ahead = self.random.range(0, FARTHEST_JUMP),
            Fault::Crash => self.crash(),
            Fault::Kill => self.kill_after = Some(self.random.range(0, KILL_WITHIN)),
            Fault::Break => self.break_socket(),
            Fault::Hang => self.hang(),
            Fault::Cut => self.cut_channels(),
        }
        self.plan(fault);
    }

    /// A device dies with everything it had; after a while it is started again with the same identity.
    fn vanish(&mut self) {
        self.report.vanished += 1;
        self.report.lost += 1;
        let at = self.any_device();
        self.count_capacity(at);
        if let Some(conn) = self.devices[at].conn.take() {
            self.sockets.remove(&conn);
            // Half of them close their socket; the others just fall silent until the system notices.
            let notice = if self.random.chance(500_000) { self.delay().0 } else { 60_000_000 };
            self.at(self.now.0 + notice, Event::Gone(conn));
        }
        self.crews.forget(at);
        let seed = self.random.draw();
        self.devices[at].reborn(seed);
        let away = match self.scenario.faults.away {
            0 => self.random.range(ABSENCE.0, ABSENCE.1),
            away => away,
        };
        self.at(self.now.0 + away, Event::Join(at));
    }

    fn freeze(&mut self) {
        let at = self.any_device();
        let until = self.now.0 + self.random.range(ABSENCE.0, ABSENCE.1);
        let device = &mut self.devices[at];
        device.frozen_until = device.frozen_until.max(Time(until));
        self.at(until + 1, Event::Thaw(at));
    }

    fn partition(&mut self) {
        let until = self.now.0 + self.random.range(ABSENCE.0, ABSENCE.1);
        for at in 0..self.devices.len() {
            if self.random.chance(400_000) {
                self.devices[at].cut_until = Time(until);
                self.report.lost += 1;
            }
        }
    }

    /// A page hides: it says so, some of them pause or decline somebody's work, and it is slow until it shows again.
    fn hide(&mut self) {
        let at = self.any_device();
        let until = self.now.0 + self.random.range(ABSENCE.0, ABSENCE.1);
        self.devices[at].hidden_until = Time(until);
        let condition = Condition { visible: false, ..Condition::default() };
        self.tell_device(at, Input::Condition(condition));
        if self.random.chance(300_000) {
            self.tell_device(at, Input::Pause(true));
        }
        if self.random.chance(300_000) {
            let never = vec![author(self.random.range(0, 3) as u8)];
            self.tell_device(at, Input::Rules(Rules { never, ..Rules::default() }));
        }
        if self.scenario.memory.is_some() {
            let offer = self.devices[at].lends(LENT_LEAST);
            self.tell_device(at, offer);
        }
        let birth = self.devices[at].birth;
        self.at(until, Event::Show(at, birth));
    }

    pub(crate) fn show(&mut self, at: usize, birth: u32) {
        if self.devices[at].birth == birth {
            self.tell_device(at, Input::Condition(Condition::default()));
            self.tell_device(at, Input::Pause(false));
            self.tell_device(at, Input::Rules(Rules::default()));
            if self.scenario.memory.is_some() {
                let offer = self.devices[at].lends(100);
                self.tell_device(at, offer);
            }
        }
    }

    fn crash(&mut self) {
        if let Some(live) = &self.scheduler {
            self.oracle.compare(live, &self.facts, self.clock());
            self.go_down();
        }
    }

    /// A socket ends, and both ends hear of it.
    fn break_socket(&mut self) {
        let at = self.any_device();
        if let Some(conn) = self.devices[at].conn {
            self.report.lost += 1;
            self.at(self.now.0, Event::Closed(conn));
            let delay = self.delay();
            self.at((self.now + delay).0, Event::Gone(conn));
        }
    }

    /// The engines of a device do nothing for a while.
    fn hang(&mut self) {
        let at = self.any_device();
        let until = self.now + Micros(self.random.range(100_000, LONGEST_HANG));
        if let Some(linked) = &mut self.devices[at].linked {
            linked.hangs = until;
        }
    }

    fn any_device(&mut self) -> usize {
        // What goes wrong for those who want it to is their own affair.
        self.random.range(0, self.scenario.nodes) as usize
    }
}
