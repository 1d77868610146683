//! Services: jobs without an end. Replicas are kept ready on nodes and are facts; requests are not: whoever
//! asks waits, is answered once, or is told why not.
//!
//! - [`able`]: which devices could keep a service ready
//! - [`call`]: requests, from the queue to whom they are asked of
//! - [`answer`]: what those say
//! - [`prove`]: answers of strangers, looked at by one of the operator's own
//! - [`race`]: requests that are asked of two nodes, and who stands in for a crew
//! - [`replica`]: who keeps all of a service ready
//! - [`links`]: who must have a key for links before it can keep parts
//! - [`room`]: who leaves when another needs the memory, and what fits nowhere
//! - [`unanswered`]: why a request has no answer
//! - [`took`]: how long answers really take
//! - [`crew`]: who keeps it ready together, each some of its parts

mod able;
mod answer;
mod call;
mod crew;
mod links;
mod prove;
mod race;
mod replica;
mod room;
mod took;
mod unanswered;

pub use able::{AbleView, Can};
pub(crate) use answer::Part;
pub use call::{CallId, Ran, Urgency};
pub use crew::{PlacementView, SplitView, StageView};
pub use prove::ProofsView;
pub use took::Took;
pub use unanswered::CallError;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use shoal_kinds::{CrewPlan, ServiceSpec};
use shoal_protocol::{Attempt, Epoch, JobId, Micros, NodeId, Priority, Time};

use crate::Output;
use crate::fact::Fact;
use crate::state::{RequestId, Scheduler};
use crate::submit::SubmitError;
use call::{By, Call, MAX_TRIES};
use crew::Crew;
use prove::Proofs;
use replica::Replica;
use took::Measured;

/// Services at a time: each may hold memory on every node.
const MAX_SERVICES: usize = 64;
/// Services are looked at this often while there is something to decide: a replica more or less is no matter of
/// milliseconds, and requests are handed out at once anyway.
const LOOK_EVERY: Micros = Micros::from_millis(100);

/// All services and their requests.
#[derive(Default)]
pub(crate) struct Services {
    services: BTreeMap<JobId, Service>,
    calls: BTreeMap<CallId, Call>,
    /// Bytes of all their bodies.
    held: u64,
    /// Requests at work.
    asked: BTreeMap<Attempt, CallId>,
    /// Steps of answers that are said again, and of which service.
    looks: BTreeMap<Attempt, JobId>,
    deadlines: BTreeSet<(Time, CallId)>,
    /// When requests are asked of a second node.
    races: BTreeSet<(Time, CallId)>,
    due: Option<Time>,
}

struct Service {
    spec: ServiceSpec,
    replicas: BTreeMap<NodeId, Replica>,
    /// What a crew of it would have to do, if it is to be split.
    plan: Option<CrewPlan>,
    crew: Option<Crew>,
    /// Of the last crew.
    epoch: Epoch,
    /// Work that nodes did of it in a second, as they said.
    rates: BTreeMap<NodeId, u64>,
    /// What answers took.
    took: Measured,
    /// The longest that a crew took to load its parts.
    loading: Micros,
    /// How often a crew's parts were dealt anew to the same members.
    recuts: u32,
    /// How often one node took over from a crew that was slower, and until when there is no other crew for that.
    gone_back: u32,
    alone_until: Time,
    /// Nodes that failed it, and until when they are not asked again.
    unfit: BTreeMap<NodeId, Time>,
    /// How long a node takes to answer, on average over the last requests.
    usual: Option<Micros>,
    /// Until when another request with a budget is thought to come.
    hurried: Time,
    /// Whether a node ever kept all of it ready.
    was_kept: bool,
    /// Requests that wait, those to be answered first in front: by priority, then in the order they came.
    queue: [VecDeque<CallId>; 3],
    answered: u64,
    failed: u64,
    /// Requests that were asked again because their node was lost.
    repeated: u64,
    /// Why the last node could not keep it ready.
    trouble: Option<String>,
    /// Whether strangers answer rightly.
    proofs: Proofs,
}

impl Service {
    fn new(spec: ServiceSpec) -> Service {
        Service {
            plan: crew::plan_of(&spec),
            spec,
            replicas: BTreeMap::new(),
            crew: None,
            epoch: Epoch(0),
            rates: BTreeMap::new(),
            took: Measured::default(),
            loading: Micros(0),
            recuts: 0,
            gone_back: 0,
            alone_until: Time(0),
            unfit: BTreeMap::new(),
            usual: None,
            hurried: Time(0),
            was_kept: false,
            queue: Default::default(),
            answered: 0,
            failed: 0,
            repeated: 0,
            trouble: None,
            proofs: Proofs::default(),
        }
    }

    fn waiting(&self) -> usize {
        self.queue.iter().map(VecDeque::len).sum()
    }

