//! What the devices' shells would do: sockets, links, disks.

use shoal_node::{ShareInput, ShareOutput};
use shoal_protocol::limit::PROTOCOL_VERSION;
use shoal_protocol::share::piece_span;
use shoal_protocol::{
    Caps, CrewTask, FromNode, Hello, LinkKey, Micros, NodeId, NodeKind, PieceSet, PieceWord,
    ShareSay, Signature, Time, ToNode,
};
use shoal_scheduler::{Conn, Input};

use super::device::Flaw;
use super::world::{Event, World};

impl World {
    /// A device joins and says what it needs; what it has on disk it need not get again.
    pub(super) fn start(&mut self, at: usize) {
        if self.devices[at].conn.is_some() {
            return;
        }
        if self.scheduler.is_none() {
            // Nodes try again until somebody answers.
            return self.at(self.now + Micros::from_millis(300), Event::Start(at));
        }
        self.next_conn += 1;
        let conn = Conn(self.next_conn);
        self.conns.insert(conn, at);
        self.devices[at].conn = Some(conn);
        let caps = Caps {
            kind: NodeKind::Native,
            name: String::new(),
            gpu: None,
            cpu_slots: 0,
            speed: 100,
            class: 0,
        };
        let (identity, proof) = (self.devices[at].identity, Signature([0; 32], [0; 32]));
        let (version, token, held) = (PROTOCOL_VERSION, String::new(), Vec::new());
        let hello = Hello { version, token, identity, proof, caps, held };
        let session = String::new();
        self.give(Input::Connected { conn, hello, session, trusted: false, network: 0 });
        let key = LinkKey([at as u8; 32]);
        self.give(Input::Said { conn, message: FromNode::Links { key, proof } });
        self.tell(at, ShareInput::Joined);
        let mut has = PieceSet::new(self.plan.pieces);
        self.devices[at].disk.keys().for_each(|piece| assert!(has.insert(*piece)));
        let (blob, hashes) = (self.blob, self.hashes.clone());
        self.tell(at, ShareInput::Want { blob, hashes, has });
        if self.plan.floods && at % 3 == 1 {
            let birth = self.devices[at].birth;
            self.at(self.now, Event::Flood { device: at, birth, word: 0 });
        }
    }

    /// What the coordinator's shell does: it looks whether it stores the blobs that are spoken of.
    pub(super) fn heard(&mut self, conn: Conn, message: FromNode) {
        let known = self.scheduler.as_ref().is_none_or(|live| live.knows_blob(&self.blob));
        if let FromNode::Share(say) = &message
            && !known
            && say.claimed().contains(&self.blob)
        {
            self.give(Input::Stored { blob: self.blob });
        }
        self.give(Input::Said { conn, message });
    }

    pub(super) fn told(&mut self, at: usize, message: ToNode) {
        match message {
            ToNode::Welcome { node, .. } => self.devices[at].id = Some(node),
            ToNode::Enlist(enlist) => {
                assert_eq!(enlist.task, CrewTask::Share);
                let other = enlist.members[1 - usize::from(enlist.rank)];
                let node = other.node;
                // It may not have heard its own number yet.
                for device in self.devices.iter_mut().filter(|d| d.identity == other.identity) {
                    device.id = Some(node);
                }
                self.devices[at].links.insert(node, enlist.crew);
                if enlist.rank == 0 && self.random.chance(self.plan.direct) {
                    let due = self.later() + Micros(self.random.range(50_000, 1_500_000));
                    self.both_near(at, node, due, true);
                }
            }
            ToNode::Dismiss { crew } => {
                let links = &self.devices[at].links;
                let gone = links.iter().find(|(_, known)| **known == crew).map(|(node, _)| *node);
                if let Some(node) = gone {
                    self.devices[at].links.remove(&node);
                    self.devices[at].near.remove(&node);
                    self.tell(at, ShareInput::Gone(node));
                }
            }
            ToNode::Share(told) => self.tell(at, ShareInput::Told(told)),
            ToNode::Refused(_)
            | ToNode::Job { .. }
            | ToNode::Lend(_)
            | ToNode::Revoke(_)
            | ToNode::Forget(_)
            | ToNode::Challenge { .. }
            | ToNode::Audition { .. }
            | ToNode::ToCrew { .. }
            | ToNode::Quic(_) => {}
        }
    }

