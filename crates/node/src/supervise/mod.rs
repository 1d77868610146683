//! How engines are started, limited, given grace, ended and started again: a GPU's process, a GPU's Worker, a tab's
//! Worker for models and the Workers of programs alike. Pure; its shells are `shoal-host`, which has the child process, and
//! `shoal-browser`, for the Workers of `web/sdk`.
//!
//! The contract is the brains': one [`EngineInput`] with the time, then drain [`Supervisor::poll_output`] to
//! `None`; [`Supervisor::next_timeout`] says when a `Tick` is due. A supervisor has one kind of engine.
//!
//! What an engine computes cannot be interrupted, so a runaway is ended by ending its engine. Everything else
//! that was in it is not to blame and begins anew in the next one, which has an end too: a unit that meets one bad
//! engine after the other goes back to the coordinator, and a device that does not open is not lent.
//!
//! `units` is about leased units, `crews` about bands of simulations.

mod crews;
mod engines;
#[cfg(test)]
mod tests;
mod units;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, CrewId, Epoch, Failure, JobId, LimitKind, Micros, Time};

use crews::Crews;
use engines::{Engine, Out};
use units::Unit;

/// A kernel that nobody waits for any more may end by itself in this time, about what opening an engine anew costs
/// (a third of a second natively, two in a tab on a phone). Less would end engines whose kernel is nearly through;
/// more would cost the units behind it more than a new engine does.
pub const GRACE: Micros = Micros::from_secs(1);
/// An engine opens in this time or is given up: a slow phone on a slow network, or a driver that compiles for the
/// first time, needs some seconds.
pub const OPEN_WITHIN: Micros = Micros::from_secs(20);
/// Engines that end by themselves one after the other, none of them open in between, before the device counts as
/// gone: one may die of what another program did to the driver, three do not.
pub const MAX_DEATHS: u32 = 3;
/// New engines one unit is given to without being to blame itself. After that it goes back, so that another node
/// may have it: whatever ends engines here does so too often.
pub const MAX_REPEATS: u32 = 3;
/// A device that is gone is looked at again after this time, and then after twice as long each time: browsers and
/// drivers restart what hangs within some seconds.
pub const LOOK_AGAIN: Micros = Micros::from_secs(20);
/// Doublings of it: about ten minutes. What is gone for good must not cost its donor much.
pub const MAX_DOUBLINGS: u32 = 5;

/// Which engines these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One for a GPU. It takes all units and bands, and hears while it computes. Its device is opened before it is
    /// needed, and again after an end, because whether it opens decides whether it is lent. A tab's models are such
    /// a device too, from the first one on; what it hears while it computes, it does afterwards.
    Device,
    /// One for each unit at a time. It hears nothing while it computes, and is opened when needed.
    Programs,
}

/// An engine, from its start to its end; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineId(pub u32);

/// One change in the world.
#[derive(Clone, Debug)]
pub enum EngineInput {
    /// The donor lends so many engines. Those over it end when they have nothing to do.
    Most(usize),
    /// A unit to be computed; `limit` is for its kernel, or for each run of its program.
    Run {
        attempt: Attempt,
        job: JobId,
        limit: Micros,
    },
    /// Nobody waits for this unit any more.
    Abort(Attempt),
    /// The engine is open.
    Ready(EngineId),
    /// It says that it cannot be opened, or could not even be started.
    Broken {
        engine: EngineId,
        why: String,
    },
    /// It ended by itself, or is of no more use.
    Died {
        engine: EngineId,
        why: String,
    },
    /// The clock of this unit starts anew: its kernel has the device, or its program begins an item.
    Computing(Attempt),
    /// Nothing of it computes any more.
    Resting(Attempt),
    /// The engine is through with it, one way or the other.
    Ended(Attempt),
    /// A crew's band is told something that must be answered in time.
    Asked {
        crew: CrewId,
        ask: Ask,
        limit: Micros,
    },
    Answered {
        crew: CrewId,
        answer: Answer,
    },
    /// The crew goes on without this node, or ended.
    Left(CrewId),
    /// Nothing is lent any more.
    Close,
    /// Nothing but time passed.
    Tick,
}

/// What a band is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// What a step takes.
    Audition,
    /// To be there, with its first rows.
    Open(Epoch),
    Step(Epoch),
}

/// What a band says to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Auditioned,
    /// It is open, or made its step.
    Edges(Epoch),
    /// It is no band any more.
    Failed(Epoch),
}

/// One thing to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOutput {
    /// Start an engine; answer with `Ready`, `Broken` or `Died`.
    Start(EngineId),
    /// End it at once; no answer wanted.
    Kill(EngineId),
    /// Have the engine compute this unit; answer with `Computing`, `Resting` and `Ended`.
    Give { engine: EngineId, attempt: Attempt },
    /// Tell the engine that nobody wants this unit; answer with `Resting` or `Ended`.
    Cancel { engine: EngineId, attempt: Attempt },
    /// For the brain: the unit failed here.
    Failed { attempt: Attempt, took: Micros, fault: Fault },
    /// For the crew's member: its band is gone.
    CrewLost { crew: CrewId, epoch: Epoch, fault: Fault },
    /// For the coordinator: the audition came to nothing.
    AuditionLost { crew: CrewId, fault: Fault },
    /// For the donor: a device was opened anew, for this reason.
    Restarted(String),
    /// The device does not open: it is not to be offered until an engine is `Ready` again.
    Gone(String),
}

