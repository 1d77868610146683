//! This node's way into crews: it shows how fast it is, takes its place, and passes on what its members
//! say. What a member does is [`crate::session`]'s.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::{MAX_CREWS_PER_NODE, MAX_SWARM_LINKS};
use shoal_protocol::sign::link_statement;
use shoal_protocol::{
    Attempt, CrewId, CrewSay, CrewTask, CrewTold, Enlist, Epoch, Failure, FromNode, JobId, LinkKey,
    Signature,
};

use crate::Output;
use crate::consent::Consent;
use crate::state::{CrewOf, Node};

impl Node {
    /// The shell made a key for this node's links.
    pub(crate) fn link_with(&mut self, key: LinkKey) {
        self.link_key = Some(key);
        self.prove_links();
    }

    /// A crew may ask for this node, and wants to know its key.
    pub(crate) fn must_link(&mut self) {
        match self.link_key {
            Some(_) => self.prove_links(),
            None => self.outputs.push_back(Output::Link),
        }
    }

    /// Has the links' key signed, so that others may believe it; on each connection, because another
    /// coordinator may be there.
    pub(crate) fn prove_links(&mut self) {
        let (Some(key), Some(coordinator)) = (&self.link_key, &self.coordinator) else { return };
        if self.is_joined() {
            let statement = link_statement(coordinator, key);
            self.outputs.push_back(Output::Sign(statement));
        }
    }

    pub(crate) fn proved_links(&mut self, statement: &[u8], proof: Signature) {
        let (Some(key), Some(coordinator)) = (self.link_key, &self.coordinator) else { return };
        if self.is_joined() && link_statement(coordinator, &key) == statement {
            self.send(FromNode::Links { key, proof });
        }
    }

    /// Tried as soon as the job's code was checked.
    pub(crate) fn audition(&mut self, crew: CrewId, job: JobId) {
        if self.agreed(job) {
            self.outputs.push_back(Output::Audition { crew, job });
        } else if self.jobs.contains_key(&job) && self.auditions.len() < MAX_CREWS_PER_NODE {
            self.auditions.insert((job, crew));
        }
    }

    /// A job's code may run: whoever waited to try it can.
    pub(crate) fn audition_waiting(&mut self) {
        let ready: Vec<_> = self.auditions.iter().filter(|(job, _)| self.agreed(*job)).collect();
        let ready: Vec<_> = ready.into_iter().copied().collect();
        for (job, crew) in ready {
            self.auditions.remove(&(job, crew));
            self.outputs.push_back(Output::Audition { crew, job });
        }
        let jobs = &self.jobs;
        self.auditions.retain(|(job, _)| jobs.contains_key(job));
    }

    /// A place in a crew. Who keeps parts of a service is called before the service's code was checked: that is waited
    /// for.
    pub(crate) fn enlist(&mut self, enlist: Box<Enlist>) {
        if let CrewTask::Stage(task) = &enlist.task
            && self.jobs.get(&task.job).is_some_and(|info| info.consent == Consent::Asked)
            && (self.called.contains_key(&enlist.crew) || self.called.len() < MAX_CREWS_PER_NODE)
        {
            self.called.insert(enlist.crew, enlist);
            return;
        }
        self.take_place(enlist);
    }

    /// A job's code was checked: whoever waited for its place has it, or says that it does not take it.
    pub(crate) fn enlist_waiting(&mut self) {
        core::mem::take(&mut self.called).into_values().for_each(|enlist| self.enlist(enlist));
    }

