//! What passes between a member's links and its program. The program knows ranks, the links know nodes.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::swarm::BLOBS;
use shoal_protocol::{CrewSay, Failure, NodeId, Time};

use super::member::{Member, Program};
use super::sim::{SimInput, SimOutput};
use super::stage::{StageInput, StageOutput};
use super::talk::TalkOutput;
use super::{COLLECTIVE, HALOS, MemberOutput, STAGES};
use crate::collective::Rank;
use crate::mesh::{MeshInput, MeshOutput};

impl Member {
    /// Until links and program have nothing more for each other.
    pub(super) fn settle(&mut self, now: Time) {
        loop {
            if let Some(output) = self.mesh.poll_output() {
                self.take_links(now, output);
            } else if !self.take_program(now) {
                return;
            }
        }
    }

    fn take_links(&mut self, now: Time, output: MeshOutput) {
        let output = match output {
            MeshOutput::Relay(frame) => MemberOutput::Frame(frame),
            MeshOutput::Direct(node, frame) => MemberOutput::Direct(node, frame),
            MeshOutput::Radio(node, what) => MemberOutput::Radio(node, what),
            MeshOutput::Using(node, path) => MemberOutput::Using(node, path),
            MeshOutput::Message { from, channel, bytes } => {
                return self.heard(now, from, channel, bytes);
            }
            MeshOutput::Refused { to, channel } => return self.refused(to, channel),
            MeshOutput::Report(report) => {
                if self.members.contains(&report.with) {
                    self.links.insert(report.with, report);
                }
                return;
            }
            MeshOutput::Slow(node) => return self.says(CrewSay::Slow { node }),
            MeshOutput::Bad { node, why } => return self.accuse(node, why),
        };
        self.outputs.push_back(output);
    }

    fn heard(&mut self, now: Time, from: NodeId, channel: u16, bytes: Vec<u8>) {
        let Some(rank) = self.members.iter().position(|node| *node == from) else { return };
        let rank = Rank(rank as u8);
        match &mut self.program {
            Program::Nothing => {}
            Program::Sim(sim) if channel == HALOS => {
                sim.handle(now, SimInput::Heard { from: rank, bytes });
            }
            Program::Sim(sim) if channel == COLLECTIVE => {
                sim.handle(now, SimInput::Common { from: rank, bytes });
            }
            Program::Sim(_) => {
                let why = format!("words on channel {channel}, which no simulation has");
                self.accuse(from, why);
            }
            Program::Talk(talk) => talk.heard(now, rank, channel, bytes),
            Program::Stage(stage) if channel == STAGES => {
                stage.handle(now, StageInput::Heard { from: rank, bytes });
            }
            Program::Rounds(rounds) if channel == STAGES => {
                rounds.handle(now, StageInput::Heard { from: rank, bytes });
            }
            Program::Stage(_) | Program::Rounds(_) => {
                self.accuse(from, format!("words on channel {channel}, which no service has"));
            }
            Program::Swarm if channel == BLOBS => {
                self.outputs.push_back(MemberOutput::App { from, channel, bytes });
            }
            Program::Swarm => {
                self.accuse(from, format!("words on channel {channel}, where nobody shares"));
            }
        }
    }

    fn refused(&mut self, to: NodeId, channel: u16) {
        match self.program {
            Program::Nothing => {}
            // Nobody talks to one that was reported: the coordinator mends the crew.
            Program::Sim(_) | Program::Stage(_) | Program::Rounds(_) if self.bad.contains(&to) => {}
            Program::Sim(_) | Program::Stage(_) | Program::Rounds(_) => {
                let message = format!("node {to} cannot be told its part: it is too large to send");
                self.says(CrewSay::Failed { failure: Failure::Internal { message } });
                self.program = Program::Nothing;
            }
            Program::Talk(_) | Program::Swarm => {
                self.outputs.push_back(MemberOutput::Refused { to, channel });
            }
        }
    }

