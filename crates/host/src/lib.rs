//! The native node: one loop that drives the pure node brain with a socket, and the lanes that
//! compute for it. It decides nothing: what to do next is the business of `shoal-node`.
//!
//! [`run`] lends this machine; the binary that calls it must hand the verb [`WORKER`] to
//! [`run_worker`], because kernels run in a second process of the same binary, and [`ONNX_WORKER`] to
//! [`run_onnx_worker`], because ONNX Runtime does, and [`LLM_WORKER`] to [`run_llm_worker`], because
//! language models on a GPU do.

mod accelerator;
mod backlog;
mod beside;
mod cache;
mod caps;
mod child;
mod connection;
mod courier;
mod cpu;
mod crews;
mod fail;
mod gpu;
mod identity;
mod jobs;
pub mod keys;
mod lanes;
mod languages;
mod link;
mod models;
mod pools;
mod power;
mod program;
mod quic;
mod radio;
mod session;
mod socket;
mod stages;
mod swarm;
mod talk;
pub mod tls;
mod turn;
mod wire;

pub use accelerator::{Accelerate, WORKER as ONNX_WORKER, run_worker as run_onnx_worker};
pub use beside::{Beside, Neighbour};
pub use caps::Lend;
pub use fail::{Fail, plain};
pub use gpu::{WORKER, run_worker};
pub use identity::known as identities;
pub use jobs::Asker;
pub use languages::{LLM_WORKER, run_llm_worker};
pub use link::{JoinLink, base_url};
pub use shoal_engine::onnx::Note;
pub use talk::Talks;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use shoal_node::{Config, Input, Node};
use shoal_protocol::codec::DecodeError;
use shoal_protocol::frame::is_frame;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{Attempt, Failure, JobId, Micros, Span, Time, ToNode, UnitOutput};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::Message;

use backlog::Backlog;
use connection::Connection;
use crews::Crews;
use gpu::GpuEvent;
use jobs::Jobs;
use lanes::Lanes;
use pools::Pool;
use power::Power;
use quic::Quic;
use radio::{Heard, Radio};
use socket::Socket;
use tls::FirstSeen;
use turn::Replies;

/// Messages and events handled before the outputs are sent: bounds what one wake-up may take.
const MAX_BURST: usize = 256;
/// Events that wait for the loop. A unit makes three at most (it computes, computed, ended), and a
/// node holds a bounded number of units; a lane that has more to say waits, and the loop never
/// waits for a lane.
const MAX_EVENTS: usize = 4 * MAX_LEASES_PER_NODE;

/// What became of a unit.
struct Ran {
    attempt: Attempt,
    took: Micros,
    result: Result<UnitOutput, Failure>,
}

/// What the loop waits for besides the socket.
enum Event {
    Opened(Box<Socket>),
    NotOpened(socket::NotOpened),
    Cpu(cpu::Worked),
    Gpu(GpuEvent),
    Order(talk::Order),
    Swarm(Box<swarm::SwarmEvent>),
}

pub struct Options {
    pub link: JoinLink,
    pub data: PathBuf,
    pub lend: Lend,
    /// Lends nothing, and does this instead.
    pub talks: Option<Talks>,
    pub first_seen: FirstSeen,
    /// For nodes of the operator's that may share the coordinator's data folder.
    pub beside: Option<Beside>,
}