/// What a supervisor has against a unit or a band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ran over its job's limit.
    Time { allowed: Micros },
    /// Its engine ended.
    Lost { why: String },
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        match fault {
            Fault::Time { allowed: Micros(allowed) } => {
                let (which, stderr) = (LimitKind::Time, String::new());
                Failure::Limit { item: None, which, allowed, stderr }
            }
            Fault::Lost { why: message } => Failure::DeviceLost { message },
        }
    }
}

pub struct Supervisor {
    kind: Kind,
    most: usize,
    /// Lists, because they are short: maps would add 30 KiB to the code that every tab loads.
    engines: Vec<Engine>,
    /// The number of the last engine.
    last: u32,
    /// Engines that ended by themselves since one was open.
    deaths: u32,
    /// Times the device was given up since then.
    looks: u32,
    out: Option<Out>,
    units: Vec<Unit>,
    crews: Crews,
    /// The job of the last unit that ran away, and its limit: a device that does not open after it is still busy
    /// with it.
    runaway: Option<(JobId, Micros)>,
    outputs: VecDeque<EngineOutput>,
}

impl Supervisor {
    pub fn new(kind: Kind) -> Supervisor {
        Supervisor {
            kind,
            most: 0,
            engines: Vec::new(),
            last: 0,
            deaths: 0,
            looks: 0,
            out: None,
            units: Vec::new(),
            crews: Crews::default(),
            runaway: None,
            outputs: VecDeque::new(),
        }
    }

    pub fn handle(&mut self, now: Time, input: EngineInput) {
        match input {
            EngineInput::Most(most) => self.lend(now, most),
            EngineInput::Run { attempt, job, limit } => self.run(now, attempt, job, limit),
            EngineInput::Abort(attempt) => self.abort(now, attempt),
            EngineInput::Ready(engine) => self.ready(engine),
            EngineInput::Broken { engine, why } => self.broken(now, engine, why),
            EngineInput::Died { engine, why } => self.died(now, engine, why),
            EngineInput::Computing(attempt) => self.computing(now, attempt),
            EngineInput::Resting(attempt) => self.resting(attempt),
            EngineInput::Ended(attempt) => self.ended(attempt),
            EngineInput::Asked { crew, ask, limit } => self.asked(now, crew, ask, limit),
            EngineInput::Answered { crew, answer } => {
                self.crews.answered(crew, answer);
                self.trim();
            }
            EngineInput::Left(crew) => {
                self.crews.left(crew);
                self.trim();
            }
            EngineInput::Close => self.close(),
            EngineInput::Tick => self.tick(now),
        }
    }

    pub fn poll_output(&mut self) -> Option<EngineOutput> {
        self.outputs.pop_front()
    }

    /// When a `Tick` is due, if at all.
    pub fn next_timeout(&self) -> Option<Time> {
        let opening = self.engines.iter().filter_map(|engine| engine.opens_by);
        let units = self.units.iter().filter_map(Unit::deadline);
        let again = self.out.as_ref().map(|out| out.again);
        opening.chain(units).chain(self.crews.next_due()).chain(again).min()
    }

    /// Whether the crew has a band of this epoch: whatever is for another one comes too late.
    pub fn has_band(&self, crew: CrewId, epoch: Epoch) -> bool {
        self.crews.has_band(crew, epoch)
    }

    /// Asserts what must hold between any two inputs.
    pub fn check(&self) {
        for Unit { attempt, engine, repeats, .. } in &self.units {
            assert!(self.engines.iter().any(|one| one.id == *engine), "{attempt:?} is nowhere");
            assert!(*repeats <= MAX_REPEATS, "{attempt:?} was repeated too often");
        }
        assert!(self.crews.is_idle() || !self.engines.is_empty(), "a band is in no engine");
        match self.kind {
            Kind::Device => assert!(self.engines.len() <= 1, "a device has one engine"),
            Kind::Programs => {
                let alone = |id| self.units.iter().filter(|unit| unit.engine == id).count() <= 1;
                assert!(self.engines.iter().all(|one| alone(one.id)), "two units in one engine");
            }
        }
        assert!(self.out.is_none() || self.engines.is_empty(), "a device that is gone is open");
    }

    fn asked(&mut self, now: Time, crew: CrewId, ask: Ask, limit: Micros) {
        if let Some(out) = &self.out {
            let fault = Fault::Lost { why: out.why.clone() };
            let lost = match ask {
                Ask::Audition => EngineOutput::AuditionLost { crew, fault },
                Ask::Open(epoch) | Ask::Step(epoch) => {
                    EngineOutput::CrewLost { crew, epoch, fault }
                }
            };
            self.outputs.push_back(lost);
            return;
        }
        self.crews.asked(now, crew, ask, limit);
        if self.engines.is_empty() && !self.crews.is_idle() {
            self.start(now);
        }
    }

    fn tick(&mut self, now: Time) {
        self.end_late_openings(now);
        self.end_late_units(now);
        if let Some(lost) = self.crews.overdue(now) {
            self.outputs.push_back(lost);
            if let Some(engine) = self.engines.first().map(|engine| engine.id) {
                self.replace(now, engine, "a step did not end in time");
            }
        }
        self.look_again(now);
    }
}
