//! Just enough STUN (RFC 8489) to ask a server how this machine looks from outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
const REQUEST: [u8; 2] = [0x00, 0x01];
const SUCCESS: [u8; 2] = [0x01, 0x01];
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const DEFAULT_PORT: u16 = 3478;

/// Names a question, so that only answers to it are heard.
pub(super) type Question = [u8; 12];

pub(super) fn ask(question: &Question) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..2].copy_from_slice(&REQUEST);
    bytes[4..8].copy_from_slice(&COOKIE);
    bytes[8..].copy_from_slice(question);
    bytes
}

/// The address in an answer to the question.
pub(super) fn answer(bytes: &[u8], question: &Question) -> Option<SocketAddr> {
    let (head, mut rest) = bytes.split_at_checked(20)?;
    if head[..2] != SUCCESS || head[4..8] != COOKIE || head[8..] != *question {
        return None;
    }
    loop {
        let ([kind0, kind1, length0, length1], after) = rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([*length0, *length1]));
        let value = after.get(..length)?;
        if u16::from_be_bytes([*kind0, *kind1]) == XOR_MAPPED_ADDRESS {
            return address(value, &head[4..]);
        }
        rest = after.get(length.next_multiple_of(4)..)?;
    }
}

/// `mask` is the cookie and the question.
fn address(value: &[u8], mask: &[u8]) -> Option<SocketAddr> {
    let ([_, family, port0, port1], ip) = value.split_first_chunk::<4>()?;
    let port = u16::from_be_bytes([port0 ^ mask[0], port1 ^ mask[1]]);
    let plain: Vec<u8> = ip.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    let ip: IpAddr = match family {
        1 => Ipv4Addr::from(<[u8; 4]>::try_from(plain).ok()?).into(),
        2 => Ipv6Addr::from(<[u8; 16]>::try_from(plain).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Host and port of `stun:host:port`; `None` for other kinds of servers.
pub(super) fn place(url: &str) -> Option<(String, u16)> {
    let place = url.strip_prefix("stun:")?.split('?').next()?;
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => (host, port.parse().ok()?),
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
        let mut bytes = vec![0x01, 0x01, 0, 20];
        bytes.extend(COOKIE);
        bytes.extend(question);
        // An attribute of another kind with padding, then 192.0.2.1:32853 as RFC 5769 masks it.
        bytes.extend([0x80, 0x22, 0, 1, b'x', 0, 0, 0]);
        bytes.extend([0x00, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        let wanted: SocketAddr = "192.0.2.1:32853".parse().expect("an address");
        assert_eq!(answer(&bytes, &question), Some(wanted));
        assert_eq!(answer(&bytes, b"another one."), None);
        for length in 0..bytes.len() {
            assert_eq!(answer(&bytes[..length], &question), None, "cut at {length}");
        }
    }

    #[test]
    fn places_of_servers() {
        assert_eq!(place("stun:a.example:99"), Some(("a.example".into(), 99)));
        assert_eq!(place("stun:a.example"), Some(("a.example".into(), 3478)));
        assert_eq!(place("turn:a.example:99 me secret"), None);
    }
}
