//! Requests to services: jobs without an end that this node keeps ready. A request goes before units, because
//! somebody waits for it; it lives as long as the connection it came by, because whoever asked is told of its loss
//! and asks another.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::limit::{ANSWER_PART_BYTES, MAX_CALLS_PER_NODE, MAX_REQUEST_BYTES};
use shoal_protocol::{
    Attempt, Bytes, CrewId, Failure, FromNode, JobId, Lane, Lease, Span, UnitOutput,
};

use crate::Output;
use crate::consent::Consent;
use crate::state::{JobInfo, Node};

/// What a node knows of requests.
#[derive(Default)]
pub(crate) struct Calls {
    /// Services to be made ready once they may run.
    warming: BTreeSet<JobId>,
    /// Services that are ready here.
    ready: BTreeSet<JobId>,
    /// Not begun, in the order they came.
    waiting: VecDeque<Call>,
    running: BTreeMap<Attempt, Running>,
}

#[derive(Clone, Copy)]
struct Running {
    job: JobId,
    lane: Lane,
    /// Bytes of its answer that were said.
    said: u64,
    /// It is answered beside others of its service, by what keeps that ready.
    shares: bool,
}

/// Bodies of requests that wait here: more would take the memory that is lent for work.
const MAX_WAITING_BYTES: u64 = 4 * MAX_REQUEST_BYTES as u64;

struct Call {
    call: Attempt,
    job: JobId,
    body: Arc<Vec<u8>>,
    /// Bytes that are still to come.
    missing: u64,
    /// Whose it is, if this node keeps only parts of the service.
    crew: Option<CrewId>,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    pub(crate) fn running_on(&self, lane: Lane) -> usize {
        self.running.values().filter(|running| running.lane == lane).count()
    }

    fn running_of(&self, job: JobId) -> usize {
        self.running.values().filter(|running| running.job == job).count()
    }

    /// Those of a lane that have a slot of their own.
    fn in_slots(&self, lane: Lane) -> usize {
        let own = |running: &&Running| running.lane == lane && !running.shares;
        self.running.values().filter(own).count()
    }

    /// The services of all that run, once for each request that takes what the service takes: those that share it take
    /// it together.
    pub(crate) fn jobs_at_work(&self) -> impl Iterator<Item = JobId> {
        let running = || self.running.values();
        let own = running().filter(|running| !running.shares).map(|running| running.job);
        let shared = running().filter(|running| running.shares).map(|running| running.job);
        own.chain(shared.collect::<BTreeSet<_>>())
    }

    pub(crate) fn job_at_work(&self) -> Option<JobId> {
        self.running.values().next().map(|running| running.job)
    }

    fn len(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    /// Bodies of what has not begun, those that are still to come included.
    fn waiting_bytes(&self) -> u64 {
        self.waiting.iter().map(|call| call.body.len() as u64 + call.missing).sum()
    }

    /// Drops what is chosen by its number and job; says what was at work.
    fn drop_where(&mut self, chosen: impl Fn(Attempt, JobId) -> bool) -> Vec<Attempt> {
        self.waiting.retain(|call| !chosen(call.call, call.job));
        let at_work = self.running.iter().filter(|(call, running)| chosen(**call, running.job));
        let at_work: Vec<_> = at_work.map(|(call, _)| *call).collect();
        self.running.retain(|call, running| !chosen(*call, running.job));
        at_work
    }
}

impl Node {
    /// What is kept ready here, for the donor's eyes.
    pub fn services(&self) -> impl Iterator<Item = (JobId, &JobInfo)> {
        let ready = self.calls.ready.iter();
        ready.filter_map(|job| Some((*job, self.jobs.get(job)?)))
    }

    pub(crate) fn warm(&mut self, job: JobId) {
        self.calls.warming.insert(job);
        self.warm_waiting();
    }

