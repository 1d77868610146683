//! People who ask a service while everything goes wrong: each is answered once and rightly, or told why not by its
//! deadline.

use std::collections::{BTreeMap, BTreeSet};

use shoal_kinds::{ExecItems, ExecWork, Failing, ServiceSpec, Split};
use shoal_node::Input as NodeInput;
use shoal_protocol::{
    Attempt, BlobRef, Failure, Footprint, Hash, JobId, Lane, Lease, Limits, Micros, Needs,
    Priority, Signature, Signed, Time, UnitOutput,
};
use shoal_scheduler::{CallError, CallId, Input, Ran, RequestId, Urgency};

use crate::device::author;
use crate::lies::Lies;
use crate::report::Report;
use crate::rounds;
use crate::staged::SplitPlan;
use crate::world::{Event, Probe, World};

/// The request for the service itself: beyond all jobs'.
pub(crate) const SERVICE: RequestId = RequestId(1 << 40);
/// Requests after all faults: each of them must be answered.
const LAST: u64 = 3;
/// Their patience: longer than any node needs to come back.
const PATIENCE: u64 = 60_000_000;

#[derive(Default)]
pub(crate) struct Callers {
    service: Option<JobId>,
    calls: BTreeMap<CallId, Call>,
    /// Those that are over.
    ended: u64,
    answered: u64,
    planned: u64,
    /// Texts of which a part failed for no good reason: what comes of them afterwards does not follow.
    failed: BTreeSet<Attempt>,
    pub(crate) lies: Lies,
}

struct Call {
    number: u64,
    truth: Vec<u8>,
    deadline: Time,
    heard: Vec<u8>,
    /// Other words came than the right ones, as they may where devices lie.
    spoiled: bool,
    /// Asked when nothing goes wrong any more.
    surely: bool,
}

impl Callers {
    pub(crate) fn served(&mut self, service: JobId) {
        self.service = Some(service);
    }

    /// Whether it is a service: what is said of one that several keep ready is not said again.
    pub(crate) fn is_service(&self, job: JobId) -> bool {
        self.service == Some(job)
    }

    pub(crate) fn service(&self) -> Option<JobId> {
        self.service
    }

    pub(crate) fn fill(&self, report: &mut Report) {
        (report.calls, report.answered) = (self.planned, self.answered);
        self.lies.fill(report);
    }

    pub(crate) fn are_done(&self) -> bool {
        self.ended >= self.planned
    }

    /// The coordinator is gone, and with it whoever waited.
    pub(crate) fn cut_off(&mut self) {
        self.ended += self.calls.len() as u64;
        self.calls.clear();
        self.lies.cut_off();
    }

    pub(crate) fn answered(&mut self, id: CallId, part: &[u8], last: bool, ran: Ran) {
        let call = self.calls.get_mut(&id).expect("an answer to nobody, or a second one");
        call.heard.extend_from_slice(part);
        call.spoiled |= !call.truth.starts_with(&call.heard);
        assert!(self.lies.are_told || !call.spoiled, "request {}: other words", call.number);
        if last {
            assert!(call.spoiled || call.heard.len() == call.truth.len(), "half an answer");
            let Some(call) = self.calls.remove(&id) else { return };
            self.lies.given(call.number, call.heard, call.spoiled, ran);
            self.ended += 1;
            self.answered += 1;
        }
    }

    /// A device failed with this, and it is nobody's fault.
    pub(crate) fn failed_by_chance(&mut self, call: Attempt) {
        self.failed.insert(call);
    }

    /// A device's parts have a hole where this should go on, or no room for it.
    pub(crate) fn refused(&self, call: Attempt, why: &str) {
        assert!(self.failed.contains(&call), "{call:?} cannot go on: {why}");
    }

    pub(crate) fn unanswered(&mut self, now: Time, id: CallId, error: &CallError) {
        let call = self.calls.remove(&id).expect("an end of nothing, or a second one");
        let doubted = self.lies.are_told && matches!(error, CallError::Doubted { .. });
        assert!(!call.surely || doubted, "request {} was not answered: {error}", call.number);
        let late = matches!(error, CallError::Deadline { .. });
        assert!(!late || now >= call.deadline, "its time was not over");
        self.ended += 1;
    }
}

/// What the program gives for a number: some bytes, in several parts if they are many.
pub(crate) fn answer(number: u64) -> Vec<u8> {
    let times = 1 + (number % 7) as usize * 20_000;
    number.wrapping_mul(3).to_le_bytes().repeat(times)
}

impl<P: Probe> World<P> {
    pub(crate) fn plan_calls(&mut self) {
        let calls = self.scenario.calls;
        self.callers.lies.are_told = self.scenario.split.is_some_and(|plan| plan.lied);
        if calls == 0 {
            return;
        }
        self.serve_again();
        let until = self.scenario.faults.until.max(1_000_000);
        for number in 0..calls {
            let at = self.random.range(500_000, until + 1_000_000);
            self.at(at, Event::Ask(number));
        }
        // After everybody had time to come back.
        for number in calls..calls + LAST {
            self.at(until + 30_000_000 + number, Event::Ask(number));
        }
        self.callers.planned = calls + LAST;
    }

