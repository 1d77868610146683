//! What the shells would do for the exchange of a blob: the devices', which have disks, and the coordinator's, which
//! has all of it.

use std::ops::Range;

use shoal_node::{Input as NodeInput, MemberInput, SwarmInput, SwarmOutput};
use shoal_protocol::swarm::{BLOBS, piece_span, pieces_in};
use shoal_protocol::{FromNode, Micros, PieceSet, PieceWord, SwarmSay, Time};
use shoal_scheduler::{Conn, Input, Scheduler};

use super::shelf::Flaw;
use super::{Swarm, SwarmEvent};
use crate::world::{Event, Probe, World};

/// A device that could not get a blob needs it still, and asks again after so long.
const ASKS_AGAIN: Micros = Micros::from_secs(1);

impl<P: Probe> World<P> {
    pub(crate) fn plan_swarm(&mut self) {
        for at in 0..self.devices.len() {
            if let Some(from) = self.devices[at].shelf.as_ref().map(|shelf| shelf.from) {
                self.at(from.0, Event::Swarm(SwarmEvent::Needs(at)));
            }
        }
    }

    pub(crate) fn swarm_event(&mut self, event: SwarmEvent) {
        let at = event.device();
        let until = self.devices[at].frozen_until;
        if until > self.now {
            return self.at(until.0 + 1, Event::Swarm(event));
        }
        match event {
            SwarmEvent::Needs(at) => self.want_blob(at),
            SwarmEvent::More { device, birth } => {
                if self.devices[device].birth == birth {
                    let later = self.devices[device].shelf.as_ref().map(|one| one.later.clone());
                    self.want(device, &later.unwrap_or_default());
                }
            }
            SwarmEvent::Fetched { device, birth, piece } => self.fetched(device, birth, piece),
        }
    }

    /// Everybody has what it needs.
    pub(crate) fn all_served(&self) -> bool {
        self.devices.iter().filter_map(|device| device.shelf.as_ref()).all(|shelf| shelf.served)
    }

    pub(crate) fn blobs_are_true(&mut self, live: &Scheduler) {
        let Some(Swarm { blob, pieces, .. }) = &self.swarm else { return };
        for shelf in self.devices.iter().filter_map(|device| device.shelf.as_ref()) {
            let needs = shelf.all_needs(blob);
            let has = shelf.disk.keys().copied();
            assert!(has.eq(needs.iter()), "a device has other pieces than it asked for");
            let mut stored = shelf.disk.iter();
            let right = stored.all(|(piece, bytes)| pieces[*piece as usize] == *bytes);
            assert!(right, "a device has other bytes");
            self.report.swarm.needed += u64::from(needs.len());
            self.report.swarm.devices += 1;
        }
        let nodes = live.nodes(self.clock());
        self.report.swarm.named = nodes.iter().filter(|node| node.gave_wrong > 0).count() as u64;
        self.report.swarm.pieces = pieces.len() as u64;
    }

    /// A device says what it needs, once after each start; what it has on disk it need not get again.
    pub(crate) fn want_blob(&mut self, at: usize) {
        let now = self.now;
        let joined = self.devices[at].is_joined();
        let Some(shelf) = &mut self.devices[at].shelf else { return };
        if joined && shelf.from <= now && !shelf.asked {
            shelf.asked = true;
            let needs = shelf.needs.clone();
            self.want(at, &needs);
        }
    }

    /// What is on disk was checked.
    fn want(&mut self, at: usize, ranges: &[Range<u64>]) {
        let (Some(swarm), Some(shelf)) = (&self.swarm, &self.devices[at].shelf) else { return };
        let mut has = PieceSet::new(swarm.pieces.len() as u32);
        shelf.disk.keys().for_each(|piece| assert!(has.insert(*piece)));
        let (blob, hashes) = (swarm.blob, swarm.hashes.clone());
        let needs = pieces_in(&blob, ranges.iter().cloned());
        self.swarm(at, SwarmInput::Want { blob, hashes, needs, has });
    }

    /// What it needed is there. Some need more then, after a while.
    fn served(&mut self, at: usize) {
        let birth = self.devices[at].birth;
        let (Some(swarm), Some(shelf)) = (&self.swarm, &mut self.devices[at].shelf) else { return };
        let has = shelf.swarms.has(swarm.blob.hash);
        if has.is_some_and(|has| has.covers(&shelf.all_needs(&swarm.blob))) {
            shelf.served = true;
            return;
        }
        let due = self.now.0 + self.random.range(0, 2_000_000);
        self.at(due, Event::Swarm(SwarmEvent::More { device: at, birth }));
    }

    /// The coordinator's shell looks whether it stores the blobs that are spoken of.
    pub(crate) fn heard_of_blobs(&mut self, conn: Conn, say: SwarmSay) {
        if let (Some(swarm), Some(live)) = (&self.swarm, &self.scheduler)
            && !live.knows_blob(&swarm.blob)
            && say.claimed().contains(&swarm.blob)
        {
            let blob = swarm.blob;
            self.give(Input::Stored { blob });
        }
        self.give(Input::Said { conn, message: FromNode::Swarm(say) });
    }

