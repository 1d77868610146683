//! Who says steps of an answer again, one after the other. Whoever is silent, is lost, fails or refuses accuses nobody:
//! another of the operator's own goes on, or the same one later, a few times and not for long.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::{Attempt, Bytes, Failure, JobId, Micros, NodeId, Time};

use crate::peers::Peer;
use crate::service::Service;
use crate::service::answer::Part;
use crate::service::call::By;
use crate::service::replica::may_serve;
use crate::state::Scheduler;

/// What is said again is one step.
const MOST_HEARD: usize = 1 << 17;
/// It may have to load a model first, and give way to requests: after that, another answer does as well.
const LOOK_WITHIN: Micros = Micros::from_secs(120);
/// Whoever has said nothing by then has lost what it was asked, if there is another who could say it: a long text takes
/// a slow device so long to read.
const SAID_WITHIN: Micros = Micros::from_secs(40);
/// So often somebody fails at one answer; then it may be the answer.
const MOST_FAILURES: usize = 4;
/// Before one that failed is asked again: most come back within that.
const RESTS_FOR: Micros = Micros::from_secs(3);

/// An answer that is looked at, or is about to be.
pub(super) struct Look {
    request: Bytes,
    answer: Vec<u8>,
    /// Where its steps end.
    ends: Vec<usize>,
    /// Those that are said again, the next one last.
    steps: Vec<usize>,
    /// The strangers who gave it.
    pub(super) by: Vec<NodeId>,
    /// What all who gave it computed with: another version may round differently, and that is no lie.
    engine: String,
    since: Time,
    /// Since when somebody loads or computes for it, and how long others did before.
    busy_since: Option<Time>,
    busy: Micros,
    pub(super) at: Option<At>,
    /// Who failed at it, one after the other, and why the last one did.
    failed_on: Vec<NodeId>,
    why: Option<String>,
    /// Then those may be asked again.
    rests_until: Time,
}

/// Who says a step again.
pub(super) struct At {
    pub(super) node: NodeId,
    pub(super) attempt: Attempt,
    since: Time,
    heard: Vec<u8>,
}

impl Look {
    pub(super) fn new(
        now: Time,
        (request, answer): (Bytes, Vec<u8>),
        (ends, steps): (Vec<usize>, BTreeSet<usize>),
        by: Vec<NodeId>,
        engine: String,
    ) -> Look {
        Look {
            request,
            answer,
            ends,
            steps: steps.into_iter().rev().collect(),
            by,
            engine,
            since: now,
            busy_since: None,
            busy: Micros(0),
            at: None,
            failed_on: Vec::new(),
            why: None,
            rests_until: now,
        }
    }

    /// Its turn has come.
    fn due(self, now: Time) -> Look {
        Look { since: now, ..self }
    }

    /// Bytes that are kept for it.
    pub(super) fn held(&self) -> u64 {
        (self.request.len() + self.answer.len()) as u64
    }

    /// The bytes of the step that is said again next.
    fn step(&self) -> Option<(usize, usize)> {
        let step = *self.steps.last()?;
        let before = step.checked_sub(1).and_then(|before| self.ends.get(before));
        Some((before.copied().unwrap_or(0), *self.ends.get(step)?))
    }

    fn has_failed(&self, node: NodeId) -> bool {
        self.failed_on.contains(&node)
    }

    fn begins(&mut self, now: Time) {
        self.busy_since.get_or_insert(now);
    }

    fn rests(&mut self, now: Time) {
        let since = self.busy_since.take();
        self.busy.0 += since.map_or(0, |since| (now - since).0);
    }
}

/// Who is to say the next step.
enum Next {
    /// Somebody who keeps all of it ready, or is about to.
    Kept,
    /// Somebody who has to load it first.
    Loads(NodeId),
    /// Somebody may be able to soon.
    Waits,
    Nobody(String),
}

