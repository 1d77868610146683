//! How a service is kept ready, why by so many devices, and how fast it would be on other numbers of them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_kinds::Split;
use shoal_protocol::{JobId, Micros, NodeId, Path, Time};

use super::{many, millis};
use crate::service::{AbleView, Can, PlacementView, ServiceView, StageView};
use crate::state::Scheduler;

/// Devices that cannot keep a service ready and are named; the others are counted.
const MOST_UNABLE: usize = 8;

/// What there is to say of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyService {
    /// An answer comes in steps, such as a text's tokens: times are for one of them, and else for a request.
    pub stepwise: bool,
    pub placements: Vec<PlacementView>,
    /// Nodes whose speed for it is not measured.
    pub guessed: Vec<NodeId>,
    /// The devices that are here, those first that can keep it ready.
    pub able: Vec<AbleView>,
    /// All of it in words, one sentence each.
    pub lines: Vec<String>,
}

impl Scheduler {
    /// None if there is no such service.
    pub fn explain_service(&self, now: Time, service: JobId) -> Option<WhyService> {
        let view = self.services().into_iter().find(|view| view.service == service)?;
        let stepwise = view.spec.work.steps(&[]).is_some();
        let placements = self.placements_of(now, service);
        let members = placements.iter().flat_map(|placed| &placed.members).map(|(node, _)| *node);
        let guessed: alloc::collections::BTreeSet<NodeId> =
            members.filter(|node| !self.is_measured(service, *node)).collect();
        let mut lines = Vec::from([self.kept_words(&view)]);
        lines.extend(self.split_words(now, &view, &placements, stepwise));
        if view.split.as_ref().is_some_and(|split| split.side_by_side) {
            let what = step_word(stepwise);
            lines.push(format!("all of them compute every {what} together"));
        }
        lines.extend(placements.iter().map(|placed| self.placement_words(placed, stepwise)));
        lines.extend(
            view.split
                .iter()
                .flat_map(|split| &split.stages)
                .filter_map(|stage| self.stage_words(stage, stepwise)),
        );
        let names: Vec<_> = guessed.iter().map(|node| self.called(*node)).collect();
        if !names.is_empty() && !placements.iter().all(|placed| placed.predicted.is_none()) {
            lines.push(format!(
                "estimated: no answer from {} yet, so predictions use the speed that each device reports",
                list(&names)
            ));
        }
        lines.extend(self.proof_words(now, service));
        let able = self.able_to_keep(now, service);
        lines.extend(self.unable_words(&able));
        let guessed = guessed.into_iter().collect();
        Some(WhyService { stepwise, placements, guessed, able, lines })
    }

    /// Whether anybody looks at the answers of other people's devices, and what came of that.
    fn proof_words(&self, now: Time, service: JobId) -> Vec<String> {
        let Some(proofs) = self.proofs_of(now, service) else { return Vec::new() };
        let mut lines = Vec::new();
        if proofs.looked_at > 0 {
            lines.push(format!(
                "your own devices checked {} of {} of other people's devices: {} wrong",
                proofs.looked_at,
                many(proofs.answers, "answer"),
                match proofs.wrong {
                    0 => "none was".into(),
                    1 => "1 was".into(),
                    wrong => format!("{wrong} were"),
                }
            ));
        } else if proofs.unchecked == 0 {
            lines.push("your own devices check answers of other people's devices; none yet".into());
        }
        lines.extend(proofs.unsure.map(|why| {
            let last = if proofs.unchecked > 1 { ", the last one" } else { "" };
            format!(
                "{} of other people's devices could not be checked{last} because {why}",
                many(proofs.unchecked, "answer")
            )
        }));
        lines.extend(proofs.found.map(|found| format!("the last wrong answer: {found}")));
        lines.extend(proofs.suspects.iter().map(|(node, rest)| {
            let seconds = rest.0.div_ceil(1_000_000);
            format!("{} gets nothing of it for another {seconds} s", self.called(*node))
        }));
        lines
    }

    /// Who cannot keep it ready, and why.
    fn unable_words(&self, able: &[AbleView]) -> Vec<String> {
        let unable = || able.iter().filter(|one| one.can == Can::Nothing);
        let told = unable().take(MOST_UNABLE).filter_map(|one| {
            let why = one.why.as_ref()?;
            Some(format!("{} cannot keep it ready: {why}", self.called(one.node)))
        });
        let more = unable().count().saturating_sub(MOST_UNABLE);
        let rest =
            (more > 0).then(|| format!("{} more cannot either", many(more as u64, "device")));
        told.chain(rest).collect()
    }

    fn kept_words(&self, view: &ServiceView) -> String {
        let name = &view.spec.name;
        let state = |ready: bool| if ready { "is kept ready" } else { "is being loaded" };
        if let Some(split) = &view.split {
            let names: Vec<_> = split.stages.iter().map(|stage| self.called(stage.node)).collect();
            return format!("{name} {} by {} together", state(split.ready), list(&names));
        }
        let names: Vec<_> = view.replicas.iter().map(|one| self.called(one.node)).collect();
        if names.is_empty() {
            let why = view.trouble.as_ref().map(|why| format!(": {why}"));
            return format!("{name} is on no device{}", why.unwrap_or_default());
        }
        let each = if names.len() > 1 { ", each with all of it" } else { "" };
        let ready = view.replicas.iter().any(|one| one.ready);
        format!("{name} {} by {}{each}", state(ready), list(&names))
    }

