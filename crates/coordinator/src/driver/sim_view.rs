//! Simulations and their crews, in the words of the API.

use shoal_protocol::{JobId, LinkReport, Micros, Path};
use shoal_scheduler::{CrewView, JobState, JobView, MemberView};

use super::Driver;
use crate::json::{ChangeJson, CrewJson, LinkJson, MemberJson, SimJson, TotalJson};

impl Driver {
    pub(super) fn sim_json(&self, job: JobId, view: &JobView) -> Option<SimJson> {
        let sim = self.sim(job)?;
        let step = match view.state {
            JobState::Done => sim.steps,
            JobState::Running | JobState::Failed | JobState::Cancelled => {
                view.crew.as_ref().map_or(0, |crew| crew.step)
            }
        };
        Some(SimJson {
            width: sim.width,
            height: sim.height,
            steps: sim.steps,
            step,
            halo: sim.halo,
            lanes: sim.lanes,
            scalar: sim.scalar.clone(),
            reduced: view.total.as_ref().zip(sim.reduce).map(|(total, how)| TotalJson {
                how: how.name(),
                step: total.step,
                values: total.numbers.iter().map(|n| n.is_finite().then_some(*n)).collect(),
            }),
            crew: view.crew.as_ref().map(|crew| self.crew_json(crew)),
        })
    }

    fn crew_json(&self, crew: &CrewView) -> CrewJson {
        CrewJson {
            epoch: crew.epoch.0,
            state: if crew.works { "working" } else { "forming" },
            members: crew.members.iter().map(|member| self.member_json(member)).collect(),
            spares: crew.spares,
            predicted_step_ms: (crew.predicted.0 > 0).then(|| millis(crew.predicted)),
            step_ms: crew.measured.map(millis),
            alone_step_ms: crew.alone.map(millis),
            kept_step: crew.kept,
            changes: crew
                .changes
                .iter()
                .map(|change| ChangeJson {
                    at: change.at.0 / 1_000,
                    epoch: change.epoch.0,
                    what: change.what.to_string(),
                })
                .collect(),
        }
    }

    fn member_json(&self, member: &MemberView) -> MemberJson {
        MemberJson {
            node: member.node.0,
            name: self.node_name(member.node),
            rows: [member.rows.start, member.rows.len],
            step: member.step,
            computed_ms: millis(member.computed),
            waited_ms: millis(member.waited),
            guessed: member.guessed,
            corrected: member.corrected,
            links: member.links.iter().map(link_json).collect(),
        }
    }
}

fn link_json(link: &LinkReport) -> LinkJson {
    LinkJson {
        with: link.with.0,
        via: match link.via {
            Path::Relay => "relay",
            Path::Direct => "direct",
        },
        round_trip_ms: millis(link.round_trip),
        bytes_per_second: link.bytes_per_second,
        loss: link.loss,
        relayed: link.relayed,
        direct: link.direct,
    }
}

fn millis(time: Micros) -> f64 {
    time.0 as f64 / 1e3
}
