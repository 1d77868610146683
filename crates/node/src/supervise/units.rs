//! Units in engines: their clocks, and what becomes of them when an engine ends.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::{Attempt, JobId, Micros, Time};

use super::{EngineId, EngineOutput, Fault, GRACE, Kind, MAX_REPEATS, Supervisor};

pub(super) struct Unit {
    pub(super) attempt: Attempt,
    pub(super) engine: EngineId,
    job: JobId,
    limit: Micros,
    /// Since when it computes, while it does.
    computing: Option<Time>,
    /// Since when nobody wants it.
    aborted: Option<Time>,
    pub(super) repeats: u32,
}

impl Unit {
    /// When its engine must end if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Time> {
        let computing = self.computing?;
        Some(match self.aborted {
            Some(aborted) => computing.max(aborted) + GRACE,
            None => computing + self.limit,
        })
    }

    fn is_computing(&self) -> bool {
        self.computing.is_some()
    }

    fn is_wanted(&self) -> bool {
        self.aborted.is_none()
    }
}

impl Supervisor {
    pub(super) fn run(&mut self, now: Time, attempt: Attempt, job: JobId, limit: Micros) {
        if let Some(out) = &self.out {
            let why = out.why.clone();
            return self.fail(attempt, job, why);
        }
        let engine = self.engine_for_unit(now);
        let (computing, aborted) = (None, None);
        self.units.push(Unit { attempt, engine, job, limit, computing, aborted, repeats: 0 });
        self.outputs.push_back(EngineOutput::Give { engine, attempt });
    }

    pub(super) fn abort(&mut self, now: Time, attempt: Attempt) {
        let Some(unit) = self.unit(attempt) else { return };
        let engine = unit.engine;
        unit.aborted = Some(now);
        match self.kind {
            Kind::Device => self.outputs.push_back(EngineOutput::Cancel { engine, attempt }),
            Kind::Programs => {
                self.units.retain(|unit| unit.attempt != attempt);
                self.kill(engine);
            }
        }
    }

    pub(super) fn computing(&mut self, now: Time, attempt: Attempt) {
        if let Some(unit) = self.unit(attempt) {
            unit.computing = Some(now);
        }
    }

    pub(super) fn resting(&mut self, attempt: Attempt) {
        let Some(unit) = self.unit(attempt) else { return };
        unit.computing = None;
        if !unit.is_wanted() {
            self.ended(attempt);
        }
    }

    pub(super) fn ended(&mut self, attempt: Attempt) {
        self.units.retain(|unit| unit.attempt != attempt);
        self.trim();
    }

    /// Ends engines whose kernel or program runs over its time, or is not wanted and does not end.
    pub(super) fn end_late_units(&mut self, now: Time) {
        let is_late = |unit: &Unit| unit.deadline().is_some_and(|at| at <= now);
        while let Some(at) = self.units.iter().position(is_late) {
            let unit = self.units.remove(at);
            if unit.is_wanted() {
                let (allowed, took) = (unit.limit, now - unit.computing.unwrap_or(now));
                self.runaway = Some((unit.job, allowed));
                let (attempt, fault) = (unit.attempt, Fault::Time { allowed });
                self.outputs.push_back(EngineOutput::Failed { attempt, took, fault });
            }
            self.replace(now, unit.engine, "a kernel did not end in time");
        }
    }

    /// Whatever computed when the engine ended by itself is to blame.
    pub(super) fn blame(&mut self, engine: EngineId, why: &str) {
        let (blamed, others) = self.take_from(engine).into_iter().partition(Unit::is_computing);
        self.units.extend::<Vec<Unit>>(others);
        self.fail_these(blamed, why);
    }

    /// The units of an engine that ended begin anew, but not for ever.
    pub(super) fn repeat(&mut self, now: Time, ended: EngineId, why: &str) {
        for unit in self.take_from(ended) {
            if !unit.is_wanted() {
                continue;
            }
            if unit.repeats >= MAX_REPEATS {
                self.fail(unit.attempt, unit.job, why.to_string());
                continue;
            }
            let (engine, attempt) = (self.engine_for_unit(now), unit.attempt);
            let repeats = unit.repeats + 1;
            self.units.push(Unit { engine, computing: None, repeats, ..unit });
            self.outputs.push_back(EngineOutput::Give { engine, attempt });
        }
    }

    /// The units of an engine that ended fail with it.
    pub(super) fn fail_all(&mut self, ended: EngineId, why: &str) {
        let left = self.take_from(ended);
        self.fail_these(left, why);
    }

    fn take_from(&mut self, ended: EngineId) -> Vec<Unit> {
        let units = core::mem::take(&mut self.units).into_iter();
        let (left, others) = units.partition(|unit| unit.engine == ended);
        self.units = others;
        left
    }

    fn unit(&mut self, attempt: Attempt) -> Option<&mut Unit> {
        self.units.iter_mut().find(|unit| unit.attempt == attempt)
    }

    fn fail_these(&mut self, units: Vec<Unit>, why: &str) {
        for unit in units.iter().filter(|unit| unit.is_wanted()) {
            self.fail(unit.attempt, unit.job, why.to_string());
        }
    }

    fn fail(&mut self, attempt: Attempt, job: JobId, why: String) {
        let fault = match self.runaway {
            // The device is still busy with a kernel of the same job: the job is to blame, not the device.
            Some((runaway, allowed)) if runaway == job => Fault::Time { allowed },
            Some(_) | None => Fault::Lost { why },
        };
        self.outputs.push_back(EngineOutput::Failed { attempt, took: Micros(0), fault });
    }
}