/// What a donor may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Offers {
        name: String,
        cpus: u16,
        /// Bytes.
        memory: u64,
        gpu: Option<String>,
        why_no_gpu: Option<String>,
        /// ONNX Runtime and its version, where it is beside the built-in engine.
        accelerator: Option<String>,
        why_no_accelerator: Option<String>,
    },
    Joined {
        node: u64,
    },
    /// The connection is gone or could not be made; it is tried again.
    Away {
        reason: String,
    },
    /// The first unit of a job begins.
    Works(Asker),
    /// A service is ready for requests.
    Serves {
        asker: Asker,
        /// Bytes it may take.
        memory: u64,
    },
    /// Which engine runs a model, or that one broke.
    Engine {
        asker: Asker,
        note: Note,
    },
    /// This node has a place in a crew, new or in a new epoch.
    InCrew {
        job: JobId,
        others: usize,
        rows: Span,
        /// Steps that were done before.
        from: u64,
    },
    /// This node has parts of a service to keep ready with others, new or in a new epoch.
    InService {
        asker: Asker,
        others: usize,
        parts: Span,
        /// Of the whole service.
        of: u64,
        /// Bytes they may take.
        memory: u64,
    },
    /// A job's code is not what was signed: none of it is run.
    Refuses {
        asker: Asker,
        reason: String,
    },
    /// By the donor's choice nothing of this job is run.
    Declines(Asker),
    /// A blob of that many bytes is needed; so many of them are here from before.
    Fetches {
        bytes: u64,
        here: u64,
    },
    /// So many bytes of blobs went from here to other nodes, all in all.
    Gave {
        bytes: u64,
    },
    /// The battery is low: nothing is lent until it is charged.
    Paused,
    Resumed,
    GpuRestarted {
        reason: String,
    },
    GpuGone {
        reason: String,
    },
}

impl Notice {
    /// Whether it says whose work is run or not run.
    pub fn is_about_work(&self) -> bool {
        match self {
            Notice::Works(_)
            | Notice::Serves { .. }
            | Notice::InCrew { .. }
            | Notice::InService { .. }
            | Notice::Refuses { .. }
            | Notice::Declines(_) => true,
            Notice::Offers { .. }
            | Notice::Joined { .. }
            | Notice::Away { .. }
            | Notice::Fetches { .. }
            | Notice::Gave { .. }
            | Notice::Engine { .. }
            | Notice::Paused
            | Notice::Resumed
            | Notice::GpuRestarted { .. }
            | Notice::GpuGone { .. } => false,
        }
    }
}

/// Lends this machine until `stop` turns true or the coordinator refuses for good.
pub async fn run(
    options: Options,
    mut stop: watch::Receiver<bool>,
    notify: impl Fn(Notice) + Send + Sync,
) -> Result<(), Fail> {
    let Options { link, data, lend, talks, first_seen, beside } = options;
    let pool = Pool::new(link, data, first_seen, beside)?;
    let (to_loop, events) = mpsc::channel(MAX_EVENTS);
    let (offered, gpu, events) = tokio::select! {
        offered = caps::offered(&lend, pool.number(), to_loop.clone(), events) => offered,
        () = asked(&mut stop) => return Ok(()),
    };
    notify(offered.notice());
    let (caps, accelerator) = (offered.caps, offered.accelerator);
    let (radio, heard) = lend.direct.then(Radio::start).unzip();
    let shelf = radio.is_some().then(|| pool.shelf());
    let (library, sharing) = swarm::start(shelf, pool.origin(), pool.session(), &to_loop).unzip();
    let means = (pool.origin(), pool.session(), library);
    let backlog = Arc::new(Backlog::default());
    let engines = (caps.cpu_slots, caps.memory, accelerator.clone());
    let cpu = cpu::open(engines, means, pool.work(), (&to_loop, &backlog))?;
    let [a, b, c, d, e, f, g, h, ..] = keys::random()?;
    let node = Node::new(Config {
        token: pool.token().to_owned(),
        identity: pool.identity(),
        caps: caps.clone(),
        rules: lend.rules,
        talks: talks.is_some(),
        shares: sharing.is_some(),
        seed: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
    });
    let (quic, quic_heard) = Quic::new();
    let mut host = Host {
        node,
        start: Instant::now(),
        pool,
        connection: Connection::new(backlog),
        quic,
        lanes: Lanes::new(caps, lend.memory, cpu, gpu, accelerator),
        power: Power::new(lend.battery_below),
        jobs: Jobs::default(),
        replies: Replies::default(),
        crews: Crews::new(radio)?,
        sharing,
        talk: talk::listen(talks, &to_loop),
        to_loop,
        stopped: None,
        notify: &notify,
    };
    host.work(events, (heard, quic_heard), stop).await
}

