//! Progress of a job: a bar with rate, time left and each node's share, or a JSON line per change.

use std::cell::RefCell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use shoal_api::{JobJson, ShareJson, SimJson};

use super::text::{count, duration};
use crate::client::{Job, Watcher};
use crate::fail::Fail;

/// Nodes named on the bar; the others are counted.
const NAMED_SHARES: usize = 3;

pub(crate) struct JobBar {
    bar: ProgressBar,
}

impl JobBar {
    pub(crate) fn new() -> JobBar {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10));
        let style =
            ProgressStyle::with_template("{prefix:.bold} [{bar:20}] {percent:>3}%  {wide_msg}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        JobBar { bar }
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watcher for JobBar {
    fn changed(&self, job: &Job) {
        let (done, all) = match &job.sim {
            Some(sim) => (sim.step, sim.steps),
            None => (job.items_done, job.items),
        };
        self.bar.set_length(all.max(1));
        self.bar.set_position(done);
        self.bar.set_prefix(format!("job {} {}", job.id, job.name));
        self.bar.set_message(summary(job));
    }

    fn note(&self, text: &str) {
        if self.bar.is_hidden() {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }
}

/// One JSON line per change.
#[derive(Default)]
pub(crate) struct JsonLines {
    last: RefCell<String>,
    failed: RefCell<Option<Fail>>,
}

impl JsonLines {
    /// The end, if it was not told yet, and what went wrong with telling.
    pub(crate) fn last(self, job: &Job) -> Result<(), Fail> {
        self.changed(job);
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

impl Watcher for JsonLines {
    fn changed(&self, job: &Job) {
        let text = serde_json::to_string(job).unwrap_or_default();
        if text == *self.last.borrow() || self.failed.borrow().is_some() {
            return;
        }
        self.failed.replace(super::line(&text).err());
        self.last.replace(text);
    }

    fn note(&self, _: &str) {}
}

/// Says nothing: for programs that read only the end.
pub(crate) struct Quiet;

impl Watcher for Quiet {
    fn changed(&self, _: &Job) {}
    fn note(&self, _: &str) {}
}

/// Rate, time left and shares in one line.
fn summary(job: &JobJson) -> String {
    let mut parts = Vec::new();
    if let Some(sim) = &job.sim {
        parts.extend(steps(sim));
    } else if job.rate > 0.0 {
        parts.push(format!("{}/s", count(job.rate)));
    }
    if let Some(left) = job.eta_seconds {
        parts.push(format!("{} left", duration(left)));
    }
    if job.units_checking > 0 {
        parts.push(format!("{} units being checked", job.units_checking));
    }
    if job.able_nodes == 0 {
        parts.push("waiting for a node that can run it".into());
    }
    parts.extend(shares(&job.shares));
    parts.join("  ")
}

/// How far a simulation is, how fast, and who computes it.
fn steps(sim: &SimJson) -> Vec<String> {
    let mut parts = vec![format!("step {} of {}", sim.step, sim.steps)];
    let Some(crew) = &sim.crew else { return parts };
    if let Some(each) = crew.step_ms.filter(|each| *each > 0.0) {
        parts.push(format!("{} steps/s", count(1e3 / each)));
    }
    let names: Vec<&str> = crew.members.iter().map(|member| member.name.as_str()).collect();
    match names.len() {
        0 => parts.push(format!("crew {}", crew.state.word())),
        few if few <= NAMED_SHARES => parts.push(format!("on {}", names.join(" · "))),
        many => parts.push(format!("on {many} nodes")),
    }
    parts
}

fn shares(shares: &[ShareJson]) -> Option<String> {
    let total: u64 = shares.iter().map(|share| share.items).sum();
    if total == 0 {
        return None;
    }
    let mut sorted: Vec<&ShareJson> = shares.iter().collect();
    sorted.sort_by_key(|share| std::cmp::Reverse(share.items));
    let named = sorted.iter().take(NAMED_SHARES);
    let mut parts: Vec<String> = named
        .map(|share| format!("{} {}%", share.name, share.items.saturating_mul(100) / total))
        .collect();
    if sorted.len() > NAMED_SHARES {
        parts.push(format!("{} more", sorted.len() - NAMED_SHARES));
    }
    Some(parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_shares_are_named() {
        let share = |name: &str, items| ShareJson { node: 1, name: name.into(), items, units: 1 };
        let all = [
            share("tab", 10),
            share("laptop", 60),
            share("phone", 5),
            share("mini", 25),
            share("x", 0),
        ];
        assert_eq!(shares(&all).as_deref(), Some("laptop 60% · mini 25% · tab 10% · 2 more"));
        assert_eq!(shares(&[]), None);
    }
}