    /// Whoever wanted the service asks again until it is there.
    pub(crate) fn serve_again(&mut self) {
        if self.scenario.calls == 0 || self.scheduler.is_none() {
            return;
        }
        let there = self.scheduler.as_ref().is_some_and(|live| !live.services().is_empty());
        if !there {
            let spec = service(self.scenario.split);
            self.give(Input::Serve { request: SERVICE, spec });
        }
    }

    pub(crate) fn ask_service(&mut self, number: u64) {
        let surely = number >= self.scenario.calls;
        let id = CallId(number);
        let Some(service) = self.callers.service.filter(|_| self.scheduler.is_some()) else {
            // Nobody is there to be asked.
            self.callers.ended += 1;
            return;
        };
        let patience = if surely { PATIENCE } else { self.random.range(300_000, 10_000_000) };
        let deadline = self.clock() + Micros(patience);
        let priority = [Priority::Interactive, Priority::Normal, Priority::Batch];
        let priority = priority[self.random.range(0, 3) as usize];
        let body = number.to_le_bytes().to_vec();
        let (truth, heard) = (self.answer_to(&body), Vec::new());
        let call = Call { number, truth, deadline, heard, surely, spoiled: false };
        self.callers.calls.insert(id, call);
        // Every other one wants its answer soon: some of those are asked of two nodes.
        let budget = number.is_multiple_of(2).then_some(Micros(patience / 4));
        let urgency = Urgency { priority, deadline, budget };
        self.give(Input::Ask { call: id, service, body, urgency });
        // Some hang up.
        if !surely && self.random.chance(50_000) && self.callers.calls.remove(&id).is_some() {
            self.callers.ended += 1;
            self.give(Input::HangUp { call: id });
        }
    }

    fn answer_to(&self, body: &[u8]) -> Vec<u8> {
        let number = || u64::from_le_bytes(body.try_into().expect("a number"));
        self.scenario.split.map_or_else(|| answer(number()), |plan| plan.answer(body))
    }

    /// Of so many numbers that a device makes for the service, one is another.
    pub(crate) fn lies_of(&self, at: usize) -> Option<u64> {
        let linked = self.devices[at].linked.as_ref().filter(|_| self.callers.lies.are_told);
        linked.and_then(|linked| linked.spoils)
    }

    pub(crate) fn begin_call(&mut self, at: usize, lease: Lease, body: &[u8]) {
        let mishap = self.has_faults() && self.random.chance(self.scenario.faults.mishaps);
        let took = self.random.range(1_000, 400_000);
        let bytes = match (self.lies_of(at), self.scenario.split) {
            (Some(every), Some(plan)) => rounds::answer_of(&plan, body, Some(every)),
            (Some(_) | None, Some(_) | None) => self.answer_to(body),
        };
        let bytes = (!mishap).then_some(bytes);
        let (birth, attempt) = (self.devices[at].birth, lease.attempt);
        self.at(self.now.0 + took, Event::Called { device: at, birth, attempt, bytes });
    }

    pub(crate) fn called(
        &mut self,
        at: usize,
        birth: u32,
        attempt: Attempt,
        bytes: Option<Vec<u8>>,
    ) {
        if self.devices[at].birth != birth {
            return;
        }
        let result = match bytes {
            // A program's answer has its length before it.
            Some(bytes) => {
                let mut packed = (bytes.len() as u32).to_le_bytes().to_vec();
                packed.extend(bytes);
                Ok(UnitOutput::Inline(packed))
            }
            None => Err(Failure::Internal { message: "a mishap".into() }),
        };
        self.tell_device(at, NodeInput::Ran { attempt, took: Micros(1), result });
    }
}

fn service(split: Option<SplitPlan>) -> ServiceSpec {
    let module = BlobRef { hash: Hash([0; 32]), size: 0 };
    let work = ExecWork {
        module,
        args: Vec::new(),
        env: Vec::new(),
        items: ExecItems::Requests,
        folder: None,
        clock: false,
        failing: Failing::default(),
        leaves: false,
    };
    // All of it takes more than its parts, as it is with models.
    let memory = split.map_or(0, |plan| plan.memory * plan.parts * 2);
    let takes = Footprint { memory, ..Footprint::NOTHING };
    ServiceSpec {
        name: "triple".into(),
        owner: "sim".into(),
        work: split.map_or(work.into(), |plan| plan.work()),
        needs: Needs::lane(Lane::Cpu).takes(takes),
        limits: Limits::default(),
        signed: Some(Signed { by: author(0), signature: Signature([0; 32], [0; 32]) }),
        least: 1,
        most: 4,
        queue: 64,
        idle: Micros::from_secs(2),
        strangers: true,
        split: split.map_or(Split::Never, |plan| plan.split()),
    }
}