impl Scheduler {
    /// Has one of the operator's own keep all of it ready while there is something to look at, and gives up where none can
    /// or it takes too long.
    pub(in crate::service) fn keep_looker(&mut self, now: Time, service: JobId) {
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.proofs.suspects.retain(|_, until| *until > now);
        of.proofs.right.retain(|node, _| self.peers.contains_key(node));
        if of.proofs.look.is_none() {
            of.proofs.look = of.proofs.waiting.pop_front().map(|look| look.due(now));
        }
        let Some(look) = &of.proofs.look else { return };
        if now > look.since + LOOK_WITHIN {
            let why = look.why.clone();
            let why = why.unwrap_or_else(|| "none of your own devices had time for it".into());
            return self.give_up_look(service, why);
        }
        if let Some(at) = &look.at {
            let node = at.node;
            if now > at.since + SAID_WITHIN && self.has_other_looker(now, service, node) {
                self.look_set_back(service, "the device that checked it said nothing".into());
            }
            return;
        }
        match self.next_looker(now, service) {
            Next::Kept => self.go_on_looking(service),
            Next::Loads(node) => self.load_to_look(now, service, node),
            Next::Waits => {
                if let Some(look) = self.look_mut(service) {
                    look.rests(now);
                }
            }
            Next::Nobody(why) => self.give_up_look(service, why),
        }
    }

    /// Those who did not fail at it come first, and those who have it ready.
    fn next_looker(&self, now: Time, service: JobId) -> Next {
        let Some(of) = self.services.services.get(&service) else { return Next::Waits };
        let Some(look) = &of.proofs.look else { return Next::Waits };
        let same = |peer: &Peer| peer.trusted && of.engine_of(peer) == look.engine;
        let kept = of.replicas.iter().filter(|(node, replica)| {
            let here = self.peers.get(node).is_some_and(|peer| !peer.silent && same(peer));
            here && !replica.is_late(now) && !of.is_unfit(now, **node)
        });
        let kept: Vec<_> = kept.map(|(node, _)| *node).collect();
        let takes = of.spec.needs.takes;
        let able = self.peers.values().filter(|peer| {
            same(peer) && self.may_take_on(now, service, of, peer) && self.can_keep(peer, takes)
        });
        let fresh = |node: &NodeId| !look.has_failed(*node);
        let loads = able.map(|peer| (fresh(&peer.node), peer.condition.visible, peer));
        let best =
            loads.max_by_key(|(fresh, seen, peer)| (*fresh, *seen, peer.caps.speed, peer.node));
        let best = best.map(|(fresh, _, peer)| (fresh, peer.node));
        let room = of.replicas.len() <= usize::from(of.spec.most);
        match best.filter(|_| room) {
            _ if kept.iter().any(fresh) => Next::Kept,
            Some((true, node)) => Next::Loads(node),
            _ if !kept.is_empty() => Next::Kept,
            Some((false, node)) if now >= look.rests_until => Next::Loads(node),
            Some(_) => Next::Waits,
            None if best.is_some() || self.may_look_soon(service, of) => Next::Waits,
            None => Next::Nobody(self.why_nobody_looks(service, of)),
        }
    }

    /// Whether somebody who looks at it was lost, or one that could is silent or failed at the service a moment ago.
    fn may_look_soon(&self, service: JobId, of: &Service) -> bool {
        let Some(look) = &of.proofs.look else { return false };
        let takes = of.spec.needs.takes;
        let soon = |peer: &Peer| {
            let may = peer.trusted && may_serve(service, of, &of.spec.needs, peer);
            let free = of.crew.as_ref().is_none_or(|crew| !crew.has(peer.node));
            let holds = of.replicas.contains_key(&peer.node) || self.can_keep(peer, takes);
            may && free && holds && of.engine_of(peer) == look.engine
        };
        !look.failed_on.is_empty() || self.peers.values().any(soon)
    }

