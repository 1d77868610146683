//! Taking a job in.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use shoal_protocol::limit::{MAX_OPEN_JOBS, MAX_UNITS_PER_JOB};
use shoal_protocol::{Caps, JobId, JobSpec, Lane, Needs, Time};

use crate::Output;
use crate::assign::crew::GATHER;
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
            SubmitError::NoNodeCan { asked, offered } => {
                write!(f, "no node can run this: it asks for {asked}; the pool offers {offered}")
            }
        }
    }
}

impl Scheduler {
    pub(crate) fn submit(&mut self, now: Time, request: RequestId, spec: JobSpec) {
        let result = self.admit(&spec).map(|()| self.take_in(now, spec));
        self.outputs.push_back(Output::Reply { request, result: result.clone() });
        if let Ok(id) = result {
            if self.sim(id).is_some() {
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
        if self.running.len() >= MAX_OPEN_JOBS {
            return Err(SubmitError::Busy { open: self.running.len() });
        }
        let units = spec.items.div_ceil(spec.sizing.most.max(1));
        if units > MAX_UNITS_PER_JOB {
            return Err(SubmitError::TooManyUnits { units });
        }
        let able = self.peers.values().any(|peer| peer.caps.meets(&spec.needs));
        if !able && !self.peers.is_empty() {
            let asked = describe_needs(&spec.needs);
            let offered = describe_pool(&spec.needs, self.peers.values().map(|peer| &peer.caps));
            return Err(SubmitError::NoNodeCan { asked, offered });
        }
        Ok(())
    }

    fn take_in(&mut self, now: Time, spec: JobSpec) -> JobId {
        self.last_job += 1;
        let id = JobId(self.last_job);
        self.record(Fact::Submitted { job: id, at: now, spec: Box::new(spec.clone()) });
        let mut job = Job::new(id, spec, now);
        // A newcomer starts level with the least served, not ahead of everybody for all the past.
        let others = self.running.iter().filter_map(|other| self.jobs.get(other));
        let priority = job.spec.policy.priority;
        let others = others.filter(|other| other.spec.policy.priority == priority);
        job.served = others.map(|other| other.served).min().unwrap_or(0);
        if job.has_work() {
            self.ready.insert(job.turn(id));
        }
        self.jobs.insert(id, job);
        self.running.insert(id);
        id
    }
}

fn describe_needs(needs: &Needs) -> String {
    match needs.lane {
        Lane::Inline => "nothing".to_string(),
        Lane::Cpu => "a node that runs programs".to_string(),
        Lane::Gpu => format!(
            "a GPU with buffers of {} MiB, {} invocations and {} bytes in a workgroup, {} storage buffers",
            needs.buffer_bytes.div_ceil(1 << 20),
            needs.workgroup_invocations,
            needs.workgroup_bytes,
            needs.storage_buffers
        ),
    }
}

fn describe_pool<'a>(needs: &Needs, pool: impl Iterator<Item = &'a Caps> + Clone) -> String {
    let nodes = pool.clone().count();
    let gpus = pool.clone().filter_map(|caps| caps.gpu.as_ref());
    match needs.lane {
        Lane::Inline => format!("{nodes} nodes"),
        Lane::Cpu => format!("{nodes} nodes, none of which runs programs"),
        Lane::Gpu if gpus.clone().next().is_none() => format!("{nodes} nodes, none with a GPU"),
        Lane::Gpu => format!(
            "at most {} MiB, {} invocations, {} bytes, {} storage buffers",
            gpus.clone().map(|gpu| gpu.buffer_bytes).max().unwrap_or(0) >> 20,
            gpus.clone().map(|gpu| gpu.workgroup_invocations).max().unwrap_or(0),
            gpus.clone().map(|gpu| gpu.workgroup_bytes).max().unwrap_or(0),
            gpus.clone().map(|gpu| gpu.storage_buffers).max().unwrap_or(0)
        ),
    }
}
