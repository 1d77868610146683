//! A member: links and a program, put together.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_kinds::SimWork;
use shoal_protocol::limit::{MAX_PIECES_ASKED, PIECE_BYTES};
use shoal_protocol::swarm::BLOBS;
use shoal_protocol::{
    Attempt, CrewSay, CrewTask, CrewTold, Enlist, Epoch, Failure, LinkReport, Micros, NodeId, Time,
};
use shoal_seal::Keys;

use super::rounds::Rounds;
use super::sim::{Place, Sim, SimInput};
use super::stage::{Stage, StageInput};
use super::talk::Talk;
use super::{COLLECTIVE, MemberConfig, MemberInput, MemberOutput, SimAnswer};
use crate::collective::{Op, OpError, Rank};
use crate::mesh::{CONTROL, Mesh, MeshConfig, MeshInput};

/// Pieces that wait for one peer: twice what an honest one asks for at a time.
const MAX_SWARM_QUEUED: u64 = 2 * MAX_PIECES_ASKED as u64 * PIECE_BYTES;

/// One node's part in one crew.
pub struct Member {
    work: Option<SimWork>,
    pub(super) mesh: Mesh,
    pub(super) program: Program,
    pub(super) epoch: Epoch,
    /// By rank, in this epoch.
    pub(super) members: Vec<NodeId>,
    /// What was last measured of the links.
    pub(super) links: BTreeMap<NodeId, LinkReport>,
    /// Who was reported in this epoch.
    pub(super) bad: BTreeSet<NodeId>,
    watched: bool,
    pub(super) outputs: VecDeque<MemberOutput>,
}

pub(super) enum Program {
    /// Not enlisted yet, or its part is over.
    Nothing,
    Sim(Box<Sim>),
    Talk(Box<Talk>),
    Stage(Box<Stage>),
    Rounds(Box<Rounds>),
    /// Pieces of blobs pass through: [`crate::swarm`] is about all links of the node.
    Swarm,
}

impl Member {
    pub fn new(now: Time, config: MemberConfig) -> Member {
        let MemberConfig { me, coordinator, secret, seed, unix_at_zero, tries_direct, work } =
            config;
        let keys = Keys::new(secret);
        let links = MeshConfig { me, coordinator, keys, seed, unix_at_zero, tries_direct };
        Member {
            work,
            mesh: Mesh::new(now, links),
            program: Program::Nothing,
            epoch: Epoch(0),
            members: Vec::new(),
            links: BTreeMap::new(),
            bad: BTreeSet::new(),
            watched: false,
            outputs: VecDeque::new(),
        }
    }

    pub fn handle(&mut self, now: Time, input: MemberInput<'_>) {
        match input {
            MemberInput::Enlist(enlist) => self.enlist(now, *enlist),
            MemberInput::Told(told) => self.told(now, told),
            MemberInput::Relay(true) => self.mesh.handle(now, MeshInput::RelayUp),
            MemberInput::Relay(false) => self.mesh.handle(now, MeshInput::RelayDown),
            MemberInput::Frame(frame) => self.mesh.handle(now, MeshInput::Relay(frame)),
            MemberInput::DirectUp(node) => self.mesh.handle(now, MeshInput::DirectUp(node)),
            MemberInput::DirectDown(node) => self.mesh.handle(now, MeshInput::DirectDown(node)),
            MemberInput::Direct(node, frame) => {
                self.mesh.handle(now, MeshInput::Direct(node, frame));
            }
            MemberInput::Radio(node, words) => self.mesh.handle(now, MeshInput::Radio(node, words)),
            MemberInput::Engine(answer) => self.answered(now, answer),
            MemberInput::Stage(answer) => self.stage(now, StageInput::Answer(answer)),
            MemberInput::Ask { call, body } => self.ask(now, call, body),
            MemberInput::App { to, channel, message } => self.app(now, to, channel, message),
            MemberInput::Hold(node, hold) => self.mesh.handle(now, MeshInput::Hold(node, hold)),
            MemberInput::Collective { op, data } => self.begin(now, op, data),
            MemberInput::Tick => {
                self.mesh.handle(now, MeshInput::Tick);
                match &mut self.program {
                    Program::Nothing | Program::Swarm => {}
                    Program::Sim(sim) => sim.handle(now, SimInput::Tick),
                    Program::Talk(talk) => talk.tick(now),
                    Program::Stage(stage) => stage.handle(now, StageInput::Tick),
                    Program::Rounds(rounds) => rounds.handle(now, StageInput::Tick),
                }
            }
        }
        self.settle(now);
    }

    pub fn poll_output(&mut self) -> Option<MemberOutput> {
        self.outputs.pop_front()
    }