/// The brain and everything it moves.
struct Host<'a> {
    node: Node,
    /// The brain's time begins here.
    start: Instant,
    pool: Pool,
    connection: Connection,
    quic: Quic,
    lanes: Lanes,
    power: Option<Power>,
    jobs: Jobs,
    replies: Replies,
    crews: Crews,
    sharing: Option<swarm::Sharing>,
    talk: Option<talk::Talk>,
    to_loop: mpsc::Sender<Event>,
    /// How it ended, once it did.
    stopped: Option<Result<(), Fail>>,
    notify: &'a (dyn Fn(Notice) + Send + Sync),
}

impl Host<'_> {
    async fn work(
        &mut self,
        mut events: mpsc::Receiver<Event>,
        (mut heard, mut by_quic): (Option<mpsc::Receiver<Heard>>, mpsc::Receiver<quic::Heard>),
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Fail> {
        self.input(Input::Start);
        self.input(Input::LinkKey(self.crews.key()));
        loop {
            if !self.connection.speak().await {
                self.away("the connection broke".into());
            }
            if let Some(end) = self.stopped.take() {
                return end;
            }
            let wake = self.next_wake();
            tokio::select! {
                frame = self.connection.next_frame() => self.frames(frame),
                Some(event) = events.recv() => {
                    self.event(event);
                    for _ in 0..MAX_BURST {
                        let Ok(event) = events.try_recv() else { break };
                        self.event(event);
                    }
                }
                Some(first) = by_quic.recv() => self.quic_heard(first, &mut by_quic),
                Some(heard) = Radio::next(&mut heard) => {
                    self.crew_heard(heard);
                    self.settle();
                }
                () = tokio::time::sleep_until(wake.into()) => self.time_passed(),
                () = asked(&mut stop) => self.input(Input::Stop),
            }
        }
    }

    /// A frame, and all that came with it.
    fn frames(&mut self, first: Option<Message>) {
        let mut first = Some(first);
        for _ in 0..MAX_BURST {
            let next = || self.connection.next_frame().now_or_never();
            let Some(frame) = first.take().or_else(next) else { return };
            match frame {
                Some(Message::Binary(bytes)) if is_frame(&bytes) => {
                    self.crew_frame(&bytes);
                    self.settle();
                }
                Some(Message::Binary(bytes)) => match ToNode::decode_shared(&bytes) {
                    Ok(message) => self.received(message),
                    // A newer coordinator's word: what it must have understood, it says otherwise.
                    Err(DecodeError::UnknownKind(_)) => {}
                    Err(error @ (DecodeError::TooLarge(_) | DecodeError::Garbled)) => {
                        return self.away(format!("the coordinator sent {error}"));
                    }
                },
                Some(Message::Close(_)) | None => {
                    return self.away("the coordinator closed the connection".into());
                }
                Some(
                    Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_),
                ) => {}
            }
        }
    }

    fn now(&self) -> Time {
        Time(self.start.elapsed().as_micros() as u64)
    }

    fn next_wake(&self) -> Instant {
        let swarms = self.sharing.as_ref().and_then(swarm::Sharing::next_timeout);
        let brain = self.node.next_timeout().into_iter().chain(self.crews.next_timeout());
        let brain = brain.chain(swarms).min();
        let brain = brain.map(|at| self.start + Duration::from_micros(at.0));
        let gpu = self.lanes.next_deadline();
        let idle = Instant::now() + Duration::from_secs(3600);
        let power = self.power.as_ref().map(Power::next);
        let stuck = self.connection.deadline();
        brain.into_iter().chain(gpu).chain(power).chain(stuck).min().unwrap_or(idle)
    }
}

/// Ready when the donor wants to stop.
async fn asked(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could ask is gone, which asks for it too.
    let _ = stop.wait_for(|stop| *stop).await;
}
