//! Questions to the server, said again until they are answered, and what follows from the answers.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use shoal_protocol::{Micros, Time};

use super::{Fault, Login, News, State, Turn, seconds};
use crate::message::{Class, Draft, Id, Message, Method, attribute};
use crate::place::By;

/// A question is said again after this time, then after twice as long, and so on.
const FIRST_WAIT: Micros = Micros::from_millis(250);
/// So often in all: after eight seconds a server is not there.
const MAX_TRIES: u32 = 6;
/// On a stream a question is said once, and waited for as long as six times would take elsewhere.
const STREAM_WAIT: Micros = Micros::from_secs(16);
/// An allocation that a server gives for longer or shorter is renewed as if it were between these.
const LIFETIMES: (u32, u32) = (20, 3600);
/// A login that is too old is made anew so often in a row.
const MAX_STALE: u32 = 64;
/// Longest realm or nonce taken; the standard has 763 bytes.
const MAX_WORD: usize = 763;
/// Words of a server that are shown.
const MAX_SHOWN: usize = 120;
/// UDP, in the attribute that names what the relayed address speaks.
const UDP: [u8; 4] = [17, 0, 0, 0];

const UNAUTHORIZED: u16 = 401;
const STALE_NONCE: u16 = 438;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Allocate,
    Refresh,
    Release,
    Permit(IpAddr),
    Bind(SocketAddr, u16),
}

/// A question on its way.
pub(super) struct Asked {
    what: What,
    bytes: Vec<u8>,
    pub(super) again: Time,
    wait: Micros,
    tries: u32,
}

impl Turn {
    pub(super) fn ask(&mut self, now: Time, what: What) {
        let id = self.next_id();
        let bytes = self.question(&id, what);
        self.push(bytes.clone());
        let (wait, tries) = match self.by {
            By::Udp => (FIRST_WAIT, 1),
            By::Tcp | By::Tls => (STREAM_WAIT, MAX_TRIES),
        };
        let asked = Asked { what, bytes, again: now + wait, wait, tries };
        self.asked.insert(id, asked);
    }

    pub(super) fn is_asked(&self, what: What) -> bool {
        self.asked.values().any(|asked| asked.what == what)
    }

    fn question(&self, id: &Id, what: What) -> Vec<u8> {
        let request = |method| Draft::new(Class::Request, method, id);
        let any_port = |ip: IpAddr| SocketAddr::new(ip, 0);
        let draft = match what {
            What::Allocate => request(Method::Allocate).with(attribute::TRANSPORT, &UDP),
            What::Refresh => request(Method::Refresh),
            What::Release => request(Method::Refresh).with(attribute::LIFETIME, &[0; 4]),
            What::Permit(ip) => {
                request(Method::CreatePermission).with_address(attribute::PEER, any_port(ip))
            }
            What::Bind(peer, number) => {
                let [high, low] = number.to_be_bytes();
                request(Method::ChannelBind)
                    .with(attribute::CHANNEL, &[high, low, 0, 0])
                    .with_address(attribute::PEER, peer)
            }
        };
        match &self.login {
            None => draft.plain(),
            Some(login) => draft
                .with(attribute::USERNAME, self.access.name.as_bytes())
                .with(attribute::REALM, &login.realm)
                .with(attribute::NONCE, &login.nonce)
                .sealed(&login.key),
        }
    }

    pub(super) fn say_again(&mut self, now: Time) {
        let due = self.asked.iter_mut().filter(|(_, asked)| asked.again <= now);
        let (mut again, mut lost) = (Vec::new(), Vec::new());
        for (id, asked) in due {
            if asked.tries >= MAX_TRIES {
                lost.push((*id, asked.what));
                continue;
            }
            asked.tries += 1;
            asked.wait = Micros(asked.wait.0 * 2);
            asked.again = now + asked.wait;
            again.push(asked.bytes.clone());
        }
        again.into_iter().for_each(|bytes| self.push(bytes));
        for (id, what) in lost {
            self.asked.remove(&id);
            match what {
                What::Allocate | What::Refresh => return self.over(Fault::NoAnswer),
                What::Release => {}
                What::Permit(ip) => self.denied(now, ip),
                What::Bind(peer, _) => self.unbound(now, peer),
            }
        }
    }

    pub(super) fn renew(&mut self, now: Time) {
        if !self.is_asked(What::Refresh) {
            self.ask(now, What::Refresh);
        }
        if let State::Ready { renew, .. } = &mut self.state {
            // The answer says when; until then nobody need be woken for it.
            *renew = now + seconds(LIFETIMES.1);
        }
    }

    pub(super) fn answered(&mut self, now: Time, message: &Message<'_>) {
        let Some(what) = self.asked.get(&message.id).map(|asked| asked.what) else { return };
        // Only the server could say so; others' words change nothing.
        let sealed = |login: &Login| message.is_sealed(&login.key);
        if message.class == Class::Success && !self.login.as_ref().is_some_and(sealed) {
            return;
        }
        self.asked.remove(&message.id);
        match message.class {
            Class::Success => self.granted(now, what, message),
            Class::Error => self.refused(now, what, message),
            Class::Request | Class::Indication => {}
        }
    }

    fn granted(&mut self, now: Time, what: What, message: &Message<'_>) {
        self.stale = 0;
        let lifetime = message.number(attribute::LIFETIME).unwrap_or(600);
        let due = now + seconds(lifetime.clamp(LIFETIMES.0, LIFETIMES.1) / 2);
        match what {
            What::Allocate => match message.address(attribute::RELAYED) {
                Some(relayed) => {
                    self.state = State::Ready { relayed, renew: due };
                    self.news.push_back(News::Ready(relayed));
                }
                None => self.over(Fault::Garbled),
            },
            What::Refresh => {
                if let State::Ready { renew, .. } = &mut self.state {
                    *renew = due;
                }
            }
            What::Release => {}
            What::Permit(ip) => self.permitted(now, ip),
            What::Bind(peer, _) => self.bound(now, peer),
        }
    }

    fn refused(&mut self, now: Time, what: What, message: &Message<'_>) {
        let Some((code, words)) = message.error() else {
            return self.given_up(now, what, Fault::Garbled);
        };
        let is_first = code == UNAUTHORIZED && self.login.is_none();
        if is_first || code == STALE_NONCE {
            self.stale += 1;
            if self.stale <= MAX_STALE && self.log_in(message) {
                return self.ask(now, what);
            }
        }
        let fault = match code {
            UNAUTHORIZED if !is_first => Fault::WrongPassword,
            code => {
                let words = &words[..words.len().min(MAX_SHOWN)];
                Fault::Refused { code, words: String::from_utf8_lossy(words).into_owned() }
            }
        };
        self.given_up(now, what, fault);
    }

    fn given_up(&mut self, now: Time, what: What, fault: Fault) {
        match what {
            What::Allocate | What::Refresh => self.over(fault),
            What::Release => {}
            What::Permit(ip) => self.denied(now, ip),
            What::Bind(peer, _) => self.unbound(now, peer),
        }
    }

    /// Takes what the server wants to see from now on. Whether that is something.
    fn log_in(&mut self, message: &Message<'_>) -> bool {
        let word = |kind| message.get(kind).filter(|word| word.len() <= MAX_WORD);
        let known = self.login.as_ref().map(|login| login.realm.clone());
        let realm = word(attribute::REALM).map(<[u8]>::to_vec).or(known);
        let (Some(realm), Some(nonce)) = (realm, word(attribute::NONCE)) else { return false };
        let (nonce, key) = (nonce.to_vec(), self.key(&realm));
        self.login = Some(Login { realm, nonce, key });
        true
    }
}