    /// When to say `Tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        let program = match &self.program {
            Program::Nothing | Program::Swarm => None,
            Program::Sim(sim) => sim.next_timeout(),
            Program::Talk(talk) => talk.next_timeout(),
            Program::Stage(stage) => stage.next_timeout(),
            Program::Rounds(rounds) => rounds.next_timeout(),
        };
        self.mesh.next_timeout().into_iter().chain(program).min()
    }

    /// How the links to the others are doing, as last measured.
    pub fn links(&self) -> impl Iterator<Item = &LinkReport> {
        self.links.values()
    }

    /// The links themselves, to look at.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        self.mesh.check();
        match &self.program {
            Program::Nothing | Program::Swarm => {}
            Program::Sim(sim) => sim.check(),
            Program::Talk(talk) => talk.check(),
            Program::Stage(stage) => stage.check(),
            Program::Rounds(rounds) => rounds.check(),
        }
        assert!(self.links.keys().all(|node| self.members.contains(node)), "a stranger's link");
    }

    fn enlist(&mut self, now: Time, enlist: Enlist) {
        if enlist.epoch <= self.epoch {
            return;
        }
        self.mesh.handle(now, MeshInput::Enlist(&enlist));
        self.epoch = enlist.epoch;
        self.members = enlist.members.iter().map(|member| member.node).collect();
        self.bad.clear();
        let members = &self.members;
        self.links.retain(|node, _| members.contains(node));
        let (rank, ranks) = (Rank(enlist.rank), self.members.len() as u8);
        self.program = match (enlist.task, &self.work) {
            (CrewTask::Sim(task), Some(work)) => {
                let place = Place { epoch: self.epoch, rank, ranks };
                let mut sim = Sim::new(now, place, work, task);
                sim.handle(now, SimInput::Told(CrewTold::Watch(self.watched)));
                Program::Sim(Box::new(sim))
            }
            (CrewTask::Sim(_), None) => {
                let message = String::from("a simulation whose work this member does not know");
                self.says(CrewSay::Failed { failure: Failure::Internal { message } });
                Program::Nothing
            }
            (CrewTask::Talk, _) => {
                let (step, time) = (0, Micros(0));
                let (computed, waited, guessed, corrected) = (time, time, 0, 0);
                let links = Vec::new();
                self.says(CrewSay::Progress { step, computed, waited, guessed, corrected, links });
                Program::Talk(Box::new(Talk::new(rank, ranks)))
            }
            (CrewTask::Swarm, _) => Program::Swarm,
            (CrewTask::Stage(task), _) if task.rounds => {
                let place = (self.epoch, rank, ranks);
                Program::Rounds(Box::new(Rounds::new(now, place, &task)))
            }
            (CrewTask::Stage(task), _) => {
                let place = (self.epoch, rank, ranks);
                Program::Stage(Box::new(Stage::new(now, place, &task)))
            }
        };
    }

    fn told(&mut self, now: Time, told: CrewTold) {
        match told {
            CrewTold::Watch(watched) => self.watched = watched,
            CrewTold::Drop { call } => self.stage(now, StageInput::Drop { call }),
            CrewTold::Poke(_) | CrewTold::NotMet { .. } => {}
        }
        if let Program::Sim(sim) = &mut self.program {
            sim.handle(now, SimInput::Told(told));
        }
    }

    fn answered(&mut self, now: Time, answer: SimAnswer) {
        if let Program::Sim(sim) = &mut self.program {
            sim.handle(now, SimInput::Answer(answer));
        }
    }

    fn stage(&mut self, now: Time, input: StageInput) {
        match &mut self.program {
            Program::Stage(stage) => stage.handle(now, input),
            Program::Rounds(rounds) => rounds.handle(now, input),
            Program::Nothing | Program::Sim(_) | Program::Talk(_) | Program::Swarm => {}
        }
    }

    /// Whoever has no part in the service any more cannot take requests to it.
    fn ask(&mut self, now: Time, call: Attempt, body: Arc<Vec<u8>>) {
        if matches!(self.program, Program::Stage(_) | Program::Rounds(_)) {
            return self.stage(now, StageInput::Ask { call, body });
        }
        let message = String::from("this member keeps no part of the service");
        let result = Err(Failure::DeviceLost { message });
        self.outputs.push_back(MemberOutput::Answer { call, result });
    }

    fn app(&mut self, now: Time, to: NodeId, channel: u16, message: Arc<Vec<u8>>) {
        let may = match self.program {
            Program::Talk(_) => channel != CONTROL && channel != COLLECTIVE,
            // One that asks for more than it takes must not fill this node's memory.
            Program::Swarm => channel == BLOBS && self.mesh.queued_bytes(to) < MAX_SWARM_QUEUED,
            Program::Nothing | Program::Sim(_) | Program::Stage(_) | Program::Rounds(_) => false,
        };
        if may {
            self.mesh.handle(now, MeshInput::Send { to, channel, message });
        } else {
            self.outputs.push_back(MemberOutput::Refused { to, channel });
        }
    }

    fn begin(&mut self, now: Time, op: Op, data: Arc<Vec<u8>>) {
        if let Program::Talk(talk) = &mut self.program {
            talk.begin(now, op, data);
        } else {
            self.outputs.push_back(MemberOutput::NotBegun(OpError::WrongRanks));
        }
    }
}
