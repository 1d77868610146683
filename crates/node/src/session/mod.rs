//! One node's part in one crew: its links to the other members and the program they run together. Pure; its
//! shells are the page's Worker, the native node, and simulation.
//!
//! The contract is the brains': one [`MemberInput`] with the time, then drain [`Member::poll_output`]. A member
//! lives from the first `Enlist` of its crew until it is dismissed, over all epochs in between. It computes
//! nothing itself: [`MemberOutput::Engine`] asks the shell, [`MemberInput::Engine`] answers.
//!
//! `member` puts links and program together, `pass` passes on what they have for each other; `sim` is a
//! simulation's part, `talk` an application's, `stage` that of a service in parts,
//! `rounds` that of one in which requests go round and round; `command` has the words between a simulation and the
//! engine.

mod command;
mod member;
mod pass;
mod rounds;
pub mod sim;
pub mod stage;
mod talk;

pub use command::{SimAnswer, SimCommand};
pub use member::Member;
pub use stage::{Passing, StageAnswer, StageCommand, Turned};

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_kinds::SimWork;
use shoal_protocol::{
    Attempt, CrewSay, CrewTold, Enlist, Epoch, Failure, NodeId, Path, PublicKey, UnitOutput,
};

use crate::collective::{Op, OpError, OpId};

/// Whose part it is, and of what.
#[derive(Clone)]
pub struct MemberConfig {
    pub me: NodeId,
    pub coordinator: PublicKey,
    /// What this node's links are sealed with: the other half of the key in its `Enlist`.
    pub secret: [u8; 32],
    /// Fresh randomness, used for nothing else.
    pub seed: [u8; 32],
    /// Unix time in microseconds at the shell's `Time(0)`, to see whether tokens are still good.
    pub unix_at_zero: u64,
    /// The shell has a radio for direct links.
    pub tries_direct: bool,
    /// The job's simulation, if the crew is one; not needed for anything else.
    pub work: Option<SimWork>,
}

/// One change in the member's world.
#[derive(Clone, Debug)]
pub enum MemberInput<'a> {
    /// Its place, in the first or in a new epoch.
    Enlist(Box<Enlist>),
    /// The coordinator has a word for this member.
    Told(CrewTold),
    /// The socket to the coordinator is open and greeted (`true`), or lost.
    Relay(bool),
    /// A whole frame of this crew, from that socket.
    Frame(&'a [u8]),
    /// The radio has a direct channel to that node.
    DirectUp(NodeId),
    DirectDown(NodeId),
    /// A whole frame from that channel.
    Direct(NodeId, &'a [u8]),
    /// Words of this shell's radio for that node's radio.
    Radio(NodeId, Vec<u8>),
    /// The answer to a [`MemberOutput::Engine`].
    Engine(SimAnswer),
    /// The answer to a [`MemberOutput::Stage`].
    Stage(StageAnswer),
    /// A request to the service that this crew keeps ready: the brain's `Output::AskCrew`.
    Ask {
        call: Attempt,
        body: Arc<Vec<u8>>,
    },
    /// Talk and sharing: say this to that member. Channels of applications are 1 and more.
    App {
        to: NodeId,
        channel: u16,
        message: Arc<Vec<u8>>,
    },
    /// Talk only: take nothing more of that member for now (`true`), or again.
    Hold(NodeId, bool),
    /// Talk only: begins the crew's next common operation; leads to [`MemberOutput::Done`]. Uses [`COLLECTIVE`].
    Collective {
        op: Op,
        data: Arc<Vec<u8>>,
    },
    /// Nothing but time passed.
    Tick,
}

/// The channel on which halos travel.
pub const HALOS: u16 = 1;
/// The channel on which requests to a service go from member to member.
pub const STAGES: u16 = 1;
/// The channel on which the common operations of a crew travel; applications use others.
pub const COLLECTIVE: u16 = 15;

/// One thing to do, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberOutput {
    /// Send this on the socket to the coordinator: a whole frame.
    Frame(Vec<u8>),
    /// Send this on the direct channel to that node: a whole frame.
    Direct(NodeId, Vec<u8>),
    /// The radio for that node has something to do.
    Radio(NodeId, RadioDo),
    /// The engine has something to do; answer with [`MemberInput::Engine`].
    Engine(SimCommand),
    /// The same for parts of a service; answer with [`MemberInput::Stage`].
    Stage(StageCommand),
    /// For the brain: `Input::CrewAnswers` with this crew.
    Answer { call: Attempt, result: Result<Vec<u8>, Failure> },
    /// For the brain: `Input::CrewPart` with this crew.
    Part { call: Attempt, at: u64, bytes: Vec<u8>, last: bool },
    /// For the brain: `Input::CrewSays` with this crew.
    Says { epoch: Epoch, say: CrewSay },
    /// This member's rows are handed in: send `FromNode::Done` for the attempt.
    Deliver { attempt: Attempt, output: UnitOutput },
    /// Talk and sharing: that member said this.
    App { from: NodeId, channel: u16, bytes: Vec<u8> },
    /// Talk and sharing: this was too much to queue, or not to a member; it was not said.
    Refused { to: NodeId, channel: u16 },
    /// Talk only: the common operation makes no sense here and was not begun.
    NotBegun(OpError),
    /// Talk only: a common operation is over; this is what this member gets of it.
    Done { op: OpId, data: Vec<u8> },
    /// What is said to that node goes this way from now on.
    Using(NodeId, Path),
}

/// What a radio is told about one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RadioDo {
    /// Open a channel: be the one that offers.
    Dial,
    /// Wait for an offer.
    Listen,
    /// The peer's radio said this.
    Hear(Vec<u8>),
    /// Close what there is.
    Hang,
}
