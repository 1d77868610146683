//! How two nodes talk: messages, whole and in order, over paths that come and go. Pure; its shells are the
//! radio of a page, the native node's sockets, and simulation.
//!
//! The contract is the brains': one [`LinkInput`] with the time, then drain [`Link::poll_output`]. One link
//! belongs to two nodes and one crew, from one key agreement on: its sequence numbers are the seal's nonces.
//!
//! The data's way: `outgoing` keeps and cuts messages, `flight` knows what is on the way, `say` makes
//! frames, `choose`, `path` and `trip` pick and measure the way; `hear` and `replay` take frames, `incoming` puts
//! chunks together. `chunk` has the words.

mod choose;
mod chunk;
mod flight;
mod hear;
mod incoming;
mod outgoing;
mod path;
mod recent;
mod replay;
mod say;
mod trip;

pub use hear::Dropped;
pub use shoal_protocol::Path;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::{CrewId, Epoch, Header, Micros, NodeId, Time};

use choose::Paths;
use hear::{Ahead, MOST_AHEAD, Noise};
use incoming::Incoming;
use outgoing::Outgoing;
use replay::Replay;

/// The peer takes nothing for this long: somebody should know. Longer than a path's silence takes to be found.
const STALLED_AFTER: Micros = Micros::from_secs(4);

/// Whose link it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    pub me: NodeId,
    pub peer: NodeId,
    pub crew: CrewId,
    pub epoch: Epoch,
}

/// One change in the link's world.
#[derive(Clone, Debug)]
pub enum LinkInput<'a> {
    /// The path can be used from now on.
    Up(Path),
    /// The path is gone, and what was on it.
    Down(Path),
    /// A frame of the peer, opened if it was sealed.
    Frame { path: Path, header: Header, payload: &'a [u8] },
    /// Say this to the peer. Shared, so that many links can say the same without copies.
    Send { channel: u16, message: Arc<Vec<u8>> },
    /// The crew changed. All that was being said is forgotten on both ends.
    Epoch(Epoch),
    /// Whoever takes the messages does not keep up (`true`), or does again. The peer soon has no credit.
    Hold(bool),
    /// Nothing but time passed.
    Tick,
}

/// One thing to do, in order.
#[derive(Clone, Debug)]
pub enum LinkOutput {
    /// Send this on this path: `bytes` begins with the header. A path that seals does it in place behind the
    /// header, which already counts the tag, and binds the header to it.
    Frame { path: Path, header: Header, bytes: Vec<u8> },
    /// The peer said this.
    Message { channel: u16, bytes: Vec<u8> },
    /// Not taken: larger than a message may be, or too much is waiting.
    Refused { channel: u16, message: Arc<Vec<u8>> },
    /// Chunks go this way from now on.
    Using(Path),
    Measured {
        path: Path,
        round_trip: Micros,
        /// Known while the path was full lately.
        bytes_per_second: Option<u64>,
        /// Lost chunks of a million.
        loss: u32,
    },
    /// There is something to say, and nothing of it arrives since then.
    Stalled { since: Time },
    /// It arrives again.
    Flowing,
    /// The peer does what no honest one does. The link is dead; report it.
    Broken(Broken),
}

/// What the peer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Sent more than it was granted, or only noise.
    Flood,
    /// A message or frame is not as long as it says.
    WrongLength,
    /// A message longer than any may be.
    TooLong,
    /// Spoke in another's name, or to another.
    Forged,
    /// Words that are none, or about what never was.
    Garbled,
    /// Chunks that are not of the message whose turn it is.
    Disorder,
    /// A message failed its hash, and again when it was asked for again.
    WrongHash,
}

pub struct Link {
    config: LinkConfig,
    /// Of the last input.
    now: Time,
    paths: Paths,
    outgoing: Outgoing,
    incoming: Incoming,
    replay: Replay,
    /// Of the next frame.
    sequence: u64,
    /// The peer was heard in this epoch.
    met: bool,
    ahead: Vec<Ahead>,
    dropped: Dropped,
    noise: Noise,
    stalled: bool,
    broken: Option<Broken>,
    outputs: VecDeque<LinkOutput>,
}

impl Link {
    pub fn new(now: Time, config: LinkConfig) -> Link {
        Link {
            config,
            now,
            paths: Paths::default(),
            outgoing: Outgoing::new(now),
            incoming: Incoming::new(),
            replay: Replay::default(),
            sequence: 0,
            met: false,
            ahead: Vec::new(),
            dropped: Dropped::default(),
            noise: Noise::default(),
            stalled: false,
            broken: None,
            outputs: VecDeque::new(),
        }
    }