    /// Makes services ready that may run now, and says of those that may not.
    pub(crate) fn warm_waiting(&mut self) {
        for job in core::mem::take(&mut self.calls.warming) {
            match self.jobs.get(&job).map(|info| &info.consent) {
                Some(Consent::Given) => self.outputs.push_back(Output::Warm(job)),
                Some(Consent::Asked) => {
                    self.calls.warming.insert(job);
                }
                Some(Consent::Bad(message)) => {
                    let failure = Failure::Signature { message: message.clone() };
                    self.send(FromNode::Warm { job, result: Err(failure) });
                }
                Some(Consent::Declined) | None => {
                    self.send(FromNode::Warm { job, result: Err(not_here()) });
                }
            }
        }
    }

    pub(crate) fn warmed(&mut self, job: JobId, result: Result<(), Failure>) {
        if self.is_joined() && self.jobs.contains_key(&job) {
            if result.is_ok() {
                self.calls.ready.insert(job);
            }
            self.send(FromNode::Warm { job, result });
        }
    }

    pub(crate) fn asked(&mut self, call: Attempt, job: JobId, first: Bytes, missing: u64) {
        let consent = self.jobs.get(&job).map(|info| &info.consent);
        let may = matches!(consent, Some(Consent::Given | Consent::Asked));
        let bytes = missing.saturating_add(first.len() as u64);
        let large = bytes > MAX_REQUEST_BYTES as u64
            || bytes.saturating_add(self.calls.waiting_bytes()) > MAX_WAITING_BYTES;
        if !may || large || self.paused || self.calls.len() >= MAX_CALLS_PER_NODE {
            self.send(FromNode::Failed { attempt: call, failure: not_here() });
            return;
        }
        let crew = self.crew_for(job);
        // Room for all of it at once: what grows is copied again and again.
        let mut body = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        body.extend_from_slice(&first);
        self.calls.waiting.push_back(Call { call, job, body: Arc::new(body), missing, crew });
        self.begin_all();
    }

    /// More of a request that has not begun; what was refused or taken back meanwhile is not waited for.
    pub(crate) fn asked_more(&mut self, call: Attempt, bytes: &[u8]) {
        let mut waiting = self.calls.waiting.iter_mut();
        let Some(found) = waiting.find(|waiting| waiting.call == call) else { return };
        let taken = bytes.len().min(usize::try_from(found.missing).unwrap_or(usize::MAX));
        Arc::make_mut(&mut found.body).extend_from_slice(&bytes[..taken]);
        found.missing -= taken as u64;
        self.begin_all();
    }

    /// Requests for crews go there as soon as they are whole: others have most of the work.
    pub(crate) fn pass_calls(&mut self) {
        let is_whole = |call: &Call| call.missing == 0 && call.crew.is_some();
        while let Some(at) = self.calls.waiting.iter().position(is_whole)
            && let Some(Call { call, crew: Some(crew), body, .. }) = self.calls.waiting.remove(at)
        {
            self.outputs.push_back(Output::AskCrew { crew, call, body });
        }
    }

    /// A crew is over here: the coordinator asks another for what it asked this one.
    pub(crate) fn forget_calls_of(&mut self, crew: CrewId) {
        self.calls.waiting.retain(|call| call.crew != Some(crew));
    }

    /// Begins requests while there is room for them. Units at work do not count: a request does not wait for them.
    pub(crate) fn begin_calls(&mut self, lane: Lane) {
        while let Some(at) = self.calls.waiting.iter().position(|call| self.may_begin(call, lane)) {
            let Some(Call { call, job, body, .. }) = self.calls.waiting.remove(at) else { return };
            let info = self.jobs.get(&job);
            let shares = info.is_some_and(|info| info.work.at_once().is_some());
            self.calls.running.insert(call, Running { job, lane, said: 0, shares });
            let lease = Lease { attempt: call, job, span: Span::new(0, 1) };
            self.outputs.push_back(Output::Run { lease, lane, body: Some(body) });
        }
    }

    fn may_begin(&self, call: &Call, lane: Lane) -> bool {
        let Some(info) = self.jobs.get(&call.job) else { return false };
        let slots = usize::from(self.config.caps.slots(lane));
        let here = info.lane() == lane && info.consent == Consent::Given && slots > 0;
        if !here || call.missing > 0 || call.crew.is_some() {
            return false;
        }
        match (info.work.at_once(), self.calls.running_of(call.job)) {
            (None, _) => self.calls.in_slots(lane) < slots && self.has_means(call.job),
            (Some(_), 0) => self.has_means(call.job),
            (Some(most), running) => running < usize::from(most),
        }
    }