    pub(crate) fn swarm(&mut self, at: usize, input: SwarmInput<'_>) {
        let Some(shelf) = &mut self.devices[at].shelf else { return };
        shelf.swarms.handle(self.now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| shelf.swarms.poll_output()).collect();
        shelf.swarms.check();
        for output in outputs {
            self.swarm_acts(at, output);
        }
        self.wind(at);
    }

    pub(crate) fn swarm_tick(&mut self, at: usize) {
        let due = self.devices[at].shelf.as_ref().and_then(|shelf| shelf.swarms.next_timeout());
        if due.is_some_and(|due| due <= self.now) {
            self.swarm(at, SwarmInput::Tick);
        }
    }

    fn swarm_acts(&mut self, at: usize, output: SwarmOutput) {
        let birth = self.devices[at].birth;
        match output {
            SwarmOutput::Say(say) => self.say(at, say),
            SwarmOutput::Tell { to, words } => {
                let Some(shelf) = &self.devices[at].shelf else { return };
                let crew = shelf.links.get(&to).copied();
                let said = spoiled(shelf.flaw, words.to_vec());
                if let (Some(crew), Some(words)) = (crew, said) {
                    let message = words.into();
                    self.tell_member(at, crew, MemberInput::App { to, channel: BLOBS, message });
                }
            }
            SwarmOutput::Fetch { piece, .. } => {
                let Some(swarm) = &mut self.swarm else { return };
                let left = swarm.sends(self.now, piece);
                let due = left.max(self.now + self.delay());
                let event = SwarmEvent::Fetched { device: at, birth, piece };
                self.at(due.0, Event::Swarm(event));
            }
            SwarmOutput::Store { piece, bytes, .. } => {
                if let Some(shelf) = &mut self.devices[at].shelf {
                    shelf.disk.insert(piece, bytes);
                }
            }
            SwarmOutput::Load { blob, piece, to } => {
                let shelf = self.devices[at].shelf.as_ref();
                let bytes = shelf.and_then(|shelf| shelf.disk.get(&piece).cloned());
                let (blob, bytes) = (blob.hash, bytes.as_deref());
                self.swarm(at, SwarmInput::Loaded { blob, piece, to, bytes });
            }
            SwarmOutput::Whole(_) | SwarmOutput::Part(_) => self.served(at),
            SwarmOutput::Failed { .. } => {
                // The coordinator was away for too long.
                if let Some(shelf) = &mut self.devices[at].shelf {
                    shelf.asked = false;
                }
                let due = self.now + ASKS_AGAIN;
                self.at(due.0, Event::Swarm(SwarmEvent::Needs(at)));
            }
        }
    }

    fn say(&mut self, at: usize, say: SwarmSay) {
        if let SwarmSay::Got { blob, piece, from } = say {
            let shelf = self.devices[at].shelf.as_ref();
            let accuses = shelf.is_some_and(|shelf| shelf.flaw == Some(Flaw::Accuses));
            if let Some(from) = from.filter(|_| accuses) {
                let why = shoal_protocol::Missed::Bad;
                let lie = SwarmSay::Missed { blob, piece, from, why };
                self.tell_device(at, NodeInput::SwarmSays(lie));
            }
            match from {
                Some(_) => self.report.swarm.exchanged += 1,
                None => self.report.swarm.fetched += 1,
            }
        }
        self.tell_device(at, NodeInput::SwarmSays(say));
    }

    fn fetched(&mut self, at: usize, birth: u32, piece: u32) {
        let Some(swarm) = &self.swarm else { return };
        if self.devices[at].birth != birth {
            return;
        }
        let reached = self.scheduler.is_some() && self.now >= self.devices[at].cut_until;
        let result = match reached {
            true => Ok(swarm.pieces[piece as usize].clone()),
            false => Err(String::from("the coordinator is away")),
        };
        let blob = swarm.blob.hash;
        self.swarm(at, SwarmInput::Fetched { blob, piece, result });
    }
}

impl Swarm {
    /// When a piece that is asked for now has left the coordinator.
    fn sends(&mut self, now: Time, piece: u32) -> Time {
        let (start, bytes) = (self.busy.max(now).0, piece_span(&self.blob, piece).1);
        self.busy = Time(start + bytes * 1_000_000 / self.plan.coordinator_rate);
        self.busy
    }
}

/// What a device says to another, if it says anything.
fn spoiled(flaw: Option<Flaw>, mut words: Vec<u8>) -> Option<Vec<u8>> {
    let gives = matches!(PieceWord::decode(&words), Some(PieceWord::Here { .. }));
    match flaw {
        Some(Flaw::Lies) if gives => {
            if let Some(last) = words.last_mut() {
                *last ^= 1;
            }
            Some(words)
        }
        Some(Flaw::Mute) if gives => None,
        Some(Flaw::Lies | Flaw::Mute | Flaw::Accuses) | None => Some(words),
    }
}
