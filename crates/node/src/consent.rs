//! For whom this device works. The donor may name keys whose work is run and keys whose work never is; and
//! nothing runs before its signature was checked.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, Failure, FromNode, JobId, PublicKey, Signed};

use crate::Output;
use crate::state::{JobInfo, Node};

/// Services that went elsewhere and are remembered as declined: as many as a pool has.
const MAX_DECLINED: usize = 64;

/// The donor's choice by the keys that stand for code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// If any are named, nobody else's code is run.
    pub only: Vec<PublicKey>,
    /// Nothing of theirs is run.
    pub never: Vec<PublicKey>,
}

impl Rules {
    /// Jobs without code harm nobody.
    pub fn allow(&self, signed: Option<&Signed>) -> bool {
        let Some(Signed { by, .. }) = signed else { return true };
        let named = self.only.is_empty() || self.only.contains(by);
        named && !self.never.contains(by)
    }
}

/// Whether a job's units may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// The shell is looking at the signature.
    Asked,
    Given,
    /// By the donor's rules.
    Declined,
    /// The code is not what was signed.
    Bad(String),
}

/// Services that are no longer here, of which the coordinator was told that they are declined, or no longer; and who
/// stands for them. It does not speak of them again before it hears that the donor thinks otherwise.
#[derive(Default)]
pub(crate) struct Elsewhere(BTreeMap<JobId, Option<Signed>>);

impl Elsewhere {
    /// A job ends and is never spoken of again; a service, which has no items, may come back.
    pub(crate) fn note(&mut self, job: JobId, info: &JobInfo) {
        if info.told_declined && info.items == 0 {
            self.0.insert(job, info.signed);
        }
        if self.0.len() > MAX_DECLINED {
            self.0.pop_first();
        }
    }

    /// Another connection: the coordinator thinks nothing of this node.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Node {
    /// A job this node was not told of before.
    pub(crate) fn told(&mut self, job: JobId, mut info: JobInfo) {
        if self.jobs.get(&job).is_some_and(|known| !known.is_same(&info)) {
            // What was checked must be what runs.
            self.refuse(job, "the coordinator changed what the job is");
            return;
        }
        if self.jobs.contains_key(&job) {
            // Said twice: what was found out about it stands.
            if self.jobs.get(&job).is_some_and(|known| known.consent == Consent::Declined) {
                self.send(FromNode::Declined { job, declined: true });
            }
            return;
        }
        info.consent = match &info.signed {
            signed if !self.config.rules.allow(signed.as_ref()) => Consent::Declined,
            // Nothing but empty units may come unsigned.
            None if info.work.code().is_none() => Consent::Given,
            None => Consent::Bad(String::from("nobody signed it")),
            Some(_) => Consent::Asked,
        };
        let (asks, declines) = (info.consent == Consent::Asked, info.consent == Consent::Declined);
        info.told_declined = self.elsewhere.0.remove(&job).is_some() || declines;
        self.jobs.insert(job, info);
        if asks {
            self.ask(job);
        }
        if declines {
            self.send(FromNode::Declined { job, declined: true });
        }
    }

    /// Has the code checked. A verdict that is still to come may be about other code with the same number.
    fn ask(&mut self, job: JobId) {
        let busy = !self.checking.insert(job);
        if let Some(info) = self.jobs.get_mut(&job) {
            info.check_again = busy;
        }
        if !busy {
            self.outputs.push_back(Output::Check(job));
        }
    }

