//! Services: they are begun, asked and ended, and shown in the words of the API.

use shoal_protocol::Time;
use shoal_scheduler::{Input, ServiceView};

use super::Driver;
use super::event::ServiceEvent;
use super::waiting::Asked;
use shoal_api::{ReplicaJson, ServiceJson};

impl Driver {
    pub(super) fn take_service(&mut self, now: Time, event: ServiceEvent) {
        match event {
            ServiceEvent::Serve { spec, reply } => {
                let request = self.waiting.request(Asked::Serve(reply));
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
                let call = self.waiting.call(answer);
                let _ = reply.send(call);
                let deadline = now + within;
                self.handle(now, Input::Ask { call, service, body, priority, deadline });
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
        });
        ServiceJson {
            id: view.service.0,
            kind: view.spec.work.name().into(),
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
