//! Who waits for what: requests for the scheduler's word, people for the end of a job, callers for the answer of a
//! service.

use std::collections::{BTreeMap, HashMap};

use shoal_protocol::{Bytes, JobId};
use shoal_scheduler::{CallError, CallId, RequestId};

use super::event::{NotTaken, Reply, Ticket};
use super::keyed::Key;
use crate::answer::{Giver, Ran};
use shoal_api::JobJson;

#[derive(Default)]
pub(super) struct Waiting {
    last_request: u64,
    requests: BTreeMap<RequestId, Asked>,
    last_call: u64,
    calls: BTreeMap<CallId, Giver>,
    ends: HashMap<JobId, ForEnd>,
}

/// What the scheduler was asked.
pub(super) enum Asked {
    Submit(Ticket),
    Serve { key: Option<Key>, reply: Reply<Result<JobId, NotTaken>> },
}

/// Who wants to know when a job has ended.
#[derive(Default)]
pub(super) struct ForEnd {
    pub(super) askers: Vec<Reply<Option<JobJson>>>,
    pub(super) submitters: Vec<Reply<Result<JobJson, NotTaken>>>,
}

impl Waiting {
    /// The number under which the scheduler is asked and answers.
    pub(super) fn request(&mut self, asked: Asked) -> RequestId {
        self.last_request += 1;
        let request = RequestId(self.last_request);
        self.requests.insert(request, asked);
        request
    }

    /// The scheduler's word on a request is there.
    pub(super) fn asked(&mut self, request: RequestId) -> Option<Asked> {
        self.requests.remove(&request)
    }

    pub(super) fn submitter(&mut self, job: JobId, reply: Reply<Result<JobJson, NotTaken>>) {
        self.ends.entry(job).or_default().submitters.push(reply);
    }

    /// Those who gave up waiting are dropped here, so that a long job gathers none.
    pub(super) fn asker(&mut self, job: JobId, reply: Reply<Option<JobJson>>) {
        let askers = &mut self.ends.entry(job).or_default().askers;
        askers.retain(|asker| !asker.is_closed());
        askers.push(reply);
    }

    /// The job has ended.
    pub(super) fn ended(&mut self, job: JobId) -> Option<ForEnd> {
        self.ends.remove(&job)
    }

    pub(super) fn call(&mut self, answer: Giver) -> CallId {
        self.last_call += 1;
        let call = CallId(self.last_call);
        self.calls.insert(call, answer);
        call
    }

    /// Whether the answer was still waited for.
    pub(super) fn hang_up(&mut self, call: CallId) -> bool {
        self.calls.remove(&call).is_some()
    }

    /// Answers are not facts, so they are passed on at once.
    pub(super) fn part(&mut self, call: CallId, part: Bytes) {
        if let Some(answer) = self.calls.get(&call) {
            answer.give(part);
        }
    }

    /// The part before was the last one.
    pub(super) fn whole(&mut self, call: CallId, ran: Ran) {
        if let Some(answer) = self.calls.remove(&call) {
            answer.finish(ran);
        }
    }

    pub(super) fn unanswered(&mut self, call: CallId, error: CallError) {
        if let Some(answer) = self.calls.remove(&call) {
            answer.fail(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Next, answer};
    use shoal_protocol::Micros;
    use tokio::sync::oneshot;

    #[test]
    fn who_gave_up_is_dropped_and_the_others_hear_of_the_end_once() {
        let (mut waiting, job) = (Waiting::default(), JobId(1));
        let (gave_up, _) = oneshot::channel();
        waiting.asker(job, gave_up);
        let (asker, _answer) = oneshot::channel();
        waiting.asker(job, asker);
        let (submitter, _answer) = oneshot::channel();
        waiting.submitter(job, submitter);
        let ended = waiting.ended(job).unwrap();
        assert_eq!((ended.askers.len(), ended.submitters.len()), (1, 1));
        assert!(waiting.ended(job).is_none());
    }

    #[tokio::test]
    async fn nothing_follows_the_last_part_of_an_answer() {
        let mut waiting = Waiting::default();
        let (giver, mut taker) = answer();
        let call = waiting.call(giver);
        let ran =
            || Ran { node: 1, name: "desk".into(), waited: Micros(0), took: Micros(0), stages: 1 };
        waiting.part(call, vec![1].into());
        waiting.part(call, vec![2].into());
        waiting.whole(call, ran());
        waiting.part(call, vec![3].into());
        waiting.whole(call, ran());
        assert!(!waiting.hang_up(call));
        assert_eq!(taker.next().await, Next::Bytes(vec![1, 2].into()));
        assert_eq!(taker.next().await, Next::Whole);
    }
}
