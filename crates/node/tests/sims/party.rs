//! Who takes part: a simulation's part alone, over messages that arrive, or a whole member with links.

use std::collections::VecDeque;
use std::sync::Arc;

use shoal_kinds::SimWork;
use shoal_node::collective::{Op, Rank};
use shoal_node::session::sim::{Place, Sim, SimInput, SimOutput};
use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::{
    Attempt, CrewSay, CrewTask, CrewTold, Enlist, Epoch, Identity, LinkKey, MemberInfo, NodeId,
    Signature, Time, UnitOutput,
};

pub(crate) enum Given<'a> {
    Enlist(Enlist),
    Net {
        from: NodeId,
        bytes: &'a [u8],
    },
    Relay(bool),
    /// This machine's radio calls that one's.
    Call(NodeId),
    DirectUp(NodeId),
    DirectDown(NodeId),
    Direct {
        from: NodeId,
        bytes: &'a [u8],
    },
    App {
        to: NodeId,
        channel: u16,
        message: Arc<Vec<u8>>,
    },
    Collective {
        op: Op,
        data: Arc<Vec<u8>>,
    },
    Answer(SimAnswer),
    Told(CrewTold),
    Tick,
}

#[derive(Debug)]
pub(crate) enum Does {
    Net {
        to: NodeId,
        bytes: Arc<Vec<u8>>,
    },
    Direct {
        to: NodeId,
        bytes: Arc<Vec<u8>>,
    },
    Dial(NodeId),
    /// That one's radio called.
    Called(NodeId),
    App {
        channel: u16,
        bytes: Vec<u8>,
    },
    Done(Vec<u8>),
    Command(SimCommand),
    Says {
        epoch: Epoch,
        say: CrewSay,
    },
    Deliver {
        attempt: Attempt,
        output: UnitOutput,
    },
}

pub(crate) trait Party {
    /// The network must lose nothing and keep the order, because nobody else does.
    const NEEDS_ORDER: bool;
    fn new(now: Time, node: NodeId, work: SimWork) -> Self;
    /// As the other members must know it.
    fn card(node: NodeId) -> MemberInfo;
    fn token(node: NodeId, epoch: Epoch) -> Vec<u8>;
    fn give(&mut self, now: Time, given: Given<'_>);
    fn poll(&mut self) -> Option<Does>;
    fn next_timeout(&self) -> Option<Time>;
    fn check(&self);
}

/// A simulation's part and nothing else. Its messages begin with their epoch, as frames do, and their
/// channel.
pub(crate) struct Bare {
    work: SimWork,
    members: Vec<NodeId>,
    part: Option<(Epoch, Sim)>,
    /// Of an epoch this member is not in yet.
    ahead: Vec<(NodeId, Vec<u8>)>,
    does: VecDeque<Does>,
}

impl Bare {
    fn hear(&mut self, now: Time, from: NodeId, bytes: &[u8]) {
        let (epoch, rest) = bytes.split_first_chunk().unwrap();
        let epoch = Epoch(u32::from_le_bytes(*epoch));
        let (common, rest) = rest.split_first().unwrap();
        match &mut self.part {
            Some((mine, sim)) if *mine == epoch => {
                let rank = self.members.iter().position(|node| *node == from).unwrap();
                let from = Rank(rank as u8);
                let bytes = rest.to_vec();
                sim.handle(
                    now,
                    match common {
                        0 => SimInput::Heard { from, bytes },
                        _ => SimInput::Common { from, bytes },
                    },
                );
            }
            Some((mine, _)) if *mine > epoch => {}
            Some(_) | None => self.ahead.push((from, bytes.to_vec())),
        }
    }
}

impl Party for Bare {
    const NEEDS_ORDER: bool = true;

    fn new(_: Time, _: NodeId, work: SimWork) -> Bare {
        Bare { work, members: vec![], part: None, ahead: vec![], does: VecDeque::new() }
    }

    fn card(node: NodeId) -> MemberInfo {
        let proof = Signature::new(&[0; 64]);
        MemberInfo { node, identity: Identity([0; 32]), key: LinkKey([0; 32]), proof }
    }

    fn token(_: NodeId, _: Epoch) -> Vec<u8> {
        Vec::new()
    }

    fn give(&mut self, now: Time, given: Given<'_>) {
        let input = match given {
            Given::Enlist(enlist) => {
                if self.part.as_ref().is_some_and(|(epoch, _)| *epoch >= enlist.epoch) {
                    return;
                }
                let CrewTask::Sim(task) = enlist.task else { panic!("no simulation") };
                self.members = enlist.members.iter().map(|member| member.node).collect();
                let (epoch, ranks) = (enlist.epoch, self.members.len() as u8);
                let place = Place { epoch, rank: Rank(enlist.rank), ranks };
                self.part = Some((epoch, Sim::new(now, place, &self.work, task)));
                for (from, bytes) in std::mem::take(&mut self.ahead) {
                    self.hear(now, from, &bytes);
                }
                SimInput::Tick
            }
            Given::Net { from, bytes } => return self.hear(now, from, bytes),
            Given::Relay(_)
            | Given::Call(_)
            | Given::DirectUp(_)
            | Given::DirectDown(_)
            | Given::Direct { .. }
            | Given::App { .. }
            | Given::Collective { .. } => return,
            Given::Answer(answer) => SimInput::Answer(answer),
            Given::Told(told) => SimInput::Told(told),
            Given::Tick => SimInput::Tick,
        };
        if let Some((_, sim)) = &mut self.part {
            sim.handle(now, input);
        }
    }

    fn poll(&mut self) -> Option<Does> {
        let (epoch, sim) = self.part.as_mut()?;
        let epoch = *epoch;
        let node = |rank: Rank| self.members[usize::from(rank.0)];
        while let Some(output) = sim.poll_output() {
            self.does.push_back(match output {
                SimOutput::Tell { to, message } => {
                    let bytes = [&epoch.0.to_le_bytes(), &[0][..], message.as_slice()].concat();
                    Does::Net { to: node(to), bytes: Arc::new(bytes) }
                }
                SimOutput::Common { to, message } => {
                    let bytes = [&epoch.0.to_le_bytes(), &[1][..], message.as_slice()].concat();
                    Does::Net { to: node(to), bytes: Arc::new(bytes) }
                }
                SimOutput::Hold { .. } => panic!("so little is never held back"),
                SimOutput::Command(command) => Does::Command(command),
                SimOutput::Says(say) => Does::Says { epoch, say },
                SimOutput::Slow(rank) => {
                    Does::Says { epoch, say: CrewSay::Slow { node: node(rank) } }
                }
                SimOutput::Bad { rank, why } => {
                    Does::Says { epoch, say: CrewSay::Bad { node: node(rank), why } }
                }
                SimOutput::Deliver { attempt, output } => Does::Deliver { attempt, output },
            });
        }
        self.does.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        self.part.as_ref()?.1.next_timeout()
    }

    fn check(&self) {
        if let Some((_, sim)) = &self.part {
            sim.check();
        }
    }
}
