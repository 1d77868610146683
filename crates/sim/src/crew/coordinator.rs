//! What the coordinator's shell would do: mint tokens, relay frames, keep facts, crash and start again.

use ed25519_dalek::Signer;
use shoal_protocol::{FromNode, Header, PublicKey, Signature, ToNode, UnitOutput, frame};
use shoal_scheduler::{Arrived, Conn, Fact, Input, Output, Place, Scheduler};
use shoal_seal::{Claims, Rights, mint};

use super::device::bytes;
use super::world::{Event, World};
use crate::coordinator::reread;

impl World {
    pub(super) fn give(&mut self, input: Input) {
        let Some(scheduler) = &mut self.scheduler else { return };
        scheduler.handle(self.now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| scheduler.poll_output()).collect();
        scheduler.check();
        let timeout = scheduler.next_timeout();
        for output in outputs {
            self.act(output);
        }
        if let Some(due) = timeout
            && self.timer.is_none_or(|timer| timer > due)
        {
            self.timer = Some(due);
            self.at(due.0.max(self.now.0 + 1), Event::Timer);
        }
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Record(fact) => {
                self.report.epochs += u64::from(matches!(fact, Fact::Epoch { .. }));
                self.facts.push(fact);
            }
            Output::Send { conn, mut message } => {
                if let ToNode::Enlist(enlist) = &mut message {
                    self.count_strokes(enlist);
                    let rank = usize::from(enlist.rank);
                    let claims = Claims {
                        crew: enlist.crew,
                        epoch: enlist.epoch,
                        holder: enlist.members[rank].node,
                        buffers: (1, 15),
                        rights: Rights::WRITE,
                        until: u64::MAX,
                    };
                    let secret = bytes(&mut self.random);
                    enlist.token = mint(|statement| self.sign(statement), &claims, secret);
                }
                self.send(conn, reread(&message));
            }
            Output::Refuse { conn, refusal } => {
                self.send(conn, ToNode::Refused(refusal));
                let at = self.sockets.get(&conn).map_or(self.now, |socket| socket.to_node);
                self.at(at.0 + 1, Event::Closed(conn));
            }
            Output::Reply { result, .. } => assert!(result.is_ok(), "{result:?}"),
            Output::Route { crew, epoch, members } => {
                self.routes.insert(crew, (epoch, members.into_iter().collect()));
            }
            Output::Drop(blobs) => {
                blobs.iter().for_each(|blob| drop(self.blobs.remove(&blob.hash)))
            }
            Output::Ended(_) | Output::Removed(_) => {}
            Output::Compare { .. } => panic!("a crew's rows are not compared"),
        }
    }

    fn sign(&self, statement: &[u8]) -> Signature {
        Signature::new(&self.key.sign(statement).to_bytes())
    }

    pub(super) fn coordinator(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    pub(super) fn send(&mut self, conn: Conn, message: ToNode) {
        let at = self.later();
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        socket.to_node = socket.to_node.max(at);
        let at = socket.to_node;
        self.at(at.0, Event::ToNode(conn, message));
    }

    /// What a device says to the coordinator, or gives to the relay, in order.
    pub(super) fn say(&mut self, conn: Conn, event: Event) {
        let at = self.later();
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        socket.from_node = socket.from_node.max(at);
        let at = socket.from_node;
        self.at(at.0, event);
    }

    /// The relay looks at nothing but the header.
    pub(super) fn relay(&mut self, conn: Conn, bytes: Vec<u8>) {
        if self.scheduler.is_none() || !self.sockets.contains_key(&conn) {
            return;
        }
        let Ok((header, _)) = frame::split(&bytes) else { panic!("no frame") };
        let Header { source, destination, crew, epoch, .. } = header;
        let Some((now, members)) = self.routes.get(&crew) else { return };
        if epoch != *now || members.get(&source) != Some(&conn) {
            self.report.stale += 1;
            return;
        }
        let Some(to) = members.get(&destination).copied() else { return };
        self.report.relayed += 1;
        let copies = 1 + usize::from(self.random.chance(self.plan.doubled));
        if self.random.chance(self.plan.lost) {
            return;
        }
        for _ in 0..copies {
            let at = self.later();
            self.at(at.0, Event::FromRelay(to, bytes.clone()));
        }
    }

    pub(super) fn heard(&mut self, conn: Conn, message: FromNode) {
        match reread(&message) {
            FromNode::Hello(hello) => {
                let session = String::from("s");
                self.give(Input::Connected { conn, hello, session, trusted: false, network: 0 });
            }
            FromNode::Done(results) => {
                let results = results.into_iter().map(|done| {
                    let UnitOutput::Stored { hash, size } = done.output else {
                        panic!("inline rows")
                    };
                    let place = Some(Place { offset: 0, size, hash });
                    Arrived { attempt: done.attempt, took: done.took, place }
                });
                self.give(Input::Done { conn, results: results.collect() });
            }
            message @ (FromNode::Failed { .. }
            | FromNode::Alive { .. }
            | FromNode::Caps(_)
            | FromNode::Returned(_)
            | FromNode::Pause(_)
            | FromNode::Condition(_)
            | FromNode::Declined { .. }
            | FromNode::Links { .. }
            | FromNode::Crew { .. }) => self.give(Input::Said { conn, message }),
        }
    }

    pub(super) fn crash(&mut self) {
        self.report.crashes += 1;
        self.scheduler = None;
        self.routes.clear();
        let conns: Vec<Conn> = self.sockets.keys().copied().collect();
        for conn in conns {
            let at = self.later();
            self.at(at.0, Event::Closed(conn));
        }
        let away = self.random.range(100_000, 4_000_000);
        self.at(self.now.0 + away, Event::Restart);
    }

    pub(super) fn restart(&mut self) {
        let replayed = Scheduler::replay(self.facts.iter().cloned());
        replayed.check();
        self.scheduler = Some(replayed);
        self.timer = None;
        let seed = self.random.draw();
        self.give(Input::Start { seed });
    }
}
