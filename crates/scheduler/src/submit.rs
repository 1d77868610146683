//! Taking a job in.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use shoal_kinds::JobSpec;
use shoal_protocol::limit::{MAX_OPEN_JOBS, MAX_UNITS_PER_JOB};
use shoal_protocol::{JobId, Time};

use crate::Output;
use crate::assign::crew::GATHER;
use crate::explain::{asked, offered};
use crate::fact::Fact;
use crate::job::Job;
use crate::state::{RequestId, Scheduler};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// Nothing to compute.
    Empty,
    /// More open jobs than allowed.
    Busy { open: usize },
    /// More units than allowed.
    TooManyUnits { units: u64 },
    /// Another service has this name.
    NameTaken { name: String },
    /// A service that takes more memory than any node lends that could serve it.
    TooLarge { takes: u64, most: u64 },
    /// No node connected now could ever run it; says what is asked and what the pool offers.
    NoNodeCan { asked: String, offered: String },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Empty => f.write_str("the input is empty: there is nothing to compute"),
            SubmitError::Busy { open } => {
                write!(f, "{open} jobs are open already: wait for one to end or cancel one")
            }
            SubmitError::TooManyUnits { units } => write!(
                f,
                "the job would have {units} units, at most {MAX_UNITS_PER_JOB} are allowed: give each more items"
            ),
            SubmitError::NameTaken { name } => {
                write!(
                    f,
                    "there is a service named {name:?} already: choose another name or remove it"
                )
            }
            SubmitError::TooLarge { takes, most } => {
                let (takes, most) = (takes.div_ceil(1 << 20), most >> 20);
                write!(
                    f,
                    "it takes {takes} MiB of memory, and no node here lends more than {most} MiB; a model can be split \
                     over several nodes with --split auto"
                )
            }
            SubmitError::NoNodeCan { asked, offered } => {
                write!(f, "no node can run this: it needs {asked}; the pool offers {offered}")
            }
        }
    }
}

impl Scheduler {
    pub(crate) fn submit(&mut self, now: Time, request: RequestId, spec: JobSpec) {
        let result = self.admit(&spec).map(|()| self.take_in(now, spec));
        self.outputs.push_back(Output::Reply { request, result: result.clone() });
        if let Ok(id) = result {
            if self.jobs.get(&id).is_some_and(|job| job.spec.work.takes_crew()) {
                self.form(now, id, GATHER);
                return;
            }
            self.feed_nearest(now, id);
            self.feed_hungry(now);
        }
    }

    fn admit(&self, spec: &JobSpec) -> Result<(), SubmitError> {
        if spec.items == 0 {
            return Err(SubmitError::Empty);
        }
        if self.jobs.running().len() >= MAX_OPEN_JOBS {
            return Err(SubmitError::Busy { open: self.jobs.running().len() });
        }
        let units = spec.items.div_ceil(spec.sizing.most.max(1));
        if units > MAX_UNITS_PER_JOB {
            return Err(SubmitError::TooManyUnits { units });
        }
        let able = self.peers.values().any(|peer| peer.caps.meets(&spec.needs));
        if !able && !self.peers.is_empty() {
            let asked = asked(&spec.needs);
            let offered = offered(&spec.needs, self.peers.values().map(|peer| &peer.caps));
            return Err(SubmitError::NoNodeCan { asked, offered });
        }
        Ok(())
    }

    fn take_in(&mut self, now: Time, spec: JobSpec) -> JobId {
        let id = self.numbers.next_job();
        self.record(Fact::Submitted { job: id, at: now, spec: Box::new(spec.clone()) });
        let mut job = Job::new(id, spec, now);
        // A newcomer starts level with the least served, not ahead of everybody for all the past.
        let priority = job.spec.policy.priority;
        let others =
            self.jobs.running_jobs().filter(|other| other.spec.policy.priority == priority);
        job.served = others.map(|other| other.served).min().unwrap_or(0);
        self.call_roll_for(&mut job);
        self.jobs.begin(job);
        id
    }
}