    /// A part of an answer, while the rest is still being computed.
    pub(crate) fn part(&mut self, call: Attempt, part: Vec<u8>) {
        let Some(running) = self.calls.running.get_mut(&call) else { return };
        let at = running.said;
        running.said += part.len() as u64;
        if self.is_joined() {
            self.answer_in_parts(call, at, part.into(), false);
        }
    }

    pub(crate) fn is_call(&self, attempt: Attempt) -> bool {
        self.calls.running.contains_key(&attempt)
    }

    /// A request is answered now.
    pub(crate) fn call_ran(&mut self, call: Attempt, result: Result<UnitOutput, Failure>) {
        let Some(Running { job, said, .. }) = self.calls.running.remove(&call) else { return };
        if self.is_joined() {
            match result {
                Ok(UnitOutput::Inline(bytes)) => {
                    let head = self
                        .jobs
                        .get(&job)
                        .map_or(0, |info| info.work.form().head_bytes(Span::new(0, 1)) as usize);
                    let mut bytes = Bytes::from(bytes);
                    let _ = bytes.split_to(head.min(bytes.len()));
                    self.answer_in_parts(call, said, bytes, true);
                }
                Ok(UnitOutput::Stored { .. }) => {
                    let message = String::from("an answer that was stored instead of said");
                    let failure = Failure::Internal { message };
                    self.send(FromNode::Failed { attempt: call, failure });
                }
                Err(failure) => self.send(FromNode::Failed { attempt: call, failure }),
            }
        }
        self.begin_all();
    }

    /// Because messages are bounded. The bytes stay where they are.
    pub(crate) fn answer_in_parts(
        &mut self,
        call: Attempt,
        mut at: u64,
        mut rest: Bytes,
        ends: bool,
    ) {
        if rest.is_empty() && !ends {
            return;
        }
        loop {
            let part = rest.split_to(rest.len().min(ANSWER_PART_BYTES));
            let (from, is_over) = (at, rest.is_empty());
            at += part.len() as u64;
            self.send(FromNode::Answer { call, at: from, part, last: ends && is_over });
            if is_over {
                return;
            }
        }
    }

    pub(crate) fn revoke_calls(&mut self, calls: &BTreeSet<Attempt>) {
        let ended = self.calls.drop_where(|call, _| calls.contains(&call));
        self.outputs.extend(ended.into_iter().map(Output::Abort));
    }

    /// The service ends here.
    pub(crate) fn end_service(&mut self, job: JobId) {
        self.calls.warming.remove(&job);
        self.calls.ready.remove(&job);
        let ended = self.calls.drop_where(|_, of| of == job);
        self.outputs.extend(ended.into_iter().map(Output::Abort));
    }

    /// The donor does not want it any more: whoever asked asks another.
    pub(crate) fn fail_calls(&mut self, job: Option<JobId>) {
        let of = |call: &Call| job.is_none_or(|job| call.job == job);
        let mut failed: Vec<_> =
            self.calls.waiting.iter().filter(|call| of(call)).map(|call| call.call).collect();
        let ended = self.calls.drop_where(|_, at| job.is_none_or(|job| at == job));
        self.outputs.extend(ended.iter().copied().map(Output::Abort));
        failed.extend(ended);
        for call in failed {
            if self.is_joined() {
                self.send(FromNode::Failed { attempt: call, failure: not_here() });
            }
        }
    }

    pub(crate) fn check_calls(&self) {
        assert!(self.calls.waiting_bytes() <= MAX_WAITING_BYTES, "more bytes than allowed");
        assert!(self.calls.len() <= MAX_CALLS_PER_NODE, "more requests than allowed");
        for (call, running) in &self.calls.running {
            assert!(self.agreed(running.job), "answering for a service that nobody agreed to");
            assert!(!self.running.contains_key(call), "a request that is also a unit");
        }
    }
}

fn not_here() -> Failure {
    Failure::DeviceLost { message: String::from("this node does not serve that now") }
}
