//! Asking a server how this machine looks from outside.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::message::{Class, Draft, Id, Message, Method, attribute};

const DEFAULT_PORT: u16 = 3478;

pub fn ask(question: &Id) -> Vec<u8> {
    Draft::new(Class::Request, Method::Binding, question).plain()
}

/// The address in an answer to the question.
pub fn answer(bytes: &[u8], question: &Id) -> Option<SocketAddr> {
    let message = Message::read(bytes)?;
    let is_ours = message.class == Class::Success
        && message.method == Some(Method::Binding)
        && message.id == *question;
    if is_ours { message.address(attribute::MAPPED) } else { None }
}

/// Host and port of `stun:host:port` or `turn:host:port`, by its scheme, if it is reached by UDP.
pub fn place(url: &str, scheme: &str) -> Option<(String, u16)> {
    let place = url.strip_prefix(scheme)?.strip_prefix(':')?;
    let (place, transport) = place.split_once('?').unwrap_or((place, "transport=udp"));
    if transport != "transport=udp" {
        return None;
    }
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().ok()?)
        }
        Some(_) | None => (place, DEFAULT_PORT),
    };
    Some((host.trim_matches(['[', ']']).to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_the_address_and_others_are_not_heard() {
        let question = *b"twelve bytes";
        assert_eq!(ask(&question)[8..], question);
        let mut bytes = Vec::from([0x01, 0x01, 0, 20]);
        bytes.extend(0x2112_a442_u32.to_be_bytes());
        bytes.extend(question);
        // An attribute of another kind with padding, then 192.0.2.1:32853 as RFC 5769 masks it.
        bytes.extend([0x80, 0x22, 0, 1, b'x', 0, 0, 0]);
        bytes.extend([0x00, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        let wanted: SocketAddr = "192.0.2.1:32853".parse().unwrap();
        assert_eq!(answer(&bytes, &question), Some(wanted));
        assert_eq!(answer(&bytes, b"another one."), None);
        for length in 0..bytes.len() {
            assert_eq!(answer(&bytes[..length], &question), None, "cut at {length}");
        }
    }

    #[test]
    fn places_of_servers() {
        assert_eq!(place("stun:a.example:99", "stun"), Some(("a.example".into(), 99)));
        assert_eq!(place("stun:a.example", "stun"), Some(("a.example".into(), 3478)));
        assert_eq!(place("turn:a.example:99", "stun"), None);
        assert_eq!(place("turn:a.example:99", "turn"), Some(("a.example".into(), 99)));
        assert_eq!(place("turn:a:99?transport=udp", "turn"), Some(("a".into(), 99)));
        assert_eq!(place("turn:a:99?transport=tcp", "turn"), None);
        assert_eq!(place("turns:a:99", "turn"), None);
        assert_eq!(place("stun:[::1]:7", "stun"), Some(("::1".into(), 7)));
        assert_eq!(place("stun:[2001:db8::1]", "stun"), Some(("2001:db8::1".into(), 3478)));
    }
}