    /// Whether a node failed it a short while ago.
    fn is_unfit(&self, now: Time, node: NodeId) -> bool {
        self.unfit.get(&node).is_some_and(|until| *until > now)
    }
}

/// A service as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceView {
    pub service: JobId,
    pub spec: ServiceSpec,
    pub replicas: Vec<ReplicaView>,
    /// Those who keep it ready together.
    pub split: Option<SplitView>,
    pub waiting: usize,
    pub running: usize,
    pub answered: u64,
    pub failed: u64,
    pub repeated: u64,
    pub trouble: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    pub node: NodeId,
    pub ready: bool,
    pub running: usize,
    /// Bytes of its code that are there, and all of them, while it comes in pieces.
    pub fetched: Option<(u64, u64)>,
}

impl Services {
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let deadline = self.deadlines.first().map(|(time, _)| *time);
        let race = self.races.first().map(|(time, _)| *time);
        deadline.into_iter().chain(race).chain(self.due).min()
    }

    pub(crate) fn has_call(&self, attempt: Attempt) -> bool {
        self.asked.contains_key(&attempt) || self.has_look(attempt)
    }

    /// Whether this is a step of an answer that is said again.
    pub(crate) fn has_look(&self, attempt: Attempt) -> bool {
        self.looks.contains_key(&attempt)
    }

    /// Requests a node works on.
    pub(crate) fn calls_of(&self, node: NodeId) -> usize {
        let replicas = self.services.values().filter_map(|of| of.replicas.get(&node));
        replicas.map(|replica| replica.calls).sum()
    }

    /// Slots that those take: none where requests share what keeps them ready.
    fn slots_of(&self, node: NodeId) -> usize {
        let slotted = self.services.values().filter(|of| of.spec.work.at_once().is_none());
        let replicas = slotted.filter_map(|of| of.replicas.get(&node));
        replicas.map(|replica| replica.calls).sum()
    }
}

impl Scheduler {
    pub(crate) fn serve(&mut self, now: Time, request: RequestId, spec: ServiceSpec) {
        let mut services = self.services.services.values();
        let taken = services.any(|service| service.spec.name == spec.name);
        let result = if taken {
            Err(SubmitError::NameTaken { name: spec.name })
        } else if self.services.services.len() >= MAX_SERVICES {
            Err(SubmitError::Busy { open: MAX_SERVICES })
        } else if let Some(error) = self.too_large(&spec) {
            Err(error)
        } else {
            let service = self.numbers.next_job();
            self.record(Fact::Serves { service, spec: alloc::boxed::Box::new(spec.clone()) });
            self.services.services.insert(service, Service::new(spec));
            self.services.due = Some(now);
            Ok(service)
        };
        self.outputs.push_back(Output::Reply { request, result });
    }

    pub(crate) fn unserve(&mut self, service: JobId) {
        let Some(gone) = self.services.services.get_mut(&service) else { return };
        let replicas: Vec<_> = gone.replicas.keys().copied().collect();
        for node in replicas {
            self.dismiss_replica(service, node);
        }
        self.unsplit(service, "the service has been removed");
        let calls = self.services.calls.iter().filter(|(_, call)| call.service == service);
        let calls: Vec<_> = calls.map(|(id, _)| *id).collect();
        for call in calls {
            self.end_call(call, Some(CallError::Gone));
        }
        self.services.services.remove(&service);
        self.record(Fact::Unserved { service });
    }

    pub(crate) fn apply_serves(&mut self, service: JobId, spec: &ServiceSpec) {
        self.numbers.recall_job(service);
        self.services.services.insert(service, Service::new(spec.clone()));
    }

    pub(crate) fn apply_unserved(&mut self, service: JobId) {
        self.services.services.remove(&service);
    }

    pub(crate) fn apply_replica(&mut self, service: JobId, node: NodeId, on: bool) {
        let Some(service) = self.services.services.get_mut(&service) else { return };
        if on {
            service.was_kept = true;
            service.replicas.insert(node, Replica::absent());
        } else {
            service.replicas.remove(&node);
        }
    }

    /// Deadlines pass, replicas come and go.
    pub(crate) fn look_at_services(&mut self, now: Time) {
        while let Some(&(time, call)) = self.services.deadlines.first()
            && time <= now
        {
            let known = self.services.calls.get(&call);
            let begun = known.is_some_and(|call| call.at.is_some());
            let of = known.and_then(|call| self.services.services.get(&call.service));
            let why = of.filter(|_| !begun).and_then(|of| of.trouble.clone());
            self.end_call(call, Some(CallError::Deadline { begun, why }));
            self.services.due = Some(now);
        }
        self.begin_races(now);
        if self.services.due.is_some_and(|due| due <= now) {
            let ids: Vec<_> = self.services.services.keys().copied().collect();
            for service in ids {
                self.place_replicas(now, service);
                self.keep_looker(now, service);
                self.hand_out(service);
            }
            let any = !self.services.services.is_empty();
            self.services.due = any.then_some(now + LOOK_EVERY);
        }
    }

