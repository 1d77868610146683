//! Whom the server lets through. It passes on nothing of addresses that were not named before; who answers gets
//! a channel, on which a datagram costs four bytes more and not thirty-six.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

use shoal_protocol::{Micros, Time};

use super::ask::What;
use super::{State, Turn};
use crate::message::{Class, Draft, Message, Method, attribute};
use crate::place::By;

/// Addresses the server is asked to let through: a crew's members with a few each. Others are not reached.
const MAX_PERMITS: usize = 128;
/// Peers with a channel. Those beyond are reached as well, at a higher price.
const MAX_CHANNELS: usize = 64;
/// Channel numbers begin here.
const FIRST_CHANNEL: u16 = 0x4000;
/// The server forgets a permission after five minutes and a channel after ten, which renews the permission.
const RENEW_AFTER: Micros = Micros::from_secs(240);
/// Whom the server does not let through, it is not asked again for so long.
const DENIED_FOR: Micros = Micros::from_secs(60);

pub(super) struct Permit {
    is: Is,
    used: Time,
    /// When to renew or forget it.
    pub(super) due: Time,
}

enum Is {
    /// With the last datagram that waits for it.
    Asked(Option<(SocketAddr, Vec<u8>)>),
    Given,
    Denied,
}

pub(super) struct Channel {
    number: u16,
    is_bound: bool,
    used: Time,
    pub(super) due: Time,
}

impl Turn {
    /// To a peer, through the server. A datagram that cannot go is a lost one.
    pub fn send(&mut self, now: Time, to: SocketAddr, bytes: &[u8]) {
        let State::Ready { relayed, .. } = self.state else { return };
        if relayed.is_ipv4() != to.is_ipv4() {
            return;
        }
        if let Some(channel) = self.channels.get_mut(&to).filter(|channel| channel.is_bound) {
            channel.used = now;
            let Ok(length) = u16::try_from(bytes.len()) else { return };
            let head = [channel.number.to_be_bytes(), length.to_be_bytes()].concat();
            let mut message = [&head, bytes].concat();
            if self.by != By::Udp {
                message.resize(message.len().next_multiple_of(4), 0);
            }
            return self.push(message);
        }
        let count = self.permits.len();
        match self.permits.get_mut(&to.ip()) {
            Some(Permit { is: Is::Given, used, .. }) => {
                *used = now;
                self.indicate(to, bytes);
            }
            Some(Permit { is: Is::Asked(waiting), .. }) => *waiting = Some((to, bytes.to_vec())),
            Some(Permit { is: Is::Denied, .. }) => {}
            None if count < MAX_PERMITS => {
                let is = Is::Asked(Some((to, bytes.to_vec())));
                self.permits.insert(to.ip(), Permit { is, used: now, due: now + DENIED_FOR });
                self.ask(now, What::Permit(to.ip()));
            }
            None => {}
        }
    }

    fn indicate(&mut self, to: SocketAddr, bytes: &[u8]) {
        let id = self.next_id();
        let draft = Draft::new(Class::Indication, Method::Send, &id);
        let bytes = draft.with_address(attribute::PEER, to).with(attribute::DATA, bytes).plain();
        self.push(bytes);
    }

    pub(super) fn permitted(&mut self, now: Time, ip: IpAddr) {
        let Some(permit) = self.permits.get_mut(&ip) else { return };
        permit.due = now + RENEW_AFTER;
        if let Is::Asked(Some((to, bytes))) = core::mem::replace(&mut permit.is, Is::Given) {
            self.indicate(to, &bytes);
        }
    }

    pub(super) fn denied(&mut self, now: Time, ip: IpAddr) {
        if let Some(permit) = self.permits.get_mut(&ip) {
            (permit.is, permit.due) = (Is::Denied, now + DENIED_FOR);
        }
    }

    pub(super) fn bound(&mut self, now: Time, peer: SocketAddr) {
        if let Some(channel) = self.channels.get_mut(&peer) {
            (channel.is_bound, channel.due) = (true, now + RENEW_AFTER);
        }
    }

    /// It is reached by its permission alone.
    pub(super) fn unbound(&mut self, now: Time, peer: SocketAddr) {
        if let Some(channel) = self.channels.get_mut(&peer) {
            (channel.is_bound, channel.due) = (false, now + RENEW_AFTER);
        }
    }

    /// A datagram in the short form.
    pub(super) fn on_channel(
        &mut self,
        now: Time,
        datagram: &[u8],
    ) -> Option<(SocketAddr, Range<usize>)> {
        let ([n0, n1, l0, l1], rest) = datagram.split_first_chunk::<4>()?;
        let (number, length) = (u16::from_be_bytes([*n0, *n1]), u16::from_be_bytes([*l0, *l1]));
        let length = usize::from(length);
        let mut channels = self.channels.iter_mut();
        let (peer, channel) = channels.find(|(_, channel)| channel.number == number)?;
        channel.used = now;
        // Some servers pad it.
        (rest.len() >= length).then_some((*peer, 4..4 + length))
    }

    /// A datagram in the long form: whoever says something gets a channel.
    pub(super) fn indicated(
        &mut self,
        now: Time,
        message: &Message<'_>,
    ) -> Option<(SocketAddr, Range<usize>)> {
        let (peer, data) = (message.address(attribute::PEER)?, message.place(attribute::DATA)?);
        // Nobody else is let through; so nobody else said it.
        self.permits.get_mut(&peer.ip())?.used = now;
        if !self.channels.contains_key(&peer) && self.channels.len() < MAX_CHANNELS {
            let taken = |number: &u16| self.channels.values().any(|c| c.number == *number);
            let number = (FIRST_CHANNEL..).find(|number| !taken(number))?;
            let due = now + RENEW_AFTER;
            self.channels.insert(peer, Channel { number, is_bound: false, used: now, due });
            self.ask(now, What::Bind(peer, number));
        }
        Some((peer, data))
    }

    /// What is used is renewed; what is not, is forgotten, here and by the server.
    pub(super) fn renew_peers(&mut self, now: Time) {
        let is_used = |used: Time| now < used + RENEW_AFTER;
        let mut renewed = Vec::new();
        self.permits.retain(|ip, permit| {
            if permit.due > now {
                return true;
            }
            let renews = matches!(permit.is, Is::Given) && is_used(permit.used);
            if renews {
                permit.due = now + RENEW_AFTER;
                renewed.push(What::Permit(*ip));
            }
            renews
        });
        self.channels.retain(|peer, channel| {
            if channel.due > now {
                return true;
            }
            let renews = is_used(channel.used);
            if renews {
                channel.due = now + RENEW_AFTER;
                renewed.push(What::Bind(*peer, channel.number));
            }
            renews
        });
        for what in renewed {
            if !self.is_asked(what) {
                self.ask(now, what);
            }
        }
    }
}