    fn why_nobody_looks(&self, service: JobId, of: &Service) -> String {
        let look = of.proofs.look.as_ref();
        let other = |peer: &&Peer| look.is_some_and(|look| of.engine_of(peer) != look.engine);
        let own = self.peers.values().filter(|peer| peer.trusted);
        let has = |peer: &&Peer| {
            let may = may_serve(service, of, &of.spec.needs, peer);
            of.replicas.contains_key(&peer.node) || may && self.can_keep(peer, of.spec.needs.takes)
        };
        if let Some(peer) = own.filter(has).find(other) {
            return format!("{} has another version of the engine", self.called_node(peer.node));
        }
        let mib = of.spec.needs.takes.memory.div_ceil(1 << 20);
        format!(
            "none of your own devices that has no part in it has {mib} MiB of memory free for all of it"
        )
    }

    fn load_to_look(&mut self, now: Time, service: JobId, node: NodeId) {
        self.take_on(now, service, node);
        let Some(of) = self.services.services.get_mut(&service) else { return };
        if let Some(replica) = of.replicas.get_mut(&node) {
            replica.stands_in = true;
        }
        if let Some(look) = &mut of.proofs.look {
            look.begins(now);
        }
    }

    /// Whether another one of the operator's own could say a step as well.
    fn has_other_looker(&self, now: Time, service: JobId, but: NodeId) -> bool {
        let Some(of) = self.services.services.get(&service) else { return false };
        let takes = of.spec.needs.takes;
        let engine = of.proofs.look.as_ref().map(|look| look.engine.clone());
        self.peers.values().filter(|peer| peer.trusted && peer.node != but).any(|peer| {
            let kept = of.replicas.get(&peer.node).is_some_and(|replica| replica.is_ready());
            let loads = self.may_take_on(now, service, of, peer) && self.can_keep(peer, takes);
            !peer.silent && Some(of.engine_of(peer)) == engine && (kept || loads)
        })
    }

    /// Asks for the next step, as soon as one of the operator's own has room.
    pub(in crate::service) fn go_on_looking(&mut self, service: JobId) {
        let now = self.now;
        let Some(of) = self.services.services.get(&service) else { return };
        let Some(look) = of.proofs.look.as_ref().filter(|look| look.at.is_none()) else { return };
        let same = |node: NodeId| {
            let peer = self.peers.get(&node).filter(|peer| peer.trusted);
            peer.is_some_and(|peer| of.engine_of(peer) == look.engine)
        };
        let Some(node) = self.freest_of(of, &look.failed_on, same) else { return };
        if look.has_failed(node) && now < look.rests_until {
            return;
        }
        let Some((from, _)) = look.step() else { return };
        let asks = of.spec.work.resumed(&look.request, &look.answer[..from]);
        let Some((body, _)) = asks.filter(|(_, behind)| *behind == from as u64) else {
            return self.give_up_look(service, "the answer has no steps".into());
        };
        let Some(conn) = self.conn_of(node) else { return };
        let attempt = self.next_attempt();
        let Some(of) = self.services.services.get_mut(&service) else { return };
        if let Some(look) = &mut of.proofs.look {
            look.at = Some(At { node, attempt, since: now, heard: Vec::new() });
            look.begins(now);
        }
        if let Some(replica) = of.replicas.get_mut(&node) {
            replica.calls += 1;
        }
        self.services.looks.insert(attempt, service);
        self.peers.expect_word(now, node);
        self.send_body(conn, attempt, service, Bytes::from(body));
    }