    fn take_place(&mut self, enlist: Box<Enlist>) {
        let (of, may) = match &enlist.task {
            CrewTask::Sim(task) => (CrewOf::Sim(task.job), self.agreed(task.job) && !self.paused),
            CrewTask::Talk => (CrewOf::Talk, self.config.talks),
            CrewTask::Swarm => (CrewOf::Swarm, self.config.shares && !self.paused),
            CrewTask::Stage(task) => {
                (CrewOf::Stage(task.job), self.agreed(task.job) && !self.paused)
            }
        };
        let known = self.crews.contains_key(&enlist.crew);
        let shares = self.crews.values().filter(|of| **of == CrewOf::Swarm).count();
        let room = match of {
            CrewOf::Swarm => shares < MAX_SWARM_LINKS,
            CrewOf::Sim(_) | CrewOf::Talk | CrewOf::Stage(_) => {
                self.crews.len() - shares < MAX_CREWS_PER_NODE
            }
        };
        if may && (known || room) {
            self.crews.insert(enlist.crew, of);
            self.outputs.push_back(Output::Enlist(enlist));
            return;
        }
        let message = String::from("this device does not take part in it");
        let say = CrewSay::Failed { failure: Failure::Unable { message } };
        self.crew_says(enlist.crew, enlist.epoch, say);
    }

    pub(crate) fn dismiss(&mut self, crew: CrewId) {
        self.called.remove(&crew);
        self.forget_calls_of(crew);
        if self.crews.remove(&crew).is_some() {
            self.outputs.push_back(Output::Dismiss(crew));
        }
    }

    /// The crew in which this node keeps parts of a service.
    pub(crate) fn crew_for(&self, service: JobId) -> Option<CrewId> {
        let mut crews = self.crews.iter();
        crews.find(|(_, of)| **of == CrewOf::Stage(service)).map(|(crew, _)| *crew)
    }

    /// What came of a request that went through the crew. One that is over for the coordinator it drops.
    pub(crate) fn crew_answers(
        &mut self,
        crew: CrewId,
        call: Attempt,
        result: Result<Vec<u8>, Failure>,
    ) {
        if !self.is_joined() || !self.crews.contains_key(&crew) {
            return;
        }
        match result {
            Ok(bytes) => self.answer_in_parts(call, 0, bytes.into(), true),
            Err(failure) => self.send(FromNode::Failed { attempt: call, failure }),
        }
    }

    /// The same of an answer that comes in parts.
    pub(crate) fn crew_part(
        &mut self,
        crew: CrewId,
        call: Attempt,
        at: u64,
        bytes: Vec<u8>,
        last: bool,
    ) {
        if self.is_joined() && self.crews.contains_key(&crew) {
            self.answer_in_parts(call, at, bytes.into(), last);
        }
    }

    pub(crate) fn tell_crew(&mut self, crew: CrewId, say: CrewTold) {
        if self.crews.contains_key(&crew) || matches!(say, CrewTold::NotMet { .. }) {
            self.outputs.push_back(Output::ToCrew { crew, say });
        }
    }

    pub(crate) fn crew_says(&mut self, crew: CrewId, epoch: Epoch, say: CrewSay) {
        if self.is_joined() {
            self.send(FromNode::Crew { crew, epoch, say });
        }
    }

    /// Ends this node's talk and sharing, and its parts of services: the coordinator parted whoever it had to do with
    /// when its connection was lost.
    pub(crate) fn leave_pairs(&mut self) {
        self.called.clear();
        self.leave_where(|of| matches!(of, CrewOf::Talk | CrewOf::Swarm | CrewOf::Stage(_)));
    }

    /// The donor wants their device back: what is computed together stops here at once, and nothing is given.
    pub(crate) fn leave_work(&mut self) {
        self.called.clear();
        self.leave_where(|of| matches!(of, CrewOf::Sim(_) | CrewOf::Swarm | CrewOf::Stage(_)));
    }

    /// Ends this node's part in the crews of a job, or in all of them.
    pub(crate) fn leave_crews(&mut self, of_job: Option<JobId>) {
        self.leave_where(|of| {
            of_job.is_none_or(|job| of == CrewOf::Sim(job) || of == CrewOf::Stage(job))
        });
        self.auditions.retain(|(job, _)| of_job.is_some_and(|of| of != *job));
    }

    fn leave_where(&mut self, over: impl Fn(CrewOf) -> bool) {
        let over = self.crews.iter().filter(|(_, of)| over(**of));
        let over: Vec<_> = over.map(|(crew, _)| *crew).collect();
        for crew in over {
            self.dismiss(crew);
        }
    }
}