    pub fn handle(&mut self, now: Time, input: LinkInput<'_>) {
        if self.broken.is_some() {
            return;
        }
        self.now = now;
        let heard = match input {
            LinkInput::Up(path) => {
                self.down(now, path);
                self.paths.of_mut(path).rise(now);
                Ok(())
            }
            LinkInput::Down(path) => {
                self.down(now, path);
                Ok(())
            }
            LinkInput::Frame { path, header, payload } => self.hear(now, path, header, payload),
            LinkInput::Send { channel, message } => {
                if let Err(message) = self.outgoing.queue(now, channel, message) {
                    self.outputs.push_back(LinkOutput::Refused { channel, message });
                }
                Ok(())
            }
            LinkInput::Epoch(epoch) => self.enter(now, epoch),
            LinkInput::Hold(hold) => {
                if self.incoming.hold && !hold {
                    self.incoming.hurry();
                }
                self.incoming.hold = hold;
                Ok(())
            }
            LinkInput::Tick => Ok(()),
        };
        if let Err(reason) = heard {
            return self.break_off(now, reason);
        }
        self.on_time(now);
        self.flush(now);
    }

    pub fn poll_output(&mut self) -> Option<LinkOutput> {
        self.outputs.pop_front()
    }

    /// When to say `Tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.broken.is_some() {
            return None;
        }
        let stall = self.outgoing.flight.moved() + STALLED_AFTER;
        let stall = Some(stall).filter(|_| self.outgoing.is_busy() && !self.stalled);
        self.say_due().into_iter().chain(stall).min()
    }

    /// Frames that were not taken, and why.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Whether the peer has yet to take something that was said.
    pub fn is_busy(&self) -> bool {
        self.outgoing.is_busy()
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        self.outgoing.check();
        self.incoming.check();
        assert!(self.ahead.len() <= MOST_AHEAD, "too many frames of a later epoch");
        let later = |ahead: &Ahead| ahead.header.epoch > self.config.epoch;
        assert!(self.ahead.iter().all(later), "a frame of this epoch was not taken");
        if let Some(path) = self.paths.chosen() {
            assert!(self.paths.of(path).up.is_some(), "talking on a path that is gone");
        }
    }

    fn down(&mut self, now: Time, path: Path) {
        if self.paths.of(path).up.is_none() {
            return;
        }
        self.paths.fall(now, path);
        self.paths.of_mut(path).up = None;
        self.outgoing.flight.lose(path);
    }

    fn enter(&mut self, now: Time, epoch: Epoch) -> Result<(), Broken> {
        if epoch <= self.config.epoch {
            return Ok(());
        }
        self.config.epoch = epoch;
        self.outgoing = Outgoing::new(now);
        let hold = self.incoming.hold;
        self.incoming = Incoming::new();
        self.incoming.hold = hold;
        self.met = false;
        for path in Path::ALL {
            // What was asked in the old epoch is not answered; asking at once tells the peer we are here.
            self.paths.of_mut(path).forget_asked();
        }
        self.hear_again(now)
    }

    /// What time alone brings about.
    fn on_time(&mut self, now: Time) {
        for path in Path::ALL {
            if self.paths.of(path).echo_due().is_some_and(|due| due <= now) {
                self.paths.of_mut(path).give_up();
                self.miss(now, path);
            }
        }
        if let Some(path) = self.outgoing.flight.expire(now, &mut self.paths) {
            self.miss(now, path);
        }
        let waited = now - self.outgoing.flight.moved();
        let stalled = self.outgoing.is_busy() && waited >= STALLED_AFTER;
        if stalled != self.stalled {
            self.stalled = stalled;
            let since = self.outgoing.flight.moved();
            let output = if stalled { LinkOutput::Stalled { since } } else { LinkOutput::Flowing };
            self.outputs.push_back(output);
        }
    }

    fn miss(&mut self, now: Time, path: Path) {
        if self.paths.of_mut(path).missed() {
            self.paths.fall(now, path);
            // Without another path, silence is no reason to say all of it again into the same.
            if !self.paths.is_alone(path) {
                self.outgoing.flight.lose(path);
            }
        }
    }

    /// Nothing is kept for a peer that is reported.
    fn break_off(&mut self, now: Time, reason: Broken) {
        (self.outgoing, self.incoming) = (Outgoing::new(now), Incoming::new());
        self.ahead.clear();
        self.broken = Some(reason);
        self.outputs.push_back(LinkOutput::Broken(reason));
    }
}
