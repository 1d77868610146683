//! Who computes a simulation together, what was predicted and what happened.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{JobId, LinkReport, Micros, Path};

use super::{many, millis};
use crate::assign::crew::{Crew, CrewView, Try, unchecked_words};
use crate::state::Scheduler;

impl Scheduler {
    /// A simulation's crew in words, one sentence each; empty for other jobs.
    pub(super) fn explain_crew(&self, job: JobId) -> Vec<String> {
        let Some(known) = self.jobs.get(&job) else { return Vec::new() };
        let mut lines = Vec::new();
        // The past tells when things happened by itself; only the present needs a clock, and has none here.
        let crew = self.crew_of(job).and_then(|id| Some((id, self.crews.get(&id)?)));
        match crew.and_then(|(id, crew)| Some((crew, self.view_crew(crew.moved.1, id)?))) {
            Some((_, view)) if view.works => self.explain_working(&view, &mut lines),
            Some((crew, _)) => lines.push(self.explain_forming(crew)),
            None => {}
        }
        lines.extend(known.total.as_ref().map(|total| {
            let totals = known.spec.work.crew().and_then(|plan| plan.totals);
            total.words(totals.map_or("total", |totals| totals.name))
        }));
        lines.extend((known.unchecked > 0).then(|| unchecked_words(known.unchecked)));
        let past = crew.map_or(&known.past, |(_, crew)| &crew.changes);
        lines
            .extend(past.iter().map(|change| format!("epoch {}: {}", change.epoch.0, change.what)));
        lines
    }

    fn explain_forming(&self, crew: &Crew) -> String {
        let fit = crew.tries.values().filter(|tried| matches!(tried, Try::Fit { .. })).count();
        let asked = crew
            .tries
            .values()
            .filter(|tried| matches!(tried, Try::Asked { .. } | Try::Again { .. }))
            .count();
        let unfit = crew.tries.len() - fit - asked;
        let unfit = if unfit > 0 { format!(", {unfit} cannot") } else { String::new() };
        let out = match crew.out.values().last() {
            Some((_, why)) => format!("; left out for a while: {why}"),
            None => String::new(),
        };
        let wanted = crew.plan.members;
        if wanted > 0 {
            return format!(
                "its crew needs {wanted} members: {fit} can take part, {asked} are being tested{unfit}{out}"
            );
        }
        format!(
            "its crew is forming: {fit} nodes can take part, {asked} are being tested{unfit}{out}"
        )
    }

    fn explain_working(&self, view: &CrewView, lines: &mut Vec<String>) {
        let measured = match view.measured {
            Some(took) => format!("{} measured", millis(took)),
            None => String::from("not measured yet"),
        };
        let alone = match view.alone {
            Some(took) => format!("; {} on the fastest node alone", millis(took)),
            None => String::from("; it does not fit on one node"),
        };
        lines.push(format!(
            "a crew of {} in epoch {}, at step {}, with {} standing by; time per step: {} predicted, {measured}{alone}",
            view.members.len(),
            view.epoch.0,
            view.step,
            many(view.spares, "node"),
            millis(view.predicted),
        ));
        for member in &view.members {
            let name = self.node_name(member.node).unwrap_or("?");
            let all = member.computed.0 + member.waited.0;
            let share = (member.waited.0 * 100).checked_div(all).unwrap_or(0);
            let guesses = match member.guessed + member.corrected {
                0 => String::new(),
                all => format!(", {all} edges guessed, {} of them corrected", member.corrected),
            };
            let links: Vec<_> = member.links.iter().map(link).collect();
            lines.push(format!(
                "node {} ({name}): rows {}, {share} % of its time spent waiting for others{guesses}; {}",
                member.node,
                member.rows,
                if links.is_empty() { String::from("no links measured") } else { links.join(", ") },
            ));
        }
    }
}

fn link(report: &LinkReport) -> String {
    let via = match report.via {
        Path::Relay => "through the coordinator",
        Path::Direct => "directly",
    };
    format!("node {} {via}, round trip {}", report.with, millis(report.round_trip))
}

/// A time in milliseconds with one decimal, in words.
pub(crate) fn in_millis(time: Micros) -> String {
    format!("{}.{} ms", time.0 / 1000, time.0 % 1000 / 100)
}
