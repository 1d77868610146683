//! Progress of a job: a bar with rate, time left and each node's share, or a JSON line per change.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use shoal_api::{JobJson, ShareJson, SimJson};

use super::text::{count, duration};
use crate::client::{Job, Watcher};
use crate::fail::Fail;

/// Nodes named on the bar; the others are counted.
const NAMED_SHARES: usize = 3;

/// Where there is no terminal, how far a job is is said so often.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// What a job waits for is said again when it changed, but not more often.
const WAIT_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct JobBar {
    bar: ProgressBar,
    /// Nobody sees it, and nothing is said in its place but notes.
    is_silent: bool,
    lines: RefCell<Lines>,
}

/// What is said line by line.
struct Lines {
    /// When a line was last said, or the bar was made.
    said: Instant,
    /// What the job waits for, as it was last said, and when.
    waits: Option<(String, Instant)>,
}

impl JobBar {
    pub(crate) fn new() -> JobBar {
        JobBar::on(ProgressDrawTarget::stderr_with_hz(10), false)
    }

    /// Without a bar: only notes are said.
    pub(crate) fn silent() -> JobBar {
        JobBar::on(ProgressDrawTarget::hidden(), true)
    }

    fn on(target: ProgressDrawTarget, is_silent: bool) -> JobBar {
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let style =
            ProgressStyle::with_template("{prefix:.bold} [{bar:20}] {percent:>3}%  {wide_msg}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        let lines = RefCell::new(Lines { said: Instant::now(), waits: None });
        JobBar { bar, is_silent, lines }
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
        let now = Instant::now();
        let mut lines = self.lines.borrow_mut();
        if let Some(waits) = lines.waits(now, job) {
            self.note(&format!("job {} waits: {waits}", job.id));
        }
        if self.bar.is_hidden() && !self.is_silent && lines.is_due(now, job) {
            eprintln!("{}", line(job));
        }
    }

    fn note(&self, text: &str) {
        if self.bar.is_hidden() {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }
}

impl Lines {
    /// Whether it is time to say again how far a job is.
    fn is_due(&mut self, now: Instant, job: &JobJson) -> bool {
        let due = !job.state.has_ended() && now.duration_since(self.said) >= LINE_EVERY;
        if due {
            self.said = now;
        }
        due
    }

    /// What a job waits for, if that is to be said now.
    fn waits(&mut self, now: Instant, job: &JobJson) -> Option<String> {
        let why = job.waits_for.as_ref()?;
        if let Some((said, at)) = &self.waits
            && (said == why || now.duration_since(*at) < WAIT_EVERY)
        {
            return None;
        }
        self.waits = Some((why.clone(), now));
        Some(super::harmless(why))
    }
}

/// How far a job is, in a line.
fn line(job: &JobJson) -> String {
    let name = super::harmless(&job.name);
    let far = match &job.sim {
        Some(_) => String::new(),
        None => {
            let percent = job.items_done.saturating_mul(100) / job.items.max(1);
            format!("{} of {} done ({percent}%)  ", job.items_done, job.items)
        }
    };
    format!("job {} {name}: {far}{}", job.id, summary(job))
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
    parts.extend(job.waits_for.as_ref().map(|why| super::harmless(why)));
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
    fn without_a_terminal_a_line_is_said_now_and_then() {
        let (began, after) = (Instant::now(), |seconds| Duration::from_secs(seconds));
        let mut lines = Lines { said: began, waits: None };
        let job = JobJson { items: 200, items_done: 50, rate: 5.0, ..JobJson::default() };
        let job = JobJson { id: 3, name: "primes".into(), eta_seconds: Some(30.0), ..job };
        let due: Vec<_> =
            [1, 9, 10, 11, 19, 20].map(|it| lines.is_due(began + after(it), &job)).into();
        assert_eq!(due, [false, false, true, false, false, true]);
        assert_eq!(line(&job), "job 3 primes: 50 of 200 done (25%)  5/s  30 s left");
        let ended = JobJson { state: shoal_api::StateJson::Done, ..job };
        assert!(!lines.is_due(began + after(60), &ended));
    }

    #[test]
    fn what_a_job_waits_for_is_said_at_once_and_again_when_it_is_something_else() {
        let (began, mut lines) = (Instant::now(), Lines { said: Instant::now(), waits: None });
        let mut says = |seconds, why: Option<&str>| {
            let job = JobJson { waits_for: why.map(str::to_owned), ..JobJson::default() };
            lines.waits(began + Duration::from_secs(seconds), &job)
        };
        assert_eq!(says(0, None), None);
        assert_eq!(says(0, Some("nobody is here")).as_deref(), Some("nobody is here"));
        assert_eq!(says(60, Some("nobody is here")), None);
        assert_eq!(says(61, Some("all are busy")).as_deref(), Some("all are busy"));
        assert_eq!(says(62, Some("nobody is here")), None, "not in turns");
    }

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