    /// One thing of the program's. Says whether there was any.
    fn take_program(&mut self, now: Time) -> bool {
        match &mut self.program {
            Program::Nothing | Program::Swarm => false,
            Program::Sim(sim) => {
                sim.poll_output().map(|output| self.take_sim(now, output)).is_some()
            }
            Program::Talk(talk) => {
                talk.poll_output().map(|output| self.take_talk(now, output)).is_some()
            }
            Program::Stage(stage) => {
                stage.poll_output().map(|output| self.take_stage(now, output)).is_some()
            }
            Program::Rounds(rounds) => {
                rounds.poll_output().map(|output| self.take_stage(now, output)).is_some()
            }
        }
    }

    fn take_sim(&mut self, now: Time, output: SimOutput) {
        match output {
            SimOutput::Tell { to, message } => self.tell(now, to, HALOS, message),
            SimOutput::Common { to, message } => self.tell(now, to, COLLECTIVE, message),
            SimOutput::Hold { rank, hold } => self.hold(now, rank, hold),
            SimOutput::Command(command) => self.outputs.push_back(MemberOutput::Engine(command)),
            SimOutput::Says(mut say) => {
                if let CrewSay::Progress { links, .. } = &mut say {
                    links.extend(self.links.values());
                }
                self.says(say);
            }
            SimOutput::Slow(rank) => self.slow(rank),
            SimOutput::Bad { rank, why } => self.accuse_rank(rank, why),
            SimOutput::Deliver { attempt, output } => {
                self.outputs.push_back(MemberOutput::Deliver { attempt, output });
            }
        }
    }

    fn take_stage(&mut self, now: Time, output: StageOutput) {
        match output {
            StageOutput::Tell { to, message } => self.tell(now, to, STAGES, message),
            StageOutput::Command(command) => self.outputs.push_back(MemberOutput::Stage(command)),
            StageOutput::Says(mut say) => {
                if let CrewSay::Staged(report) = &mut say {
                    report.links.extend(self.links.values());
                }
                self.says(say);
            }
            StageOutput::Slow(rank) => self.slow(rank),
            StageOutput::Bad { rank, why } => self.accuse_rank(rank, why),
            StageOutput::Answer { call, result } => {
                self.outputs.push_back(MemberOutput::Answer { call, result });
            }
            StageOutput::Part { call, at, bytes, last } => {
                self.outputs.push_back(MemberOutput::Part { call, at, bytes, last });
            }
        }
    }

    fn take_talk(&mut self, now: Time, output: TalkOutput) {
        match output {
            TalkOutput::Tell { to, message } => self.tell(now, to, COLLECTIVE, message),
            TalkOutput::App { from, channel, bytes } => {
                if let Some(from) = self.node(from) {
                    self.outputs.push_back(MemberOutput::App { from, channel, bytes });
                }
            }
            TalkOutput::Done { op, data } => {
                self.outputs.push_back(MemberOutput::Done { op, data });
            }
            TalkOutput::NotBegun(error) => self.outputs.push_back(MemberOutput::NotBegun(error)),
            TalkOutput::Hold { rank, hold } => self.hold(now, rank, hold),
            TalkOutput::Slow(rank) => self.slow(rank),
            TalkOutput::Bad { rank, why } => self.accuse_rank(rank, why),
        }
    }

    fn tell(&mut self, now: Time, to: Rank, channel: u16, message: Arc<Vec<u8>>) {
        if let Some(to) = self.node(to) {
            self.mesh.handle(now, MeshInput::Send { to, channel, message });
        }
    }

    fn hold(&mut self, now: Time, rank: Rank, hold: bool) {
        if let Some(node) = self.node(rank) {
            self.mesh.handle(now, MeshInput::Hold(node, hold));
        }
    }

    fn slow(&mut self, rank: Rank) {
        if let Some(node) = self.node(rank) {
            self.says(CrewSay::Slow { node });
        }
    }

    fn accuse_rank(&mut self, rank: Rank, why: String) {
        if let Some(node) = self.node(rank) {
            self.accuse(node, why);
        }
    }

    /// Once in an epoch: then the coordinator mends the crew, or believes somebody else.
    fn accuse(&mut self, node: NodeId, why: String) {
        if self.bad.insert(node) {
            self.says(CrewSay::Bad { node, why });
        }
    }

    pub(super) fn says(&mut self, say: CrewSay) {
        self.outputs.push_back(MemberOutput::Says { epoch: self.epoch, say });
    }

    fn node(&self, rank: Rank) -> Option<NodeId> {
        self.members.get(usize::from(rank.0)).copied()
    }
}