    /// A step is said again.
    pub(crate) fn look_heard(&mut self, node: NodeId, attempt: Attempt, part: &Part) {
        let Some(&service) = self.services.looks.get(&attempt) else { return };
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let Some(look) = &mut of.proofs.look else { return };
        let Some((from, to)) = look.step() else { return };
        let Some(at) = look.at.as_mut().filter(|at| (at.node, at.attempt) == (node, attempt))
        else {
            return;
        };
        let heard = at.heard.len() as u64;
        if part.at < heard {
            return;
        }
        if part.at > heard || at.heard.len() + part.bytes.len() > MOST_HEARD {
            let why = "a part of what was said again was lost";
            return self.look_set_back(service, why.into());
        }
        at.heard.extend_from_slice(&part.bytes);
        match of.spec.work.same_step(&look.answer[from..to], &at.heard) {
            None if !part.last => {}
            None => self.look_set_back(service, "nothing was said again".into()),
            Some(false) => self.found_wrong(service),
            Some(true) => {
                look.steps.pop();
                let over = look.steps.is_empty();
                self.stop_looker(service);
                if over {
                    self.found_right(service);
                }
                // With the next step, if there is one.
                self.hand_out(service);
            }
        }
    }

    /// Whoever says it again cannot.
    pub(in crate::service) fn look_failed(
        &mut self,
        node: NodeId,
        attempt: Attempt,
        failure: &Failure,
    ) {
        let Some(&service) = self.services.looks.get(&attempt) else { return };
        if self.looks_at(service, node) {
            // Words that the model does not have: whoever answered could not have gone on behind them either.
            match matches!(failure, Failure::Model { .. }) {
                true => self.found_wrong(service),
                false => self.look_set_back(service, failure.to_string()),
            }
            self.hand_out(service);
        }
    }

    /// A node does not keep it ready any more.
    pub(in crate::service) fn looker_leaves(&mut self, service: JobId, node: NodeId) {
        if self.looks_at(service, node) {
            self.look_set_back(service, "the device that checked it left".into());
        }
    }

    /// A node is gone, or silent for too long.
    pub(in crate::service) fn looks_lost(&mut self, node: NodeId) {
        let services: BTreeSet<_> = self.services.looks.values().copied().collect();
        for service in services {
            if self.looks_at(service, node) {
                let why = "the device that checked it left or fell silent";
                self.look_set_back(service, why.into());
            }
        }
    }

    fn looks_at(&self, service: JobId, node: NodeId) -> bool {
        let of = self.services.services.get(&service);
        of.and_then(|of| of.proofs.looker()) == Some(node)
    }

    fn look_mut(&mut self, service: JobId) -> Option<&mut Look> {
        self.services.services.get_mut(&service)?.proofs.look.as_mut()
    }

    /// Whoever was to say a step did not. It is asked again, of another if there is one.
    fn look_set_back(&mut self, service: JobId, why: String) {
        let now = self.now;
        let of = self.services.services.get(&service);
        let Some(node) = of.and_then(|of| of.proofs.looker()) else { return };
        self.stop_looker(service);
        let Some(look) = self.look_mut(service) else { return };
        look.rests(now);
        look.failed_on.push(node);
        look.rests_until = now + RESTS_FOR;
        look.why = Some(why.clone());
        if look.failed_on.len() >= MOST_FAILURES {
            self.give_up_look(service, why);
        }
        self.services.due = Some(now);
    }

    fn give_up_look(&mut self, service: JobId, why: String) {
        self.end_look(service);
        if let Some(of) = self.services.services.get_mut(&service) {
            of.proofs.nobody_could(why);
        }
    }

    fn stop_looker(&mut self, service: JobId) {
        let at = self.look_mut(service).and_then(|look| look.at.take());
        if let Some(At { node, attempt, .. }) = at {
            self.services.looks.remove(&attempt);
            self.stop_asked(service, By::Node(node), attempt);
        }
    }

    pub(super) fn end_look(&mut self, service: JobId) -> Option<Look> {
        self.stop_looker(service);
        let now = self.now;
        let proofs = &mut self.services.services.get_mut(&service)?.proofs;
        let mut look = proofs.look.take()?;
        look.rests(now);
        // With whatever had to be loaded for it.
        proofs.looking.0 += look.busy.0;
        // The next one's turn.
        self.services.due = Some(now);
        Some(look)
    }
}