    pub(crate) fn agreed(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.consent == Consent::Given)
    }

    pub(crate) fn checked(&mut self, job: JobId, result: Result<(), String>) {
        self.checking.remove(&job);
        let Some(info) = self.jobs.get_mut(&job).filter(|job| job.consent == Consent::Asked) else {
            return;
        };
        if info.check_again {
            self.ask(job);
            return;
        }
        match result {
            Ok(()) => info.consent = Consent::Given,
            Err(message) => self.refuse(job, &message),
        }
        self.audition_waiting();
        self.enlist_waiting();
        self.warm_waiting();
        self.begin_all();
    }

    /// Nothing of the job runs any more.
    fn refuse(&mut self, job: JobId, message: &str) {
        let Some(info) = self.jobs.get_mut(&job) else { return };
        info.consent = Consent::Bad(String::from(message));
        self.leave_crews(Some(job));
        self.fail_calls(Some(job));
        let running = self.stop_running(job);
        for attempt in self.take_queued(job).into_iter().chain(running) {
            let failure = Failure::Signature { message: String::from(message) };
            self.units_failed += 1;
            self.send_if_joined(FromNode::Failed { attempt, failure });
        }
    }

    fn stop_running(&mut self, job: JobId) -> Vec<Attempt> {
        let running = self.running.iter().filter(|(_, running)| running.job == job);
        let running: Vec<_> = running.map(|(attempt, _)| *attempt).collect();
        for attempt in &running {
            self.running.remove(attempt);
            self.outputs.push_back(Output::Abort(*attempt));
        }
        self.finished.retain(|answer| answer.job != job);
        running
    }

    /// The donor chose anew: what no longer may run ends, what may again is looked at.
    pub(crate) fn rule(&mut self, rules: Rules) {
        self.config.rules = rules;
        let jobs: Vec<_> = self.jobs.keys().copied().collect();
        for job in jobs {
            let Some(info) = self.jobs.get_mut(&job) else { continue };
            info.told_declined = true;
            let allowed = self.config.rules.allow(info.signed.as_ref());
            let declined = info.consent == Consent::Declined;
            if allowed && declined {
                info.consent = Consent::Asked;
                self.ask(job);
                self.send_if_joined(FromNode::Declined { job, declined: false });
            } else if !allowed && !declined {
                info.consent = Consent::Declined;
                self.decline(job);
            }
        }
        self.say_elsewhere();
        self.begin_all();
    }

    /// Of services that this node does not know any more.
    fn say_elsewhere(&mut self) {
        let rules = &self.config.rules;
        let said = self.elsewhere.0.iter().map(|(job, by)| (*job, !rules.allow(by.as_ref())));
        let said: Vec<_> = said.collect();
        for (job, declined) in said {
            self.send_if_joined(FromNode::Declined { job, declined });
        }
    }

    /// Said again, in case it was lost: whoever is thought to decline gets nothing for ever.
    pub(crate) fn say_declined_again(&mut self) {
        let told = self.jobs.iter().filter(|(_, info)| info.told_declined);
        let told: Vec<_> = told.map(|(id, i)| (*id, i.consent == Consent::Declined)).collect();
        for (job, declined) in told {
            self.send(FromNode::Declined { job, declined });
        }
        self.say_elsewhere();
    }

    fn decline(&mut self, job: JobId) {
        self.leave_crews(Some(job));
        self.fail_calls(Some(job));
        let running = self.stop_running(job);
        self.send_if_joined(FromNode::Declined { job, declined: true });
        let back: Vec<_> = self.take_queued(job).into_iter().chain(running).collect();
        if !back.is_empty() {
            self.send_if_joined(FromNode::Returned(back));
        }
    }

    fn take_queued(&mut self, job: JobId) -> Vec<Attempt> {
        let mut taken = Vec::new();
        for queue in self.queues.values_mut() {
            taken.extend(queue.iter().filter(|l| l.job == job).map(|l| l.attempt));
            queue.retain(|lease| lease.job != job);
        }
        taken
    }

    fn send_if_joined(&mut self, message: FromNode) {
        if self.is_joined() {
            self.send(message);
        }
    }
}

impl JobInfo {
    fn is_same(&self, other: &JobInfo) -> bool {
        self.signed == other.signed && self.work == other.work && self.items == other.items
    }
}
