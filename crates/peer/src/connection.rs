//! Two applications that share buffers.

use std::collections::VecDeque;

use serde_json::Value;

use crate::ask::{Asks, Copy, Import, Op, RunThere};
use crate::capability::Capabilities;
use crate::error::{Code, PeerError};
use crate::export::Exports;
use crate::handle::{Handle, Rights};
use crate::words::{Binding, CONTROL, Claim, VERSION, Words, pack};

/// Whose connection it is.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node's number in the pool, and the peer's.
    pub me: u64,
    pub peer: u64,
    /// Fresh randomness, used for nothing else.
    pub seed: [u8; 32],
    /// What this end's device can do; nothing where there is none.
    pub can: Capabilities,
}

impl Config {
    pub fn new(me: u64, peer: u64, seed: [u8; 32]) -> Config {
        Config { me, peer, seed, can: Capabilities::default() }
    }
}

/// One thing to do or to know, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Say this to the peer, on this channel.
    Send {
        channel: u16,
        message: Vec<u8>,
    },
    /// The peer is there; this is what both can do.
    Opened(Capabilities),
    /// The peer's application said this.
    Said(Value),
    /// The owner has a newer version of an imported buffer: pull it if you like.
    Newer {
        import: Import,
        version: u64,
    },
    /// The peer wrote a buffer that was exported here.
    Written {
        buffer: u32,
        version: u64,
    },
    /// What was asked for is done; this is the version there is now.
    Done {
        op: Op,
        version: u64,
    },
    Failed {
        op: Op,
        error: PeerError,
    },
    /// It is over. Nothing follows.
    Closed(PeerError),
}

pub struct Connection {
    pub(crate) config: Config,
    pub(crate) exports: Exports,
    pub(crate) asks: Asks,
    pub(crate) is_open: bool,
    pub(crate) ended: Option<PeerError>,
    pub(crate) outputs: VecDeque<Output>,
}

impl Connection {
    /// Greets the peer at once.
    pub fn new(config: Config) -> Connection {
        let hello = Words::Hello { version: VERSION, can: config.can.clone() };
        let mut connection = Connection {
            config,
            exports: Exports::default(),
            asks: Asks::default(),
            is_open: false,
            ended: None,
            outputs: VecDeque::new(),
        };
        connection.say(&hello);
        connection
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        if self.outputs.is_empty() && self.ended.is_none() {
            let next = self.exports.next().or_else(|| self.asks.next());
            if let Some((words, bytes, channel)) = next {
                self.post(&words, &bytes, channel);
            }
        }
        self.outputs.pop_front()
    }

    /// Lets the peer use a copy of these bytes. Give it the handle, by [`Connection::say_to_peer`] or as you like.
    pub fn export(
        &mut self,
        bytes: Vec<u8>,
        rights: Rights,
        label: &str,
    ) -> Result<Handle, PeerError> {
        self.check()?;
        self.exports.add(self.config.me, &self.config.seed, bytes, (rights, label))
    }

    /// What the owner has: the version and its bytes.
    pub fn exported(&self, handle: &Handle) -> Result<(u64, &[u8]), PeerError> {
        let grant = self.exports.find(&claim(handle), &[])?;
        Ok((grant.version, &grant.bytes))
    }

    /// The owner's next version: whoever imported it hears of it.
    pub fn replace(&mut self, handle: &Handle, bytes: Vec<u8>) -> Result<(), PeerError> {
        let (words, bytes, channel) = self.exports.replace(&claim(handle), bytes)?;
        self.post(&words, &bytes, channel);
        Ok(())
    }

    /// Takes a handle back: whoever uses it from now on is refused.
    pub fn revoke(&mut self, handle: &Handle) -> Result<(), PeerError> {
        self.exports.remove(&claim(handle))?;
        self.say(&Words::Revoked { buffer: handle.buffer });
        Ok(())
    }

    /// A copy of a buffer of the peer, empty before the first [`Connection::pull`].
    pub fn import(&mut self, handle: Handle) -> Result<Import, PeerError> {
        self.check()?;
        self.asks.import(handle, self.config.peer)
    }

    pub fn copy(&self, import: Import) -> Result<&Copy, PeerError> {
        self.asks.copy(import)
    }

    pub fn release(&mut self, import: Import) {
        self.asks.release(import);
    }

    /// Fetches the newest version, if it is newer.
    pub fn pull(&mut self, import: Import) -> Result<Op, PeerError> {
        self.check()?;
        let (op, words) = self.asks.pull(import)?;
        self.say(&words);
        Ok(op)
    }

    /// Sends a new version to the owner. `onto`: refused if the owner has another one by then; without it the last
    /// one wins.
    pub fn push(
        &mut self,
        import: Import,
        bytes: Vec<u8>,
        onto: Option<u64>,
    ) -> Result<Op, PeerError> {
        self.check()?;
        let (op, words, channel) = self.asks.push(import, bytes, onto)?;
        // On the parts' channel, so that it is there before them.
        self.post(&words, &[], channel);
        Ok(op)
    }

    /// Runs a shader on the peer's device, if it has one and granted `execute`.
    pub fn run(&mut self, run: &RunThere<'_>) -> Result<Op, PeerError> {
        self.check()?;
        let bindings = run.buffers.iter().map(|(group, binding, handle)| Binding {
            group: *group,
            binding: *binding,
            claim: claim(handle),
        });
        let bindings = bindings.collect();
        let op = self.asks.run();
        self.say(&Words::Run {
            id: op.0,
            code: run.code.into(),
            entry_point: run.entry_point.into(),
            constants: Default::default(),
            workgroups: run.workgroups.into(),
            bindings,
        });
        Ok(op)
    }

    /// Says something to the peer's application.
    pub fn say_to_peer(&mut self, value: Value) -> Result<(), PeerError> {
        self.check()?;
        let message = pack(&Words::Say { value }, &[])?;
        self.outputs.push_back(Output::Send { channel: CONTROL, message });
        Ok(())
    }

    pub fn close(&mut self) {
        let message = format!("node {} closed the connection", self.config.me);
        self.say(&Words::Bye { code: Code::PeerGone, message });
        self.finish(PeerError::new(Code::PeerGone, "this connection was closed here"));
    }

    /// The way to the peer is gone.
    pub fn lost(&mut self, why: &str) {
        let message = format!("node {} is gone: {why}", self.config.peer);
        self.finish(PeerError::new(Code::PeerGone, message));
    }

    pub(crate) fn say(&mut self, words: &Words) {
        self.post(words, &[], CONTROL);
    }

    pub(crate) fn post(&mut self, words: &Words, bytes: &[u8], channel: u16) {
        match pack(words, bytes) {
            Ok(message) => self.outputs.push_back(Output::Send { channel, message }),
            Err(error) => self.finish(error),
        }
    }

    fn check(&self) -> Result<(), PeerError> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn finish(&mut self, error: PeerError) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(error.clone());
        self.exports = Exports::default();
        for op in self.asks.close() {
            self.outputs.push_back(Output::Failed { op, error: error.clone() });
        }
        self.outputs.push_back(Output::Closed(error));
    }
}

fn claim(handle: &Handle) -> Claim {
    Claim { buffer: handle.buffer, token: handle.token.clone() }
}