    pub fn services(&self) -> Vec<ServiceView> {
        self.services.services.iter().map(|(id, service)| self.view_service(*id, service)).collect()
    }

    /// The service of this name.
    pub fn service_named(&self, name: &str) -> Option<JobId> {
        let mut services = self.services.services.iter();
        services.find(|(_, service)| service.spec.name == name).map(|(id, _)| *id)
    }

    /// What is asked of the service of this name, and whether somebody keeps it ready.
    pub fn service_of(&self, name: &str) -> Option<(&ServiceSpec, bool)> {
        let service = self.services.services.values().find(|service| service.spec.name == name)?;
        let split = service.crew.as_ref().is_some_and(Crew::is_ready);
        Some((&service.spec, split || service.replicas.values().any(Replica::is_ready)))
    }

    fn view_service(&self, id: JobId, service: &Service) -> ServiceView {
        let replicas = service.replicas.iter().map(|(node, replica)| ReplicaView {
            node: *node,
            ready: replica.is_ready(),
            running: replica.calls,
            fetched: self.fetched(*node, service, replica),
        });
        let replicas: Vec<_> = replicas.collect();
        ServiceView {
            service: id,
            spec: service.spec.clone(),
            waiting: service.waiting(),
            running: replicas.iter().map(|replica| replica.running).sum::<usize>()
                + service.crew.as_ref().map_or(0, |crew| crew.calls),
            split: service.view_crew(),
            replicas,
            answered: service.answered,
            failed: service.failed,
            repeated: service.repeated,
            trouble: service.trouble.clone(),
        }
    }

    fn fetched(&self, node: NodeId, service: &Service, replica: &Replica) -> Option<(u64, u64)> {
        let code = service.spec.work.code().filter(|_| !replica.is_ready())?;
        self.swarms.fetched(node, code.hash)
    }

    pub(crate) fn check_services(&self) {
        let Services { services, calls, asked, deadlines, races, held, .. } = &self.services;
        let bodies: u64 = calls.values().map(Call::bytes).sum();
        assert_eq!(*held, bodies, "bytes of requests counted wrong");
        for (attempt, id) in asked {
            let mut at = calls.get(id).into_iter().flat_map(Call::asked);
            assert!(at.any(|at| at.attempt == *attempt), "a request asked for nobody");
        }
        let at_work: usize = calls.values().map(|call| call.asked().count()).sum();
        assert_eq!(asked.len(), at_work, "a request at work that nobody knows");
        for (id, call) in calls {
            let service = services.get(&call.service).expect("a request to no service");
            let queued = service.queue.iter().flatten().filter(|queued| *queued == id).count();
            assert_eq!(queued, usize::from(call.at.is_none()), "a request waits and is at work");
            assert!(deadlines.contains(&(call.deadline, *id)), "a request without an end");
            let raced = call.race_at.is_none_or(|time| races.contains(&(time, *id)));
            assert!(raced, "a race that never begins");
            assert!(call.rival.is_none() || call.given == 0, "an answer that two nodes give");
        }
        for service in services.values() {
            assert!(
                service.replicas.len() <= usize::from(service.spec.most) + 1,
                "too many replicas"
            );
            // Those that were lost with their node wait beside them, at most as many as were at work.
            let queued = service.queue.iter().flatten();
            let new = queued.filter(|id| calls.get(id).is_some_and(Call::is_new)).count();
            assert!(new <= service.spec.queue as usize, "the queue is too long");
            let its = |call: &Call| {
                services.get(&call.service).is_some_and(|of| core::ptr::eq(of, service))
            };
            for (node, replica) in &service.replicas {
                let calls = calls.values().filter(|call| its(call)).flat_map(Call::asked);
                let calls = calls.filter(|asked| asked.by == By::Node(*node));
                let looks = usize::from(service.proofs.looker() == Some(*node));
                assert_eq!(
                    replica.calls,
                    calls.count() + looks,
                    "requests of a replica counted wrong"
                );
            }
            let crewed = calls.values().filter(|call| call.is_in_crew() && its(call));
            self.check_crew(service, crewed.count());
        }
        self.check_looks();
        assert_eq!(deadlines.len(), calls.len(), "deadlines of nothing");
        let races_of = calls.values().filter(|call| call.race_at.is_some()).count();
        assert_eq!(races.len(), races_of, "races of nothing");
    }
}

/// In which queue.
fn rank(priority: Priority) -> usize {
    match priority {
        Priority::Interactive => 0,
        Priority::Normal => 1,
        Priority::Batch => 2,
    }
}