    /// Why so many devices.
    fn split_words(
        &self,
        now: Time,
        view: &ServiceView,
        placements: &[PlacementView],
        stepwise: bool,
    ) -> Option<String> {
        let together = view.split.as_ref().map(|split| split.stages.len());
        let able = self.could_keep_alone(now, view.service).len();
        Some(match (view.spec.split, together) {
            (Split::Never, _) => "it may not be split (--split never)".into(),
            (Split::Exactly(wanted), _) => {
                format!(
                    "it must be split over {} (--split {wanted})",
                    many(wanted.into(), "device")
                )
            }
            (Split::Auto, Some(together)) if able == 0 => format!(
                "{together} devices share it, because none has {} MiB of memory free for all of it",
                view.spec.needs.takes.memory.div_ceil(1 << 20)
            ),
            (Split::Auto, Some(together)) => {
                let alone = view.split.as_ref().and_then(|split| split.alone);
                let alone = alone.map(|alone| format!(" instead of {}", pace(alone, stepwise)));
                let foreseen = view.split.as_ref().map_or(Micros(0), |split| split.predicted);
                format!(
                    "{together} devices share it, because they were expected to be faster than one: {}{}",
                    pace(foreseen, stepwise),
                    alone.unwrap_or_default()
                )
            }
            (Split::Auto, None) if view.replicas.is_empty() => return None,
            (Split::Auto, None) if self.stays_alone(now, view.service).is_some() => {
                let rests = self.stays_alone(now, view.service).unwrap_or(Micros(0));
                format!(
                    "one device has all of it, because several together were slower; Shoal tries them again in {} s at the earliest",
                    rests.0.div_ceil(1_000_000)
                )
            }
            (Split::Auto, None) => {
                let several = placements.iter().filter(|placed| placed.members.len() > 1);
                match several.filter_map(|placed| placed.predicted).min() {
                    Some(best) => format!(
                        "one device has room for all of it, and several together would reach {} at best",
                        pace(best, stepwise)
                    ),
                    None => "one device has room for all of it".into(),
                }
            }
        })
    }

    fn placement_words(&self, placed: &PlacementView, stepwise: bool) -> String {
        let names: Vec<_> = placed.members.iter().map(|(node, _)| self.called(*node)).collect();
        let who = match placed.members.as_slice() {
            [_] => format!("{} alone", list(&names)),
            all => {
                let parts: Vec<_> = all.iter().map(|(_, parts)| parts.len.to_string()).collect();
                let sum: u64 = all.iter().map(|(_, parts)| parts.len).sum();
                format!("{} with {} of {sum} parts", list(&names), parts.join(" + "))
            }
        };
        let foreseen = placed.predicted.map(|each| format!("{} predicted", pace(each, stepwise)));
        let took = match placed.measured {
            Some(took) => {
                let answers = many(took.answers, "answer");
                format!("{} measured in {answers}", pace(took.each, stepwise))
            }
            None => "not measured".into(),
        };
        let said: Vec<_> = foreseen.into_iter().chain([took]).collect();
        let used = if placed.used { " (in use)" } else { "" };
        format!("{who}: {}{used}", said.join(", "))
    }

    /// Where the time goes in a crew.
    fn stage_words(&self, stage: &StageView, stepwise: bool) -> Option<String> {
        let what = step_word(stepwise);
        let mut text = format!(
            "{}: for each {what} it computes {} and waits {}",
            self.called(stage.node),
            millis(stage.computes?),
            millis(stage.waits.unwrap_or(Micros(0)))
        );
        if let (Some(bytes), Some(travels)) = (stage.hands_on, stage.travels) {
            let via = match stage.link.map(|link| link.via) {
                Some(Path::Direct) => " directly",
                Some(Path::Relay) => " through the coordinator",
                None => "",
            };
            text += &format!(
                "; {bytes} bytes go to the next device{via}, which takes {} with the reply",
                millis(travels)
            );
        }
        Some(text)
    }

    fn called(&self, node: NodeId) -> String {
        self.node_name(node).map_or_else(|| format!("node {node}"), String::from)
    }
}

fn step_word(stepwise: bool) -> &'static str {
    if stepwise { "token" } else { "request" }
}

/// Tokens a second, or the time of a request.
fn pace(each: Micros, stepwise: bool) -> String {
    if !stepwise {
        return format!("{} a request", millis(each));
    }
    let tenths = 10_000_000 / each.0.max(1);
    match tenths {
        0..100 => format!("{}.{} tokens/s", tenths / 10, tenths % 10),
        _ => format!("{} tokens/s", tenths / 10),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
