//! Services: who waits for which answer. Answers are not facts, so they are passed on at once.

use std::collections::BTreeMap;

use shoal_protocol::{JobId, Time};
use shoal_scheduler::{CallError, CallId, Input, RequestId, ServiceView, SubmitError};

use super::Driver;
use super::event::{Reply, ServiceEvent};
use crate::answer::Giver;
use crate::json::{ReplicaJson, ServiceJson};

/// Whoever waits for services or their answers.
#[derive(Default)]
pub(super) struct Waiting {
    last: u64,
    calls: BTreeMap<CallId, Giver>,
    serves: BTreeMap<RequestId, Reply<Result<JobId, SubmitError>>>,
}

impl Driver {
    pub(super) fn take_service(&mut self, now: Time, event: ServiceEvent) {
        match event {
            ServiceEvent::Serve { spec, reply } => {
                self.last_request += 1;
                let request = RequestId(self.last_request);
                self.services.serves.insert(request, reply);
                self.handle(now, Input::Serve { request, spec: *spec });
            }
            ServiceEvent::Unserve { name, reply } => {
                let service = self.scheduler.service_named(&name);
                if let Some(service) = service {
                    self.handle(now, Input::Unserve { service });
                }
                let _ = reply.send(service.is_some());
            }
            ServiceEvent::Ask { name, body, priority, within, answer, reply } => {
                let Some(service) = self.scheduler.service_named(&name) else { return };
                self.services.last += 1;
                let call = CallId(self.services.last);
                self.services.calls.insert(call, answer);
                let _ = reply.send(call);
                let deadline = now + within;
                self.handle(now, Input::Ask { call, service, body, priority, deadline });
            }
            ServiceEvent::HangUp(call) => {
                if self.services.calls.remove(&call).is_some() {
                    self.handle(now, Input::HangUp { call });
                }
            }
        }
    }

    /// Whether this was about a service.
    pub(super) fn served(
        &mut self,
        request: RequestId,
        result: &Result<JobId, SubmitError>,
    ) -> bool {
        let Some(reply) = self.services.serves.remove(&request) else { return false };
        let _ = reply.send(result.clone());
        true
    }

    pub(super) fn call_part(&mut self, call: CallId, part: Vec<u8>, last: bool) {
        if let Some(answer) = self.services.calls.get(&call) {
            answer.give(part);
        }
        if last && let Some(answer) = self.services.calls.remove(&call) {
            answer.finish();
        }
    }

    pub(super) fn call_over(&mut self, call: CallId, error: CallError) {
        if let Some(answer) = self.services.calls.remove(&call) {
            answer.fail(error);
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
        });
        ServiceJson {
            id: view.service.0,
            kind: view.spec.work.name(),
            replicas: replicas.collect(),
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
}
