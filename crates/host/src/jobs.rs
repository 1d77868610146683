//! Whose work this node runs: jobs as its lanes share them, checking that code is what somebody signed, and
//! telling the donor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shoal_kinds::Code;
use shoal_node::JobInfo;
use shoal_protocol::{FromNode, JobId, PublicKey, sign};

use super::{Host, Notice};
use crate::keys;

/// Who asks for a job, as the donor is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    pub name: String,
    pub owner: String,
    /// Whose code it is; none for jobs without code.
    pub key: Option<PublicKey>,
}

impl Asker {
    pub(super) fn of(info: &JobInfo) -> Asker {
        let (name, owner) = (info.name.clone(), info.owner.clone());
        Asker { name, owner, key: info.signed.map(|signed| signed.by) }
    }
}

/// What is kept of jobs beside the brain.
#[derive(Default)]
pub(super) struct Jobs {
    /// Copied once from the brain. The donor was told of these.
    shared: BTreeMap<JobId, Arc<JobInfo>>,
    /// Those the donor was told of as declined.
    declined: BTreeSet<JobId>,
}

impl Jobs {
    pub(super) fn get(&self, job: JobId) -> Option<&Arc<JobInfo>> {
        self.shared.get(&job)
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.shared.remove(&job);
        self.declined.remove(&job);
    }
}

impl Host<'_> {
    /// A job as the lanes share it. The donor hears of it when it is first asked for.
    pub(super) fn info(&mut self, job: JobId) -> Option<Arc<JobInfo>> {
        if let Some(info) = self.jobs.get(job) {
            return Some(info.clone());
        }
        let info = Arc::new(self.node.job(job)?.clone());
        self.jobs.shared.insert(job, info.clone());
        (self.notify)(Notice::Works(Asker::of(&info)));
        Some(info)
    }

    /// Whether a job's code is what its signature says. A module's bytes are held against this very
    /// hash when they are fetched.
    pub(super) fn check(&self, job: JobId) -> Result<(), String> {
        let info = self.node.job(job).ok_or("the job is over")?;
        let checked = check(info);
        if let Err(reason) = &checked {
            let (asker, reason) = (Asker::of(info), reason.clone());
            (self.notify)(Notice::Refuses { asker, reason });
        }
        checked
    }

    /// Tells the donor once of each job that is not run for them.
    pub(super) fn overhear(&mut self, message: &FromNode) {
        let FromNode::Declined { job, declined: true } = message else { return };
        if let Some(info) = self.node.job(*job)
            && self.jobs.declined.insert(*job)
        {
            (self.notify)(Notice::Declines(Asker::of(info)));
        }
    }
}

fn check(info: &JobInfo) -> Result<(), String> {
    let Some(Code { what, hash }) = info.work.code() else { return Ok(()) };
    let Some(signed) = &info.signed else { return Err(format!("nobody signed the {what}")) };
    if keys::is_signed(&signed.by, &sign::code_statement(&hash), &signed.signature) {
        return Ok(());
    }
    Err(format!("the {what} is not what the key {} signed", keys::short(&signed.by)))
}
