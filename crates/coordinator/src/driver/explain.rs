//! Why things are as they are, and what a job can show for itself.

use shoal_protocol::{JobId, NodeId, Time, Verify};
use shoal_scheduler::{JobState, JobView};

use super::Driver;
use super::event::{Explain, Proven};
use shoal_kinds::plan::verify_words;

impl Driver {
    /// One sentence for each reason; `None` if there is no such job, item or node.
    pub(super) fn explain(&self, now: Time, what: Explain) -> Option<Vec<String>> {
        match what {
            Explain::Job { job, item: None } => self.explain_job(now, job),
            Explain::Job { job, item: Some(item) } => self.explain_item(now, job, item),
            Explain::Node(node) => self.explain_node(node),
        }
    }

    fn explain_job(&self, now: Time, job: JobId) -> Option<Vec<String>> {
        let view = self.scheduler.job(now, job)?;
        let spec = self.scheduler.spec(job)?;
        let mut lines = vec![match (self.sim(job), view.state) {
            (Some(sim), JobState::Running) => stepping(&view, sim.steps),
            (_, _) => state(&view),
        }];
        lines.push(checking(spec.policy.verify));
        lines.extend(self.scheduler.explain_job(job).iter().map(ToString::to_string));
        if let Some(failure) = &view.failure {
            lines.push(self.error_json(job, failure).message);
        }
        Some(lines)
    }

    fn explain_item(&self, now: Time, job: JobId, item: u64) -> Option<Vec<String>> {
        let view = self.scheduler.job(now, job)?;
        let why = self.scheduler.explain_unit(job, item);
        let lines = why.iter().map(ToString::to_string).collect::<Vec<_>>();
        if item >= view.items {
            return None;
        }
        // Nobody computes it any more.
        let over = view.state != JobState::Running && view.items_done < view.items;
        let ended = over.then(|| state(&view));
        Some(ended.into_iter().chain(lines).collect())
    }

    fn explain_node(&self, node: NodeId) -> Option<Vec<String>> {
        let why = self.scheduler.explain_node(node);
        if why.is_empty() {
            return None;
        }
        let name = format!("node {node} is {}", self.node_name(node));
        Some(std::iter::once(name).chain(why.iter().map(ToString::to_string)).collect())
    }

    pub(super) fn proven(&mut self, now: Time, job: JobId) -> Option<Proven> {
        let merged = self.merged(now, job)?;
        let receipt = self.scheduler.receipt(job)?;
        let names = receipt.nodes.iter().map(|node| self.node_name(node.node)).collect();
        Some(Proven { receipt, names, merged })
    }
}

fn state(view: &JobView) -> String {
    let JobView { job, kind, items, items_done, items_failed, .. } = view;
    let failed = match items_failed {
        0 => String::new(),
        failed => format!(", of which {failed} failed"),
    };
    match view.state {
        JobState::Running => {
            format!("job {job} ({kind}) is running: {items_done} of {items} items are done{failed}")
        }
        JobState::Done => format!("job {job} ({kind}) is done: {items} items{failed}"),
        JobState::Failed => {
            format!("job {job} ({kind}) failed after {items_done} of {items} items")
        }
        JobState::Cancelled => {
            format!("job {job} ({kind}) was cancelled after {items_done} of {items} items")
        }
    }
}

fn stepping(view: &JobView, steps: u64) -> String {
    let step = view.crew.as_ref().map_or(0, |crew| crew.step);
    format!("job {} (sim) is running: {step} of {steps} steps are done", view.job)
}

fn checking(verify: Verify) -> String {
    let how = match verify {
        Verify::None => "nothing is checked; Shoal believes every answer",
        Verify::Spot { .. } => "a second device also computes some of the units, chosen at random",
        Verify::Quorum { .. } => "devices of different owners must agree on every unit",
        Verify::Adaptive => {
            "other devices check every answer of a new device, and fewer the longer it is right"
        }
    };
    format!("verify {}: {how}", verify_words(verify))
}
