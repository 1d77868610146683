//! How one peer behaves: browser, native and simulated alike. Pure; its shells are `shoal-browser` and
//! `shoal-host`.
//!
//! The contract: give it one [`Input`] with the time, then drain [`Node::poll_output`] to `None` before
//! the next. It computes nothing itself: [`Output::Run`] asks the shell, [`Input::Ran`] answers.
#![no_std]

extern crate alloc;

mod check;
pub mod collective;
mod consent;
mod crew;
pub mod direct;
mod execute;
mod hear;
mod lease;
pub mod link;
pub mod mesh;
mod quic;
mod register;
mod serve;
pub mod session;
mod state;
pub mod supervise;
pub mod swarm;

pub use consent::Rules;
pub use session::{
    Member, MemberConfig, MemberInput, MemberOutput, Passing, SimAnswer, SimCommand, StageAnswer,
    StageCommand, Turned,
};
pub use state::{Config, JobInfo, Node, Phase, Status};
pub use swarm::{SwarmInput, SwarmOutput, Swarms};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{
    Attempt, Caps, Condition, CrewId, CrewSay, CrewTold, Enlist, Epoch, Failure, FromNode, JobId,
    Lane, Lease, LinkKey, Micros, QuicOffer, Refusal, Signature, SwarmSay, SwarmTold, ToNode,
    UnitOutput,
};

/// One change in the world.
#[derive(Clone, Debug)]
pub enum Input {
    /// Once: the donor agreed. Leads to [`Output::Connect`].
    Start,
    /// The socket asked for is open.
    Opened,
    /// The socket could not be opened or is gone.
    Closed,
    Received(ToNode),
    /// The answer to [`Output::Sign`].
    Signed {
        statement: Vec<u8>,
        proof: Signature,
    },
    /// The answer to [`Output::Check`]: the code is what was signed, or what is wrong with it.
    Checked {
        job: JobId,
        result: Result<(), String>,
    },
    /// The answer to [`Output::Run`].
    Ran {
        attempt: Attempt,
        took: Micros,
        result: Result<UnitOutput, Failure>,
    },
    /// A part of the answer to a request, before the whole is there.
    Part {
        attempt: Attempt,
        bytes: Vec<u8>,
    },
    /// The answer to [`Output::Warm`].
    Warmed {
        job: JobId,
        result: Result<(), Failure>,
    },
    /// The shell made the key this node's links are sealed with; leads to [`Output::Sign`].
    LinkKey(LinkKey),
    /// A member of a crew, or an audition, has something to say to the coordinator.
    CrewSays {
        crew: CrewId,
        epoch: Epoch,
        say: CrewSay,
    },
    /// A member of a crew answers a request to a service, or says why it cannot: the last one of the crew, or any that
    /// failed.
    CrewAnswers {
        crew: CrewId,
        call: Attempt,
        result: Result<Vec<u8>, Failure>,
    },
    /// The last member of a crew has more of an answer, behind so many bytes.
    CrewPart {
        crew: CrewId,
        call: Attempt,
        at: u64,
        bytes: Vec<u8>,
        last: bool,
    },
    /// The way asked for by [`Output::OpenQuic`] is open.
    QuicUp,
    /// It could not be opened, or is gone.
    QuicDown,
    /// What [`swarm::Swarms`] has to say to the coordinator.
    SwarmSays(SwarmSay),
    /// The donor changed what is lent.
    Offer(Caps),
    /// The donor chose for whom this device works.
    Rules(Rules),
    /// Take no new work (tab hidden, on battery), or go on. Unstarted units are handed back.
    Pause(bool),
    /// The device's state changed: the page hides, the battery empties. Told to the coordinator, so that it
    /// expects less before it loses the node; whether to pause is the shell's and the donor's choice.
    Condition(Condition),
    /// The donor stopped lending: everything ends at once.
    Stop,
    /// Nothing but time passed.
    Tick,
}

/// One thing to do, in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Open the socket; answer with `Opened` or `Closed`.
    Connect,
    /// Close the socket if it is open; no answer wanted.
    Disconnect,
    Send(FromNode),
    /// Sign these bytes with the key the identity belongs to; answer with `Signed`.
    Sign(Vec<u8>),
    /// See whether the job's code ([`Node::job`]) is what its signature says; answer with `Checked`. Asked once
    /// for each job with code, before any of its units runs.
    Check(JobId),
    /// Compute this unit on this lane; [`Node::job`] tells what it is. Answer with `Ran`. With a body it is a
    /// request to a service: one item, whose input the body is, and its answer is given as it is, not stored.
    Run {
        lease: Lease,
        lane: Lane,
        body: Option<Arc<Vec<u8>>>,
    },
    /// Make a service ready, so that its first request need not wait; answer with `Warmed`.
    Warm(JobId),
    /// End this unit at once; no answer wanted.
    Abort(Attempt),
    /// The job is over: drop cached inputs and compiled code.
    Forget(JobId),
    /// Measure what a step of the job ([`Node::job`]) takes here; answer with `CrewSays`.
    Audition {
        crew: CrewId,
        job: JobId,
    },
    /// This node's place in a crew, new or in a new epoch.
    Enlist(Box<Enlist>),
    /// Its part in the crew is over.
    Dismiss(CrewId),
    ToCrew {
        crew: CrewId,
        say: CrewTold,
    },
    /// A request for the crew in which this node keeps the first part of a service; leads to `CrewAnswers` on this
    /// node or another.
    AskCrew {
        crew: CrewId,
        call: Attempt,
        body: Arc<Vec<u8>>,
    },
    /// Open a way for frames by QUIC, with the session of this connection; answer with `QuicUp` or `QuicDown`. While
    /// it is open frames go there, else by the socket.
    OpenQuic(QuicOffer),
    /// Close it, or stop opening it; no answer wanted.
    CloseQuic,
    /// For [`swarm::Swarms`].
    Swarm(SwarmTold),
    /// Make the key of this node's links; leads to `LinkKey`. A crew may ask for this node.
    Link,
    /// Nothing more will happen: stopped by the donor (`None`) or refused for good.
    Stopped(Option<Refusal>),
}
