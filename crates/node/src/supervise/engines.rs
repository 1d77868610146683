//! Engines from their start to their end.

use alloc::string::{String, ToString};
use shoal_protocol::{Micros, Time};

use super::{
    EngineId, EngineOutput, Kind, LOOK_AGAIN, MAX_DEATHS, MAX_DOUBLINGS, OPEN_WITHIN, Supervisor,
};

pub(super) struct Engine {
    pub(super) id: EngineId,
    /// When it is given up; nothing once it is open.
    pub(super) opens_by: Option<Time>,
}

/// A device that does not open.
pub(super) struct Out {
    pub(super) why: String,
    /// When it is looked at again.
    pub(super) again: Time,
}

impl Supervisor {
    pub(super) fn lend(&mut self, now: Time, most: usize) {
        self.most = most;
        self.trim();
        if most == 0 {
            self.out = None;
        }
        self.open_device(now);
    }

    pub(super) fn ready(&mut self, engine: EngineId) {
        let engine = self.engines.iter_mut().find(|one| one.id == engine);
        let Some(engine) = engine else { return };
        engine.opens_by = None;
        (self.deaths, self.looks, self.runaway) = (0, 0, None);
    }

    pub(super) fn broken(&mut self, now: Time, engine: EngineId, why: String) {
        if self.drop_engine(engine) {
            self.give_up(now, engine, why);
        }
    }

    pub(super) fn died(&mut self, now: Time, engine: EngineId, why: String) {
        if !self.drop_engine(engine) {
            return;
        }
        self.deaths += 1;
        self.blame(engine, &why);
        if self.deaths >= MAX_DEATHS {
            self.give_up(now, engine, why);
        } else {
            self.follow(now, engine, &why);
        }
    }

    /// Ends an engine; the next one gets what it had.
    pub(super) fn replace(&mut self, now: Time, engine: EngineId, why: &str) {
        self.kill(engine);
        self.follow(now, engine, why);
    }

    pub(super) fn kill(&mut self, engine: EngineId) {
        if self.drop_engine(engine) {
            self.outputs.push_back(EngineOutput::Kill(engine));
        }
    }

    /// Whether it was there.
    fn drop_engine(&mut self, engine: EngineId) -> bool {
        let before = self.engines.len();
        self.engines.retain(|one| one.id != engine);
        self.engines.len() < before
    }

    /// Those over what is lent end when they have nothing to do.
    pub(super) fn trim(&mut self) {
        if self.kind == Kind::Device && !self.crews.is_idle() {
            return;
        }
        while self.engines.len() > self.most {
            let idle = self.engines.iter().map(|engine| engine.id).find(|id| self.is_idle(*id));
            let Some(idle) = idle else { return };
            self.kill(idle);
        }
    }

    pub(super) fn close(&mut self) {
        (self.most, self.out) = (0, None);
        self.units.clear();
        self.lose_crews("the GPU is not lent any more");
        while let Some(engine) = self.engines.first() {
            self.kill(engine.id);
        }
    }

    pub(super) fn end_late_openings(&mut self, now: Time) {
        let is_late = |engine: &Engine| engine.opens_by.is_some_and(|at| at <= now);
        while let Some(late) = self.engines.iter().find(|engine| is_late(engine)) {
            let engine = late.id;
            self.kill(engine);
            self.give_up(now, engine, "it does not answer".to_string());
        }
    }

    pub(super) fn look_again(&mut self, now: Time) {
        if self.out.as_ref().is_some_and(|out| out.again <= now) {
            self.out = None;
            self.open_device(now);
        }
    }

    /// The engine a unit goes to: a device's only one, or one that has nothing to do.
    pub(super) fn engine_for_unit(&mut self, now: Time) -> EngineId {
        let is_free = |id: &EngineId| self.kind == Kind::Device || self.is_idle(*id);
        let free = self.engines.iter().map(|engine| engine.id).find(is_free);
        free.unwrap_or_else(|| self.start(now))
    }

    fn is_idle(&self, engine: EngineId) -> bool {
        self.units.iter().all(|unit| unit.engine != engine)
    }

    pub(super) fn start(&mut self, now: Time) -> EngineId {
        self.last += 1;
        let id = EngineId(self.last);
        self.engines.push(Engine { id, opens_by: Some(now + OPEN_WITHIN) });
        self.outputs.push_back(EngineOutput::Start(id));
        id
    }

    /// Whether it opens should be known before somebody needs it.
    fn open_device(&mut self, now: Time) {
        let is_lent = self.kind == Kind::Device && self.most > 0;
        if is_lent && self.out.is_none() && self.engines.is_empty() {
            self.start(now);
        }
    }

    /// What comes after an engine that ended.
    fn follow(&mut self, now: Time, ended: EngineId, why: &str) {
        if self.kind == Kind::Device {
            self.lose_crews(why);
        }
        self.open_device(now);
        self.repeat(now, ended, why);
        if self.kind == Kind::Device && !self.engines.is_empty() {
            self.outputs.push_back(EngineOutput::Restarted(why.to_string()));
        }
    }

    /// After an engine that could not be opened there is none for now.
    fn give_up(&mut self, now: Time, engine: EngineId, why: String) {
        // First: nothing more should be lent to it for what fails now.
        self.outputs.push_back(EngineOutput::Gone(why.clone()));
        self.fail_all(engine, &why);
        if self.kind == Kind::Device {
            self.lose_crews(&why);
            let wait = LOOK_AGAIN.0 << self.looks.min(MAX_DOUBLINGS);
            self.looks += 1;
            let again = now + Micros(wait);
            self.out = Some(Out { why, again });
        }
        self.deaths = 0;
    }

    fn lose_crews(&mut self, why: &str) {
        self.outputs.extend(self.crews.lose_all(why));
    }
}