    pub(super) fn tell(&mut self, at: usize, input: ShareInput<'_>) {
        let device = &mut self.devices[at];
        device.share.handle(self.now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| device.share.poll_output()).collect();
        device.share.check();
        for output in outputs {
            self.act(at, output);
        }
        let device = &mut self.devices[at];
        if let Some(due) = device.share.next_timeout()
            && device.timer.is_none_or(|timer| timer > due)
        {
            let due = Time(due.0.max(self.now.0 + 1));
            device.timer = Some(due);
            self.at(due, Event::Wake(at));
        }
    }

    fn act(&mut self, at: usize, output: ShareOutput) {
        let birth = self.devices[at].birth;
        match output {
            ShareOutput::Say(say) => self.say(at, say),
            ShareOutput::Tell { to, words } => self.pass(at, to, words.to_vec()),
            ShareOutput::Fetch { piece, .. } => {
                let bytes = piece_span(&self.blob, piece).1;
                let start = self.busy.max(self.now).0;
                self.busy = Time(start + bytes * 1_000_000 / self.plan.coordinator_rate);
                let due = Time(self.busy.0.max(self.later().0));
                self.at(due, Event::Fetched { device: at, birth, piece });
            }
            ShareOutput::Store { piece, bytes, .. } => {
                self.devices[at].disk.insert(piece, bytes);
            }
            ShareOutput::Load { blob, piece, to } => {
                let bytes = self.devices[at].disk.get(&piece).cloned();
                let (blob, bytes) = (blob.hash, bytes.as_deref());
                self.tell(at, ShareInput::Loaded { blob, piece, to, bytes });
            }
            ShareOutput::Whole(_) => self.devices[at].whole = true,
            ShareOutput::Failed { why, .. } => panic!("a device gave up: {why}"),
        }
    }

    fn say(&mut self, at: usize, say: ShareSay) {
        let Some(conn) = self.devices[at].conn else { return };
        if let ShareSay::Got { blob, piece, from } = say {
            let accuses = self.devices[at].flaw == Some(Flaw::Accuses);
            if let Some(from) = from.filter(|_| accuses) {
                let why = shoal_protocol::Missed::Bad;
                let lie = FromNode::Share(ShareSay::Missed { blob, piece, from, why });
                self.send(conn, false, Event::FromNode(conn, lie));
            }
            match from {
                Some(_) => self.report.exchanged += 1,
                None => self.report.fetched += 1,
            }
        }
        self.send(conn, false, Event::FromNode(conn, FromNode::Share(say)));
    }

    /// Words from device to device: the sender's line carries them one after the other.
    fn pass(&mut self, at: usize, to: NodeId, mut words: Vec<u8>) {
        let Some(me) = self.devices[at].id.filter(|_| self.devices[at].near.contains(&to)) else {
            return;
        };
        let gives = matches!(PieceWord::decode(&words), Some(PieceWord::Here { .. }));
        match self.devices[at].flaw {
            Some(Flaw::Lies) if gives => {
                if let Some(last) = words.last_mut() {
                    *last ^= 1;
                }
            }
            Some(Flaw::Mute) if gives => return,
            Some(Flaw::Lies | Flaw::Mute | Flaw::Accuses) | None => {}
        }
        let to = self.devices.iter().position(|device| device.id == Some(to));
        let Some(to) = to.filter(|_| !self.random.chance(self.plan.lost)) else { return };
        let left = self.devices[at].sends(self.now, words.len() as u64);
        let due = left.max(self.later());
        let birth = self.devices[to].birth;
        self.at(due, Event::Words { to, birth, from: me, words });
    }

    pub(super) fn fetched(&mut self, at: usize, birth: u32, piece: u32) {
        if self.devices[at].birth != birth {
            return;
        }
        let result = match &self.scheduler {
            Some(_) => Ok(self.pieces[piece as usize].clone()),
            None => Err(String::from("the coordinator is away")),
        };
        let blob = self.blob.hash;
        self.tell(at, ShareInput::Fetched { blob, piece, result });
    }
}
