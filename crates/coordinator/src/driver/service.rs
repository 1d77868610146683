//! Services: they are begun, asked and ended, and shown in the words of the API.

use shoal_protocol::{NodeId, Span, Time};
use shoal_scheduler::{
    AbleView, Can, Input, PlacementView, ServiceView, SplitView, StageView, Urgency,
};

use super::Driver;
use super::effect::Effect;
use super::event::{NotTaken, ServiceEvent, Wish};
use super::keyed::Taken;
use super::waiting::Asked;
use shoal_api::{
    AbleJson, ExplainServiceJson, PlacedJson, PlacementJson, ReplicaJson, ServiceJson, SplitJson,
    StageJson,
};
use shoal_kinds::Split;
use shoal_protocol::{Micros, Path};

impl Driver {
    pub(super) fn take_service(&mut self, now: Time, event: ServiceEvent) {
        match event {
            ServiceEvent::Serve { spec, key, reply } => {
                let result = match key.as_ref().and_then(|key| self.keys.find(key)) {
                    None => None,
                    Some(Taken::Same(service)) => Some(Ok(service)),
                    Some(Taken::Other(job)) => Some(Err(NotTaken::OtherRequest { job })),
                };
                if let Some(result) = result {
                    return self.later.push(Effect::Served { result, reply });
                }
                let request = self.waiting.request(Asked::Serve { key, reply });
                self.handle(now, Input::Serve { request, spec: *spec });
            }
            ServiceEvent::Unserve { name, reply } => {
                let service = self.scheduler.service_named(&name);
                if let Some(service) = service {
                    self.handle(now, Input::Unserve { service });
                    self.forget_key(service);
                }
                self.later.push(Effect::Unserved { found: service.is_some(), reply });
            }
            ServiceEvent::Ask { name, body, wish, answer, reply } => {
                let Some(service) = self.scheduler.service_named(&name) else { return };
                let call = self.waiting.call(answer);
                // Nobody listens: whoever asked has hung up already.
                if reply.send(call).is_err() {
                    self.waiting.hang_up(call);
                    return;
                }
                let Wish { within, priority, budget } = wish;
                let urgency = Urgency { priority, deadline: now + within, budget };
                self.handle(now, Input::Ask { call, service, body, urgency });
            }
            ServiceEvent::HangUp(call) => {
                if self.waiting.hang_up(call) {
                    self.handle(now, Input::HangUp { call });
                }
            }
        }
    }

    pub(super) fn services_json(&self) -> Vec<ServiceJson> {
        self.scheduler.services().into_iter().map(|view| self.service_json(view)).collect()
    }

    fn service_json(&self, view: ServiceView) -> ServiceJson {
        let replicas = view.replicas.iter().map(|replica| ReplicaJson {
            node: replica.node.0,
            name: self.node_name(replica.node),
            ready: replica.ready,
            running: replica.running as u64,
            fetched_bytes: replica.fetched.map(|(has, _)| has),
            needed_bytes: replica.fetched.map(|(_, all)| all),
        });
        ServiceJson {
            id: view.service.0,
            kind: view.spec.work.name().into(),
            replicas: replicas.collect(),
            split: words(view.spec.split).into(),
            crew: view.split.map(|split| self.split_json(&split)),
            name: view.spec.name,
            owner: view.spec.owner,
            least: view.spec.least,
            most: view.spec.most,
            strangers: view.spec.strangers,
            waiting: view.waiting as u64,
            running: view.running as u64,
            answered: view.answered,
            failed: view.failed,
            repeated: view.repeated,
            trouble: view.trouble,
        }
    }

    fn split_json(&self, view: &SplitView) -> SplitJson {
        SplitJson {
            epoch: view.epoch.0.into(),
            ready: view.ready,
            running: view.running as u64,
            side_by_side: view.side_by_side,
            stages: view.stages.iter().map(|stage| self.stage_json(stage)).collect(),
            predicted_ms: millis(view.predicted),
            alone_ms: view.alone.map(millis),
        }
    }

    pub(super) fn explain_service(&self, now: Time, name: &str) -> Option<ExplainServiceJson> {
        let why = self.scheduler.explain_service(now, self.scheduler.service_named(name)?)?;
        let placed = |(node, parts): &(NodeId, Span)| PlacedJson {
            node: node.0,
            name: self.node_name(*node),
            parts: parts.len,
            measured: !why.guessed.contains(node),
        };
        let placement = |view: &PlacementView| PlacementJson {
            devices: view.members.iter().map(placed).collect(),
            used: view.used,
            predicted_ms: view.predicted.map(millis),
            measured_ms: view.measured.map(|took| millis(took.each)),
            answers: view.measured.map_or(0, |took| took.answers),
        };
        Some(ExplainServiceJson {
            placements: why.placements.iter().map(placement).collect(),
            each: if why.stepwise { "token" } else { "request" }.into(),
            devices: why.able.into_iter().map(|one| self.able_json(one)).collect(),
            lines: why.lines,
        })
    }

    fn able_json(&self, view: AbleView) -> AbleJson {
        let AbleView { node, can, why, engines } = view;
        let can = match can {
            Can::Nothing => "nothing",
            Can::Parts => "parts",
            Can::Whole => "whole",
        };
        AbleJson { node: node.0, name: self.node_name(node), can: can.into(), why, engines }
    }

    fn stage_json(&self, stage: &StageView) -> StageJson {
        let via = stage.link.map(|link| match link.via {
            Path::Relay => "relay",
            Path::Direct => "direct",
        });
        StageJson {
            node: stage.node.0,
            name: self.node_name(stage.node),
            first_part: stage.parts.start,
            parts: stage.parts.len,
            memory: stage.memory,
            ready: stage.ready,
            done: stage.done,
            compute_ms: stage.computes.map(millis),
            wait_ms: stage.waits.map(millis),
            hand_on_bytes: stage.hands_on,
            travel_ms: stage.travels.map(millis),
            via: via.map(Into::into),
        }
    }
}

fn millis(time: Micros) -> f64 {
    time.0 as f64 / 1_000.0
}

fn words(split: Split) -> String {
    match split {
        Split::Never => "never".into(),
        Split::Auto => "auto".into(),
        Split::Exactly(devices) => devices.to_string(),
    }
}
