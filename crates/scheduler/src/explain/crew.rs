//! Who computes a simulation together, what was predicted and what happened.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{JobId, LinkReport, Micros, Time, Via};

use super::millis;
use crate::assign::crew::{CrewView, Try};
use crate::state::Scheduler;

impl Scheduler {
    /// A simulation's crew in words, one sentence each; empty for other jobs.
    pub(super) fn explain_crew(&self, job: JobId) -> Vec<String> {
        let Some(known) = self.jobs.get(&job) else { return Vec::new() };
        let mut lines = Vec::new();
        // The past tells when things happened by itself; only the present needs a clock, and has none here.
        let now = self.crews.get(&job).map_or(Time(0), |crew| crew.moved.1);
        match self.view_crew(now, job) {
            Some(view) if view.works => self.explain_working(&view, &mut lines),
            Some(_) => lines.push(self.explain_forming(job)),
            None => {}
        }
        let past = self.crews.get(&job).map_or(&known.past, |crew| &crew.changes);
        lines
            .extend(past.iter().map(|change| format!("epoch {}: {}", change.epoch.0, change.what)));
        lines
    }

    fn explain_forming(&self, job: JobId) -> String {
        let Some(crew) = self.crews.get(&job) else { return String::new() };
        let fit = crew.tries.values().filter(|tried| matches!(tried, Try::Fit { .. })).count();
        let asked = crew.tries.values().filter(|tried| matches!(tried, Try::Asked { .. })).count();
        let unfit = crew.tries.len() - fit - asked;
        let unfit = if unfit > 0 { format!(", {unfit} could not") } else { String::new() };
        let out = match crew.out.values().last() {
            Some((_, why)) => format!("; left out for a while: {why}"),
            None => String::new(),
        };
        let wanted = self.sim(job).map_or(0, |sim| sim.members);
        if wanted > 0 {
            return format!(
                "its crew wants {wanted} members; {fit} can, {asked} are being tried{unfit}{out}"
            );
        }
        format!(
            "its crew forms: {fit} nodes showed how fast they are, {asked} are being tried{unfit}{out}"
        )
    }

    fn explain_working(&self, view: &CrewView, lines: &mut Vec<String>) {
        let measured = match view.measured {
            Some(took) => format!("{} measured", millis(took)),
            None => String::from("none measured yet"),
        };
        let alone = match view.alone {
            Some(took) => format!("; the fastest node alone would need {}", millis(took)),
            None => String::from("; it does not fit one node alone"),
        };
        lines.push(format!(
            "a crew of {} in epoch {}, at step {}, {} nodes stand by: {} a step predicted, {measured}{alone}",
            view.members.len(),
            view.epoch.0,
            view.step,
            view.spares,
            millis(view.predicted),
        ));
        for member in &view.members {
            let name = self.node_name(member.node).unwrap_or("?");
            let all = member.computed.0 + member.waited.0;
            let share = (member.waited.0 * 100).checked_div(all).unwrap_or(0);
            let guesses = match member.guessed + member.corrected {
                0 => String::new(),
                all => format!(", {all} halos guessed, {} of them corrected", member.corrected),
            };
            let links: Vec<_> = member.links.iter().map(link).collect();
            lines.push(format!(
                "node {} ({name}): rows {}, {share} % of its time waiting for others{guesses}; {}",
                member.node,
                member.rows,
                if links.is_empty() { String::from("no links measured") } else { links.join(", ") },
            ));
        }
    }
}

fn link(report: &LinkReport) -> String {
    let via = match report.via {
        Via::Relay => "by relay",
        Via::Direct => "directly",
    };
    format!("node {} {via}, round trip {}", report.with, millis(report.round_trip))
}

/// A time in milliseconds with one decimal, in words.
pub(crate) fn in_millis(time: Micros) -> String {
    format!("{}.{} ms", time.0 / 1000, time.0 % 1000 / 100)
}
