//! Which of the devices that are here could keep a service ready, and why the others cannot.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_protocol::{JobId, Lane, NodeId, Time};

use super::Service;
use crate::peers::Peer;
use crate::state::Scheduler;

/// Devices that are told of, those that can first: nobody reads more.
const MOST_TOLD: usize = 100;

/// What a device could keep of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Can {
    Nothing,
    /// Some of its parts, beside others.
    Parts,
    Whole,
}

/// A device as one that could keep a service ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbleView {
    pub node: NodeId,
    pub can: Can,
    /// Why it cannot keep all of it.
    pub why: Option<String>,
    /// What would compute there, with its version.
    pub engines: Vec<String>,
}

impl Scheduler {
    pub(crate) fn able_to_keep(&self, now: Time, service: JobId) -> Vec<AbleView> {
        let Some(of) = self.services.services.get(&service) else { return Vec::new() };
        let able = self.peers.values().map(|peer| {
            let why = self.why_not_whole(now, service, of, peer);
            let suspected = of.proofs.suspects(now, peer.node);
            let splits = of.plan.is_some() && !suspected && self.lacks_only_memory(of, peer);
            let can = match &why {
                None => Can::Whole,
                Some(_) if splits && self.has_seat_or_room(service, of, peer) => Can::Parts,
                Some(_) => Can::Nothing,
            };
            AbleView { node: peer.node, can, why, engines: engines(of, peer) }
        });
        let mut able: Vec<_> = able.collect();
        able.sort_by_key(|one| (Reverse(one.can), one.node));
        able.truncate(MOST_TOLD);
        able
    }

    fn why_not_whole(
        &self,
        now: Time,
        service: JobId,
        of: &Service,
        peer: &Peer,
    ) -> Option<String> {
        if let Some(why) = why_not_at_all(service, of, peer) {
            return Some(why);
        }
        if of.proofs.suspects(now, peer.node) {
            return Some("it had part in a wrong answer".into());
        }
        if of.replicas.contains_key(&peer.node) {
            return None;
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let takes = of.spec.needs.takes;
        let (memory, lends) = (mib(takes.memory), mib(peer.caps.memory));
        let gpu = match takes.gpu_memory {
            0 => String::new(),
            bytes => format!(", and {} of its GPU's", mib(bytes)),
        };
        if !peer.caps.holds(&takes) {
            return Some(format!(
                "it lends {lends} MiB of memory; the whole service takes {memory}{gpu}"
            ));
        }
        if of.is_unfit(now, peer.node) {
            let why = of.trouble.as_deref().unwrap_or("it could not a moment ago");
            return Some(why.into());
        }
        let others = self.stays_besides(peer.node, service);
        (!peer.caps.holds(&others.and(takes))).then(|| {
            let left = mib(peer.caps.memory_room(&others));
            format!(
                "other services leave {left} of the {lends} MiB of memory that it lends; the whole service takes {memory}{gpu}"
            )
        })
    }

    /// Whether more memory is all that keeps it from having all of the service.
    fn lacks_only_memory(&self, of: &Service, peer: &Peer) -> bool {
        let takes = shoal_protocol::Footprint { memory: 0, ..of.spec.needs.takes };
        peer.caps.holds(&takes) && peer.links.is_some()
    }

    fn has_seat_or_room(&self, service: JobId, of: &Service, peer: &Peer) -> bool {
        let sits = of.crew.as_ref().is_some_and(|crew| crew.has(peer.node));
        let room = peer.caps.memory_room(&self.stays_besides(peer.node, service));
        let may = why_not_at_all(service, of, peer).is_none();
        let one = |part| of.seat_takes(shoal_protocol::Span::new(part, 1)).memory;
        let parts = of.plan.as_ref().map_or(0, |plan| plan.problem.shares());
        sits || may && (0..parts).map(one).min().is_some_and(|least| least <= room)
    }
}

/// Why it may or can have nothing of it, however little that takes.
fn why_not_at_all(service: JobId, of: &Service, peer: &Peer) -> Option<String> {
    let (needs, caps) = (&of.spec.needs, &peer.caps);
    let lane = match needs.lane {
        Lane::Gpu => "GPU",
        Lane::Cpu | Lane::Inline => "processors",
    };
    let engine = needs.engine.as_ref().filter(|name| !caps.has_engine(name));
    let reasons = [
        (!peer.trusted && !of.spec.strangers)
            .then(|| "it belongs to somebody else, and strangers may not serve this".into()),
        (!peer.trusted && peer.is_barred(needs.lane)).then(|| "it gave wrong answers".into()),
        peer.declined
            .contains(&service)
            .then(|| format!("its donor refuses the work of {}", of.spec.owner)),
        (caps.slots(needs.lane) == 0).then(|| format!("it lends no {lane}")),
        engine.map(|name| format!("it has no engine {name}")),
        peer.paused.then(|| "it is paused".into()),
        peer.silent.then(|| "it does not answer".into()),
    ];
    reasons.into_iter().flatten().next()
}

/// Those of a device that go by the name that the service asks for, or begin with it: `onnxruntime` computes what `onnx`
/// does. What stands behind a hyphen is for other services.
fn engines(of: &Service, peer: &Peer) -> Vec<String> {
    let Some(name) = &of.spec.needs.engine else { return Vec::new() };
    let is_one = |rest: &str| !rest.starts_with('-');
    let engines = peer.caps.engines.iter();
    let engines =
        engines.filter(|engine| engine.name.strip_prefix(name.as_str()).is_some_and(is_one));
    engines.map(|engine| format!("{} {}", engine.name, engine.version)).collect()
}
