//! Computing units and sending answers: as many at a time as the lane has slots, answers in batches.

use alloc::vec::Vec;
use shoal_protocol::limit::{MAX_BATCH, MAX_DONE_BYTES};
use shoal_protocol::{
    Attempt, Failure, Finished, Footprint, FromNode, JobId, Lane, Micros, Time, UnitOutput,
};

use crate::Output;
use crate::state::{Answer, Node, Running};

/// Answers are sent at most this often while more units wait: a thousand tiny units do not make a
/// thousand messages. An answer after which nothing waits is sent at once.
pub(crate) const FLUSH_EVERY: Micros = Micros::from_millis(2);

impl Node {
    pub(crate) fn begin_all(&mut self) {
        self.overdrawn = self.overdrawn && !self.config.caps.holds(&self.in_use());
        self.pass_calls();
        for lane in Lane::ALL {
            self.begin_lane(lane);
        }
    }

    /// Requests go first; units take what they leave.
    pub(crate) fn begin_lane(&mut self, lane: Lane) {
        self.begin_calls(lane);
        let slots = usize::from(self.config.caps.slots(lane));
        let slots = slots.saturating_sub(self.calls.running_on(lane));
        while self.running.values().filter(|running| running.lane == lane).count() < slots {
            let queue = &self.queues[lane];
            let Some(at) = queue.iter().position(|lease| self.agreed(lease.job)) else { return };
            // The coordinator counts too, but words cross: what runs here stays within what the donor lends.
            if queue.get(at).is_some_and(|lease| !self.has_means(lease.job)) {
                return;
            }
            let Some(lease) = self.queues[lane].remove(at) else { return };
            let running = Running { job: lease.job, span: lease.span, lane };
            self.running.insert(lease.attempt, running);
            self.outputs.push_back(Output::Run { lease, lane, body: None });
        }
    }

    /// Whether a unit of a job may run beside all that do.
    pub(crate) fn has_means(&self, job: JobId) -> bool {
        let Some(job) = self.jobs.get(&job) else { return false };
        let idle = job.takes == Footprint::NOTHING;
        idle || self.config.caps.holds(&self.in_use().and(job.takes))
    }

    /// What all units and requests that run take.
    pub fn in_use(&self) -> Footprint {
        let units = self.running.values().map(|running| running.job);
        let jobs = units.chain(self.calls.jobs_at_work()).filter_map(|job| self.jobs.get(&job));
        jobs.fold(Footprint::NOTHING, |sum, job| sum.and(job.takes))
    }

    pub(crate) fn ran(
        &mut self,
        now: Time,
        attempt: Attempt,
        took: Micros,
        result: Result<UnitOutput, Failure>,
    ) {
        if self.is_call(attempt) {
            return self.call_ran(attempt, result);
        }
        // An aborted unit's answer may still come from the shell.
        let Some(running) = self.running.remove(&attempt) else { return };
        match result {
            Ok(output) => {
                self.units_done += 1;
                self.finished_bytes += output_bytes(&output);
                let finished = Finished { attempt, took, output };
                let (job, span) = (running.job, running.span);
                self.finished.push(Answer { job, span, finished });
            }
            Err(failure) => {
                self.units_failed += 1;
                if self.is_joined() {
                    self.send(FromNode::Failed { attempt, failure });
                }
            }
        }
        // What it took may be what a unit of another lane waits for.
        self.begin_all();
        let last = !self.running.values().any(|other| other.lane == running.lane);
        if self.is_joined() && (last || self.is_batch_full()) {
            self.flush(now);
        }
    }

    pub(crate) fn flush_if_due(&mut self, now: Time) {
        if !self.finished.is_empty() && now >= self.last_flush + FLUSH_EVERY {
            self.flush(now);
        }
    }

    fn is_batch_full(&self) -> bool {
        self.finished.len() >= MAX_BATCH / 4 || self.finished_bytes >= MAX_DONE_BYTES / 2
    }

    fn flush(&mut self, now: Time) {
        self.last_flush = now;
        self.finished_bytes = 0;
        let answers = core::mem::take(&mut self.finished);
        let mut batch = Vec::with_capacity(answers.len().min(MAX_BATCH));
        let mut bytes = 0;
        for answer in answers {
            let size = output_bytes(&answer.finished.output);
            if !batch.is_empty() && (batch.len() >= MAX_BATCH || bytes + size > MAX_DONE_BYTES) {
                self.send(FromNode::Done(core::mem::take(&mut batch)));
                bytes = 0;
            }
            bytes += size;
            batch.push(answer.finished);
        }
        if !batch.is_empty() {
            self.send(FromNode::Done(batch));
        }
    }
}

fn output_bytes(output: &UnitOutput) -> usize {
    match output {
        UnitOutput::Inline(bytes) => bytes.len(),
        UnitOutput::Stored { .. } => 0,
    }
}
