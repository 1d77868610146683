//! One allocation on one server: asked for with a name and a password, kept as long as it is renewed.
//!
//! `ask` has the questions and what follows from answers; `peer` whom the server lets through, and the short
//! form in which much is said to one of them.

mod ask;
mod peer;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

use md5::{Digest, Md5};
use sha1::Sha1;
use shoal_protocol::{Micros, Time};

use crate::message::{Class, Id, Message, Method};
use crate::place::By;
use ask::{Asked, What};
use peer::{Channel, Permit};

/// Datagrams that wait to be sent to the server: the shell sends them at once.
const MAX_OUT: usize = 256;

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    pub name: String,
    pub password: String,
}

/// What the shell should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Who sends there reaches this client.
    Ready(SocketAddr),
    /// The allocation is over, or never was.
    Over(Fault),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    NoAnswer,
    WrongPassword,
    /// With the server's own number and words.
    Refused {
        code: u16,
        words: String,
    },
    /// An answer that makes no sense.
    Garbled,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoAnswer => f.write_str("it does not answer"),
            Fault::WrongPassword => f.write_str("it refuses the name and the password"),
            Fault::Refused { code, words } => write!(f, "it refuses: {code} {words}"),
            Fault::Garbled => f.write_str("its answer makes no sense"),
        }
    }
}

enum State {
    Asking,
    Ready { relayed: SocketAddr, renew: Time },
    Over,
}

/// What the server wants to see in every question.
struct Login {
    realm: Vec<u8>,
    nonce: Vec<u8>,
    key: [u8; 16],
}

pub struct Turn {
    access: Access,
    /// How the server is reached: a stream loses nothing, and what is said on it is filled up.
    by: By,
    seed: [u8; 32],
    questions: u64,
    login: Option<Login>,
    /// How often the server said since the last success that our login is too old.
    stale: u32,
    state: State,
    asked: BTreeMap<Id, Asked>,
    permits: BTreeMap<IpAddr, Permit>,
    channels: BTreeMap<SocketAddr, Channel>,
    out: VecDeque<Vec<u8>>,
    news: VecDeque<News>,
}

impl Turn {
    /// Asks for an allocation at once. Who knows the seed can answer in the server's place.
    pub fn new(now: Time, access: Access, by: By, seed: [u8; 32]) -> Turn {
        let mut turn = Turn {
            access,
            by,
            seed,
            questions: 0,
            login: None,
            stale: 0,
            state: State::Asking,
            asked: BTreeMap::new(),
            permits: BTreeMap::new(),
            channels: BTreeMap::new(),
            out: VecDeque::new(),
            news: VecDeque::new(),
        };
        turn.ask(now, What::Allocate);
        turn
    }

    /// The address on the server, while there is one.
    pub fn relayed(&self) -> Option<SocketAddr> {
        match self.state {
            State::Ready { relayed, .. } => Some(relayed),
            State::Asking | State::Over => None,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// A datagram from the server. What a peer said in it: who, and which bytes.
    pub fn hear(&mut self, now: Time, datagram: &[u8]) -> Option<(SocketAddr, Range<usize>)> {
        if self.is_over() {
            return None;
        }
        if let Some(said) = self.on_channel(now, datagram) {
            return Some(said);
        }
        let message = Message::read(datagram)?;
        match (message.class, message.method) {
            (Class::Indication, Some(Method::Data)) => self.indicated(now, &message),
            (Class::Success | Class::Error, _) => {
                self.answered(now, &message);
                None
            }
            (Class::Request | Class::Indication, _) => None,
        }
    }

    /// Says again what was not answered, renews what would lapse.
    pub fn tick(&mut self, now: Time) {
        self.say_again(now);
        if let State::Ready { renew, .. } = self.state
            && renew <= now
        {
            self.renew(now);
        }
        self.renew_peers(now);
    }

    /// When to say `tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        let asked = self.asked.values().map(|asked| asked.again);
        let renew = match self.state {
            State::Ready { renew, .. } => Some(renew),
            State::Asking | State::Over => None,
        };
        let permits = self.permits.values().map(|permit| permit.due);
        let channels = self.channels.values().map(|channel| channel.due);
        asked.chain(renew).chain(permits).chain(channels).min()
    }

    /// What to send to the server.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    pub fn news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Gives the address back; what is left to say is in [`Turn::poll`].
    pub fn release(&mut self, now: Time) {
        if self.relayed().is_some() {
            self.asked.clear();
            self.ask(now, What::Release);
        }
        self.end();
    }

    fn over(&mut self, fault: Fault) {
        self.end();
        self.news.push_back(News::Over(fault));
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.asked.clear();
        self.permits.clear();
        self.channels.clear();
    }

    fn push(&mut self, bytes: Vec<u8>) {
        if self.out.len() < MAX_OUT {
            self.out.push_back(bytes);
        }
    }

    fn next_id(&mut self) -> Id {
        self.questions += 1;
        let hash = Sha1::new().chain_update(self.seed).chain_update(self.questions.to_le_bytes());
        let hash: [u8; 20] = hash.finalize().into();
        core::array::from_fn(|at| hash[at])
    }

    /// The key that the server makes of the same words.
    fn key(&self, realm: &[u8]) -> [u8; 16] {
        let Access { name, password } = &self.access;
        let parts = [name.as_bytes(), b":", realm, b":", password.as_bytes()];
        parts.iter().fold(Md5::new(), |hash, part| hash.chain_update(part)).finalize().into()
    }
}

/// Time is asked for in whole seconds on the wire.
fn seconds(count: u32) -> Micros {
    Micros::from_secs(u64::from(count))
}
